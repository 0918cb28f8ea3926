"""How many requests a login or a token may make: so many a second, and some at once."""

from __future__ import annotations

from typing import Final

BURST: Final = 3.0
"""Seconds' worth of requests that may come at once."""


class Allowance:
    """The requests that a client may still make; the owner supplies the time in seconds."""

    __slots__ = ("_counted", "_left", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._left, self._counted = rate, rate * BURST, now

    def takes(self, now: float) -> bool:
        """Count a request; return False if it is one too many."""
        self._left = min(self._rate * BURST, self._left + (now - self._counted) * self._rate)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
