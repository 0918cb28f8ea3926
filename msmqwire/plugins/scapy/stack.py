"""A stack of layers as one packet: its kind, its completed bytes, and the layers of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scapy.config import conf
from scapy.fields import RawVal
from scapy.packet import NoPayload
from scapy.packet import Packet as ScapyPacket

from msmqwire.errors import MalformedPacket
from msmqwire.headers import BASE_HEADER, INTERNAL_HEADER, SESSION_HEADER, USER_HEADER
from msmqwire.headers.acknowledgements import ACK_LABEL
from msmqwire.headers.base import BASE_HEADER_SIZE
from msmqwire.headers.internal import PT_MASK, PT_OFFSET
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    REMOTE_READ_MESSAGE,
    SESSION_ACK,
    USER_MESSAGE,
    parse,
)
from msmqwire.plugins.scapy.structure import Structure, given_fields, of_record, partial, with_raw_values
from msmqwire.schema import (
    MORE,
    Align,
    Close,
    Fill,
    Flags,
    Guid,
    Maybe,
    Packet,
    Part,
    Raw,
    Record,
    Sub,
    UInt,
    View,
)

_KINDS: Final = (ESTABLISH_CONNECTION, CONNECTION_PARAMETERS, SESSION_ACK, USER_MESSAGE, REMOTE_READ_MESSAGE)
_KIND: Final = "InternalHeader.Flags.PT"
_BODIES: Final = {
    part.header.key: schema
    for schema in (ORDER_ACK, FINAL_ACK)
    for part in schema.parts
    if isinstance(part, View)
}


class Stack:
    """The layers of one packet: a BaseHeader and the headers after it, up to the next packet.

    Attributes:
        layers: the headers, and raw bytes among them.
        rest: the payload after them: another packet, padding, or none.
        schema: the schema of the packet; None if they are not a packet.
    """

    def __init__(self, base: Structure) -> None:
        self.layers: list[ScapyPacket] = [base]
        self.rest: ScapyPacket = base.payload
        while isinstance(self.rest, Structure | conf.raw_layer) and not isinstance(
            self.rest, type(base) | conf.padding_layer
        ):
            self.layers.append(self.rest)
            self.rest = self.rest.payload
        if self.rest and not isinstance(self.rest, type(base) | conf.padding_layer):
            self.layers.append(conf.raw_layer(self.rest.do_build()))  # another protocol inside the packet
            self.rest = NoPayload()
        self.schema = self._schema()

    def _schema(self) -> Packet | None:
        schema = next((schema for schema in _KINDS if self._is(schema)), None)
        if schema is USER_MESSAGE:
            return _BODIES.get(self._body_key(), schema)
        return schema

    def _is(self, schema: Packet) -> bool:
        """Whether the layers are the parts of a packet, in order, without optional ones if need be."""
        waiting = list(self.layers)
        for part in schema.parts:
            fits = bool(waiting) and _holds(part, waiting[0])
            if fits:
                waiting.pop(0)
            elif isinstance(part, Sub):
                return False
        return not waiting

    def _body_key(self) -> str:
        for layer in self.layers:
            body = layer.fields.get("MessageBody") if isinstance(layer, Structure) else None
            if isinstance(body, Structure):
                return body.schema.key
        return ""

    def build(self) -> bytes:
        """Return the bytes of the packet. Raises InvalidValue."""
        values = [partial(layer) if isinstance(layer, Structure) else layer.load for layer in self.layers]
        if self.schema is None or all(map(_is_complete, self.layers)):
            return b"".join(map(_bytes_of, self.layers, _apart(values)))
        by_part = self._by_part(self.schema, values)
        packet = self.schema.make(by_part)
        if not any(isinstance(value, RawVal) for layer in self.layers for value in layer.fields.values()):
            data: bytes = packet.to_bytes()
            return data
        return b"".join(map(_bytes_of, self.layers, [packet[name] for name in by_part]))

    def _by_part(self, schema: Packet, values: list[Any]) -> dict[str, Any]:
        """The values under the names of the parts of a packet."""
        waiting = list(zip(self.layers, values, strict=True))
        return {
            part.name: waiting.pop(0)[1] for part in schema.parts if waiting and _holds(part, waiting[0][0])
        }


def _bytes_of(layer: ScapyPacket, value: Any) -> bytes:
    """The bytes of a header from its complete record, or raw bytes."""
    return with_raw_values(layer, value) if isinstance(layer, Structure) else bytes(value)


def _apart(values: list[Any]) -> list[Any]:
    """Complete headers that are not a packet, or leave nothing to compute.

    Presence bits are set in the announcing headers, and PacketSize counts all.
    """
    base, own = values[0], {value.schema.name for value in values if isinstance(value, Record)}
    if INTERNAL_HEADER.name in own:
        _announce(values, "BaseHeader.Flags.IN")
    for part in REMOTE_READ_MESSAGE.parts:
        if isinstance(part, Maybe) and part.name in own and isinstance(part.when, str):
            _announce(values, part.when)
    complete = [value.schema.make(value) if isinstance(value, Record) else value for value in values]
    if base.get("PacketSize") is None:
        uncounted = SESSION_HEADER.name if USER_HEADER.name in own else ""
        sizes = [
            len(value.to_bytes() if isinstance(value, Record) else value)
            for value in complete
            if not (isinstance(value, Record) and value.schema.name == uncounted)
        ]
        complete[0] = complete[0].replace(PacketSize=sum(sizes))
    return complete


def _announce(values: list[Any], path: str) -> None:
    """Set a bit of a header, if it is there and the bit was left out."""
    header, word, bit = path.split(".")
    for value in values:
        if isinstance(value, Record) and value.schema.name == header:
            bits = value.get(word, {})
            bits.setdefault(bit, 1)
            setattr(value, word, bits)


def _is_complete(layer: ScapyPacket) -> bool:
    """Whether all fields of a layer are set, as after dissecting, so that nothing is computed."""
    if not isinstance(layer, Structure):
        return True
    given = given_fields(layer)
    for part in layer.schema.parts:
        names = [bits.name for bits in part.parts] if isinstance(part, Flags) else [part.name]
        may_be_none = not isinstance(part, Flags | UInt | Guid | Raw | Align | Fill)
        if any(name not in given or (given[name] is None and not may_be_none) for name in names):
            return False
    return True


def _holds(part: Part, layer: ScapyPacket) -> bool:
    if isinstance(part, Raw):
        return isinstance(layer, conf.raw_layer)
    node = part.node if isinstance(part, Maybe) else part
    return isinstance(node, Sub) and isinstance(layer, Structure) and layer.schema is node.header


def layers_of(base: Record, data: bytes, length: int) -> Iterator[ScapyPacket]:
    """Yield the layers after a BaseHeader in the bytes of its packet; other bytes are raw.

    Args:
        base: the BaseHeader.
        data: all available bytes from the BaseHeader on.
        length: the end of the packet, its SessionHeader included.
    """
    end, at = min(base.PacketSize, len(data)), BASE_HEADER_SIZE
    values: dict[str, Any] = {BASE_HEADER.name: base}
    for part in _parts(base, data):
        if isinstance(part, Close):
            end = min(length, len(data))
        elif isinstance(part, Raw):
            if at < end:
                yield conf.raw_layer(data[at:end], _internal=1)
            at = max(at, end)
        elif not isinstance(part, Maybe) or (_is_announced(part, values)):
            node = part.node if isinstance(part, Maybe) else part
            assert isinstance(node, Sub)
            try:
                values[part.name], at = node.header.read(data[:end], at)
            except MalformedPacket:
                break
            yield of_record(values[part.name])
    if at < min(length, len(data)):
        yield conf.raw_layer(data[at:length], _internal=1)


def _is_announced(part: Maybe, values: Mapping[str, Record]) -> bool:
    """Whether the presence bit of a header is set."""
    if not isinstance(part.when, str):
        return False
    header, word, bit = part.when.split(".")
    return header in values and bool(getattr(values[header][word], bit))


def _parts(base: Record, data: bytes) -> tuple[Part, ...]:
    """The parts that follow a BaseHeader."""
    if not base.Flags.IN:
        return USER_MESSAGE.parts[1:]
    kind = data[PT_OFFSET] & PT_MASK if len(data) > PT_OFFSET else 0
    schema = next((s for s in _KINDS if s.defaults.get(_KIND) == kind), None)
    return SESSION_ACK.parts[1:2] if schema is None else schema.parts[1:]


def extension_layers(data: bytes) -> Iterator[ScapyPacket]:
    """Yield the headers after a message for a remote reader: [MS-MQRR] 2.2.5.2 to 2.2.5.5."""
    values: dict[str, Any] = {}
    at = 0
    for part in REMOTE_READ_MESSAGE.parts[len(USER_MESSAGE.parts) :]:
        assert isinstance(part, Maybe)
        if part.when is not MORE and not _is_announced(part, values):
            continue
        assert isinstance(part.node, Sub)
        try:
            values[part.name], at = part.node.header.read(data, at)
        except MalformedPacket:
            break
        yield of_record(values[part.name])
    if at < len(data):
        yield conf.raw_layer(data[at:], _internal=1)


def acknowledgement_body(properties: Record, data: bytes) -> Structure | None:
    """Return the body of an OrderAck or FinalAck as a layer; None for any other message."""
    if properties.Label != ACK_LABEL:
        return None
    try:
        packet = parse(data)
    except MalformedPacket:
        return None
    view = next((part for part in packet.schema.parts if isinstance(part, View)), None)
    return None if view is None else of_record(packet[view.name])
