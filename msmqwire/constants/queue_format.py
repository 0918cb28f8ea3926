"""The kinds of queue names in QUEUE_FORMAT: [MS-MQMQ] 2.2.6, 2.2.7, 2.2.11, 2.2.18.1.4 and 2.2.19.2."""

from __future__ import annotations

from enum import IntEnum

QUEUE_FORMAT_FLAG_NOT_SYSTEM = 0x00
QUEUE_FORMAT_FLAG_SYSTEM = 0x80
"""The bit of m_SuffixAndFlags for the name of a system queue."""


class QUEUE_FORMAT_TYPE(IntEnum):
    """QUEUE_FORMAT.m_qft, which decides the member of the union; [MS-MQMQ] 2.2.6."""

    QUEUE_FORMAT_TYPE_UNKNOWN = 0
    QUEUE_FORMAT_TYPE_PUBLIC = 1
    QUEUE_FORMAT_TYPE_PRIVATE = 2
    QUEUE_FORMAT_TYPE_DIRECT = 3
    QUEUE_FORMAT_TYPE_MACHINE = 4
    QUEUE_FORMAT_TYPE_CONNECTOR = 5
    QUEUE_FORMAT_TYPE_DL = 6
    QUEUE_FORMAT_TYPE_MULTICAST = 7
    QUEUE_FORMAT_TYPE_SUBQUEUE = 8


class QUEUE_SUFFIX_TYPE(IntEnum):
    """The low nibble of QUEUE_FORMAT.m_SuffixAndFlags; [MS-MQMQ] 2.2.11."""

    QUEUE_SUFFIX_TYPE_NONE = 0
    QUEUE_SUFFIX_TYPE_JOURNAL = 1
    QUEUE_SUFFIX_TYPE_DEADLETTER = 2
    QUEUE_SUFFIX_TYPE_DEADXACT = 3
    QUEUE_SUFFIX_TYPE_XACTONLY = 4
    QUEUE_SUFFIX_TYPE_SUBQUEUE = 5
