"""The frames that carried each range of bytes of a stream."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

FRAGMENTS_MAX: Final = 1 << 18
"""Frames of fragments that are known at a time."""
FRAGMENTS_OF_SEGMENT_MAX: Final = 2048
"""Frames of fragments that are listed for a segment: the largest one has 1,365 where the MTU is 68 bytes."""


class SegmentRange(NamedTuple):
    """The range of the stream that one frame carried."""

    start: int
    end: int
    frame: int
    time_ns: int


def take_frames(segments: deque[SegmentRange], end: int) -> dict[int, int]:
    """Remove the segments before this offset of the stream; return number and time of their frames.

    A segment that goes on after it is among the frames, and stays.
    """
    frames: dict[int, int] = {}
    while segments and segments[0].start < end:
        segment = segments[0]
        frames[segment.frame] = segment.time_ns
        if segment.end > end:
            break
        segments.popleft()
    return frames


def completed(frames: dict[int, int]) -> tuple[tuple[int, ...], int]:
    """Return the frames in capture order, and the time of the last."""
    ordered = tuple(sorted(frames))
    return ordered, frames[ordered[-1]]


class FragmentFrames:
    """The frames of TCP segments that came in fragments of IP.

    A segment is known by the frame that completed it. Memory is bounded: beyond `FRAGMENTS_MAX` frames the
    oldest segments are forgotten. Only the last frame of their bytes is known then.
    """

    def __init__(self) -> None:
        self._frames: dict[int, tuple[int, ...]] = {}  # by the last of them, in the order of the capture
        self._count = 0

    @property
    def has_any(self) -> bool:
        """Whether there are any."""
        return bool(self._frames)

    def add(self, frames: tuple[int, ...]) -> None:
        """Add the frames of a segment, in order: the last ones of more than `FRAGMENTS_OF_SEGMENT_MAX`."""
        kept = self._frames[frames[-1]] = frames[-FRAGMENTS_OF_SEGMENT_MAX:]
        self._count += len(kept)
        while self._count > FRAGMENTS_MAX:
            self._count -= len(self._frames.pop(next(iter(self._frames))))

    def of(self, frames: tuple[int, ...]) -> tuple[int, ...]:
        """Return the frames of all fragments of some segments, which are given by their last frames."""
        known = self._frames
        if len(frames) == 1:
            return known.get(frames[0], frames)  # the same for all packets in the segment
        if not known or known.keys().isdisjoint(frames):
            return frames
        return tuple(sorted({frame for last in frames for frame in known.get(last, (last,))}))
