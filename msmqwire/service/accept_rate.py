"""The rate at which connections are accepted: of each origin, and of all of them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msmqwire.names.origins import origin_of

_SECOND: Final = 1.0
_RESERVE: Final = 4
"""The last fourth of the connections of a second is for origins that have had few."""
_FEW: Final = 8


class AcceptRate:
    """Decides whether one more connection is accepted in this second; the owner supplies the time.

    Args:
        total: connections accepted in a second.
        per_origin: the same, from one IPv4 address or one IPv6 network of 64 bits.
    """

    def __init__(self, total: int, per_origin: int) -> None:
        self._total, self._per_origin = total, per_origin
        self._began = float("-inf")
        self._count = 0
        self._of: Counter[str] = Counter()  # no more entries than are accepted in a second

    def admits(self, address: str, now: float, *, known: bool = False) -> bool:
        """Count a connection; return False if it is one too many. `now` is in seconds.

        A known origin has its own limit only.
        """
        if now - self._began >= _SECOND:
            self._began, self._count = now, 0
            self._of.clear()
        origin = origin_of(address)
        had = self._of.get(origin, 0)
        if had >= self._per_origin or not (known or self._has_room(had)):
            return False
        self._of[origin] = had + 1
        self._count += 1
        return True

    def _has_room(self, had: int) -> bool:
        """Return whether the limit of all leaves room for an origin that had this number."""
        reserve = self._total // _RESERVE if had >= _FEW else 0
        return self._count < self._total - reserve
