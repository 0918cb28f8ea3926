"""OrderAck and FinalAck: [MS-MQQB] 2.2.4 and 2.2.5."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.headers import FINAL_ACK_BODY, ORDER_ACK_BODY
from msmqwire.packets import FINAL_ACK, ORDER_ACK
from tests.support import handmade
from tests.support.codec_checks import assert_field, assert_refused, assert_same, flat, proving, requirement

TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
GUID = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")
LABEL = "51 00 4D 00 20 00 4F 00 72 00 64 00 65 00 72 00 69 00 6E 00 67 00 20 00 41 00 63 00 6B 00 00 00"
DIRECT = ["TCP:10.1.2.3", "TCP:fd00::1:2", "SPX:00A1B2C3.00A1B2C3D4E5"]
NAMES = pytest.mark.parametrize("address", DIRECT)
KINDS = {
    "OrderAck": (ORDER_ACK, handmade.order_ack, "OrderAckBody", 0x00FF, 0x00),
    "FinalAck": (FINAL_ACK, handmade.final_ack, "FinalAckBody", 0x4000, 0x20),
}


# --- bodies ---


@requirement("MQQB-2.2.4.1-01")
@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("TxSequenceID.Ordinal", 0, b"\x04\x03\x02\x01", 0x01020304, ids="MQQB-2.2.4.1-02"),
        proving("TxSequenceID.TimeStamp", 4, b"\x14\x13\x12\x11", 0x11121314, ids="MQQB-2.2.4.1-02"),
        proving("TxSequenceNumber", 8, b"\x24\x23\x22\x21", 0x21222324, ids="MQQB-2.2.4.1-03"),
        proving("TxPreviousSequenceNumber", 12, b"\x34\x33\x32\x31", 0x31323334, ids="MQQB-2.2.4.1-04"),
        proving("Reserved", 16, bytes(range(1, 21)), bytes(range(1, 21)), ids="MQQB-2.2.4.1-05"),
    ],
)
def test_order_ack_body(path: str, offset: int, data: bytes, value: Any) -> None:
    base = handmade.order_ack_body(ordinal=0, time_stamp=0)
    assert len(base) == 36
    assert_field(ORDER_ACK_BODY, base, path, offset, data, value)


@requirement("MQQB-2.2.5.1-01")
@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("TxSequenceID.Ordinal", 0, b"\x04\x03\x02\x01", 0x01020304, ids="MQQB-2.2.5.1-02"),
        proving("TxSequenceID.TimeStamp", 4, b"\x14\x13\x12\x11", 0x11121314, ids="MQQB-2.2.5.1-02"),
        proving("TxSequenceNumber", 8, b"\x24\x23\x22\x21", 0x21222324, ids="MQQB-2.2.5.1-03"),
        proving("TxPreviousSequenceNumber", 12, b"\x34\x33\x32\x31", 0x31323334, ids="MQQB-2.2.5.1-04"),
        proving("SourceGUID", 16, GUID, UUID(TEXT), ids="MQQB-2.2.5.1-05"),
        proving("MessageID", 32, b"\x44\x43\x42\x41", 0x41424344, ids="MQQB-2.2.5.1-06"),
    ],
)
def test_final_ack_body(path: str, offset: int, data: bytes, value: Any) -> None:
    base = handmade.final_ack_body(ordinal=0, time_stamp=0, source=bytes(16))
    assert len(base) == 36
    assert_field(FINAL_ACK_BODY, base, path, offset, data, value)


@requirement("MQQB-2.2.4.1-05")
def test_reserved_of_the_order_ack_body() -> None:
    """Zeroes by default; uninitialised bytes from Windows are read and written back."""
    assert ORDER_ACK_BODY.build({})[16:] == bytes(20)
    data = handmade.order_ack(handmade.order_ack_body(number=9, reserved=b"\xcd" * 20))
    packet = msmqwire.parse(data)
    assert packet.schema is ORDER_ACK
    assert packet.OrderAckBody.TxSequenceNumber == 9
    assert packet.OrderAckBody.Reserved == b"\xcd" * 20
    assert msmqwire.build(packet) == data


def test_numbers_that_are_left_out() -> None:
    """The first message of a sequence has no previous one."""
    assert ORDER_ACK_BODY.build({}) == bytes(8) + b"\x01\0\0\0" + bytes(24)
    assert FINAL_ACK_BODY.build({}) == bytes(8) + b"\x01\0\0\0" + bytes(24)


def test_the_body_is_that_of_the_message() -> None:
    """A body gives its fields, fields give a body, and a change to the view changes the bytes."""
    data = handmade.order_ack(handmade.order_ack_body(number=9, previous=8))
    packet = msmqwire.parse(data)
    assert packet.MessagePropertiesHeader.MessageBody == handmade.order_ack_body(number=9, previous=8)
    packet.OrderAckBody.TxSequenceNumber = 0x01020304
    built = msmqwire.build(packet)
    assert built[-28:-24] == b"\x04\x03\x02\x01"
    assert msmqwire.parse(built).OrderAckBody.TxSequenceNumber == 0x01020304


# --- packets ---


@pytest.mark.parametrize(
    "kind", [proving("OrderAck", ids="MQQB-2.2.4-01"), proving("FinalAck", ids="MQQB-2.2.5-01")]
)
def test_layout(kind: str) -> None:
    """Only BaseHeader, UserHeader and MessagePropertiesHeader: 16 + 52 + 56 + 32 + 36 bytes."""
    schema, maker, body, *_ = KINDS[kind]
    data = maker()
    assert len(data) == 192
    packet = assert_same(schema, data)
    assert msmqwire.parse(data) == packet
    parts = ["BaseHeader", "UserHeader", "MessagePropertiesHeader", body]
    assert list(packet.to_json()["fields"]) == parts
    assert list(msmqwire.parse(schema.build({body: {}})).to_json()["fields"]) == parts
    assert packet.BaseHeader.PacketSize == 192
    assert packet.BaseHeader.schema.build(packet.BaseHeader) == data[:16]
    assert packet.UserHeader.schema.build(packet.UserHeader) == data[16:68]
    assert packet.MessagePropertiesHeader.schema.build(packet.MessagePropertiesHeader) == data[68:]


@pytest.mark.parametrize(
    "kind", [proving("OrderAck", ids="MQQB-2.2.4-02"), proving("FinalAck", ids="MQQB-2.2.5-03")]
)
def test_base_flags(kind: str) -> None:
    schema, maker, body, *_ = KINDS[kind]
    data = schema.build({body: {}})
    assert data[2:4] == b"\0\0"
    packet = msmqwire.parse(data)
    assert packet.schema is schema
    assert int(packet.BaseHeader.Flags) == 0
    for bit in range(16):  # with any bit set it is another packet
        if bit != 3:
            poked = maker(flags=1 << bit) + (handmade.session_header() if bit == 4 else b"")
            if bit == 5:
                assert_refused(msmqwire.parse, poked, "DebugHeader.Flags", len(poked))
            else:
                assert msmqwire.parse(poked).schema.name == "UserMessage"


@pytest.mark.parametrize(
    "kind, private, direct",
    [
        proving("OrderAck", "00 0C 20 00", "00 1C 20 00", ids=("MQQB-2.2.4-03", "MQQB-2.2.4-04")),
        proving("FinalAck", "20 0C 20 00", "20 1C 20 00", ids=("MQQB-2.2.5-04", "MQQB-2.2.5-05")),
    ],
)
def test_user_flags(kind: str, private: str, direct: str) -> None:
    """MP, DQ 3 or 7, DM 1 in a FinalAck, and no other bit. The private queue is number 4."""
    schema, maker, body, *_ = KINDS[kind]
    built = schema.build({body: {}})
    assert built[60:64] == bytes.fromhex(private)
    assert built[64:68] == b"\x04\0\0\0"
    assert maker()[60:68] == built[60:68]
    assert msmqwire.parse(built).schema is schema
    name = {"DirectFormatName": "TCP:10.0.0.1\\PRIVATE$\\order_queue$"}
    built = schema.build({"UserHeader": {"DestinationQueue": name}, body: {}})
    assert built[60:64] == bytes.fromhex(direct)
    packet = msmqwire.parse(built)
    assert packet.schema is schema
    expected = {"DQ": 7, "MP": True, "DM": 1 if kind == "FinalAck" else 0}
    assert {name: value for name, value in packet.UserHeader.Flags.bits().items() if value} == {
        name: value for name, value in expected.items() if value
    }


@requirement("MQQB-2.2.4-03")
@pytest.mark.parametrize("delivery", [0x00, 0x20])
def test_an_order_ack_of_either_delivery_mode(delivery: int) -> None:
    """The text requires DM 0 in one place and 1 in another: both are read."""
    data = handmade.order_ack(user_flags=delivery)
    packet = msmqwire.parse(data)
    assert (packet.schema, packet.UserHeader.Flags.DM) == (ORDER_ACK, delivery >> 5)
    assert msmqwire.build(packet) == data


@NAMES
@pytest.mark.parametrize(
    "kind",
    [proving("OrderAck", ids=("MQQB-2.2.4-05", "MQQB-2.2.4-06")), proving("FinalAck", ids="MQQB-2.2.5-06")],
)
def test_direct_destination(kind: str, address: str) -> None:
    schema, maker, body, *_ = KINDS[kind]
    name = f"{address}\\PRIVATE$\\order_queue$"
    data = maker(destination=(7, handmade.direct_name(name)))
    assert data[66 : 66 + 2 * len(name)] == name.encode("utf-16-le")
    packet = assert_same(schema, data)
    assert msmqwire.parse(data).schema is schema
    assert packet.UserHeader.DestinationQueue.DirectFormatName == name
    source = {
        name: getattr(packet.UserHeader, name) for name in ("SourceQueueManager", "SentTime", "MessageID")
    }
    fields = {"UserHeader": {**source, "DestinationQueue": {"DirectFormatName": name}}, body: packet[body]}
    assert schema.build(fields) == data


@pytest.mark.parametrize(
    "kind",
    [
        proving(
            "OrderAck",
            ids=("MQQB-2.2.4-07", "MQQB-2.2.4-08", "MQQB-2.2.4-09", "MQQB-2.2.4-10", "MQQB-2.2.4-11"),
        ),
        proving("FinalAck", ids=("MQQB-2.2.5-07", "MQQB-2.2.5-08", "MQQB-2.2.5-10")),
    ],
)
def test_properties(kind: str) -> None:
    """Label, size, flags, class and body type, both built and parsed."""
    schema, maker, body, message_class, _ = KINDS[kind]
    built = schema.build({body: {}})
    properties = struct.pack("<BBH20sLLLL", 0, 16, message_class, bytes(20), 0, 0, 36, 36)
    assert built[68 : 68 + 40] == properties
    assert built[124:156] == bytes.fromhex(LABEL)
    assert len(built) == 156 + 36
    assert built[156:] == schema.part(body).header.build({})
    parsed = msmqwire.parse(maker()).MessagePropertiesHeader
    assert (parsed.Label, parsed.LabelLength, parsed.MessageSize, parsed.AllocationBodySize) == (
        "QM Ordering Ack",
        16,
        36,
        36,
    )
    assert (int(parsed.Flags), parsed.MessageClass, parsed.BodyType) == (0, message_class, 0)


@requirement("MQQB-2.2.5-09")
@pytest.mark.parametrize(
    "message_class",
    [0x8009, 0x8000, 0x8004, 0x8007, 0x800B, 0x8006, 0x8003, 0xC000, 0xC001, 0xC002, 0x8005, 0x4001, 0xFFFF],
)
def test_negative_classes(message_class: int) -> None:
    """The ten defined classes, and any other from 0x4000 up."""
    data = handmade.final_ack(message_class=message_class)
    packet = assert_same(FINAL_ACK, data)
    assert msmqwire.parse(data) == packet
    assert packet.MessagePropertiesHeader.MessageClass == message_class
    built = FINAL_ACK.build({"MessagePropertiesHeader": {"MessageClass": message_class}, "FinalAckBody": {}})
    assert built[70:72] == struct.pack("<H", message_class)
    assert msmqwire.parse(built).schema is FINAL_ACK


@requirement("MQQB-3.1.5.1.3-01")
def test_a_final_ack_with_another_body() -> None:
    """Label, queue and class match, but the body is not 36 bytes long."""
    for size in (0, 35, 37):
        data = handmade.final_ack(bytes(size))
        path = "MessagePropertiesHeader.MessageSize"
        assert_refused(msmqwire.parse, data, path, 68 + 32)


def test_bodies_by_json() -> None:
    """The body appears twice: as a view, and as hex text, which counts when the view is absent."""
    for kind, (schema, maker, body, *_) in KINDS.items():
        data = maker()
        as_json = msmqwire.to_json(msmqwire.parse(data))
        assert as_json["packet"] == kind
        assert as_json["fields"]["MessagePropertiesHeader"]["MessageBody"] == data[156:].hex()
        assert msmqwire.build(as_json) == data
        del as_json["fields"][body]
        assert msmqwire.build(as_json) == data
        assert flat(schema.parse(data)) == flat(msmqwire.from_json(as_json))
