"""UserHeader and the queue names in it: [MS-MQMQ] 2.2.18.1.5, 2.2.18.1.7 and 2.2.19.2."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.analysis.lint import lint
from msmqwire.headers import USER_HEADER
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
    nested,
    proving,
    requirement,
)

NONE = (0, b"")
BARE = handmade.user_header(flags=0, destination=NONE)  # 48 bytes, all bits clear
GUID_TEXT = "557358d1-9150-9595-4997-b6e611ea26c6"
GUID_BYTES = bytes.fromhex("D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6")
OTHER_TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
OTHER_BYTES = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")
NAME = "OS:host\\queue"

# the forms of a name: its handmade bytes and its fields
HOST_QUEUE = handmade.private_id(0x11223344), {"PrivateQueueIdentifier": 0x11223344}
PUBLIC = OTHER_BYTES, {"PublicQueueIdentifier": UUID(OTHER_TEXT)}
PRIVATE = (
    handmade.private_name(OTHER_BYTES, 0x55667788),
    {
        "SourceQueueManager": UUID(OTHER_TEXT),
        "PrivateQueueIdentifier": 0x55667788,
    },
)
DIRECT = handmade.direct_name(NAME), {"Count": 28, "DirectFormatName": NAME}


def values(queue: Any) -> dict[str, Any]:
    return {name: value for name, value in nested(queue).items() if name != "Padding"}


@requirement("MQMQ-2.2.18.1.1-01", "MQMQ-2.2.19-02")
@pytest.mark.parametrize(
    "field, offset",
    [
        proving("SourceQueueManager", 0, ids="MQMQ-2.2.19.2-01"),
        proving("QueueManagerAddress", 16, ids="MQMQ-2.2.19.2-02"),
    ],
)
def test_guids(field: str, offset: int) -> None:
    """16 bytes each, though drawn narrower; three little-endian integers, then unswapped bytes."""
    base = bytes(48)
    assert_field(USER_HEADER, base, field, offset, GUID_BYTES, UUID(GUID_TEXT))
    assert_field(USER_HEADER, base, field, offset, OTHER_BYTES, UUID(OTHER_TEXT))
    record = USER_HEADER.parse(base[:offset] + GUID_BYTES + base[offset + 16 :])
    assert record.to_json()[field] == GUID_TEXT
    assert (
        USER_HEADER.build({field: GUID_TEXT})[offset : offset + 16] == GUID_BYTES == handmade.guid(GUID_TEXT)
    )


@pytest.mark.parametrize(
    "field, offset, value",
    [
        proving("TimeToBeReceived", 32, 0x01020304, ids="MQMQ-2.2.19.2-04"),
        proving("TimeToBeReceived", 32, 0, ids="MQMQ-2.2.19.2-04", name="TimeToBeReceived-0"),
        proving("SentTime", 36, 0x4B0FF1CE, ids="MQMQ-2.2.19.2-06"),
        proving("MessageID", 40, 0x0A0B0C0D, ids="MQMQ-2.2.19.2-07"),
    ],
)
def test_numbers(field: str, offset: int, value: int) -> None:
    assert_field(USER_HEADER, BARE, field, offset, struct.pack("<L", value), value)


@requirement("MQMQ-2.2.19.2-04")
def test_never_expires() -> None:
    assert USER_HEADER.parse(BARE).TimeToBeReceived == 0xFFFFFFFF
    assert USER_HEADER.build({})[32:36] == b"\xff\xff\xff\xff"


@requirement("MQMQ-2.2.19.2-08")
def test_the_fixed_part_ends_with_flags() -> None:
    assert len(BARE) == 48
    record, end = USER_HEADER.read(BARE + b"more")
    assert end == 48
    assert int(record.Flags) == 0
    poked = BARE[:44] + bytes.fromhex("62 03 00 00")
    record = assert_same(USER_HEADER, poked)
    assert int(record.Flags) == 0x00000362
    assert differences(USER_HEADER.parse(BARE), record) == {"Flags.RC", "Flags.DM", "Flags.JN", "Flags.JP"}


@requirement("MQMQ-2.2.19-01")
@pytest.mark.parametrize(
    "name, mask, value",
    [
        proving("RC", 0x0000001F, 0x1D, ids="MQMQ-2.2.19.2-10"),
        proving("RC", 0x0000001F, 1, ids="MQMQ-2.2.19.2-10", name="RC-1"),
        proving("DM", 0x00000060, 1, ids="MQMQ-2.2.19.2-11"),
        proving("DM", 0x00000060, 2, name="DM-2"),
        proving("DM", 0x00000060, 3, name="DM-3"),
        proving("JN", 0x00000100, 0, ids="MQMQ-2.2.19.2-15"),
        proving("JP", 0x00000200, 0, ids="MQMQ-2.2.19.2-19"),
        proving("SH", 0x00080000, 0),
        proving("TH", 0x00100000, 0),
        proving("MP", 0x00200000, 0, ids="MQMQ-2.2.19.2-34"),
        proving("MQ", 0x00800000, 0),
        proving("AH", 0x02000000, 0, ids="MQMQ-2.2.19.2-38"),
        proving("HH", 0x10000000, 0),
        proving("X1", 0x00000080, 0, ids=("MQMQ-2.2.19.2-14", "MQMQ-2.2.19.2-43")),
        proving("X2", 0x01000000, 0, ids=("MQMQ-2.2.19.2-37", "MQMQ-2.2.19.2-43")),
        proving("X3", 0x0C000000, 3, ids=("MQMQ-2.2.19.2-40", "MQMQ-2.2.19.2-43")),
        proving("X3", 0x0C000000, 1, ids="MQMQ-2.2.19.2-40", name="X3-1"),
        proving("X4", 0xE0000000, 7, ids=("MQMQ-2.2.19.2-42", "MQMQ-2.2.19.2-43")),
        proving("X4", 0xE0000000, 1, ids="MQMQ-2.2.19.2-42", name="X4-1"),
    ],
)
def test_bits_that_change_no_layout(name: str, mask: int, value: int) -> None:
    assert_bits(USER_HEADER, BARE, f"Flags.{name}", 44, 4, mask, value)


@requirement(
    "MQMQ-2.2.19.2-14", "MQMQ-2.2.19.2-34", "MQMQ-2.2.19.2-37", "MQMQ-2.2.19.2-40", "MQMQ-2.2.19.2-42"
)
def test_bits_that_are_left_out() -> None:
    """Reserved bits are 0, MP is 1: the sender's side of the rows."""
    assert USER_HEADER.build({})[44:48] == b"\x00\x00\x20\x00"
    assert USER_MESSAGE.build({})[60:64] == b"\x00\x00\x20\x00"


