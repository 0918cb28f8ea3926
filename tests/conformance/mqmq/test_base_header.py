"""BaseHeader: [MS-MQMQ] 2.2.19.1."""

from __future__ import annotations

import pytest

import msmqwire
from msmqwire.analysis.lint import lint
from msmqwire.headers import BASE_HEADER
from msmqwire.packets import USER_MESSAGE
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    assert_values,
    differences,
    flat,
    proving,
    requirement,
)
from tests.support.paths import VECTORS

BASE = handmade.base_header(16, 0, reserved=0)
RESERVED = {"X9": 6, "X8": 7, "X6": 9, "X5": 10, "X4": 11, "X3": 12, "X2": 13, "X1": 14, "X0": 15}
PACKETS = {
    "EstablishConnection": handmade.establish_connection(),
    "ConnectionParameters": handmade.connection_parameters(),
    "SessionAck": handmade.session_ack(),
    "UserMessage": handmade.user_message(),
    "OrderAck": handmade.order_ack(),
    "FinalAck": handmade.final_ack(),
}
INTERNAL = ["EstablishConnection", "ConnectionParameters", "SessionAck"]
PARTS = {"OrderAck": {"OrderAckBody": {}}, "FinalAck": {"FinalAckBody": {}}}


def built(kind: str, fields: dict[str, object] | None = None) -> bytes:
    """A packet with defaults for everything but its kind."""
    return msmqwire.build({"packet": kind, "fields": {**PARTS.get(kind, {}), **(fields or {})}})


@requirement("MQMQ-2.2.19.1-01", "MQQB-2.1.1-03")
@pytest.mark.parametrize("kind", PACKETS)
def test_the_first_16_bytes_of_every_packet(kind: str) -> None:
    data = PACKETS[kind]
    packet = msmqwire.parse(data)
    assert packet.schema.name == kind
    base, end = BASE_HEADER.read(data)
    assert end == 16
    assert base == packet.BaseHeader
    assert BASE_HEADER.build(base) == data[:16]
    assert built(kind)[4:8] == b"LIOR"
    assert len(built(kind)) > 16


@pytest.mark.parametrize(
    "name, offset, data, value",
    [
        proving("VersionNumber", 0, b"\xa5", 0xA5, ids="MQMQ-2.2.19.1-02"),
        proving("Reserved", 1, b"\xc0", 0xC0, ids="MQMQ-2.2.19.1-03"),
        proving("Signature", 4, b"\x44\x33\x22\x11", 0x11223344, ids="MQMQ-2.2.19.1-18"),
        proving("TimeToReachQueue", 12, b"\x00\x46\x05\x00", 345600, ids="MQMQ-2.2.19.1-22"),
        proving("TimeToReachQueue", 12, b"\0\0\0\0", 0, ids="MQMQ-2.2.19.1-22", name="TimeToReachQueue-0"),
    ],
)
def test_fields(name: str, offset: int, data: bytes, value: int) -> None:
    assert_field(BASE_HEADER, BASE, name, offset, data, value)


@requirement("MQMQ-2.2.19.1-19")
def test_packet_size_stands_at_8() -> None:
    packet = msmqwire.parse(PACKETS["UserMessage"] + b"")
    assert packet.BaseHeader.PacketSize == len(PACKETS["UserMessage"]) == 124
    data = handmade.user_message(properties=handmade.properties_header(label="abc", body=bytes(200) + b"x"))
    assert data[8:12] == (16 + 52 + 56 + 8 + 201 + 3).to_bytes(4, "little")  # 3 of padding counted
    assert assert_same(USER_MESSAGE, data).BaseHeader.PacketSize == len(data) == 336
    properties = {"Label": "abc", "MessageBody": bytes(200) + b"x"}
    user = {"DestinationQueue": {"PrivateQueueIdentifier": 9}}
    rebuilt = built("UserMessage", {"MessagePropertiesHeader": properties, "UserHeader": user})
    assert rebuilt[8:12] == (336).to_bytes(4, "little")
    assert len(rebuilt) == 336


@pytest.mark.parametrize(
    "path, mask",
    [
        proving("Flags.PR", 0x0007, ids=("MQMQ-2.2.19.1-05", "MQMQ-2.2.19.1-04", "MQMQ-2.2.19-01")),
        proving("Flags.IN", 0x0008, ids=("MQMQ-2.2.19.1-08", "MQMQ-2.2.19-01")),
        proving("Flags.SH", 0x0010, ids=("MQMQ-2.2.19-01",)),
        proving("Flags.DH", 0x0020, ids=("MQMQ-2.2.19-01",)),
        proving("Flags.TR", 0x0100, ids=("MQMQ-2.2.19.1-14", "MQMQ-2.2.19.1-04")),
        *(proving(f"Flags.{name}", 1 << bit, ids="MQMQ-2.2.19.1-16") for name, bit in RESERVED.items()),
    ],
)
def test_flags(path: str, mask: int) -> None:
    assert_bits(BASE_HEADER, BASE, path, 2, 2, mask)


