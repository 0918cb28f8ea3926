"""Headers of the NetWare Core Protocol: requests, replies, and the units that carry them over TCP.

The chapter "Queue Services" gives no encodings; names and layouts are those of public descriptions of NCP.
Over UDP and IPX a packet begins with its NCP header.
"""

from __future__ import annotations

from typing import Final

from msmqwire.schema import REST, Header, bit, flags, maybe, raw, reserved, uint

NCP_PORT: Final = 524
"""TCP and UDP port."""
CREATE_CONNECTION: Final = 0x1111
SERVICE_REQUEST: Final = 0x2222
REPLY: Final = 0x3333
WATCHDOG: Final = 0x3E3E
DESTROY_CONNECTION: Final = 0x5555
BUSY: Final = 0x9999
"""Types of packets. `BUSY` has the layout of a reply: the request is still being processed."""
NO_CONNECTION: Final = 0xFFFF
"""The connection number of a request that asks for a connection."""

_REQUEST: Final = (
    uint(8, "SequenceNumber", "One more than in the request before, modulo 256."),
    uint(8, "ConnectionNumberLow", "The low byte of the connection number."),
    uint(8, "TaskNumber", "The task of the client."),
    uint(8, "ConnectionNumberHigh", "The high byte of the connection number."),
)

NCP_REQUEST_HEADER: Final = Header(
    "NcpRequestHeader",
    "NCP request header",
    (
        uint(16, "RequestType", "0x1111, 0x2222 or 0x5555.", default=SERVICE_REQUEST, big_endian=True),
        *_REQUEST,
        uint(8, "FunctionCode", "The function: 23 for queue and bindery services. 0 in other types."),
    ),
    "The header of a request.",
    size=7,
)

NCP_SHORT_DESTROY_HEADER: Final = Header(
    "NcpRequestHeader",
    "NCP request header",
    (
        uint(
            16,
            "RequestType",
            "0x5555.",
            default=DESTROY_CONNECTION,
            must=frozenset({DESTROY_CONNECTION}),
            big_endian=True,
        ),
        *_REQUEST,
    ),
    "The header of a request to end a connection, as some clients send it: without a function.",
    size=6,
    variant="Short",
)

NCP_REPLY_HEADER: Final = Header(
    "NcpReplyHeader",
    "NCP reply header",
    (
        uint(
            16,
            "ReplyType",
            "0x3333, or 0x9999 while the request is processed.",
            default=REPLY,
            big_endian=True,
        ),
        uint(8, "SequenceNumber", "The sequence number of the request."),
        uint(8, "ConnectionNumberLow", "The low byte of the connection number."),
        uint(8, "TaskNumber", "The task of the client."),
        uint(8, "ConnectionNumberHigh", "The high byte of the connection number."),
        uint(8, "CompletionCode", "0 for success."),
        flags(
            8,
            "ConnectionStatus",
            bit("BadConnection", 0, "There is no such service connection."),
            reserved("X1 X2 X3", 1),
            bit("ServerDown", 4, "The server is going down."),
            reserved("X5", 5),
            bit("MessageWaiting", 6, "A broadcast message waits for the client."),
            reserved("X7", 7),
        ),
    ),
    "The header of a reply. Data follow only if the completion code is 0.",
    size=8,
)

NCP_WATCHDOG: Final = Header(
    "NcpWatchdog",
    "NCP watchdog",
    (
        uint(16, "RequestType", "0x3E3E.", default=WATCHDOG, must=frozenset({WATCHDOG}), big_endian=True),
        raw("Reserved", 7, "Sent back as it came."),
        uint(8, "Signature", "'?' from the server; 'Y' from a live client.", default=0x3F),
        raw("TrailingData", REST, "Filler that some clients add to a packet, as a rule zeros."),
    ),
    "Whether a client is still there, asked over UDP and IPX; it answers with the same bytes.",
)

NCP_SUBFUNCTION_HEADER: Final = Header(
    "NcpSubfunctionHeader",
    "NCP functions 22 and 23",
    (
        uint(16, "StructureLength", "Bytes that follow this field.", unit="bytes", big_endian=True),
        uint(8, "SubFunctionCode", "The subfunction."),
    ),
    "The fields of a request of functions 22 and 23 after its header.",
    size=3,
)


def _length(meaning: str) -> tuple:  # type: ignore[type-arg]
    return (
        flags(
            32,
            "Length",
            bit("Size", 0, meaning, width=31),
            bit("Signed", 31, "8 bytes of a packet signature stand before the NCP header."),
            big_endian=True,
        ),
    )


TCP_REQUEST_SIGNATURE: Final = 0x446D6454
TCP_REPLY_SIGNATURE: Final = 0x744E6350
_PACKET_SIGNATURE: Final = maybe(
    "Length.Signed", raw("PacketSignature", 8, "Proves who sent the packet; not verified.")
)

NCP_TCP_REQUEST: Final = Header(
    "NcpTcpRequest",
    "NCP over TCP, request",
    (
        uint(
            32,
            "Signature",
            "0x446D6454, 'DmdT'.",
            default=TCP_REQUEST_SIGNATURE,
            must=frozenset({TCP_REQUEST_SIGNATURE}),
            big_endian=True,
        ),
        *_length("Bytes of the unit, this preamble included."),
        uint(32, "Version", "1.", default=1, big_endian=True),
        uint(32, "ReplyBufferSize", "The largest reply that the client takes, in bytes.", big_endian=True),
        _PACKET_SIGNATURE,
    ),
    "The preamble of a request over TCP.",
)

NCP_TCP_REPLY: Final = Header(
    "NcpTcpReply",
    "NCP over TCP, reply",
    (
        uint(
            32,
            "Signature",
            "0x744E6350, 'tNcP'.",
            default=TCP_REPLY_SIGNATURE,
            must=frozenset({TCP_REPLY_SIGNATURE}),
            big_endian=True,
        ),
        *_length("Bytes of the unit, this preamble included."),
        _PACKET_SIGNATURE,
    ),
    "The preamble of a reply over TCP.",
)