@requirement("MQMQ-2.2.19.2-43")
def test_reserved_bits_are_ignored_in_a_message() -> None:
    plain = handmade.user_message()
    poked = handmade.user_message(user_flags=handmade.MP | 0xED000080)
    before, after = msmqwire.parse(plain), msmqwire.parse(poked)
    assert differences(before, after) == {f"UserHeader.Flags.{name}" for name in ("X1", "X2", "X3", "X4")}
    assert msmqwire.build(after) == poked


QUEUES = [
    *(
        ("DestinationQueue", "DQ", 10, kind, *form)
        for kind, form in ((3, HOST_QUEUE), (5, PUBLIC), (7, DIRECT))
    ),
    *(
        ("AdminQueue", "AQ", 13, kind, *form)
        for kind, form in ((2, HOST_QUEUE), (3, HOST_QUEUE), (5, PUBLIC), (6, PRIVATE), (7, DIRECT))
    ),
    *(
        ("ResponseQueue", "RQ", 16, kind, *form)
        for kind, form in (
            (2, HOST_QUEUE),
            (3, HOST_QUEUE),
            (4, HOST_QUEUE),
            (5, PUBLIC),
            (6, PRIVATE),
            (7, DIRECT),
        )
    ),
]
PROVED = {
    "DestinationQueue": ("MQMQ-2.2.19.2-21",),
    "AdminQueue": ("MQMQ-2.2.19.2-23", "MQMQ-2.2.19.2-25"),
    "ResponseQueue": ("MQMQ-2.2.19.2-27", "MQMQ-2.2.19.2-28"),
}


