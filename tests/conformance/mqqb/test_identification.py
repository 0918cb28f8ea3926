"""Identifying the type of a packet: [MS-MQQB] 3.1.5.1."""

from __future__ import annotations

import struct

import pytest

import msmqwire
from tests.support import handmade
from tests.support.codec_checks import assert_refused, proving, requirement

PACKETS = {
    "EstablishConnection": handmade.establish_connection(),
    "ConnectionParameters": handmade.connection_parameters(),
    "SessionAck": handmade.session_ack(),
    "UserMessage": handmade.user_message(),
    "OrderAck": handmade.order_ack(),
    "FinalAck": handmade.final_ack(),
}
EVERY = pytest.mark.parametrize("kind", PACKETS)
ORDER_QUEUE = "TCP:10.0.0.1\\PRIVATE$\\order_queue$"


def kind_of(data: bytes) -> str:
    packet = msmqwire.parse(data)
    assert msmqwire.build(packet) == data
    assert msmqwire.to_json(packet)["packet"] == packet.schema.name
    return str(packet.schema.name)


@requirement("MQQB-2.1.1-02")
@EVERY
def test_the_six_kinds(kind: str) -> None:
    assert kind_of(PACKETS[kind]) == kind


@pytest.mark.parametrize(
    "kind, number",
    [
        proving("EstablishConnection", 2, ids="MQQB-3.1.5.1.1-01"),
        proving("ConnectionParameters", 3, ids="MQQB-3.1.5.1.1-02"),
    ],
)
def test_internal_packets(kind: str, number: int) -> None:
    """IN and PT decide, whatever the priority and the other bits of PT's byte."""
    maker = handmade.establish_connection if number == 2 else handmade.connection_parameters
    for flags in (0x0008, 0x000F, 0x010B, 0xFECB):
        for internal in (number, number | 0x10, number | 0xFFF0):
            assert kind_of(maker(flags=flags, internal=internal)) == kind
    # with IN clear it is parsed as a message, and fails
    with pytest.raises(msmqwire.MalformedPacket):
        msmqwire.parse(maker(flags=3))


@requirement("MQQB-3.1.5.1.1-03")
def test_session_ack() -> None:
    for flags in (0x0018, 0x001B, 0xFEDF):
        assert kind_of(handmade.session_ack(flags=flags)) == "SessionAck"
    assert_refused(msmqwire.parse, handmade.session_ack(flags=0x000B), "BaseHeader.Flags.SH", 2)
    for internal in (2, 3):  # these have other lengths
        with pytest.raises(msmqwire.MalformedPacket):
            msmqwire.parse(handmade.session_ack(internal=internal))


def acknowledgement(kind: str, **changes: object) -> bytes:
    maker = handmade.order_ack if kind == "OrderAck" else handmade.final_ack
    return maker(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind", [proving("OrderAck", ids="MQQB-3.1.5.1.1-04"), proving("FinalAck", ids="MQQB-3.1.5.1.1-05")]
)
def test_acknowledgements(kind: str) -> None:
    """All criteria must hold, with the queue by number or direct name; else it is a message."""
    assert kind_of(acknowledgement(kind)) == kind
    for name in (ORDER_QUEUE, "TCP:fd00::1\\private$\\ORDER_QUEUE$"):
        assert kind_of(acknowledgement(kind, destination=(7, handmade.direct_name(name)))) == kind
    others: list[dict[str, object]] = [
        {"flags": 1},  # a priority
        {"flags": 0x0100},  # any bit
        {"flags": 0x8000},
        {"label": "QM Ordering ack"},
        {"label": "QM Ordering Ack "},
        {"destination": (3, handmade.private_id(5))},
        {"destination": (5, bytes(16))},
        {"destination": (7, handmade.direct_name("TCP:10.0.0.1\\PRIVATE$\\orders"))},
        {"destination": (7, handmade.direct_name("TCP:10.0.0.1\\order_queue$"))},
    ]
    for change in others:
        assert kind_of(acknowledgement(kind, **change)) == "UserMessage", change


