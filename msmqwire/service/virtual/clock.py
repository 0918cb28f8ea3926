"""The clock of a service in virtual time."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.service.virtual.loop import VirtualLoop


class VirtualClock:
    """The time of a virtual loop, and a time of day."""

    def __init__(self, loop: VirtualLoop, utc: Callable[[], int], *, start: int = 0) -> None:
        """Begin at a time of the loop in milliseconds; `utc` returns the seconds since 1970-01-01 UTC."""
        self._loop, self._utc, self._start = loop, utc, start

    def check(self) -> None:
        """Do nothing: the simulated time of day is always a valid one."""

    def read(self) -> tuple[int, int]:
        """See `Clock.read`."""
        return self._loop.now_ms - self._start, self._utc()

    def seconds_until(self, due_ms: int) -> float:
        """See `Clock.seconds_until`."""
        return (due_ms + self._start - self._loop.now_ms) / 1000
