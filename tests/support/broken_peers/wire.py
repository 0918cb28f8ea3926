"""The bytes of the binary protocol, by `struct` alone: [MS-MQMQ] 2.2.18 to 2.2.20 and [MS-MQQB] 2.2."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

Makes = Callable[[str], bool]
"""Whether the peer makes a mistake."""

INFINITE = 0xFFFFFFFF
NULL_GUID = bytes(16)
PACKET_SIZE_MAX = 0x0040_0000
SIGNATURE = 0x524F494C
BASE = struct.Struct("<BBHLLL")
PING = struct.Struct("<HHL16s")
PING_SIGNATURE = 0x5548

IN, BASE_SH, DH = 0x0008, 0x0010, 0x0020
BASE_RESERVED = 0xFEC0
DM, JN, JP = 0x20, 0x100, 0x200
SH, TH, MP, CQ, MQ, AH, HH = 0x80000, 0x100000, 0x200000, 0x400000, 0x800000, 0x2000000, 0x10000000
USER_RESERVED = 0xED000080
PA, PR, NA, NR = 1, 2, 4, 8

ORDER_ACK, ACK_REACH_QUEUE, ACK_RECEIVE = 0x00FF, 0x0002, 0x4000
BAD_DST_Q, REACH_QUEUE_TIMEOUT, EXCEED_QUOTA, ACCESS_DENIED = 0x8000, 0x8002, 0x8003, 0x8004
HOP_COUNT_EXCEEDED, BAD_SIGNATURE, BAD_ENCRYPTION = 0x8005, 0x8006, 0x8007
NOT_TRANSACTIONAL_Q, NOT_TRANSACTIONAL_MSG, RECEIVE_TIMEOUT = 0x8009, 0x800A, 0xC002
INSECURE = {BAD_DST_Q, ACCESS_DENIED, BAD_SIGNATURE, BAD_ENCRYPTION}


class Malformed(Exception):
    """The session has to end: [MS-MQQB] 3.1.5.1.3."""


class Crash(Exception):
    """A fault that would kill a carelessly written peer."""


class Hang(Exception):
    """A fault that would keep the only thread of a peer busy forever."""


class SessionHeader(NamedTuple):
    """[MS-MQMQ] 2.2.20.4."""

    ack: int
    recoverable_ack: int
    recoverable_flags: int
    sent: int
    recoverable_sent: int
    window: int
    reserved: int = 0

    def pack(self) -> bytes:
        """Return its 16 bytes."""
        return struct.pack("<HHLHHHH", *self)


def read_session_header(data: bytes) -> SessionHeader:
    """Read the SessionHeader that a packet ends with."""
    return SessionHeader._make(struct.unpack("<HHLHHHH", data[-16:]))


class Reader:
    """Takes fields from the front of a packet, and none after its end."""

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data, self.offset = data, offset

    @property
    def left(self) -> int:
        """The bytes not taken yet."""
        return len(self.data) - self.offset

    def take(self, size: int) -> bytes:
        """Take bytes. Raises Malformed."""
        if size > self.left:
            raise Malformed(f"{size} bytes at {self.offset}, {self.left} are there")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def unpack(self, form: str) -> tuple[Any, ...]:
        """Take integers. Raises Malformed."""
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def u16(self) -> int:
        """Take a USHORT."""
        return int.from_bytes(self.take(2), "little")

    def u32(self) -> int:
        """Take a ULONG."""
        return int.from_bytes(self.take(4), "little")

    def align(self) -> None:
        """Go to a multiple of 4 bytes."""
        self.take(min(-self.offset % 4, self.left))


# -- packets that the peer sends --------------------------------------------------------------------------


def padded(data: bytes) -> bytes:
    """Fill up to a multiple of 4 bytes."""
    return data + bytes(-len(data) % 4)


def wide(text: str) -> bytes:
    """WCHARs with a null at the end."""
    return text.encode("utf-16-le") + b"\0\0"


def base(size: int, flags: int) -> bytes:
    """A BaseHeader."""
    return BASE.pack(0x10, 0, flags, SIGNATURE, size, INFINITE)


def internal(kind: int, content: bytes, *, flags: int = IN, refused: bool = False) -> bytes:
    """An internal packet: PT, and the bytes after the InternalHeader."""
    return base(20 + len(content), flags) + struct.pack("<HH", 0, kind | refused << 4) + content


def direct_name(text: str) -> bytes:
    """DirectQueueFormatName."""
    name = wide(text)
    return padded(struct.pack("<H", len(name)) + name)


class Name(NamedTuple):
    """A queue: `kind` is private, public or direct; `text` of a direct name has no DIRECT=."""

    kind: str
    guid: bytes = NULL_GUID
    number: int = 0
    text: str = ""


def destination_fields(name: Name) -> tuple[int, bytes, bytes]:
    """DQ, QueueManagerAddress and DestinationQueue."""
    if name.kind == "direct":
        return 7, NULL_GUID, direct_name(name.text)
    return 3, name.guid, struct.pack("<L", name.number)


def response_fields(name: Name | None) -> tuple[int, bytes]:
    """RQ and ResponseQueue."""
    if name is None:
        return 0, b""
    if name.kind == "direct":
        return 7, direct_name(name.text)
    if name.kind == "public":
        return 5, name.guid
    return 6, name.guid + struct.pack("<L", name.number)


def user_message(
    *,
    source: bytes,
    message_id: int,
    sent_time: int,
    to: Name,
    message_class: int,
    recoverable: bool,
    body: bytes,
    label: str = "",
    response: Name | None = None,
    correlation: bytes = bytes(20),
    priority: int = 3,
) -> bytes:
    """A message that the queue manager sends of its own: [MS-MQMQ] 2.2.20."""
    dq, address, destination = destination_fields(to)
    rq, response_queue = response_fields(response)
    flags = MP | dq << 10 | rq << 16 | (DM if recoverable else 0)
    user = struct.pack("<16s16sLLLL", source, address, INFINITE, sent_time, message_id, flags)
    text = wide(label) if label else b""
    size = len(body)
    properties = struct.pack(
        "<BBH20sLLLLLLLL",
        0,
        len(text) // 2,
        message_class,
        correlation,
        0,
        0,
        size,
        size,
        0,
        0x800E,
        0x6610,
        0,
    )
    headers = user + destination + response_queue + padded(properties + text + body)
    return base(16 + len(headers), priority) + headers
