"""A queue manager over a store in memory, in a time that the test sets, and short ways to use it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.constants import MQ_OK
from msmqwire.names import FormatName, parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.effects import Effect, ReadCompleted
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, Transaction
from msmqwire.qm.model.enumerations import (
    DeliveryGuarantee,
    EnqueueStatus,
    PositionState,
    QueueAccessType,
    QueueShareMode,
)
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.read_results import Read
from msmqwire.qm.store.memory import MemoryStore

START = 1_700_000_000
"""Seconds since 1970 at which a desk begins."""
HERE = UUID(int=0xA1)
"""Identifier of the queue manager."""
RECEIVE = QueueAccessType.RECEIVE_ACCESS
PEEK = QueueAccessType.PEEK_ACCESS
SEND = QueueAccessType.SEND_ACCESS
RECOVERABLE = DeliveryGuarantee.RECOVERABLE

Event = tuple[Any, ...]


class Watcher:
    """A protocol beside the core that writes down what it is told."""

    def __init__(self) -> None:
        self.log: list[Event] = []

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        self.log.append(("available", queue, position))

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        self.log.append(("deleted", queue, position, reason))

    def queue_paused(self, queue: OutgoingQueue) -> None:
        self.log.append(("paused", queue))

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        self.log.append(("resumed", queue))

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        self.log.append(("send", position, protocol_data))

    def deleted(self) -> list[tuple[MessagePosition, int]]:
        """The positions deleted so far, each with the reason."""
        return [(event[2], event[3]) for event in self.log if event[0] == "deleted"]


class Desk:
    """A queue manager named ``here``; what it is made with holds for every start of it."""

    def __init__(self, **made_with: Any) -> None:
        self.store = MemoryStore()
        self.now = 0
        self._guids = 0x1000
        self._made_with = {"computer_name": "here", "identifier": HERE, "quota": 1 << 40} | made_with
        self.start()

    # -- its life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """A queue manager over what the store has, started."""
        self.core = Core(self.store, new_guid=self.guid, **self._made_with)
        self.core.at(self.now, self.utc)
        self.core.start()
        self.step()

    def restart(self, **made_with: Any) -> None:
        """The process ends at once, and another one starts: what was not committed is gone."""
        self._made_with |= made_with
        self.start()

    def stop(self) -> None:
        """It stops in order."""
        self.core.stop()
        self.step()

    def step(self) -> list[Effect]:
        """All that has changed is durable; what is to be done."""
        changes, effects = self.core.take()
        self.store.commit(changes)
        self.core.committed()
        return effects

    def advance(self, milliseconds: int) -> list[Effect]:
        """Time passes; what is to be done afterwards."""
        self.now += milliseconds
        self.core.at(self.now, self.utc)
        return self.step()

    @property
    def utc(self) -> int:
        return START + self.now // 1000

    def guid(self) -> UUID:
        self._guids += 1
        return UUID(int=self._guids)

    # -- queues -------------------------------------------------------------------------------------

    def wanted(self, name: str = "private$\\orders", **attributes: Any) -> Queue:
        """A queue as Create Queue wants it."""
        queue = Queue(NULL_GUID)
        self.core.queues.set_defaults(queue)
        queue.pathname = f"here\\{name}"
        for attribute, value in attributes.items():
            setattr(queue, attribute, value)
        return queue

    def queue(self, name: str = "private$\\orders", **attributes: Any) -> Queue:
        """A new queue."""
        status, queue = self.core.queues.create(self.wanted(name, **attributes))
        assert status == MQ_OK
        assert queue is not None
        self.step()
        return queue

    def find(self, name: str = "private$\\orders") -> Queue:
        """A queue that is there, after a restart too."""
        found = self.core.queues.lookup.path(f"here\\{name.partition(';')[0]}")
        assert found is not None
        return found.subqueues[name.partition(";")[2]] if ";" in name else found

    def outgoing(self, name: str = "DIRECT=OS:there\\private$\\orders") -> OutgoingQueue:
        """The outgoing queue to a destination, opened once so that it is there."""
        queue = self.open(name, SEND).queue
        assert isinstance(queue, OutgoingQueue)
        return queue

    def open(
        self,
        what: Queue | FormatName | str,
        access: QueueAccessType = RECEIVE,
        share: QueueShareMode = QueueShareMode.DENY_NONE,
    ) -> OpenQueueDescriptor:
        """An open queue."""
        status, descriptor = self.core.queues.open(format_name(what), access, share)
        assert status == MQ_OK
        assert descriptor is not None
        return descriptor

    # -- messages -----------------------------------------------------------------------------------

    def put(
        self,
        queue: Queue,
        body: bytes = b"",
        transaction: Transaction | None = None,
        **attributes: Any,
    ) -> MessagePosition:
        """A message into a queue where it stays; its position."""
        message = self.put_quickly(queue, body, transaction, **attributes)
        position = queue.positions.find(message.lookup_identifier)
        assert position is not None
        return position

    def put_quickly(
        self,
        queue: Queue,
        body: bytes = b"",
        transaction: Transaction | None = None,
        **attributes: Any,
    ) -> Message:
        """A message into a queue, from which it may be taken at once."""
        message = Message(body=body, **attributes)
        assert self.core.messages.enqueue(queue, message, transaction) is EnqueueStatus.OK
        return message

    def watch(self) -> Watcher:
        """One that is told from now on what happens to messages and queues."""
        watcher = Watcher()
        self.core.context.subscribers.append(watcher)
        return watcher

    def begin(self) -> Transaction:
        """A new transaction."""
        return self.core.transactions.create(self.guid())

    def rows(self, table: Table) -> dict[Any, bytes]:
        """What the store has."""
        return dict(self.store.rows(table))


def format_name(what: Queue | FormatName | str) -> FormatName:
    """The name of a queue: a direct one for an element."""
    if isinstance(what, Queue):
        what = f"DIRECT=OS:{what.pathname}"
    return parse_format_name(what) if isinstance(what, str) else what


def bodies(queue: Queue, *states: PositionState) -> list[bytes]:
    """The bodies of the messages in a queue, in their order; of those in the given states."""
    return [p.message.body for p in queue.positions if not states or p.state in states]


def states(queue: Queue) -> list[PositionState]:
    """The states of the messages in a queue, in their order."""
    return [position.state for position in queue.positions]


def taken(read: Read) -> bytes:
    """The body of the message that a read gave."""
    assert read.status == MQ_OK
    assert read.message is not None
    return read.message.body


def completed(effects: list[Effect]) -> list[tuple[int, int, bytes | None]]:
    """Of the reads that ended: the request, the status, the body."""
    return [
        (effect.request, effect.status, effect.message.body if effect.message else None)
        for effect in effects
        if isinstance(effect, ReadCompleted)
    ]
