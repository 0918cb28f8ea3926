"""A queue manager as it was when it stopped: DMPR-3.1.1-12, and the system queues of [MS-MQDMPR] 3.1.3."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, Protocol
from uuid import UUID

from msmqwire.constants import MessageClass
from msmqwire.qm.model.changes import Key, Table
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
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules import serialization, stored_rows
from msmqwire.qm.rules.lookup import NOTIFICATION_QUEUE_NUMBER, ORDER_QUEUE_NUMBER
from msmqwire.qm.rules.messages import Messages, expires_in
from msmqwire.qm.rules.queues import Queues, is_http

_QUIET: Final = (OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED)


class Stored(Protocol):
    """Where rows are read from."""

    def rows(self, table: Table, /) -> Iterator[tuple[Key, bytes]]:
        """All rows of a table, in the order of their keys."""

    def row(self, table: Table, key: Key, /) -> bytes | None:
        """One row; None when it is not there."""


class Recovery:
    """Brings back what a store has."""

    def __init__(self, context: Context, messages: Messages, queues: Queues, stored: Stored) -> None:
        self._context, self._messages, self._queues, self._stored = context, messages, queues, stored
        self._taken: list[MessagePosition] = []  # by readers and transactions that are gone

    def restore(self) -> None:
        """Queues, messages and transactions, as they were; then the system queues that are not there yet."""
        self._messages.memory.load = self.load
        self._restore_queues()
        positions = self._restore_messages()
        self._restore_transactions(positions)
        self._system_queues()
        self._lock_or_release()

    def _restore_queues(self) -> None:
        queues: dict[int, Queue] = {}
        relations = []
        for number, row in self._stored.rows(Table.QUEUE):
            assert isinstance(number, int)
            queue, journal_of, subqueue_of = stored_rows.read_queue(number, row)
            if isinstance(queue, OutgoingQueue) and queue.state not in _QUIET:
                queue.state = OutgoingQueueState.INACTIVE
            queues[number] = queue
            relations.append((queue, journal_of, subqueue_of))
        for queue, journal_of, subqueue_of in relations:
            if journal_of is not None:
                queue.owner_queue = queues[journal_of]
                queues[journal_of].journal = queue
            elif subqueue_of is not None:
                queue.owner_queue = queues[subqueue_of]
                queues[subqueue_of].subqueues[queue.pathname.rpartition(";")[2].lower()] = queue
            self._queues.restore(queue)

    def _restore_messages(self) -> dict[int, MessagePosition]:
        """Gives those that are taken, or in a transaction, by number."""
        manager = self._context.queue_manager
        last = self._stored.row(Table.META, stored_rows.SEQUENTIAL_ID)
        manager.sequential_id = int.from_bytes(last, "little") if last else 0
        found: dict[int, MessagePosition] = {}
        in_transactions = self._in_transactions()
        by_queue: dict[int, list[MessagePosition]] = {}
        load, available = self.load, PositionState.AVAILABLE
        for number, row in self._stored.rows(Table.MESSAGE):  # there may be millions
            assert isinstance(number, int)
            place = stored_rows.read_place(row)
            queue = manager.queues[place.queue]
            position = MessagePosition(queue, number, place.lookup_identifier, place.size)
            position.recoverable = position.stored = True
            position.keep_stored(load)
            if place.state != available:
                position.state = PositionState(place.state)
            if place.state != available or number in in_transactions:
                found[number] = position
            if place.expires and expires_in(queue):
                self._messages.expire_at(position, place.expires)
            listed = by_queue.get(place.queue)
            if listed is None:
                by_queue[place.queue] = listed = []
            listed.append(position)
        for listed in by_queue.values():
            listed.sort(key=attrgetter("lookup_identifier"))
            insert, restored = listed[0].queue.positions.insert, self._messages.restored
            for position in listed:
                insert(position)
                restored(position)
        return found

    def _in_transactions(self) -> set[int]:
        """The messages of transactions that a coordinator has still to decide on."""
        stored = (stored_rows.read_transaction(row) for _, row in self._stored.rows(Table.TRANSACTION))
        return {number for operations in stored for _, number, _, _ in operations}

    def load(self, position: MessagePosition) -> Message:
        """The message of a position, from the store."""
        packet = self._stored.row(Table.PACKET, position.number)
        row = self._stored.row(Table.MESSAGE, position.number)
        assert packet is not None, "a message is stored with its packet"
        assert row is not None, "a message is stored with its place"
        stored = stored_rows.read_message(row)
        message = serialization.from_stored(packet, self._context.queue_manager.identifier)
        message.lookup_identifier, message.arrival_time = stored.lookup_identifier, stored.arrival_time
        message.allow_peek_when_locked = stored.allow_peek_when_locked
        message.application_deadletter_queue = stored.deadletter
        return message

    def _restore_transactions(self, positions: dict[int, MessagePosition]) -> None:
        """Those that a coordinator has still to decide on."""
        manager = self._context.queue_manager
        held: set[int] = set()
        for key, row in self._stored.rows(Table.TRANSACTION):
            assert isinstance(key, bytes)
            transaction = Transaction(UUID(bytes=key), single_phase=False, prepared=True)
            for kind, number, target, reason in stored_rows.read_transaction(row):
                if number not in positions:
                    continue  # its queue was deleted
                position = positions[number]
                position.transaction = True
                held.add(number)
                transaction.operations.append(
                    TransactionalOperation(kind, position, manager.queues.get(target), reason or None)
                )
            manager.transactions[transaction.identifier] = transaction
        for number, position in positions.items():
            if position.state is not PositionState.AVAILABLE and number not in held:
                self._taken.append(position)

    def release(self) -> None:
        """What readers and transactions had that ended with the process is given back: DMPR-3.1.3-26.

        The protocols have started by now: they may have to tell of messages that a purge is waiting for.
        """
        for position in self._taken:
            if position.state is PositionState.PURGE_PENDING:
                purged = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
                self._messages.position_deleted(position.queue, position, purged)
            else:
                self._messages.position_available(position.queue, position)
        self._taken.clear()

    def _system_queues(self) -> None:
        """The system queues: DMPR-3.1.3-21 and -22."""
        manager = self._context.queue_manager
        computer = manager.computer_name
        manager.system_journal_queue = self._system_queue(f"{computer}\\system$;JOURNAL")
        manager.system_deadletter_queue = self._system_queue(f"{computer}\\system$;DEADLETTER")
        manager.system_transactional_deadletter_queue = self._system_queue(
            f"{computer}\\system$;DEADXACT", transactional=True
        )
        manager.system_journal_queue.quota = manager.journal_quota
        for name, number in (
            ("order_queue$", ORDER_QUEUE_NUMBER),
            ("notify_queue$", NOTIFICATION_QUEUE_NUMBER),
        ):
            self._system_queue(f"{computer}\\private$\\{name}", number=number)

    def _system_queue(self, path: str, *, number: int = 0, transactional: bool = False) -> Queue:
        found = self._queues.lookup.path(path)
        if found is None:
            found = Queue(
                self._context.new_guid(), pathname=path, transactional=transactional, quota=INFINITE
            )
            found.queue_type, found.private_queue_number = QueueType.SYSTEM, number
            found.security = self._queues.default_security(None)
            found.create_time = found.modify_time = self._context.utc
            self._queues.add(found)
        return found

    def _lock_or_release(self) -> None:
        """DMPR-3.1.3-23 and -24."""
        manager = self._context.queue_manager
        for queue in manager.queues.values():
            if not isinstance(queue, OutgoingQueue):
                continue
            if queue.state is OutgoingQueueState.LOCKED and not manager.hardened_security:
                queue.state = OutgoingQueueState.WAITING
            if manager.hardened_security and not is_http(queue.destination):
                queue.state = OutgoingQueueState.LOCKED


IDENTIFIER: Final = b"Identifier"


def identifier(stored: Stored) -> UUID:
    """The Identifier of the queue manager that a store belongs to; NULL_GUID for an empty store."""
    row = stored.row(Table.META, IDENTIFIER)
    return UUID(bytes=row) if row else NULL_GUID


def restore_attributes(manager: QueueManager, stored: Stored) -> None:
    """Give a queue manager the attributes that it had before: DMPR-3.1.1-12."""
    row = stored.row(Table.META, stored_rows.QUEUE_MANAGER)
    if row:
        stored_rows.read_queue_manager(manager, row)
