"""Sections: the cutting of a message packet for an answer, and its reassembly: [MS-MQRR] 2.2.6 and 3.1.4.7.

A binary message is cut in the body of its MessagePropertiesHeader, an SRMP message in its
CompoundMessageHeader. The first section then ends with the last byte of these that is sent, without padding,
and the second begins after the header that was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msmqwire.errors import MalformedPacket
from msmqwire.headers import (
    BASE_HEADER,
    COMPOUND_MESSAGE_HEADER,
    DEBUG_HEADER,
    MESSAGE_PROPERTIES_HEADER,
    SECURITY_HEADER,
    SRMP_ENVELOPE_HEADER,
    TRANSACTION_HEADER,
    USER_HEADER,
)
from msmqwire.headers.base import BASE_HEADER_SIZE, PACKET_SIZE_OFFSET
from msmqwire.names.printable import agreed, agreeing, counted
from msmqwire.packets import USER_MESSAGE, packet_length
from msmqwire.remote_read.constants import SectionType
from msmqwire.remote_read.message_packet import (
    MessageState,
    read_message_packet,
    state_of,
    time_to_reach_queue,
)
from msmqwire.remote_read.procedures import SECTION_BUFFER
from msmqwire.schema import Header, Record, field_offset, least_size

FULL: Final = (SectionType.stFullPacket,)
BINARY: Final = (SectionType.stBinaryFirstSection, SectionType.stBinarySecondSection)
SRMP: Final = (SectionType.stSrmpFirstSection, SectionType.stSrmpSecondSection)
_ORDERS: Final = (FULL, BINARY[:1], BINARY, SRMP[:1], SRMP)

_LABEL_LENGTH: Final = field_offset(MESSAGE_PROPERTIES_HEADER, "LabelLength")
_MESSAGE_SIZE: Final = field_offset(MESSAGE_PROPERTIES_HEADER, "MessageSize")
_ALLOCATION: Final = field_offset(MESSAGE_PROPERTIES_HEADER, "AllocationBodySize")
_EXTENSION_SIZE: Final = field_offset(MESSAGE_PROPERTIES_HEADER, "ExtensionSize")
_PROPERTIES_SIZE: Final = least_size(MESSAGE_PROPERTIES_HEADER)
_HTTP_BODY_SIZE: Final = field_offset(COMPOUND_MESSAGE_HEADER, "HTTPBodySize")
_COMPOUND_SIZE: Final = least_size(COMPOUND_MESSAGE_HEADER)


def sections_of(packet: bytes, max_body_size: int, max_compound_message_size: int) -> tuple[Any, ...]:
    """Return the SectionBuffers of a message packet, cut if it has to be: [MS-MQRR] 3.1.4.7.

    Args:
        packet: the message packet, from `message_packet`.
        max_body_size: the most bytes of the body of a binary message that are asked for.
        max_compound_message_size: the most bytes of the CompoundMessageHeader of an SRMP message.

    Raises MalformedPacket for bytes that are not a message packet.
    """
    place = _place(packet)
    record, end = place.header.read(packet, place.start)
    if place.srmp:
        # MQRR-3.1.4.7-25, MQRR-3.1.4.7-26, MQRR-3.1.4.7-31, MQRR-3.1.4.13-20
        # MQRR-3.1.1.4-01, MQRR-3.1.4.13-17
        types, size, most = SRMP, _COMPOUND_SIZE + record.HTTPBodySize, max_compound_message_size
    else:
        # MQRR-3.1.4.7-24, MQRR-3.1.4.7-26, MQRR-3.1.4.7-31, MQRR-3.1.4.13-20
        types, size, most = BINARY, record.MessageSize, max_body_size  # MQRR-3.1.1.4-01, MQRR-3.1.4.13-17
    if most >= size:  # MQRR-3.1.4.7-32, MQRR-3.1.4.13-21, MQRR-2.2.7-02
        return (full_section(packet),)
    # MQRR-3.1.4.7-33, MQRR-3.1.4.7-34, MQRR-3.1.4.13-22, MQRR-3.1.4.13-23, MQRR-2.2.7-03, MQRR-2.2.7-05
    first = _section(types[0], packet[: place.cut + most], place.cut + size)
    # MQRR-3.1.4.7-35, MQRR-3.1.4.7-36, MQRR-3.1.4.13-24, MQRR-3.1.4.13-25, MQRR-2.2.7-04, MQRR-2.2.7-06
    return (first, _section(types[1], packet[end:])) if end < len(packet) else (first,)


def full_section(packet: bytes) -> Any:
    """Return the SectionBuffer of a message packet that is not cut."""
    return _section(kind=SectionType.stFullPacket, data=packet)  # MQRR-2.2.7-02


def _section(kind: SectionType, data: bytes, alloc: int | None = None) -> Any:
    return SECTION_BUFFER.value(
        SectionBufferType=int(kind),
        SectionSizeAlloc=len(data) if alloc is None else alloc,
        SectionSize=len(data),
        pSectionBuffer=data,  # MQRR-2.2.7-02
    )


class _Place(NamedTuple):
    """The cut of a message packet: in `header`, from `start`, at or after `cut`."""

    srmp: bool
    header: Header
    start: int
    cut: int


def _place(data: bytes) -> _Place:
    """Find it in a packet that is whole at least up to there. Raises MalformedPacket."""
    base, at = BASE_HEADER.read(data)
    packet_length(data)
    user, at = USER_HEADER.read(data, at)
    if user.Flags.TH:
        _, at = TRANSACTION_HEADER.read(data, at)
    if user.Flags.SH:
        _, at = SECURITY_HEADER.read(data, at)
    if not user.Flags.AH:
        return _Place(False, MESSAGE_PROPERTIES_HEADER, at, _body(data, at))  # MQRR-3.1.1.4-02
    _, at = MESSAGE_PROPERTIES_HEADER.read(data, at)
    if base.Flags.DH:
        _, at = DEBUG_HEADER.read(data, at)
    _, at = SRMP_ENVELOPE_HEADER.read(data, at)
    return _Place(True, COMPOUND_MESSAGE_HEADER, at, at)  # MQRR-3.1.1.4-02


def _body(data: bytes, start: int) -> int:
    """Return where the body begins in the MessagePropertiesHeader at `start`."""
    if len(data) < start + _PROPERTIES_SIZE:
        MESSAGE_PROPERTIES_HEADER.read(data, start)
    # MQRR-3.1.1.4-02
    at = start + _PROPERTIES_SIZE + 2 * data[start + _LABEL_LENGTH] + _uint32(data, start + _EXTENSION_SIZE)
    if at > len(data):
        MESSAGE_PROPERTIES_HEADER.read(data, start)
    return at


def _uint32(data: bytes | bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _set_uint32(data: bytearray, at: int, value: int) -> None:
    data[at : at + 4] = value.to_bytes(4, "little")


# -- reading -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message as a remote reader has got it.

    Attributes:
        whole: the message packet, a RemoteReadMessage, cut as it came.
        data: its bytes.
        state: further facts that the server sent about it.
        body: the body as far as it came.
        body_size: bytes of the whole body. 0 for an SRMP message whose CompoundMessageHeader was cut before
            its size.
        cut: whether not everything came.
        time_to_reach_queue: seconds after SentTime, 0xFFFFFFFF for any.
    """

    whole: Record
    data: bytes
    state: MessageState
    body: bytes
    body_size: int
    cut: bool
    time_to_reach_queue: int

    @property
    def packet(self) -> Record:
        """Its UserMessage; TimeToReachQueue is the time of expiry, and no size counts the bytes cut off."""
        return USER_MESSAGE.record(**{name: self.whole[name] for name in USER_MESSAGE.fields})


