"""Messages enqueued, read, moved and deleted: [MS-MQDMPR] 3.1.7.1.7 to 3.1.7.1.17 and 3.1.7.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.names.origins import UNKNOWN_ORIGIN
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import (
    Cursor,
    OpenQueueDescriptor,
    OutgoingQueue,
    Queue,
    Transaction,
    TransactionalOperation,
    WaitingMessageReadOperation,
)
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AuthenticationLevel,
    CursorResult,
    DeliveryGuarantee,
    EnqueueStatus,
    MessageSeekAction,
    MoveReason,
    OperationType,
    PositionState,
    QueueType,
)
from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import PRIORITY_SHIFT, MessagePosition
from msmqwire.qm.model.refusals import QUOTA, reason_of
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules import cursors, serialization, stored_rows
from msmqwire.qm.rules.deliveries import Deliveries
from msmqwire.qm.rules.expiry import Expiry
from msmqwire.qm.rules.memory_pool import MemoryPool
from msmqwire.qm.rules.message_memory import MessageMemory
from msmqwire.qm.rules.quotas import COPY_LOST, NO_ROOM, Quotas, over_quota
from msmqwire.qm.rules.read_results import FAILED, ReadOutcome
from msmqwire.qm.rules.seek import seek_available, seek_with_id
from msmqwire.qm.rules.unreadable import outcome_of
from msmqwire.qm.rules.waiting_reads import WaitingReads

_LOW_BYTES: Final = (1 << PRIORITY_SHIFT) - 1
_AVAILABLE: Final = PositionState.AVAILABLE  # an attribute of an enumeration takes longer to find
_DELETED: Final = PositionState.DELETED
_OK: Final = EnqueueStatus.OK
_SEQUENTIAL_IDS_RESERVED: Final = 4096  # by one write to the store


class MessageEvents:
    """The events on messages of one queue manager.

    Attributes:
        memory: the stored messages that are also in memory.
        pool: counts the memory that peers can make the queue manager use.
        quotas: counts the bytes of messages.
        waiting_reads: the reads that wait for a message.
        expiry: the ends of messages that are not received in time.
        deliveries: the messages that programs have and give back.
        when_full: called with a full queue and the bytes of a message; returns whether it has made room.
        when_gone: called with each message that leaves a queue which the queue manager had moved it to.
        when_arrived: called with each message sent by this queue manager that has reached its destination
            queue here.
        when_removed: called with each message that leaves a queue and the reason, before the protocols are
            notified.
    """

    def __init__(self, context: Context, hand_outs: HandOuts | None = None) -> None:
        self._context = context
        self._stored_sequential_id = 0
        self.memory = MessageMemory(context.settings.memory_for_recoverable)
        self.pool = MemoryPool(context.settings.memory)
        self.quotas = Quotas(context.queue_manager, self.pool, context.settings)
        self.waiting_reads = WaitingReads(context, self._receive)
        self.expiry = Expiry(context, self)
        self.deliveries = Deliveries(self, hand_outs or HandOuts())
        self.when_full: Callable[[Queue, int], bool] | None = None
        self.when_gone: Callable[[MessagePosition], None] | None = None
        self.when_arrived: Callable[[Message], None] | None = None
        self.when_removed: Callable[[Queue, MessagePosition, int], None] | None = None

    # -- enqueuing ----------------------------------------------------------------------------------

    def enqueue(
        self,
        queue: Queue,
        message: Message,
        transaction: Transaction | None = None,
        *,
        ignore_quota: bool = False,
    ) -> EnqueueStatus:
        """Enqueue Message: [MS-MQDMPR] 3.1.7.1.9.

        Args:
            ignore_quota: enqueue in spite of flow control and the quota of the queue manager: an
                acknowledgement that can't be enqueued when it is due is lost for good.

        Raises InvalidValue and InvalidName for a message that no packet can hold.
        """
        context = self._context
        if transaction is not None and not (transaction.plain or message.transactional):
            message.transaction_identifier = transaction.identifier  # DMPR-3.1.1.12-71
            message.delivery_guarantee = DeliveryGuarantee.RECOVERABLE
            message.priority = 0
        if message.packet is None:
            # Before the insertion: raises for a message that no packet can hold.
            message.packet = serialization.to_packet(message)
        size = serialization.packet_size(message)
        if not ignore_quota and (lacking := self.quotas.lacking(message, size)):  # MQMQ-2.3.1.5-02
            context.refused(lacking, message, queue, why=NO_ROOM[lacking])
            return EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED
        if over_quota(queue, size) and not (self.when_full is not None and self.when_full(queue, size)):
            context.refused(QUOTA, message, queue, why="the queue is full", kind="quota")
            return EnqueueStatus.QUEUE_QUOTA_EXCEEDED
        position = self._insert(queue, message, size)
        self.expiry.start(position, message)  # DMPR-3.1.7.1.9-08
        if transaction is None:
            self.position_available(queue, position)  # DMPR-3.1.7.1.9-10
        else:
            position.state = PositionState.LOCKED  # DMPR-3.1.7.1.9-09
            position.transaction = True
            # DMPR-3.1.1.13-02, DMPR-3.1.7.1.9-09
            transaction.operations.append(TransactionalOperation(OperationType.ENQUEUE, position))
        return _OK

    def enqueue_to_open_queue(
        self,
        descriptor: OpenQueueDescriptor,
        message: Message,
        transaction: Transaction | None = None,
        *,
        ignore_quota: bool = False,
    ) -> EnqueueStatus | HResult:
        """Enqueue Message To An Open Queue: [MS-MQDMPR] 3.1.7.1.27. `ignore_quota` as in `enqueue`.

        Returns MQ_ERROR_QUEUE_NOT_AVAILABLE, as reads do, if the queue was deleted since it was opened.
        """
        if not descriptor.multiple:  # DMPR-3.1.7.1.27-01
            if descriptor.queue is None:
                return HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE
            if isinstance(descriptor.queue, OutgoingQueue) and not message.acknowledgements_requested:
                message.administration = None  # MQMQ-2.2.19.2-26
            result = self.enqueue(descriptor.queue, message, transaction, ignore_quota=ignore_quota)
            if result is _OK and transaction is None:
                self.arrived(descriptor.queue, message)
            return result
        names = tuple(child.format_name for child in descriptor.children)
        for child in descriptor.children:
            copy = message.copy(destinations=names, destination=child.format_name)  # DMPR-3.1.7.1.27-02
            status = self.enqueue_to_open_queue(child, copy, transaction, ignore_quota=ignore_quota)
            if status:  # DMPR-3.1.7.1.27-03
                return status
        return EnqueueStatus.OK

    def arrived(self, queue: Queue, message: Message) -> None:
        """Report a message sent here as arrived, unless it still has to be transferred."""
        if self.when_arrived is not None and not isinstance(queue, OutgoingQueue):
            self.when_arrived(message)

    def _insert(self, queue: Queue, message: Message, size: int) -> MessagePosition:
        """Insert a message into a queue by its LookupIdentifier; return its position."""
        context = self._context
        manager = context.queue_manager
        manager.sequential_id += 1  # DMPR-3.1.7.1.9-05
        if manager.sequential_id > self._stored_sequential_id:
            self.store_sequential_id(ahead=_SEQUENTIAL_IDS_RESERVED)
        position = MessagePosition(queue, manager.sequential_id, self._lookup_identifier(message), size)
        message.lookup_identifier = position.lookup_identifier  # DMPR-3.1.1.12-01
        message.arrival_time = context.utc  # DMPR-3.1.1.12-05
        position.keep_in_memory(message)  # DMPR-3.1.1-09
        position.recoverable = message.recoverable  # MQMQ-2.2.19.2-12
        queue.positions.insert(position)  # DMPR-3.1.7.1.9-07
        self.quotas.count(position)
        return position

    def store_sequential_id(self, *, ahead: int = 0) -> None:
        """Store SequentialID, increased by `ahead`: DMPR-3.1.1.1-49.

        It is stored exactly when the queue manager is stopped in order. While it runs, a value ahead of it is
        stored once for many messages, so that express messages do not touch the disk; after a crash the count
        continues from the stored value.
        """
        self._stored_sequential_id = self._context.queue_manager.sequential_id + ahead
        stored_rows.put_sequential_id(self._context.changes, self._stored_sequential_id)

    def _lookup_identifier(self, message: Message) -> int:
        """Return the LookupIdentifier: DMPR-3.1.7.1.9-06. A setting decides when the priority is part of
        it.
        """
        by_priority = message.transactional or message.transaction_identifier is not None
        if not self._context.settings.lookup_priority_of_transactional:
            by_priority = not by_priority
        high = 7 - message.priority if by_priority else 0
        # DMPR-3.1.1.12-01
        return high << PRIORITY_SHIFT | self._context.queue_manager.sequential_id & _LOW_BYTES

    # -- positions ----------------------------------------------------------------------------------

    def position_available(self, queue: Queue, position: MessagePosition) -> None:
        """Message Position Available: [MS-MQDMPR] 3.1.7.2.2."""
        position.state = _AVAILABLE  # DMPR-3.1.7.2.2-01
        position.transaction = False
        if position.expired:
            self.position_deleted(queue, position, MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT)
            return
        queue.positions.became_available(position)
        if position.in_memory and isinstance(queue, OutgoingQueue) and position.message.packet is None:
            # Built once, for the store and for sending.
            position.message.packet = serialization.to_packet(position.message)
        if position.recoverable:  # MQMQ-2.2.19.2-12 and SRMP-2.2.5.2.1-03, DMPR-3.1.1-13, DMPR-3.1.1.11-06
            if not position.stored:
                self.memory.add(position)
            # SRMP-2.2.5.2.1-03 and SRMP-2.2.5.2.1-04
            stored_rows.put_message(self._context.changes, position)
        if position.in_memory and not isinstance(queue, OutgoingQueue):
            position.message.packet = None  # otherwise the body would be in memory twice
        if self.waiting_reads.offer(queue, position):
            return
        for subscriber in self._context.subscribers:
            subscriber.message_position_available(queue, position)  # DMPR-3.1.7.2-01

    def position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """Message Position Deleted: [MS-MQDMPR] 3.1.7.2.1. `reason` is a message class."""
        if reason != MessageClass.MQMSG_CLASS_ACK_RECEIVE and reason_of(reason) is not None:
            # A message that is only in the store, and whose sender asked for no report, is not read for this.
            known = position.message if position.in_memory or not position.silent else None
            self._context.refused(reason, known, queue, peer=None if known else UNKNOWN_ORIGIN)
        self.report_removed(queue, position, reason)
        # MQMQ-2.3.1.4-02
        if reason == MessageClass.MQMSG_CLASS_ACK_RECEIVE and queue.journaling and queue.journal is not None:
            self.journal(position.message, queue.journal)
        self.discard(position)

    def report_removed(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """Notify the protocols, and the sender if it is one of here, that a message leaves its queue."""
        if self.when_removed is not None:
            self.when_removed(queue, position, reason)
        for subscriber in self._context.subscribers:
            subscriber.message_position_deleted(queue, position, reason)  # DMPR-3.1.7.2-01, DMPR-3.1.7.2.1-02

    def discard(self, position: MessagePosition) -> None:
        """Remove a position from its queue, and its message from the store."""
        self._leaves(position)
        position.state = _DELETED  # DMPR-3.1.7.2.1-01
        position.transaction = False
        position.queue.positions.remove(position)  # DMPR-3.1.7.2.1-01
        self._context.timers.stop(Timer.TIME_TO_BE_RECEIVED, position.number)
        if position.recoverable:
            stored_rows.delete_message(self._context.changes, position)

    def _leaves(self, position: MessagePosition) -> None:
        """A message leaves its queue."""
        self.quotas.uncount(position)
        self.deliveries.ended(position.lookup_identifier)
        if position.history.reason and self.when_gone is not None:
            self.when_gone(position)

    def journal(self, message: Message, journal: Queue) -> None:
        """Copy a message to a journal or dead-letter queue, if its quota allows: DMPR-3.1.1.12-22."""
        size = serialization.packet_size(message)
        if over_quota(journal, size):
            self._lost_copy(message, journal)
            return
        copy = message.copy(deliveries=0, move_reason=MoveReason.NONE)
        position = self._insert(journal, copy, size)
        self.position_available(journal, position)

    def _lost_copy(self, message: Message, queue: Queue) -> None:
        self._context.refused(QUOTA, message, queue, why=COPY_LOST, kind="quota")

    def lock(self, position: MessagePosition, transaction: Transaction | None, reason: int) -> None:
        """Lock a message that was read until its transaction or reader is done."""
        position.state = PositionState.LOCKED  # DMPR-3.1.1.11-03, DMPR-3.1.1-09
        if transaction is not None:
            position.transaction = True
            operation = TransactionalOperation(OperationType.DEQUEUE, position, dequeue_reason=reason)
            transaction.operations.append(operation)  # DMPR-3.1.1-09, DMPR-3.1.1.14-02

    # -- reading ------------------------------------------------------------------------------------

    def dequeue(
        self,
        descriptor: OpenQueueDescriptor,
        *,
        timeout: int = INFINITE,
        cursor: Cursor | None = None,
        transaction: Transaction | None = None,
        two_phase: bool = False,  # DMPR-3.1.7.1.10-02
        tag: object = None,
    ) -> ReadOutcome:
        """Dequeue Message: [MS-MQDMPR] 3.1.7.1.10. `timeout` is milliseconds."""
        queue = descriptor.queue
        if queue is None:  # DMPR-3.1.7.1.11-01, DMPR-3.1.7.3.1-01
            return ReadOutcome(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)  # DMPR-3.1.7.1.10-01 and -03
        position: MessagePosition | None
        if cursor is not None:  # DMPR-3.1.7.1.10-04 and -09
            result, position = cursors.get_next_message_for_dequeue(cursor, no_wait=timeout == 0)
            if result in FAILED:  # DMPR-3.1.7.1.10-05 and -06
                return ReadOutcome(FAILED[result])
        else:
            position = seek_available(queue, queue.positions.start)
        if position is None:  # DMPR-3.1.7.1.10-07, -08 and -10
            # DMPR-3.1.1.10-01
            reader = WaitingMessageReadOperation(descriptor, True, tag, cursor, transaction, two_phase)
            return self.waiting_reads.wait(reader, timeout)
        return self._receive(position, transaction, two_phase)

    def dequeue_begin(
        self,
        descriptor: OpenQueueDescriptor,
        *,
        timeout: int = INFINITE,
        cursor: Cursor | None = None,
        transaction: Transaction | None = None,
        tag: object = None,
    ) -> ReadOutcome:
        """Dequeue Message Begin: [MS-MQDMPR] 3.1.7.1.11. `timeout` is milliseconds."""
        return self.dequeue(  # DMPR-3.1.7.1.11-02
            descriptor, timeout=timeout, cursor=cursor, transaction=transaction, two_phase=True, tag=tag
        )

    def dequeue_end(
        self,
        descriptor: OpenQueueDescriptor,
        position: MessagePosition,
        *,
        delete: bool,
        transactional: bool = False,
    ) -> int:
        """Dequeue Message End: [MS-MQDMPR] 3.1.7.1.12."""
        if descriptor.queue is None:
            return HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE  # DMPR-3.1.7.1.12-01
        if position.state is PositionState.AVAILABLE or position.state is PositionState.DELETED:
            return HResult.MQ_ERROR_TRANSACTION_SEQUENCE  # DMPR-3.1.7.1.12-02
        if transactional:  # DMPR-3.1.7.1.12-03
            return MQ_OK
        if position.state is PositionState.PURGE_PENDING:  # DMPR-3.1.7.1.12-05
            self.position_deleted(position.queue, position, MessageClass.MQMSG_CLASS_NACK_Q_PURGED)
        elif delete:  # DMPR-3.1.7.1.12-04
            self.position_deleted(position.queue, position, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
        else:
            self.deliveries.given_back(position)  # DMPR-3.1.7.1.12-06
        return MQ_OK

    def read_by_lookup_identifier(
        self,
        descriptor: OpenQueueDescriptor,
        lookup_identifier: int,
        action: MessageSeekAction,
        *,
        peek: bool,
        transaction: Transaction | None = None,
        two_phase: bool = False,  # DMPR-3.1.7.1.13-02
    ) -> ReadOutcome:
        """Read Message By Lookup Identifier: [MS-MQDMPR] 3.1.7.1.13."""
        if descriptor.queue is None:
            return ReadOutcome(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)  # DMPR-3.1.7.1.13-01
        status, position = seek_with_id(descriptor.queue, lookup_identifier, action, peek=peek)
        if position is None:  # DMPR-3.1.7.1.13-03 and -04
            return ReadOutcome(status)
        if peek:  # DMPR-3.1.7.1.13-05
            return outcome_of(self._context, position)
        return self._receive(position, transaction, two_phase)

    def peek_next(
        self,
        descriptor: OpenQueueDescriptor,
        cursor: Cursor,
        *,
        timeout: int = INFINITE,
        tag: object = None,
    ) -> ReadOutcome:
        """Peek Next Message: [MS-MQDMPR] 3.1.7.1.14. `timeout` is milliseconds; `tag` as of a dequeue."""
        if descriptor.queue is None:
            return ReadOutcome(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)  # DMPR-3.1.7.1.14-01
        return self._peeked(descriptor, cursor, cursors.get_next_message_for_peek(cursor), timeout, tag)

    def peek(
        self,
        descriptor: OpenQueueDescriptor,
        *,
        timeout: int = INFINITE,
        cursor: Cursor | None = None,
        tag: object = None,
    ) -> ReadOutcome:
        """Peek Message: [MS-MQDMPR] 3.1.7.1.15. `timeout` is milliseconds; `tag` as of a dequeue."""
        queue = descriptor.queue
        if queue is None:
            return ReadOutcome(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)  # DMPR-3.1.7.1.15-01
        if cursor is not None:  # DMPR-3.1.7.1.15-02
            return self._peeked(descriptor, cursor, cursors.get_message_for_peek(cursor), timeout, tag)
        position = seek_available(queue, queue.positions.start, peek=True)  # DMPR-3.1.7.1.15-06
        result = CursorResult.WAITING if position is None else CursorResult.SUCCEEDED
        return self._peeked(descriptor, None, (result, position), timeout, tag)

    def _peeked(
        self,
        descriptor: OpenQueueDescriptor,
        cursor: Cursor | None,
        peeked: cursors.Result,
        timeout: int,
        tag: object,
    ) -> ReadOutcome:
        """Return the message that a peek gave, or wait for one."""
        result, position = peeked
        if result in FAILED:  # DMPR-3.1.7.1.14-03, DMPR-3.1.7.1.15-03
            return ReadOutcome(FAILED[result])
        if position is not None:  # DMPR-3.1.7.1.14-02, DMPR-3.1.7.1.15-02 and -06
            return outcome_of(self._context, position)
        return self.waiting_reads.wait(  # DMPR-3.1.7.1.14-04, DMPR-3.1.7.1.15-04 and -07
            WaitingMessageReadOperation(descriptor, False, tag, cursor),
            timeout,  # DMPR-3.1.1.10-01
        )

    def _receive(
        self, position: MessagePosition, transaction: Transaction | None, two_phase: bool
    ) -> ReadOutcome:
        """Give a message to its reader."""
        outcome = outcome_of(self._context, position)
        if outcome.message is None:
            return outcome
        # DMPR-3.1.7.1.10-11 and -12, DMPR-3.1.7.1.13-06
        if transaction is not None and transaction.identifier.int:
            self.lock(position, transaction, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
        elif two_phase:  # DMPR-3.1.7.1.10-13, DMPR-3.1.7.1.13-07
            self.lock(position, None, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
        else:  # DMPR-3.1.7.1.10-14, DMPR-3.1.7.1.13-08
            self.position_deleted(position.queue, position, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
        return outcome  # DMPR-3.1.7.1.10-15

    # -- moving and purging -------------------------------------------------------------------------

    def move(self, position: MessagePosition, target: Queue, transaction: Transaction | None = None) -> None:
        """Move Message: [MS-MQDMPR] 3.1.7.1.16. No `transaction` for a system queue: DMPR-3.1.7.1.16-01."""
        if transaction is not None:
            position.state = PositionState.LOCKED  # DMPR-3.1.7.1.16-04
            position.transaction = True
            # DMPR-3.1.1.13-03, DMPR-3.1.7.1.16-04
            transaction.operations.append(TransactionalOperation(OperationType.MOVE, position, target))
        else:
            self.transfer(position, target)

    def transfer(
        self, position: MessagePosition, target: Queue, reason: MoveReason = MoveReason.NONE
    ) -> MessagePosition:
        """Move a message to another queue now, and return its new position.

        A message for a system queue that is full is discarded. Its count of deliveries stays if the queue
        manager moves it for a `reason` of its own.
        """
        message = position.message
        if target.queue_type is QueueType.SYSTEM and over_quota(target, position.size):
            self._lost_copy(message, target)
            self.discard(position)
            return position
        if isinstance(position.queue, OutgoingQueue):
            # It asked for that kind of signature; in a readable queue the value would count as proof.
            message.authentication_level = message.signature_type = AuthenticationLevel.NONE
        self._leaves(position)
        position.state = _DELETED  # DMPR-3.1.7.1.16-02
        position.transaction = False
        position.queue.positions.remove(position)  # DMPR-3.1.7.1.16-05, DMPR-3.1.1-09
        moved = self._insert(target, message, position.size)
        moved.number = position.number  # the key of its rows in the store
        moved.recoverable = position.recoverable
        history = position.history
        moved.remember(history._replace(deliveries=history.deliveries if reason else 0, reason=reason))
        if target.queue_type is QueueType.SYSTEM:
            self._context.timers.stop(Timer.TIME_TO_BE_RECEIVED, position.number)
            if moved.recoverable:
                stored_rows.put_message(self._context.changes, moved)
        else:
            kept = moved.history
            history = history.moved(self._context.utc)
            moved.remember(history._replace(deliveries=kept.deliveries, reason=reason))
            self.expiry.start(moved, message)
            self.position_available(target, moved)  # DMPR-3.1.7.1.16-03
        return moved

    def purge(self, queue: Queue) -> None:
        """Purge Queue: [MS-MQDMPR] 3.1.7.1.7."""
        for position in queue.positions:
            if position.state is PositionState.AVAILABLE or position.is_set_aside:  # DMPR-3.1.7.1.7-01
                self.position_deleted(queue, position, MessageClass.MQMSG_CLASS_NACK_Q_PURGED)
            elif position.state is PositionState.LOCKED:  # DMPR-3.1.1.11-04
                position.state = PositionState.PURGE_PENDING  # DMPR-3.1.7.1.7-02
                if position.stored:
                    stored_rows.put_message(self._context.changes, position)
