"""A packet of NCP in a capture: a request, a reply or a watchdog packet, with its transport.

Offsets count from the first byte of the unit over TCP, else of the datagram.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from msmqwire.ncp.bindery_calls import BINDERY_CALLS
from msmqwire.ncp.calls import Call
from msmqwire.ncp.constants import CompletionCode
from msmqwire.ncp.headers import BUSY, CREATE_CONNECTION
from msmqwire.ncp.packets import CALLS, NcpReply, NcpRequest
from msmqwire.schema import Record, to_json

KINDS: Final = tuple(
    f"{name} {direction}"
    for name in ("CreateConnection", "DestroyConnection", *(call.name for call in CALLS.values()), "Ncp",
                 "Watchdog")
    for direction in ("request", "reply")
)  # fmt: skip
"""The kinds of packets."""

_QUESTION: Final = ord("?")
_PROPERTY_CALLS: Final = frozenset(
    call.name for call in BINDERY_CALLS if "Property" in call.name or "Set" in call.name
)
_LOGINS: Final = frozenset({"LoginObject", "KeyedObjectLogin"})
_QUEUE_CODES: Final = range(0xD0, 0xE0)
"""Completion codes that have other meanings at a login."""
_COMPLETIONS: Final = {code.value: code.name for code in CompletionCode}


@dataclass(frozen=True, slots=True, repr=False)
class NcpPacket:
    """A packet of NCP.

    Attributes:
        packet: a request or reply, or the record of a watchdog packet.
        preamble: the fields in front of it over TCP; None over UDP.
        start: the offset of its header, in bytes.
        request: the request that a reply answers, without data that take much memory; None if it is unknown.
        is_repeated: whether the same packet was sent before.
        is_reused: whether another request was sent before with the same sequence number.
    """

    packet: NcpRequest | NcpReply | Record
    preamble: Record | None = None
    start: int = 0
    request: NcpRequest | None = None
    is_repeated: bool = False
    is_reused: bool = False

    def __repr__(self) -> str:
        data = "" if self.data is None else f" {self.data!r}"
        return f"<NcpPacket {self.kind}{data}>"

    @property
    def kind(self) -> str:
        """Its name, one of `KINDS`."""
        if isinstance(self.packet, Record):
            return "Watchdog request" if self.packet.Signature == _QUESTION else "Watchdog reply"
        return self.packet.kind

    @property
    def call(self) -> Call | None:
        """The call of a request, or the call that a reply answers."""
        return None if isinstance(self.packet, Record) else self.packet.call

    @property
    def data(self) -> Record | None:
        """The data of a request or reply."""
        return None if isinstance(self.packet, Record) else self.packet.data

    @property
    def is_busy(self) -> bool:
        """Whether it reports that a request is still being processed."""
        return isinstance(self.packet, NcpReply) and self.packet.header.ReplyType == BUSY

    @property
    def completion(self) -> str | None:
        """The name of the completion code; None if it is not a reply."""
        return completion_name(self.packet, self.request) if isinstance(self.packet, NcpReply) else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields of all its structures under their names, the call, and the completion's name."""
        fields: dict[str, Any] = {}
        if self.call is not None:
            fields["call"] = self.call.name
        if self.completion is not None:
            fields["completion"] = self.completion
        if self.preamble is not None:
            fields[self.preamble.schema.name] = to_json(self.preamble)
        if isinstance(self.packet, Record):
            return {**fields, self.packet.schema.name: to_json(self.packet)}
        return {**fields, **self.packet.to_json()}


def completion_name(reply: NcpReply, request: NcpRequest | None = None) -> str:
    """Return the name of the completion code of a reply; in hex if it has none.

    The meaning of some codes depends on the call.
    """
    code = reply.header.CompletionCode
    call = None if reply.call is None else reply.call.name
    if call in _LOGINS and code in _QUEUE_CODES:
        return f"{code:#04x}"
    if code == CompletionCode.NO_SUCH_PROPERTY and call not in _PROPERTY_CALLS:
        return "NCP_NOT_SUPPORTED"
    creates = request is not None and request.header.RequestType == CREATE_CONNECTION
    if code == CompletionCode.NO_FREE_CONNECTION_SLOTS and creates:
        return "NO_FREE_CONNECTION_SLOTS"
    return _COMPLETIONS.get(code) or f"{code:#04x}"