@requirement("MQMQ-2.2.19.1-05")
@pytest.mark.parametrize("priority", range(8))
def test_priorities(priority: int) -> None:
    data = handmade.base_header(16, priority)
    assert priority == assert_same(BASE_HEADER, data).Flags.PR
    assert BASE_HEADER.build({"PacketSize": 16, "Flags": {"PR": priority}}) == data


@requirement(
    "MQMQ-2.2.19.1-05", "MQMQ-2.2.19.1-02", "MQMQ-2.2.19.1-18", "MQMQ-2.2.19.1-16", "MQMQ-2.2.19.1-22"
)
def test_what_is_left_out() -> None:
    """Version 0x10, priority 3, the signature, no time limit, no reserved bits."""
    assert BASE_HEADER.build({"PacketSize": 16}) == bytes.fromhex(
        "10 00 03 00 4C 49 4F 52 10 00 00 00 FF FF FF FF"
    )


@requirement("MQMQ-2.2.19.1-17")
@pytest.mark.parametrize("kind", PACKETS)
def test_reserved_bits_are_ignored(kind: str) -> None:
    """OrderAck and FinalAck require Flags of 0, so these are parsed with USER_MESSAGE."""
    data = PACKETS[kind]
    flags = int.from_bytes(data[2:4], "little") | 0xFEC0
    poked = data[:2] + flags.to_bytes(2, "little") + data[4:]
    if kind in {"OrderAck", "FinalAck"}:
        before, after = USER_MESSAGE.parse(data), USER_MESSAGE.parse(poked)
    else:
        before, after = msmqwire.parse(data), msmqwire.parse(poked)
    assert differences(before, after) == {f"BaseHeader.Flags.{name}" for name in RESERVED}
    assert msmqwire.build(after) == poked


@requirement("MQMQ-2.2.19.1-03")
@pytest.mark.parametrize("reserved", [0x00, 0x5A, 0xC0, 0xCD, 0xFF])
def test_reserved_may_be_anything(reserved: int) -> None:
    data = PACKETS["SessionAck"]
    poked = data[:1] + bytes([reserved]) + data[2:]
    packet = msmqwire.parse(poked)
    assert packet.BaseHeader.Reserved == reserved
    assert differences(msmqwire.parse(data), packet) <= {"BaseHeader.Reserved"}
    assert msmqwire.build(packet) == poked


@requirement("MQMQ-2.2.19.1-08", "MQMQ-2.2.19.1-09")
@pytest.mark.parametrize("kind", INTERNAL)
def test_internal_packets_are_built_with_the_bit(kind: str) -> None:
    assert built(kind)[2] & 0x08
    assert msmqwire.parse(built(kind)).BaseHeader.Flags.IN is True


@requirement("MQMQ-2.2.19.1-08", "MQMQ-2.2.19.1-10", "MQMQ-2.2.20-04")
@pytest.mark.parametrize("kind", ["UserMessage", "OrderAck", "FinalAck"])
def test_messages_are_built_without_it(kind: str) -> None:
    assert not built(kind)[2] & 0x08
    assert msmqwire.parse(built(kind)).BaseHeader.Flags.IN is False


@requirement("MQMQ-2.2.19.1-11", "MQMQ-2.2.20-10")
def test_session_header_bit() -> None:
    data = handmade.user_message(session=handmade.session_header(ack=7))
    assert data[2:4] == b"\x13\x00"
    packet = assert_same(USER_MESSAGE, data)
    assert packet.BaseHeader.Flags.SH is True
    assert packet.SessionHeader.AckSequenceNumber == 7
    without_header = msmqwire.parse(data[:2] + b"\x03\x00" + data[4:-16])
    assert without_header.SessionHeader is None
    assert "SessionHeader" not in without_header.to_json()["fields"]
    # the bit is filled in
    rebuilt = USER_MESSAGE.build({"SessionHeader": {"AckSequenceNumber": 7}})
    assert rebuilt[2:4] == b"\x13\x00"
    assert rebuilt[-16:] == handmade.session_header(ack=7)
    assert USER_MESSAGE.build({})[2:4] == b"\x03\x00"
    # and an announced header must be present
    assert_refused(msmqwire.parse, data[:-16], "SessionHeader.AckSequenceNumber", len(data) - 16)


@requirement("MQMQ-2.2.19.1-12", "MQMQ-2.2.20-07")
def test_debug_header_bit() -> None:
    queue = handmade.guid("11223344-5566-7788-99aa-bbccddeeff00")
    data = handmade.user_message(debug=handmade.debug_header(queue))
    assert data[2:4] == b"\x23\x00"
    packet = assert_same(USER_MESSAGE, data)
    assert str(packet.DebugHeader.QueueIdentifier) == "11223344-5566-7788-99aa-bbccddeeff00"
    plain = handmade.user_message()
    assert msmqwire.parse(plain).DebugHeader is None
    assert msmqwire.parse(plain).BaseHeader.Flags.DH is False
    rebuilt = USER_MESSAGE.build({"DebugHeader": {}})
    assert rebuilt[2:4] == b"\x23\x00"
    assert rebuilt[-4:] == bytes(4)
    # the bit without the header, and the header without the bit
    assert_refused(msmqwire.parse, plain[:2] + b"\x23\x00" + plain[4:], "DebugHeader.Flags", len(plain))
    unmarked = data[:2] + b"\x03\x00" + data[4:]
    assert msmqwire.parse(unmarked).DebugHeader is None
    assert msmqwire.parse(unmarked).TrailingData == handmade.debug_header(queue)
    assert "ATTACK-PACKET-SIZE" in {finding.id for finding in lint(unmarked)}


