"""The Ping Packet, a datagram on UDP 3527: [MS-MQQB] 2.2.7."""

from typing import Final

from msmqwire.schema import Packet, bit, field_offset, flags, guid, uint

PING_SIGNATURE: Final = 0x5548  # MQQB-3.1.7.7-01, MQQB-3.1.7.8-01
PING_PORT: Final = 3527  # MQQB-2.1.2-04, MQQB-2.1.2-03
PING_SIZE: Final = 24

PING: Final = Packet(  # MQQB-4.1.1-01, MQQB-4.1.2-01
    "Ping",
    "[MS-MQQB] 2.2.7",
    (
        flags(
            16,
            "Flags",
            bit("RC", 0, "The initiator is not a server system.", req=("MQQB-2.2.7-02", "MQQB-2.2.7-03")),
            bit("RF", 1, "A session would be refused.", req="MQQB-2.2.7-06"),
            *(bit(f"X{n}", n, "Anything; ignored.", req="MQQB-2.2.7-07") for n in range(2, 16)),
        ),
        uint(
            16,
            "Signature",
            meaning="0x5548.",
            default=PING_SIGNATURE,
            must=frozenset({PING_SIGNATURE}),
            req=("MQQB-2.2.7-08", "MQQB-2.2.7-09"),
        ),
        uint(32, "Cookie", "Tells which request a response answers.", req="MQQB-2.2.7-10"),  # MQQB-2.2.7-01
        guid("QMGuid", "Queue manager that made the packet.", req="MQQB-2.2.7-13"),  # MQQB-2.2.7-01
    ),
    "Asks for, or tells, the readiness for a session.",
    size=PING_SIZE,
    req=("MQQB-2.2.7-01",),
)

_SIGNATURE_BYTES: Final = PING_SIGNATURE.to_bytes(2, "little")
_SIGNATURE_OFFSET: Final = field_offset(PING, "Signature")


def is_ping(data: bytes) -> bool:
    """Return whether bytes have the size and the signature of a Ping Packet."""
    return len(data) == PING_SIZE and has_ping_signature(data)


def has_ping_signature(data: bytes) -> bool:
    """Return whether bytes have the signature of a Ping Packet at its place."""
    return data.startswith(_SIGNATURE_BYTES, _SIGNATURE_OFFSET)
