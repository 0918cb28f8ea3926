"""A received UserMessage, read from its bytes: [MS-MQMQ] 2.2.20."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import NamedTuple

from tests.support.broken_peers.wire import (
    AH,
    BASE,
    BASE_SH,
    CQ,
    DH,
    DM,
    HH,
    MP,
    MQ,
    SH,
    TH,
    USER_RESERVED,
    Crash,
    Hang,
    Makes,
    Malformed,
    Name,
    Reader,
    SessionHeader,
    read_session_header,
)

_ELEMENTS_MAX = 1 << 20
_PAGE = 4096
# The shape of a direct name; which characters a host or a queue may have is not looked at: [MS-MQMQ] 2.1.2.
_DIRECT = re.compile(r"(?i)(OS|TCP|SPX|IPX):[^\\\0]+\\(private\$\\|system\$;)?[^\\\0]+|https?://[^\0]+")


class Position(NamedTuple):
    """The place of a message in a transactional sequence; `sequence` is TimeStamp << 32 | Ordinal."""

    sequence: int
    number: int
    previous: int
    final_ack: bool = False


@dataclass(frozen=True)
class Message:
    """The parts of a UserMessage that the peer needs; `packet` leaves out the SessionHeader."""

    base_flags: int
    time_to_reach_queue: int
    source: bytes
    address: bytes
    time_to_be_received: int
    sent_time: int
    message_id: int
    flags: int
    destination: Name
    admin: Name | None
    tx: Position | None
    signed: bool
    encrypted: bool
    wants: int
    message_class: int
    label: str
    body: bytes
    session_header: SessionHeader | None

    @property
    def recoverable(self) -> bool:
        """Whether DM says so."""
        return bool(self.flags & DM)

    @property
    def hops(self) -> int:
        """RC."""
        return self.flags & 0x1F


def read_message(data: bytes, makes: Makes) -> Message:
    """Read a packet. Raises Malformed, and the exception that ends a peer with a mistake."""
    flags = BASE.unpack_from(data)[2]
    session_header = None
    if flags & BASE_SH and not makes("session_header_in_size"):
        session_header = read_session_header(data)
        data = data[:-16]
    reader = Reader(data, 16)
    source, address, received_in, sent, message_id, user = reader.unpack("<16s16sLLLL")
    if user & USER_RESERVED and makes("refuses_reserved_user_flags"):
        raise Malformed(f"UserHeader.Flags {user:#x}")
    if user & 0x60 > DM or not user & MP or (user & TH and not user & DM):
        raise Malformed(f"UserHeader.Flags {user:#x}")
    destination = _destination(reader, user >> 10 & 7, address, makes)
    admin = _admin(reader, user >> 13 & 7, source, address, makes)
    _skip_response(reader, user >> 16 & 7, makes)
    if user & CQ and not makes("connector_type_forgotten"):
        reader.take(16)
    tx = _transaction(reader, makes) if user & TH else None
    signed, encrypted = _security(reader, makes) if user & SH else (False, False)
    wants, message_class, label, body = _properties(reader, makes)
    if flags & DH:
        _debug(reader)
    if user & AH:
        _srmp(reader, makes)
    if user & HH:
        _soap(reader)
    if user & MQ:
        _multi_queue(reader, makes)
    return Message(
        flags, BASE.unpack_from(data)[5], source, address, received_in, sent, message_id, user, destination,
        admin, tx, signed, encrypted, wants, message_class, label, body, session_header,
    )  # fmt: skip


# -- queues -----------------------------------------------------------------------------------------------


def _direct(reader: Reader, makes: Makes) -> str:
    count = reader.u16()
    name = reader.take(count)
    reader.align()
    if name[-2:] != b"\0\0" and makes("crashes_without_null"):
        raise Crash("the end of a direct name is looked for behind the packet")
    if count < 2 or count % 2 or name[-2:] != b"\0\0":
        raise Malformed(f"Count {count} of a direct name")
    text = name.decode("utf-16-le", "surrogatepass").removesuffix("\0")
    if not _DIRECT.fullmatch(text):
        raise Malformed(f"{text!r:.99} is not a direct name")
    if not makes("crashes_on_a_long_name") or len(text) <= 255:
        return text
    raise Crash("a direct name is copied to 256 characters on the stack")


def _destination(reader: Reader, form: int, address: bytes, makes: Makes) -> Name:
    match form:
        case 3:
            return Name("private", address, reader.u32())
        case 5:
            return Name("public", reader.take(16))
        case 7:
            return Name("direct", text=_direct(reader, makes))
    if makes("illegal_queue_form"):
        return Name("none")
    raise Malformed(f"DQ {form}")


def _admin(reader: Reader, form: int, source: bytes, address: bytes, makes: Makes) -> Name | None:
    match form:
        case 0:
            return None
        case 2 | 3:
            return Name("private", source if form == 2 else address, reader.u32())
        case 5:
            return Name("public", reader.take(16))
        case 6:
            guid = reader.take(16)
            return Name("private", guid, reader.u32())
        case 7:
            return Name("direct", text=_direct(reader, makes))
    if makes("illegal_queue_form"):
        return None
    raise Malformed(f"AQ {form}")


def _skip_response(reader: Reader, form: int, makes: Makes) -> None:
    if form == 7:
        _direct(reader, makes)
    else:
        sizes = {5: 16, 6: 20, **dict.fromkeys((2, 3, 4, *[1] * makes("response_queue_1_has_bytes")), 4)}
        reader.take(sizes.get(form, 0))


# -- the other headers ------------------------------------------------------------------------------------


def _transaction(reader: Reader, makes: Makes) -> Position:
    flags, ordinal, time_stamp, number, previous = reader.unpack("<LLLLL")
    if flags & 1:
        reader.take(16)
    if not number and not makes("sequence_number_zero"):
        raise Malformed("TxSequenceNumber 0")
    sequence = time_stamp << 32 | ordinal
    if makes("sequence_by_ordinal"):
        sequence = ordinal << 32 | time_stamp
    return Position(sequence, number, previous, bool(flags & 2))


def _security(reader: Reader, makes: Makes) -> tuple[bool, bool]:
    """Whether a SecurityHeader has a signature and says that the body is encrypted."""
    flags, *sizes = reader.unpack("<HHHHLL")
    for size in sizes:
        if makes("sizes_wrap"):
            reader.take((size + 3 & 0xFFFFFFFF) // 4 * 4)  # in 32 bits: 0xFFFFFFFD and more become 0
        else:
            reader.take(size)
            reader.align()
    return bool(sizes[2]), bool(flags & 0x20)


def _properties(reader: Reader, makes: Makes) -> tuple[int, int, str, bytes]:
    fields = reader.unpack("<BBH20sLLLLLLLL")
    wants, label_length, message_class = fields[:3]
    size, allocated, extension_size = fields[6], fields[7], fields[11]
    if label_length > 250:
        if makes("label_overflows"):
            raise Crash("a label is copied to 250 characters on the stack")
        raise Malformed(f"LabelLength {label_length}")
    label = reader.take(2 * label_length).decode("utf-16-le", "replace").partition("\0")[0]
    if makes("aligns_the_body"):
        reader.align()
    reader.take(extension_size)
    if makes("body_as_it_comes") or (makes("body_a_byte_beyond") and size == reader.left + 1):
        body = reader.take(min(size, reader.left))
    else:
        body = reader.take(size)
        reader.take(max(allocated - size, 0))
    reader.align()
    return wants, message_class, label, body


def _debug(reader: Reader) -> None:
    kind = reader.u16() & 3
    reader.take(2)
    if kind == 1:
        reader.take(16)
    elif kind:
        raise Malformed(f"QT {kind}")


def _srmp(reader: Reader, makes: Makes) -> None:
    """SRMPEnvelopeHeader and CompoundMessageHeader: [MS-MQRR] 2.2.5.1.2."""
    reader.take(4)
    length = reader.u32()
    if makes("trusts_data_length"):
        if 2 * length > reader.left + _PAGE:
            raise Crash("DataLength leads to memory that is not there")
        reader.take(min(2 * length, reader.left))  # bytes after the packet are read as well
    else:
        whole = 2 * length <= reader.left and reader.data[: reader.offset + 2 * length].endswith(b"\0\0")
        in_bytes = length % 2 == 0 and reader.data[: reader.offset + length].endswith(b"\0\0")
        in_bytes = in_bytes and length <= reader.left and not whole
        reader.take(length if in_bytes else 2 * length)
    reader.align()
    if reader.left or not makes("trusts_data_length"):
        reader.take(4)
        size = reader.u32()
        reader.take(8)
        reader.take(size)
        reader.align()


def _soap(reader: Reader) -> None:
    reader.take(4)
    reader.take(2 * reader.u32())
    if reader.data[reader.offset + -reader.offset % 4 :][:2] == b"\x84\x03":
        reader.align()
    reader.take(4)
    reader.take(2 * reader.u32())
    reader.align()


def _multi_queue(reader: Reader, makes: Makes) -> None:
    """MultiQueueFormatHeader: [MS-MQMQ] 2.2.20.1."""
    for expected in (0x64, 0xC8, 0x12C):
        start = reader.offset
        size, header_id, _, count = reader.unpack("<LHHL")
        if size < 12 or header_id != expected:
            raise Malformed(f"HeaderSize {size}, HeaderID {header_id:#x}")
        inside = Reader(reader.data[: start + size], reader.offset)
        reader.take(size - 12)
        reader.align()
        if count > _ELEMENTS_MAX and makes("counts_elements"):
            raise Hang(f"{count} elements are cleared before the first is read")
        for _ in range(count):
            _element(inside, start)
    if reader.u16() != 0x15E:
        raise Malformed("ID of MQFSignatureHeader")
    reader.take(2)
    reader.take(reader.u32())
    reader.align()


def _element(inside: Reader, start: int) -> None:
    kind = inside.u16()
    if kind == 3:
        while inside.take(2) != b"\0\0":
            pass
        return
    size = {1: 16, 2: 20, 6: 16}.get(kind)
    if size is None:
        raise Malformed(f"FormatType {kind}")
    inside.take(-(inside.offset - start) % 4)
    inside.take(size)


def correlation(message: Message) -> bytes:
    """The MessageIdentifier of a message: [MS-MQMQ] 2.2.18.1.3."""
    return message.source + struct.pack("<L", message.message_id)
