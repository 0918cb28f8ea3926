"""SoapHeader and DebugHeader: [MS-MQMQ] 2.2.20.7 and 2.2.20.8."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

import msmqwire
from msmqwire.headers import DEBUG_HEADER, SOAP_HEADER
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    differences,
    proving,
    requirement,
)

SOAP = handmade.soap_header("h", "b")
QUEUE_TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
QUEUE = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")


# --- SoapHeader ---


def test_layout_of_the_base() -> None:
    assert bytes.fromhex("20 03 00 00 02 00 00 00 68 00 00 00 84 03 00 00 02 00 00 00 62 00 00 00") == SOAP


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("HeaderSectionID", 0, b"\x02\x01", 0x0102, ids="MQMQ-2.2.20.7-01"),
        proving("Reserved", 2, b"\x12\x11", 0x1112, ids="MQMQ-2.2.20.7-02"),
        proving("Header", 8, b"\xe9\x00", "é", ids="MQMQ-2.2.20.7-04"),
        proving("Reserved1", 14, b"\x22\x21", 0x2122, ids="MQMQ-2.2.20.7-06"),
        proving("Body", 20, b"\xe8\x00", "è", ids="MQMQ-2.2.20.7-08"),
    ],
)
def test_soap_fields(path: str, offset: int, data: bytes, value: object) -> None:
    assert_field(SOAP_HEADER, SOAP, path, offset, data, value)


@requirement("MQMQ-2.2.20.7-01", "MQMQ-2.2.20.7-02", "MQMQ-2.2.20.7-05", "MQMQ-2.2.20.7-06")
def test_soap_constants() -> None:
    """0x0320, 0x0384 and zeroes are sent."""
    assert SOAP_HEADER.build({"Header": "h", "Body": "b"}) == SOAP


@requirement("MQMQ-2.2.20.7-02", "MQMQ-2.2.20.7-06")
def test_soap_reserved_is_ignored() -> None:
    data = handmade.user_message(soap=handmade.soap_header(reserved=0xABCD, reserved1=0xEF01))
    packet = msmqwire.parse(data)
    before = msmqwire.parse(handmade.user_message(soap=handmade.soap_header()))
    assert differences(before, packet) == {"SoapHeader.Reserved", "SoapHeader.Reserved1"}
    assert msmqwire.build(packet) == data


@requirement("MQMQ-2.2.20.7-03", "MQMQ-2.2.20.7-04", "MQMQ-2.2.20.7-07", "MQMQ-2.2.20.7-08")
@pytest.mark.parametrize("header", [0, 1, 2, 300])
@pytest.mark.parametrize("body", [0, 1, 2, 300])
def test_soap_lengths_count_characters(header: int, body: int) -> None:
    texts = "h" * header, "b" * body
    data = handmade.soap_header(*texts)
    second = 8 + (2 * header + 2 + 3) // 4 * 4
    assert data[4:8] == struct.pack("<L", header + 1)
    assert data[second : second + 2] == b"\x84\x03"
    assert data[second + 4 : second + 8] == struct.pack("<L", body + 1)
    assert len(data) == second + 8 + (2 * body + 2 + 3) // 4 * 4
    record, end = SOAP_HEADER.read(data + b"next")
    assert end == len(data)
    assert (record.HeaderDataLength, record.BodyDataLength) == (header + 1, body + 1)
    assert (record.Header, record.Body) == texts
    assert_same(SOAP_HEADER, data)
    assert SOAP_HEADER.build({"Header": texts[0], "Body": texts[1]}) == data


@requirement("MQMQ-2.2.20.7-05")
@pytest.mark.parametrize("header", ["", "h", "hh", "hhh"])
def test_the_second_half_aligned_or_not(header: str) -> None:
    """0x0384 is sought at the aligned offset first, then at the other; both round-trip."""
    for aligned in (True, False):
        data = handmade.soap_header(header, "body", aligned=aligned, fill=b"\xab")
        record, end = SOAP_HEADER.read(data + bytes(4))
        assert (record.Header, record.BodySectionID, record.Body) == (header, 0x0384, "body")
        assert end == len(data)
        assert_same(SOAP_HEADER, data)
    assert SOAP_HEADER.build({"Header": header, "Body": "body"}) == handmade.soap_header(header, "body")


@requirement("MQMQ-2.2.20.7-05")
@pytest.mark.parametrize("number", [0, 0x0320, 0x0385, 0x8403])
def test_another_number_in_place_of_the_second(number: int) -> None:
    """After BaseHeader, UserHeader, properties, eight bytes, three characters and their padding."""
    data = handmade.user_message(soap=handmade.soap_header("ab", body_id=number))
    assert_refused(msmqwire.parse, data, "SoapHeader.BodySectionID", 16 + 52 + 56 + 8 + 8)


@requirement("MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_cut_between_the_halves(cut: int) -> None:
    data = handmade.soap_header("", "b")[: 10 + cut]
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        SOAP_HEADER.parse(data)
    assert caught.value.offset == len(data)


@requirement("MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("name, offset, least", [("HeaderDataLength", 4, 9), ("BodyDataLength", 16, 3)])
def test_soap_lengths_past_the_packet(name: str, offset: int, least: int) -> None:
    for length in (least, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF):
        soap = SOAP[:offset] + struct.pack("<L", length) + SOAP[offset + 4 :]
        data = handmade.user_message(soap=soap)
        assert_refused(msmqwire.parse, data, f"SoapHeader.{name}", 124 + offset)


# --- DebugHeader ---


@requirement("MQMQ-2.2.20.8-01")
@pytest.mark.parametrize(
    "name, mask, value",
    [
        proving("QT", 0x0003, 2, name="QT-2"),
        proving("QT", 0x0003, 3, name="QT-3"),
        *(proving(f"X{bit}", 1 << bit, 0, ids="MQMQ-2.2.20.8-03") for bit in range(2, 16)),
    ],
)
def test_debug_flags(name: str, mask: int, value: int) -> None:
    assert_bits(DEBUG_HEADER, handmade.debug_header(), f"Flags.{name}", 0, 2, mask, value)


@requirement("MQMQ-2.2.20.8-02", "MQMQ-2.2.20.8-05", "MQMQ-2.2.20.8-01")
def test_debug_queue() -> None:
    """QT 1 and 16 bytes at offset 4, or QT 0 and none."""
    with_queue, without = bytes.fromhex("01 00 00 00") + QUEUE, bytes(4)
    assert (with_queue, without) == (handmade.debug_header(QUEUE), handmade.debug_header())
    record, end = DEBUG_HEADER.read(with_queue + b"next")
    assert (record.Flags.QT, record.QueueIdentifier, end) == (1, UUID(QUEUE_TEXT), 20)
    assert assert_same(DEBUG_HEADER, with_queue).to_json()["QueueIdentifier"] == QUEUE_TEXT
    record, end = DEBUG_HEADER.read(without + QUEUE)
    assert (record.Flags.QT, record.QueueIdentifier, end) == (0, None, 4)
    assert_same(DEBUG_HEADER, without)
    assert DEBUG_HEADER.build({"QueueIdentifier": QUEUE_TEXT}) == with_queue
    assert DEBUG_HEADER.build({}) == without
    assert_refused(DEBUG_HEADER, with_queue[:19], "DebugHeader.QueueIdentifier", 19)


@requirement("MQMQ-2.2.20.8-03")
def test_debug_unused_bits_are_ignored() -> None:
    before = msmqwire.parse(handmade.user_message(debug=handmade.debug_header(QUEUE)))
    data = handmade.user_message(debug=handmade.debug_header(QUEUE, flags=0xFFFD))
    after = msmqwire.parse(data)
    assert differences(before, after) == {f"DebugHeader.Flags.X{bit}" for bit in range(2, 16)}
    assert msmqwire.build(after) == data


@requirement("MQMQ-2.2.20.8-04")
def test_debug_reserved() -> None:
    assert_field(DEBUG_HEADER, handmade.debug_header(QUEUE), "Reserved", 2, b"\x02\x01", 0x0102)
    assert DEBUG_HEADER.build({"QueueIdentifier": QUEUE_TEXT})[2:4] == b"\0\0"
    data = handmade.user_message(debug=handmade.debug_header(QUEUE, reserved=0xFFFF))
    before = msmqwire.parse(handmade.user_message(debug=handmade.debug_header(QUEUE)))
    assert differences(before, msmqwire.parse(data)) == {"DebugHeader.Reserved"}
