"""Members of origins, of which the oldest one of the most crowded origin is found at once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

MemberT = TypeVar("MemberT", bound=Hashable)


class Crowd(Generic[MemberT]):
    """Members by origin; no operation takes longer with more of them.

    Attributes:
        most: the number of members of the most crowded origin.
    """

    def __init__(self) -> None:
        self._members: dict[str, dict[MemberT, None]] = {}  # by origin, the oldest first
        self._origins: dict[int, dict[str, None]] = {}  # by the number of their members
        self.most = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def of(self, origin: str) -> int:
        """Return the number of members of an origin."""
        return len(self._members.get(origin, ()))

    def has(self, member: MemberT, origin: str) -> bool:
        """Return whether an origin has a member."""
        return member in self._members.get(origin, ())

    def add(self, member: MemberT, origin: str) -> None:
        """Add the newest member of an origin."""
        members = self._members.setdefault(origin, {})
        members[member] = None
        self._size += 1
        self._move(origin, len(members) - 1, len(members))
        self.most = max(self.most, len(members))

    def remove(self, member: MemberT, origin: str) -> None:
        """Remove a member of an origin."""
        members = self._members[origin]
        del members[member]
        self._size -= 1
        if not members:
            del self._members[origin]
        self._move(origin, len(members) + 1, len(members))
        if self.most not in self._origins:
            self.most -= 1

    def oldest(self) -> MemberT | None:
        """Return the oldest member of the most crowded origin; None without members."""
        if not self.most:
            return None
        return self.oldest_of(next(iter(self._origins[self.most])))

    def oldest_of(self, origin: str) -> MemberT | None:
        """Return the oldest member of an origin; None if it has none."""
        return next(iter(self._members.get(origin, ())), None)

    def _move(self, origin: str, before: int, after: int) -> None:
        """Note the number of members of an origin."""
        if before:
            alike = self._origins[before]
            del alike[origin]
            if not alike:
                del self._origins[before]
        if after:
            self._origins.setdefault(after, {})[origin] = None
