"""The forms of queue names inside packets: [MS-MQMQ] 2.2.18.1.4, 2.2.18.1.5, 2.2.18.1.7."""

from typing import Final

from msmqwire.schema import TO_NULL, Header, Ref, align, choice, guid, text, uint

# Inside an MQFFormatNameElement the GUID forms begin on a 4-byte boundary of the list's header;
# inside a UserHeader they are already aligned.
_LIST: Final = "MQFAddressHeader"

PUBLIC_QUEUE_FORMAT_NAME: Final = Header(
    "PublicQueueFormatName",
    "[MS-MQMQ] 2.2.18.1.7.1",
    (
        # MQMQ-2.2.18.1.4-03 and -04
        align("Padding", 4, of=_LIST, req="MQMQ-2.2.18.1.7.1-02"),
        guid("PublicQueueIdentifier", "GUID of the public queue.", req="MQMQ-2.2.18.1.7.1-01"),
    ),
    "A public queue.",
)

PRIVATE_QUEUE_FORMAT_NAME: Final = Header(
    "PrivateQueueFormatName",
    "[MS-MQMQ] 2.2.18.1.7.2",
    (
        # MQMQ-2.2.18.1.4-03 and -04
        align("Padding", 4, of=_LIST, req="MQMQ-2.2.18.1.7.2-01"),
        guid("SourceQueueManager", "GUID of the queue manager that hosts it.", req="MQMQ-2.2.18.1.7.2-01"),
        uint(32, "PrivateQueueIdentifier", "Number of the private queue there.", req="MQMQ-2.2.18.1.7.2-02"),
    ),
    "A private queue and its host.",
)

PRIVATE_QUEUE_FORMAT_NAME_ID: Final = Header(
    "PrivateQueueFormatNameId",
    "[MS-MQMQ] 2.2.18.1.5.1",
    (
        uint(
            32,
            "PrivateQueueIdentifier",
            "Number of the private queue at a host known otherwise.",
            req="MQMQ-2.2.18.1.5.1-01",
        ),
    ),
    "A private queue of an implied host.",
    size=4,
)

DIRECT_QUEUE_FORMAT_NAME: Final = Header(
    "DirectQueueFormatName",
    "[MS-MQMQ] 2.2.18.1.5.2",
    (
        uint(16, "Count", "Bytes of the name with its null.", unit="bytes", req="MQMQ-2.2.18.1.5.2-01"),
        text(
            "DirectFormatName",
            Ref("Count"),
            "Direct format name without DIRECT=.",
            strict=True,
            req=("MQMQ-2.2.18.1.5.2-02", "MQMQ-2.2.18.1.5.2-05"),
        ),
        align("Padding", 4, of="UserHeader", req=("MQMQ-2.2.18.1.5.2-03", "MQMQ-2.2.18.1.5.2-04")),
    ),
    "A queue by a direct format name.",
)

MQF_DIRECT_QUEUE_FORMAT_NAME: Final = Header(
    "MQFDirectQueueFormatName",
    "[MS-MQMQ] 2.2.18.1.4.1",
    (
        text(
            "DirectFormatName",
            TO_NULL,
            "Direct format name without DIRECT=, ended by its null.",
            req=("MQMQ-2.2.18.1.4.1-01", "MQMQ-2.2.18.1.4.1-02"),
        ),
    ),
    "A queue by a direct format name, in a list.",
)

MQF_DISTRIBUTION_QUEUE_FORMAT_NAME: Final = Header(
    "MQFDistributionQueueFormatName",
    "[MS-MQMQ] 2.2.18.1.4.2",
    (
        # MQMQ-2.2.18.1.4-03 and -04
        align("Padding", 4, of=_LIST, req="MQMQ-2.2.18.1.4.2-02"),
        guid("DistributionListIdentifier", "GUID of the distribution list.", req="MQMQ-2.2.18.1.4.2-01"),
    ),
    "A distribution list, in a list.",
)

MQF_FORMAT_NAME_ELEMENT: Final = Header(
    "MQFFormatNameElement",
    "[MS-MQMQ] 2.2.18.1.4",
    (
        uint(
            16, "FormatType", "1 public, 2 private, 3 direct, 6 distribution list.", req="MQMQ-2.2.18.1.4-01"
        ),
        choice(
            "FormatName",
            "FormatType",
            {
                1: PUBLIC_QUEUE_FORMAT_NAME,
                2: PRIVATE_QUEUE_FORMAT_NAME,
                3: MQF_DIRECT_QUEUE_FORMAT_NAME,
                6: MQF_DISTRIBUTION_QUEUE_FORMAT_NAME,
            },
            "The name, by FormatType.",
            req=("MQMQ-2.2.18.1.4-02", "MQMQ-2.2.18.1.4-05"),
        ),
    ),
    "One queue of a list.",
)
