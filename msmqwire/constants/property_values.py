"""The allowed values of properties: [MS-MQMQ] 2.3.

One enumeration for each property, named after it. Where the specification gives numbers without names
(service types, states of a connection), a table maps the numbers to their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

from msmqwire.constants.variant import VarEnum


class QueueJournal(IntEnum):
    """PROPID_Q_JOURNAL: whether received messages are copied to the queue's journal; 2.3.1.4."""

    MQ_JOURNAL_NONE = 0
    MQ_JOURNAL = 1


class QueueAuthenticate(IntEnum):
    """PROPID_Q_AUTHENTICATE: whether the queue takes authenticated messages only; 2.3.1.11."""

    MQ_AUTHENTICATE_NONE = 0
    MQ_AUTHENTICATE = 1


class QueuePrivLevel(IntEnum):
    """PROPID_Q_PRIV_LEVEL: clear bodies, both, or encrypted ones; 2.3.1.12."""

    MQ_PRIV_LEVEL_NONE = 0
    MQ_PRIV_LEVEL_OPTIONAL = 1
    MQ_PRIV_LEVEL_BODY = 2


class QueueTransaction(IntEnum):
    """PROPID_Q_TRANSACTION: whether the queue is transactional; 2.3.1.13."""

    MQ_TRANSACTIONAL_NONE = 0
    MQ_TRANSACTIONAL = 1


class Scope(IntEnum):
    """PROPID_Q_SCOPE and PROPID_D_SCOPE; 2.3.1.14 and 2.3.13.3."""

    MQDS_SITESCOPE = 0
    MQDS_ENTERPRISESCOPE = 1


class MachineForeign(IntEnum):
    """PROPID_QM_FOREIGN: another messaging system, or MSMQ; 2.3.2.18."""

    MSMQ_MACHINE = 0
    FOREIGN_MACHINE = 1


class MachineOs(IntEnum):
    """PROPID_QM_OS: the operating system of a queue manager; 2.3.2.19."""

    MSMQ_OS_NONE = 0x000
    MSMQ_OS_FOREIGN = 0x100
    MSMQ_OS_95 = 0x200
    MSMQ_OS_NTW = 0x300
    MSMQ_OS_NTS = 0x400
    MSMQ_OS_NTE = 0x500


class MachineGroupInCluster(IntEnum):
    """PROPID_QM_GROUP_IN_CLUSTER; 2.3.2.35."""

    MSMQ_GROUP_NOT_IN_CLUSTER = 0
    MSMQ_GROUP_IN_CLUSTER = 1


class DeletedObjectType(IntEnum):
    """PROPID_D_OBJTYPE: the type of the deleted object; 2.3.13.4."""

    MQDS_QUEUE = 1
    MQDS_MACHINE = 2
    MQDS_SITE = 3
    MQDS_DELETEDOBJECT = 4
    MQDS_CN = 5
    MQDS_ENTERPRISE = 6
    MQDS_USER = 7
    MQDS_ROUTINGLINK = 8


class ManagementConnected(StrEnum):
    """PROPID_MGMT_MSMQ_CONNECTED; 2.3.11.4."""

    MSMQ_CONNECTED = "CONNECTED"
    MSMQ_DISCONNECTED = "DISCONNECTED"


class ManagementQueueType(StrEnum):
    """PROPID_MGMT_QUEUE_TYPE; 2.3.12.3."""

    MGMT_QUEUE_TYPE_PUBLIC = "PUBLIC"
    MGMT_QUEUE_TYPE_PRIVATE = "PRIVATE"
    MGMT_QUEUE_TYPE_MACHINE = "MACHINE"
    MGMT_QUEUE_TYPE_CONNECTOR = "CONNECTOR"
    MGMT_QUEUE_TYPE_MULTICAST = "MULTICAST"


class ManagementQueueLocation(StrEnum):
    """PROPID_MGMT_QUEUE_LOCATION; 2.3.12.4."""

    MGMT_QUEUE_LOCAL_LOCATION = "LOCAL"
    MGMT_QUEUE_REMOTE_LOCATION = "REMOTE"


class ManagementQueueXact(StrEnum):
    """PROPID_MGMT_QUEUE_XACT; 2.3.12.5."""

    MGMT_QUEUE_UNKNOWN_TYPE = "UNKNOWN"
    MGMT_QUEUE_TRANSACTIONAL_TYPE = "YES"
    MGMT_QUEUE_NOT_TRANSACTIONAL_TYPE = "NO"


class ManagementQueueForeign(StrEnum):
    """PROPID_MGMT_QUEUE_FOREIGN; 2.3.12.6."""

    MGMT_QUEUE_UNKNOWN_TYPE = "UNKNOWN"
    MGMT_QUEUE_FOREIGN_TYPE = "YES"
    MGMT_QUEUE_NOT_FOREIGN_TYPE = "NO"


