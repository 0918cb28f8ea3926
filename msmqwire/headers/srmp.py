"""The headers of a message that came over HTTP: [MS-MQRR] 2.2.5.1.2.

Peers and attackers send them over TCP 1801 as well. Neither header has an assigned id, and the
specification does not state the unit of DataLength: characters are assumed, as in SoapHeader, or bytes
if only those end on the null of the text.
"""

from typing import Final

from msmqwire.schema import Header, Ref, align, raw, text, uint

SRMP_ENVELOPE_HEADER: Final = Header(
    "SRMPEnvelopeHeader",
    "[MS-MQRR] 2.2.5.1.2.1",
    (
        uint(16, "HeaderId", meaning="Any.", req="MQRR-2.2.5.1.2.1-02"),
        uint(16, "Reserved", meaning="Ignored.", req="MQRR-2.2.5.1.2.1-03"),
        uint(32, "DataLength", "Length of Data with its null.", unit="WCHAR", req="MQRR-2.2.5.1.2.1-04"),
        text(
            "Data",
            Ref("DataLength", times=2),
            "SOAP envelope of the message.",
            otherwise=Ref("DataLength"),
            req="MQRR-2.2.5.1.2.1-05",
        ),
        align("Padding"),
    ),
    "SRMP envelope of a message.",
)

COMPOUND_MESSAGE_HEADER: Final = Header(
    "CompoundMessageHeader",
    "[MS-MQRR] 2.2.5.1.2.2",
    (
        uint(16, "HeaderId", meaning="Any.", req="MQRR-2.2.5.1.2.2-02"),
        uint(16, "Reserved", meaning="Ignored.", req="MQRR-2.2.5.1.2.2-03"),
        uint(32, "HTTPBodySize", "Bytes of Data.", unit="bytes", req="MQRR-2.2.5.1.2.2-04"),
        uint(
            32, "MsgBodySize", "Bytes of the message body in Data.", unit="bytes", req="MQRR-2.2.5.1.2.2-05"
        ),
        uint(
            32,
            "MsgBodyOffset",
            "Where the message body stands in Data.",
            unit="bytes",
            req="MQRR-2.2.5.1.2.2-06",
        ),
        raw("Data", Ref("HTTPBodySize"), "HTTP POST with the message.", req="MQRR-2.2.5.1.2.2-07"),
        align("Padding"),
    ),
    "HTTP request that carried a message.",
)
