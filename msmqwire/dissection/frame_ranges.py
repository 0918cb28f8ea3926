"""Which frames carried which bytes of a stream."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class SegmentRange(NamedTuple):
    """The range of the stream that one frame carried."""

    start: int
    end: int
    frame: int
    time_ns: int


def take_frames(segments: deque[SegmentRange], end: int) -> dict[int, int]:
    """Remove the segments before this offset of the stream; return number and time of their frames.

    One that goes on behind it is among the frames, and stays.
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
