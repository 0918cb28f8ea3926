"""Recovery of a queue manager from its store: DMPR-3.1.1-12; and the system queues of [MS-MQDMPR] 3.1.3."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from struct import error as StructError
from typing import Final, Protocol
from uuid import UUID

from msmqwire.constants import MessageClass
from msmqwire.errors import StoreDamaged
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import (
    OutgoingQueue,
    Queue,
    QueueManager,
    Transaction,
    TransactionalOperation,
)
from msmqwire.qm.model.enumerations import INFINITE, OutgoingQueueState, PositionState, QueueType
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.positions import PRIORITY_SHIFT, MessagePosition
from msmqwire.qm.model.settings import KeptSettings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import serialization, stored_rows
from msmqwire.qm.rules.expiry import expires_in
from msmqwire.qm.rules.lookup import NOTIFICATION_QUEUE_NUMBER, ORDER_QUEUE_NUMBER
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queue_states import is_http
from msmqwire.qm.rules.queues import Queues
from msmqwire.service.store.changes import Key

_OWN: Final = b'"own"'
"""What a row of a queue has since version 7 of the store."""
_PERSISTENT_STATES: Final = (OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED)


class Stored(Protocol):
    """The rows of a store."""

    def rows(self, table: Table, /) -> Iterator[tuple[Key, bytes]]:
        """Yield the keys and rows of a table, in the order of the keys."""

    def row(self, table: Table, key: Key, /) -> bytes | None:
        """Return a row; None if it does not exist."""


class Recovery:
    """Restores the queues, messages and transactions of a store."""

    def __init__(self, context: Context, messages: MessageEvents, queues: Queues, stored: Stored) -> None:
        self._context, self._messages, self._queues, self._stored = context, messages, queues, stored
        self._orphaned: list[MessagePosition] = []  # locked by readers and transactions of the last run
        self._handed_out: list[tuple[MessagePosition, int]] = []  # to programs of the last run

    def restore(self) -> None:
        """Restore queues, messages and transactions, then create the system queues that do not exist yet."""
        self._messages.memory.load = self.load
        self._restore_queues()  # DMPR-3.1.3-27
        positions = self._restore_messages()
        self._restore_transactions(positions)  # DMPR-3.1.3-27
        self._system_queues()
        self._lock_or_release()

    def _restore_queues(self) -> None:
        queues: dict[int, Queue] = {}
        relations = []
        policies = self._queues.policies
        policies.restore(self._stored.rows(Table.POLICY))
        for number, row in self._stored.rows(Table.QUEUE):
            assert isinstance(number, int)
            queue, journal_of, subqueue_of = stored_rows.read_queue(number, row)
            if isinstance(queue, OutgoingQueue) and queue.state not in _PERSISTENT_STATES:
                queue.state = OutgoingQueueState.INACTIVE  # DMPR-3.1.1.3-08
            queues[number] = queue
            relations.append((queue, journal_of, subqueue_of))
            if _OWN not in row:
                policies.adopt(queue, fresh=True)  # an older version has stored it
        for queue, journal_of, subqueue_of in relations:
            if journal_of is not None:
                queue.owner_queue = queues[journal_of]
                queues[journal_of].journal = queue
            elif subqueue_of is not None:
                queue.owner_queue = queues[subqueue_of]
                queues[subqueue_of].subqueues[queue.pathname.rpartition(";")[2].lower()] = queue
            self._queues.restore(queue)
            if policies.by_name:
                policies.apply(queue)

    def _restore_messages(self) -> dict[int, MessagePosition]:
        """Restore the messages; return the positions that are locked or in a transaction, by number."""
        manager = self._context.queue_manager
        sequential_id = self._stored.row(Table.META, stored_rows.SEQUENTIAL_ID)
        manager.sequential_id = int.from_bytes(sequential_id, "little") if sequential_id else 0
        in_use: dict[int, MessagePosition] = {}
        in_transactions = self._in_transactions()
        by_priority: dict[tuple[int, int], list[MessagePosition]] = {}  # of each queue
        disordered: set[tuple[int, int]] = set()  # sorting millions would hold other threads up
        load, available, origins = self.load, PositionState.AVAILABLE, stored_rows.Origins()
        text = stored_rows.TEXT
        left = self._messages.deliveries.hand_outs.left()
        for number, row in self._stored.rows(Table.MESSAGE):  # there may be millions
            assert isinstance(number, int)
            stored = stored_rows.read_position(row)
            queue = manager.queues[stored.queue]
            position = MessagePosition(queue, number, stored.lookup_identifier, stored.size)
            position.recoverable = position.stored = True
            position.keep_in_store(load)  # DMPR-3.1.1.11-06
            if stored.has_history:
                message = stored_rows.read_message(row)
                position.history, position.origin = message.history, message.origin
            else:
                position.origin = origins[row[text:]]
            if stored.state != available:
                position.state = PositionState(stored.state)  # DMPR-3.1.1.11-06 and -11
            if stored.state != available or number in in_transactions:
                in_use[number] = position
            if left and (deliveries := left.get(stored.lookup_identifier, 0)) > position.history.deliveries:
                self._handed_out.append((position, deliveries))
            if stored.expires and expires_in(queue):
                self._messages.expiry.expire_at(position, stored.expires)
            part = stored.queue, stored.lookup_identifier >> PRIORITY_SHIFT
            positions = by_priority.get(part)
            if positions is None:
                by_priority[part] = positions = []
            elif positions[-1].lookup_identifier > stored.lookup_identifier:
                disordered.add(part)
            positions.append(position)
        for part in sorted(by_priority):
            positions = by_priority[part]
            if part in disordered:
                positions.sort(key=attrgetter("lookup_identifier"))
            insert = positions[0].queue.positions.insert
            for position in positions:
                insert(position)
            self._messages.quotas.count_stored(positions)
        return in_use

    def _in_transactions(self) -> set[int]:
        """Return the numbers of the messages of transactions that a coordinator has yet to decide."""
        stored = (stored_rows.read_transaction(row) for _, row in self._stored.rows(Table.TRANSACTION))
        return {number for operations in stored for _, number, _, _ in operations}

    def load(self, position: MessagePosition) -> Message:
        """Read the message of a position from the store. Raises StoreDamaged if it can't be read."""
        try:
            packet = self._stored.row(Table.PACKET, position.number)
            row = self._stored.row(Table.MESSAGE, position.number)
        except StoreDamaged as exc:
            raise StoreDamaged(f"message {position.number}: {exc.why}", file=exc.file) from exc
        if packet is None or row is None:
            raise StoreDamaged(f"message {position.number} is gone", file="the store")
        try:
            stored = stored_rows.read_message(row)
            message = serialization.from_stored(packet, self._context.queue_manager.identifier)
        except (ValueError, StructError) as exc:  # MalformedPacket and InvalidName are ValueErrors
            reason = f"message {position.number} can't be read: {exc}"
            raise StoreDamaged(reason, file="the store") from exc
        message.lookup_identifier, message.arrival_time = stored.lookup_identifier, stored.arrival_time
        message.allow_peek_when_locked = stored.allow_peek_when_locked
        message.application_deadletter_queue, message.origin = stored.deadletter, stored.origin
        message.expires = stored.expires
        message.deliveries, message.move_reason = position.history.deliveries, position.history.reason
        return message

    def _restore_transactions(self, positions: dict[int, MessagePosition]) -> None:
        """Restore the transactions that a coordinator has yet to decide."""
        manager = self._context.queue_manager
        in_doubt: set[int] = set()
        for key, row in self._stored.rows(Table.TRANSACTION):
            assert isinstance(key, bytes)
            # DMPR-3.1.1.14-01 and -03, DMPR-3.1.3-26
            transaction = Transaction(UUID(bytes=key), single_phase=False, prepared=True)
            for kind, number, target, reason in stored_rows.read_transaction(row):
                if number not in positions:
                    continue  # its queue was deleted
                position = positions[number]
                position.transaction = True
                in_doubt.add(number)
                transaction.operations.append(  # DMPR-3.1.1.14-02
                    # DMPR-3.1.1.13-02 to -04
                    TransactionalOperation(kind, position, manager.queues.get(target), reason or None)
                )
            manager.transactions[transaction.identifier] = transaction  # DMPR-3.1.1.1-44, DMPR-3.1.1.14-01
        for number, position in positions.items():
            # DMPR-3.1.3-26
            if position.state is not PositionState.AVAILABLE and number not in in_doubt:  # DMPR-3.1.1.11-11
                self._orphaned.append(position)  # DMPR-3.1.1.11-11, DMPR-3.1.3-26

    def release(self) -> None:
        """Release the messages of readers and transactions that ended with the process.

        The protocols must have started: they report messages that a pending purge deletes now.
        """
        for position in self._orphaned:
            if position.state is PositionState.PURGE_PENDING:
                purged = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
                self._messages.position_deleted(position.queue, position, purged)
            else:
                self._messages.position_available(position.queue, position)  # DMPR-3.1.1.11-11, DMPR-3.1.3-26
        self._orphaned.clear()
        for position, deliveries in self._handed_out:
            if position.state is PositionState.AVAILABLE:  # else a coordinator decides
                self._messages.deliveries.left_by_end(position, deliveries)
        self._handed_out.clear()

    def _system_queues(self) -> None:
        """Find or create the system queues."""
        manager = self._context.queue_manager
        computer = manager.computer_name
        # DMPR-3.1.3-21
        manager.system_journal_queue = self._system_queue(f"{computer}\\system$;JOURNAL")  # DMPR-3.1.1.1-40
        # DMPR-3.1.1.1-38, DMPR-3.1.3-21
        manager.system_deadletter_queue = self._system_queue(f"{computer}\\system$;DEADLETTER")
        # DMPR-3.1.1.1-39, DMPR-3.1.3-21
        manager.system_transactional_deadletter_queue = self._system_queue(
            f"{computer}\\system$;DEADXACT", transactional=True
        )
        manager.system_journal_queue.quota = manager.journal_quota  # DMPR-3.1.1.1-11
        for name, number in (
            ("order_queue$", ORDER_QUEUE_NUMBER),  # DMPR-3.1.3-22
            ("notify_queue$", NOTIFICATION_QUEUE_NUMBER),  # DMPR-3.1.3-22
        ):
            self._system_queue(f"{computer}\\private$\\{name}", number=number)  # DMPR-3.1.3-22

    def _system_queue(self, path: str, *, number: int = 0, transactional: bool = False) -> Queue:
        queue = self._queues.lookup.path(path)
        if queue is None:
            queue = Queue(
                self._context.new_guid(), pathname=path, transactional=transactional, quota=INFINITE
            )
            queue.queue_type, queue.private_queue_number = QueueType.SYSTEM, number  # DMPR-3.1.3-21 and -22
            queue.security = self._queues.default_security(None)
            queue.create_time = queue.modify_time = self._context.utc
            self._queues.add(queue)
        return queue

    def _lock_or_release(self) -> None:
        """Lock the outgoing queues, or release locked ones, by HardenedSecurity."""
        manager = self._context.queue_manager
        for queue in manager.queues.values():
            if not isinstance(queue, OutgoingQueue):
                continue
            if queue.state is OutgoingQueueState.LOCKED and not manager.hardened_security:  # DMPR-3.1.3-23
                queue.state = OutgoingQueueState.WAITING  # DMPR-3.1.3-23
            if manager.hardened_security and not is_http(queue.destination):  # DMPR-3.1.3-24
                queue.state = OutgoingQueueState.LOCKED  # DMPR-3.1.3-24


IDENTIFIER: Final = b"Identifier"


def identifier(stored: Stored) -> UUID:
    """Return the Identifier of the queue manager that a store belongs to; NULL_GUID for an empty store."""
    row = stored.row(Table.META, IDENTIFIER)
    return UUID(bytes=row) if row else NULL_GUID


def restore_attributes(manager: QueueManager, stored: Stored) -> None:
    """Restore the persistent attributes of a queue manager: DMPR-3.1.1-12."""
    row = stored.row(Table.META, stored_rows.QUEUE_MANAGER)
    if row:
        stored_rows.read_queue_manager(manager, row)  # DMPR-3.1.1-02 and -03


def kept_settings(stored: Stored) -> KeptSettings:
    """Return the settings that a store keeps; none for an empty store."""
    row = stored.row(Table.META, stored_rows.SETTINGS)
    return stored_rows.read_settings(row) if row else KeptSettings()
