"""Association groups of a server, the scope of its context handles: [MS-RPCE] 3.3.1.1.1 and 3.3.1.5.7."""

from __future__ import annotations

from typing import Final

_LAST: Final = 0xFFFF_FFFF


class AssociationGroups:
    """The groups that the associations of a server belong to; one goes with its last association."""

    def __init__(self) -> None:
        self._members: dict[int, int] = {}
        self._origins: dict[int, str] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._members)

    def join(self, group: int, origin: str) -> int | None:
        """Return the group that an association from the address `origin` joins; 0 asks for a new one.

        None for a group that is not there, or that was begun from another address.
        """
        if group == 0:
            while self._next in self._members:
                self._next = self._next % _LAST + 1
            group, self._next = self._next, self._next % _LAST + 1
            self._members[group], self._origins[group] = 0, origin
        elif self._origins.get(group) != origin:
            return None
        self._members[group] += 1
        return group

    def leave(self, group: int) -> bool:
        """Take an association out of its group, and return whether the group ended with it."""
        self._members[group] -= 1
        if self._members[group]:
            return False
        del self._members[group], self._origins[group]
        return True
