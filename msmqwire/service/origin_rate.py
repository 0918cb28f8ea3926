"""What peers may use in a second, of each origin and of all of them: connections, or bytes."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msmqwire.names.origins import origin_of

_SECOND: Final = 1.0
_RESERVE: Final = 4
"""The last fourth of what there is for a second is for origins that have had little."""
_LITTLE: Final = 32
"""An origin has had little that has had up to this part of its limit, or one connection."""


class OriginRate:
    """Decides whether a peer may use more in this second; the owner supplies the time.

    Args:
        total: what all may use in a second.
        per_origin: the same, of one IPv4 address or one IPv6 network of 64 bits.
    """

    def __init__(self, total: int, per_origin: int) -> None:
        self._total, self._per_origin = total, per_origin
        self._began = float("-inf")
        self._used = 0
        self._of: Counter[str] = Counter()  # those of one second

    def admits(self, address: str, now: float, amount: int = 1, *, known: bool = False) -> bool:
        """Count a use; return False, and count nothing, if it is too much. `now` is in seconds.

        A known origin has its own limit only.
        """
        if now - self._began >= _SECOND:
            self._began, self._used = now, 0
            self._of.clear()
        origin = origin_of(address)
        had = self._of.get(origin, 0)
        if had + amount > self._per_origin or not (known or self._has_room(had, amount)):
            return False
        self._of[origin] = had + amount
        self._used += amount
        return True

    def _has_room(self, had: int, amount: int) -> bool:
        """Return whether the limit of all leaves room for an origin that has used this much."""
        has_little = had + amount <= max(1, self._per_origin // _LITTLE)
        reserve = 0 if has_little else self._total // _RESERVE
        return self._used + amount <= self._total - reserve
