"""The quotas of queues and of the queue manager, its shares by origin, and the memory of express messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.refusals import DISK, MEMORY, QUOTA, SHARE
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.rules.memory_pool import Kind, MemoryPool, express_bytes
from msmqwire.service.origin_shares import OriginShares

_KILOBYTE: Final = 1024

NO_ROOM: Final = {
    DISK: "the disk is almost full",
    QUOTA: "the queue manager has no room",
    SHARE: "its origin has its share of the quota, or of the disk",
    MEMORY: "there is no memory for more express messages of its origin",
}
"""The reason of a refusal by the resource that `Quotas.lacking` returns."""

COPY_LOST: Final = "the queue is full: the copy of the message is lost"


class Quotas:
    """Counts the bytes of the messages of one queue manager.

    Attributes:
        shares: the bytes of all messages by origin, journals and dead-letter queues included. Their limit is
            QueueManagerQuota, or what the disk can hold if that is less.
    """

    def __init__(self, manager: QueueManager, pool: MemoryPool, settings: Settings) -> None:
        """Create the counts. `pool` counts the memory that peers can make the queue manager use."""
        self._manager, self._pool = manager, pool
        self._quota = manager.queue_manager_quota
        self._disk: int | None = None  # the bytes that it can hold; None if it is not watched
        self.shares = OriginShares(
            self._quota, pool.known, own=settings.quota_per_origin_percent,
            reserve=settings.quota_reserve_percent,
        )  # fmt: skip

    def disk_has(self, spare: int) -> None:
        """Take note of the bytes that the disk can hold beside the messages of now."""
        self._disk = self._manager.total_bytes + max(spare, 0)
        self._resize()

    def _resize(self) -> None:
        self._quota = self._manager.queue_manager_quota
        self.shares.resize(self._quota if self._disk is None else min(self._quota, self._disk))

    def lacking(self, message: Message, size: int) -> str:
        """Return the resource that the queue manager lacks for one more message: empty if it has room."""
        manager = self._manager
        if manager.throttled:  # DMPR-3.1.7.1.9-02
            return DISK
        if manager.total_bytes + size > manager.queue_manager_quota:  # DMPR-3.1.7.1.9-03
            return QUOTA
        if not self.has_share(message.origin, size):
            return SHARE
        fits = message.recoverable or self._pool.fits(
            Kind.EXPRESS, message.origin, size + express_bytes(message)
        )
        return "" if fits else MEMORY

    def has_share(self, origin: str, size: int) -> bool:
        """Return whether an origin may have `size` more bytes; known ones are bound by the quotas alone."""
        if self._manager.queue_manager_quota != self._quota:
            self._resize()
        return self.shares.is_known(origin) or self.shares.fits(origin, size)

    def count(self, position: MessagePosition) -> None:
        """Count a message towards the quotas."""
        if not position.counted:
            position.counted = True
            position.queue.total_bytes += position.size  # DMPR-3.1.7.2.2-01
            self._manager.total_bytes += position.size
            self.shares.take(position.origin, position.size)
            if not position.recoverable:
                position.charged_bytes = position.size + express_bytes(position.message)
                self._pool.take(Kind.EXPRESS, position.origin, position.charged_bytes)

    def count_stored(self, positions: Sequence[MessagePosition]) -> None:
        """Count the stored messages of a queue, as `count` does each: there may be millions."""
        total, by_origin = 0, defaultdict[str, int](int)
        for position in positions:
            position.counted = True
            total += position.size
            by_origin[position.origin] += position.size
        positions[0].queue.total_bytes += total
        self._manager.total_bytes += total
        for origin, size in by_origin.items():
            self.shares.take(origin, size)

    def uncount(self, position: MessagePosition) -> None:
        """Count a message towards the quotas no longer."""
        if position.counted:
            position.counted = False
            position.queue.total_bytes -= position.size  # DMPR-3.1.7.2.1-01
            self._manager.total_bytes -= position.size
            self.shares.give_back(position.origin, position.size)
            if position.charged_bytes:
                self._pool.give_back(Kind.EXPRESS, position.origin, position.charged_bytes)
                position.charged_bytes = 0


def kilobytes(count: int) -> int:
    """Return the bytes of kilobytes."""
    return count * _KILOBYTE


def over_quota(queue: Queue, size: int) -> bool:
    """Whether one more message, of `size` bytes, is more than the quota of a queue allows."""
    # DMPR-3.1.1.2-10
    return queue.quota != INFINITE and queue.total_bytes + size > queue.quota * _KILOBYTE  # DMPR-3.1.7.1.9-04
