"""The numbers of service connections."""

from __future__ import annotations

from heapq import heappop, heappush

from msmqwire.netware.model.caller import Caller


class ConnectionNumbers:
    """Gives each service connection a number, the lowest free one.

    Low numbers serve clients of the old calls, whose stations have 8 bits.

    Args:
        most: connections at once, 1 to 65,534: 0xFFFF asks for a connection.

    Attributes:
        most: the same.
        peak: the most connections that there have been at once.
    """

    def __init__(self, most: int) -> None:
        assert 1 <= most < 0xFFFF
        self.most, self.peak = most, 0
        self._next = 1
        self._free: list[int] = []
        self._taken: dict[int, Caller] = {}

    def take(self, task: int = 0, origin: str = "") -> Caller | None:
        """Return a new connection from an origin, with its number; None if all are taken."""
        if self._free:
            number = heappop(self._free)
        elif self._next <= self.most:
            number, self._next = self._next, self._next + 1
        else:
            return None
        self._taken[number] = caller = Caller(number, task, origin=origin)
        self.peak = max(self.peak, len(self._taken))
        return caller

    def get(self, number: int) -> Caller | None:
        """Return the connection that has a number; None if there is none."""
        return self._taken.get(number)

    def give_back(self, number: int) -> None:
        """Take back a number that is not in use any more."""
        del self._taken[number]
        heappush(self._free, number)

    def __len__(self) -> int:
        return len(self._taken)
