"""The fields of a packet of NCP, each with the bytes that it stands in."""

from __future__ import annotations

from collections.abc import Iterator

from msmqwire.names.printable import counted
from msmqwire.ncp.ncp_packet import NcpPacket
from msmqwire.schema import Record
from msmqwire.schema.display import PlacedField
from msmqwire.schema.layout import layout
from msmqwire.schema.showing import placed_fields as _of_record


def placed_fields(packet: NcpPacket, raw: bytes) -> Iterator[PlacedField]:
    """Yield the fields of a packet whose bytes are given."""
    if packet.preamble is not None:
        yield from _of_record(packet.preamble)
    if isinstance(packet.packet, Record):
        yield from _of_record(packet.packet, packet.start)
        return
    at = packet.start
    for part in (packet.packet.header, getattr(packet.packet, "subfunction", None), packet.packet.data):
        if part is not None:
            yield from _of_record(part, at)
            at += sum(field.size for field in layout(part))
    if packet.packet.trailing:
        yield PlacedField(
            "TrailingData", at, len(packet.packet.trailing), counted(len(packet.packet.trailing), "byte")
        )
