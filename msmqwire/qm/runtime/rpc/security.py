"""Security contexts of remote calls: NTLM, SPNEGO and Kerberos by pyspnego, in DCE style."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeVar

import spnego
from spnego._context import GSSMech
from spnego._negotiate import NegotiateProxy
from spnego._ntlm_raw.messages import NegotiateFlags
from spnego.exceptions import SpnegoError
from spnego.iov import BufferType

from msmqwire.errors import AuthenticationFailed, InvalidValue
from msmqwire.qm.runtime.rpc.logins import LoginAttempts
from msmqwire.qm.runtime.rpc.ntlm import HASH_PREFIX, NtlmAcceptor, RpcUsers, nt_hash
from msmqwire.qm.runtime.rpc.spnego import SpnegoAcceptor
from msmqwire.rpc.constants import AuthLevel, AuthType

_Result = TypeVar("_Result")

_NTLM_SIGNATURE_SIZE: Final = 16

_PROTOCOLS: Final = {
    AuthType.WINNT: "ntlm",
    AuthType.GSS_NEGOTIATE: "negotiate",
    AuthType.GSS_KERBEROS: "kerberos",
}


class PyspnegoContext:
    """A `msmqwire.rpc.security.SecurityContext` by a context of pyspnego."""

    def __init__(self, context: Any, level: AuthLevel) -> None:
        """Take a context that has not begun, and the level that it must reach."""
        self._context, self._level = context, level
        self._complete = False
        self._identity = ""

    @property
    def complete(self) -> bool:
        """Whether the handshake has succeeded."""
        return self._complete

    @property
    def identity(self) -> str:
        r"""The client, ``DOMAIN\user``, at the server's end once complete."""
        return self._identity

    def step(self, token: bytes) -> bytes:
        """Return the next token of the handshake. Raises AuthenticationFailed."""
        answer: bytes = _guarded(lambda: self._context.step(token or None)) or b""
        # Inside the guard: Python's GSS-API may report only here why the step has failed.
        if _guarded(lambda: self._context.complete):
            self._check_strength()
            self._identity = _guarded(lambda: self._context.client_principal) or ""
            self._complete = True
        return answer

    def signature_size(self, seal: bool) -> int:
        """The bytes of a signature. Raises AuthenticationFailed before the handshake is over."""
        if self._is_ntlm:
            return _NTLM_SIGNATURE_SIZE
        if seal:
            return int(_guarded(lambda: self._context.query_message_sizes().header))
        return int(_guarded(lambda: _kerberos().mic_size(self._gssapi)))

    def protect(
        self, head: bytes, body: bytes, trailer: bytes, *, seal: bool, sign_head: bool
    ) -> tuple[bytes, bytes]:
        """Return the body to send and its signature. Raises AuthenticationFailed."""
        if not seal:
            signed = self._signed(head, body, trailer, sign_head)
            return body, _guarded(lambda: self._context.sign(signed))
        around = BufferType.sign_only if sign_head else BufferType.data_readonly
        buffers = [(around, head), (BufferType.data, body), (around, trailer), BufferType.header]
        result = _guarded(lambda: self._context.wrap_iov(buffers, encrypt=True))
        return result.buffers[1].data or b"", result.buffers[3].data or b""

    def unprotect(
        self, head: bytes, body: bytes, trailer: bytes, signature: bytes, *, seal: bool, sign_head: bool
    ) -> bytes:
        """Return the plain body of a PDU with a valid signature. Raises AuthenticationFailed."""
        if not seal:
            signed = self._signed(head, body, trailer, sign_head)
            _guarded(lambda: self._context.verify(signed, signature))
            return body
        around = BufferType.sign_only if sign_head else BufferType.data_readonly
        buffers = [
            (around, head),
            (BufferType.data, body),
            (around, trailer),
            (BufferType.header, signature),
        ]
        result = _guarded(lambda: self._context.unwrap_iov(buffers))
        return result.buffers[1].data or b""

    @property
    def _is_ntlm(self) -> bool:
        return bool(self._context.negotiated_protocol == "ntlm")

    @property
    def _gssapi(self) -> Any:
        """The context of the GSS-API, with Kerberos."""
        wrapped = isinstance(self._context, NegotiateProxy)
        return (self._context._context if wrapped else self._context)._context

    def _signed(self, head: bytes, body: bytes, trailer: bytes, sign_head: bool) -> bytes:
        # NTLM signs what surrounds the body whether or not header signing was negotiated.
        return head + body + trailer if sign_head or self._is_ntlm else body

    def _check_strength(self) -> None:
        """Refuse a handshake with less than the level needs."""
        attributes = self._context.context_attr
        needed = _requirements(self._level)
        if not self._is_ntlm:
            needed |= spnego.ContextReq.dce_style  # without the third token the first one may be a copy
        if needed & attributes != needed:
            raise AuthenticationFailed("the handshake gave less than this authentication level needs")
        if self._level < AuthLevel.CALL:
            return
        if self._is_ntlm:
            inner = getattr(self._context, "_context", self._context)
            strong = NegotiateFlags.extended_session_security | NegotiateFlags.key_128
            if inner._context_attr & strong != strong:
                raise AuthenticationFailed("the client asked for weak keys")
        elif not _guarded(lambda: _kerberos().is_strong(self._gssapi)):
            raise AuthenticationFailed("the key is not an AES key")


