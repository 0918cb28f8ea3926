"""Security contexts of an association, and PDUs protected by them: [MS-RPCE] 3.3.1.5.2 and 3.3.1.5.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from msmqwire.errors import AuthenticationFailed, MalformedPacket
from msmqwire.rpc.constants import AuthLevel, PduType, PfcFlags
from msmqwire.rpc.pdu import Frame, read_sec_trailer, verifier_offset
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE, SEC_TRAILER, SEC_TRAILER_SIZE
from msmqwire.schema import Record

CALL_HEADER_SIZE: Final = 24
"""The bytes before the stub of a request without an object, a response, and before the status of a fault."""

OBJECT_SIZE: Final = 16
AUTH_ALIGNMENT: Final = 16
"""A sec_trailer is aligned to this from the start of the stub: [MS-RPCE] 2.2.2.11."""


class SecurityContext(Protocol):
    """One end of a security context of a provider, in DCE style. All methods raise AuthenticationFailed."""

    @property
    def complete(self) -> bool:
        """Whether the handshake has succeeded."""

    @property
    def identity(self) -> str:
        r"""The client, ``DOMAIN\user``, once complete."""

    def step(self, token: bytes) -> bytes:
        """Return the next token of the handshake for the peer's, empty if none is due."""

    def signature_size(self, seal: bool) -> int:
        """The bytes of a signature, with or without encryption of the body."""

    def protect(
        self, head: bytes, body: bytes, trailer: bytes, *, seal: bool, sign_head: bool
    ) -> tuple[bytes, bytes]:
        """Return the body as it is sent, and the signature.

        `head` and `trailer` are the bytes around the body in the PDU, signed too if `sign_head`.
        """

    def unprotect(
        self, head: bytes, body: bytes, trailer: bytes, signature: bytes, *, seal: bool, sign_head: bool
    ) -> bytes:
        """Return the plain body of a PDU whose signature is right."""


@dataclass(slots=True)
class Security:
    """A security context of an association.

    Attributes:
        failed: whether its handshake failed.
        sign_head: whether the headers of PDUs are signed, too.
    """

    auth_type: int
    level: AuthLevel
    context_id: int
    context: SecurityContext
    failed: bool = False
    sign_head: bool = False

    @property
    def ready(self) -> bool:
        """Whether calls can be made by it."""
        return self.context.complete and not self.failed

    @property
    def protects(self) -> bool:
        """Whether requests and responses are signed.

        From the level of packets up: like Windows, which signs at that of calls and packets, too.
        """
        return self.level >= AuthLevel.CALL

    @property
    def seals(self) -> bool:
        """Whether stubs are encrypted."""
        return self.level >= AuthLevel.PKT_PRIVACY

    @property
    def overhead(self) -> int:
        """The bytes after the padding of a PDU that it protects."""
        return SEC_TRAILER_SIZE + self.context.signature_size(self.seals)

    def verifier(self, token: bytes) -> dict[str, Any]:
        """Return the fields of the verifier that carries a token of the handshake."""
        return {
            "auth_type": self.auth_type,
            "auth_level": self.level,
            "auth_context_id": self.context_id,
            "auth_value": token,
        }

    def trailer(self, padding: int = 0) -> bytes:
        """Return the sec_trailer without a signature."""
        record = SEC_TRAILER.record(
            auth_type=self.auth_type,
            auth_level=self.level,
            auth_pad_length=padding,
            auth_reserved=0,
            auth_context_id=self.context_id,
            auth_value=b"",
        )
        data: bytes = SEC_TRAILER.build(record)
        return data

    def protected(self, head: bytes, body: bytes, padding: int) -> bytes:
        """Return a PDU of `head`, `body` (padded) and a verifier; its lengths are already right."""
        trailer = self.trailer(padding)
        sent, signature = self.context.protect(head, body, trailer, seal=self.seals, sign_head=self.sign_head)
        if len(sent) != len(body) or len(signature) != self.context.signature_size(self.seals):
            raise AuthenticationFailed("the security provider gave a signature of another size")
        return head + sent + trailer + signature

    def opened(self, frame: Frame, sec_trailer: Record) -> bytes:
        """Return the bytes of a PDU with its stub in plain text, once its verifier is found right.

        Raises AuthenticationFailed, and MalformedPacket where the parts do not fit.
        """
        if (sec_trailer["auth_type"], sec_trailer["auth_level"]) != (self.auth_type, self.level):
            raise AuthenticationFailed("authentication type or level are not those that were negotiated")
        if not self.ready:
            raise AuthenticationFailed("the security context is not established")
        data, end = frame.data, verifier_offset(frame.header)
        if not self.protects:
            return data
        start = body_offset(frame.header)
        if start > end:
            raise MalformedPacket("the verifier begins in the header", path="sec_trailer", offset=end)
        body = self.context.unprotect(
            data[:start],
            data[start:end],
            data[end : end + SEC_TRAILER_SIZE],
            sec_trailer["auth_value"],
            seal=self.seals,
            sign_head=self.sign_head,
        )
        if len(body) != end - start:
            raise AuthenticationFailed("the security provider gave a body of another size")
        return data[:start] + body + data[end:]


def body_offset(header: Record) -> int:
    """Return where the part of a PDU begins that a security context encrypts."""
    kind = header["PTYPE"]
    if kind not in (PduType.REQUEST, PduType.RESPONSE, PduType.FAULT):
        return COMMON_HEADER_SIZE
    with_object = kind == PduType.REQUEST and header["pfc_flags"] & PfcFlags.OBJECT_UUID
    return CALL_HEADER_SIZE + (OBJECT_SIZE if with_object else 0)


def sec_trailer_of(frame: Frame) -> Record | None:
    """Return the verifier of a PDU, if it has one."""
    if not frame.header["auth_length"]:
        return None
    return read_sec_trailer(frame.header, frame.data[verifier_offset(frame.header) :])
