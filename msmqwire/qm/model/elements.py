"""Queue managers, queues and their elements: [MS-MQDMPR] 3.1.1.1 to .5, and .10 to .19."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from msmqwire.names import FormatName
from msmqwire.qm.model.directory_objects import DirectoryObject, Enterprise, Site
from msmqwire.qm.model.enumerations import (
    INFINITE,
    ConnectionStatus,
    CursorState,
    DirectoryServerType,
    OperatingSystemType,
    OperationType,
    OutgoingQueueState,
    QueueAccessType,
    QueueManagerState,
    QueuePrivacy,
    QueueScope,
    QueueShareMode,
    QueueType,
    RemoteReadState,
)
from msmqwire.qm.model.message import NO_SEQUENCE, NULL_GUID, TxSequenceId
from msmqwire.qm.model.positions import MessagePosition, MessagePositionList

SequenceKey = tuple[UUID, str, str]
"""A transactional sequence that ends here: its sender, the sender's name for the queue, and the origin that
the sequence is bound to, empty for none. A stream has the GUID in its identifier as the sender, and `STREAM`
before the name: the binary protocol can use the same names.
"""
STREAM: Final = "STREAM="


@dataclass(slots=True, eq=False, repr=False)
class QueueManager(DirectoryObject):
    """A queue manager, the local one or another: [MS-MQDMPR] 3.1.1.1.

    Attributes:
        queue_manager_quota: bytes for all queues.
        journal_quota: kilobytes for the journals of all queues.
        queues: QueueCollection, outgoing queues too, by number.
        total_bytes: bytes of the messages of all queues, limited by `queue_manager_quota`.
        sequential_id: counts the enqueued messages; persistent.
    """

    computer_name: str = ""
    queue_manager_version: str = ""  # DMPR-3.1.1.1-02
    operating_system_version: str = ""  # DMPR-3.1.1.1-05
    operating_system_type: OperatingSystemType = OperatingSystemType.OTHER  # DMPR-3.1.1.1-06
    qualified_computer_name: str = ""
    create_time: int = 0
    modify_time: int = 0
    queue_manager_quota: int = 0x00100000  # DMPR-3.1.1.1-10
    journal_quota: int = INFINITE  # DMPR-3.1.1.1-11
    foreign_system: bool = False  # DMPR-3.1.1.1-12
    full_path: str = ""
    site_identifier_list: list[UUID] = field(default_factory=list)  # DMPR-3.1.1.1-14
    connected_network_identifier_list: list[UUID] = field(default_factory=list)  # DMPR-3.1.1.1-15
    out_routing_server_identifier_list: list[UUID] = field(default_factory=list)  # DMPR-3.1.1.1-16
    in_routing_server_identifier_list: list[UUID] = field(default_factory=list)  # DMPR-3.1.1.1-17
    directory_server: bool = False  # DMPR-3.1.1.1-18
    remote_access_server: bool = False  # DMPR-3.1.1.1-19
    routing_server: bool = False  # DMPR-3.1.1.1-20
    supporting_server: bool = False  # DMPR-3.1.1.1-21
    directory_server_type: DirectoryServerType | None = None  # DMPR-3.1.1.1-22
    public_encryption_key_list: bytes = b""  # DMPR-3.1.1.1-23
    public_signing_key_list: bytes = b""  # DMPR-3.1.1.1-24
    security: bytes = b""
    clustered: bool = False  # DMPR-3.1.1.1-26
    machine_domain_id: UUID = NULL_GUID
    last_domain: UUID | None = None
    directory_server_list: list[str] = field(default_factory=list)  # DMPR-3.1.1.1-29
    directory_integrated: bool = False
    srmp_http_support: bool = False  # DMPR-3.1.1.1-31
    srmp_pgm_support: bool = False  # DMPR-3.1.1.1-32
    directory_offline: bool = False  # DMPR-3.1.1-13
    throttled: bool = False  # DMPR-3.1.1.1-34, DMPR-3.1.1-13
    draining: bool = False  # nothing new is taken from peers, who send it again: not of the specification
    connection_active: bool = True  # DMPR-3.1.1.1-35, DMPR-3.1.1-13
    hardened_security: bool = False  # DMPR-3.1.1.1-36
    state: QueueManagerState = QueueManagerState.STOPPED  # DMPR-3.1.1.1-37, DMPR-3.1.1-13
    system_deadletter_queue: Queue | None = None  # DMPR-3.1.1.1-38
    system_transactional_deadletter_queue: Queue | None = None  # DMPR-3.1.1.1-39
    system_journal_queue: Queue | None = None  # DMPR-3.1.1.1-40
    queues: dict[int, Queue] = field(default_factory=dict)  # DMPR-3.1.1.1-41
    site_collection: list[Site] = field(default_factory=list)  # DMPR-3.1.1.1-42
    transactions: dict[UUID, Transaction] = field(default_factory=dict)  # DMPR-3.1.1.1-44
    out_routing_servers: list[QueueManager] = field(default_factory=list)
    in_routing_servers: list[QueueManager] = field(default_factory=list)
    enterprise: Enterprise | None = None  # DMPR-3.1.1.1-47
    initialization_retry_timer_duration: int = 120  # DMPR-3.1.1.1-48, DMPR-3.1.3-07
    sequential_id: int = 0
    total_bytes: int = 0


@dataclass(slots=True, eq=False, repr=False)
class Queue(DirectoryObject):
    """A queue of the local queue manager, or of the directory: [MS-MQDMPR] 3.1.1.2.

    Attributes:
        number: of the queue in this queue manager; it never changes and is never reused.
        time_to_live: seconds after which messages that arrive expire at the latest.
        when_full, poison: of `msmqwire.qm.model.policies`.
        delivery_limit: the count of deliveries at which a message is poison; 0 for no limit.
        own: the properties that were set on the queue itself, by name and as in JSON; others have what a
            policy says, or the default.
        quota, journal_quota: kilobytes.
        security: a self-relative SECURITY_DESCRIPTOR.
        journal: JournalQueueReference.
        owner_queue: the queue that this is a subqueue or the journal of.
        subqueues: SubqueueCollection, by name in lower case.
        incoming: IncomingTransactionalTransferInfoCollection, by `SequenceKey`.
        positions: MessagePositionList.
        descriptors: OpenQueueDescriptorCollection, by handle, in the order they were opened.
        opened_for: how many of them have each access type and share mode.
    """

    label: str = ""  # DMPR-3.1.1.2-02
    create_time: int = 0
    modify_time: int = 0
    type: UUID = NULL_GUID  # DMPR-3.1.1.2-05
    pathname: str = ""
    qualified_pathname: str = ""
    private_queue_number: int = 0
    journaling: bool = False  # DMPR-3.1.1.2-09
    quota: int = INFINITE  # DMPR-3.1.1.2-10
    journal_quota: int = INFINITE  # DMPR-3.1.1.2-11
    authentication: bool = False  # DMPR-3.1.1.2-12
    privacy_level: QueuePrivacy = QueuePrivacy.OPTIONAL  # DMPR-3.1.1.2-13
    transactional: bool = False  # DMPR-3.1.1.2-14
    multicast_address: str | None = None
    security: bytes = b""
    base_priority: int = 0  # DMPR-3.1.1.2-17
    full_path: str = ""  # DMPR-3.1.1.2-18
    directory_path: str = ""  # DMPR-3.1.1.2-19
    scope: QueueScope = QueueScope.ENTERPRISE
    time_to_live: int = INFINITE
    when_full: str = "refuse"
    delivery_limit: int = 0
    poison: str = "subqueue"
    own: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    total_bytes: int = 0  # DMPR-3.1.1.2-22
    queue_manager: QueueManager | None = None  # DMPR-3.1.1.2-23
    queue_type: QueueType = QueueType.PRIVATE
    journal: Queue | None = None  # DMPR-3.1.1.2-25
    owner_queue: Queue | None = None
    subqueues: dict[str, Queue] = field(default_factory=dict)  # DMPR-3.1.1.2-26
    # DMPR-3.1.1.2-27
    incoming: dict[SequenceKey, IncomingTransactionalTransferInfo] = field(default_factory=dict)
    descriptors: dict[int, OpenQueueDescriptor] = field(default_factory=dict)  # DMPR-3.1.1.2-33
    opened_for: Counter[tuple[QueueAccessType, QueueShareMode]] = field(default_factory=Counter, init=False)
    positions: MessagePositionList = field(init=False)

    def __post_init__(self) -> None:
        self.positions = MessagePositionList(self)

    @property
    def active(self) -> bool:
        """Whether the queue is in use: open, or an outgoing queue with messages to transfer."""
        return bool(self.descriptors)  # DMPR-3.1.1.2-21


@dataclass(slots=True, eq=False, repr=False)
class OutgoingQueue(Queue):
    """A queue of messages for a queue of another queue manager: [MS-MQDMPR] 3.1.1.3.

    Attributes:
        destination: DestinationFormatName.
        next_hops: addresses in the form of [MS-MQMQ] 2.3.12.12.
        acknowledged_peer: for a queue of order and final acknowledgements, the queue manager they are for.
        asked_by: the origin of the message that it was first opened for; empty once a local application has
            opened it; None if an older version has stored it and the origin is not known yet.
    """

    destination: FormatName | None = None
    next_hops: list[str] = field(default_factory=list)  # DMPR-3.1.1.3-02
    multicast: bool = False
    transfer: OutgoingTransferInfo = field(init=False)
    state: OutgoingQueueState = OutgoingQueueState.INACTIVE
    acknowledged_peer: UUID | None = None
    asked_by: str | None = ""
    connection_history: deque[ConnectionHistory] = field(default_factory=lambda: deque(maxlen=64))

    def __post_init__(self) -> None:
        Queue.__post_init__(self)
        self.transfer = OutgoingTransferInfo()  # DMPR-3.1.1.3-04 and DMPR-3.1.1.4-01

    @property
    def active(self) -> bool:
        """Whether the queue is in use: open, or with messages to transfer."""
        return bool(self.descriptors or len(self.positions))  # DMPR-3.1.1.2-21


@dataclass(frozen=True, slots=True)
class ConnectionHistory:
    """A state that a connection has reached: [MS-MQDMPR] 3.1.1.3.

    Attributes:
        status: the state.
        time: seconds since 1970-01-01 UTC.
        error: an HRESULT, 0 for none.
        addresses: AddressList.
        detail: the failure, for people; empty if the state says all.
    """

    status: ConnectionStatus
    time: int
    error: int
    addresses: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SequenceInfo:
    """SEQUENCE_INFO, a position in a transactional sequence: [MS-MQMQ] 2.2.5."""

    sequence: TxSequenceId = NO_SEQUENCE
    number: int = 0
    previous: int = 0


@dataclass(slots=True, eq=False, repr=False)
class OutgoingTransferInfo:
    """The state of the transactional transfer out of a queue: [MS-MQDMPR] 3.1.1.4. Times are seconds."""

    eod_first_non_ack: SequenceInfo | None = None  # DMPR-3.1.1.4-02
    eod_last_ack: SequenceInfo | None = None  # DMPR-3.1.1.4-03
    eod_last_ack_count: int = 0  # DMPR-3.1.1.4-04
    eod_last_ack_time: int = 0  # DMPR-3.1.1.4-05
    eod_last_non_ack: SequenceInfo | None = None  # DMPR-3.1.1.4-06
    eod_next_seq: SequenceInfo | None = None  # DMPR-3.1.1.4-07
    eod_no_ack_count: int = 0  # DMPR-3.1.1.4-08
    eod_no_read_count: int = 0  # DMPR-3.1.1.4-09
    eod_resend_count: int = 0  # DMPR-3.1.1.4-10
    eod_resend_interval: int = 0  # DMPR-3.1.1.4-11
    eod_resend_time: int = 0  # DMPR-3.1.1.4-12


@dataclass(slots=True, eq=False, repr=False)
class IncomingTransactionalTransferInfo:
    """The state of the transactional transfer into a queue from one sender: [MS-MQDMPR] 3.1.1.5.

    Attributes:
        queue: None while the queue does not exist.
        origin: the origin of its first message; empty if an older version has stored it.
        bound: whether only messages of this origin belong to it.
        stream_owner: the GUID of Stream.IncomingId, [MC-MQSRM] 3.1.1.1.6; None for a sequence of the binary
            protocol.
        send_receipts_to: Stream.SendReceiptsTo, a URI.
        acknowledged: Stream.LastAcknowledgedStreamMessage.
        unacknowledged_since: Stream.UnackedStreamMessageArrivalTime in milliseconds since start-up; None if
            all messages are acknowledged.
        former_streams: the identifiers of the last streams before the present one, 8 bytes each.
    """

    queue: Queue | None  # DMPR-3.1.1.5-01
    format_name: FormatName  # DMPR-3.1.1.5-02
    sender_identifier: UUID  # DMPR-3.1.1.5-03
    sequence_identifier: TxSequenceId = NO_SEQUENCE  # DMPR-3.1.1.5-04
    sequence_number: int = 0
    last_access_time: int = 0
    reject_count: int = 0
    origin: str = ""
    bound: bool = False
    stream_owner: UUID | None = None
    send_receipts_to: str = ""
    acknowledged: int = 0
    unacknowledged_since: int | None = None
    former_streams: bytes = b""

    @property
    def is_stream(self) -> bool:
        """Whether the sequence is a stream of [MC-MQSRM]."""
        return self.stream_owner is not None

    @property
    def key(self) -> SequenceKey:
        """The identity of the sequence."""
        owner = self.sender_identifier if self.stream_owner is None else self.stream_owner
        return sequence_key(owner, self.format_name, self.origin if self.bound else "", stream=self.is_stream)


def sequence_key(owner: UUID, name: FormatName, bound_to: str, *, stream: bool) -> SequenceKey:
    """Return the identity of a sequence."""
    return owner, f"{STREAM}{name.canonical}" if stream else name.canonical, bound_to


@dataclass(slots=True, eq=False, repr=False)
class TransactionalOperation:
    """An operation of a transaction: [MS-MQDMPR] 3.1.1.13.

    Attributes:
        target: TargetQueueReference, of Move.
        dequeue_reason: the message class that reports the removal, of Dequeue.
    """

    operation_type: OperationType  # DMPR-3.1.1.13-01
    position: MessagePosition  # DMPR-3.1.1.13-02
    target: Queue | None = None  # DMPR-3.1.1.13-03
    dequeue_reason: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class Transaction:
    """A transaction that the queue manager takes part in: [MS-MQDMPR] 3.1.1.14.

    Attributes:
        operations: TransactionalOperationCollection, first in first out.
        single_phase: True for an internal transaction, False for one of a coordinator.
        prepared: whether it is prepared, and waits for its coordinator's decision.
        plain: whether its messages are not transactional: they only become available together.
    """

    identifier: UUID  # DMPR-3.1.1.14-01
    operations: list[TransactionalOperation] = field(default_factory=list)  # DMPR-3.1.1.14-02
    single_phase: bool = True  # DMPR-3.1.1.14-03
    prepared: bool = False
    plain: bool = False


@dataclass(slots=True, eq=False, repr=False)
class OpenQueueDescriptor:
    """An open queue: [MS-MQDMPR] 3.1.1.16.

    Attributes:
        queue: QueueReference; None once the queue is deleted, and for a multiple-element name.
        children: OpenQueueDescriptorCollection, of a multiple-element name.
        cursors: by handle.
        waiting: WaitingMessageReadOperationCollection, first in first out, by request number.
        user: the user whose rights apply, a `Token` of `msmqwire.qm.model.access`; None for the queue
            manager's owner.
    """

    handle: int  # DMPR-3.1.1.16-01
    context_value: int  # DMPR-3.1.1.16-02
    access_type: QueueAccessType
    share_mode: QueueShareMode  # DMPR-3.1.1.16-04
    queue: Queue | None  # DMPR-3.1.1.16-05
    format_name: FormatName  # DMPR-3.1.1.16-06
    multiple: bool = False  # DMPR-3.1.1.16-07 and -08, DMPR-3.1.7.1.5-24
    children: list[OpenQueueDescriptor] = field(default_factory=list)  # DMPR-3.1.1.16-09
    remote_read_state: RemoteReadState = RemoteReadState.NONE  # DMPR-3.1.1.16-10
    cursors: dict[int, Cursor] = field(default_factory=dict)  # DMPR-3.1.1.16-11
    waiting: dict[int, WaitingMessageReadOperation] = field(default_factory=dict)  # DMPR-3.1.1.16-12
    user: Any = None


@dataclass(slots=True, eq=False, repr=False)
class Cursor:
    """A position in a queue from which a reader continues: [MS-MQDMPR] 3.2.1.2.

    Attributes:
        position: MessagePositionReference.
        resume_after: for a cursor at the reserved entry End, the last entry when it moved there.
    """

    handle: int
    descriptor: OpenQueueDescriptor
    position: MessagePosition
    state: CursorState = CursorState.UNREAD
    resume_after: MessagePosition | None = None


@dataclass(slots=True, eq=False, repr=False)
class WaitingMessageReadOperation:
    """A read that waits for a message: [MS-MQDMPR] 3.1.1.10.

    Attributes:
        destructive: DestructiveRead.
        tag: its identifier for Cancel Waiting Message Read Request. transaction, two_phase: the way to read
            the message.
        request: the request number of its `ReadCompleted`, given when it begins to wait.
    """

    descriptor: OpenQueueDescriptor
    destructive: bool  # DMPR-3.1.1.10-01
    tag: Any = None  # DMPR-3.1.1.10-02
    cursor: Cursor | None = None  # DMPR-3.1.1.10-03
    transaction: Transaction | None = None
    two_phase: bool = False
    request: int = field(default=0, init=False)


@dataclass(slots=True, eq=False, repr=False)
class DispatchEntry:
    """A message that waits to be sent: [MS-MQDMPR] 3.1.1.18."""

    position: MessagePosition  # DMPR-3.1.1.18-01
    protocol_data: Any  # DMPR-3.1.1.18-02
    priority: int  # DMPR-3.1.1.18-03
    send_in_progress: bool = False  # DMPR-3.1.1.18-04, DMPR-3.1.7.1.28-01


@dataclass(frozen=True, slots=True)
class InternalCertificate:
    """A certificate that the server created for a user: [MS-MQDMPR] 3.1.1.19."""

    certificate: bytes  # DMPR-3.1.1.19-01
    user: UUID


def short_name(queue: Queue) -> str:
    r"""Return the name without the computer, ``private$\orders``; of an outgoing queue its format name."""
    if isinstance(queue, OutgoingQueue):
        return str(queue.destination)
    name = queue.pathname.partition("\\")[2]
    if queue.queue_type is not QueueType.SYSTEM:
        return name
    return name.lower() if queue.owner_queue is None else f"{name};journal"
