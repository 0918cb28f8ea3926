"""The numbers of service connections, and who makes room for a new one."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from msmqwire.netware.model.caller import Caller
from msmqwire.service.places import ListenerLimits, Places


def _nobody(_: str) -> bool:
    return False


def nothing() -> None:
    """Do nothing at the end of a connection that no socket has."""


class ConnectionNumbers:
    """Gives each service connection a number, the lowest free one.

    Low numbers serve clients of the old calls, whose stations have 8 bits. Anybody can attach: a connection
    without a login is silent, and makes room as `Places` has it.

    Args:
        most: connections at once, 1 to 65,534: 0xFFFF asks for a connection.
        reserved: numbers that silent connections of unknown origins can't have.
        is_known: whether an origin is known.

    Attributes:
        most: the same.
        peak: the most connections that there have been at once.
    """

    def __init__(self, most: int, reserved: int = 0, is_known: Callable[[str], bool] = _nobody) -> None:
        assert 1 <= most < 0xFFFF
        self.most, self.peak = most, 0
        self._next = 1
        self._free: list[int] = []
        self._taken: dict[int, Caller] = {}
        self._places: Places[int] = Places(ListenerLimits(most, most, 0, 0, reserved), is_known)
        self._ends: dict[int, Callable[[], None]] = {}

    def take(self, task: int = 0, origin: str = "", end: Callable[[], None] = nothing) -> Caller | None:
        """Return a new connection from an origin, with its number; None if there is none for it.

        `end` is called if the connection has to make room for another: its number is free when it is given
        back.
        """
        room = self._places.room(origin)
        if room.refusal is not None:
            return None
        if room.ends is not None:
            self._places.leave(room.ends)
            self._ends[room.ends]()
        if self._free:
            number = heappop(self._free)
        elif self._next <= self.most:
            number, self._next = self._next, self._next + 1
        else:
            return None
        self._taken[number] = caller = Caller(number, task, origin=origin)
        self._ends[number] = end
        self._places.take(number, origin)
        self.peak = max(self.peak, len(self._taken))
        return caller

    def logged_in(self, number: int) -> None:
        """The client of a connection has logged in: it makes room for others no more."""
        self._places.spoke(number)

    def leave(self, number: int) -> None:
        """A connection is being given up: it can't make room any more."""
        self._places.leave(number)

    def get(self, number: int) -> Caller | None:
        """Return the connection that has a number; None if there is none."""
        return self._taken.get(number)

    def give_back(self, number: int) -> None:
        """Take back a number that is not in use any more."""
        del self._taken[number], self._ends[number]
        self._places.leave(number)
        heappush(self._free, number)

    def __len__(self) -> int:
        return len(self._taken)