@pytest.mark.parametrize(
    "message_class, kind",
    [
        proving(0x00FF, "OrderAck", ids="MQQB-3.1.5.1.1-04"),
        proving(0x0000, "UserMessage", ids="MQQB-3.1.5.1.1-06"),
        proving(0x0002, "UserMessage", ids="MQQB-3.1.5.1.1-06"),
        proving(0x0100, "UserMessage"),
        proving(0x3FFF, "UserMessage", ids="MQQB-3.1.5.1.1-05"),
        proving(0x4000, "FinalAck", ids="MQQB-3.1.5.1.1-05"),
        proving(0x4001, "FinalAck", ids="MQQB-3.1.5.1.1-05"),
        proving(0x8009, "FinalAck", ids="MQQB-3.1.5.1.1-05"),
        proving(0xFFFF, "FinalAck", ids="MQQB-3.1.5.1.1-05"),
    ],
)
def test_the_class_decides(message_class: int, kind: str) -> None:
    assert kind_of(handmade.order_ack(message_class=message_class)) == kind


@requirement("MQQB-3.1.5.1.1-04")
@pytest.mark.parametrize("size", [0, 35, 37, 40])
def test_an_order_ack_has_36_bytes(size: int) -> None:
    assert kind_of(handmade.order_ack(bytes(size))) == "UserMessage"


@requirement("MQQB-3.1.5.1.1-06")
@pytest.mark.parametrize(
    "message_class", [0x0000, 0x0001, 0x0002, 0x00FF, 0x0100, 0x4000, 0x8000, 0xC004, 0xE1FF]
)
def test_messages(message_class: int) -> None:
    """Messages of any class, including administration acknowledgements and reports."""
    data = handmade.user_message(
        properties=handmade.properties_header(message_class=message_class, body=bytes(36))
    )
    assert kind_of(data) == "UserMessage"


@requirement("MQQB-3.1.5.1.1-07")
@EVERY
def test_no_ping_among_them(kind: str) -> None:
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        msmqwire.parse(PACKETS[kind], protocol="ping")
    assert (caught.value.path, caught.value.offset) == ("Signature", 2)
    ping = handmade.ping(flags=0x0010)  # even if its first byte equals the version
    assert_refused(msmqwire.parse, ping, "BaseHeader.Signature", 4)


@requirement("MQQB-3.1.5.1.2-01")
@EVERY
def test_version_and_signature(kind: str) -> None:
    data = PACKETS[kind]
    assert (data[0], data[4:8]) == (0x10, b"LIOR")
    base = msmqwire.parse(data).BaseHeader
    assert (base.VersionNumber, base.Signature) == (0x10, 0x524F494C)


@requirement("MQQB-3.1.5.1.2-02")
@EVERY
@pytest.mark.parametrize("protocol", ["session", "remote_read"])
def test_another_version_or_signature(kind: str, protocol: str) -> None:
    """Refused with its path before anything else in the packet is examined."""
    data = PACKETS[kind]

    def parse(data: bytes) -> object:
        return msmqwire.parse(data, protocol=protocol)  # type: ignore[arg-type]

    for version in (0x00, 0x0F, 0x11, 0x90, 0xFF):
        poked = bytes([version]) + data[1:]
        assert_refused(parse, poked, "BaseHeader.VersionNumber", 0)
        assert_refused(parse, poked[:16], "BaseHeader.VersionNumber", 0)
        assert_refused(parse, poked[:8] + b"\xff" * 24, "BaseHeader.VersionNumber", 0)
    for signature in (b"ROIL", b"LIOQ", b"\0\0\0\0", b"lior"):
        poked = data[:4] + signature + data[8:]
        assert_refused(parse, poked, "BaseHeader.Signature", 4)
        assert_refused(parse, poked[:8] + b"\xff" * 24, "BaseHeader.Signature", 4)


@requirement("MQQB-3.1.5.1.3-01")
@EVERY
def test_every_cut_of_every_packet(kind: str) -> None:
    """Truncated bytes are refused where they end, with the original PacketSize and with it adjusted."""
    data = PACKETS[kind]
    for cut in range(len(data)):
        with pytest.raises(msmqwire.MalformedPacket) as caught:
            msmqwire.parse(data[:cut])
        assert caught.value.offset == cut
    for cut in range(16, len(data)):
        with pytest.raises(msmqwire.MalformedPacket):
            msmqwire.parse(data[:8] + struct.pack("<L", cut) + data[12:cut])
