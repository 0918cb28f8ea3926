"""Members of origins, of which the oldest one of the most crowded origin is found at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

MemberT = TypeVar("MemberT", bound=Hashable)


class Crowd(Generic[MemberT]):
    """Members by origin; no operation takes longer with more of them.

    Attributes:
        most: the number of members of the most crowded origin.
    """

    def __init__(self) -> None:
        self._origin_of: dict[MemberT, str] = {}
        self._members: dict[str, dict[MemberT, None]] = {}  # by origin, the oldest first
        self._origins: dict[int, dict[str, None]] = {}  # by the number of their members
        self.most = 0

    def __len__(self) -> int:
        return len(self._origin_of)

    def __contains__(self, member: MemberT) -> bool:
        return member in self._origin_of

    def __iter__(self) -> Iterator[MemberT]:
        return iter(self._origin_of)

    def of(self, origin: str) -> int:
        """Return the number of members of an origin."""
        return len(self._members.get(origin, ()))

    def add(self, member: MemberT, origin: str) -> None:
        """Add the newest member of an origin."""
        members = self._members.setdefault(origin, {})
        members[member] = None
        self._origin_of[member] = origin
        self._move(origin, len(members) - 1, len(members))
        self.most = max(self.most, len(members))

    def discard(self, member: MemberT) -> bool:
        """Remove a member; return whether it was one."""
        origin = self._origin_of.pop(member, None)
        if origin is None:
            return False
        members = self._members[origin]
        del members[member]
        if not members:
            del self._members[origin]
        self._move(origin, len(members) + 1, len(members))
        if self.most not in self._origins:
            self.most -= 1
        return True

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