@requirement("MQMQ-2.2.18.1.5-01", "MQMQ-2.2.19-01")
@pytest.mark.parametrize(
    "field, flag, shift, kind, name, expected",
    [proving(*row, ids=PROVED[row[0]], name=f"{row[1]}-{row[3]}") for row in QUEUES],
)
def test_forms_of_a_queue(
    field: str, flag: str, shift: int, kind: int, name: bytes, expected: dict[str, Any]
) -> None:
    """Bytes at offset 48 whose form depends only on three bits; and the reverse."""
    data = BARE[:44] + struct.pack("<L", kind << shift) + name
    record = assert_same(USER_HEADER, data)
    assert getattr(record.Flags, flag) == kind
    assert values(getattr(record, field)) == expected
    assert [getattr(record, other) for other in PROVED if other != field] == [None, None]
    fields = {"SourceQueueManager": record.SourceQueueManager, "SentTime": 0x441105E6, "MessageID": 1}
    assert USER_HEADER.build({**fields, "Flags": {flag: kind, "MP": 0}, field: expected}) == data
    # truncated: the queue needs exactly these bytes
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        USER_HEADER.parse(data[: 48 + len(name.rstrip(b"\0")) - 1])
    assert caught.value.path.startswith(f"UserHeader.{field}.")


@pytest.mark.parametrize(
    "field, flag, shift, kind",
    [
        proving("DestinationQueue", "DQ", 10, 0, ids="MQMQ-2.2.19.2-21"),
        proving("AdminQueue", "AQ", 13, 0, ids=("MQMQ-2.2.19.2-23", "MQMQ-2.2.19.2-25")),
        proving("ResponseQueue", "RQ", 16, 0, ids=("MQMQ-2.2.19.2-27", "MQMQ-2.2.19.2-28"), name="RQ-0"),
        proving("ResponseQueue", "RQ", 16, 1, ids=("MQMQ-2.2.19.2-27", "MQMQ-2.2.19.2-28"), name="RQ-1"),
    ],
)
def test_no_queue_takes_no_bytes(field: str, flag: str, shift: int, kind: int) -> None:
    data = BARE[:44] + struct.pack("<L", kind << shift)
    record = assert_same(USER_HEADER, data)
    assert getattr(record, field) is None
    assert getattr(record.Flags, flag) == kind
    fields = {"SourceQueueManager": record.SourceQueueManager, "SentTime": 0x441105E6, "MessageID": 1}
    assert USER_HEADER.build({**fields, "Flags": {flag: kind, "MP": 0}}) == data


@pytest.mark.parametrize(
    "field, expected, flags",
    [
        proving("DestinationQueue", HOST_QUEUE[1], 3 << 10, ids="MQMQ-2.2.19.2-21", name="DQ-3"),
        proving("DestinationQueue", PUBLIC[1], 5 << 10, ids="MQMQ-2.2.19.2-21", name="DQ-5"),
        proving("DestinationQueue", DIRECT[1], 7 << 10, ids="MQMQ-2.2.19.2-21", name="DQ-7"),
        proving("AdminQueue", PUBLIC[1], 5 << 13, ids="MQMQ-2.2.19.2-23", name="AQ-5"),
        proving("AdminQueue", PRIVATE[1], 6 << 13, ids="MQMQ-2.2.19.2-23", name="AQ-6"),
        proving("AdminQueue", DIRECT[1], 7 << 13, ids="MQMQ-2.2.19.2-23", name="AQ-7"),
        proving("ResponseQueue", PUBLIC[1], 5 << 16, ids="MQMQ-2.2.19.2-27", name="RQ-5"),
        proving("ResponseQueue", PRIVATE[1], 6 << 16, ids="MQMQ-2.2.19.2-27", name="RQ-6"),
        proving("ResponseQueue", DIRECT[1], 7 << 16, ids="MQMQ-2.2.19.2-27", name="RQ-7"),
    ],
)
def test_the_bits_of_a_queue_are_filled_in(field: str, expected: dict[str, Any], flags: int) -> None:
    data = USER_HEADER.build({field: expected})
    assert data[44:48] == struct.pack("<L", 0x00200000 | flags)
    assert values(getattr(USER_HEADER.parse(data), field)) == expected