def initiator(
    auth_type: AuthType,
    level: AuthLevel,
    *,
    user: str | None,
    password: str | None,
    host: str = "unspecified",
    service: str = "host",
) -> PyspnegoContext:
    r"""Return the client's end of a security context.

    `user` is ``DOMAIN\user``, for Kerberos ``REALM\user`` or ``user@REALM``; without one, Kerberos uses its
    cache. SPNEGO takes a name with ``@`` for Kerberos. A password that begins with ``$NT$`` is an NT hash.
    With Kerberos this may query the KDC, and wait for it, as does the first step. `service` and `host` name
    the server for Kerberos: [MS-MQRR] names no principal. Raises InvalidValue for an unknown provider,
    AuthenticationFailed for one that is not installed.
    """
    protocol = _PROTOCOLS.get(auth_type)
    if protocol is None:
        raise InvalidValue(f"{auth_type} is not a security provider", path="auth_type")
    if user is not None and protocol == "kerberos":
        domain, separator, name = user.partition("\\")
        user = f"{name}@{domain}" if separator else user
    credential: Any = user
    if user is not None and password is not None:
        # Kerberos can't use a hash; within SPNEGO it would query the KDC for an NTLM name.
        if password.startswith(HASH_PREFIX) or (protocol == "negotiate" and "\\" in user):
            credential = spnego.NTLMHash(user, nt_hash=nt_hash(password).hex())
        else:
            credential = spnego.Password(user, password)
    options = {
        # The providers of pyspnego itself, not of a library that may or may not be installed.
        "ntlm": spnego.NegotiateOptions.use_ntlm,
        "negotiate": spnego.NegotiateOptions.use_negotiate,
    }.get(protocol, spnego.NegotiateOptions.none)
    context = _guarded(
        lambda: spnego.client(
            credential,
            hostname=host,
            service=service,
            protocol=protocol,
            context_req=_requirements(level) | spnego.ContextReq.dce_style,
            options=options,
        )
    )
    return PyspnegoContext(context, level)


def acceptors(
    users: RpcUsers, attempts: LoginAttempts | None = None, address: str = ""
) -> Callable[[int, AuthLevel], PyspnegoContext | None]:
    r"""Return the factory of the server's ends of security contexts, for `ServerAssociation`.

    NTLM and SPNEGO know the users given. Kerberos is available if its library is, and takes its key from the
    system's keytab; its callers are ``REALM\user``. `attempts` limits attempts at passwords by the address of
    the client.
    """

    def acceptor(auth_type: int, level: AuthLevel) -> PyspnegoContext | None:
        request = _requirements(level) | spnego.ContextReq.dce_style
        if auth_type == AuthType.WINNT:
            return PyspnegoContext(NtlmAcceptor(users, attempts, address), level)
        if auth_type not in (AuthType.GSS_KERBEROS, AuthType.GSS_NEGOTIATE):
            return None
        kerberos = _kerberos_acceptor(request)
        if auth_type == AuthType.GSS_KERBEROS:
            return None if kerberos is None else PyspnegoContext(kerberos, level)
        inner: dict[GSSMech, Any] = {} if kerberos is None else {GSSMech.kerberos: kerberos}
        inner[GSSMech.ntlm] = NtlmAcceptor(users, attempts, address)
        return PyspnegoContext(SpnegoAcceptor(request, inner), level)

    return acceptor


def _kerberos() -> ModuleType:
    """Return the module that needs the extra ``[kerberos]``. Raises ImportError without."""
    return import_module("msmqwire.qm.runtime.rpc.kerberos")


def _kerberos_acceptor(request: spnego.ContextReq) -> Any | None:
    """Return an acceptor's end; None without the library or a key."""
    try:
        return _kerberos().KerberosAcceptor(request)
    except (ImportError, SpnegoError):
        return None


def _requirements(level: AuthLevel) -> spnego.ContextReq:
    """Return the flags that a level requires of a provider: [MS-RPCE] 3.3.1.5.2.2."""
    needed = spnego.ContextReq.none
    if level >= AuthLevel.CALL:
        needed |= spnego.ContextReq.replay_detect | spnego.ContextReq.sequence_detect
        needed |= spnego.ContextReq.integrity
    if level >= AuthLevel.PKT_PRIVACY:
        needed |= spnego.ContextReq.confidentiality
    return needed


def _guarded(action: Callable[[], _Result]) -> _Result:
    """Return the result of a call into pyspnego. Raises AuthenticationFailed for any exception of it."""
    try:
        return action()
    except Exception as exc:  # tokens of a peer raise nearly anything there: struct.error, StopIteration, ...
        raise AuthenticationFailed(f"the security provider refuses: {exc}") from exc