class ManagementQueueState(StrEnum):
    """PROPID_MGMT_QUEUE_STATE: the connection of an outgoing queue; 2.3.12.11."""

    MGMT_QUEUE_STATE_LOCAL = "LOCAL CONNECTION"
    MGMT_QUEUE_STATE_NONACTIVE = "INACTIVE"
    MGMT_QUEUE_STATE_WAITING = "WAITING"
    MGMT_QUEUE_STATE_NEED_VALIDATE = "NEED VALIDATION"
    MGMT_QUEUE_STATE_ONHOLD = "ONHOLD"
    MGMT_QUEUE_STATE_CONNECTED = "CONNECTED"
    MGMT_QUEUE_STATE_DISCONNECTING = "DISCONNECTING"
    MGMT_QUEUE_STATE_DISCONNECTED = "DISCONNECTED"


SETTINGS_SERVICE_TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x00: "none",
        0x01: "routing server",
        0x02: "backup site controller",
        0x04: "primary site controller",
        0x08: "primary enterprise controller",
    }
)
"""PROPID_SET_SERVICE (2.3.8.2) and PROPID_SET_OLDSERVICE (2.3.8.11)."""
SERVICE_TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {**SETTINGS_SERVICE_TYPES, 0x10: "remote access server"}
)
"""PROPID_QM_SERVICE (2.3.2.9)."""

CONNECTION_STATUS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x00000000: "being established",  # MQMQ-2.3.12.25-03
        0x00000001: "connection packet received",  # MQMQ-2.3.12.25-04
        0x00000002: "established",  # MQMQ-2.3.12.25-05
        0x80000000: "failed, reason unknown",  # MQMQ-2.3.12.25-06
        0x80000001: "ping failed",  # MQMQ-2.3.12.25-07
        0x80000002: "no socket could be made",  # MQMQ-2.3.12.25-08
        0x80000003: "the socket could not be bound",  # MQMQ-2.3.12.25-09
        0x80000004: "the socket could not connect",  # MQMQ-2.3.12.25-10
        0x80000005: "TCP is not enabled",  # MQMQ-2.3.12.25-11
        0x80000006: "sending on the socket failed",  # MQMQ-2.3.12.25-12
        0x80000007: "sending failed, the connection is not ready",  # MQMQ-2.3.12.25-13
        0x80000008: "DNS failure",  # MQMQ-2.3.12.25-14
        0x80000009: "the server certificate could not be validated",  # MQMQ-2.3.12.25-15
        0x8000000A: "limit of connections reached",  # MQMQ-2.3.12.25-16
        0x8000000B: "refused by the other side",  # MQMQ-2.3.12.25-17
        0x8000000C: "no directory server, no routing data",  # MQMQ-2.3.12.25-18
        0x8000000D: "out of memory",  # MQMQ-2.3.12.25-19
    }
)
"""The first array of PROPID_MGMT_QUEUE_CONNECTION_HISTORY; 2.3.12.25."""

_V = VarEnum.VT_VECTOR

SOURCE_INFO_VECTORS: Final = (
    VarEnum.VT_LPWSTR | _V,  # format name of a queue, MQMQ-2.3.12.24-02
    VarEnum.VT_CLSID | _V,  # sender, MQMQ-2.3.12.24-03
    VarEnum.VT_UI8 | _V,  # sequence, MQMQ-2.3.12.24-04
    VarEnum.VT_UI4 | _V,  # number in the sequence, MQMQ-2.3.12.24-05
    VarEnum.VT_I4 | _V,  # last access, seconds since 1970 in UTC, MQMQ-2.3.12.24-06
    VarEnum.VT_UI4 | _V,  # how often a message was rejected, MQMQ-2.3.12.24-07
)
"""The types of the six arrays of PROPID_MGMT_QUEUE_EOD_SOURCE_INFO, in their order; 2.3.12.24."""

CONNECTION_HISTORY_VECTORS: Final = (
    VarEnum.VT_UI4 | _V,  # state, see CONNECTION_STATUS, MQMQ-2.3.12.25-02
    VarEnum.VT_I4 | _V,  # time, seconds since 1970 in UTC, MQMQ-2.3.12.25-20
    VarEnum.VT_I4 | _V,  # not 0 for an error, MQMQ-2.3.12.25-21
    VarEnum.VT_VARIANT | _V,  # a list of addresses, itself VT_LPWSTR | VT_VECTOR, an entry, MQMQ-2.3.12.25-22
)
"""The types of the four arrays of PROPID_MGMT_QUEUE_CONNECTION_HISTORY, in their order; 2.3.12.25.

The specification writes VT_VECTOR twice for the last one, which a number can't hold: a list of lists is
a vector of variants.
"""
