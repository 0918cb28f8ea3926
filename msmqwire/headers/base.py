"""BaseHeader, the first 16 bytes of every session packet: [MS-MQMQ] 2.2.19.1."""

from struct import Struct
from typing import Final

from msmqwire.schema import Flags, Header, UInt, bit, field_offset, flags, reserved, uint

SIGNATURE: Final = 0x524F494C  # "LIOR" on the wire: MQQB-4.1.7-02
VERSION: Final = 0x10  # MQQB-4.1.7-02
BASE_HEADER_SIZE: Final = 16  # MQMQ-2.2.19.1-01, MQQB-2.1.1-03
PACKET_SIZE_MIN: Final = BASE_HEADER_SIZE
PACKET_SIZE_MAX: Final = 0x0040_0000  # MQMQ-2.2.19.1-21
INFINITE: Final = 0xFFFF_FFFF

BASE_HEADER: Final = Header(
    "BaseHeader",
    "[MS-MQMQ] 2.2.19.1",
    (
        uint(
            8, "VersionNumber", "Version of the packet format, 0x10.", default=VERSION, req="MQMQ-2.2.19.1-02"
        ),
        uint(8, "Reserved", "Anything; ignored.", req="MQMQ-2.2.19.1-03"),  # MQMQ-2.2.19.1-25
        flags(
            16,
            "Flags",
            bit(
                "PR", 0, "Priority of the message, 0 lowest to 7.", width=3, default=3, req="MQMQ-2.2.19.1-05"
            ),
            bit(
                "IN", 3, "Internal packet: session establishment or acknowledgement.", req="MQMQ-2.2.19.1-08"
            ),
            bit("SH", 4, "A SessionHeader is in the packet.", req="MQMQ-2.2.19.1-11"),
            bit("DH", 5, "A DebugHeader is in the packet.", req="MQMQ-2.2.19.1-12"),
            *reserved("X9 X8", 6, req=("MQMQ-2.2.19.1-16", "MQMQ-2.2.19.1-17")),
            bit("TR", 8, "Tracing is on for this message.", req="MQMQ-2.2.19.1-14"),  # MQMQ-2.2.19.1-25
            *reserved("X6 X5 X4 X3 X2 X1 X0", 9, req=("MQMQ-2.2.19.1-16", "MQMQ-2.2.19.1-17")),
            req="MQMQ-2.2.19.1-04",
        ),
        uint(32, "Signature", meaning="0x524F494C.", default=SIGNATURE, req="MQMQ-2.2.19.1-18"),
        uint(
            32,
            "PacketSize",
            "Bytes of the packet; a SessionHeader at the end of a UserMessage is not counted.",
            unit="bytes",
            size_of="packet",  # DMPR-3.1.7.1.32-02
            req=("MQMQ-2.2.19.1-19", "MQMQ-2.2.19.1-20"),
        ),
        uint(
            32,
            "TimeToReachQueue",
            "Time that the message has to reach its queue; 0xFFFFFFFF means no limit.",
            unit="s",
            default=INFINITE,  # MQQB-2.2.2-03
            req="MQMQ-2.2.19.1-22",
        ),
    ),
    "The header that every packet starts with.",
    size=BASE_HEADER_SIZE,
    req=("MQMQ-2.2.19.1-01",),
)

FLAGS_OFFSET: Final = field_offset(BASE_HEADER, "Flags")
# Both bits are in the first byte of the little-endian Flags.
INTERNAL_BIT: Final = BASE_HEADER.bits("Flags.IN").mask
SESSION_HEADER_BIT: Final = BASE_HEADER.bits("Flags.SH").mask
SIGNATURE_OFFSET: Final = field_offset(BASE_HEADER, "Signature")
SIGNATURE_BYTES: Final = SIGNATURE.to_bytes(4, "little")
SIGNATURE_END: Final = SIGNATURE_OFFSET + len(SIGNATURE_BYTES)
PACKET_SIZE_OFFSET: Final = field_offset(BASE_HEADER, "PacketSize")


def _prefix() -> Struct:
    codes = "<"
    for part in BASE_HEADER.parts:
        assert isinstance(part, UInt | Flags)
        codes += {8: "B", 16: "H", 32: "I"}[part.bits]
        if part.name == "PacketSize":
            break
    return Struct(codes)


PREFIX: Final = _prefix()
"""VersionNumber, Reserved, Flags, Signature and PacketSize: all that judging the start of a packet takes."""
PREFIX_SIZE: Final = PREFIX.size
