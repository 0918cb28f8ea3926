"""The time of a service: a clock that never goes back, and the time of day as far as it is plausible."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final, Protocol

from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.service.logs import log

LATEST: Final = 0xFFFFFFFF
"""2106-02-07T06:28:15Z, the last second that 32 bits hold: the SentTime of [MS-MQMQ] 2.2.19.2."""


class Clock(Protocol):
    """The clock of a driver."""

    def check(self) -> None:
        """Raise InvalidValue if no packet can hold the time of day."""

    def read(self) -> tuple[int, int]:
        """Return the milliseconds since the clock was made, and the seconds since 1970-01-01 UTC."""

    def seconds_until(self, due_ms: int) -> float:
        """Return the seconds until a time in milliseconds since the clock was made; negative for the past."""


class WallClock:
    """The clock of the computer, as far as it is plausible.

    No packet holds a time before 1970 or after `LATEST`, and a wrapped time would make messages expire at
    once. A service does not start at such a time. If its clock is set to such a time while it runs, the time
    continues from the last plausible one.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._believed = 0
        self._read_at = 0.0
        self._wrong = False

    def check(self) -> None:
        """Raise InvalidValue if no packet can hold the time of the clock."""
        seconds = int(time.time())
        if not 0 < seconds <= LATEST:
            last = datetime.fromtimestamp(LATEST, UTC).date()
            raise InvalidValue(
                f"the clock of this computer is {counted(seconds, 'second')} after 1970;"
                f" packets hold times to {last}",
                path="clock",
            )

    def read(self) -> tuple[int, int]:
        """See `Clock.read`; the seconds are 1 to `LATEST`."""
        read_at = time.monotonic()
        return int((read_at - self._start) * 1000), self._utc(read_at)

    def _utc(self, read_at: float) -> int:
        seconds = int(time.time())
        wrong = not 0 < seconds <= LATEST
        if wrong != self._wrong:
            self._wrong = wrong
            if wrong:
                log.error("the clock has a time that no packet can hold: ignored", extra={"seconds": seconds})
            else:
                log.warning("the clock has a valid time again")
        if wrong:
            return max(1, min(self._believed + int(read_at - self._read_at), LATEST))
        self._believed, self._read_at = seconds, read_at
        return seconds

    def seconds_until(self, due_ms: int) -> float:
        """See `Clock.seconds_until`."""
        return due_ms / 1000 - (time.monotonic() - self._start)
