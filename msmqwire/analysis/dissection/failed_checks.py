"""Counts of failed parses of the bytes of a stream, to limit them."""

from __future__ import annotations

from typing import Final

OVERLAPS_MAX: Final = 4
"""Failed checks of about the same length that may have a byte in common."""

SIZES: Final = 12
"""Sizes that a packet can have, to the next power of four; the largest is 4 MiB."""

FAILED_MAX: Final = OVERLAPS_MAX * SIZES
"""Failed checks that matter at a time."""


def size_class(size: int) -> int:
    """Return which power of four is the next above a size."""
    return size.bit_length() + 1 >> 1


class FailedChecks:
    """The ranges of a stream that were checked for a packet and had none, as far as they still matter.

    False headers can claim packets that overlap each other, every eight bytes one. A range may be checked as
    long as fewer than `OVERLAPS_MAX` of the failed ones of its size, to the next power of four, end after its
    start, so that no byte is checked in vain more often than that for each of the dozen sizes that a packet
    can have, however many headers there are. A small packet is not affected by large claims. A range that may
    not be checked is not waited for either, so that bytes are only buffered for a check that is still to
    come: it succeeds or is counted here.

    The order of the checks does not matter. At a break of the stream a search goes to the end of the bytes,
    and then back to a packet that is cut off there: what was checked further on must not push out the ranges
    that cover it. Of each size the ranges that end last are enough to know.

    Attributes:
        end: the offset in the stream after the last of the ranges.
    """

    __slots__ = ("_ends", "end")

    def __init__(self) -> None:
        self._ends: dict[int, list[int]] = {}  # by the class of the size, those that end last
        self.end = 0

    def admit(self, start: int, end: int) -> bool:
        """Whether a range may be checked."""
        ends = self._ends.get(size_class(end - start))
        return ends is None or sum(stop > start for stop in ends) < OVERLAPS_MAX

    def add(self, start: int, end: int) -> None:
        """Note that a range was checked in vain."""
        ends = self._ends.setdefault(size_class(end - start), [])
        ends.append(end)
        if len(ends) > OVERLAPS_MAX:
            ends.remove(min(ends))
        self.end = max(self.end, end)
