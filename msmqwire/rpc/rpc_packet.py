"""A packet of DCE/RPC in a capture: a PDU, or a call or answer from all its fragments.

Offsets count from the first byte of the first PDU, the PDUs of a stub in fragments standing one after the
other. The calls and answers of an interface are a class of their own, made of this one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from msmqwire.errors import AuthenticationFailed, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.rpc.constants import AuthLevel, AuthType, PduType, status_name
from msmqwire.rpc.interface import Procedure
from msmqwire.rpc.ndr import Syntax, parse_stub, to_json
from msmqwire.rpc.pdu import Pdu
from msmqwire.rpc.pdus import PDUS
from msmqwire.rpc.verification_trailer import split_trailer

_WITH_STUB: Final = (PduType.REQUEST, PduType.RESPONSE)

PDU_KINDS: Final = tuple(schema.name for schema in PDUS.values())
"""The names of packets that are not calls and answers of a known interface."""


def call_kind(procedure: Procedure, kind: int) -> str:
    """Return the name of a call or an answer: ``R_StartReceive request``."""
    return f"{procedure.name} {PDUS[PduType(kind)].name}"


def is_sent(procedure: Procedure) -> bool:
    """Return whether a procedure is more than a reserved number."""
    return bool(procedure.request.members or procedure.response.members)


def call_kinds(procedures: Iterable[Procedure]) -> tuple[str, ...]:
    """Return the names of all calls and answers of an interface."""
    return tuple(call_kind(one, kind) for one in procedures if is_sent(one) for kind in _WITH_STUB)


class CallSecurity(NamedTuple):
    """The security context of a packet, as far as it is visible.

    Attributes:
        auth_type: the security provider, an AuthType.
        level: an AuthLevel.
        user: ``DOMAIN\\user`` of an NTLM handshake in the connection; empty if none was seen.
    """

    auth_type: int
    level: int
    user: str = ""

    @property
    def seals(self) -> bool:
        """Whether it encrypts stubs."""
        return self.level >= AuthLevel.PKT_PRIVACY

    def to_json(self) -> dict[str, Any]:
        """Return ``{"auth_type", "level", "user"}``, names where there are any."""
        return {
            "auth_type": _name(AuthType, self.auth_type),
            "level": _name(AuthLevel, self.level),
            "user": self.user or None,
        }


class StubPart(NamedTuple):
    """A fragment: the offsets of its bytes in the stub, and in the packet."""

    stub: int
    packet: int


@dataclass(frozen=True, slots=True, repr=False)
class RpcPacket:
    """A PDU, or a call or answer put together from fragments.

    Attributes:
        pdu: the PDU, the first of several.
        kind: its name: that of the PDU, or of a call or answer with its procedure.
        fragments: PDUs that it came in.
        stub: the stub of a request, response or fault, as it was transmitted.
        parts: the places of the fragments of the stub.
        syntax: the transfer syntax of the stub; None if that is unknown.
        procedure: the procedure of a known interface; None for an opnum that it has not, too.
        value: the arguments or results; None if they can't be seen.
        arguments: those of the call that an answer belongs to; None if they can't be seen.
        places: the offset in the stub of each of them.
        security: the security context; None without one.
        queue: the format name of the queue that a call or answer is about; empty if that is unknown.
    """

    pdu: Pdu
    kind: str
    fragments: int = 1
    stub: bytes = b""
    parts: tuple[StubPart, ...] = ()
    syntax: Syntax | None = None
    procedure: Procedure | None = None
    value: Any = None
    arguments: Any = None
    places: Mapping[str, int] = field(default_factory=dict)
    security: CallSecurity | None = None
    queue: str = ""

    def __repr__(self) -> str:
        queue = f" {self.queue!r}" if self.queue else ""
        return (
            f"<{type(self).__name__} {self.kind}{queue}, call {self.call_id},"
            f" {counted(len(self.stub), 'byte')} of stub>"
        )

    @property
    def ptype(self) -> int:
        """The type of the PDU."""
        return int(self.pdu.record.header.PTYPE)

    @property
    def is_request(self) -> bool:
        return self.ptype == PduType.REQUEST

    @property
    def call_id(self) -> int:
        return int(self.pdu.record.header.call_id)

    @property
    def opnum(self) -> int | None:
        """The number of the procedure in a request, also of another interface."""
        return int(self.pdu.record.opnum) if self.is_request else None

    @property
    def encrypted(self) -> bool:
        """Whether it has a stub that is encrypted."""
        return bool(self.stub) and self.security is not None and self.security.seals

    def offset(self, stub_offset: int) -> int:
        """Return the offset in the packet of a byte of the stub."""
        return packet_offset(self.parts, stub_offset)

    def to_json(self) -> dict[str, Any]:
        """Return the fields: those of the PDU, and in place of its bytes the stub by names.

        A stub that is encrypted or of an unknown interface is hex text under ``stub_data``.
        """
        fields: dict[str, Any] = self.pdu.to_json()["fields"]
        if self.fragments > 1:
            fields["fragments"] = self.fragments
        if "stub_data" in fields:
            fields["stub_data"] = self.stub.hex()
        if self.procedure is not None:
            fields["procedure"] = self.procedure.name
        if self.ptype == PduType.FAULT:
            fields["status_name"] = status_name(self.pdu.record.status)
        if self.value is not None and self.procedure is not None:
            declaration = self.procedure.request if self.is_request else self.procedure.response
            fields["arguments" if self.is_request else "results"] = to_json(declaration, self.value)
            del fields["stub_data"]
        if self.encrypted:
            fields["encrypted"] = True
        return fields


def packet_offset(parts: Sequence[StubPart], stub_offset: int) -> int:
    """Return the offset in a packet of a byte of the stub in these parts."""
    number = bisect_right(parts, stub_offset, key=lambda part: part.stub) - 1
    part = parts[max(0, number)]
    return part.packet + stub_offset - part.stub


class Stub(NamedTuple):
    """A stub that could be read: its bytes without a trailer, its value, and the places of the parameters."""

    data: bytes
    value: Any
    places: Mapping[str, int]


def read_stub(
    procedure: Procedure, kind: int, stub: bytes, syntax: Syntax, *, may_have_trailer: bool
) -> Stub:
    """Return the arguments or results in a stub.

    `may_have_trailer` tells whether a verification trailer may stand after the arguments. Raises
    MalformedPacket, its offset counted in the stub.
    """
    if may_have_trailer and kind == PduType.REQUEST:
        # The reason to refuse a trailer is not in the arguments.
        with suppress(AuthenticationFailed, MalformedPacket):
            stub, _ = split_trailer(stub)
    places: dict[str, int] = {}
    declaration = procedure.request if kind == PduType.REQUEST else procedure.response
    return Stub(stub, parse_stub(declaration, stub, syntax, places), places)


def _name(names: type[AuthType] | type[AuthLevel], number: int) -> str | int:
    try:
        return names(number).name
    except ValueError:
        return number
