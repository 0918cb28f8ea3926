"""TransactionHeader and TxSequenceID: [MS-MQMQ] 2.2.18.1.2 and 2.2.20.5."""

from __future__ import annotations

from uuid import UUID

import pytest

import msmqwire
from msmqwire.headers import TRANSACTION_HEADER, TX_SEQUENCE_ID
from msmqwire.packets import USER_MESSAGE
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

BASE = handmade.transaction_header(ordinal=0, time_stamp=0, number=0)
GUID = handmade.guid("01020304-0506-0708-090a-0b0c0d0e0f10")


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("TxSequenceID.Ordinal", 4, b"\x04\x03\x02\x01", 0x01020304, ids="MQMQ-2.2.20.5-12"),
        proving("TxSequenceID.TimeStamp", 8, b"\x14\x13\x12\x11", 0x11121314, ids="MQMQ-2.2.20.5-12"),
        proving("TxSequenceNumber", 12, b"\x24\x23\x22\x21", 0x21222324, ids="MQMQ-2.2.20.5-13"),
        proving("TxSequenceNumber", 12, b"\x01\0\0\0", 1, ids="MQMQ-2.2.20.5-13", name="TxSequenceNumber-1"),
        proving(
            "TxSequenceNumber",
            12,
            b"\xff" * 4,
            0xFFFFFFFF,
            ids="MQMQ-2.2.20.5-13",
            name="TxSequenceNumber-max",
        ),
        proving("PreviousTxSequenceNumber", 16, b"\x34\x33\x32\x31", 0x31323334, ids="MQMQ-2.2.20.5-14"),
        proving(
            "PreviousTxSequenceNumber",
            16,
            b"\xfe\xff\xff\xff",
            0xFFFFFFFE,
            name="PreviousTxSequenceNumber-max",
        ),
    ],
)
def test_fields(path: str, offset: int, data: bytes, value: int) -> None:
    assert_field(TRANSACTION_HEADER, BASE, path, offset, data, value)


@pytest.mark.parametrize(
    "name, offset",
    [proving("Ordinal", 0, ids="MQMQ-2.2.18.1.2-01"), proving("TimeStamp", 4, ids="MQMQ-2.2.18.1.2-02")],
)
@pytest.mark.parametrize("value", [1, 0x01020304, 0xFFFFFFFF])
def test_tx_sequence_id(name: str, offset: int, value: int) -> None:
    assert_field(TX_SEQUENCE_ID, bytes(8), name, offset, value.to_bytes(4, "little"), value)
    assert_refused(TX_SEQUENCE_ID, bytes(9), "TxSequenceID", 8)
    assert_refused(TX_SEQUENCE_ID, bytes(7), "TxSequenceID.TimeStamp", 7)


@requirement("MQMQ-2.2.20.5-03")
@pytest.mark.parametrize(
    "name, mask, value",
    [
        proving("FA", 0x00000002, 0, ids="MQMQ-2.2.20.5-05"),
        proving("FM", 0x00000004, 0, ids="MQMQ-2.2.20.5-06"),
        proving("LM", 0x00000008, 0, ids="MQMQ-2.2.20.5-07"),
        proving("ID", 0x00FFFFF0, 0xFFFFF, ids="MQMQ-2.2.20.5-09", name="ID-all"),
        proving("ID", 0x00FFFFF0, 1, ids="MQMQ-2.2.20.5-09", name="ID-1"),
        proving("ID", 0x00FFFFF0, 0x81234, ids="MQMQ-2.2.20.5-09", name="ID-81234"),
        *(proving(f"X{i}", 1 << 23 + i, 0, ids="MQMQ-2.2.20.5-11") for i in range(1, 9)),
    ],
)
def test_flags(name: str, mask: int, value: int) -> None:
    assert_bits(TRANSACTION_HEADER, BASE, f"Flags.{name}", 0, 4, mask, value)


@requirement("MQMQ-2.2.20.5-09")
def test_the_transaction_id_is_20_bits() -> None:
    record = TRANSACTION_HEADER.parse(handmade.transaction_header(flags=0xFFABCDEE))
    assert record.Flags.ID == 0xABCDE
    with pytest.raises(msmqwire.InvalidValue) as caught:
        TRANSACTION_HEADER.build({"Flags": {"ID": 0x100000}})
    assert (caught.value.path, caught.value.offset) == ("TransactionHeader.Flags.ID", 0)


@requirement("MQMQ-2.2.20.5-06", "MQMQ-2.2.20.5-07")
def test_a_transaction_of_one_message_has_both() -> None:
    data = handmade.transaction_header(flags=0x0C)
    flags = assert_same(TRANSACTION_HEADER, data).Flags
    assert (flags.FM, flags.LM, flags.FA, flags.CG) == (True, True, False, False)


@requirement("MQMQ-2.2.20.5-11")
def test_unused_bits_are_ignored() -> None:
    """Bits 24 to 31 default to 0; when parsed they change nothing and close no session."""
    before = msmqwire.parse(handmade.user_message(transaction=handmade.transaction_header(flags=0x12)))
    data = handmade.user_message(transaction=handmade.transaction_header(flags=0xFF000012))
    after = msmqwire.parse(data)
    assert differences(before, after) == {f"TransactionHeader.Flags.X{i}" for i in range(1, 9)}
    assert msmqwire.build(after) == data
    assert TRANSACTION_HEADER.build({})[3] == 0


@requirement("MQMQ-2.2.20.5-01", "MQMQ-2.2.20.5-04", "MQMQ-2.2.20.5-15")
def test_connector() -> None:
    """20 bytes with CG clear, 36 with CG set: the GUID is at 20."""
    short = handmade.transaction_header(number=5)
    long = handmade.transaction_header(flags=1, number=5, connector=GUID)
    assert (len(short), len(long)) == (20, 36)
    assert long[20:36] == GUID
    record, end = TRANSACTION_HEADER.read(long + b"next")
    assert (record.ConnectorQMGuid, record.Flags.CG, end) == (
        UUID("01020304-0506-0708-090a-0b0c0d0e0f10"),
        True,
        36,
    )
    record, end = TRANSACTION_HEADER.read(short + b"next")
    assert (record.ConnectorQMGuid, record.Flags.CG, end) == (None, False, 20)
    for data in (short, long):
        assert_same(TRANSACTION_HEADER, data)
    fields = {"TxSequenceID": {"Ordinal": 1, "TimeStamp": 2}, "TxSequenceNumber": 5}
    assert TRANSACTION_HEADER.build(fields) == short
    assert (
        TRANSACTION_HEADER.build({**fields, "ConnectorQMGuid": "01020304-0506-0708-090a-0b0c0d0e0f10"})
        == long
    )
    assert_refused(TRANSACTION_HEADER, long[:20], "TransactionHeader.ConnectorQMGuid", 20)
    assert_refused(TRANSACTION_HEADER, short + GUID, "TransactionHeader", 20)


@requirement("MQMQ-2.2.19.1-07", "MQMQ-2.2.19.2-33")
def test_what_a_transactional_message_is_built_with() -> None:
    """Priority 0, recoverable, and number 1 in its sequence."""
    data = USER_MESSAGE.build({"TransactionHeader": {}})
    assert data[2:4] == b"\0\0"
    assert data[60:64] == b"\x20\x00\x30\x00"
    assert data[64 + 12 : 64 + 16] == b"\x01\0\0\0"
