"""The numbers of service connections."""

from __future__ import annotations

from heapq import heappop, heappush


class ConnectionNumbers:
    """Gives each service connection a number, the lowest free one.

    Low numbers serve clients of the old calls, whose stations have 8 bits.

    Args:
        most: connections at once, 1 to 65,534: 0xFFFF asks for a connection.
    """

    def __init__(self, most: int) -> None:
        assert 1 <= most < 0xFFFF
        self._most, self._next = most, 1
        self._free: list[int] = []
        self._taken: set[int] = set()

    def take(self) -> int | None:
        """Return a number; None if all are taken."""
        if self._free:
            number = heappop(self._free)
        elif self._next <= self._most:
            number, self._next = self._next, self._next + 1
        else:
            return None
        self._taken.add(number)
        return number

    def give_back(self, number: int) -> None:
        """Take back a number that is not in use any more."""
        self._taken.remove(number)
        heappush(self._free, number)

    def __len__(self) -> int:
        return len(self._taken)
