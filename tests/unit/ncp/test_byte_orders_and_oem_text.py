"""Integers of both byte orders in one structure, and text of one byte a character in its three forms."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.ncp.bindery_calls import NAMED_OBJECT, OBJECT
from msmqwire.ncp.headers import NCP_TCP_REQUEST
from msmqwire.ncp.job_structures import OLD_JOB
from msmqwire.ncp.queue_calls import CREATE_QUEUE, CURRENT_STATUS, JOB_OF_QUEUE
from msmqwire.schema import Header, plain, reference

ALL_BYTES = bytes(range(256))


def read_by_both(schema: Header, data: bytes) -> Any:
    """What the generated reader and that of construct read; both builders return the bytes again."""
    value, end = schema.read(data)
    assert (plain(reference.read(schema, data)[0]), end) == (plain(value), len(data))
    assert schema.build(value) == schema.construct.build(value) == data
    return value


def test_both_byte_orders_in_one_structure() -> None:
    value = read_by_both(JOB_OF_QUEUE, bytes.fromhex("0102030401020304"))
    assert (value.QueueID, value.JobNumber) == (0x01020304, 0x04030201)


def test_counts_in_either_byte_order_decide_lists() -> None:
    ids, stations = "00000007 00000008", "01000000 02000000"
    data = bytes.fromhex(f"00000001 04000000 03000000 02000000 {ids} {stations}")
    value = read_by_both(CURRENT_STATUS, data)
    assert [item.ServerID for item in value.ServerIDs] == [7, 8]
    assert [item.ServerStation for item in value.ServerStations] == [1, 2]
    assert value.QueueStatus.CantServiceJobs
    assert not value.QueueStatus.CantAddJobs


def test_the_bits_of_a_big_endian_word() -> None:
    data = bytes.fromhex("446D6454 80000022 00000001 00000400 0102030405060708")
    value = read_by_both(NCP_TCP_REQUEST, data)
    assert (value.Length.Size, value.Length.Signed) == (0x22, True)
    assert value.PacketSignature == data[16:]


def test_a_list_as_long_as_another_with_the_same_count() -> None:
    with pytest.raises(InvalidValue) as refused:
        CURRENT_STATUS.make(ServerIDs=[{"ServerID": 1}], ServerStations=[])
    assert (refused.value.path, refused.value.offset) == ("NcpQueueCurrentStatus.ServerStations", 20)
    wrong = CURRENT_STATUS.make(ServerCount=1, ServerIDs=[{"ServerID": 1}], ServerStations=[])
    assert wrong.to_bytes()[12:] == bytes.fromhex("01000000 00000001")


# -- text -------------------------------------------------------------------------------------------


def test_text_of_a_counted_length_holds_every_byte() -> None:
    for start in (0, 128):
        data = b"\0\x01" + bytes([128]) + ALL_BYTES[start : start + 128]
        assert len(read_by_both(OBJECT, data).ObjectName) == 128
    value = read_by_both(OBJECT, b"\0\x01\x03\x81\xe1\x00")
    assert value.ObjectName == "\u00fc\u00df\0"


def test_every_byte_in_text_filled_up_with_nulls() -> None:
    for byte in ALL_BYTES[1:]:
        field = bytes([0x41, byte]).ljust(48, b"\0")
        value = NAMED_OBJECT.parse(bytes(6) + field)
        assert value.ObjectName == "A" + bytes([byte]).decode("cp437")
        assert NAMED_OBJECT.make(ObjectName=value.ObjectName).to_bytes()[6:] == field


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (bytes(48), ""),
        (b"x" * 47 + b"\0", "x" * 47),
        (b"x" * 48, None),
        (b"A\0B".ljust(48, b"\0"), None),
    ],
    ids=["empty", "longest", "without a null", "something behind the null"],
)
def test_text_filled_up_with_nulls(field: bytes, text: str | None) -> None:
    value = read_by_both(NAMED_OBJECT, bytes(6) + field)
    assert value.ObjectName == (field if text is None else text)
    assert NAMED_OBJECT.make(value.to_json()) == value


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (bytes(14), ""),
        (b"\x0aQ$5D03.001\0\0\0", "Q$5D03.001"),
        (b"\x0d" + b"x" * 13, "x" * 13),
        (b"\x0e" + b"x" * 13, None),
        (b"\x02Q$5".ljust(14, b"\0"), None),
        (b"\x03Q\0$".ljust(14, b"\0"), None),
        (b"Q$5D03.001\0\0\0\0", None),
    ],
    ids=["empty", "usual", "longest", "count too large", "count too small", "null inside", "not counted"],
)
def test_text_with_its_count_in_front(field: bytes, text: str | None) -> None:
    value = read_by_both(OLD_JOB, bytes(28) + field + bytes(256 - 42))
    assert value.jobFileName == (field if text is None else text)
    assert OLD_JOB.make(value.to_json()) == value


@pytest.mark.parametrize(
    ("schema", "fields", "path", "offset"),
    [
        (NAMED_OBJECT, {"ObjectName": "x" * 48}, "NcpNamedObject.ObjectName", 6),
        (NAMED_OBJECT, {"ObjectName": "a\0b"}, "NcpNamedObject.ObjectName", 6),
        (NAMED_OBJECT, {"ObjectName": "\u0416"}, "NcpNamedObject.ObjectName", 6),
        (NAMED_OBJECT, {"ObjectName": b"short"}, "NcpNamedObject.ObjectName", 6),
        (NAMED_OBJECT, {"ObjectName": 5}, "NcpNamedObject.ObjectName", 6),
        (OBJECT, {"ObjectName": "\u0416"}, "NcpObject.ObjectName", 3),
        (OBJECT, {"ObjectName": "x" * 256}, "NcpObject.ObjectNameLength", None),
        (OLD_JOB, {"jobFileName": "x" * 14}, "NWQueueJobStruct_t.jobFileName", 28),
        (OLD_JOB, {"jobFileName": {"cp437": "xx"}}, "NWQueueJobStruct_t.jobFileName", 28),
    ],
    ids=["long", "null", "not in the page", "few bytes", "number", "page", "count", "counted", "JSON"],
)
def test_text_that_does_not_fit_is_refused(
    schema: Header, fields: dict[str, Any], path: str, offset: int | None
) -> None:
    with pytest.raises(InvalidValue) as refused:
        schema.make(fields)
    assert (refused.value.path, refused.value.offset) == (path, offset)
    record = schema.make()
    for name, value in fields.items():
        setattr(record, name, value)
    if offset is not None:  # a text that its count does not tell is built as it is
        with pytest.raises(InvalidValue):
            record.to_bytes()


def test_text_cut_short_is_refused() -> None:
    with pytest.raises(MalformedPacket) as refused:
        CREATE_QUEUE.parse(b"\0\x03\x05QUEU")
    assert (refused.value.path, refused.value.offset) == ("NcpCreateQueue.QueueNameLength", 2)
    with pytest.raises(MalformedPacket) as refused:
        NAMED_OBJECT.parse(bytes(20))
    assert (refused.value.path, refused.value.offset) == ("NcpNamedObject.ObjectName", 20)
