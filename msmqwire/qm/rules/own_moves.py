"""Moves that the queue manager makes by itself: of poison messages, and of the oldest of a full queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from msmqwire.constants import MessageClass
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import MoveReason, PositionState, QueueType
from msmqwire.qm.model.policies import DEAD_LETTERS, OLDEST, is_governed
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.refusals import QUOTA
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.quotas import kilobytes, over_quota

POISON: Final = "poison"
"""The name of the subqueue of poison messages."""
SHARE_PERCENT: Final = 10
"""The percentage of the quota of the queue manager that dead letters of policies may have."""
PASSED_MAX: Final = 1_000
"""The messages that readers have which are passed while the oldest one is looked for."""
_REJECTED: Final = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
_PURGED: Final = MessageClass.MQMSG_CLASS_NACK_Q_PURGED


class OwnMoves:
    """Moves messages to the subqueue of poison messages and to the dead-letter queues.

    Messages that it has moved to the dead-letter queues have a share of the quota of the queue manager.
    Beyond it the oldest of them are dropped, and counted as refused.

    Attributes:
        dropped: the number of messages dropped since the start.
    """

    def __init__(
        self, context: Context, messages: MessageEvents, poison_queue: Callable[[Queue], Queue | None]
    ) -> None:
        """`poison_queue` returns the subqueue for poison messages of a queue, made if it is missing."""
        self._context, self._messages, self._poison_queue = context, messages, poison_queue
        self._dead: deque[MessagePosition] = deque()  # oldest first; some may have left
        self._dead_bytes = 0
        self.dropped = 0
        messages.when_full, messages.when_gone = self.make_room, self._gone
        messages.deliveries.at_limit = self.at_limit

    def restore(self) -> None:
        """Count the dead letters of a store."""
        manager = self._context.queue_manager
        for queue in (manager.system_deadletter_queue, manager.system_transactional_deadletter_queue):
            if queue is not None:
                self._dead += [position for position in queue.positions if position.history.reason]
        self._dead = deque(sorted(self._dead, key=_age))
        self._dead_bytes = sum(position.size for position in self._dead)

    # -- poison messages ------------------------------------------------------------------------------------

    def at_limit(self, position: MessagePosition) -> bool:
        """Move a message that was given back if it has reached the limit of its queue; return whether it has.

        Messages in the subqueue of poison messages are not moved again, nor are those that have expired. One
        that can't be moved stays in its queue.
        """
        queue = position.queue
        limit = queue.delivery_limit
        if not limit or position.history.deliveries < limit or position.expired or not is_governed(queue):
            return False
        if queue.pathname.lower().endswith(f";{POISON}"):
            return False
        if queue.poison == DEAD_LETTERS:
            return self._to_dead_letters(position, MoveReason.DELIVERY_LIMIT)
        target = self._poison_queue(queue)
        if target is None:
            return False
        self._messages.transfer(position, target, MoveReason.DELIVERY_LIMIT)
        return True

    # -- full queues ----------------------------------------------------------------------------------------

    def make_room(self, queue: Queue, size: int) -> bool:
        """Move the oldest messages of a full queue to the dead letters; return whether there is room then.

        Nothing is moved if that would not suffice: messages that readers have stay.
        """
        if queue.when_full != OLDEST or not is_governed(queue):
            return False
        lacking = queue.total_bytes + size - kilobytes(queue.quota)
        if size > kilobytes(queue.quota):
            return False
        oldest = _oldest(queue, lacking)
        if sum(position.size for position in oldest) < lacking:
            return False
        for position in oldest:
            if not self._to_dead_letters(position, MoveReason.QUOTA):
                return False
        return not over_quota(queue, size)

    # -- dead letters ---------------------------------------------------------------------------------------

    def _to_dead_letters(self, position: MessagePosition, reason: MoveReason) -> bool:
        """Move a message to a dead-letter queue, as a message that its queue has given up; return whether
        there is room.

        Its sender is notified as if it had been rejected by its reader, or purged.
        """
        manager, queue = self._context.queue_manager, position.queue
        target = manager.system_deadletter_queue
        if queue.transactional:
            target = manager.system_transactional_deadletter_queue
        if target is None or over_quota(target, position.size) or not self._make_share(position.size):
            return False
        delivery = reason is MoveReason.DELIVERY_LIMIT
        message_class = _REJECTED if delivery else _PURGED
        known = position.message if position.in_memory or not position.silent else None
        why = "given back as often as its queue allows" if delivery else "the oldest of a full queue"
        self._context.refused(
            message_class if delivery else QUOTA,
            known,
            queue,
            why=f"{why}: it is a dead letter",
        )
        self._messages.report_removed(queue, position, message_class)
        moved = self._messages.transfer(position, target, reason)
        self._dead.append(moved)
        self._dead_bytes += moved.size
        return True

    def _make_share(self, size: int) -> bool:
        """Drop the oldest dead letters beyond the share; return whether one more message fits into it."""
        share = self._context.queue_manager.queue_manager_quota * SHARE_PERCENT // 100
        if size > share:
            return False
        for _ in range(len(self._dead)):
            if self._dead_bytes + size <= share:
                break
            position = self._dead.popleft()
            if not position.listed:
                continue
            if position.state is not PositionState.AVAILABLE:
                self._dead.append(position)  # a reader has it
                continue
            self.dropped += 1
            known = position.message if position.in_memory else None
            why = "dead letters of policies have their share of the quota: the oldest is dropped"
            self._context.refused(QUOTA, known, position.queue, why=why, kind="quota")
            self._messages.discard(position)
        return self._dead_bytes + size <= share

    def _gone(self, position: MessagePosition) -> None:
        """A message leaves the queue that it was moved to."""
        if position.queue.queue_type is QueueType.SYSTEM:
            self._dead_bytes -= position.size


def _age(position: MessagePosition) -> int:
    return position.lookup_identifier & _LOW_BYTES


_LOW_BYTES: Final = (1 << 56) - 1


def _oldest(queue: Queue, lacking: int) -> list[MessagePosition]:
    """Return the oldest available messages of all priorities that have so many bytes, or all."""
    heads = [_available(head, PASSED_MAX) for head in queue.positions.heads()]
    oldest: list[MessagePosition] = []
    while lacking > 0 and any(heads):
        first = min((head for head in heads if head is not None), key=_age)
        oldest.append(first)
        lacking -= first.size
        heads[heads.index(first)] = _available(first.next, PASSED_MAX)
    return oldest


def _available(position: MessagePosition, most: int) -> MessagePosition | None:
    """Return the first available position of the same priority from one on; None if none is near."""
    priority = position.lookup_identifier >> 56
    for _ in range(most):
        if position.lookup_identifier >> 56 != priority:
            return None
        if position.state is PositionState.AVAILABLE and position.listed:
            return position
        position = position.next
    return None
