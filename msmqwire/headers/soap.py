"""SoapHeader, application-defined SOAP text: [MS-MQMQ] 2.2.20.7."""

from typing import Final

from msmqwire.schema import Header, Ref, align, text, uint

HEADER_SECTION_ID: Final = 0x0320
BODY_SECTION_ID: Final = 0x0384

SOAP_HEADER: Final = Header(
    "SoapHeader",
    "[MS-MQMQ] 2.2.20.7",
    (
        uint(16, "HeaderSectionID", meaning="0x0320.", default=HEADER_SECTION_ID, req="MQMQ-2.2.20.7-01"),
        uint(16, "Reserved", "0; ignored.", req="MQMQ-2.2.20.7-02"),
        uint(
            32,
            "HeaderDataLength",
            "Characters of Header with its null.",
            unit="WCHAR",
            req="MQMQ-2.2.20.7-03",
        ),
        text("Header", Ref("HeaderDataLength", times=2), "The application's.", req="MQMQ-2.2.20.7-04"),
        align("HeaderPadding", marker=BODY_SECTION_ID.to_bytes(2, "little"), req="MQMQ-2.2.20.7-05"),
        uint(16, "BodySectionID", meaning="0x0384.", default=BODY_SECTION_ID, req="MQMQ-2.2.20.7-05"),
        uint(16, "Reserved1", "0; ignored.", req="MQMQ-2.2.20.7-06"),
        uint(32, "BodyDataLength", "Characters of Body with its null.", unit="WCHAR", req="MQMQ-2.2.20.7-07"),
        text("Body", Ref("BodyDataLength", times=2), "The application's.", req="MQMQ-2.2.20.7-08"),
        align("Padding"),
    ),
    "SOAP header and body of a message.",
)