@pytest.mark.parametrize(
    "flag, shift, kind",
    [
        *(proving("DQ", 10, kind, ids="MQMQ-2.2.19.2-22", name=f"DQ-{kind}") for kind in (1, 2, 4, 6)),
        *(proving("AQ", 13, kind, ids="MQMQ-2.2.19.2-24", name=f"AQ-{kind}") for kind in (1, 4)),
    ],
)
def test_forms_that_are_errors(flag: str, shift: int, kind: int) -> None:
    """The refusal that ends a session; RQ has no such value."""
    data = BARE[:44] + struct.pack("<L", kind << shift) + bytes(40)
    assert_refused(USER_HEADER, data, f"UserHeader.Flags.{flag}", 44)
    message = handmade.user_message(user=data)
    assert_refused(msmqwire.parse, message, f"UserHeader.Flags.{flag}", 60)


@requirement("MQMQ-2.2.19.2-29")
@pytest.mark.parametrize("admin", [NONE, (3, handmade.private_id(7)), (7, handmade.direct_name("OS:a\\b"))])
def test_response_queue_is_the_admin_queue(admin: tuple[int, bytes]) -> None:
    """RQ 1 takes no bytes, with an administration queue and without one."""
    data = handmade.user_header(admin=admin, response=(1, b""), connector_type=OTHER_BYTES)
    record = assert_same(USER_HEADER, data)
    assert record.Flags.RQ == 1
    assert record.ResponseQueue is None
    assert (record.AdminQueue is None) == (admin is NONE)
    assert record.ConnectorType == UUID(OTHER_TEXT)


@requirement("MQMQ-2.2.19.2-09")
def test_order_of_the_variable_part() -> None:
    queues = {
        "DestinationQueue": (7, "OS:d\\1"),
        "AdminQueue": (7, "OS:admin\\2"),
        "ResponseQueue": (7, "OS:re\\3"),
    }
    names = [(kind, handmade.direct_name(name)) for kind, name in queues.values()]
    data = handmade.user_header(
        destination=names[0], admin=names[1], response=names[2], connector_type=OTHER_BYTES
    )
    record = assert_same(USER_HEADER, data)
    offset = 48
    for (field, (_, text)), (_, name) in zip(queues.items(), names, strict=True):
        assert data[offset : offset + len(name)] == name
        assert len(name) % 4 == 0
        assert getattr(record, field).DirectFormatName == text
        offset += len(name)
    assert data[offset:] == OTHER_BYTES
    assert record.ConnectorType == UUID(OTHER_TEXT)
    fields = {field: {"DirectFormatName": text} for field, (_, text) in queues.items()}
    built = USER_HEADER.build({**fields, "ConnectorType": OTHER_TEXT})
    assert built[48:] == data[48:]
    assert len(built) % 4 == 0


@requirement("MQMQ-2.2.19.2-35", "MQMQ-2.2.19.2-44")
def test_connector_type() -> None:
    """Bit 22 and 16 bytes at the very end, both or neither."""
    data = handmade.user_header(connector_type=OTHER_BYTES)
    without = handmade.user_header()
    assert len(data) == len(without) + 16
    assert data[44:48] == b"\x00\x0c\x60\x00"
    record = assert_same(USER_HEADER, data)
    assert record.Flags.CQ is True
    assert record.ConnectorType == UUID(OTHER_TEXT)
    assert differences(USER_HEADER.parse(without), record) == {"Flags.CQ", "ConnectorType"}
    assert USER_HEADER.parse(without).ConnectorType is None
    built = USER_HEADER.build({"ConnectorType": OTHER_TEXT})
    assert built[44:] == b"\x00\x00\x60\x00" + OTHER_BYTES
    assert USER_HEADER.build({})[44:] == b"\x00\x00\x20\x00"
    assert_refused(USER_HEADER, data[:-1], "UserHeader.ConnectorType", len(data) - 1)


# --- the names themselves ---


@requirement("MQMQ-2.2.18.1.5.1-01")
def test_private_queue_identifier() -> None:
    base = handmade.user_header(destination=(3, handmade.private_id(0)))
    assert len(base) == 52
    path = "DestinationQueue.PrivateQueueIdentifier"
    assert_field(USER_HEADER, base, path, 48, b"\x0d\x0c\x0b\x0a", 0x0A0B0C0D)


