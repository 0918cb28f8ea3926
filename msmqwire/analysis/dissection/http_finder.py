"""Finder of the HTTP messages in one direction of a captured connection, whatever they carry.

After framing is lost, the next message is the next start line at the start of a line or of a segment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from msmqwire.analysis.dissection.stream_finder import StreamFinder, StreamRange
from msmqwire.errors import MalformedPacket
from msmqwire.srmp.http_framer import MessageReader
from msmqwire.srmp.http_message import HttpMessage, parse_start_line

START_LINE_MAX: Final = 8192
"""Bytes of the longest start line that is found while framing is lost."""

HttpRange: TypeAlias = StreamRange[HttpMessage]

_STARTS: Final = (b"POST ", b"HTTP/1.", b"GET ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ")


class HttpFinder(StreamFinder[HttpMessage]):
    """Finds the HTTP messages of one direction. The largest is the limit of SRMP."""

    __slots__ = ("_framed", "_inside_line", "_line", "_reader", "_scanned", "_segment_starts")

    _kind = "message"

    def __init__(self, *, midstream: bool = False) -> None:
        super().__init__(midstream=midstream)
        self._reader = MessageReader()
        self._framed = False
        # The search for a start line: offsets in the stream.
        self._segment_starts: deque[int] = deque()  # not searched yet
        self._line = 0  # where it goes on
        self._inside_line = True  # whether that may be inside a line
        self._scanned = 0  # no line ends between `_line` and here

    @property
    def certain(self) -> bool:
        """Whether messages have been framed up to here, or at least a start line."""
        return self._in_sync and (self._framed or self._reader.at > 0)

    @property
    def between_messages(self) -> bool:
        """Whether messages have been framed up to here, and nothing is buffered."""
        return self._in_sync and self._framed and not self._buffer

    def feed(self, data: bytes, frame: int, time_ns: int) -> Iterator[HttpRange]:
        """Feed the next bytes of the direction, from one frame captured at ``time_ns``."""
        self._segment_starts.append(self._start + len(self._buffer))
        return super().feed(data, frame, time_ns)

    def end(self, *, cut: bool = False) -> Iterator[HttpRange]:
        """End the direction, and with it a response without a length; `cut` if only its capture ended."""
        if self._buffer and self._in_sync and self._reader.ends_with_stream:
            yield self._take(len(self._buffer))
        yield from super().end(cut=cut)

    def _message_size(self) -> int:
        return self._reader.at if self._reader.read(self._buffer) else 0

    def _take(self, size: int) -> HttpRange:
        message, self._framed = self._reader.message(self._buffer, size), True
        return self._range(size, message)

    def _broken_off(self, size: int) -> MalformedPacket:
        return self._reader.broken_off(size)

    def _consumed(self, size: int) -> None:
        self._reader = MessageReader()
        self._forget_starts(self._start)

    # -- the next start line ------------------------------------------------------------------------

    def _begin_search(self, offset: int) -> None:
        self._line = self._scanned = offset
        self._inside_line = True
        self._forget_starts(offset)

    def _search(self) -> tuple[int, bool]:
        buffer = self._buffer
        while True:
            line = self._line - self._start
            newline = buffer.find(b"\n", max(line, self._scanned - self._start))
            if newline < 0:
                self._scanned = self._start + len(buffer)
                if len(buffer) - line > START_LINE_MAX:
                    self._line, self._inside_line = self._scanned - START_LINE_MAX, True
                    self._forget_starts(self._line)
                return self._line - self._start, False
            at = self._start_line(line, newline)
            self._line = self._scanned = self._start + newline + 1
            self._inside_line = False
            if at >= 0:
                return at, True

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
