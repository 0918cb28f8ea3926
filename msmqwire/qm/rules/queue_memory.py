"""The memory of outgoing queues that messages of peers ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.names import FormatName
from msmqwire.qm.model.context import Context
from msmqwire.qm.rules.memory_pool import Kind, MemoryPool
from msmqwire.qm.rules.queues import outgoing_bytes

_FULL_MS: Final = 1_000
"""The pause in the search for idle outgoing queues after none were found."""


class QueueMemory:
    """Decides whether one more outgoing queue is opened for an origin; idle ones of any protocol make room.

    Attributes:
        forget_idle: functions, one for each protocol, that delete the idle outgoing queues of an origin.
    """

    def __init__(self, context: Context, pool: MemoryPool) -> None:
        self._context, self._pool = context, pool
        self._full_until = 0
        self.forget_idle: Final = list[Callable[[str], None]]()

    def fits(self, name: FormatName, origin: str) -> bool:
        """Return whether there is memory for an outgoing queue; delete idle ones if needed."""
        pool, size = self._pool, outgoing_bytes(name)
        if pool.fits(Kind.QUEUES, origin, size):
            return True
        if self._context.now >= self._full_until:  # it takes long if there are many
            crowding = pool.crowding(Kind.QUEUES, origin, size)
            for forget_idle in self.forget_idle:
                forget_idle(crowding)
        if pool.fits(Kind.QUEUES, origin, size):
            return True
        self._full_until = self._context.now + _FULL_MS
        self._context.trouble("memory", f"no more outgoing queues for messages of {origin}")
        return False