@requirement("MQMQ-2.2.19.1-20")
def test_packet_size_leaves_the_session_header_of_a_message_out() -> None:
    plain = handmade.user_message()
    data = handmade.user_message(session=handmade.session_header(window=7))
    assert len(data) == len(plain) + 16
    assert data[8:12] == len(plain).to_bytes(4, "little")
    packet = msmqwire.parse(data)
    assert packet.SessionHeader.WindowSize == 7
    del packet.BaseHeader.PacketSize
    assert msmqwire.build(packet) == data
    # counted nevertheless: 16 bytes too many
    counted = handmade.user_message(session=handmade.session_header(), size=len(data))
    assert_refused(msmqwire.parse, counted, "SessionHeader.AckSequenceNumber", len(counted))
    after = msmqwire.parse(counted + bytes(16))  # the next 16 bytes of the stream
    assert after.TrailingData == handmade.session_header()
    assert "ATTACK-PACKET-SIZE" in {finding.id for finding in lint(after)}


@requirement("MQMQ-2.2.19.1-20")
def test_packet_size_of_a_session_ack_counts_it() -> None:
    data = bytes.fromhex((VECTORS / "MS-MQQB-4.1.8-SessionAck.hex").read_text())
    assert len(data) == int.from_bytes(data[8:12], "little") == 36
    assert msmqwire.parse(data).SessionHeader.WindowSize == 64
    assert built("SessionAck")[8:12] == b"\x24\0\0\0"
    assert_refused(msmqwire.parse, data[:8] + b"\x14" + data[9:], "SessionHeader.AckSequenceNumber", 20)


@requirement("MQMQ-2.2.19.1-21")
def test_the_largest_packet() -> None:
    """4 MiB are accepted; one byte more is refused on the first 16 bytes, whatever follows."""
    room = 0x400000 - 16 - 52 - 56
    data = handmade.user_message(properties=handmade.properties_header(body=bytes(room)))
    assert data[8:12] == bytes.fromhex("00004000")
    assert msmqwire.parse(data).MessagePropertiesHeader.MessageSize == room
    for size in (0x400001, 0x400004, 0xFFFFFFFF):
        assert_refused(msmqwire.parse, handmade.base_header(size), "BaseHeader.PacketSize", 8)


@requirement("MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("size", [0, 1, 15])
def test_a_size_below_that_of_the_header(size: int) -> None:
    data = handmade.user_message(size=size)
    assert_refused(msmqwire.parse, data, "BaseHeader.PacketSize", 8)


@requirement("MQMQ-2.2.19.1-24", "MQQB-2.2.2-03")
@pytest.mark.parametrize("kind", [*INTERNAL, "OrderAck", "FinalAck"])
def test_other_packets_are_built_without_limit(kind: str) -> None:
    assert built(kind)[12:16] == b"\xff\xff\xff\xff"
    assert msmqwire.parse(PACKETS[kind]).BaseHeader.TimeToReachQueue == 0xFFFFFFFF


@requirement("MQMQ-2.2.19.1-03", "MQMQ-2.2.19.1-25")
@pytest.mark.parametrize(
    "data, expected",
    [
        (
            "10 00 03 00 4C 49 4F 52 B0 08 00 00 00 46 05 00",
            {"Reserved": 0, "Flags.PR": 3, "PacketSize": 2224, "TimeToReachQueue": 345600},
        ),
        (
            "10 CD 1B 00 4C 49 4F 52 24 00 00 00 FF FF FF FF",
            {
                "Reserved": 0xCD,
                "Flags.PR": 3,
                "Flags.IN": True,
                "Flags.SH": True,
                "PacketSize": 36,
                "TimeToReachQueue": 0xFFFFFFFF,
            },
        ),
    ],
)
def test_captured_headers(data: str, expected: dict[str, int]) -> None:
    raw = bytes.fromhex(data)
    all_flags = {path: False for path in flat(BASE_HEADER.parse(BASE)) if path.startswith("Flags.")}
    record = assert_values(
        BASE_HEADER, raw, {"VersionNumber": 0x10, "Signature": 0x524F494C, **all_flags, **expected}
    )
    assert int(record.Flags) == raw[2]


@requirement("MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("cut", range(16))
def test_a_cut_header_is_refused_where_it_ends(cut: int) -> None:
    names = {
        0: "VersionNumber",
        1: "Reserved",
        2: "Flags",
        4: "Signature",
        8: "PacketSize",
        12: "TimeToReachQueue",
    }
    name = names[max(offset for offset in names if offset <= cut)]
    assert_refused(BASE_HEADER, BASE[:cut], f"BaseHeader.{name}", cut)
    assert_refused(msmqwire.parse, BASE[:cut], f"BaseHeader.{name}", cut)
