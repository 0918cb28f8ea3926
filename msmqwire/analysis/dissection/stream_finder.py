"""Finder of the messages in one direction of a captured connection, whose framing a subclass knows.

Every byte is accounted for: it is in a message, in a malformed one, or skipped with a reason. After framing
is lost, the next message is the next credible beginning of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

from msmqwire.analysis.dissection.frame_ranges import SegmentRange, completed, take_frames
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.errors import MalformedPacket

MessageT = TypeVar("MessageT")

MALFORMED_MAX: Final = 1 << 16
"""Bytes of a message that can't be framed, about; those after them are skipped."""

BEGINS_INSIDE: Final = "the capture begins inside the stream"
"""Why the bytes before the first message are skipped."""


class StreamRange(NamedTuple, Generic[MessageT]):
    """A range of the direction: a message, a malformed one or skipped bytes.

    Attributes:
        data: its bytes; empty for skipped ones.
        size: its length in bytes.
        message: the message, or None.
        error: why a malformed message can't be parsed, or None.
        reason: why bytes were skipped; empty for messages.
        frames: the numbers of the frames that carry it, in order.
        time_ns: when the last of them was captured.
        cut: whether the rest of a malformed message is missing from the capture.
    """

    data: bytes
    size: int
    message: MessageT | None
    error: MalformedPacket | None
    reason: str
    frames: tuple[int, ...]
    time_ns: int
    cut: bool = False


class StreamFinder(ABC, Generic[MessageT]):
    """Finds the messages of one direction, fed with its bytes and gaps in order.

    The ranges that a call yields are all to be taken before the next call. No more is buffered than a message
    of the largest size, or `MALFORMED_MAX` bytes.
    """

    __slots__ = ("_buffer", "_error", "_segments", "_start", "_sync_loss")

    _kind: ClassVar[str]
    """The name of a message."""

    def __init__(self, *, midstream: bool = False) -> None:
        self._buffer = bytearray()
        self._start = 0  # offset of the buffer in the stream
        self._segments: deque[SegmentRange] = deque()
        self._error: MalformedPacket | None = None  # of the message at the start, whose end is searched
        self._sync_loss = BEGINS_INSIDE if midstream else ""  # empty in sync

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory buffered."""
        return len(self._buffer) + SEGMENT_COST * len(self._segments)

    @property
    def position(self) -> int:
        """The end of the last range, in bytes of the direction."""
        return self._start

    @property
    def received(self) -> int:
        """The number of bytes of the direction that have come."""
        return self._start + len(self._buffer)

    @property
    def _in_sync(self) -> bool:
        """Whether the buffer is empty or holds the beginning of a message that is well-formed so far."""
        return self._error is None and not self._sync_loss

    def feed(self, data: bytes, frame: int, time_ns: int) -> Iterator[StreamRange[MessageT]]:
        """Feed the next bytes of the direction, from one frame captured at ``time_ns``."""
        start = self._start + len(self._buffer)
        self._buffer += data
        self._segments.append(SegmentRange(start, start + len(data), frame, time_ns))
        return self._scan()

    def gap(self) -> Iterator[StreamRange[MessageT]]:
        """Report that bytes are lost here."""
        yield from self._break_off(cut=True)
        self._lose_sync("after a hole in the stream")

    def end(self, *, cut: bool = False) -> Iterator[StreamRange[MessageT]]:
        """End the direction; `cut` if only its capture ended."""
        return self._break_off(cut=cut)

    def discard(self) -> Iterator[StreamRange[MessageT]]:
        """Skip the buffered bytes to free memory."""
        if self._buffer:
            self._error = None
            yield self._skip(len(self._buffer), "let go, as too much is held of messages that are not whole")
            self._lose_sync("after bytes that were let go")

    def _scan(self) -> Iterator[StreamRange[MessageT]]:
        while self._buffer:
            if self._in_sync:
                try:
                    size = self._message_size()
                except MalformedPacket as exc:
                    if reason := self._of_others():
                        self._lose_sync(reason)
                        continue
                    self._error = exc.detached()
                    self._begin_search(self._start + 1)
                    continue
                if not size:
                    return
                yield self._take(size)
                continue
            at, found = self._search()
            if self._error is None:
                if at:
                    yield self._skip(at, self._sync_loss)
            elif found or at > MALFORMED_MAX:
                error = self._error
                if error.offset is not None and error.offset >= at:
                    error = self._broken_off(at)  # a fault there is part of the next message
                yield self._malformed(at, error)
                if not found:  # the search goes on
                    self._sync_loss = f"after a {self._kind} that can't be framed"
            if not found:
                return
            self._sync_loss = ""

    def _lose_sync(self, reason: str) -> None:
        self._sync_loss = reason
        self._begin_search(self._start)

    # -- framing ------------------------------------------------------------------------------------

    @abstractmethod
    def _message_size(self) -> int:
        """Return the size of the message that the buffer begins with; 0 if more bytes are needed.

        Raises MalformedPacket if the message can't be framed.
        """

    def _of_others(self) -> str:
        """Return why the buffer is skipped that does not begin with a whole message; empty if it is not."""
        return ""

    @abstractmethod
    def _take(self, size: int) -> StreamRange[MessageT]:
        """Return the message of this size that the buffer begins with."""

    @abstractmethod
    def _begin_search(self, offset: int) -> None:
        """Search the next message from this offset of the stream on."""

    @abstractmethod
    def _search(self) -> tuple[int, bool]:
        """Return where in the buffer the next message begins, or before where none does, and which it is."""

    @abstractmethod
    def _broken_off(self, size: int) -> MalformedPacket:
        """Return the error of a stream that ends after these bytes of a message."""

    @abstractmethod
    def _consumed(self, size: int) -> None:
        """Take note that `size` bytes have left the buffer."""

    # -- ranges -------------------------------------------------------------------------------------

    def _range(
        self,
        size: int,
        message: MessageT | None = None,
        error: MalformedPacket | None = None,
        *,
        reason: str = "",
        cut: bool = False,
    ) -> StreamRange[MessageT]:
        """Remove bytes from the buffer and return them as a range, skipped ones if there is a reason."""
        data = b"" if reason else bytes(self._buffer[:size])
        self._start += size
        frames = take_frames(self._segments, self._start)
        del self._buffer[:size]
        self._consumed(size)
        return StreamRange(data, size, message, error, reason, *completed(frames), cut)

    def _malformed(self, size: int, error: MalformedPacket, *, cut: bool = False) -> StreamRange[MessageT]:
        self._error = None
        return self._range(size, error=error, cut=cut)

    def _skip(self, size: int, reason: str) -> StreamRange[MessageT]:
        return self._range(size, reason=reason)

    def _break_off(self, *, cut: bool) -> Iterator[StreamRange[MessageT]]:
        size = len(self._buffer)
        if not size:
            return
        if reason := self._sync_loss or self._of_others():
            yield self._skip(size, reason)
        else:
            yield self._malformed(size, self._error or self._broken_off(size), cut=cut)
