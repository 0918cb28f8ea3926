"""SessionHeader: [MS-MQMQ] 2.2.20.4."""

from __future__ import annotations

import pytest

import msmqwire
from msmqwire.headers import SESSION_HEADER
from msmqwire.packets import SESSION_ACK, USER_MESSAGE
from tests.support import handmade
from tests.support.codec_checks import (
    assert_field,
    assert_refused,
    assert_same,
    assert_values,
    differences,
    proving,
    requirement,
)

BASE = bytes(16)


@requirement("MQQB-2.2.6-03")
@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("AckSequenceNumber", 0, b"\x02\x01", 0x0102, ids="MQMQ-2.2.20.4-06"),
        proving(
            "AckSequenceNumber", 0, b"\xff\xff", 0xFFFF, ids="MQMQ-2.2.20.4-06", name="AckSequenceNumber-max"
        ),
        proving("RecoverableMsgAckSeqNumber", 2, b"\x12\x11", 0x1112, ids="MQMQ-2.2.20.4-07"),
        proving("RecoverableMsgAckFlags", 4, b"\x24\x23\x22\x21", 0x21222324, ids="MQMQ-2.2.20.4-09"),
        proving("UserMsgSequenceNumber", 8, b"\x32\x31", 0x3132, ids="MQMQ-2.2.20.4-10"),
        proving("RecoverableMsgSeqNumber", 10, b"\x42\x41", 0x4142, ids="MQMQ-2.2.20.4-13"),
        proving("WindowSize", 12, b"\x52\x51", 0x5152, ids="MQMQ-2.2.20.4-14"),
        proving("WindowSize", 12, b"\x01\x00", 1, ids="MQMQ-2.2.20.4-14", name="WindowSize-1"),
        proving("Reserved", 14, b"\x62\x61", 0x6162, ids="MQMQ-2.2.20.4-18"),
    ],
)
def test_fields(path: str, offset: int, data: bytes, value: int) -> None:
    assert_field(SESSION_HEADER, BASE, path, offset, data, value)


@requirement("MQMQ-2.2.20.4-09", "MQQB-2.2.6-03")
@pytest.mark.parametrize("bit", range(32))
def test_acknowledgement_bits(bit: int) -> None:
    """Bit k counts from the lowest of a little-endian word."""
    data = bytearray(16)
    data[4 + bit // 8] = 1 << bit % 8
    record = assert_same(SESSION_HEADER, bytes(data))
    assert record.RecoverableMsgAckFlags == 1 << bit
    assert SESSION_HEADER.build({"RecoverableMsgAckFlags": 1 << bit, "WindowSize": 0}) == bytes(data)


@requirement("MQMQ-2.2.20.4-14")
def test_the_window_is_64_when_left_out() -> None:
    assert SESSION_HEADER.build({}) == bytes(12) + b"\x40\0\0\0"


@requirement("MQMQ-2.2.20.4-18")
def test_reserved_is_ignored() -> None:
    before = msmqwire.parse(handmade.session_ack())
    data = handmade.session_ack(handmade.session_header(reserved=0xFFFF))
    after = msmqwire.parse(data)
    assert differences(before, after) == {"SessionHeader.Reserved"}
    assert msmqwire.build(after) == data


@requirement("MQMQ-2.2.20.4-01", "MQQB-2.2.6-04")
def test_both_places() -> None:
    """At 20 after the InternalHeader, or in the last 16 bytes of a message: the same header."""
    header = handmade.session_header(
        ack=0x0102, recoverable_ack=3, recoverable_flags=5, sent=7, recoverable_sent=6
    )
    assert len(header) == 16
    alone = assert_same(SESSION_ACK, handmade.session_ack(header))
    message = handmade.user_message(
        properties=handmade.properties_header(body=b"12345"),
        multi_queue=handmade.multi_queue_format_header(),
        session=header,
    )
    carried = assert_same(USER_MESSAGE, message)
    assert message[-16:] == handmade.session_ack(header)[20:] == header
    assert carried.BaseHeader.Flags.SH is alone.BaseHeader.Flags.SH is True
    assert carried.SessionHeader == alone.SessionHeader == SESSION_HEADER.parse(header)
    assert SESSION_ACK.build({"SessionHeader": alone.SessionHeader})[20:] == header
    assert USER_MESSAGE.build({"SessionHeader": alone.SessionHeader})[-16:] == header


@requirement("MQMQ-2.2.20.4-01", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("cut", range(1, 17))
def test_cuts(cut: int) -> None:
    data = handmade.session_ack()[:-cut]
    offsets = (0, 2, 4, 8, 10, 12, 14)
    names = SESSION_HEADER.fields
    name = names[max(i for i, offset in enumerate(offsets) if offset <= 16 - cut)]
    assert_refused(msmqwire.parse, data, f"SessionHeader.{name}", 36 - cut)


@requirement("MQMQ-2.2.20.4-20")
def test_captured_header() -> None:
    data = bytes.fromhex("01 00 00 00 00 00 00 00 00 00 00 00 40 00 00 00")
    assert_values(
        SESSION_HEADER,
        data,
        {
            "AckSequenceNumber": 1,
            "RecoverableMsgAckSeqNumber": 0,
            "RecoverableMsgAckFlags": 0,
            "UserMsgSequenceNumber": 0,
            "RecoverableMsgSeqNumber": 0,
            "WindowSize": 64,
            "Reserved": 0,
        },
    )
