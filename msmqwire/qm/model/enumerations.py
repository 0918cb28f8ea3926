"""The enumerations of the data model: [MS-MQDMPR] 3.1.1."""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag, auto
from typing import Final

from msmqwire.constants import EncryptionAlgorithm

INFINITE: Final = 0xFFFFFFFF  # DMPR-3.1.1.1-11, DMPR-3.1.1.2-10 and -11, DMPR-3.1.1.12-49
"""No limit, for times in seconds and for quotas."""


class QueueManagerState(Enum):
    """The state of the queue manager: [MS-MQDMPR] 3.1.1.1, DMPR-3.1.1.1-37."""

    STOPPED = "Stopped"
    INITIALIZING = "Initializing"
    READY = "Ready"
    STOPPING = "Stopping"


class OperatingSystemType(Enum):
    """The system of a queue manager's host: [MS-MQDMPR] 3.1.1.1, DMPR-3.1.1.1-06."""

    FOREIGN = "Foreign"
    WIN95 = "Win95"
    WIN_CLIENT = "WinClient"
    WIN_SERVER = "WinServer"
    WIN_ENT = "WinEnt"
    OTHER = "Other"


class DirectoryServerType(Enum):
    """The kind of directory server that a queue manager is: [MS-MQDMPR] 3.1.1.1, DMPR-3.1.1.1-22."""

    STANDALONE = "Standalone"
    BACKUP_SITE_CONTROLLER = "BackupSiteController"
    PRIMARY_SITE_CONTROLLER = "PrimarySiteController"
    PRIMARY_ENTERPRISE_CONTROLLER = "PrimaryEnterpriseController"


class QueueType(Enum):
    """The origin of a queue, and whether it is published: [MS-MQDMPR] 3.1.1.2, DMPR-3.1.1.2-24."""

    PRIVATE = "Private"
    PUBLIC = "Public"
    SYSTEM = "System"
    CONNECTOR = "Connector"


class QueuePrivacy(Enum):
    """Queue.PrivacyLevel, which messages a queue accepts: [MS-MQDMPR] 3.1.1.2, DMPR-3.1.1.2-13."""

    NONE = "None"
    OPTIONAL = "Optional"
    BODY = "Body"


class QueueScope(Enum):
    """The scope in which a queue is known: [MS-MQDMPR] 3.1.1.2, DMPR-3.1.1.2-20."""

    SITE = "Site"
    ENTERPRISE = "Enterprise"


class OutgoingQueueState(Enum):
    """The state of an outgoing queue: [MS-MQDMPR] 3.1.1.3, DMPR-3.1.1.3-05."""

    CONNECTED = "Connected"
    DISCONNECTED = "Disconnected"
    DISCONNECTING = "Disconnecting"
    INACTIVE = "Inactive"
    LOCKED = "Locked"
    NEED_VALIDATION = "NeedValidation"
    WAITING = "Waiting"
    ON_HOLD = "OnHold"


class ConnectionStatus(Enum):
    """ConnectionHistory.Status, the state or failure of a connection: [MS-MQDMPR] 3.1.1.3,
    DMPR-3.1.1.3-13.
    """

    IN_PROCESS = "InProcess"
    ESTABLISH_PACKET_RECEIVED = "EstablishPacketReceived"
    ESTABLISHED = "Established"
    UNKNOWN_FAILURE = "UnknownFailure"
    PING_FAILURE = "PingFailure"
    SOCKET_CREATE_FAILURE = "SocketCreateFailure"
    SOCKET_BIND_FAILURE = "SocketBindFailure"
    SOCKET_CONNECT_FAILURE = "SocketConnectFailure"
    TCP_NOT_ENABLED = "TcpNotEnabled"
    SOCKET_SEND_FAILURE = "SocketSendFailure"
    CONNECTION_NOT_READY = "ConnectionNotReady"
    DNS_FAILURE = "DnsFailure"
    CERTIFICATE_VALIDATION_FAILURE = "CertificateValidationFailure"
    CONNECTION_LIMIT_REACHED = "ConnectionLimitReached"
    CONNECTION_REFUSED = "ConnectionRefused"
    ROUTING_DATA_NOT_AVAILABLE = "RoutingDataNotAvailable"
    LOW_RESOURCE = "LowResource"


class PositionState(IntEnum):
    """The state of a message in a queue, which says how it may be read: [MS-MQDMPR] 3.1.1.11,
    DMPR-3.1.1.11-01.
    """

    AVAILABLE = 0
    LOCKED = 1
    DELETED = 2
    PURGE_PENDING = 3


