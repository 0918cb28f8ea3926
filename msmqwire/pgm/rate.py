"""The rate of a source: RFC 3208 section 5.1.1, SRMP-2.1.3.1-01, SRMP-2.1.3.1-09."""

from __future__ import annotations

_TOLERANCE = 1e-6  # of a byte: the error of a time computed from tokens


class TokenBucket:
    """Grants bytes at a rate, with bursts of the bytes granted in `seconds`.

    A packet longer than a whole bucket goes when the bucket is full, and the next one waits the longer.
    """

    def __init__(self, rate: float, seconds: float, now: float) -> None:
        self._rate, self._capacity = rate, rate * seconds
        self._tokens, self._at = self._capacity, now

    def ready_at(self, size: int, now: float) -> float:
        """Return when a packet of this size may go; not later than `now` if it may go at once."""
        self._fill(now)
        short = min(size, self._capacity) - self._tokens
        return now + short / self._rate if short > _TOLERANCE else now

    def take(self, size: int, now: float) -> None:
        """Count a packet that is sent, allowed or not."""
        self._fill(now)
        self._tokens -= size

    def _fill(self, now: float) -> None:
        elapsed = max(0.0, now - self._at)
        self._tokens = min(self._capacity, self._tokens + elapsed * self._rate)
        self._at = max(self._at, now)
