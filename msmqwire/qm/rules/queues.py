"""Queues created, deleted, opened and closed: [MS-MQDMPR] 3.1.7.1.1 to 6, 3.1.7.1.33, 3.1.7.2.3 to 6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.errors import InvalidName
from msmqwire.names import (
    DirectName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse_path_name,
)
from msmqwire.qm.model import access
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import MulticastGroups
from msmqwire.qm.model.elements import Cursor, OpenQueueDescriptor, OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    DirectoryOperationResult,
    OutgoingQueueState,
    QueueAccessType,
    QueuePrivacy,
    QueueScope,
    QueueShareMode,
    QueueType,
)
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.rules import cursors, stored_rows
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.lookup import NOTIFICATION_QUEUE_NUMBER, ORDER_QUEUE_NUMBER, Lookup, queue_type
from msmqwire.qm.rules.memory_pool import CHARACTER_BYTES, QUEUE_BYTES, Kind
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.own_moves import POISON
from msmqwire.qm.rules.policies import Policies
from msmqwire.qm.rules.queue_states import QueueStates, is_http
from msmqwire.qm.rules.sharing import violates_sharing

_SUCCESS: Final = DirectoryOperationResult.SUCCESS
_SEND: Final = QueueAccessType.SEND_ACCESS
_CREATION_ATTRIBUTES: Final = {  # DMPR-3.1.7.1.33-12
    "label", "type", "pathname", "journaling", "quota", "journal_quota", "authentication", "privacy_level",
    "transactional", "multicast_address", "security", "base_priority", "time_to_live", "when_full",
    "delivery_limit", "poison", "own",
}  # fmt: skip
"""The attributes of a new queue that come from iQueue: DMPR-3.1.7.1.3-01, -04."""
_INTERNAL_QUEUE_NUMBERS: Final = (ORDER_QUEUE_NUMBER, NOTIFICATION_QUEUE_NUMBER)
"""PrivateQueueNumber of the system queues that are not for applications: DMPR-3.1.3-22."""


class Queues(QueueStates):
    """The events on queues of one queue manager.

    Attributes:
        lookup: finds queues by name.
        memory: counts the outgoing queues that peers asked for.
        policies: the policies, and what follows from them.
        when_asked_locally: called with an outgoing queue that only peers have asked for so far, and that a
            local application now opens.
    """

    def __init__(
        self, context: Context, messages: MessageEvents, directory: DirectoryEvents, lookup: Lookup
    ) -> None:
        super().__init__(context)
        self._messages, self._directory = messages, directory
        self.policies = Policies(context)
        self.lookup = lookup
        self.memory = messages.pool
        self.when_asked_locally: Callable[[OutgoingQueue], None] | None = None
        self._handles = 0
        self._numbers = 0
        self._groups: frozenset[tuple[str, int]] = frozenset()  # as last announced

    # -- creating and deleting ----------------------------------------------------------------------

    def set_defaults(self, queue: Queue, owner: bytes | None = None) -> None:
        """Set Queue Defaults: [MS-MQDMPR] 3.1.7.1.33. `owner` is the SID of its creator."""
        queue.label = ""  # DMPR-3.1.7.1.33-01
        queue.type = NULL_GUID  # DMPR-3.1.7.1.33-02, DMPR-3.1.1.2-05
        queue.journaling = queue.authentication = queue.transactional = False  # DMPR-3.1.7.1.33-03, -06, -08
        queue.quota = queue.journal_quota = INFINITE  # DMPR-3.1.7.1.33-04 and -05, DMPR-3.1.1.2-10, -11
        queue.privacy_level = QueuePrivacy.OPTIONAL  # DMPR-3.1.7.1.33-07, DMPR-3.1.1.2-13
        queue.multicast_address = None  # DMPR-3.1.7.1.33-09
        queue.base_priority = 0  # DMPR-3.1.7.1.33-10
        queue.security = self.default_security(owner)  # DMPR-3.1.7.1.33-11

    def default_security(self, owner: bytes | None) -> bytes:
        """Create Default Queue Security Descriptor, by `Settings.local_owner` and `strangers_may_send`."""
        settings = self._context.settings
        return access.default_security(
            owner,
            local_owner=settings.local_owner and not self._context.queue_manager.directory_integrated,
            anonymous_may_send=settings.strangers_may_send,
        )

    def create(
        self, template: Queue, *, skip_directory: bool = False, number: int = 0
    ) -> tuple[int | DirectoryOperationResult, Queue | None]:
        """Create Queue: [MS-MQDMPR] 3.1.7.1.3.

        Args:
            template: iQueue: a queue with the defaults of `set_defaults`, then changed as desired.
            skip_directory: iSkipDirectory.
            number: the unused PrivateQueueNumber of a private queue; 0 for the next one.

        Returns:
            MQ_OK and the queue, or an error and None: a DirectoryOperationResult where the directory does not
            accept a public queue.
        """
        context, manager = self._context, self._context.queue_manager
        try:
            path = parse_path_name(template.pathname)  # DMPR-3.1.7.1.3-02, DMPR-3.1.1.2-06
        except InvalidName as error:
            return error.hresult, None  # DMPR-3.1.1.2-06
        parent = self.lookup.path(str(type(path)(path.computer, path.queue, path.private, path.system)))
        exists = parent if path.subqueue is None else parent and parent.subqueues.get(path.subqueue.lower())
        if exists:
            return HResult.MQ_ERROR_QUEUE_EXISTS, None
        if path.subqueue is not None and parent is None:
            return HResult.MQ_ERROR_QUEUE_NOT_FOUND, None
        queue = Queue(context.new_guid(), **{name: getattr(template, name) for name in _CREATION_ATTRIBUTES})
        queue.create_time = queue.modify_time = context.utc  # DMPR-3.1.7.1.3-06, DMPR-3.1.1.2-03 and -04
        queue.queue_type = queue_type(path)
        host = manager.qualified_computer_name or manager.computer_name  # DMPR-3.1.1.2-07
        queue.qualified_pathname = f"{host}{template.pathname[len(path.computer) :]}"  # DMPR-3.1.7.1.3-08
        queue.scope = QueueScope.ENTERPRISE
        if queue.queue_type is QueueType.PRIVATE and path.subqueue is None:  # DMPR-3.1.1.2-08
            # DMPR-3.1.7.1.3-09
            queue.private_queue_number = number or self.lookup.unused_private_number()
        if queue.queue_type is QueueType.PUBLIC and not skip_directory:  # DMPR-3.1.7.1.3-01, -12
            status = self._publish(queue)
            if status is not _SUCCESS:  # DMPR-3.1.7.1.3-11
                return status, None
        if path.subqueue is not None:
            assert parent is not None
            queue.owner_queue, parent.subqueues[path.subqueue.lower()] = parent, queue  # DMPR-3.1.1.2-26
        self.policies.adopt(queue, fresh=True)
        self.policies.apply(queue)
        self.add(queue)
        if path.subqueue is None:  # DMPR-3.1.7.1.3-03, DMPR-3.1.1.2-25
            self.add_journal(queue)  # DMPR-3.1.7.1.3-03
        return MQ_OK, queue

    def _publish(self, queue: Queue) -> DirectoryOperationResult:
        """Create a public queue in the directory: DMPR-3.1.7.1.3-10."""
        status, guid = self._directory.create_directory_object(queue)
        if guid is not None:
            queue.identifier = guid
            published = self._directory.read_by_identifier("Queue", guid, ["FullPath", "DirectoryPath"])
            if isinstance(published, Queue):
                queue.full_path, queue.directory_path = published.full_path, published.directory_path
        return status

    def add(self, queue: Queue) -> None:
        """Add a new queue to the collection and the store."""
        self._numbers += 1
        queue.number = self._numbers
        self.restore(queue)
        stored_rows.put_queue(self._context.changes, queue)
        self.announce_groups()

    def announce_groups(self) -> None:
        """Notify the owner of the groups that queues listen to, none offline, if they have changed."""
        online = self._context.queue_manager.connection_active
        groups = self.lookup.multicast_groups if online else frozenset()
        if groups != self._groups:
            self._groups = groups
            self._context.effects.append(MulticastGroups(groups))

    def restore(self, queue: Queue) -> None:
        """Add a queue read from the store to the collection."""
        manager = self._context.queue_manager
        queue.queue_manager = manager  # DMPR-3.1.7.1.3-05, DMPR-3.1.1-07, DMPR-3.1.1.2-23
        manager.queues[queue.number] = queue  # DMPR-3.1.1-08, DMPR-3.1.7.1.3-13, DMPR-3.1.1.1-41
        if isinstance(queue, OutgoingQueue) and queue.asked_by and queue.destination is not None:
            self.memory.take(memory_kind(queue), queue.asked_by, outgoing_bytes(queue.destination))
        self._numbers = max(self._numbers, queue.number)
        self.lookup.add(queue)

    def forget(self, queue: OutgoingQueue) -> None:
        """Remove an outgoing queue that is empty and not open; it is created again when needed."""
        self._release_memory(queue)
        del self._context.queue_manager.queues[queue.number]
        self.lookup.remove(queue)
        stored_rows.delete_queue(self._context.changes, queue)

    def security_of(self, queue: Queue) -> bytes:
        """Return the security descriptor that applies to a queue.

        For a public queue it is the directory's, if that can be read.
        """
        known = self.known_security_of(queue)
        return queue.security if known is None else known

    def known_security_of(self, queue: Queue) -> bytes | None:
        """Return the security descriptor that applies to a queue; None if the directory can't be read."""
        if queue.queue_type is not QueueType.PUBLIC:
            return queue.security
        published = self._directory.read_by_identifier("Queue", queue.identifier, ["Security"])
        return published.security if isinstance(published, Queue) else None

    def add_journal(self, queue: Queue) -> None:
        """Create the journal of a new queue."""
        journal = Queue(self._context.new_guid(), pathname=queue.pathname, quota=queue.journal_quota)
        journal.queue_type, journal.security = QueueType.SYSTEM, queue.security
        journal.transactional = queue.transactional
        journal.owner_queue, queue.journal = queue, journal  # DMPR-3.1.7.1.3-03, DMPR-3.1.1.2-25
        self.add(journal)  # DMPR-3.1.7.1.3-03

    def changed(self, queue: Queue) -> None:
        """Store the changed attributes of a queue, and apply them to its journal."""
        queue.modify_time = self._context.utc  # DMPR-3.1.1.2-04
        self.policies.adopt(queue)
        if queue.journal is not None:
            queue.journal.quota, queue.journal.security = queue.journal_quota, queue.security
            stored_rows.put_queue(self._context.changes, queue.journal)
        stored_rows.put_queue(self._context.changes, queue)
        if queue.owner_queue is None and not isinstance(queue, OutgoingQueue):
            self.lookup.bind(queue)
            self.announce_groups()

    def delete(self, queue: Queue, *, skip_directory: bool = False) -> DirectoryOperationResult:
        """Delete Queue: [MS-MQDMPR] 3.1.7.1.4."""
        deleted = [queue, *queue.subqueues.values()]
        if queue.journal is not None:
            deleted.append(queue.journal)
        for part in deleted:
            for position in part.positions:  # DMPR-3.1.7.1.4-02, DMPR-3.1.1.12-12
                self._messages.position_deleted(part, position, MessageClass.MQMSG_CLASS_NACK_Q_DELETED)
            for descriptor in part.descriptors.values():
                for reader in list(descriptor.waiting.values()):
                    self._messages.waiting_reads.stop(reader, HResult.MQ_ERROR_QUEUE_DELETED)
                descriptor.queue = None  # DMPR-3.1.7.1.4-03
            del self._context.queue_manager.queues[part.number]  # DMPR-3.1.7.1.4-04
            self.lookup.remove(part)
            if isinstance(part, OutgoingQueue):
                self._release_memory(part)
            stored_rows.delete_queue(self._context.changes, part)
        self.announce_groups()
        if queue.owner_queue is not None:
            name = parse_path_name(queue.pathname).subqueue or ""
            queue.owner_queue.subqueues.pop(name.lower(), None)
        if queue.queue_type is QueueType.PUBLIC and not skip_directory and queue.owner_queue is None:
            return self._directory.delete_directory_object(queue)  # DMPR-3.1.7.1.4-01, -05 and -06
        return _SUCCESS

    # -- opening and closing ------------------------------------------------------------------------

    def open(
        self,
        name: FormatName,
        access_type: QueueAccessType,
        share_mode: QueueShareMode = QueueShareMode.DENY_NONE,
        *,
        user: access.Token | None = None,
        asked_by: str = "",
    ) -> tuple[int, OpenQueueDescriptor | None]:
        """Open Queue: [MS-MQDMPR] 3.1.7.1.5.

        Args:
            user: the user whose rights are checked; None for the owner of the queue manager.
            asked_by: the origin of the message that it is opened for; empty for an application.
        """
        expanded = self._directory.expand_format_name(name)
        if expanded is None:
            return HResult.MQ_ERROR_ILLEGAL_FORMATNAME, None  # DMPR-3.1.7.1.5-01
        if isinstance(expanded, MultipleElementName):
            return self._open_multiple(expanded, access_type, share_mode, user)
        status, queue = self._target(expanded, access_type, asked_by, user)
        if queue is None:
            return status, None
        if not _may_open(queue, user, access_type):
            return HResult.MQ_ERROR_ACCESS_DENIED, None
        if violates_sharing(queue, access_type, share_mode):
            return HResult.MQ_ERROR_SHARING_VIOLATION, None
        descriptor = self._descriptor(expanded, access_type, share_mode, queue, user)
        # DMPR-3.1.7.1.5-24, DMPR-3.1.1-08, DMPR-3.1.1.2-33, DMPR-3.1.1.16-05
        queue.descriptors[descriptor.handle] = descriptor
        queue.opened_for[access_type, share_mode] += 1  # DMPR-3.1.1.16-04
        return MQ_OK, descriptor  # DMPR-3.1.7.1.5-02 and -24

    def _descriptor(
        self,
        name: FormatName,
        access_type: QueueAccessType,
        share_mode: QueueShareMode,
        queue: Queue | None,
        user: access.Token | None,
    ) -> OpenQueueDescriptor:
        self._handles += 1  # DMPR-3.1.7.1.5-05
        # DMPR-3.1.1.16-01 and -02, DMPR-3.1.7.1.5-24
        return OpenQueueDescriptor(
            self._handles, self._handles, access_type, share_mode, queue, name, user=user
        )

    def _open_multiple(
        self,
        name: MultipleElementName,
        access_type: QueueAccessType,
        share_mode: QueueShareMode,
        user: access.Token | None,
    ) -> tuple[int, OpenQueueDescriptor | None]:
        if access_type is not _SEND:
            return HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, None  # DMPR-3.1.7.1.5-03
        if share_mode is not QueueShareMode.DENY_NONE:
            return HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE, None  # DMPR-3.1.7.1.5-04
        parent = self._descriptor(name, _SEND, share_mode, None, user)
        parent.multiple = True  # DMPR-3.1.7.1.5-05, DMPR-3.1.1.16-07 and -08
        for element in name.elements:
            status, child = self.open(element, _SEND, user=user)
            if child is None:  # DMPR-3.1.7.1.5-06
                self.close(parent)  # DMPR-3.1.7.1.5-07
                return status, None
            parent.children.append(child)  # DMPR-3.1.1.16-09, DMPR-3.1.7.1.5-06
        return MQ_OK, parent

    def _target(
        self, name: FormatName, access_type: QueueAccessType, asked_by: str, user: access.Token | None
    ) -> tuple[int, Queue | None]:
        """Find the queue to open, or create the outgoing queue for it."""
        unsupported = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, None
        sends = access_type is _SEND
        if not sends and (is_http(name) or isinstance(name, MulticastName)):  # DMPR-3.1.7.1.5-08 and -10
            return unsupported
        if sends and (  # DMPR-3.1.7.1.5-09
            isinstance(name, MachineName) or (name.is_read_only and self.lookup.is_local_name(name))
        ):
            return unsupported
        existing = self.lookup.find(name) or self.lookup.outgoing(name)
        if existing is None and isinstance(name, DirectName) and name.subqueue is not None and not sends:
            parent = self._main_queue(name)
            if parent is not None and not _may_open(parent, user, access_type):  # before it is created
                return HResult.MQ_ERROR_ACCESS_DENIED, None
            existing = self.create_subqueue(name)
        if existing is not None:
            if sends and not asked_by and isinstance(existing, OutgoingQueue):
                self.ask_locally(existing)
            return MQ_OK, existing
        if not sends:
            return HResult.MQ_ERROR_QUEUE_NOT_FOUND, None  # DMPR-3.1.7.1.5-11
        manager = self._context.queue_manager
        if isinstance(name, DirectName | PrivateName) and self.lookup.is_local_name(name):
            return HResult.MQ_ERROR_QUEUE_NOT_FOUND, None  # DMPR-3.1.7.1.5-12 and -15
        base_priority = 0  # MQMQ-2.3.1.6-02
        if isinstance(name, PublicName):  # DMPR-3.1.7.1.5-17
            published = self._directory.read_by_identifier("Queue", name.guid)  # DMPR-3.1.7.1.5-13
            if not isinstance(published, Queue):  # DMPR-3.1.7.1.5-13
                return unsupported
            if self.lookup.is_local(parse_path_name(published.pathname).computer):
                return HResult.MQ_ERROR_QUEUE_NOT_FOUND, None  # DMPR-3.1.7.1.5-14
            base_priority = published.base_priority  # DMPR-3.1.7.1.5-17, MQMQ-2.3.1.6-02
        # DMPR-3.1.7.1.5-16
        queue = OutgoingQueue(self._context.new_guid(), label=name.canonical, destination=name)
        queue.base_priority = base_priority  # DMPR-3.1.7.1.5-17, MQMQ-2.3.1.6-02
        queue.multicast = isinstance(name, MulticastName)  # DMPR-3.1.7.1.5-19
        queue.security, queue.asked_by = manager.security, asked_by
        if manager.hardened_security and not is_http(name):  # DMPR-3.1.1.3-09, DMPR-3.1.7.1.5-18
            queue.state = OutgoingQueueState.LOCKED
        self.add(queue)
        return MQ_OK, queue

    def ask_locally(self, queue: OutgoingQueue) -> None:
        """A local application asks for an outgoing queue, whoever did so before."""
        if queue.asked_by == "":
            return
        self.lookup.remove(queue)
        self._release_memory(queue)
        queue.asked_by = ""
        self.lookup.add(queue)
        stored_rows.put_queue(self._context.changes, queue)
        if self.when_asked_locally is not None:
            self.when_asked_locally(queue)

    def ask_remotely(self, queue: OutgoingQueue, origin: str) -> None:
        """Note the origin whose messages asked for an outgoing queue, if it is not known yet."""
        assert queue.destination is not None, "an outgoing queue has a destination"
        queue.asked_by = origin
        self.memory.take(memory_kind(queue), origin, outgoing_bytes(queue.destination))
        stored_rows.put_queue(self._context.changes, queue)

    def _release_memory(self, queue: OutgoingQueue) -> None:
        if queue.asked_by and queue.destination is not None:
            self.memory.give_back(memory_kind(queue), queue.asked_by, outgoing_bytes(queue.destination))

    def create_subqueue(self, name: DirectName) -> Queue | None:
        """Create a subqueue, as its first opening does; None if its queue does not exist."""
        parent = self._main_queue(name)
        return None if parent is None else self._create_subqueue(parent, name.subqueue or "")

    def poison_queue(self, queue: Queue) -> Queue | None:
        """Return the subqueue for poison messages of a queue; it is made if it is missing."""
        parent = queue.owner_queue or queue
        return parent.subqueues.get(POISON) or self._create_subqueue(parent, POISON)

    def _create_subqueue(self, parent: Queue, name: str) -> Queue | None:
        template = Queue(NULL_GUID, pathname=f"{parent.pathname};{name}")
        for attribute in ("transactional", "security", "authentication", "privacy_level"):
            setattr(template, attribute, getattr(parent, attribute))
        return self.create(template, skip_directory=True)[1]

    def _main_queue(self, name: DirectName) -> Queue | None:
        """Return the queue that the subqueue of a name is in, or would be in."""
        return self.lookup.find(DirectName(name.protocol, name.address, name.queue, private=name.private))

    def close(self, descriptor: OpenQueueDescriptor) -> None:
        """Close Queue: [MS-MQDMPR] 3.1.7.1.6.

        Reads that wait are cancelled if they have a tag. Reads without a tag get no further message, and end
        only with their time: a caller whose read waits without limit ends it before closing the queue.
        """
        if descriptor.multiple:  # DMPR-3.1.7.1.6-02
            for child in descriptor.children:
                self.close(child)
            descriptor.children.clear()
            return
        queue = descriptor.queue
        if queue is None:  # DMPR-3.1.7.1.6-01
            return
        for reader in list(descriptor.waiting.values()):
            if reader.tag is not None:  # DMPR-3.1.7.1.6-03
                self._messages.waiting_reads.stop(reader, HResult.MQ_ERROR_OPERATION_CANCELLED)
        for cursor in list(descriptor.cursors.values()):
            self.close_cursor(cursor)  # DMPR-3.1.7.1.6-04
        if queue.descriptors.pop(descriptor.handle, None) is not None:  # DMPR-3.1.7.1.6-05
            queue.opened_for[descriptor.access_type, descriptor.share_mode] -= 1  # DMPR-3.1.1.16-04

    def open_cursor(self, descriptor: OpenQueueDescriptor) -> Cursor | None:
        """Open Cursor: [MS-MQDMPR] 3.1.7.1.1."""
        self._handles += 1  # DMPR-3.2.1.2-01
        cursor = cursors.open_cursor(descriptor, self._handles)
        if cursor is not None:  # DMPR-3.1.1.16-11
            descriptor.cursors[cursor.handle] = cursor  # DMPR-3.1.7.1.1-02, DMPR-3.2-01, DMPR-3.1.1-08
        return cursor

    def close_cursor(self, cursor: Cursor) -> None:
        """Close Cursor: [MS-MQDMPR] 3.1.7.1.2."""
        descriptor = cursor.descriptor
        # DMPR-3.1.7.1.2-01
        for reader in [waiting for waiting in descriptor.waiting.values() if waiting.cursor is cursor]:
            self._messages.waiting_reads.stop(reader, HResult.MQ_ERROR_OPERATION_CANCELLED)
        if descriptor.cursors.pop(cursor.handle, None) is not None:  # DMPR-3.1.7.1.2-02, DMPR-3.2.1.1-16
            cursors.close_cursor(cursor)


def _may_open(queue: Queue, user: access.Token | None, access_type: QueueAccessType) -> bool:
    """Whether a user may open a queue; the queues of the queue manager itself are closed to all."""
    internal = queue.private_queue_number in _INTERNAL_QUEUE_NUMBERS and queue.queue_type is QueueType.SYSTEM
    return not internal and access.may_open(queue, user, access_type)


def memory_kind(queue: OutgoingQueue) -> Kind:
    """Return the bytes that an outgoing queue takes in the memory for peers."""
    return Kind.QUEUES if queue.acknowledged_peer is None else Kind.ROUTES


def outgoing_bytes(destination: FormatName) -> int:
    """Return the bytes of memory of an outgoing queue."""
    return QUEUE_BYTES + CHARACTER_BYTES * len(destination.canonical)