class MoveReason(IntEnum):
    """Why the queue manager moved a message to its present queue by itself."""

    NONE = 0
    DELIVERY_LIMIT = 1
    QUOTA = 2


class DeliveryGuarantee(IntEnum):
    """Whether a message survives a restart: [MS-MQDMPR] 3.1.1.12; its values are UserHeader.Flags.DM."""

    EXPRESS = 0
    RECOVERABLE = 1


class AuthenticationLevel(IntEnum):
    """The kind of signature of a message: [MS-MQDMPR] 3.1.1.12, DMPR-3.1.1.12-15.

    Its values are SecurityHeader.Flags.AS.
    """

    NONE = 0
    SIG10 = 1
    SIG20 = 3
    SIG30 = 5
    XML_SIG = 9


class SenderIdentifierType(IntEnum):
    """The kind of Message.SenderIdentifier: [MS-MQDMPR] 3.1.1.12.

    Its values are SecurityHeader.Flags.ST.
    """

    NONE = 0  # DMPR-3.1.1.12-59, DMPR-3.1.7.1.31-50, DMPR-3.1.7.1.32-62
    SID = 1  # DMPR-3.1.1.12-59, DMPR-3.1.7.1.31-50, DMPR-3.1.7.1.32-62
    QUEUE_MANAGER_IDENTIFIER = 2  # DMPR-3.1.1.12-59, DMPR-3.1.7.1.31-50, DMPR-3.1.7.1.32-62


class QueueFormatType(IntEnum):
    """The kind of name of a queue: Message.DestinationQueueType and its like, [MS-MQDMPR] 3.1.1.12.

    The values are those of UserHeader.Flags.DQ, AQ and RQ.
    """

    NONE = 0
    SAME_AS_ADMINISTRATION_QUEUE = 1
    PRIVATE_QUEUE_ON_SOURCE = 2
    PRIVATE_QUEUE_ON_DESTINATION = 3
    PRIVATE_QUEUE_ON_ADMIN = 4
    PUBLIC_QUEUE = 5
    PRIVATE_QUEUE_ON_OTHER = 6
    DIRECT_QUEUE = 7


class AcknowledgementsRequested(IntFlag):
    """Acknowledgements that a sender asks for: [MS-MQDMPR] 3.1.1.12.

    The values are the bits of MessagePropertiesHeader.Flags; the longer names are combinations.
    """

    NONE = 0x00
    ACK_POS_ARRIVAL = 0x01  # DMPR-3.1.1.12-40
    ACK_POS_RECEIVE = 0x02  # DMPR-3.1.1.12-40
    ACK_NEG_ARRIVAL = 0x04  # DMPR-3.1.1.12-41
    ACK_NEG_RECEIVE = 0x08  # DMPR-3.1.1.12-42
    ACK_NACK_REACH_QUEUE = ACK_NEG_ARRIVAL  # DMPR-3.1.1.12-41
    ACK_FULL_REACH_QUEUE = ACK_POS_ARRIVAL | ACK_NEG_ARRIVAL  # DMPR-3.1.1.12-43
    ACK_NACK_RECEIVE = ACK_NEG_ARRIVAL | ACK_NEG_RECEIVE  # DMPR-3.1.1.12-44
    ACK_FULL_RECEIVE = ACK_NEG_ARRIVAL | ACK_POS_RECEIVE | ACK_NEG_RECEIVE  # DMPR-3.1.1.12-45


class OperationType(IntEnum):
    """The operation of a transaction on a message: [MS-MQDMPR] 3.1.1.13, DMPR-3.1.1.13-01."""

    ENQUEUE = 0
    DEQUEUE = 1
    MOVE = 2


class DirectoryOperationResult(Enum):
    """The result of a directory event: [MS-MQDMPR] 3.1.1.17, DMPR-3.1.1.17-01."""

    SUCCESS = "Success"
    GENERIC_ERROR = "GenericError"
    DIRECTORY_NOT_CONNECTED = "DirectoryNotConnected"
    OBJECT_NOT_FOUND = "ObjectNotFound"
    ATTRIBUTE_NOT_FOUND = "AttributeNotFound"
    END_OF_DATA = "EndOfData"
    OBJECT_ALREADY_EXISTS = "ObjectAlreadyExists"


