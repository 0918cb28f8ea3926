"""How often the bytes of a stream were parsed in vain, so that it can be limited."""

from __future__ import annotations

from typing import Final

OVERLAPS_MAX: Final = 4
"""Failed checks of about the same length that may have a byte in common."""


class FailedChecks:
    """The ranges of a stream that were checked for a packet and had none, as far as they still matter.

    False headers can claim packets that overlap each other, every eight bytes one. Of the ranges of one size,
    to the next power of two, no more than `OVERLAPS_MAX` may have a byte in common, so that no byte is
    checked in vain more often than that for each of the two dozen sizes that a packet can have, however
    many headers there are. A small packet is not affected by large claims, and nothing is remembered beyond
    the end of the ranges.

    Attributes:
        end: the offset in the stream after the last of the ranges.
    """

    __slots__ = ("_ends", "end")

    def __init__(self) -> None:
        self._ends: dict[int, list[int]] = {}  # by the bits of the size
        self.end = 0

    def admit(self, start: int, end: int) -> bool:
        """Whether a range may be checked. It should not start before the one checked last."""
        ends = self._ends.get((end - start).bit_length())
        return ends is None or sum(stop > start for stop in ends) < OVERLAPS_MAX

    def refuses_at(self, start: int) -> bool:
        """Whether there is a size of which no range that begins here may be checked."""
        if self.end <= start:
            return False
        return any(sum(stop > start for stop in ends) >= OVERLAPS_MAX for ends in self._ends.values())

    def beyond(self, start: int) -> tuple[tuple[int, int], ...]:
        """Return the ranges that end behind an offset: the bits of the size of each, and the distance."""
        return tuple((bits, end - start) for bits, ends in self._ends.items() for end in ends if end > start)

    def restore(self, ranges: list[tuple[int, int]]) -> None:
        """Replace the ranges by others: the bits of the size of each, and its end."""
        self._ends = {}
        for bits, end in ranges:
            self._ends.setdefault(bits, []).append(end)
            self.end = max(self.end, end)

    def add(self, start: int, end: int) -> None:
        """Note that a range was checked in vain."""
        ends = self._ends.setdefault((end - start).bit_length(), [])
        ends[:] = [stop for stop in ends if stop > start]
        ends.append(end)
        self.end = max(self.end, end)
