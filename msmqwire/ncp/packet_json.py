"""NCP packets as bytes, with or without their units of TCP, to JSON-ready data and back.

The form is that of all packets, ``{"packet", "size", "fields"}``: the packet is named after the call, as in
``ReadQueueJobEntry request``, and the fields are its structures. Sizes and codes that follow from the rest
may be left out. ``readings`` are given if disputed fields are read in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.ncp.calls import Call
from msmqwire.ncp.framing import make_preamble, unit_size
from msmqwire.ncp.headers import (
    BUSY,
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_REPLY_HEADER,
    NCP_REQUEST_HEADER,
    NCP_SHORT_DESTROY_HEADER,
    NCP_SUBFUNCTION_HEADER,
    NCP_TCP_REPLY,
    NCP_TCP_REQUEST,
    REPLY,
    SERVICE_REQUEST,
    TCP_REPLY_SIGNATURE,
    TCP_REQUEST_SIGNATURE,
)
from msmqwire.ncp.packets import (
    CALLS_BY_NAME,
    NcpReply,
    NcpRequest,
    parse_reply,
    parse_request,
    shifted,
)
from msmqwire.ncp.readings import PROPOSED, Readings
from msmqwire.schema import Header, Record, to_json

REQUEST_TYPES: Final = frozenset({CREATE_CONNECTION, SERVICE_REQUEST, DESTROY_CONNECTION})
REPLY_TYPES: Final = frozenset({REPLY, BUSY})
_CONNECTION_TYPES: Final = {"CreateConnection": CREATE_CONNECTION, "DestroyConnection": DESTROY_CONNECTION}
_PREAMBLES: Final = {
    TCP_REQUEST_SIGNATURE.to_bytes(4, "big"): NCP_TCP_REQUEST,
    TCP_REPLY_SIGNATURE.to_bytes(4, "big"): NCP_TCP_REPLY,
}
_TRAILING: Final = "TrailingData"
_UNKNOWN: Final = "Ncp"
"""The name in the kind of a packet of no known call."""
_DIRECTIONS: Final = (" request", " reply")
_TOLD: Final = frozenset({"call", "completion"})
"""Fields of `dissect` beside the structures; both follow from the others."""


class SentPacket(NamedTuple):
    """A request or a reply, and its preamble if it was sent over TCP."""

    packet: NcpRequest | NcpReply
    preamble: Record | None = None

    def to_bytes(self) -> bytes:
        """Return the bytes."""
        return (b"" if self.preamble is None else self.preamble.to_bytes()) + self.packet.to_bytes()

    def to_json(self) -> dict[str, Any]:
        """Return the object that `from_json` reads."""
        preamble = {} if self.preamble is None else {self.preamble.schema.name: to_json(self.preamble)}
        data = {
            "packet": self.packet.kind,
            "size": len(self.to_bytes()),
            "fields": preamble | self.packet.to_json(),
        }
        differences = self.packet.readings.differences
        return {**data, "readings": differences} if differences else data


def parse_sent(data: bytes, call: Call | None = None, readings: Readings = PROPOSED) -> Iterator[SentPacket]:
    """Yield the packets in bytes: one in a datagram, or several in consecutive units over TCP.

    Args:
        data: the bytes.
        call: the call that the replies answer; without it their data are not read.
        readings: byte orders of disputed fields.

    Raises MalformedPacket with path and offset, counted from the first byte.
    """
    schema = _PREAMBLES.get(data[:4])
    if schema is None:
        yield SentPacket(_parse(data, None, call, readings))
        return
    start = 0
    while start < len(data):
        schema = _PREAMBLES.get(data[start : start + 4], schema)
        try:
            preamble, head, end = _unit(schema, data, start)
        except MalformedPacket as exc:
            raise shifted(exc, start) from None
        try:
            packet = _parse(data[head:end], schema, call, readings)
        except MalformedPacket as exc:
            raise shifted(exc, head) from None
        yield SentPacket(packet, preamble)
        start = end


def _unit(schema: Header, data: bytes, start: int) -> tuple[Record, int, int]:
    """Return a preamble, and the beginning and end of its packet."""
    size, left = unit_size(schema, data, start), len(data) - start
    if not size:
        raise MalformedPacket("the unit breaks off", path=f"{schema.name}.Length", offset=left)
    if size > left:
        why = f"{size}, but {counted(left, 'byte', 'are')} left"
        raise MalformedPacket(why, path=f"{schema.name}.Length", offset=left)
    preamble, head = schema.read(data, start)
    return preamble, head, start + size


def _parse(
    data: bytes, preamble: Header | None, call: Call | None, readings: Readings
) -> NcpRequest | NcpReply:
    kind = int.from_bytes(data[:2], "big")
    if kind in REQUEST_TYPES and preamble is not NCP_TCP_REPLY:
        return parse_request(data, readings)
    if kind in REPLY_TYPES and preamble is not NCP_TCP_REQUEST:
        return parse_reply(data, call=call, readings=readings)
    header, name = NCP_REQUEST_HEADER, "RequestType"
    types = REQUEST_TYPES if preamble is NCP_TCP_REQUEST else REQUEST_TYPES | REPLY_TYPES
    if preamble is NCP_TCP_REPLY:
        header, name, types = NCP_REPLY_HEADER, "ReplyType", REPLY_TYPES
    shown = ", ".join(f"{number:#06x}" for number in sorted(types))
    raise MalformedPacket(f"{data[:2].hex()} is none of {shown}", path=f"{header.name}.{name}", offset=0)


def from_json(data: Mapping[str, Any]) -> SentPacket:
    """Return the packet of such an object. Raises InvalidValue with the path."""
    kind = data.get("packet") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or not kind.endswith(_DIRECTIONS):
        raise InvalidValue("not the object of an NCP packet", path="packet")
    name, _, direction = kind.rpartition(" ")
    call = CALLS_BY_NAME.get(name)
    if call is None and name not in (_UNKNOWN, *_CONNECTION_TYPES):
        raise InvalidValue(f"{name!r} is not a call", path="packet")
    fields = _Fields(data.get("fields"))
    readings = Readings.of(fields.mapping("readings", data.get("readings", {})))
    preamble = NCP_TCP_REQUEST if direction == "request" else NCP_TCP_REPLY
    over_tcp = fields.take(preamble.name) if fields.has(preamble.name) else None
    packet = (_request if direction == "request" else _reply)(name, call, fields, readings)
    fields.end()
    if over_tcp is None:
        return SentPacket(packet)
    return SentPacket(packet, make_preamble(preamble, len(packet.to_bytes()), over_tcp))


class _Fields:
    """The structures of one object, each taken once; a wrong value raises InvalidValue with its path."""

    def __init__(self, data: Any) -> None:
        given = self.mapping("fields", data)
        self._left = {name: value for name, value in given.items() if name not in _TOLD}

    def mapping(self, path: str, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidValue("not an object", path=path)
        return value

    def has(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str) -> Mapping[str, Any]:
        return self.mapping(name, self._left.pop(name, {}))

    def take_one(self, layouts: tuple[Header, ...]) -> tuple[Header, Mapping[str, Any]]:
        """The layout that has fields, and the fields; without any the first layout."""
        layout = next((layout for layout in layouts if self.has(layout.key)), layouts[0])
        return layout, self.take(layout.key)

    def take_trailing(self) -> bytes:
        text = self._left.pop(_TRAILING, "")
        try:
            return bytes.fromhex(text)
        except (TypeError, ValueError):
            raise InvalidValue("not hex", path=_TRAILING) from None

    def end(self) -> None:
        for name in self._left:
            raise InvalidValue(f"the packet has no {name!r}", path=str(name) or "fields")


def _request(name: str, call: Call | None, fields: _Fields, readings: Readings) -> NcpRequest:
    schema, given = fields.take_one((NCP_REQUEST_HEADER, NCP_SHORT_DESTROY_HEADER))
    computed: dict[str, Any] = {"RequestType": _CONNECTION_TYPES.get(name, SERVICE_REQUEST)}
    if schema is NCP_REQUEST_HEADER:
        computed["FunctionCode"] = 0 if call is None else call.function
    header, data, trailing = schema.make({**computed, **given}), None, fields.take_trailing()
    size = len(trailing)
    if call is not None:
        layout, values = fields.take_one(call.requests)
        data = layout.make(values)
        size += len(data.to_bytes())
    subfunction = None
    if fields.has(NCP_SUBFUNCTION_HEADER.name) or (call is not None and call.has_subfunction):
        computed = {"StructureLength": size + 1, "SubFunctionCode": 0 if call is None else call.number}
        subfunction = NCP_SUBFUNCTION_HEADER.make({**computed, **fields.take(NCP_SUBFUNCTION_HEADER.name)})
    return NcpRequest(header, subfunction, call, data, trailing, readings)


def _reply(name: str, call: Call | None, fields: _Fields, readings: Readings) -> NcpReply:
    header = NCP_REPLY_HEADER.make(fields.take(NCP_REPLY_HEADER.name))
    data, trailing = None, fields.take_trailing()
    has_data = header.ReplyType == REPLY and not header.CompletionCode
    if call is not None and (has_data or any(fields.has(layout.key) for layout in call.replies)):
        layout, values = fields.take_one(call.replies)
        data = layout.make(values)
    kind = "" if name == _UNKNOWN else f"{name} request"
    return NcpReply(header, kind, call, data, trailing, readings)
