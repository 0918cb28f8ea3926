"""The headers that follow a remotely read message: [MS-MQRR] 2.2.5.1 and 2.2.5.2 to 2.2.5.5."""

from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import AddressType
from msmqwire.errors import InvalidValue
from msmqwire.schema import TO_NULL, Fill, Header, bit, flags, raw, reserved, text, uint
from msmqwire.schema.layout import layout

SUBQUEUE_NAME_SIZE: Final = 64

EXTENSION_HEADER: Final = Header(
    "ExtensionHeader",
    "[MS-MQRR] 2.2.5.2",
    (
        uint(
            32, "HeaderSize", "Bytes of this header.", unit="bytes", size_of="header", req="MQRR-2.2.5.2-01"
        ),
        uint(
            32,
            "RemainingHeadersSize",
            "Bytes of the headers after this one.",
            unit="bytes",
            size_of="after",
            req="MQRR-2.2.5.2-02",
        ),
        flags(
            8,
            "Flags",
            bit("DL", 0, "A DeadLetterHeader follows.", req="MQRR-2.2.5.2-04"),
            bit("SQ", 1, "A SubqueueHeader follows.", req="MQRR-2.2.5.2-05"),
            *reserved("X2", 2, req="MQRR-2.2.5.2-09"),
            bit("DI", 3, "The dead-letter queue is not valid.", req="MQRR-2.2.5.2-06"),
            bit("EA", 4, "An ExtendedAddressHeader follows.", req="MQRR-2.2.5.2-08"),
            *reserved("X5 X6 X7", 5, req="MQRR-2.2.5.2-09"),
            req="MQRR-2.2.5.2-03",
        ),
        raw("Reserved", 3, meaning="Ignored.", req="MQRR-2.2.5.2-10"),
        Fill("Padding", 1, meaning="Bytes that HeaderSize counts beyond the fields."),
    ),
    "Which headers follow the message.",
)

SUBQUEUE_HEADER: Final = Header(
    "SubqueueHeader",
    "[MS-MQRR] 2.2.5.3",
    (
        uint(
            32, "HeaderSize", "Bytes of this header.", unit="bytes", size_of="header", req="MQRR-2.2.5.3-01"
        ),
        flags(
            32,
            "Flags",
            bit("TM", 0, meaning="0.", req="MQRR-2.2.5.3-03"),
            bit(
                "AcknowledgementClass",
                1,
                "Acknowledgement class of the message.",
                width=16,
                req="MQRR-2.2.5.3-04",
            ),
            *reserved("Reserved", 17, width=15, req="MQRR-2.2.5.3-05"),
        ),
        uint(32, "AbortCounter", "Failed attempts to read or move it, in a row.", req="MQRR-2.2.5.3-06"),
        uint(32, "MoveCounter", "Times it was moved.", req="MQRR-2.2.5.3-07"),
        uint(
            32,
            "LastMoveTime",
            "Last move, since 1970-01-01 local time modulo 2^32.",
            unit="ms",
            req="MQRR-2.2.5.3-08",
        ),
        text("SubqueueName", SUBQUEUE_NAME_SIZE, "Subqueue it is in.", padded=True, req="MQRR-2.2.5.3-09"),
        text(
            "TargetSubqueueName",
            SUBQUEUE_NAME_SIZE,
            "Subqueue it is moved to.",
            padded=True,
            req="MQRR-2.2.5.3-10",
        ),
        Fill("Padding", 1, meaning="Bytes that HeaderSize counts beyond the fields."),
    ),
    "Subqueue and moves of a message.",
)

DEAD_LETTER_HEADER: Final = Header(
    "DeadLetterHeader",
    "[MS-MQRR] 2.2.5.4",
    (
        uint(
            32,
            "HeaderSize",
            "Bytes of this header, padding included.",
            unit="bytes",
            size_of="header",
            req="MQRR-2.2.5.4-01",
        ),
        text("DeadLetterPathName", TO_NULL, "The application's dead-letter queue.", req="MQRR-2.2.5.4-02"),
        Fill("Padding", meaning="Padding up to a multiple of 4 bytes."),
    ),
    "Dead-letter queue of a message.",
)

EXTENDED_ADDRESS_HEADER: Final = Header(
    "ExtendedAddressHeader",
    "[MS-MQRR] 2.2.5.5",
    (
        uint(
            32, "HeaderSize", "Bytes of this header.", unit="bytes", size_of="header", req="MQRR-2.2.5.5-01"
        ),
        uint(16, "AddressLength", "Bytes of the address.", unit="bytes", req="MQRR-2.2.5.5-02"),
        uint(16, "AddressType", "0 none, 1 IPv4, 6 IPv6.", req="MQRR-2.2.5.5-03"),
        uint(32, "AddressScope", "IPv6 scope.", req="MQRR-2.2.5.5-05"),
        raw("Address", 16, "Address of the host it came from.", req="MQRR-2.2.5.5-06"),
        Fill("Padding", 1, meaning="Bytes that HeaderSize counts beyond the fields."),
    ),
    "Address of the host a message came from.",
)

SOURCE_ADDRESS: Final = Header(
    "SourceAddress",
    "[MS-MQRR] 2.2.5.1",
    (
        uint(
            16,
            "AddressLength",
            "True length of the address, also beyond 8.",
            unit="bytes",
            req="MQRR-2.2.5.1-07",
        ),
        uint(16, "AddressType", "1 IPv4, 6 IPv6.", req="MQRR-2.2.5.1-08"),
        uint(32, "AddressScope", "IPv6 scope.", req="MQRR-2.2.5.1-09"),
        raw("Address", 8, "As much of the address as fits.", req="MQRR-2.2.5.1-10"),
    ),
    "The content of QueueManagerAddress in a remotely read message to a direct format name.",
    size=16,
    req=("MQRR-2.2.5.1-04",),
)


def source_address(address: IPv4Address | IPv6Address) -> UUID:
    """Return the QueueManagerAddress of a remotely read message to a direct format name.

    It holds the address that the message came from, `SOURCE_ADDRESS`, as much as fits: [MS-MQRR] 2.2.5.1.
    Raises InvalidValue for the scope of an IPv6 address that is not a number.
    """
    kind = AddressType.IP_ADDRESS_TYPE if address.version == 4 else AddressType.IPV6_ADDRESS_TYPE
    scope = (address.scope_id or "0") if isinstance(address, IPv6Address) else "0"
    if not scope.isascii() or not scope.isdecimal():
        raise InvalidValue(f"{scope!r:.100} is not a number", path="SourceAddress.AddressScope")
    packed = address.packed
    data = SOURCE_ADDRESS.build(
        {
            "AddressLength": len(packed),
            "AddressType": kind,
            "AddressScope": int(scope),
            "Address": packed[:8].ljust(8, b"\0"),
        }
    )
    return UUID(bytes_le=data)


def size_after_extension(packet: Any) -> int:
    """Return the bytes of the headers after the ExtensionHeader, which it counts: MQRR-2.2.5.2-02."""
    headers = (packet.SubqueueHeader, packet.DeadLetterHeader, packet.ExtendedAddressHeader)
    return sum(field.size for header in headers if header is not None for field in layout(header))
