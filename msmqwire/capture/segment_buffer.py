"""Buffer for segments that arrive in any order, overlap and repeat: the first byte to arrive wins."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

SEGMENT_COST: Final = 256
"""Bytes of memory that a buffered segment takes besides its content: its objects, generously."""


class Segment(NamedTuple):
    """The bytes from offset ``start`` to ``end``. If ``data`` is shorter, the capture cut off the rest.

    Offsets are unwrapped sequence numbers of a TCP stream, or byte offsets in an IP datagram.
    """

    start: int
    end: int
    data: bytes
    time_ns: int
    frame: int


class SegmentBuffer:
    """Segments sorted by offset, none overlapping another.

    Attributes:
        cost: the approximate number of bytes of memory in use.
        conflicts: the number of bytes that arrived again with another value, and were dropped.
    """

    __slots__ = ("_run_ends", "_segments", "_starts", "conflicts", "cost")

    def __init__(self) -> None:
        self.cost = self.conflicts = 0
        self._starts: list[int] = []
        self._segments: list[Segment] = []
        self._run_ends: list[int] = []  # where a segment ends and no other begins

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    def add(self, new: Segment) -> int:
        """Buffer those bytes of a segment that are not buffered yet; return how many.

        Of bytes that the capture cut off there is nothing to compare, so that whole runs of segments are
        passed over: a frame that claims many bytes and has few costs no more than one that has few.
        """
        starts, segments, added = self._starts, self._segments, 0
        offset, data_end = new.start, new.start + len(new.data)
        index = bisect_right(starts, offset)
        if index:
            offset = self._compare(segments[index - 1], new, offset)
        while offset < new.end:
            stop = min(new.end, starts[index]) if index < len(starts) else new.end
            if offset < stop:
                data, part = new.data[offset - new.start : stop - new.start], new
                if stop - offset < new.end - new.start:
                    part = new._replace(start=offset, end=stop, data=data)
                starts.insert(index, offset)
                segments.insert(index, part)
                index += 1
                self._extend_run(offset, stop, joined=index < len(starts) and starts[index] == stop)
                self.cost += SEGMENT_COST + len(data)
                added += stop - offset
            offset = stop
            if offset >= new.end:
                break
            if offset < data_end:
                offset = self._compare(segments[index], new, offset)
                index += 1
            else:
                offset = self._run_ends[bisect_right(self._run_ends, offset)]
                index = bisect_left(starts, offset)
        return added

    def _extend_run(self, start: int, end: int, *, joined: bool) -> None:
        """Note a segment that was put into a gap, and perhaps joined with the bytes after it."""
        ends = self._run_ends
        index = bisect_left(ends, start)
        if index < len(ends) and ends[index] == start:
            del ends[index]
        if not joined:
            ends.insert(index, end)

    def _compare(self, buffered: Segment, new: Segment, offset: int) -> int:
        """Count the bytes that differ from ``offset`` on; return where ``buffered`` ends, or ``offset``
        if that is later."""
        stop = min(buffered.end, new.end)
        if offset < stop:
            old = buffered.data[offset - buffered.start : stop - buffered.start]
            other = new.data[offset - new.start : stop - new.start]
            if old != other:
                self.conflicts += sum(a != b for a, b in zip(old, other, strict=False))
        return max(offset, buffered.end)

    def pop(self, count: int) -> list[Segment]:
        """Remove and return the first ``count`` segments."""
        removed = self._segments[:count]
        if removed:
            del self._run_ends[: bisect_right(self._run_ends, removed[-1].end)]
        del self._segments[:count], self._starts[:count]
        self.cost -= sum(SEGMENT_COST + len(segment.data) for segment in removed)
        return removed

    def contiguous(self, offset: int) -> int:
        """Return how many segments, from the first, follow each other without a gap from ``offset`` on."""
        count = 0
        for segment in self._segments:
            if segment.start > offset:
                break
            offset = segment.end
            count += 1
        return count
