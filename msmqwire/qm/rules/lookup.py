"""Local queues by name: [MS-MQMQ] 2.1 over the queues of [MS-MQDMPR] 3.1.1.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from ipaddress import ip_address
from typing import Final

from msmqwire.errors import InvalidName
from msmqwire.names import (
    ConnectorName,
    DirectName,
    FormatName,
    MachineName,
    MulticastName,
    PathName,
    PrivateName,
    PublicName,
    parse_format_name,
)
from msmqwire.names.addresses import HTTP_PORTS, is_loopback
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import QueueType

_ADDRESSED_MAX: Final = 4096
_ANY_ADDRESS: Final = frozenset(("0.0.0.0", "::"))  # compared only
_LOCALHOST: Final = "localhost"
_OF_LOCALHOST: Final = frozenset(("127.0.0.1", "::1"))
_LAST_SYSTEM_NUMBER: Final = 4
ORDER_QUEUE_NUMBER: Final = 4
"""PrivateQueueNumber of order_queue$: [MS-MQQB] 2.2.4."""
NOTIFICATION_QUEUE_NUMBER: Final = 2
"""PrivateQueueNumber of the change notification queue: [MS-MQCN]."""


class Lookup:
    """The queues of the local queue manager by their names.

    Attributes:
        addresses: names and addresses of this computer besides ComputerName, in lower case.
        http_ports: the ports at which this queue manager receives messages by HTTP and HTTPS.
    """

    def __init__(self, queue_manager: QueueManager, addresses: Collection[str] = ()) -> None:
        self._queue_manager = queue_manager
        self.addresses = {address.lower() for address in addresses}
        self.http_ports: set[int] = set()
        self._http_hosts: set[str] | None = None
        self._by_path: dict[str, Queue] = {}
        self._by_identifier: dict[object, Queue] = {}
        self._private: dict[int, Queue] = {}
        self._outgoing: dict[FormatName, OutgoingQueue] = {}
        self._addressed: dict[FormatName, Queue] = {}  # a cache of `addressed`
        self._groups: dict[tuple[str, int], dict[int, Queue]] = {}  # by multicast address, then by number
        self._group_of: dict[int, tuple[str, int]] = {}
        self._places: Counter[object] = Counter()  # queues to which local applications send

    def receives_http_at(self, hosts: Collection[str] | None) -> None:
        """Set the addresses at which messages are received by HTTP and HTTPS.

        ``0.0.0.0`` and ``::`` mean all addresses of this computer, None unknown ones.
        """
        self._http_hosts = None if hosts is None else {_normal(host) for host in hosts}

    def add(self, queue: Queue) -> None:
        """Add a queue of the collection."""
        self._addressed.clear()
        if isinstance(queue, OutgoingQueue):
            if queue.destination is not None and queue.acknowledged_peer is None:
                self._outgoing[queue.destination] = queue
                if queue.asked_by == "":
                    self._places[place_of(queue.destination)] += 1
        elif queue.owner_queue is None:
            self._by_path[_key(queue.pathname)] = queue
            self._by_identifier[queue.identifier] = queue
            if queue.private_queue_number:
                self._private[queue.private_queue_number] = queue  # MQMQ-2.2.18.1.7.2-03
            self.bind(queue)

    def bind(self, queue: Queue) -> None:
        """Note the multicast address of a queue, also after a change: DMPR-3.1.1.2-15.

        A transactional queue has none: no multicast message is in a transaction.
        """
        self._unbind(queue)
        group = None if queue.transactional else group_of(queue.multicast_address)
        if group is not None:
            self._group_of[queue.number] = group
            self._groups.setdefault(group, {})[queue.number] = queue

    def multicast_queues(self, address: str, port: int) -> list[Queue]:
        """Return the queues that get the messages of a multicast group, in the order they were created."""
        queues = self._groups.get((address, port), {})  # SRMP-2.1.2-02
        return [queues[number] for number in sorted(queues)]

    @property
    def multicast_groups(self) -> frozenset[tuple[str, int]]:
        """The groups, as pairs of address and port, that any queue listens to."""
        return frozenset(self._groups)

    def remove(self, queue: Queue) -> None:
        """Remove a queue that has left the collection."""
        self._addressed.clear()
        if isinstance(queue, OutgoingQueue):
            if queue.destination is not None and queue.acknowledged_peer is None:
                self._outgoing.pop(queue.destination, None)
                if queue.asked_by == "":
                    place = place_of(queue.destination)
                    self._places[place] -= 1
                    if not self._places[place]:
                        del self._places[place]
        elif queue.owner_queue is None:
            self._by_path.pop(_key(queue.pathname), None)
            self._by_identifier.pop(queue.identifier, None)
            self._private.pop(queue.private_queue_number, None)
            self._unbind(queue)

    def _unbind(self, queue: Queue) -> None:
        group = self._group_of.pop(queue.number, None)
        if group is not None:
            del self._groups[group][queue.number]
            if not self._groups[group]:
                del self._groups[group]

    def unused_private_number(self) -> int:
        """Return an unused PrivateQueueNumber: DMPR-3.1.7.1.3-09. The lowest belong to system queues."""
        # MQMQ-2.2.18.1.5.1-02, MQMQ-2.2.18.1.7.2-03, DMPR-3.1.7.1.3-09
        return max((_LAST_SYSTEM_NUMBER, *self._private)) + 1

    def is_local(self, host: str) -> bool:
        """Whether a name or address belongs to this computer."""
        host, manager = host.lower(), self._queue_manager
        names = (manager.computer_name.lower(), manager.qualified_computer_name.lower())
        return host in names or host in self.addresses

    def is_local_name(self, name: FormatName) -> bool:
        """Whether a name belongs to a queue of this queue manager."""
        match name:
            case DirectName():
                return self._is_own_url(name) if name.port is not None else self.is_local(name.host)
            case PrivateName() | MachineName():
                return name.guid == self._queue_manager.identifier
            case PublicName():
                return name.guid in self._by_identifier
        return False

    def is_own_host(self, name: DirectName) -> bool:
        """Whether an HTTP name belongs to this computer, at any port.

        A loopback address belongs to this queue manager if it listens there: another one may listen at the
        next address.
        """
        host, hosts = _normal(name.host), self._http_hosts
        if hosts is not None and host in hosts:
            return True
        if not self.http_ports or not is_loopback(host):
            return self.is_local(name.host)
        if hosts is None or not hosts.isdisjoint(_ANY_ADDRESS):
            return True
        if any(map(is_loopback, hosts)):
            return host == _LOCALHOST and not hosts.isdisjoint(_OF_LOCALHOST)
        return self.is_local(name.host)

    def _is_own_url(self, name: DirectName) -> bool:
        """Whether an HTTP name belongs to this queue manager.

        It names this computer without a port, as behind a proxy, or with one of its ports: another queue
        manager may listen at another port. ``localhost`` can't be a queue manager that does not listen.
        """
        return self.is_own_host(name) and (name.port in self.http_ports or name.port in HTTP_PORTS.values())

    def path(self, pathname: str) -> Queue | None:
        """Return the queue with a path name; case does not matter."""
        return self._by_path.get(_key(pathname))

    def outgoing(self, name: FormatName) -> OutgoingQueue | None:
        """Return the outgoing queue to a destination."""
        return self._outgoing.get(name)

    def is_asked_locally(self, name: FormatName) -> bool:
        """Whether local applications send to the place of a name: see `place_of`."""
        return place_of(name) in self._places

    def find(self, name: FormatName) -> Queue | None:
        """Return the local queue that a format name refers to; outgoing queues are left out."""
        match name:
            case DirectName():
                return self._direct(name) if self.is_local_name(name) else None
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
        """Return the queue that a message for this queue manager is addressed to."""
        queue = self._addressed.get(name)
        if queue is None:
            if isinstance(name, DirectName):
                queue = self._direct(name)
            elif isinstance(name, PrivateName):
                queue = _part(self._private.get(name.number), journal=name.journal)
            else:
                queue = self.find(name)
            if queue is not None:
                if len(self._addressed) >= _ADDRESSED_MAX:
                    self._addressed.clear()
                self._addressed[name] = queue
        return queue

    def _direct(self, name: DirectName) -> Queue | None:
        """Return the queue with a direct name, whatever its host."""
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


def group_of(multicast_address: str | None) -> tuple[str, int] | None:
    """Return address and port of a MulticastAddress; None for any other text."""
    if multicast_address is None:
        return None
    try:
        name = parse_format_name(f"MULTICAST={multicast_address}")
    except InvalidName:
        return None
    return (name.address, name.port) if isinstance(name, MulticastName) else None


def place_of(name: FormatName) -> object:
    """Return the place of a name: a host in lower case, or the identifier of a queue manager or queue."""
    return name.host.lower() if isinstance(name, DirectName) else getattr(name, "guid", name)


def _normal(host: str) -> str:
    """Return a host in the form for comparisons."""
    try:
        return str(ip_address(host))
    except ValueError:
        return host.lower()


def _key(pathname: str) -> str:
    return pathname.lower()


def _part(queue: Queue | None, *, journal: bool, subqueue: str | None = None) -> Queue | None:
    """Return a queue, its journal, or one of its subqueues."""
    if queue is None:
        return None
    if subqueue is not None:
        queue = queue.subqueues.get(subqueue.lower())
    return queue.journal if queue is not None and journal else queue


def queue_type(path: PathName) -> QueueType:
    """Return the QueueType that a path name implies: DMPR-3.1.7.1.3-07."""
    if path.private:
        return QueueType.PRIVATE
    return QueueType.SYSTEM if path.system else QueueType.PUBLIC
