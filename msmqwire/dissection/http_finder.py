"""Finder of the HTTP messages in one direction of a captured connection, whatever they carry.

Every byte is accounted for: it is in a message, in a malformed one, or skipped with a reason. Where framing
is lost, the next message is the next start line at the start of a line or of a segment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.dissection.frame_ranges import SegmentRange, completed, take_frames
from msmqwire.errors import MalformedPacket
from msmqwire.srmp.http_framer import MessageReader
from msmqwire.srmp.http_message import HttpMessage, parse_start_line

START_LINE_MAX: Final = 8192
"""Bytes of the longest start line that is found while framing is lost."""
MALFORMED_MAX: Final = 1 << 16
"""Bytes of a message that can't be framed, about; what follows them is skipped."""

BEGINS_INSIDE: Final = "the capture begins inside the stream"
"""Why the bytes before the first message are skipped."""

_STARTS: Final = (b"POST ", b"HTTP/1.", b"GET ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ")


@dataclass(frozen=True, slots=True)
class HttpRange:
    """A range of the direction: a message, a malformed one or skipped bytes.

    Attributes:
        data: its bytes; empty for skipped ones.
        size: its length in bytes, captured or not.
        message: the message, or None.
        error: why a malformed message can't be framed, or None.
        reason: why bytes were skipped; empty for messages.
        frames: the numbers of the frames that carry it, in order.
        time_ns: when the last of them was captured.
        cut: whether the rest of a malformed message is missing from the capture.
    """

    data: bytes
    size: int
    message: HttpMessage | None
    error: MalformedPacket | None
    reason: str
    frames: tuple[int, ...]
    time_ns: int
    cut: bool = False


