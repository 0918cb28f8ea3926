"""Memory for incomplete packets, bounded over all connections."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

HolderT = TypeVar("HolderT", bound=Hashable)


class _Wait(NamedTuple):
    bytes: int
    since: float


class PartialPackets(Generic[HolderT]):
    """Bytes of incomplete packets by connection.

    Args:
        limit: the limit of their sum.

    Attributes:
        total: their sum.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waits: dict[HolderT, _Wait] = {}
        self.total = 0

    def update(self, connection: HolderT, size: int, now: float, *, received: int) -> None:
        """Set the bytes of an incomplete packet that a connection holds after `received` more."""
        before = self._waits.pop(connection, None)
        held = before.bytes if before is not None else 0
        self.total += size - held
        if size:
            is_same = before is not None and size == held + received  # no packet has ended
            self._waits[connection] = _Wait(size, before.since if before is not None and is_same else now)

    def of(self, connection: HolderT) -> int:
        """Return the bytes last set for a connection."""
        wait = self._waits.get(connection)
        return 0 if wait is None else wait.bytes

    def forget(self, connection: HolderT) -> None:
        """A connection has ended."""
        wait = self._waits.pop(connection, None)
        if wait is not None:
            self.total -= wait.bytes

    @property
    def is_exceeded(self) -> bool:
        """Whether their sum is beyond the limit."""
        return self.total > self._limit

    def excess(self, now: float) -> HolderT | None:
        """Return the connection to close next; None if all are within the limit.

        It is the one with the largest wait: its bytes times the seconds begun. Many small packets that never
        end are closed before a large one under way.
        """
        if not self.is_exceeded:
            return None
        waits = self._waits
        return max(waits, key=lambda holder: waits[holder].bytes * (1 + int(now - waits[holder].since)))
