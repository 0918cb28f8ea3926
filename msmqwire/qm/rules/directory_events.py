"""The events on the directory: [MS-MQDMPR] 3.1.6.1, 3.1.6.2, 3.1.7.1.18 to 26, 3.1.7.3.8."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidName
from msmqwire.names import (
    DirectName,
    DistributionListName,
    FormatName,
    MultipleElementName,
    PrivateName,
    PublicName,
    SingleName,
)
from msmqwire.qm.directory import CreateResult, Directory, QueryResult, ReadResult, SortOrder
from msmqwire.qm.directory.attributes import ATTRIBUTES, Filter, Operator, known_filters, satisfies, update
from msmqwire.qm.model.directory_objects import DirectoryObject, Enterprise, Site
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult, QueueType
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer, Timers

_SUCCESS: Final = DirectoryOperationResult.SUCCESS
_NOT_CONNECTED: Final = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED

# The prefix of the queue in a direct format name: [MS-MQMQ] 2.1.2.
_UP_TO_ADDRESS: Final = re.compile(r"DIRECT=(?:HTTPS?://[^/\\]*/MSMQ|[^\\]*)", re.IGNORECASE | re.ASCII)


class ChangeOperation(Enum):
    """The event of an object: iOperation of Send Change Notification, [MS-MQCN] 3.3.4.1."""

    QUEUE_CREATION = "QueueCreation"
    QUEUE_DELETION = "QueueDeletion"
    QUEUE_UPDATE = "QueueUpdate"
    QUEUE_MANAGER_UPDATE = "QueueManagerUpdate"


class QueuePath(NamedTuple):
    """The result of Get Queue Path: [MS-MQDMPR] 3.1.7.1.26.

    Attributes:
        status: MQ_OK or MQ_ERROR_ILLEGAL_FORMATNAME.
        pathname: rPathName; empty if it is not known.
        machine: rMachineName, the name or address of the host.
    """

    status: int
    pathname: str = ""
    machine: str = ""


def _ignore(*_arguments: object) -> None:
    """The default of callbacks."""


class DirectoryEvents:
    """The events on the directory of one queue manager.

    Without a directory the queue manager is in workgroup mode: reads are answered as while the directory is
    offline, everything else with DirectoryNotConnected, and nothing is retried.

    Attributes:
        notify: Send Change Notification: called with each change of a public queue or a queue manager.
        updated: called with each element that was updated from the directory.
    """

    def __init__(
        self,
        queue_manager: QueueManager,
        directory: Directory | None,
        timers: Timers,
        notify: Callable[[ChangeOperation, DirectoryObject], None] = _ignore,
        *,
        settings: Settings | None = None,
    ) -> None:
        """Set DirectoryIntegrated of the queue manager: whether it has a directory."""
        self._queue_manager, self._directory, self._timers = queue_manager, directory, timers
        self.notify = notify
        self.updated: Callable[[DirectoryObject], None] = _ignore
        self._settings = settings or Settings()
        queue_manager.directory_integrated = directory is not None  # DMPR-3.1.1.1-30
        if directory is None:
            queue_manager.directory_offline = False  # DMPR-3.1.1.1-33

    # -- changes --------------------------------------------------------------------------------------

    def create_directory_object(
        self, directory_object: DirectoryObject, attributes: Sequence[str] | None = None
    ) -> CreateResult:
        """Create Directory Object: [MS-MQDMPR] 3.1.7.1.18."""
        if self._directory is None:
            return CreateResult(_NOT_CONNECTED)
        if _is_public(directory_object):
            self.notify(ChangeOperation.QUEUE_CREATION, directory_object)  # DMPR-3.1.7.1.18-01
        created = self._directory.create_directory_object(directory_object, attributes)
        self._check_online(created.status)  # DMPR-3.1.7.1.18-04
        return created  # DMPR-3.1.7.1.18-03 and -05

    def delete_directory_object(self, directory_object: DirectoryObject) -> DirectoryOperationResult:
        """Delete Directory Object: [MS-MQDMPR] 3.1.7.1.19."""
        if self._directory is None:
            return _NOT_CONNECTED
        if _is_public(directory_object):
            self.notify(ChangeOperation.QUEUE_DELETION, directory_object)  # DMPR-3.1.7.1.19-01
        # DMPR-3.1.7.1.19-03 and -04
        return self._check_online(self._directory.delete_directory_object(directory_object))

    def write_directory(
        self, directory_object: DirectoryObject, attributes: Sequence[str] | None = None
    ) -> DirectoryOperationResult:
        """Write Directory: [MS-MQDMPR] 3.1.7.1.24."""
        if self._directory is None:
            return _NOT_CONNECTED
        status = self._check_online(self._directory.write_directory(directory_object, attributes))
        if status is _SUCCESS:  # notified afterwards, unlike for the other events: DMPR-3.1.7.1.24-03, -02
            if _is_public(directory_object):
                self.notify(ChangeOperation.QUEUE_UPDATE, directory_object)  # DMPR-3.1.7.1.24-03
            elif isinstance(directory_object, QueueManager):  # DMPR-3.1.7.1.24-04
                self.notify(ChangeOperation.QUEUE_MANAGER_UPDATE, directory_object)
        return status  # DMPR-3.1.7.1.24-01 and -02

    # -- reads ----------------------------------------------------------------------------------------

    def read_directory(
        self,
        object_type: str,
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
        *,
        force: bool = False,
    ) -> ReadResult:
        """Read Directory: [MS-MQDMPR] 3.1.7.1.20.

        While the directory is offline, the result for queues and the queue manager of this computer is the
        local element itself.

        Args:
            object_type: the name of the type ("Queue").
            filters: the conditions for the object; None for the first object.
            attributes: the attributes to read; None for all.
            force: iForceDirectoryRead.
        """
        # DMPR-3.1.7.1.20-04 to -06
        if self._directory is None or (self._queue_manager.directory_offline and not force):
            return self._read_local(object_type, filters or ())
        result = self._directory.read_directory(object_type, filters, attributes)
        if not force:  # DMPR-3.1.7.1.20-08
            self._check_online(result.status)
        return result  # DMPR-3.1.7.1.20-03 and -07

    def read_by_identifier(
        self, object_type: str, identifier: UUID, attributes: Sequence[str] | None = None
    ) -> DirectoryObject | None:
        """Read Directory for the object with an identifier; None if it can't be read."""
        identified: Filter = ("Identifier", Operator.EQUALS, identifier)
        return self.read_directory(object_type, [identified], attributes).object

    def _read_local(self, object_type: str, filters: Sequence[Filter]) -> ReadResult:
        """Read an element of this queue manager."""
        if object_type not in ATTRIBUTES or not known_filters(object_type, filters):
            return ReadResult(DirectoryOperationResult.GENERIC_ERROR)
        manager = self._queue_manager
        if object_type == "Queue":  # DMPR-3.1.7.1.20-04
            for queue in manager.queues.values():
                if _matches(queue, object_type, filters):  # DMPR-3.1.7.1.20-04
                    return ReadResult(_SUCCESS, queue)  # DMPR-3.1.7.1.20-04
            return ReadResult(DirectoryOperationResult.OBJECT_NOT_FOUND)  # DMPR-3.1.7.1.20-04
        # DMPR-3.1.7.1.20-05
        if object_type == "QueueManager" and _matches(manager, object_type, filters):
            return ReadResult(_SUCCESS, manager)  # DMPR-3.1.7.1.20-05
        return ReadResult(_NOT_CONNECTED)  # DMPR-3.1.7.1.20-06

    def read_directory_begin(
        self,
        object_type: str,
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
        sort_order: Sequence[SortOrder] | None = None,
    ) -> QueryResult:
        """Read Directory Begin: DMPR-3.1.7.1.21-01."""
        if self._directory is None:
            return QueryResult(_NOT_CONNECTED)
        return self._directory.read_directory_begin(object_type, filters, attributes, sort_order)

    def read_directory_next(self, handle: int) -> ReadResult:
        """Read Directory Next: DMPR-3.1.7.1.22-01."""
        if self._directory is None:
            return ReadResult(_NOT_CONNECTED)
        return self._directory.read_directory_next(handle)

    def read_directory_end(self, handle: int) -> DirectoryOperationResult:
        """Read Directory End: [MS-MQDMPR] 3.1.7.1.23."""
        if self._directory is None:
            return _NOT_CONNECTED
        return self._directory.read_directory_end(handle)  # DMPR-3.1.7.1.23-01

    # -- offline and online ---------------------------------------------------------------------------

    def _check_online(self, status: DirectoryOperationResult) -> DirectoryOperationResult:
        """Go offline if the directory is not connected; the timer tries again."""
        if status is _NOT_CONNECTED:
            self._queue_manager.directory_offline = True  # DMPR-3.1.1.1-33
            if not self._timers.active(Timer.DIRECTORY_ONLINE, None):
                self._start_online_timer()
        return status

    def _start_online_timer(self) -> None:
        self._timers.start(  # DMPR-3.1.2.5-01
            Timer.DIRECTORY_ONLINE, None, self._settings.directory_online_ms, self.check_directory_online
        )

    def check_directory_online(self) -> None:
        """Check Directory Online: [MS-MQDMPR] 3.1.7.1.25."""
        manager = self._queue_manager
        if self._directory is None:
            return
        probe = self.read_directory(  # DMPR-3.1.7.1.25-01
            "QueueManager", [("Identifier", Operator.EQUALS, manager.identifier)], force=True
        )
        if probe.object is None:
            self._start_online_timer()  # DMPR-3.1.7.1.25-04
            return
        self._update(manager, probe.object)  # DMPR-3.1.7.1.25-02
        manager.directory_offline = False
        for queue in list(manager.queues.values()):
            if _is_public(queue) and queue.owner_queue is None:  # journals and subqueues are not published
                self._refresh(queue)  # DMPR-3.1.7.1.25-03

    def initialize(self) -> None:
        """Initialization with a directory: [MS-MQDMPR] 3.1.3.

        Update the queue manager from the directory, read its sites and its enterprise, and start the timers
        of Directory Sites Update and Directory Site Gates Update.
        """
        if self._directory is None:
            return
        manager = self._queue_manager
        published = self.read_by_identifier("QueueManager", manager.identifier)
        if published is not None and published is not manager:  # DMPR-3.1.3-15, DMPR-3.1.3-17
            self._update(manager, published)
            sites = [
                self.read_by_identifier("Site", identifier) for identifier in manager.site_identifier_list
            ]
            # DMPR-3.1.1.1-42
            manager.site_collection = [site for site in sites if isinstance(site, Site)]  # DMPR-3.1.3-16
        status, enterprise = self.read_directory(
            "Enterprise", None, ["NonLDAPCapableQueueManagerNotification"]
        )
        if isinstance(enterprise, Enterprise):  # DMPR-3.1.3-18, DMPR-3.1.3-17, DMPR-3.1.1.1-47
            manager.enterprise = enterprise  # DMPR-3.1.1.1-47
        elif status is DirectoryOperationResult.ATTRIBUTE_NOT_FOUND:  # DMPR-3.1.3-19, DMPR-3.1.1.6-03
            # DMPR-3.1.1.6-03
            manager.enterprise = Enterprise(NULL_GUID, non_ldap_capable_queue_manager_notification=True)
        self.start_timers()  # DMPR-3.1.3-20, DMPR-3.1.3-17

    def start_timers(self) -> None:
        """Start the timers of Directory Sites Update and Site Gates Update, as Initialization does."""
        if self._directory is not None:
            settings = self._settings
            self._repeat(  # DMPR-3.1.2.1-01
                Timer.DIRECTORY_SITES_UPDATE, settings.directory_sites_update_ms, self.directory_sites_update
            )
            self._repeat(
                Timer.DIRECTORY_SITE_GATES_UPDATE,
                settings.directory_site_gates_update_ms,  # DMPR-3.1.2.2-01
                self.directory_site_gates_update,
            )

    def _repeat(self, timer: Timer, interval: int, update: Callable[[], None]) -> None:
        """Call `update` every `interval` milliseconds."""

        def expired() -> None:
            self._repeat(timer, interval, update)
            update()

        self._timers.start(timer, None, interval, expired)

    def directory_sites_update(self) -> None:
        """Directory Sites Update: [MS-MQDMPR] 3.1.6.1."""
        for site in self._queue_manager.site_collection:
            self._refresh(site)  # DMPR-3.1.6.1-01

    def directory_site_gates_update(self) -> None:
        """Directory Site Gates Update: [MS-MQDMPR] 3.1.6.2."""
        for site in self._queue_manager.site_collection:
            for gate in site.site_gates:
                self._refresh(gate)  # DMPR-3.1.6.2-01

    def _refresh(self, element: Queue | QueueManager | Site) -> None:
        """Update an element from the directory, if it is published."""
        published = self.read_by_identifier(type(element).__name__, element.identifier)
        if published is not None and published is not element:
            self._update(element, published)

    def _update(self, element: DirectoryObject, published: DirectoryObject) -> None:
        update(element, published)
        if element is self._queue_manager:
            self._find_routing_servers()
        self.updated(element)

    def _find_routing_servers(self) -> None:
        """Set the collections of routing servers to those that the lists name."""
        manager = self._queue_manager
        # DMPR-3.1.1.1-45
        manager.out_routing_servers = self._queue_managers(manager.out_routing_server_identifier_list)
        # DMPR-3.1.1.1-46
        manager.in_routing_servers = self._queue_managers(manager.in_routing_server_identifier_list)

    def _queue_managers(self, identifiers: Sequence[UUID]) -> list[QueueManager]:
        """Read queue managers; those that the directory does not have are left out."""
        reads = [
            self.read_directory("QueueManager", [("Identifier", Operator.EQUALS, identifier)], force=True)
            for identifier in identifiers
        ]
        return [read.object for read in reads if isinstance(read.object, QueueManager)]

    # -- names ----------------------------------------------------------------------------------------

    def get_queue_path(self, name: FormatName) -> QueuePath:
        """Get Queue Path: [MS-MQDMPR] 3.1.7.1.26."""
        match name:
            case DirectName():
                machine = name.host if name.port is not None else name.address
                start = _UP_TO_ADDRESS.match(name.text)
                assert start is not None, "the name was parsed"
                return QueuePath(MQ_OK, machine + name.text[start.end() :], machine)  # DMPR-3.1.7.1.26-01
            case PublicName():
                queue = self.read_by_identifier("Queue", name.guid)  # DMPR-3.1.7.1.26-02
                # DMPR-3.1.7.1.26-02
                if not isinstance(queue, Queue) or queue.queue_manager is None:
                    return QueuePath(HResult.MQ_ERROR_ILLEGAL_FORMATNAME)  # DMPR-3.1.7.1.26-03
                return QueuePath(MQ_OK, queue.pathname, queue.queue_manager.computer_name)
            case PrivateName():
                manager = self.read_by_identifier("QueueManager", name.guid)
                if not isinstance(manager, QueueManager):
                    return QueuePath(HResult.MQ_ERROR_ILLEGAL_FORMATNAME)  # DMPR-3.1.7.1.26-05
                return QueuePath(MQ_OK, self._private_path(name), manager.computer_name)
        return QueuePath(MQ_OK)  # DMPR-3.1.7.1.26-06

    def _private_path(self, name: PrivateName) -> str:
        """Return the path name of a private queue of this computer: DMPR-3.1.7.1.26-04."""
        if name.guid == self._queue_manager.identifier:
            for queue in self._queue_manager.queues.values():
                if queue.queue_type is QueueType.PRIVATE and queue.private_queue_number == name.number:
                    return queue.pathname
        return ""

    def expand_format_name(self, name: FormatName) -> FormatName | None:
        """Expand Format Name: [MS-MQDMPR] 3.1.7.3.8: without distribution lists, each element once, in order.

        Returns None where the specification says FALSE: a distribution list can't be resolved, or its
        elements make no format name.
        """
        if not isinstance(name, DistributionListName | MultipleElementName):
            return name  # DMPR-3.1.7.3.8-01
        names = self._resolved(name)
        if names is None:
            return None
        elements = each_once(names)
        if len(elements) == 1:
            return elements[0]  # DMPR-3.1.7.3.8-05
        try:  # DMPR-3.1.7.3.8-06
            return MultipleElementName(tuple(elements))  # type: ignore[arg-type]  # it checks each element
        except InvalidName:
            return None

    def _resolved(self, name: DistributionListName | MultipleElementName) -> list[SingleName] | None:
        """Return the elements of a name with all distribution lists resolved: DMPR-3.1.7.3.8-02."""
        unresolved: list[SingleName] = (
            list(name.elements) if isinstance(name, MultipleElementName) else [name]
        )
        names: list[SingleName] = []
        seen = set()
        for element in unresolved:
            if not isinstance(element, DistributionListName):
                names.append(element)
            elif element.guid not in seen:  # a list may contain itself
                seen.add(element.guid)
                if self._directory is None:
                    return None
                resolved = self._directory.resolve_distribution_list(element)
                if resolved.status is not _SUCCESS:  # DMPR-3.1.7.3.8-03
                    return None
                unresolved.extend(resolved.names)
        return names


def each_once(names: Sequence[SingleName]) -> list[SingleName]:
    """Return names without repetitions and in the order of Expand Format Name: DMPR-3.1.7.3.8-04."""
    by_text = {str(name).casefold(): name for name in reversed(names)}
    return [by_text[text] for text in sorted(by_text)]


def _is_public(directory_object: DirectoryObject) -> bool:
    return isinstance(directory_object, Queue) and directory_object.queue_type is QueueType.PUBLIC


def _matches(element: DirectoryObject, object_type: str, filters: Sequence[Filter]) -> bool:
    fields = ATTRIBUTES[object_type]
    return satisfies(filters, lambda name: getattr(element, fields[name]))
