"""Finder of the PDUs of DCE/RPC in one direction of a captured connection.

Every byte is accounted for: it is in a PDU, in a malformed one, or skipped with a reason. A PDU whose length
can be believed is followed by the next one, whatever else is wrong with it. Otherwise, and in the middle of a
stream, the next PDU is the next common header.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.dissection.frame_ranges import SegmentRange, completed, take_frames
from msmqwire.errors import MalformedPacket
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.rpc.constants import FRAGMENT_SIZE, PduType
from msmqwire.rpc.pdu import PTYPE_OFFSET, Pdu, parse_header, parse_pdu, wrong_header
from msmqwire.rpc.pdus import COMMON_HEADER, COMMON_HEADER_SIZE, LITTLE_ENDIAN

BEGINS_INSIDE: Final = "the capture begins inside the stream"
"""Why the bytes before the first PDU are skipped."""
MALFORMED_MAX: Final = 1 << 16
"""Bytes of a malformed PDU without a length, about; what follows them is skipped."""

_INTERFACE: Final = INTERFACE.uuid.bytes_le
_BIND_MAX: Final = FRAGMENT_SIZE  # bytes in which the interface is looked for
_PROPOSING: Final = (PduType.BIND, PduType.ALTER_CONTEXT)
_DREP: Final = LITTLE_ENDIAN.to_bytes(4, "little")
_TYPES: Final = b"".join(re.escape(bytes([kind])) for kind in PduType)
_HEADER: Final = re.compile(rb"\x05[\0\1][" + _TYPES + rb"]." + re.escape(_DREP), re.DOTALL)
_HEADER_START: Final = 8  # bytes that the expression matches


@dataclass(frozen=True, slots=True)
class RpcRange:
    """A range of the direction: a PDU, a malformed one or skipped bytes.

    Attributes:
        data: its bytes; empty for skipped ones.
        size: its length in bytes.
        pdu: the PDU, or None.
        error: why a malformed one can't be parsed, or None.
        reason: why bytes were skipped; empty for PDUs.
        frames: the numbers of the frames that carry it, in order.
        time_ns: when the last of them was captured.
        cut: whether the rest of a malformed PDU is missing from the capture.
    """

    data: bytes
    size: int
    pdu: Pdu | None
    error: MalformedPacket | None
    reason: str
    frames: tuple[int, ...]
    time_ns: int
    cut: bool = False


def may_begin_pdu(data: bytes) -> bool:
    """Return whether bytes begin like a PDU, as far as they reach."""
    if len(data) < _HEADER_START:
        return data[:1] == b"\5"[: len(data)] and (len(data) < 2 or data[1] < 2)
    if _HEADER.match(data) is None:
        return False
    try:
        if len(data) >= COMMON_HEADER_SIZE:
            parse_header(data[:COMMON_HEADER_SIZE])
    except MalformedPacket:
        return False
    return True


def begins_pdu(data: bytes) -> bool | None:
    """Return whether bytes begin with a PDU; None if they are too few to tell."""
    if not may_begin_pdu(data):
        return False
    return True if len(data) >= COMMON_HEADER_SIZE else None


def begins_bind(data: bytes) -> bool | None:
    """Return whether bytes begin with a PDU that proposes the RemoteRead interface; None if that is open."""
    if not may_begin_pdu(data) or (len(data) > PTYPE_OFFSET and data[PTYPE_OFFSET] not in _PROPOSING):
        return False
    if len(data) < COMMON_HEADER_SIZE:
        return None
    size = min(int(parse_header(data).frag_length), _BIND_MAX)
    if data.find(_INTERFACE, COMMON_HEADER_SIZE, size) >= 0:
        return True
    return None if len(data) < size else False


class RpcFinder:
    """Finds the PDUs of one direction, fed with its bytes and gaps in order.

    The ranges that a call yields are all to be taken before the next call. No more is buffered than a PDU, or
    `MALFORMED_MAX` bytes.
    """

    __slots__ = ("_buffer", "_error", "_searched", "_segments", "_start", "_sync_loss")

    def __init__(self, *, midstream: bool = False) -> None:
        self._buffer = bytearray()
        self._start = 0  # offset of the buffer in the stream
        self._segments: deque[SegmentRange] = deque()
        self._error: MalformedPacket | None = None  # of the PDU at the start, whose end is searched
        self._sync_loss = BEGINS_INSIDE if midstream else ""  # empty in sync
        self._searched = 0  # no header begins before this offset in the buffer

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory buffered."""
        return len(self._buffer) + SEGMENT_COST * len(self._segments)

    def feed(self, data: bytes, frame: int, time_ns: int) -> Iterator[RpcRange]:
        """Feed the next bytes of the direction, from one frame captured at ``time_ns``."""
        start = self._start + len(self._buffer)
        self._buffer += data
        self._segments.append(SegmentRange(start, start + len(data), frame, time_ns))
        return self._scan()

    def gap(self) -> Iterator[RpcRange]:
        """Report that bytes are lost here."""
        yield from self._break_off(cut=True)
        self._sync_loss = "after a hole in the stream"

    def end(self, *, cut: bool = False) -> Iterator[RpcRange]:
        """End the direction; `cut` if only its capture ended."""
        return self._break_off(cut=cut)

    def discard(self) -> Iterator[RpcRange]:
        """Skip the buffered bytes to free memory."""
        if self._buffer:
            self._error = None
            yield self._skip(len(self._buffer), "let go, as too much is held of messages that are not whole")
            self._sync_loss = "after bytes that were let go"

    def _scan(self) -> Iterator[RpcRange]:
        while self._buffer:
            if self._error is None and not self._sync_loss:
                if len(self._buffer) < COMMON_HEADER_SIZE:
                    return
                length, error = self._length()
                if not length:
                    self._error, self._searched = error, 1
                    continue
                if length > len(self._buffer):
                    return
                yield self._take(length)
                continue
            at = self._search()
            size = self._searched if at < 0 else at
            if self._error is None:
                if size:
                    yield self._skip(size, self._sync_loss)
            elif at >= 0 or size > MALFORMED_MAX:
                yield self._malformed(size, self._error)
                if at < 0:
                    self._sync_loss = "after a PDU that can't be framed"
            if at < 0:
                return
            self._sync_loss = ""

    def _length(self) -> tuple[int, MalformedPacket | None]:
        """Return the length of the PDU at the start; 0 and the error if it can't be believed."""
        head = bytes(self._buffer[:COMMON_HEADER_SIZE])
        try:
            return int(parse_header(head).frag_length), None
        except MalformedPacket as exc:
            error = exc.detached()
        try:
            length = int(COMMON_HEADER.parse(head)["frag_length"])
        except MalformedPacket:
            return 0, error
        # Version and data representation are right, so that the length is where it should be.
        return (length, None) if length >= COMMON_HEADER_SIZE else (0, error)

    def _search(self) -> int:
        """Return where in the buffer the next common header begins; -1 if none does in what is there."""
        buffer = self._buffer
        while (found := _HEADER.search(buffer, self._searched)) is not None:
            at = found.start()
            if len(buffer) - at < COMMON_HEADER_SIZE:
                self._searched = at
                return -1
            try:
                parse_header(buffer[at : at + COMMON_HEADER_SIZE])
            except MalformedPacket:
                self._searched = at + 1
                continue
            return at
        self._searched = max(self._searched, len(buffer) - _HEADER_START + 1)
        return -1

    # -- ranges -------------------------------------------------------------------------------------

    def _take(self, length: int) -> RpcRange:
        data, frames = self._consume(length)
        try:
            return RpcRange(data, length, parse_pdu(data), None, "", *completed(frames))
        except MalformedPacket as exc:
            return RpcRange(data, length, None, exc.detached(), "", *completed(frames))

    def _malformed(self, size: int, error: MalformedPacket, *, cut: bool = False) -> RpcRange:
        self._error = None
        data, frames = self._consume(size)
        return RpcRange(data, size, None, error.detached(), "", *completed(frames), cut)

    def _skip(self, size: int, reason: str) -> RpcRange:
        _, frames = self._consume(size)
        return RpcRange(b"", size, None, None, reason, *completed(frames))

    def _break_off(self, *, cut: bool) -> Iterator[RpcRange]:
        size = len(self._buffer)
        if not size:
            return
        if self._error is None and self._sync_loss:
            yield self._skip(size, self._sync_loss)
        else:
            yield self._malformed(size, self._error or self._broken_off(size), cut=cut)

    def _broken_off(self, size: int) -> MalformedPacket:
        if size < COMMON_HEADER_SIZE:
            why = f"{COMMON_HEADER_SIZE} bytes are needed"
            return MalformedPacket(why, path=COMMON_HEADER.name, offset=size)
        length, _ = self._length()
        return wrong_header("frag_length", f"{length} bytes, and {size} are there")

    def _consume(self, size: int) -> tuple[bytes, dict[int, int]]:
        data = bytes(self._buffer[:size])
        self._start += size
        frames = take_frames(self._segments, self._start)
        del self._buffer[:size]
        self._searched = max(0, self._searched - size)
        return data, frames
