"""Message classes, the values of MessagePropertiesHeader.MessageClass: [MS-MQMQ] 2.2.18.1.6."""

from __future__ import annotations

from enum import IntEnum

LEGAL_CLASS_BITS = 0xE1FF  # MQMQ-2.2.18.1.6-22
"""The bits that a class may have, including those of applications."""

_NEGATIVE, _RECEIVE = 0x8000, 0x4000


class MessageClass(IntEnum):
    """MESSAGE_CLASS_VALUES, the classes that the specification defines."""

    MQMSG_CLASS_NORMAL = 0x0000  # MQMQ-2.2.18.1.6-01
    MQMSG_CLASS_REPORT = 0x0001  # MQMQ-2.2.18.1.6-02
    MQMSG_CLASS_ACK_REACH_QUEUE = 0x0002  # MQMQ-2.2.18.1.6-03
    MQMSG_CLASS_ORDER_ACK = 0x00FF  # MQMQ-2.2.18.1.6-04
    MQMSG_CLASS_ACK_RECEIVE = 0x4000  # MQMQ-2.2.18.1.6-05
    MQMSG_CLASS_NACK_BAD_DST_Q = 0x8000  # MQMQ-2.2.18.1.6-06
    MQMSG_CLASS_NACK_DELETED = 0x8001  # MQMQ-2.2.18.1.6-07
    MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT = 0x8002  # MQMQ-2.2.18.1.6-08
    MQMSG_CLASS_NACK_Q_EXCEED_QUOTA = 0x8003  # MQMQ-2.2.18.1.6-09
    MQMSG_CLASS_NACK_ACCESS_DENIED = 0x8004  # MQMQ-2.2.18.1.6-10
    MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED = 0x8005  # MQMQ-2.2.18.1.6-11
    MQMSG_CLASS_NACK_BAD_SIGNATURE = 0x8006  # MQMQ-2.2.18.1.6-12
    MQMSG_CLASS_NACK_BAD_ENCRYPTION = 0x8007  # MQMQ-2.2.18.1.6-13
    MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q = 0x8009  # MQMQ-2.2.18.1.6-14
    MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG = 0x800A  # MQMQ-2.2.18.1.6-15
    MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER = 0x800B  # MQMQ-2.2.18.1.6-16
    MQMSG_CLASS_NACK_Q_DELETED = 0xC000  # MQMQ-2.2.18.1.6-17
    MQMSG_CLASS_NACK_Q_PURGED = 0xC001  # MQMQ-2.2.18.1.6-18
    MQMSG_CLASS_NACK_RECEIVE_TIMEOUT = 0xC002  # MQMQ-2.2.18.1.6-19
    MQMSG_CLASS_NACK_RECEIVE_REJECTED = 0xC004  # MQMQ-2.2.18.1.6-20


_NAMES = {member.value: member.name.removeprefix("MQMSG_CLASS_") for member in MessageClass}


def class_name(value: int) -> str:
    """Return the name of a class without its prefix (``NACK_BAD_DST_Q``), or ``0x1234`` if it has none."""
    return _NAMES.get(value) or f"0x{value:04X}"


def is_legal_class(value: int) -> bool:
    """Return whether a message may have this class, defined by the specification or by an application."""
    return value >= 0 and not value & ~LEGAL_CLASS_BITS  # MQMQ-2.2.18.1.6-22


def is_negative(value: int) -> bool:
    """Return whether the class reports a failure (bit 15)."""
    return bool(value & _NEGATIVE)  # MQMQ-2.2.18.1.6-23


def is_about_receive(value: int) -> bool:
    """Return whether the class reports the retrieval of a message, not its arrival (bit 14)."""
    return bool(value & _RECEIVE)  # MQMQ-2.2.18.1.6-23
