"""MultiQueueFormatHeader and the names in it: [MS-MQMQ] 2.2.18.1.4, 2.2.18.1.7, 2.2.20.1 to 2.2.20.3."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.headers import MQF_SIGNATURE_HEADER, MULTI_QUEUE_FORMAT_HEADER
from msmqwire.packets import USER_MESSAGE
from tests.support import handmade
from tests.support.codec_checks import (
    assert_field,
    assert_refused,
    assert_same,
    differences,
    nested,
    proving,
    requirement,
)

NAME = "MultiQueueFormatHeader"
LISTS = ("Destination", "Administration", "Response")
IDS = {"Destination": 0x0064, "Administration": 0x00C8, "Response": 0x012C}
TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
GUID = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")
EMPTY = handmade.multi_queue_format_header()
FILLS = pytest.mark.parametrize("fill", [b"\0", b"\xab", b"\x03"], ids=["zeroes", "anything", "a type"])

FORMS: dict[str, tuple[tuple[int, bytes], dict[str, Any]]] = {
    "public": (handmade.mqf_public(GUID), {"PublicQueueIdentifier": UUID(TEXT)}),
    "private": (
        handmade.mqf_private(GUID, 0x11223344),
        {"SourceQueueManager": UUID(TEXT), "PrivateQueueIdentifier": 0x11223344},
    ),
    "direct": (handmade.mqf_direct("OS:host\\queue"), {"DirectFormatName": "OS:host\\queue"}),
    "list": (handmade.mqf_list(GUID), {"DistributionListIdentifier": UUID(TEXT)}),
}
NUMBERS = {"public": 1, "private": 2, "direct": 3, "list": 6}


def names(part: Any) -> list[tuple[int, dict[str, Any]]]:
    """The type and fields of each name in a list, without padding."""
    return [
        (element.FormatType, {k: v for k, v in nested(element.FormatName).items() if k != "Padding"})
        for element in part.FormatNameList
    ]


def format_names(*forms: str) -> list[dict[str, Any]]:
    return [{"FormatName": FORMS[form][1]} for form in forms]


def with_part(part: int, raw: bytes) -> bytes:
    """The header with one of its parts replaced."""
    parts = [handmade.mqf_address_header(number) for number in IDS.values()] + [
        handmade.mqf_signature_header()
    ]
    parts[part] = raw
    return b"".join(parts)


# --- the four parts ---


@requirement("MQMQ-2.2.20.1-02", "MQMQ-2.2.20.1-06")
def test_the_least_of_headers() -> None:
    """Three lists of 12 bytes without elements and an empty signature: all four are always present."""
    assert (
        bytes.fromhex(
            "0C 00 00 00 64 00 00 00 00 00 00 00  0C 00 00 00 C8 00 00 00 00 00 00 00"
            "0C 00 00 00 2C 01 00 00 00 00 00 00  5E 01 00 00 00 00 00 00"
        )
        == EMPTY
    )
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, EMPTY)
    for part in LISTS:
        address_header = record[part]
        assert (
            address_header.HeaderSize,
            address_header.HeaderID,
            address_header.ElementCount,
            address_header.FormatNameList,
        ) == (
            12,
            IDS[part],
            0,
            [],
        )
    assert (record.Signature.ID, record.Signature.Size, record.Signature.Signature) == (0x015E, 0, b"")
    assert MULTI_QUEUE_FORMAT_HEADER.build({}) == EMPTY
    for end in range(len(EMPTY)):
        with pytest.raises(msmqwire.MalformedPacket) as caught:
            MULTI_QUEUE_FORMAT_HEADER.parse(EMPTY[:end])
        assert caught.value.path.startswith(NAME)


@requirement("MQMQ-2.2.20.1-02")
@pytest.mark.parametrize(
    "part, number",
    [
        proving("Destination", 0x0064, ids="MQMQ-2.2.20.1-03"),
        proving("Administration", 0x00C8, ids="MQMQ-2.2.20.1-04"),
        proving("Response", 0x012C, ids="MQMQ-2.2.20.1-05"),
    ],
)
def test_lists_in_their_order(part: str, number: int) -> None:
    """One direct name of 22 bytes in one list, then 2 bytes of padding before the next part."""
    name = "OS:host\\qu"  # 22 bytes with its null
    raw = handmade.mqf_address_header(number, [handmade.mqf_direct(name)])
    assert len(raw) == 36
    data = with_part(LISTS.index(part), raw)
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, data)
    assert [names(record[other]) for other in LISTS] == [
        [(3, {"DirectFormatName": name})] if other == part else [] for other in LISTS
    ]
    assert record.Signature.ID == 0x015E
    assert record[part].HeaderID == number
    element = {"FormatName": {"DirectFormatName": name}}
    assert MULTI_QUEUE_FORMAT_HEADER.build({part: {"FormatNameList": [element]}}) == data
    # a name of 20 bytes ends unaligned
    short = with_part(
        LISTS.index(part), handmade.mqf_address_header(number, [handmade.mqf_direct("OS:host\\q")])
    )
    assert len(short) == len(data)  # 34 rounded up
    assert names(assert_same(MULTI_QUEUE_FORMAT_HEADER, short)[part]) == [
        (3, {"DirectFormatName": "OS:host\\q"})
    ]


@FILLS
@requirement("MQMQ-2.2.20.1-08", "MQMQ-2.2.20.2-06")
def test_padding_at_the_end_of_a_list(fill: bytes) -> None:
    data = handmade.multi_queue_format_header(
        [handmade.mqf_direct("OS:a\\bc")],
        [handmade.mqf_direct("OS:d\\ef")],
        [handmade.mqf_direct("OS:g\\hi")],
        fill=fill,
    )
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, data)
    assert [names(record[part])[0][1]["DirectFormatName"] for part in LISTS] == [
        "OS:a\\bc",
        "OS:d\\ef",
        "OS:g\\hi",
    ]
    assert record.Destination.Padding == fill * 2
    assert record.Destination.HeaderSize == 32  # 12 + 2 + 16 + 2
    built = MULTI_QUEUE_FORMAT_HEADER.build(
        {
            part: {"FormatNameList": [{"FormatName": record[part].FormatNameList[0].FormatName}]}
            for part in LISTS
        }
    )
    assert built[30:32] == b"\0\0"
    assert len(built) == len(data)


@requirement("MQMQ-2.2.20.2-01", "MQMQ-2.2.20.2-05")
@pytest.mark.parametrize("part", LISTS)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_sizes_and_counts(part: str, count: int) -> None:
    raw = handmade.mqf_address_header(IDS[part], [handmade.mqf_list(GUID)] * count)
    assert len(raw) == 12 + 20 * count
    assert raw[:4] == struct.pack("<L", 12 + 20 * count)
    assert raw[8:12] == struct.pack("<L", count)
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, with_part(LISTS.index(part), raw))
    assert (record[part].HeaderSize, record[part].ElementCount) == (12 + 20 * count, count)
    assert names(record[part]) == [(6, {"DistributionListIdentifier": UUID(TEXT)})] * count
    built = MULTI_QUEUE_FORMAT_HEADER.build({part: {"FormatNameList": format_names("list") * count}})
    assert built == with_part(LISTS.index(part), raw)


@pytest.mark.parametrize(
    "part, offset",
    [("Destination", 6), ("Administration", 18), ("Response", 30)],
)
@requirement("MQMQ-2.2.20.2-03", "MQMQ-2.2.20.2-04")
def test_reserved_of_a_list(part: str, offset: int) -> None:
    assert_field(MULTI_QUEUE_FORMAT_HEADER, EMPTY, f"{part}.Reserved", offset, b"\x02\x01", 0x0102)
    assert MULTI_QUEUE_FORMAT_HEADER.build({})[offset : offset + 2] == b"\0\0"
    data = handmade.user_message(multi_queue=EMPTY[:offset] + b"\xff\xff" + EMPTY[offset + 2 :])
    before = msmqwire.parse(handmade.user_message(multi_queue=EMPTY))
    assert differences(before, msmqwire.parse(data)) == {f"{NAME}.{part}.Reserved"}


@requirement("MQMQ-2.2.20.2-08")
@requirement("MQMQ-2.2.20.2-02")
@pytest.mark.parametrize("part", [0, 1, 2])
def test_header_ids(part: int) -> None:
    path, offset = f"{NAME}.{LISTS[part]}.HeaderID", 124 + 12 * part + 4
    assert EMPTY[12 * part + 4 : 12 * part + 6] == struct.pack("<H", IDS[LISTS[part]])
    for number in (0, 0x0064, 0x00C8, 0x012C, 0x015E, 0x6400, 0xFFFF):
        data = handmade.user_message(multi_queue=with_part(part, handmade.mqf_address_header(number)))
        if number == IDS[LISTS[part]]:
            assert msmqwire.parse(data)[NAME][LISTS[part]].HeaderID == number
        else:
            assert_refused(msmqwire.parse, data, path, offset)


@requirement("MQMQ-2.2.20.2-07")
@pytest.mark.parametrize("rounded", [True, False])
def test_header_size_with_the_padding_or_without(rounded: bool) -> None:
    """Either way the next part is at the rounded size; a built header counts the padding."""
    elements = [handmade.mqf_direct("OS:a\\bc")]  # 12 + 2 + 16 = 30
    raw = handmade.mqf_address_header(0x0064, elements, rounded=rounded, fill=b"\xcd")
    assert raw[:4] == struct.pack("<L", 32 if rounded else 30)
    data = with_part(0, raw) + b"next"
    record, end = MULTI_QUEUE_FORMAT_HEADER.read(data)
    assert end == len(data) - 4
    assert record.Destination.HeaderSize == (32 if rounded else 30)
    assert record.Administration.HeaderID == 0x00C8
    assert_same(MULTI_QUEUE_FORMAT_HEADER, data[:-4])
    element = {"FormatName": {"DirectFormatName": "OS:a\\bc"}}
    built = MULTI_QUEUE_FORMAT_HEADER.build({"Destination": {"FormatNameList": [element]}})
    assert built[:4] == b"\x20\0\0\0"


@requirement("MQMQ-2.2.20.2-08", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("part", [0, 1, 2])
def test_lists_that_cannot_be(part: int) -> None:
    path, start = f"{NAME}.{LISTS[part]}", 124 + 12 * part
    number, direct = IDS[LISTS[part]], [handmade.mqf_direct("OS:a\\b")]

    def message(**arguments: Any) -> bytes:
        raw = handmade.mqf_address_header(number, arguments.pop("elements", ()), **arguments)
        return handmade.user_message(multi_queue=with_part(part, raw))

    for size in (0, 3, 4, 7, 8, 11):
        assert_refused(msmqwire.parse, message(size=size), f"{path}.HeaderSize", start)
    remaining = len(message()) - start
    for size in (remaining + 1, 0x7FFFFFFF, 0xFFFFFFFF):
        assert_refused(msmqwire.parse, message(size=size), f"{path}.HeaderSize", start)
    # more elements than HeaderSize has room for
    for count in (1, 0xFFFFFFFF):
        assert_refused(msmqwire.parse, message(count=count), f"{path}.ElementCount", start + 8)
    # a name that runs past HeaderSize: its null is beyond the end
    data = message(elements=direct, size=24)
    assert_refused(msmqwire.parse, data, f"{path}.FormatNameList[0].FormatName.DirectFormatName", start + 24)


def test_more_bytes_than_elements() -> None:
    """Nothing forbids them: HeaderSize leads to the next part, and they are preserved as padding."""
    raw = handmade.mqf_address_header(0x0064, [handmade.mqf_list(GUID)], count=0)
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, with_part(0, raw))
    assert (record.Destination.FormatNameList, record.Destination.Padding) == ([], raw[12:])
    assert record.Administration.HeaderID == 0x00C8


# --- the names in a list ---


@requirement("MQMQ-2.2.18.1.4-01", "MQMQ-2.2.18.1.4-02")
@pytest.mark.parametrize(
    "form",
    [
        proving("public", ids="MQMQ-2.2.18.1.7.1-01"),
        proving("private", ids=("MQMQ-2.2.18.1.7.2-01", "MQMQ-2.2.18.1.7.2-02")),
        proving("direct", ids="MQMQ-2.2.18.1.4.1-01"),
        proving("list", ids="MQMQ-2.2.18.1.4.2-01"),
    ],
)
def test_forms_of_an_element(form: str) -> None:
    element, expected = FORMS[form]
    raw = handmade.mqf_address_header(0x0064, [element])
    assert raw[12:14] == struct.pack("<H", NUMBERS[form])
    data = with_part(0, raw)
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, data)
    assert names(record.Destination) == [(NUMBERS[form], expected)]
    assert MULTI_QUEUE_FORMAT_HEADER.build({"Destination": {"FormatNameList": format_names(form)}}) == data


@requirement("MQMQ-2.2.18.1.4.1-01", "MQMQ-2.2.18.1.4.1-02")
def test_a_direct_name_follows_its_type_and_ends_behind_its_null() -> None:
    """No length before it, no padding after it: the next type follows the null directly."""
    raw = bytes.fromhex("03 00 41 00 42 00 00 00 03 00 43 00 00 00")
    data = with_part(0, struct.pack("<LHHL", 28, 0x0064, 0, 2) + raw + b"\0\0")
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, data)
    assert names(record.Destination) == [(3, {"DirectFormatName": "AB"}), (3, {"DirectFormatName": "C"})]
    elements = [{"FormatName": {"DirectFormatName": name}} for name in ("AB", "C")]
    assert MULTI_QUEUE_FORMAT_HEADER.build({"Destination": {"FormatNameList": elements}}) == data


@FILLS
@requirement("MQMQ-2.2.18.1.4-03", "MQMQ-2.2.18.1.4-04")
@pytest.mark.parametrize(
    "form",
    [
        proving("public", ids="MQMQ-2.2.18.1.7.1-02"),
        proving("private", ids="MQMQ-2.2.18.1.7.2-01"),
        proving("list", ids="MQMQ-2.2.18.1.4.2-02"),
    ],
)
@pytest.mark.parametrize("before, pad", [("", 2), ("A", 0), ("AB", 2)])
def test_guids_stand_on_four_byte_boundaries(form: str, before: str, pad: int, fill: bytes) -> None:
    """Within the list: two arbitrary bytes follow a type on such a boundary, none otherwise."""
    number, name = FORMS[form][0]
    first = struct.pack("<H", 3) + before.encode("utf-16-le") + b"\0\0" if before else b""
    raw = first + struct.pack("<H", number) + fill * pad + name
    size = 12 + len(raw)
    assert (12 + len(first) + 2 + pad) % 4 == 0
    raw += fill * (-size % 4)
    data = with_part(0, struct.pack("<LHHL", 12 + len(raw), 0x0064, 0, 1 + bool(before)) + raw)
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, data)
    assert names(record.Destination)[-1] == (number, FORMS[form][1])
    assert record.Destination.FormatNameList[-1].FormatName.Padding == fill * pad
    elements = [{"FormatName": {"DirectFormatName": before}}] * bool(before) + format_names(form)
    raw = (first + struct.pack("<H", number) + bytes(pad) + name).ljust(len(raw), b"\0")
    built = MULTI_QUEUE_FORMAT_HEADER.build({"Destination": {"FormatNameList": elements}})
    assert built == data[:12] + raw + data[12 + len(raw) :]


@requirement("MQMQ-2.2.18.1.4-05", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("kind", [0, 4, 5, 7, 8, 0x0100, 0xFFFF])
def test_unknown_types(kind: int) -> None:
    multi_queue = handmade.multi_queue_format_header(
        [handmade.mqf_list(GUID), handmade.mqf_element(kind, GUID)], [handmade.mqf_direct("OS:a\\b")]
    )
    data = handmade.user_message(multi_queue=multi_queue)
    path = f"{NAME}.Destination.FormatNameList[1].FormatType"
    assert_refused(msmqwire.parse, data, path, 124 + 12 + 20)


# --- the signature ---


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("Reserved", 2, b"\x02\x01", 0x0102, ids="MQMQ-2.2.20.3-02"),
        proving("Signature", 8, b"\xa1\xa2\xa3\xa4", b"\xa1\xa2\xa3\xa4", ids="MQMQ-2.2.20.3-04"),
    ],
)
def test_signature_fields(path: str, offset: int, data: bytes, value: object) -> None:
    assert_field(MQF_SIGNATURE_HEADER, handmade.mqf_signature_header(bytes(4)), path, offset, data, value)


@requirement("MQMQ-2.2.20.3-02")
def test_reserved_of_the_signature_is_ignored() -> None:
    assert MQF_SIGNATURE_HEADER.build({})[2:4] == b"\0\0"
    data = handmade.user_message(multi_queue=with_part(3, handmade.mqf_signature_header(reserved=0xFFFF)))
    before = msmqwire.parse(handmade.user_message(multi_queue=EMPTY))
    assert differences(before, msmqwire.parse(data)) == {f"{NAME}.Signature.Reserved"}


@requirement("MQMQ-2.2.20.1-07", "MQMQ-2.2.20.3-03", "MQMQ-2.2.20.3-04")
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 64, 257])
def test_signature_size_and_padding(size: int) -> None:
    """Size covers only the signature; the end is padded as in any header."""
    signature = bytes(1 + i % 255 for i in range(size))
    data = struct.pack("<HHL", 0x015E, 0, size) + signature + bytes(-size % 4)
    assert data == handmade.mqf_signature_header(signature)
    record = assert_same(MULTI_QUEUE_FORMAT_HEADER, with_part(3, data)).Signature
    assert (record.ID, record.Size, record.Signature) == (0x015E, size, signature)
    assert record.Padding == bytes(-size % 4)
    built = MULTI_QUEUE_FORMAT_HEADER.build({"Signature": {"Signature": signature}})
    assert built == EMPTY[:36] + data


@requirement("MQMQ-2.2.20.3-01", "MQMQ-2.2.20.2-02")
@pytest.mark.parametrize("number", [0, 0x0064, 0x012C, 0x015F, 0x5E01])
def test_signature_id(number: int) -> None:
    """The id comes first here, where a list has its size."""
    assert MQF_SIGNATURE_HEADER.build({})[:2] == b"\x5e\x01"
    data = handmade.user_message(multi_queue=with_part(3, handmade.mqf_signature_header(header_id=number)))
    assert_refused(msmqwire.parse, data, f"{NAME}.Signature.ID", 124 + 36)


@requirement("MQMQ-2.2.20.3-03", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("size", [5, 0x7FFFFFFF, 0xFFFFFFFF])
def test_signature_past_the_packet(size: int) -> None:
    data = handmade.user_message(multi_queue=with_part(3, handmade.mqf_signature_header(b"1234", size=size)))
    assert_refused(msmqwire.parse, data, f"{NAME}.Signature.Size", 124 + 36 + 4)


def test_all_of_it_in_a_message() -> None:
    """Every form in every list, in two orders, in a message."""
    for order in (("public", "direct", "private", "list"), ("direct", "list", "public", "direct", "private")):
        elements = [FORMS[form][0] for form in order]
        raw = handmade.multi_queue_format_header(elements, elements, elements[::-1], b"signature")
        data = handmade.user_message(multi_queue=raw)
        record = assert_same(USER_MESSAGE, data)[NAME]
        assert names(record.Destination) == [(NUMBERS[form], FORMS[form][1]) for form in order]
        assert names(record.Response) == names(record.Destination)[::-1]
        lists = {part: {"FormatNameList": format_names(*order)} for part in LISTS[:2]}
        lists["Response"] = {"FormatNameList": format_names(*order[::-1])}
        built = MULTI_QUEUE_FORMAT_HEADER.build({**lists, "Signature": {"Signature": b"signature"}})
        assert built == raw
