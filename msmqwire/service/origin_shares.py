"""One resource in shares: a part at most for each unknown origin, and a reserve for known ones."""

from __future__ import annotations

from collections.abc import Container
from heapq import nlargest
from typing import Final, NamedTuple

_LITTLE: Final = 64
"""An origin uses little that has up to this part of the resource."""
_LARGEST: Final = 64
"""The origins that are looked at together: there may be 10,000s of them, and each has to be found once."""


class UseByStanding(NamedTuple):
    """The use of a resource by this computer's owner, by known origins, and by unknown ones."""

    owner: int
    known: int
    unknown: int


class OriginShares:
    """Counts the use of one resource by origin, and decides whether an origin may use more.

    Origins are those of `origin_of`; the empty one is the owner of the service. The owner and known
    origins are bound by the limit alone. An unknown origin has a part of it at most, and leaves a reserve; an
    origin that uses little leaves half of that.

    Attributes:
        limit: bytes for all origins together; `resize` changes it.
        per_origin: the most bytes of an unknown origin.
        used: bytes in use.
    """

    __slots__ = (
        "_by_origin", "_floor", "_for_any", "_for_little", "_known", "_largest", "_little", "_own",
        "_reserve", "limit", "per_origin", "used",
    )  # fmt: skip

    def __init__(self, limit: int, known: Container[str], *, own: int = 25, reserve: int = 25) -> None:
        """Create the counts.

        Args:
            limit: bytes for all origins together.
            known: the known origins; there may be more of them later.
            own, reserve: the part of an unknown origin, and the reserve, in percent.
        """
        self._known, self._own, self._reserve = known, own, reserve
        self._by_origin: dict[str, int] = {}
        self._largest: dict[str, None] = {}  # all origins that use more than the floor, and others
        self._floor = float("inf")
        self.used = 0
        self.resize(limit)

    def resize(self, limit: int) -> None:
        """Change the limit."""
        self.limit, self.per_origin = limit, limit * self._own // 100
        self._little, reserve = limit // _LITTLE, limit * self._reserve // 100
        self._for_any, self._for_little = limit - reserve, limit - reserve // 2

    def used_by(self, origin: str) -> int:
        """Return the bytes in use for an origin."""
        return self._by_origin.get(origin, 0)

    def is_known(self, origin: str) -> bool:
        """Return whether an origin is bound by the limit alone."""
        return not origin or origin in self._known

    def fits(self, origin: str, size: int) -> bool:
        """Return whether `size` more bytes may be used for an origin."""
        used = self.used + size
        if not origin or origin in self._known:
            return used <= self.limit
        own = self._by_origin.get(origin, 0) + size
        most = self._for_little if own <= self._little else self._for_any
        return own <= self.per_origin and used <= most

    def crowding(self, origin: str, size: int) -> str:
        """Return the origin that has to make room, if `size` more bytes do not fit for `origin`."""
        if origin not in self._known and self.used_by(origin) + size > self.per_origin:
            return origin
        if 0 < len(self._largest) <= 2 * _LARGEST:
            found = max(self._largest, key=self._by_origin.__getitem__)
            if self._by_origin[found] >= self._floor:
                return found
        return self._find_largest(origin)

    def _find_largest(self, default: str) -> str:
        """Find the origins that use most; return the first of them."""
        largest = nlargest(_LARGEST, self._by_origin, key=self._by_origin.__getitem__)
        self._largest = dict.fromkeys(largest)
        self._floor = self._by_origin[largest[-1]] if largest else float("inf")
        return largest[0] if largest else default

    def take(self, origin: str, size: int) -> None:
        """Count bytes used for an origin."""
        self.used += size
        self._by_origin[origin] = used = self._by_origin.get(origin, 0) + size
        if used > self._floor:
            self._largest[origin] = None

    def give_back(self, origin: str, size: int) -> None:
        """Count bytes as free again."""
        self.used -= size
        left = self._by_origin[origin] - size
        if left:
            self._by_origin[origin] = left
        else:
            del self._by_origin[origin]
            self._largest.pop(origin, None)

    def by_origin(self) -> dict[str, int]:
        """Return the bytes in use by origin."""
        return dict(self._by_origin)

    def by_standing(self) -> UseByStanding:
        """Return the bytes in use by the standing of their origins now."""
        owner = self.used_by("")
        known = sum(used for origin, used in self._by_origin.items() if origin and origin in self._known)
        return UseByStanding(owner, known, self.used - owner - known)
