"""The fields of a packet of any protocol, each with the bytes that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.protocols import protocol_of
from msmqwire.errors import MalformedPacket
from msmqwire.headers.base import FLAGS_OFFSET, INTERNAL_BIT, SIGNATURE_BYTES, SIGNATURE_END, SIGNATURE_OFFSET
from msmqwire.names.printable import counted, cut, safe
from msmqwire.packets import ESTABLISH_CONNECTION, USER_MESSAGE
from msmqwire.pgm import PgmPacket
from msmqwire.pgm.layouts import COMMON_HEADER, COMMON_HEADER_SIZE
from msmqwire.pgm.options import build_options
from msmqwire.pgm.packet_json import fields_to_json
from msmqwire.pgm.packets import NLAS, build_nla
from msmqwire.pgm.values import Opaque
from msmqwire.remote_read.rpc_packet import RpcPacket, section_offset
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.ndr import to_json as ndr_to_json
from msmqwire.schema import Header, Raw, Record, UInt
from msmqwire.schema.display import PlacedField
from msmqwire.schema.nodes import Maybe, Sub
from msmqwire.schema.showing import TEXT_MAX
from msmqwire.schema.showing import placed_fields as _of_record


def placed_fields(item: Item) -> Iterator[PlacedField]:
    """Yield the fields of an item; of a malformed one the field at which reading ended."""
    match item.packet:
        case None:
            if item.error is not None and item.raw:
                offset = min(item.error.offset or 0, len(item.raw) - 1)
                yield from _headers_before(item.raw, offset)
                why = cut(safe(item.error.why), TEXT_MAX)
                yield PlacedField(item.error.path or "(not read)", offset, len(item.raw) - offset, why)
        case PgmPacket() as packet:
            yield from _pgm(packet)
        case RpcPacket() as packet:
            yield from _rpc(packet)
        case Record() as record:
            yield from _of_record(record)
        case packet if (protocol := protocol_of(packet)) is not None:
            yield from resolve_name(protocol.placed_fields)(packet, item.raw)


def _headers_before(raw: bytes, end: int) -> Iterator[PlacedField]:
    """Yield the fields of a malformed session packet, up to the header in which reading ended."""
    if raw[SIGNATURE_OFFSET:SIGNATURE_END] != SIGNATURE_BYTES:
        return
    is_internal = raw[FLAGS_OFFSET] & INTERNAL_BIT
    parts = ESTABLISH_CONNECTION.parts[:2] if is_internal else USER_MESSAGE.parts
    read: dict[str, Record] = {}
    at = 0
    for part in parts:
        node = part.node if isinstance(part, Maybe) else part
        if not isinstance(node, Sub):
            return
        if isinstance(part, Maybe) and not _is_marked(read, part.when):
            continue
        try:
            record, stop = node.header.read(raw, at)
        except MalformedPacket:
            return
        yield from (field for field in _of_record(record, at) if field.offset + field.size <= end)
        read[node.name], at = record, stop


def _is_marked(read: dict[str, Record], when: Any) -> bool:
    """Return whether the flag that says that a part is there is set, in a header that was read."""
    header, _, path = str(when).partition(".")
    return header in read and bool(attrgetter(path)(read[header]))


def _rpc(packet: RpcPacket) -> Iterator[PlacedField]:
    """Yield the fields of the first PDU, and of its stub the parameters and the message in it."""
    pdu = packet.pdu
    end = 0
    for field in _of_record(pdu.record):
        end = field.offset + field.size
        if not (field.path.endswith("stub_data") and packet.places):
            yield field
    yield from _parameters(packet)
    if packet.message is not None and len(packet.parts) == 1:
        sections = packet.value.ppPacketSections
        start = section_offset(packet.stub, sections)
        stop = start + len(sections[0].pSectionBuffer or b"")
        yield from _of_record(packet.message.whole, packet.offset(start), packet.offset(stop))
    if pdu.sec_trailer is not None and packet.fragments == 1:
        if pdu.auth_padding:
            yield PlacedField(
                "auth_padding", end, len(pdu.auth_padding), counted(len(pdu.auth_padding), "byte")
            )
        yield from _of_record(pdu.sec_trailer, end + len(pdu.auth_padding))


def _parameters(packet: RpcPacket) -> Iterator[PlacedField]:
    if packet.procedure is None or packet.value is None:
        return
    is_request = packet.ptype == PduType.REQUEST
    values: Any = ndr_to_json(
        packet.procedure.request if is_request else packet.procedure.response, packet.value
    )
    places = sorted(packet.places.items(), key=lambda place: place[1])
    ends = [offset for _, offset in places[1:]] + [len(packet.stub)]
    for (name, offset), stop in zip(places, ends, strict=True):
        first = packet.offset(offset)
        size = packet.offset(max(offset, stop - 1)) + 1 - first  # a parameter may go on in the next fragment
        if size > 0 and stop > offset:
            yield PlacedField(name, first, size, cut(safe(str(values.get(name, ""))), TEXT_MAX))


def _size_of(header: Header, name: str) -> int:
    """Return the bytes of a field of fixed size."""
    part = header.part(name)
    assert isinstance(part, UInt | Raw)
    size = part.size if isinstance(part, UInt) else part.length
    assert isinstance(size, int)
    return size


def _pgm(packet: PgmPacket) -> Iterator[PlacedField]:
    values = fields_to_json(packet)
    at = 0
    for name in COMMON_HEADER.fields:
        size = _size_of(COMMON_HEADER, name)
        text = f"{values[name]} {values['TypeName'] or ''}".rstrip() if name == "Type" else str(values[name])
        yield PlacedField(name, at, size, text)
        at += size
    at = COMMON_HEADER_SIZE
    if isinstance(packet.body, Opaque):
        yield PlacedField("body", at, len(packet.body.content), counted(len(packet.body.content), "byte"))
        return
    for field in fields(packet.body):
        value = getattr(packet.body, field.name)
        size = len(build_nla(value)) if field.name in NLAS else _size_of(packet.body.layout, field.name)
        shown = str(value.Address) if field.name in NLAS else str(value)
        yield PlacedField(f"body.{field.name}", at, size, shown)
        at += size
    for option, shown in zip(packet.options, values["OptionExtensions"], strict=True):
        size = len(build_options((option,)))
        yield PlacedField(f"options.{shown['Name'] or shown['OptionType']}", at, size, _option_text(shown))
        at += size
    if packet.data:
        yield PlacedField("data", at, len(packet.data), counted(len(packet.data), "byte"))
        at += len(packet.data)
    if packet.trailing:
        yield PlacedField("TrailingData", at, len(packet.trailing), counted(len(packet.trailing), "byte"))


def _option_text(option: dict[str, Any]) -> str:
    left_out = ("OptionType", "Name", "E", "Reserved")
    return cut(
        ", ".join(f"{name} {value}" for name, value in option.items() if name not in left_out), TEXT_MAX
    )
