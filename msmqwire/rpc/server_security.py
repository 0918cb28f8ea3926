"""The security contexts of an association, as its server establishes them: [MS-RPCE] 3.3.1.5.2 and 3.3.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msmqwire.errors import AuthenticationFailed, RpcRefused
from msmqwire.rpc.constants import AuthLevel, PfcFlags
from msmqwire.rpc.pdu import Frame, wrong_header
from msmqwire.rpc.security import Security, SecurityContext, sec_trailer_of

SECURITY_CONTEXTS_MAX: Final = 16
"""The security contexts of an association; Windows allows up to 2,000 ([MS-RPCE] 3.3.1.5.4)."""

Acceptor: TypeAlias = Callable[[int, AuthLevel], SecurityContext | None]
"""Gives the acceptor's end of a new security context of a provider; None for one that is not there."""


class SecurityContexts:
    """The security contexts of an association by their ids, and the handshakes that establish them.

    Attributes:
        header_signing: whether headers of PDUs are signed: a bind or alter_context asks for it.
    """

    def __init__(self, acceptor: Acceptor | None) -> None:
        self._acceptor = acceptor
        self._contexts: dict[int, Security] = {}
        self.header_signing = False

    def take_token(self, frame: Frame) -> tuple[int, dict[str, Any] | None]:
        """Take the token of a bind or alter_context, and return the flags and the verifier of the answer.

        Raises AuthenticationFailed, RpcRefused for a provider or level that is not there.
        """
        trailer: Any = sec_trailer_of(frame)
        if trailer is None:
            return 0, None
        security = self._contexts.get(trailer.auth_context_id)
        if security is None:
            security = self._begin(trailer)
            if frame.header["pfc_flags"] & PfcFlags.SUPPORT_HEADER_SIGN:
                self.header_signing = True
        elif security.ready or security.failed:
            raise AuthenticationFailed("the handshake of this security context is over")
        elif (trailer.auth_type, trailer.auth_level) != (security.auth_type, security.level):
            raise AuthenticationFailed("authentication type or level change in a handshake")
        token = _step(security, trailer.auth_value)
        security.sign_head = self.header_signing
        flags = PfcFlags.SUPPORT_HEADER_SIGN if self.header_signing else 0
        return flags, security.verifier(token) if token else None

    def _begin(self, trailer: Any) -> Security:
        if len(self._contexts) >= SECURITY_CONTEXTS_MAX:
            raise AuthenticationFailed(f"more than {SECURITY_CONTEXTS_MAX} security contexts")
        level = trailer.auth_level
        if level not in tuple(AuthLevel) or level == AuthLevel.NONE:
            raise RpcRefused(f"no authentication level {level}")
        new = self._acceptor
        context = None if new is None else new(trailer.auth_type, AuthLevel(level))
        if context is None:
            raise RpcRefused(f"no security provider {trailer.auth_type}")
        security = Security(trailer.auth_type, AuthLevel(level), trailer.auth_context_id, context)
        self._contexts[trailer.auth_context_id] = security
        return security

    def take_last_token(self, frame: Frame) -> None:
        """Take the token of an rpc_auth_3, which has no answer: a failure is reported to the first request.

        Raises MalformedPacket where no handshake is under way.
        """
        trailer: Any = sec_trailer_of(frame)
        security = None if trailer is None else self._contexts.get(trailer.auth_context_id)
        if security is None or security.context.complete:
            raise wrong_header("PTYPE", "no handshake is under way")
        if (trailer.auth_type, trailer.auth_level) != (security.auth_type, security.level):
            security.failed = True
        elif not security.failed:
            try:
                _step(security, trailer.auth_value)
            except AuthenticationFailed:
                return
            security.failed = not security.context.complete

    def opened(self, frame: Frame) -> bytes:
        """Return the plain bytes of a PDU, its verifier checked if it has one.

        Raises AuthenticationFailed, and MalformedPacket where the parts do not fit.
        """
        trailer: Any = sec_trailer_of(frame)
        if trailer is None:
            return frame.data
        security = self._contexts.get(trailer.auth_context_id)
        if security is None:
            raise AuthenticationFailed(f"no security context {trailer.auth_context_id}")
        return security.opened(frame, trailer)

    def of_request(self, frame: Frame) -> Security | None:
        """Return the security context of a request; None for an anonymous one: [MS-RPCE] 3.3.1.5.4.

        Raises AuthenticationFailed for a request without a verifier that has to have one.
        """
        trailer: Any = sec_trailer_of(frame)
        if trailer is not None:
            return self._contexts.get(trailer.auth_context_id)
        if not self._contexts:
            return None
        only = next(iter(self._contexts.values()))
        if len(self._contexts) > 1 or only.protects or not only.ready:
            raise AuthenticationFailed("a request without a verifier")
        return only


def _step(security: Security, token: bytes) -> bytes:
    try:
        return security.context.step(token)
    except AuthenticationFailed:
        security.failed = True
        raise
