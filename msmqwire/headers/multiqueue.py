"""MultiQueueFormatHeader, all the queues of a multiple-element name: [MS-MQMQ] 2.2.20.1 to 2.2.20.3."""

from typing import Final

from msmqwire.headers.queue_format_names import MQF_FORMAT_NAME_ELEMENT
from msmqwire.schema import Fill, Header, Ref, align, raw, repeat, sub, uint

DESTINATION_ID: Final = 0x0064
ADMINISTRATION_ID: Final = 0x00C8
RESPONSE_ID: Final = 0x012C
SIGNATURE_ID: Final = 0x015E


def _address_header(variant: str, meaning: str, header_id: int) -> Header:
    return Header(
        "MQFAddressHeader",
        "[MS-MQMQ] 2.2.20.2",
        (
            uint(
                32,
                "HeaderSize",
                "Bytes of this part, the list included.",
                unit="bytes",
                size_of="header",
                req=("MQMQ-2.2.20.2-01", "MQMQ-2.2.20.2-07", "MQMQ-2.2.20.2-08"),
            ),
            uint(
                16,
                "HeaderID",
                f"Which list it is: {header_id:#06x}.",
                default=header_id,
                must=frozenset({header_id}),
                req="MQMQ-2.2.20.2-02",
            ),
            uint(16, "Reserved", "0; ignored.", req=("MQMQ-2.2.20.2-03", "MQMQ-2.2.20.2-04")),
            uint(32, "ElementCount", "Names in the list.", req="MQMQ-2.2.20.2-05"),
            repeat(
                "FormatNameList",  # MQMQ-2.2.20.2-08
                "ElementCount",
                MQF_FORMAT_NAME_ELEMENT,
                "The names.",
                req="MQMQ-2.2.20.2-06",
            ),
            # MQMQ-2.2.20.2-07
            Fill("Padding", meaning="Padding up to a multiple of 4 bytes.", req=("MQMQ-2.2.20.1-08",)),
        ),
        meaning,
        variant=variant,
    )


MQF_DESTINATION: Final = _address_header("", "Queues that get the message.", DESTINATION_ID)
MQF_ADMINISTRATION: Final = _address_header(
    "Administration", "Queues for administration acknowledgements.", ADMINISTRATION_ID
)
MQF_RESPONSE: Final = _address_header("Response", "Queues for answers.", RESPONSE_ID)

MQF_SIGNATURE_HEADER: Final = Header(
    "MQFSignatureHeader",
    "[MS-MQMQ] 2.2.20.3",
    (
        uint(
            16,
            "ID",
            meaning="0x015E.",
            default=SIGNATURE_ID,
            must=frozenset({SIGNATURE_ID}),
            req="MQMQ-2.2.20.3-01",
        ),
        uint(16, "Reserved", "0; ignored.", req="MQMQ-2.2.20.3-02"),
        uint(32, "Size", "Bytes of Signature.", unit="bytes", req="MQMQ-2.2.20.3-03"),
        raw("Signature", Ref("Size"), "Signature over the lists.", req="MQMQ-2.2.20.3-04"),
        align("Padding", req="MQMQ-2.2.20.1-07"),
    ),
    "Signature of a message to several queues.",
)

MULTI_QUEUE_FORMAT_HEADER: Final = Header(
    "MultiQueueFormatHeader",
    "[MS-MQMQ] 2.2.20.1",
    (
        sub(MQF_DESTINATION, "Destination", req=("MQMQ-2.2.20.1-03", "MQMQ-2.2.20.1-06")),  # MQMQ-2.2.20.1-02
        # MQMQ-2.2.20.1-02
        sub(MQF_ADMINISTRATION, "Administration", req=("MQMQ-2.2.20.1-04", "MQMQ-2.2.20.1-06")),
        sub(MQF_RESPONSE, "Response", req=("MQMQ-2.2.20.1-05", "MQMQ-2.2.20.1-06")),  # MQMQ-2.2.20.1-02
        sub(MQF_SIGNATURE_HEADER, "Signature", req="MQMQ-2.2.20.1-07"),  # MQMQ-2.2.20.1-02
    ),
    "All destinations, administration and response queues of a message.",
    req=("MQMQ-2.2.20.1-02",),
)
