"""The directions of connections that wait: for a gap to be filled, or for their start to be certain.

They are asked for in two orders, by age and by the time at which something is due. Both are heaps whose
outdated entries are dropped when they come up, so that a change by one segment costs the logarithm of the
number of directions, however many wait.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from msmqwire.capture.direction import Direction

_OUTDATED_MIN: Final = 64
"""Entries that a heap may have besides two for each direction, before it is made anew."""

_Age = tuple[int, int]  # the frame since which a direction waits, and a number that no other has
_Entry = tuple[int, int, Direction]


class WaitingDirections:
    """The directions that wait, each with a time before which nothing is due."""

    def __init__(self) -> None:
        self._ages: dict[Direction, _Age] = {}
        self._by_age: list[_Entry] = []
        self._times: dict[Direction, _Age] = {}  # a time in ns, and a number that no other has
        self._by_time: list[_Entry] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._ages)

    def add(self, direction: Direction, frame: int) -> None:
        """Add a direction that waits since a frame; also if it is there with another frame."""
        self._count += 1
        self._ages[direction] = frame, self._count
        heappush(self._by_age, (frame, self._count, direction))
        _tidy(self._by_age, self._ages)

    def remove(self, direction: Direction) -> None:
        """Remove a direction."""
        del self._ages[direction]
        self._times.pop(direction, None)

    def check_at(self, direction: Direction, time_ns: int) -> None:
        """Have `take_due` return a direction from this time on, in nanoseconds; perhaps earlier."""
        scheduled = self._times.get(direction)
        if scheduled is None or time_ns < scheduled[0]:
            self._count += 1
            self._times[direction] = time_ns, self._count
            heappush(self._by_time, (time_ns, self._count, direction))
            _tidy(self._by_time, self._times)

    def oldest(self) -> Direction:
        """Return the direction that waits since the lowest frame; there must be one."""
        while self._ages.get(self._by_age[0][2]) != self._by_age[0][:2]:
            heappop(self._by_age)
        return self._by_age[0][2]

    def take_due(self, now_ns: int) -> list[Direction]:
        """Return the directions whose time has come; `check_at` is to be called for each of them anew."""
        due = []
        while self._by_time and self._by_time[0][0] <= now_ns:
            time_ns, number, direction = heappop(self._by_time)
            if self._times.get(direction) == (time_ns, number):
                del self._times[direction]
                due.append(direction)
        return due

    def age(self, direction: Direction) -> _Age:
        """Return a key by which directions that wait are sorted by age; there must be this one."""
        return self._ages[direction]

    def by_age(self) -> list[Direction]:
        """Return all directions, the oldest first."""
        return sorted(self._ages, key=self._ages.__getitem__)


def _tidy(heap: list[_Entry], current: dict[Direction, _Age]) -> None:
    """Drop the outdated entries of a heap once they are most of it."""
    if len(heap) > 2 * len(current) + _OUTDATED_MIN:
        heap[:] = [(*age, direction) for direction, age in current.items()]
        heapify(heap)
