"""The values that parameters of the RemoteRead interface take: [MS-MQRR] 2.2.7 and 3.1.4."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

DEFAULT_PORT: Final = 2103  # MQRR-2.1-03, MQRR-3.1.4.1-04
"""The port of the interface, unless it is taken: [MS-MQRR] 3.1.4.1."""
PORT_STEP: Final = 11  # MQRR-3.1.4.1-05
"""The number that is added to a port that is taken: [MS-MQRR] 3.1.4.1."""


class Access(IntEnum):
    """dwAccess of R_OpenQueue and R_OpenQueueForMove: [MS-MQRR] 3.1.4.2 and 3.1.4.11."""

    RECEIVE_ACCESS = 0x00000001  # MQRR-3.1.4.2-05
    MQ_MOVE_ACCESS = 0x00000004  # MQRR-3.1.4.11-04
    PEEK_ACCESS = 0x00000020  # MQRR-3.1.4.2-05


class ShareMode(IntEnum):
    """dwShareMode of R_OpenQueue and R_OpenQueueForMove: [MS-MQRR] 3.1.4.2 and 3.1.4.11."""

    MQ_DENY_NONE = 0  # MQRR-3.1.4.2-07, MQRR-3.1.4.11-05
    MQ_DENY_SHARE = 1  # MQRR-3.1.4.2-07


class Action(IntEnum):
    """ulAction of R_StartReceive and R_StartTransactionalReceive: [MS-MQRR] 3.1.4.7 and 3.1.4.13."""

    MQ_ACTION_RECEIVE = 0x00000000  # MQRR-3.1.4.7-17
    MQ_ACTION_PEEK_CURRENT = 0x80000000  # MQRR-3.1.4.7-18
    MQ_ACTION_PEEK_NEXT = 0x80000001  # MQRR-3.1.4.7-19
    MQ_LOOKUP_PEEK_CURRENT = 0x40000010
    MQ_LOOKUP_PEEK_NEXT = 0x40000011
    MQ_LOOKUP_PEEK_PREV = 0x40000012
    MQ_LOOKUP_RECEIVE_CURRENT = 0x40000020
    MQ_LOOKUP_RECEIVE_NEXT = 0x40000021
    MQ_LOOKUP_RECEIVE_PREV = 0x40000022

    @property
    def receives(self) -> bool:
        """Whether it removes the message: a Receive action, not a Peek action."""
        return self in RECEIVE_ACTIONS

    @property
    def by_lookup_identifier(self) -> bool:
        """Whether LookupId selects the message."""
        return bool(self & 0x40000000)


RECEIVE_ACTIONS: Final = frozenset(
    {
        Action.MQ_ACTION_RECEIVE,
        Action.MQ_LOOKUP_RECEIVE_CURRENT,
        Action.MQ_LOOKUP_RECEIVE_NEXT,
        Action.MQ_LOOKUP_RECEIVE_PREV,
    }
)


class Acknowledge(IntEnum):
    """dwAck of R_EndReceive and R_EndTransactionalReceive: [MS-MQRR] 3.1.4.9 and 3.1.4.15."""

    RR_NACK = 1
    RR_ACK = 2


class SectionType(IntEnum):
    """SectionBufferType of a SectionBuffer: [MS-MQRR] 2.2.7."""

    stFullPacket = 0
    stBinaryFirstSection = 1
    stBinarySecondSection = 2
    stSrmpFirstSection = 3
    stSrmpSecondSection = 4


class Opnum(IntEnum):
    """The procedures of the interface: [MS-MQRR] 3.1.4."""

    R_GetServerPort = 0
    Opnum1NotUsedOnWire = 1
    R_OpenQueue = 2
    R_CloseQueue = 3
    R_CreateCursor = 4
    R_CloseCursor = 5
    R_PurgeQueue = 6
    R_StartReceive = 7
    R_CancelReceive = 8
    R_EndReceive = 9
    R_MoveMessage = 10
    R_OpenQueueForMove = 11
    R_QMEnlistRemoteTransaction = 12
    R_StartTransactionalReceive = 13
    R_SetUserAcknowledgementClass = 14
    R_EndTransactionalReceive = 15
