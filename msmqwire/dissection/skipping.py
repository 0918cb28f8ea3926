"""What a finder of packets hands over while it only skips bytes."""

from __future__ import annotations

from typing import NamedTuple


class Skipping(NamedTuple):
    """What a finder skips, and has buffered.

    Attributes:
        remaining: bytes of an incomplete packet that are still to be skipped; 0 while a header is searched.
        needed: the size of the packet whose header begins the buffered bytes; 0 if no header is among them.
        skipped: bytes of the run so far.
        frame: the last frame of the run; -1 for none.
        segments: those buffered: how many of its bytes were skipped, the others, frame and time of each.
    """

    remaining: int
    needed: int
    skipped: int
    frame: int
    segments: list[tuple[int, bytes, int, int]]
