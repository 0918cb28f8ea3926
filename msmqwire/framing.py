"""Splitting a byte stream into packets, without I/O: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1.2.

PacketSize of a UserMessage does not count its SessionHeader, that of a stand-alone SessionAck does
(36 in [MS-MQQB] 4.1.8); `packet_length` handles both.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msmqwire.errors import MalformedPacket
from msmqwire.headers.base import (
    BASE_HEADER_SIZE,
    PACKET_SIZE_MAX,
    PACKET_SIZE_OFFSET,
    PREFIX_SIZE,
    SIGNATURE_BYTES,
    SIGNATURE_END,
    SIGNATURE_OFFSET,
    VERSION,
)
from msmqwire.names.printable import counted
from msmqwire.packets import packet_length


def begins_packet(data: bytes | bytearray) -> bool:
    """Return whether bytes could begin a packet, as far as they go. There must be at least one."""
    signature = SIGNATURE_BYTES[: max(0, len(data) - SIGNATURE_OFFSET)]
    if data[0] != VERSION or data[SIGNATURE_OFFSET:SIGNATURE_END] != signature:
        return False
    if len(data) < PREFIX_SIZE:
        return True
    try:
        packet_length(data)
    except MalformedPacket:
        return False
    return True


def find_header(data: bytes | bytearray, start: int = 0) -> int:
    """Return the next offset from `start` at which a packet could begin; -1 for none.

    A prefix truncated by the end of the bytes counts if its signature is complete.
    """
    at = data.find(SIGNATURE_BYTES, start + SIGNATURE_OFFSET)
    while at >= 0:
        header = at - SIGNATURE_OFFSET
        if begins_packet(data[header : header + PREFIX_SIZE]):
            return header
        at = data.find(SIGNATURE_BYTES, at + 1)
    return -1


def has_header(data: bytes) -> bool:
    """Whether bytes contain the prefix of a BaseHeader at any offset, not truncated."""
    return 0 <= find_header(data) <= len(data) - PREFIX_SIZE


def find_whole_packet(data: bytes | bytearray, start: int = 0) -> int:
    """Return the next offset from `start` at which a packet could begin that ends in the bytes; -1 for none.

    Of headers that claim more it does not look at each: there can be one every eight bytes.
    """
    fits = _sized_up_to(max(0, len(data) - start) >> 16)
    match = fits.search(data, start)
    while match:
        at = match.start()
        if begins_packet(data[at : at + PREFIX_SIZE]) and at + packet_length(data, at) <= len(data):
            return at
        match = fits.search(data, at + 1)
    return -1


@lru_cache(maxsize=64)
def _sized_up_to(high: int) -> re.Pattern[bytes]:
    """Return a pattern of BaseHeaders: version, signature, a PacketSize of at most `high` times 64 KiB."""
    between = SIGNATURE_OFFSET - 1, PACKET_SIZE_OFFSET - SIGNATURE_END + 2
    signature = re.escape(SIGNATURE_BYTES)
    return re.compile(
        rb"\x%02x.{%d}%b.{%d}[\0-\x%02x]\0" % (VERSION, between[0], signature, between[1], min(high, 0xFF)),
        re.DOTALL,
    )


def may_hide_packet(data: bytes) -> bool:
    """Return whether a packet could begin in bytes, even if only the start of its prefix is among them."""
    ends = range(max(0, len(data) - SIGNATURE_END + 1), len(data))
    return find_header(data) >= 0 or any(begins_packet(data[at:]) for at in ends)


class Framer:
    """Splits the bytes of one direction of a live session into packets, fed any number at a time.

    A header with an invalid version, signature or PacketSize ends the stream: no later packet can be
    found with certainty, and the session is to be closed.

    Attributes:
        error: the error that ended the stream, or None.
        expected: the length of the only packet that may come next, or None if it may be any. Nothing else is
            buffered then.
        offset: the bytes that the packets returned so far took.
    """

    def __init__(self, packet_size_max: int = PACKET_SIZE_MAX) -> None:
        """Start at the beginning of a stream; `packet_size_max` is the greatest accepted PacketSize."""
        self._packet_size_max = packet_size_max
        self._buffer = bytearray()
        self.error: MalformedPacket | None = None
        self.expected: int | None = None
        self.offset = 0

    @property
    def buffered(self) -> int:
        """The bytes buffered of an incomplete packet; never more than 4 MiB + 16."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the packets that these bytes complete.

        On a bad header the packets before it are returned and `error` is set; feeding more raises that
        error. PacketSize is checked before the rest of its packet is awaited.

        While a packet is `expected`, no more than that one is returned: the caller sets the kinds that may
        follow before it feeds again, if only an empty string.
        """
        if self.error is not None:
            raise self.error
        buffer = self._buffer
        buffer += data
        packets: list[bytes] = []
        start = 0
        try:
            while len(buffer) - start >= PREFIX_SIZE:
                length = packet_length(buffer, start, self._packet_size_max)
                if self.expected is not None and length != self.expected:
                    why = (
                        f"{counted(length, 'byte')} instead of the {self.expected} of the packet that is due"
                    )
                    raise MalformedPacket(why, path="BaseHeader.PacketSize", offset=PACKET_SIZE_OFFSET)
                end = start + length
                if end > len(buffer):  # MQMQ-2.2.20-01
                    break
                packets.append(bytes(buffer[start:end]))
                start = end
                if self.expected is not None:
                    break
        except MalformedPacket as exc:
            self.error = exc
        del buffer[:start]
        self.offset += start
        if self.error is not None:
            buffer.clear()
        return packets

    def discard(self) -> None:
        """Drop the buffered bytes: their connection is gone."""
        self._buffer.clear()

    def close(self) -> None:
        """End the stream. Raises MalformedPacket if it ends inside a packet."""
        if self._buffer and self.error is None:
            count = len(self._buffer)
            length = packet_length(self._buffer) if count >= PREFIX_SIZE else BASE_HEADER_SIZE
            why = f"the stream ends after {count} of {counted(length, 'byte')}"
            raise MalformedPacket(why, path="BaseHeader", offset=count)
