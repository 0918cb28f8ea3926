"""The quotas of queues and of the queue manager, and the memory of express messages."""

from __future__ import annotations

from typing import Final

from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.refusals import DISK, MEMORY, QUOTA
from msmqwire.qm.rules.memory_pool import Kind, MemoryPool, express_bytes

_KILOBYTE: Final = 1024


class Quotas:
    """Counts the bytes of the messages of one queue manager."""

    def __init__(self, manager: QueueManager, pool: MemoryPool) -> None:
        """Create the counts. `pool` counts the memory that peers can make the queue manager use."""
        self._manager, self._pool = manager, pool

    def lacking(self, message: Message, size: int) -> str:
        """Return the resource that the queue manager lacks for one more message: empty if it has room."""
        manager = self._manager
        if manager.throttled:  # DMPR-3.1.7.1.9-02
            return DISK
        if manager.total_bytes + size > manager.queue_manager_quota:  # DMPR-3.1.7.1.9-03
            return QUOTA
        fits = message.recoverable or self._pool.fits(
            Kind.EXPRESS, message.origin, size + express_bytes(message)
        )
        return "" if fits else MEMORY

    def count(self, position: MessagePosition) -> None:
        """Count a message towards the quotas."""
        if not position.counted:
            position.counted = True
            position.queue.total_bytes += position.size  # DMPR-3.1.7.2.2-01
            self._manager.total_bytes += position.size
            if not position.recoverable:
                position.charged_to = position.message.origin
                position.charged_bytes = position.size + express_bytes(position.message)
                self._pool.take(Kind.EXPRESS, position.charged_to, position.charged_bytes)

    def uncount(self, position: MessagePosition) -> None:
        """Count a message towards the quotas no longer."""
        if position.counted:
            position.counted = False
            position.queue.total_bytes -= position.size  # DMPR-3.1.7.2.1-01
            self._manager.total_bytes -= position.size
            if position.charged_to is not None:
                self._pool.give_back(Kind.EXPRESS, position.charged_to, position.charged_bytes)
                position.charged_to = None


def over_quota(queue: Queue, size: int) -> bool:
    """Whether one more message, of `size` bytes, is more than the quota of a queue allows."""
    # DMPR-3.1.1.2-10
    return queue.quota != INFINITE and queue.total_bytes + size > queue.quota * _KILOBYTE  # DMPR-3.1.7.1.9-04
