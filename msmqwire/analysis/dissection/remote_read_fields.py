"""The fields of a call or an answer of RemoteRead, each with the bytes that it stands in."""

from __future__ import annotations

from collections.abc import Iterator

from msmqwire.analysis.dissection.rpc_fields import fields_with
from msmqwire.remote_read.remote_read_packet import RemoteReadPacket, section_offset
from msmqwire.schema.display import PlacedField
from msmqwire.schema.showing import placed_fields as _of_record


def placed_fields(packet: RemoteReadPacket, _raw: bytes) -> Iterator[PlacedField]:
    """Yield the fields of the first PDU, and of its stub the parameters and the message in it."""
    return fields_with(packet, _message(packet))


def _message(packet: RemoteReadPacket) -> Iterator[PlacedField]:
    if packet.message is not None and len(packet.parts) == 1:
        sections = packet.value.ppPacketSections
        start = section_offset(packet.stub, sections)
        stop = start + len(sections[0].pSectionBuffer or b"")
        yield from _of_record(packet.message.whole, packet.offset(start), packet.offset(stop))
