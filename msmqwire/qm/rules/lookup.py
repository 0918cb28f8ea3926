"""Which local queue a name means: [MS-MQMQ] 2.1 over the queues of [MS-MQDMPR] 3.1.1.1."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msmqwire.names import (
    ConnectorName,
    DirectName,
    FormatName,
    MachineName,
    PathName,
    PrivateName,
    PublicName,
)
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import QueueType

_KEPT: Final = 4096
ORDER_QUEUE_NUMBER: Final = 4
"""PrivateQueueNumber of order_queue$: [MS-MQQB] 2.2.4."""
NOTIFICATION_QUEUE_NUMBER: Final = 2
"""PrivateQueueNumber of the change notification queue: [MS-MQCN]."""


class Lookup:
    """Finds queues of the local queue manager by their names.

    Attributes:
        addresses: names and addresses of this computer beside ComputerName, in lower case.
    """

    def __init__(self, queue_manager: QueueManager, addresses: Collection[str] = ()) -> None:
        self._queue_manager = queue_manager
        self.addresses = {address.lower() for address in addresses}
        self._by_path: dict[str, Queue] = {}
        self._by_identifier: dict[object, Queue] = {}
        self._private: dict[int, Queue] = {}
        self._outgoing: dict[FormatName, OutgoingQueue] = {}
        self._addressed: dict[FormatName, Queue] = {}  # by names used lately

    def add(self, queue: Queue) -> None:
        """A queue of the collection."""
        self._addressed.clear()
        if isinstance(queue, OutgoingQueue):
            if queue.destination is not None and queue.acknowledged_peer is None:
                self._outgoing[queue.destination] = queue
        elif queue.owner_queue is None:
            self._by_path[_key(queue.pathname)] = queue
            self._by_identifier[queue.identifier] = queue
            if queue.private_queue_number:
                self._private[queue.private_queue_number] = queue

    def remove(self, queue: Queue) -> None:
        """A queue that is not in the collection any more."""
        self._addressed.clear()
        if isinstance(queue, OutgoingQueue):
            if queue.destination is not None and queue.acknowledged_peer is None:
                self._outgoing.pop(queue.destination, None)
        elif queue.owner_queue is None:
            self._by_path.pop(_key(queue.pathname), None)
            self._by_identifier.pop(queue.identifier, None)
            self._private.pop(queue.private_queue_number, None)

    def unused_private_number(self) -> int:
        """A number that no private queue has: DMPR-3.1.7.1.3-09. The first ones are of system queues."""
        return max(max(self._private, default=0), 4) + 1

    def is_local(self, host: str) -> bool:
        """Whether a name or address is that of this computer."""
        host, manager = host.lower(), self._queue_manager
        mine = (manager.computer_name.lower(), manager.qualified_computer_name.lower())
        return host in mine or host in self.addresses

    def is_local_name(self, name: FormatName) -> bool:
        """Whether a name says that its queue is here."""
        match name:
            case DirectName():
                return self.is_local(name.host)
            case PrivateName() | MachineName():
                return name.guid == self._queue_manager.identifier
            case PublicName():
                return name.guid in self._by_identifier
        return False

    def path(self, pathname: str) -> Queue | None:
        """The queue with a path name, however its letters are written."""
        return self._by_path.get(_key(pathname))

    def outgoing(self, name: FormatName) -> OutgoingQueue | None:
        """The outgoing queue to a destination."""
        return self._outgoing.get(name)

    def find(self, name: FormatName) -> Queue | None:
        """The queue that a format name means here; None when there is none, outgoing queues apart."""
        match name:
            case DirectName():
                return self._direct(name)
            case PublicName():
                return _part(self._by_identifier.get(name.guid), journal=name.journal)
            case PrivateName() if name.guid == self._queue_manager.identifier:
                return _part(self._private.get(name.number), journal=name.journal)
            case MachineName() if name.guid == self._queue_manager.identifier:
                return self._system(name.suffix)
            case ConnectorName():
                return self._by_path.get(_key(name.canonical))
        return None

    def addressed(self, name: FormatName) -> Queue | None:
        """The queue that the name in a message means, which is known to be for this queue manager."""
        found = self._addressed.get(name)
        if found is None:
            if isinstance(name, DirectName):
                found = self._direct(name, here=True)
            elif isinstance(name, PrivateName):
                found = _part(self._private.get(name.number), journal=name.journal)
            else:
                found = self.find(name)
            if found is not None:
                if len(self._addressed) >= _KEPT:
                    self._addressed.clear()
                self._addressed[name] = found
        return found

    def _direct(self, name: DirectName, *, here: bool = False) -> Queue | None:
        if not here and not self.is_local(name.host):
            return None
        if name.system is not None:
            return self._system(name.system)
        computer = self._queue_manager.computer_name
        path = PathName(computer, name.queue, name.private)
        return _part(self._by_path.get(_key(path.canonical)), journal=name.journal, subqueue=name.subqueue)

    def _system(self, suffix: str | None) -> Queue | None:
        manager = self._queue_manager
        return {
            "JOURNAL": manager.system_journal_queue,
            "DEADLETTER": manager.system_deadletter_queue,
            "DEADXACT": manager.system_transactional_deadletter_queue,
        }.get((suffix or "").upper())


def _key(pathname: str) -> str:
    return pathname.lower()


def _part(queue: Queue | None, *, journal: bool, subqueue: str | None = None) -> Queue | None:
    """A queue, its journal, or one of its subqueues."""
    if queue is None:
        return None
    if subqueue is not None:
        queue = queue.subqueues.get(subqueue.lower())
    return queue.journal if queue is not None and journal else queue


def queue_type(path: PathName) -> QueueType:
    """QueueType by the form of the path name: DMPR-3.1.7.1.3-07."""
    if path.private:
        return QueueType.PRIVATE
    return QueueType.SYSTEM if path.system else QueueType.PUBLIC