@requirement("MQMQ-2.2.18.1.7.1-01")
def test_public_queue_name() -> None:
    base = handmade.user_header(destination=(5, bytes(16)))
    assert len(base) == 64
    path = "DestinationQueue.PublicQueueIdentifier"
    assert_field(USER_HEADER, base, path, 48, GUID_BYTES, UUID(GUID_TEXT))


@requirement("MQMQ-2.2.18.1.7.2-02")
def test_private_queue_name() -> None:
    base = handmade.user_header(admin=(6, bytes(20)))
    assert len(base) == 72
    assert_field(USER_HEADER, base, "AdminQueue.SourceQueueManager", 52, GUID_BYTES, UUID(GUID_TEXT))
    assert_field(USER_HEADER, base, "AdminQueue.PrivateQueueIdentifier", 68, b"\x04\x03\x02\x01", 0x01020304)


@requirement("MQMQ-2.2.18.1.5.2-01", "MQMQ-2.2.18.1.5.2-02", "MQMQ-2.2.18.1.5.2-03", "MQMQ-2.2.18-01")
@pytest.mark.parametrize("text, count", [("OS:a04bm02\\q", 0x1A), ("OS:a04bm02\\qu", 0x1C), ("ÄΩ\u6d88", 8)])
def test_direct_name(text: str, count: int) -> None:
    name = struct.pack("<H", count) + text.encode("utf-16-le") + b"\0\0"
    name += bytes(-len(name) % 4)
    data = handmade.user_header(destination=(7, name), admin=(3, handmade.private_id(5)))
    record = assert_same(USER_HEADER, data)
    assert record.DestinationQueue.Count == count
    assert record.DestinationQueue.DirectFormatName == text
    assert record.AdminQueue.PrivateQueueIdentifier == 5
    built = USER_HEADER.build(
        {"DestinationQueue": {"DirectFormatName": text}, "AdminQueue": {"PrivateQueueIdentifier": 5}}
    )
    assert built[48:-4] == name
    assert len(name) == (2 + count + 3) // 4 * 4
    assert record.to_json()["DestinationQueue"] == {"Count": count, "DirectFormatName": text}


@requirement("MQMQ-2.2.18.1.5.2-03")
def test_direct_names_are_padded_from_the_start_of_the_header() -> None:
    """The header may be at any offset: what counts is where the name ends within it."""
    data = handmade.user_header(destination=(7, handmade.direct_name("OS:ab\\c")), connector_type=GUID_BYTES)
    assert len(handmade.direct_name("OS:ab\\c")) == 20  # 2 + 16 + 2 of padding
    for before in range(4):
        record, end = USER_HEADER.read(bytes(before) + data, before)
        assert end == before + len(data)
        assert record.ConnectorType == UUID(GUID_TEXT)


@requirement("MQMQ-2.2.18.1.5.2-04")
@pytest.mark.parametrize("fill", [b"\0", b"\xab", b"\xff"])
def test_padding_of_a_direct_name_is_anything(fill: bytes) -> None:
    name = handmade.direct_name("OS:ab\\c", fill)
    data = handmade.user_header(destination=(7, name))
    assert data[-2:] == fill * 2
    record = assert_same(USER_HEADER, data)
    assert (record.DestinationQueue.Count, record.DestinationQueue.DirectFormatName) == (16, "OS:ab\\c")
    assert record.DestinationQueue.Padding == fill * 2
    built = USER_HEADER.build({"DestinationQueue": {"DirectFormatName": "OS:ab\\c"}})
    assert built[48:] == handmade.direct_name("OS:ab\\c")


@requirement("MQMQ-2.2.18.1.5.2-05")
@pytest.mark.parametrize(
    "count, text",
    [
        pytest.param(15, "OS:ab\\c", id="odd"),
        pytest.param(0, "OS:ab\\c", id="zero"),
        pytest.param(1, "OS:ab\\c", id="one"),
        pytest.param(14, "OS:ab\\c", id="no null at its end"),
        pytest.param(0xFFFE, "OS:ab\\c", id="past the packet"),
        pytest.param(78, "OS:ab\\c", id="past the packet by two"),
    ],
)
def test_bad_count(count: int, text: str) -> None:
    name = handmade.direct_name(text)
    user = handmade.user_header(destination=(7, struct.pack("<H", count) + name[2:]))
    data = handmade.user_message(user=user)
    assert len(data) - 66 == 18 + 56  # what remains of the packet after Count
    assert_refused(msmqwire.parse, data, "UserHeader.DestinationQueue.Count", 64)