def message_of(sections: Sequence[Any] | None) -> ReadMessage:
    """Return the message in the sections of an answer, its ppPacketSections. Raises MalformedPacket."""
    sections = sections or ()
    types = tuple(section.SectionBufferType for section in sections)
    if types not in _ORDERS:  # MQRR-2.2.6-05
        raise MalformedPacket(f"sections of the types {types!r:.100}", path="ppPacketSections")
    buffers = [_buffer(number, section) for number, section in enumerate(sections)]
    missing, size = 0, None
    data = buffers[0]
    if types != FULL:
        trailers = buffers[1] if len(buffers) > 1 else b""
        data, size, missing = _joined(data, sections[0].SectionSizeAlloc, trailers, types[0] == SRMP[0])
    packet = read_message_packet(data)
    state = state_of(packet)
    properties, compound = packet.MessagePropertiesHeader, packet.CompoundMessageHeader
    body = properties.MessageBody
    if compound is None:
        body_size = len(body) if size is None else size
    elif body:
        body_size = len(body)
    else:
        body = compound.Data[compound.MsgBodyOffset : compound.MsgBodyOffset + compound.MsgBodySize]
        body_size = compound.MsgBodySize
    relative = time_to_reach_queue(packet.UserHeader.SentTime, packet.BaseHeader.TimeToReachQueue)
    return ReadMessage(packet, data, state, body, body_size, missing > 0, relative)


