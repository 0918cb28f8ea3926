"""A whole queue manager without I/O: the rules of [MS-MQDMPR], the binary protocol, and what survives."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue
from msmqwire.qm.directory.interface import Directory
from msmqwire.qm.model.changes import Changes, Table
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.directory_objects import DirectoryObject
from msmqwire.qm.model.effects import Effect
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, QueueManager, Transaction
from msmqwire.qm.model.enumerations import EnqueueStatus, QueueManagerState
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.protocols.binary.engine import BinaryEngine
from msmqwire.qm.rules import recovery, stored_rows
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.messages import Messages
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.recovery import Recovery, Stored
from msmqwire.qm.rules.routing import Routes, Routing
from msmqwire.qm.rules.transactions import Transactions


class Core:
    """A queue manager that others carry: it does nothing by itself.

    The owner tells it the time (`at`), calls its parts, and takes what has changed and what is to be done
    (`take`). No effect may be carried out before the changes taken with it, and all before, are durable;
    when they are, it says so (`committed`).

    Attributes:
        context: the model, the time and the settings.
        messages, queues, transactions, dispatch, directory, routing: the events of [MS-MQDMPR].
        engine: [MS-MQQB].
    """

    def __init__(
        self,
        stored: Stored,
        *,
        new_guid: Callable[[], UUID],
        computer_name: str,
        settings: Settings | None = None,
        addresses: Collection[str] = (),
        directory: Directory | None = None,
        routes: Routes | None = None,
        identifier: UUID = NULL_GUID,
        quota: int | None = None,
    ) -> None:
        """A queue manager over what a store has; nothing happens before `start`.

        Args:
            stored: where it was stored before.
            new_guid: gives a GUID that there is nowhere else.
            computer_name: of this computer.
            settings: of the administrator.
            addresses: further names and addresses of this computer.
            directory: None for workgroup mode.
            routes: fixed routes.
            identifier: of the queue manager, for an empty store; one is made when left out.
            quota: QueueManagerQuota in bytes; the specification's default when left out.
        """
        settings = settings or Settings()
        known = recovery.identifier(stored)
        manager = QueueManager(known if known != NULL_GUID else identifier)
        if manager.identifier == NULL_GUID:
            manager.identifier = new_guid()
        recovery.restore_attributes(manager, stored)
        if manager.computer_name != computer_name:
            manager.computer_name, manager.qualified_computer_name = computer_name, computer_name
        if quota is not None:
            manager.queue_manager_quota = quota
        self._stored = stored
        self.context = context = Context(manager, settings, new_guid)
        if known == NULL_GUID:
            context.changes.put(Table.META, recovery.IDENTIFIER, manager.identifier.bytes)
        self.directory = DirectoryEvents(manager, directory, context.timers, settings=settings)
        self.routing = Routing(manager, self.directory, context.timers, routes, settings=settings)
        self.messages = Messages(context)
        self.queues = Queues(context, self.messages, self.directory, Lookup(manager, addresses))
        self.transactions = Transactions(context, self.messages)
        self.dispatch = Dispatch(context)
        self.engine = BinaryEngine(context, self.messages, self.queues, self.dispatch, self.routing)
        self.messages.when_arrived = self.engine.acknowledging.arrived

    @property
    def queue_manager(self) -> QueueManager:
        """LocalQueueManager."""
        return self.context.queue_manager

    def start(self) -> None:
        """Queue Manager Started: [MS-MQDMPR] 3.1.4.1. The time must have been told."""
        manager = self.context.queue_manager
        manager.state = QueueManagerState.INITIALIZING
        self.directory.updated = self._updated
        self.directory.initialize()
        restoring = Recovery(self.context, self.messages, self.queues, self._stored)
        restoring.restore()
        self.routing.initialize()
        self.engine.start(self._stored)
        restoring.release()
        manager.create_time = manager.create_time or self.context.utc
        self.changed()
        manager.state = QueueManagerState.READY

    def _updated(self, changed: DirectoryObject) -> None:
        """An element has taken over what the directory has."""
        if isinstance(changed, Queue) and changed.number in self.queue_manager.queues:
            self.queues.changed(changed)
        elif changed is self.queue_manager:
            self.changed()

    def changed(self) -> None:
        """Attributes of the queue manager were set: those that survive are stored."""
        stored_rows.put_queue_manager(self.context.changes, self.queue_manager)

    def stop(self) -> None:
        """Queue Manager Stopped: [MS-MQDMPR] 3.1.4.2."""
        self.context.queue_manager.state = QueueManagerState.STOPPING
        self.engine.stop()
        self.messages.store_sequential_id()
        self.changed()
        self.context.queue_manager.state = QueueManagerState.STOPPED

    def at(self, now_ms: int, utc: int) -> None:
        """Tell the time: milliseconds since the system started, seconds since 1970 UTC. Timers expire."""
        self.context.utc = utc
        self.context.timers.advance(now_ms)

    @property
    def deadline(self) -> int | None:
        """When `at` is to be called at the latest, milliseconds since the system started; None for never."""
        return self.context.timers.deadline

    def take(self) -> tuple[Changes, list[Effect]]:
        """What has changed, and what is to be done once that is durable."""
        self.messages.memory.changes_taken()
        return self.context.take()

    def committed(self) -> None:
        """All changes taken so far are durable."""
        self.messages.memory.changes_durable()

    def send(
        self, descriptor: OpenQueueDescriptor, message: Message, transaction: Transaction | None = None
    ) -> EnqueueStatus | HResult:
        """Send a message of an application to an open queue.

        One for a queue of this queue manager is there at once, and has the acknowledgement of its arrival
        and its source journaling as another would. Gives MQ_ERROR_TRANSACTION_USAGE for one that is to be
        sent in a transaction to such a queue that is not transactional, or without one to one that is.

        Raises InvalidValue and InvalidName for a message that no packet can hold, and for one that has been
        sent: the queue manager keeps it.
        """
        if message.identifier.uniquifier:
            raise InvalidValue("the message has been sent: make another one", path="UserHeader.MessageID")
        if message.destination is None and not descriptor.multiple:
            message.destination = descriptor.format_name
        for one in descriptor.children if descriptor.multiple else (descriptor,):
            local = one.queue is not None and not isinstance(one.queue, OutgoingQueue)
            if local and one.queue.transactional != (transaction is not None):  # type: ignore[union-attr]
                return HResult.MQ_ERROR_TRANSACTION_USAGE
        self.engine.stamp(message)
        return self.messages.enqueue_to_open_queue(descriptor, message, transaction)

    def commit(self, transaction: Transaction) -> int:
        """End an internal transaction: [MS-MQDMPR] 3.1.4.3 and 3.1.4.4."""
        status = self.transactions.prepare(transaction.identifier)
        return self.transactions.commit(transaction.identifier) if status == MQ_OK else status