class HttpFinder:
    """Finds the HTTP messages of one direction, fed with its bytes and gaps in order.

    The ranges that a call yields are all to be taken before the next call. Of an incomplete message no more
    is buffered than the largest that SRMP allows.
    """

    def __init__(self, *, midstream: bool = False) -> None:
        self._buffer = bytearray()
        self._start = 0  # offset of the buffer in the stream
        self._segments: deque[SegmentRange] = deque()
        self._reader = MessageReader()
        self._error: MalformedPacket | None = None  # of the message at the start, whose end is searched
        self._sync_loss = BEGINS_INSIDE if midstream else ""  # empty in sync
        self._framed = False
        # The search for a start line: offsets in the stream.
        self._segment_starts: deque[int] = deque()  # not searched yet
        self._line = 0  # where it goes on
        self._inside_line = True  # whether that may be inside a line
        self._scanned = 0  # no line ends between `_line` and here

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory buffered."""
        return len(self._buffer) + SEGMENT_COST * len(self._segments)

    @property
    def certain(self) -> bool:
        """Whether messages have been framed up to here, or at least a start line."""
        return self._in_sync and (self._framed or self._reader.at > 0)

    @property
    def between_messages(self) -> bool:
        """Whether messages have been framed up to here, and nothing is buffered."""
        return self._in_sync and self._framed and not self._buffer

    @property
    def _in_sync(self) -> bool:
        """Whether the buffer is empty or holds the beginning of a message that is well-formed so far."""
        return self._error is None and not self._sync_loss

    def feed(self, data: bytes, frame: int, time_ns: int) -> Iterator[HttpRange]:
        """Feed the next bytes of the direction, from one frame captured at ``time_ns``."""
        start = self._start + len(self._buffer)
        self._buffer += data
        self._segments.append(SegmentRange(start, start + len(data), frame, time_ns))
        self._segment_starts.append(start)
        return self._scan()

    def gap(self) -> Iterator[HttpRange]:
        """Report that bytes are lost here."""
        yield from self._break_off(cut=True)
        self._lose_sync("after a hole in the stream")

    def end(self, *, cut: bool = False) -> Iterator[HttpRange]:
        """End the direction; `cut` if only its capture ended."""
        if self._buffer and self._in_sync and self._reader.ends_with_stream:
            yield self._take_message(len(self._buffer))
        yield from self._break_off(cut=cut)

    def discard(self) -> Iterator[HttpRange]:
        """Skip the buffered bytes to free memory."""
        if self._buffer:
            self._error = None
            yield self._skip(len(self._buffer), "let go, as too much is held of messages that are not whole")
            self._lose_sync("after bytes that were let go")

    def _scan(self) -> Iterator[HttpRange]:
        while self._buffer:
            if self._in_sync:
                try:
                    whole = self._reader.read(self._buffer)
                except MalformedPacket as exc:
                    self._error = exc
                    self._begin_search(self._start + 1)
                    continue
                if not whole:
                    return
                yield self._take_message(self._reader.at)
                continue
            at = self._search()
            passed = self._line - self._start if at < 0 else at
            if self._error is None:
                if passed:
                    yield self._skip(passed, self._sync_loss)
            elif at >= 0 or passed > MALFORMED_MAX:
                yield self._malformed(passed, self._error)
                if at < 0:  # the search goes on
                    self._sync_loss = "after a message that can't be framed"
            if at < 0:
                return
            self._sync_loss = ""

    # -- the next start line ------------------------------------------------------------------------

    def _lose_sync(self, reason: str) -> None:
        self._sync_loss = reason
        self._begin_search(self._start)

    def _begin_search(self, offset: int) -> None:
        self._line = self._scanned = offset
        self._inside_line = True
        self._forget_starts(offset)

    def _search(self) -> int:
        """Return where in the buffer the next message begins; -1 if none does in what is there."""
        buffer = self._buffer
        while True:
            line = self._line - self._start
            newline = buffer.find(b"\n", max(line, self._scanned - self._start))
            if newline < 0:
                self._scanned = self._start + len(buffer)
                if len(buffer) - line > START_LINE_MAX:
                    self._line, self._inside_line = self._scanned - START_LINE_MAX, True
                    self._forget_starts(self._line)
                return -1
            at = self._start_line(line, newline)
            self._line = self._scanned = self._start + newline + 1
            self._inside_line = False
            if at >= 0:
                return at

    def _start_line(self, line: int, newline: int) -> int:
        """Return where in a line a message begins; -1 if none does.

        Only the first place that looks like one is tried, so that a byte is read but once.
        """
        places = [] if self._inside_line else [line]
        while self._segment_starts and self._segment_starts[0] - self._start <= newline:
            places.append(self._segment_starts.popleft() - self._start)
        for at in places:
            if self._buffer.startswith(_STARTS, at):
                text = bytes(self._buffer[at:newline])
                if not text.endswith(b"\r") or len(text) > START_LINE_MAX:
                    return -1
                try:
                    parse_start_line(text[:-1])
                except MalformedPacket:
                    return -1
                return at
        return -1

    def _forget_starts(self, offset: int) -> None:
        while self._segment_starts and self._segment_starts[0] < offset:
            self._segment_starts.popleft()

    # -- ranges -------------------------------------------------------------------------------------

    def _take_message(self, size: int) -> HttpRange:
        message = self._reader.message(self._buffer, size)
        self._reader, self._framed = MessageReader(), True
        data, frames = self._consume(size)
        return HttpRange(data, size, message, None, "", *completed(frames))

    def _malformed(self, size: int, error: MalformedPacket, *, cut: bool = False) -> HttpRange:
        self._error, self._reader = None, MessageReader()
        data, frames = self._consume(size)
        return HttpRange(data, size, None, error.detached(), "", *completed(frames), cut)

    def _skip(self, size: int, reason: str) -> HttpRange:
        _, frames = self._consume(size)
        return HttpRange(b"", size, None, None, reason, *completed(frames))

    def _break_off(self, *, cut: bool) -> Iterator[HttpRange]:
        size = len(self._buffer)
        if not size:
            return
        if self._sync_loss:
            yield self._skip(size, self._sync_loss)
        else:
            yield self._malformed(size, self._error or self._reader.broken_off(size), cut=cut)

    def _consume(self, size: int) -> tuple[bytes, dict[int, int]]:
        data = bytes(self._buffer[:size])
        self._start += size
        frames = take_frames(self._segments, self._start)
        del self._buffer[:size]
        self._forget_starts(self._start)
        return data, frames