class MessageSeekAction(Enum):
    """The message that a read by LookupIdentifier returns: [MS-MQDMPR] 3.1.1.17, DMPR-3.1.1.17-03."""

    SEEK_FIRST = "SeekFirst"
    SEEK_PREVIOUS = "SeekPrevious"
    SEEK_CURRENT = "SeekCurrent"
    SEEK_NEXT = "SeekNext"
    SEEK_LAST = "SeekLast"


class QueueAccessType(Enum):
    """The access for which a queue is opened: [MS-MQDMPR] 3.1.1.17, DMPR-3.1.1.16-03, DMPR-3.1.1.17-04."""

    RECEIVE_ACCESS = "ReceiveAccess"
    SEND_ACCESS = "SendAccess"
    PEEK_ACCESS = "PeekAccess"
    MOVE_ACCESS = "MoveAccess"
    RECEIVE_ADMIN_ACCESS = "ReceiveAdminAccess"
    PEEK_ADMIN_ACCESS = "PeekAdminAccess"


class QueueShareMode(Enum):
    """The access to an open queue that is left to its other readers: [MS-MQDMPR] 3.1.1.17,
    DMPR-3.1.1.17-05.
    """

    DENY_NONE = "DenyNone"
    DENY_RECEIVE = "DenyReceive"


class RemoteReadState(Enum):
    """The state of a descriptor in remote read: [MS-MQDMPR] 3.1.1.16, DMPR-3.1.1.16-10."""

    NONE = "None"
    OPENED = "Opened"
    READY_FOR_READ = "ReadyForRead"


class CursorState(Enum):
    """The states of a cursor: DMPR-3.2.1.2-04."""

    UNREAD = "Unread"
    WAIT_RECEIVE = "WaitReceive"
    WAIT_PEEK = "WaitPeek"
    READ = "Read"


class CursorResult(Enum):
    """The result of a cursor event: [MS-MQDMPR] 3.2.7."""

    SUCCEEDED = "Succeeded"
    WAITING = "Waiting"
    NOT_FOUND = "NotFound"
    ALREADY_RECEIVED = "AlreadyReceived"
    ILLEGAL_CURSOR_ACTION = "IllegalCursorAction"


class Relay(Enum):
    """The messages of peers for remote queues that are accepted for forwarding: `Settings.relay`."""

    NONE = "none"
    KNOWN = "known"
    ALL = "all"


class ManageAccess(Enum):
    """The callers that may ask about this queue manager and act on it from other computers: [MS-MQMR] 3."""

    NONE = "none"
    CALLERS = "callers"
    USERS = "users"


class AesCipher(Enum):
    """The ciphers of PreferredAdvancedAlgorithm: [MS-MQQB] 3.1.1.3."""

    AES256 = "aes256"
    AES128 = "aes128"
    AES192 = "aes192"

    @property
    def algorithm(self) -> EncryptionAlgorithm:
        """Its number."""
        return _ALGORITHMS[self.value]


class LegacyCipher(Enum):
    """The ciphers of PreferredEnhancedAlgorithm and PreferredBaseAlgorithm: [MS-MQQB] 3.1.1.3. Broken."""

    RC2 = "rc2"
    RC4 = "rc4"

    @property
    def algorithm(self) -> EncryptionAlgorithm:
        """Its number."""
        return _ALGORITHMS[self.value]


_ALGORITHMS: Final = {
    "aes256": EncryptionAlgorithm.CALG_AES_256,  # MQQB-3.1.1.3-07, MQQB-3.1.3.1-12
    "aes128": EncryptionAlgorithm.CALG_AES_128,  # MQQB-3.1.1.3-07
    "aes192": EncryptionAlgorithm.CALG_AES_192,  # MQQB-3.1.1.3-07
    "rc2": EncryptionAlgorithm.CALG_RC2,  # MQQB-3.1.1.3-08, MQQB-3.1.1.3-09
    "rc4": EncryptionAlgorithm.CALG_RC4,  # MQQB-3.1.1.3-08, MQQB-3.1.1.3-09, MQQB-3.1.3.1-12
}


class SeekDirection(Enum):
    """The direction of a search in a queue: [MS-MQDMPR] 3.1.7.3.2."""

    FORWARD = auto()
    BACKWARD = auto()


class EnqueueStatus(IntEnum):
    """The result of Enqueue Message: DMPR-3.1.7.1.9-01."""

    OK = 0
    QUEUE_QUOTA_EXCEEDED = 1
    QUEUE_MANAGER_QUOTA_EXCEEDED = 2
    TIMED_OUT = 3
