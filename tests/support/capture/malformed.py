"""Malformed packets, of every reason that there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.support import handmade as h

NAME = h.direct_name("TCP:h\\q")
QUEUES = [(0, b""), (3, h.private_id(9)), (5, bytes(range(16))), (6, h.private_name(h.SERVER, 7)), (7, NAME)]


def _users() -> Iterator[bytes]:
    for queue in QUEUES:
        yield h.user_header(admin=queue)
        yield h.user_header(response=queue)
        if queue[0] != 6:
            yield h.user_header(destination=queue)
    yield h.user_header(connector_type=bytes(16))


SECURITY = h.security_header(
    flags=0x81, security_id=bytes(12), encryption_key=b"key", signature=b"signature",
    certificate=b"certificate", provider=h.provider_info(1, "p"),
)  # fmt: skip
PROPERTIES = h.properties_header(label="label", extension=b"extension", body=b"body", slack=b"slack")
LISTS = h.multi_queue_format_header(
    [h.mqf_public(bytes(16)), h.mqf_private(h.SERVER, 7), h.mqf_direct("TCP:h\\q"), h.mqf_list(bytes(16))],
    [h.mqf_direct("TCP:h\\q"), h.mqf_public(bytes(16)), h.mqf_private(h.SERVER, 7), h.mqf_list(bytes(16))],
    [h.mqf_list(bytes(16)), h.mqf_direct("TCP:host\\q"), h.mqf_private(h.SERVER, 7), h.mqf_public(bytes(16))],
    b"signature",
)
WELL_FORMED = [
    *(h.user_message(user=user) for user in _users()),
    h.user_message(transaction=h.transaction_header()),
    h.user_message(transaction=h.transaction_header(connector=bytes(16), flags=1)),
    h.user_message(security=SECURITY),
    h.user_message(properties=PROPERTIES, session=h.session_header()),
    h.user_message(debug=h.debug_header(bytes(16))),
    h.user_message(srmp=h.srmp_envelope_header(), compound=h.compound_message_header()),
    h.user_message(srmp=h.srmp_envelope_header(length=10), compound=h.compound_message_header()),
    h.user_message(soap=h.soap_header()),
    h.user_message(soap=h.soap_header(aligned=False)),
    h.user_message(soap=h.soap_header("head", "body"), multi_queue=LISTS),
    h.user_message(multi_queue=h.multi_queue_format_header(), trailing=h.extension_header(0, 0)),
    h.order_ack(),
    h.final_ack(),
    h.session_ack(),
    h.establish_connection(),
    h.connection_parameters(),
]
"""Packets that together have every part."""

_LISTS: Final = (0x0064, 0x00C8, 0x012C)
_NAMES: Final = [h.mqf_public(bytes(16)), h.mqf_private(h.SERVER, 7), h.mqf_list(bytes(16))]
PADDED: Final = [
    h.user_message(
        security=h.security_header(
            flags=0x81, security_id=bytes(13), signature=b"s", provider=h.provider_info(1, "pr")
        )
    ),
    h.user_message(srmp=h.srmp_envelope_header(), compound=h.compound_message_header(b"POST 1")),
    *(
        h.user_message(
            multi_queue=b"".join(h.mqf_address_header(number, names, rounded=False) for number in _LISTS)
            + h.mqf_signature_header(b"s")
        )
        for names in ([h.mqf_direct("q")], *([name, h.mqf_direct("TCP:"), name] for name in _NAMES))
    ),
]
"""Packets with padding wherever there can be some."""


def resized(packet: bytes, size: int) -> bytes:
    """A packet that ends after a number of bytes, as its PacketSize says."""
    tail = packet[-16:] if packet[2] & 0x18 == 0x10 else b""
    body = packet[: len(packet) - len(tail)]
    return body[:8] + size.to_bytes(4, "little") + body[12:].ljust(size - 12, b"\0")[: size - 12] + tail


def lists() -> Iterator[bytes]:
    """Messages to several queues in which the only element of a list does not fit, or is not terminated."""
    ids, elements = (0x64, 0xC8, 0x12C), [h.mqf_public(bytes(16)), h.mqf_private(bytes(16), 1), (3, b"ab")]
    for wrong in ids:
        for element in [*elements, h.mqf_list(bytes(16))]:
            for size in range(11, 37):
                parts = [
                    h.mqf_address_header(number, [element], size=size)
                    if number == wrong
                    else h.mqf_address_header(number)
                    for number in ids
                ]
                yield h.user_message(multi_queue=b"".join(parts) + h.mqf_signature_header())


def with_sound_frames() -> Iterator[bytes]:
    """Packets, most of them malformed, whose PacketSize is right."""
    for packet in WELL_FORMED:
        for size in range(16, min(len(packet), 600) + 5):
            yield resized(packet, size)
        for at in range(16, min(len(packet), 600)):
            for value in (0, 1, packet[at] ^ 0x80, packet[at] ^ 0x1C, packet[at] + 2 & 0xFF, 0xFF):
                yield packet[:at] + bytes([value]) + packet[at + 1 :]
    yield from lists()
    yield resized(h.establish_connection(), 573)
    for flags in range(16):
        yield h.session_ack(flags=3 | h.IN, internal=flags)
        yield h.session_ack(internal=flags)
    for size in (0, 1, 3, 5, 0xFFFF_FFFF):
        properties = h.properties_header(body=b"body", message_size=size)
        yield h.user_message(properties=properties)
        yield h.user_message(properties=h.properties_header(body=b"body", allocation_body_size=size))
        yield h.user_message(properties=h.properties_header(body=b"body", extension_size=size))
        yield h.user_message(security=h.security_header(sizes=(0, 0, 0, size, 0)))
        yield h.user_message(security=h.security_header(sizes=(0, 0, 0, 0, size)))


def with_any_frame() -> Iterator[bytes]:
    """Bytes that are to be one packet and are of another size, or have no BaseHeader."""
    for packet in [*WELL_FORMED, *PADDED, h.user_message(session=h.session_header())]:
        for size in range(len(packet)):
            yield packet[:size]
        yield packet + b"\0"
    for packet in (h.session_ack(), h.establish_connection(), h.connection_parameters()):
        yield packet[:8] + (16).to_bytes(4, "little") + packet[12:]
        for at in range(16):
            for value in (0, 0xFF, packet[at] ^ 1):
                yield packet[:at] + bytes([value]) + packet[at + 1 :]