def _buffer(number: int, section: Any) -> bytes:
    """Return the bytes of a section whose sizes go together: MQRR-2.2.6-07 to -10."""
    path, data = f"ppPacketSections[{number}]", section.pSectionBuffer or b""
    if section.SectionSize != len(data):
        why = f"{counted(section.SectionSize, 'byte', 'are')} announced, {agreed(len(data), 'are')} there"
        raise MalformedPacket(why, path=f"{path}.SectionSize", requirement="MQRR-2.2.6-09")
    first = section.SectionBufferType in (BINARY[0], SRMP[0])
    if section.SectionSizeAlloc < len(data) or not (first or section.SectionSizeAlloc == len(data)):
        why = f"{section.SectionSizeAlloc} does not go with {counted(len(data), 'byte')}"
        requirement = "MQRR-2.2.6-08" if first else "MQRR-2.2.6-07"
        raise MalformedPacket(why, path=f"{path}.SectionSizeAlloc", requirement=requirement)
    return bytes(data)


def _joined(first: bytes, alloc: int, trailers: bytes, srmp: bool) -> tuple[bytes, int, int]:
    """Return a cut packet without its missing bytes, the size of the part that was cut, and the number of
    bytes missing.

    Its sizes are those of the bytes there, so that nothing has to be allocated for the rest.
    """
    place = _place(first)
    if place.srmp != srmp:
        why = f"the AH bit is {place.srmp}"
        raise MalformedPacket(why, path="ppPacketSections[0].SectionBufferType", requirement="MQRR-2.2.7-01")
    packet, present = bytearray(first), len(first) - place.cut  # MQRR-3.1.4.7-57
    gap = alloc - len(first)
    if not srmp:
        size = _uint32(first, place.start + _MESSAGE_SIZE)
        room = max(size, _uint32(first, place.start + _ALLOCATION))
    elif present >= _COMPOUND_SIZE:
        size = room = _COMPOUND_SIZE + _uint32(first, place.start + _HTTP_BODY_SIZE)
    else:
        size = room = present + gap
    whole_end = _aligned(place.start, place.cut + room)
    missing = max(0, size - present)
    # A peer may count the padding of the header that it cut, or leave it out.
    if not missing <= gap <= whole_end - len(first):
        gone = f"{missing:,} of {size:,} {agreeing(missing, 'are')}"
        why = f"{counted(gap, 'byte', 'were')} cut off, {gone} missing"
        raise MalformedPacket(why, path="ppPacketSections[0].SectionSizeAlloc", requirement="MQRR-2.2.6-06")
    del packet[place.cut + size :]
    if srmp:
        packet += bytes(max(0, _COMPOUND_SIZE - present))
        _set_uint32(packet, place.start + _HTTP_BODY_SIZE, len(packet) - place.cut - _COMPOUND_SIZE)
    else:
        _set_uint32(packet, place.start + _MESSAGE_SIZE, len(packet) - place.cut)
        _set_uint32(packet, place.start + _ALLOCATION, len(packet) - place.cut)
    packet += bytes(_aligned(place.start, len(packet)) - len(packet))
    told = _uint32(first, PACKET_SIZE_OFFSET) - whole_end + len(packet)
    if told < BASE_HEADER_SIZE:
        missing = whole_end - len(packet)
        why = f"{counted(missing, 'byte')} of the packet {agreeing(missing, 'are')} missing"
        raise MalformedPacket(why, path="BaseHeader.PacketSize", offset=PACKET_SIZE_OFFSET)
    _set_uint32(packet, PACKET_SIZE_OFFSET, told)
    return bytes(packet) + trailers, size, missing  # MQRR-2.2.6-11


def _aligned(start: int, end: int) -> int:
    return end + -(end - start) % 4
