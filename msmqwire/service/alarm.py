"""The alarm of a driver: one timer for the next deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.service.clock import Clock
from msmqwire.service.event_loop import EventLoop, Handle

_LONGEST_S: Final = 3600.0


class Alarm:
    """Calls a function at the next deadline."""

    def __init__(self, loop: EventLoop, clock: Clock, ring: Callable[[], None]) -> None:
        self._loop, self._clock, self._ring = loop, clock, ring
        self._timer: Handle | None = None
        self._due: int | None = None

    def set(self, due: int | None) -> None:
        """Set the timer for a deadline, in milliseconds of the clock; None for no deadline.

        A timer that is due earlier is left as it is, since deadlines move with each message: it is then set
        anew.
        """
        if self._timer is not None:
            if due is not None and self._due is not None and self._due <= due:
                return
            self._timer.cancel()
            self._timer = None
        self._due = due
        if due is not None:
            delay = min(max(self._clock.seconds_until(due), 0.0), _LONGEST_S)
            self._timer = self._loop.call_later(delay, self._expired)

    def cancel(self) -> None:
        """Cancel the timer: the driver ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _expired(self) -> None:
        self._timer = self._due = None
        self._ring()
