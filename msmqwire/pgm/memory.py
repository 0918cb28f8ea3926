"""The memory of all sources that a receiver, or several of them, follow: data that wait after gaps."""

from __future__ import annotations

from typing import Final, Protocol

MEMORY_MAX: Final = 16 << 20
"""Bytes of all sources together; our own limit."""


class Holder(Protocol):
    """A receive window."""

    def release(self) -> None:
        """Give back all that is held: it can be asked for again."""


class Memory:
    """Bytes held by each window. The window that takes most gives way when there is no more.

    Attributes:
        used: the bytes held by all.
    """

    def __init__(self, limit: int = MEMORY_MAX) -> None:
        self.used, self._limit = 0, limit
        self._held: Final = dict[Holder, int]()

    def take(self, holder: Holder, size: int) -> bool:
        """Take `size` bytes for a window, from the one that holds most if need be.

        Return False if this would hold the most itself then.
        """
        held = self._held.get(holder, 0) + size
        while self.used + size > self._limit:
            greatest = max(self._held, key=self._held.__getitem__, default=holder)
            if greatest is holder or self._held[greatest] < held:
                return False
            greatest.release()
        self._held[holder] = held
        self.used += size
        return True

    def give_back(self, holder: Holder, size: int) -> None:
        """Return bytes that were taken."""
        left = self._held[holder] - size
        if left:
            self._held[holder] = left
        else:
            del self._held[holder]
        self.used -= size
