"""The headers of internal packets: [MS-MQQB] 2.2.1, 2.2.2.1 and 2.2.3.1."""

from typing import Final

from msmqwire.headers.base import BASE_HEADER_SIZE
from msmqwire.schema import Header, bit, field_offset, flags, guid, raw, reserved, uint

INTERNAL_HEADER_SIZE: Final = 4
PT_SESSION_ACK: Final = 1  # MQQB-2.2.1-04, MQQB-4.1.8-01, MQQB-4.1-01
PT_ESTABLISH_CONNECTION: Final = 2  # MQQB-4.1.3-01, MQQB-4.1.4-01, MQQB-4.1-01
PT_CONNECTION_PARAMETERS: Final = 3  # MQQB-4.1.5-01, MQQB-4.1.6-01, MQQB-4.1-01

INTERNAL_HEADER: Final = Header(
    "InternalHeader",
    "[MS-MQQB] 2.2.1",
    (
        uint(16, "Reserved", "0; ignored.", req="MQQB-2.2.1-01"),
        flags(
            16,
            "Flags",
            bit(
                "PT",
                0,
                "1 SessionAck, 2 EstablishConnection, 3 ConnectionParameters.",
                width=4,
                req=("MQQB-2.2.1-03", "MQQB-2.2.1-04"),
            ),
            bit("CS", 4, "The connection is refused.", req="MQQB-2.2.1-06"),
            *reserved("X5 X6 X7 X8 X9 X10 X11 X12 X13 X14 X15", 5, req="MQQB-2.2.1-11"),
            req="MQQB-2.2.1-02",
        ),
    ),
    "Kind of an internal packet.",
    size=INTERNAL_HEADER_SIZE,
)
PT_OFFSET: Final = BASE_HEADER_SIZE + field_offset(INTERNAL_HEADER, "Flags")
"""The byte of an internal packet that holds PT, under `PT_MASK`."""
PT_MASK: Final = INTERNAL_HEADER.bits("Flags.PT").mask

CONNECTION_PARAMETERS_HEADER: Final = Header(
    "ConnectionParametersHeader",
    "[MS-MQQB] 2.2.2.1",
    (
        uint(
            32,
            "RecoverableAckTimeout",
            "Least time before a recoverable message is acknowledged, 500 to 120000.",
            unit="ms",
            default=500,
            req=("MQQB-2.2.2.1-01", "MQQB-2.2.2.1-02"),
        ),
        uint(
            32,
            "AckTimeout",
            "Time to wait for an acknowledgement before closing, 20000 to 120000.",
            unit="ms",
            default=120_000,
            req=("MQQB-2.2.2.1-03", "MQQB-2.2.2.1-04"),
        ),
        uint(16, "Reserved", "0; ignored.", req="MQQB-2.2.2.1-05"),
        uint(16, "WindowSize", "Messages that may be unacknowledged.", default=64, req="MQQB-2.2.2.1-06"),
    ),
    "Timeouts and window of a session.",
    size=12,
)

ESTABLISH_CONNECTION_HEADER: Final = Header(  # MQQB-4.1.3-02, MQQB-4.1.3-03, MQQB-4.1.4-02, MQQB-4.1-02
    "EstablishConnectionHeader",
    "[MS-MQQB] 2.2.3.1",
    (
        guid("ClientGuid", "GUID of the initiator.", req="MQQB-2.2.3.1-01"),
        guid("ServerGuid", "GUID of the acceptor; null for a direct format name.", req="MQQB-2.2.3.1-03"),
        uint(32, "TimeStamp", "Time since the initiator's system started.", unit="ms", req="MQQB-2.2.3.1-06"),
        flags(
            16,
            "OperatingSystem",
            bit("RE", 0, meaning="0x10.", width=8, default=0x10, req="MQQB-2.2.3.1-09"),
            bit("SE", 8, "No ping was sent before.", default=1, req="MQQB-2.2.3.1-10"),
            bit("OS", 9, "The initiator is a server-class system.", req="MQQB-2.2.3.1-12"),
            bit("QS", 10, "The transport guarantees quality of service.", req="MQQB-2.2.3.1-14"),
            *reserved("X11 X12 X13 X14 X15", 11, req="MQQB-2.2.3.1-15"),
            req="MQQB-2.2.3.1-08",
        ),
        uint(16, "Reserved", "0; ignored.", req="MQQB-2.2.3.1-16"),
        raw(
            "Padding",
            512,
            "0x5A in a response, anything in a request.",
            default=b"\x5a" * 512,
            req=("MQQB-2.2.3.1-17", "MQQB-2.2.3.1-18"),
        ),
    ),
    "Who opens a session to whom.",
    size=552,
)
