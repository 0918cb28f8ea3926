"""The times of checks for idle connections, so that they cost little however many are tracked."""

from __future__ import annotations

from collections.abc import Callable, Container
from heapq import heapify, heappop, heappush
from typing import Final

_OUTDATED_MIN: Final = 64
"""Checks of connections that are not tracked any more that may be left, besides one for each that is."""


class IdleChecks:
    """The times at which connections, known by their stream numbers, may have become idle.

    A connection is looked at when the segments known at the last look are old enough. One without a timestamp
    is never idle; it is looked at ever less often.

    Args:
        idle_ns: nanoseconds without a segment after which a connection is idle.
    """

    def __init__(self, idle_ns: int) -> None:
        self._idle_ns = max(idle_ns, 1)
        self._checks: list[tuple[int, int, int]] = []  # heap: when, stream, how long until the next

    def add(self, stream: int, tracked: Container[int], count: int) -> None:
        """Add a connection; of ``tracked`` ones there are ``count``."""
        heappush(self._checks, (0, stream, self._idle_ns))
        if len(self._checks) > 2 * count + _OUTDATED_MIN:
            latest_first = sorted(self._checks, reverse=True)
            self._checks = list({check[1]: check for check in latest_first if check[1] in tracked}.values())
            heapify(self._checks)

    def take_idle(self, now_ns: int, last_ns: Callable[[int], int | None]) -> list[int]:
        """Return the connections that are found idle, in ascending order, and forget them.

        ``last_ns`` returns the time of the last segment of a connection, 0 if it has none, and None for a
        connection that is not tracked any more.
        """
        idle = []
        while self._checks and self._checks[0][0] <= now_ns:
            _, stream, wait = heappop(self._checks)
            last = last_ns(stream)
            if last is None:
                continue
            if last <= 0:
                heappush(self._checks, (now_ns + wait, stream, 2 * wait))
            elif now_ns - last >= self._idle_ns:
                idle.append(stream)
            else:
                heappush(self._checks, (last + self._idle_ns, stream, self._idle_ns))
        return sorted(set(idle))  # one that was added again may have two checks
