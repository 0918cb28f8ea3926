"""UserHeader, where a message comes from and goes to: [MS-MQMQ] 2.2.19.2."""

from typing import Final

from msmqwire.headers.base import BASE_HEADER_SIZE, INFINITE
from msmqwire.headers.queue_format_names import (
    DIRECT_QUEUE_FORMAT_NAME,
    PRIVATE_QUEUE_FORMAT_NAME,
    PRIVATE_QUEUE_FORMAT_NAME_ID,
    PUBLIC_QUEUE_FORMAT_NAME,
)
from msmqwire.schema import Header, bit, choice, field_offset, flags, guid, maybe, reserved, uint

USER_HEADER: Final = Header(  # MQQB-4.1.7-03
    "UserHeader",
    "[MS-MQMQ] 2.2.19.2",
    (
        # DMPR-3.1.7.1.32-43, MQRR-2.2.5.1-06, MQQB-4.1.7-03
        guid("SourceQueueManager", "GUID of the queue manager that sent it first.", req="MQMQ-2.2.19.2-01"),
        guid(
            "QueueManagerAddress",  # DMPR-3.1.7.1.32-38, MQRR-2.2.5.1-14
            "GUID of the destination queue manager; null for a direct format name.",
            req=("MQMQ-2.2.19.2-02", "MQMQ-2.2.19.2-03"),
        ),
        uint(
            32,
            "TimeToBeReceived",  # MQRR-2.2.5.1-11
            "Time until the message expires; 0xFFFFFFFF is never.",
            unit="s",
            default=INFINITE,
            req="MQMQ-2.2.19.2-04",
        ),
        # MQRR-2.2.5.1-11
        uint(32, "SentTime", "When it was sent, since 1970-01-01 UTC.", unit="s", req="MQMQ-2.2.19.2-06"),
        # MQRR-2.2.5.1-11
        uint(32, "MessageID", "Number of the message at its sender.", req="MQMQ-2.2.19.2-07"),
        flags(
            32,
            "Flags",
            # MQMQ-2.2.19.2-46
            bit("RC", 0, "Routing servers passed so far.", width=5, req="MQMQ-2.2.19.2-10"),
            bit("DM", 5, "0 express, 1 recoverable.", width=2, req="MQMQ-2.2.19.2-11"),  # MQMQ-2.2.19.2-46
            *reserved("X1", 7, req=("MQMQ-2.2.19.2-14", "MQMQ-2.2.19.2-43")),
            bit("JN", 8, "Negative source journaling.", req="MQMQ-2.2.19.2-15"),
            bit("JP", 9, "Positive source journaling.", req="MQMQ-2.2.19.2-19"),
            bit("DQ", 10, "Form of DestinationQueue.", width=3, req="MQMQ-2.2.19.2-21"),  # MQMQ-2.2.19.2-46
            bit("AQ", 13, "Form of AdminQueue.", width=3, req="MQMQ-2.2.19.2-23"),  # MQMQ-2.2.19.2-46
            bit("RQ", 16, "Form of ResponseQueue.", width=3, req="MQMQ-2.2.19.2-27"),  # MQMQ-2.2.19.2-46
            # MQQB-4.1.7-03
            bit("SH", 19, "A SecurityHeader is in the packet.", req="MQMQ-2.2.19.2-31"),  # MQMQ-2.2.19.2-46
            # MQMQ-2.2.19.2-46
            bit("TH", 20, "A TransactionHeader is in the packet.", req="MQMQ-2.2.19.2-32"),
            bit("MP", 21, "A MessagePropertiesHeader is in the packet.", default=1, req="MQMQ-2.2.19.2-34"),
            bit("CQ", 22, "ConnectorType is there.", req="MQMQ-2.2.19.2-35"),  # MQMQ-2.2.19.2-46
            # MQMQ-2.2.19.2-46
            bit("MQ", 23, "A MultiQueueFormatHeader is in the packet.", req="MQMQ-2.2.19.2-36"),
            *reserved("X2", 24, req=("MQMQ-2.2.19.2-37", "MQMQ-2.2.19.2-43")),
            bit(
                # MQRR-2.2.5.1-02
                "AH",
                25,
                "First sent over HTTP: the SRMP headers are in the packet.",
                req="MQMQ-2.2.19.2-38",
            ),
            *reserved("X3", 26, width=2, req=("MQMQ-2.2.19.2-40", "MQMQ-2.2.19.2-43")),
            bit("HH", 28, "A SoapHeader is in the packet.", req="MQMQ-2.2.19.2-41"),  # MQMQ-2.2.19.2-46
            *reserved("X4", 29, width=3, req=("MQMQ-2.2.19.2-42", "MQMQ-2.2.19.2-43")),
            req="MQMQ-2.2.19.2-08",
        ),
        choice(
            "DestinationQueue",
            "Flags.DQ",  # MQMQ-2.2.18.1.5-01
            {
                0: None,
                3: PRIVATE_QUEUE_FORMAT_NAME_ID,
                5: PUBLIC_QUEUE_FORMAT_NAME,
                7: DIRECT_QUEUE_FORMAT_NAME,  # MQMQ-2.2.19.2-46, MQQB-4.1.7-04
            },
            "Where the message goes, by Flags.DQ.",
            req=("MQMQ-2.2.19.2-09", "MQMQ-2.2.19.2-22"),
        ),
        choice(
            "AdminQueue",
            "Flags.AQ",  # MQMQ-2.2.18.1.5-01
            {
                0: None,
                2: PRIVATE_QUEUE_FORMAT_NAME_ID,
                3: PRIVATE_QUEUE_FORMAT_NAME_ID,
                5: PUBLIC_QUEUE_FORMAT_NAME,
                6: PRIVATE_QUEUE_FORMAT_NAME,
                7: DIRECT_QUEUE_FORMAT_NAME,
            },
            "Where administration acknowledgements go, by Flags.AQ.",
            req=("MQMQ-2.2.19.2-24", "MQMQ-2.2.19.2-25"),
        ),
        choice(
            "ResponseQueue",
            "Flags.RQ",  # MQMQ-2.2.18.1.5-01
            {
                0: None,
                1: None,
                2: PRIVATE_QUEUE_FORMAT_NAME_ID,
                3: PRIVATE_QUEUE_FORMAT_NAME_ID,
                4: PRIVATE_QUEUE_FORMAT_NAME_ID,
                5: PUBLIC_QUEUE_FORMAT_NAME,
                6: PRIVATE_QUEUE_FORMAT_NAME,
                7: DIRECT_QUEUE_FORMAT_NAME,
            },
            "Where an application may answer to, by Flags.RQ.",
            req="MQMQ-2.2.19.2-28",
        ),
        maybe(
            "Flags.CQ",  # MQMQ-2.2.19.2-35
            guid("ConnectorType", "Application-defined GUID."),  # DMPR-3.1.7.1.32-39
            req="MQMQ-2.2.19.2-44",
        ),
    ),
    "Source and destination of a message.",
)

_MP: Final = USER_HEADER.bits("Flags.MP")
PROPERTIES_OFFSET: Final = BASE_HEADER_SIZE + field_offset(USER_HEADER, "Flags") + _MP.shift // 8
PROPERTIES_BIT: Final = 1 << _MP.shift % 8  # MP in the byte at PROPERTIES_OFFSET of a packet