# --- the packet's headers by the bits of this one ---

HEADERS = {
    "SH": ("SecurityHeader", 0x00080000, "security", handmade.security_header(flags=1, security_id=b"1234")),
    "TH": ("TransactionHeader", 0x00100000, "transaction", handmade.transaction_header()),
    "MQ": ("MultiQueueFormatHeader", 0x00800000, "multi_queue", handmade.multi_queue_format_header()),
    "HH": ("SoapHeader", 0x10000000, "soap", handmade.soap_header()),
}


@pytest.mark.parametrize(
    "flag",
    [
        proving("SH", ids=("MQMQ-2.2.19.2-31", "MQMQ-2.2.20-06")),
        proving("TH", ids=("MQMQ-2.2.19.2-32", "MQMQ-2.2.20-05")),
        proving("MQ", ids=("MQMQ-2.2.19.2-36", "MQMQ-2.2.20-09")),
        proving("HH", ids=("MQMQ-2.2.19.2-41", "MQMQ-2.2.20-08")),
    ],
)
def test_presence_bits(flag: str) -> None:
    header, mask, argument, raw = HEADERS[flag]
    data = handmade.user_message(**{argument: raw})
    assert int.from_bytes(data[60:64], "little") == 0x00200C00 | mask
    record = assert_same(USER_MESSAGE, data)
    assert getattr(record.UserHeader.Flags, flag) is True
    assert [name for name, *_ in HEADERS.values() if record[name] is not None] == [header]
    assert record[header].schema.build(record[header]) == raw
    # header absent: bit clear
    plain = handmade.user_message()
    assert getattr(msmqwire.parse(plain).UserHeader.Flags, flag) is False
    assert msmqwire.parse(plain)[header] is None
    assert header not in msmqwire.parse(plain).to_json()["fields"]
    # by default the bit follows from the header; it is not the bit of the same name in BaseHeader
    rebuilt = USER_MESSAGE.build({header: nested(record[header])})
    assert int.from_bytes(rebuilt[60:64], "little") & 0x1CF80000 == 0x00200000 | mask
    assert rebuilt[2] & 0x30 == 0
    assert USER_MESSAGE.build({})[60:64] == b"\x00\x00\x20\x00"
    # without the bit the header is none: as many bytes are left behind the last one
    word = (int.from_bytes(data[60:64], "little") & ~mask).to_bytes(4, "little")
    unmarked = data[:60] + word + data[64:]
    assert msmqwire.parse(unmarked)[header] is None
    assert msmqwire.parse(unmarked).TrailingData
    assert "ATTACK-PACKET-SIZE" in {finding.id for finding in lint(unmarked)}


# --- examples ---


@requirement("MQMQ-2.2.19.2-46")
def test_captured_flags() -> None:
    data = handmade.user_header(
        flags=0x00281C00, destination=(7, handmade.direct_name("OS:a04bm02\\q")), message_id=2286
    )
    assert data[44:48] == bytes.fromhex("00 1C 28 00")
    assert len(data) == 76
    clear = {path: False for path in flat(USER_HEADER.parse(BARE)) if path.startswith("Flags.")}
    assert_values(
        USER_HEADER,
        data,
        {
            "SourceQueueManager": UUID(GUID_TEXT),
            "QueueManagerAddress": UUID(int=0),
            "TimeToBeReceived": 0xFFFFFFFF,
            "SentTime": 0x441105E6,
            "MessageID": 2286,
            **clear,
            "Flags.DQ": 7,
            "Flags.SH": True,
            "Flags.MP": True,
            "DestinationQueue.Count": 26,
            "DestinationQueue.DirectFormatName": "OS:a04bm02\\q",
            "DestinationQueue.Padding": b"",
            "AdminQueue": None,
            "ResponseQueue": None,
            "ConnectorType": None,
        },
    )
    assert data[48:] == bytes.fromhex(
        "1A 00 4F 00 53 00 3A 00 61 00 30 00 34 00 62 00 6D 00 30 00 32 00 5C 00 71 00 00 00"
    )
