"""PROPVARIANT, the counted arrays, BLOB and ULARGE_INTEGER: [MS-MQMQ] 2.2.12 to 2.2.17, in NDR.

The bytes are laid out by hand from the IDL and chapter 14 of C706. A PROPVARIANT has vt at 0, the reserved
members at 2, 3 and 4, the discriminant of its union (vt again, 16 bits) at 8 and the member at 16, the
offset for a 64-bit member. Pointees follow the structure, or the whole array that contains it.
"""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any
from uuid import UUID

import pytest

from msmqwire import InvalidValue, MalformedPacket
from msmqwire.headers import (
    BLOB,
    CACLSID,
    CAL,
    CALPWSTR,
    CAPROPVARIANT,
    CAUB,
    CAUH,
    CAUI,
    CAUL,
    PROPVARIANT,
    ULARGE_INTEGER,
)
from msmqwire.schema import Header
from tests.support import handmade
from tests.support.codec_checks import assert_field, assert_refused, assert_same, nested, proving, requirement

ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
GUID = bytes.fromhex("04030201 0605 0807 090a 0b0c0d0e0f10")  # [MS-DTYP] 2.3.4.2
OTHER_ID, OTHER = UUID(int=1), bytes(15) + b"\1"
REFERENT = bytes.fromhex("00000200")
EMPTY, NULL = 0, 1
LABELS = {0, 1, 2, 3, 11, 16, 17, 18, 19, 20, 21, 31, 65, 72}
LABELS |= {0x1003, 0x100C, 0x1011, 0x1012, 0x1013, 0x1015, 0x101F, 0x1048}


def u32(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}L", *numbers)


def head(vt: int, reserved: tuple[int, int, int] = (0, 0, 0), discriminant: int | None = None) -> bytes:
    """Up to the discriminant, 10 bytes."""
    return struct.pack("<HBBLH", vt, *reserved, vt if discriminant is None else discriminant)


def variant(vt: int, member: bytes, **fields: Any) -> bytes:
    return head(vt, **fields) + bytes(6) + member


def string(text: str) -> bytes:
    """A string that a pointer refers to, padded to the alignment of the next."""
    data = handmade.wide(text)
    return u32(len(data) // 2, 0, len(data) // 2) + data


PADDING = {"Padding", "UnionPadding", "Alignment"}


def bare(value: Any) -> Any:
    """Nested dicts without padding."""
    if isinstance(value, dict):
        return {name: bare(part) for name, part in value.items() if name not in PADDING}
    return [bare(part) for part in value] if isinstance(value, list) else value


def counts(text: str) -> dict[str, Any]:
    return {"MaximumCount": len(text) + 1, "Offset": 0, "ActualCount": len(text) + 1, "String": text}


def array(*items: Any, **more: Any) -> dict[str, Any]:
    return {"MaximumCount": len(items), "Elements": list(items), **more}


def counted(count: int, elements: dict[str, Any]) -> dict[str, Any]:
    return {"cElems": count, "pElems": 0x20000, "Elements": elements}


NUMBERS = [{"Value": number} for number in (1, 2, 3)]

# vt, the union after its padding, its value, the minimal fields to build it
MEMBERS = [
    proving(16, b"\x7f", {"cVal": 127}, None, ids=("MQMQ-2.2.13.1-06", "MQMQ-2.2.12-07"), name="cVal"),
    proving(16, b"\x80", {"cVal": -128}, None, ids=("MQMQ-2.2.13.1-06", "MQMQ-2.2.12-07"), name="cVal-least"),
    proving(17, b"\xff", {"bVal": 255}, None, ids=("MQMQ-2.2.13.1-07", "MQMQ-2.2.12-08"), name="bVal"),
    proving(2, b"\x02\x01", {"iVal": 0x0102}, None, ids=("MQMQ-2.2.13.1-08", "MQMQ-2.2.12-03"), name="iVal"),
    proving(
        2, b"\0\x80", {"iVal": -0x8000}, None, ids=("MQMQ-2.2.13.1-08", "MQMQ-2.2.12-03"), name="iVal-least"
    ),
    proving(
        18, b"\xff\xfe", {"uiVal": 0xFEFF}, None, ids=("MQMQ-2.2.13.1-09", "MQMQ-2.2.12-09"), name="uiVal"
    ),
    proving(
        3,
        b"\x04\x03\x02\x01",
        {"lVal": 0x01020304},
        None,
        ids=("MQMQ-2.2.13.1-10", "MQMQ-2.2.12-04"),
        name="lVal",
    ),
    proving(
        3,
        b"\xfe\xff\xff\xff",
        {"lVal": -2},
        None,
        ids=("MQMQ-2.2.13.1-10", "MQMQ-2.2.12-04"),
        name="lVal-negative",
    ),
    proving(
        19,
        b"\xfe\xff\xff\xff",
        {"ulVal": 0xFFFFFFFE},
        None,
        ids=("MQMQ-2.2.13.1-11", "MQMQ-2.2.12-10"),
        name="ulVal",
    ),
    proving(
        20,
        bytes.fromhex("0807060504030201"),
        {"hVal": 0x0102030405060708},
        None,
        ids=("MQMQ-2.2.13.1-12", "MQMQ-2.2.12-11"),
        name="hVal",
    ),
    proving(
        20,
        b"\xfe" + b"\xff" * 7,
        {"hVal": -2},
        None,
        ids=("MQMQ-2.2.13.1-12", "MQMQ-2.2.12-11"),
        name="hVal-negative",
    ),
    proving(
        21,
        b"\xfe" + b"\xff" * 7,
        {"uhVal": 0xFFFFFFFFFFFFFFFE},
        None,
        ids=("MQMQ-2.2.13.1-13", "MQMQ-2.2.12-12"),
        name="uhVal",
    ),
    proving(
        11,
        b"\xff\xff",
        {"boolVal": -1},
        None,
        ids=("MQMQ-2.2.13.1-14", "MQMQ-2.2.12-05", "MQMQ-2.2.14-01", "MQMQ-2.2.14-03"),
        name="boolVal-true",
    ),
    proving(
        11,
        b"\0\0",
        {"boolVal": 0},
        None,
        ids=("MQMQ-2.2.13.1-14", "MQMQ-2.2.12-05", "MQMQ-2.2.14-02", "MQMQ-2.2.14-03"),
        name="boolVal-false",
    ),
    proving(
        72,
        REFERENT + GUID,
        {"puuid": 0x20000, "Guid": {"Value": ID}},
        {"Guid": {"Value": ID}},
        ids=("MQMQ-2.2.13.1-15", "MQMQ-2.2.12-15"),
        name="puuid",
    ),
    proving(
        65,
        bytes.fromhex("03000000 00000200 03000000 aabbcc"),
        {"cbSize": 3, "pBlobData": 0x20000, "Elements": {"MaximumCount": 3, "Elements": b"\xaa\xbb\xcc"}},
        {"Elements": {"Elements": b"\xaa\xbb\xcc"}},
        ids=("MQMQ-2.2.13.1-16", "MQMQ-2.2.12-14"),
        name="blob",
    ),
    proving(
        31,
        bytes.fromhex("00000200 03000000 00000000 03000000 4800 e900 0000"),
        {"pwszVal": 0x20000, "String": counts("H\xe9")},
        {"String": {"String": "H\xe9"}},
        ids=("MQMQ-2.2.13.1-17", "MQMQ-2.2.12-13"),
        name="pwszVal",
    ),
    proving(
        0x1011,
        bytes.fromhex("03000000 00000200 03000000 010203"),
        counted(3, {"MaximumCount": 3, "Elements": b"\1\2\3"}),
        {"Elements": {"Elements": b"\1\2\3"}},
        ids=("MQMQ-2.2.13.1-18", "MQMQ-2.2.12-16"),
        name="caub",
    ),
    proving(
        0x1012,
        bytes.fromhex("03000000 00000200 03000000 0100 0200 0300"),
        counted(3, array(*NUMBERS)),
        {"Elements": {"Elements": NUMBERS}},
        ids=("MQMQ-2.2.13.1-19", "MQMQ-2.2.12-16"),
        name="caui",
    ),
    proving(
        0x1003,
        bytes.fromhex("02000000 00000200 02000000 01000000 feffffff"),
        counted(2, array({"Value": 1}, {"Value": -2})),
        {"Elements": {"Elements": [{"Value": 1}, {"Value": -2}]}},
        ids=("MQMQ-2.2.13.1-20", "MQMQ-2.2.12-16"),
        name="cal",
    ),
    proving(
        0x1013,
        bytes.fromhex("02000000 00000200 02000000 01000000 feffffff"),
        counted(2, array({"Value": 1}, {"Value": 0xFFFFFFFE})),
        {"Elements": {"Elements": [{"Value": 1}, {"Value": 0xFFFFFFFE}]}},
        ids=("MQMQ-2.2.13.1-21", "MQMQ-2.2.12-16"),
        name="caul",
    ),
    proving(
        0x1015,  # the count ends at 28, so the first element is at 32
        bytes.fromhex("02000000 00000200 02000000 00000000 0100000000000000 0807060504030201"),
        counted(2, array({"QuadPart": 1}, {"QuadPart": 0x0102030405060708})),
        {"Elements": {"Elements": [{"QuadPart": 1}, {"QuadPart": 0x0102030405060708}]}},
        ids=("MQMQ-2.2.13.1-22", "MQMQ-2.2.12-16"),
        name="cauh",
    ),
    proving(
        0x1048,
        bytes.fromhex("02000000 00000200 02000000") + GUID + OTHER,
        counted(2, array({"Value": ID}, {"Value": OTHER_ID})),
        {"Elements": {"Elements": [{"Value": ID}, {"Value": OTHER_ID}]}},
        ids=("MQMQ-2.2.13.1-23", "MQMQ-2.2.12-16"),
        name="cauuid",
    ),
    proving(
        0x101F,  # pointers first, then the strings; the second is aligned to 4
        bytes.fromhex("02000000 00000200 02000000 00000200 00000200")
        + bytes.fromhex("03000000 00000000 03000000 6100 6200 0000 0000")
        + bytes.fromhex("02000000 00000000 02000000 6300 0000"),
        counted(2, array({"pwszVal": 0x20000}, {"pwszVal": 0x20000}, Strings=[counts("ab"), counts("c")])),
        {"Elements": {"Elements": [{}, {}], "Strings": [{"String": "ab"}, {"String": "c"}]}},
        ids=("MQMQ-2.2.13.1-24", "MQMQ-2.2.12-16"),
        name="calpwstr",
    ),
    proving(
        0x100C,  # elements at 32 and 56 (multiples of 8), the string after both
        bytes.fromhex("02000000 00000200 02000000 00000000")
        + variant(31, REFERENT)
        + bytes(4)
        + variant(3, b"\7\0\0\0")
        + bytes.fromhex("02000000 00000000 02000000 6300 0000"),
        counted(
            2,
            array(
                {
                    "vt": 31,
                    "wReserved1": 0,
                    "wReserved2": 0,
                    "wReserved3": 0,
                    "vt_": 31,
                    "_varUnion": {"pwszVal": 0x20000},
                },
                {
                    "vt": 3,
                    "wReserved1": 0,
                    "wReserved2": 0,
                    "wReserved3": 0,
                    "vt_": 3,
                    "_varUnion": {"lVal": 7},
                },
                Pointees=[counts("c"), None],
            ),
        ),
        {
            "Elements": {
                "Elements": [{"vt": 31, "_varUnion": {}}, {"vt": 3, "_varUnion": {"lVal": 7}}],
                "Pointees": [{"String": "c"}, None],
            }
        },
        ids=("MQMQ-2.2.13.1-25", "MQMQ-2.2.12-06", "MQMQ-2.2.12-16"),
        name="capropvar",
    ),
]


@pytest.mark.requirement("MQMQ-5-02")
@requirement("MQMQ-2.2.13.1-01", "MQMQ-2.2.13.1-04", "MQMQ-2.2.13.1-27", "MQMQ-2.2.12.1-01")
@pytest.mark.parametrize("vt, member, value, minimal", MEMBERS)
def test_members(vt: int, member: bytes, value: dict[str, Any], minimal: dict[str, Any] | None) -> None:
    """The discriminant is repeated at 8 and the member is at 16; the value builds the same bytes."""
    data = variant(vt, member)
    record = assert_same(PROPVARIANT, data)
    assert (record.vt, record.vt_) == (vt, vt)
    assert bare(nested(record._varUnion)) == value
    for fields in (value, value if minimal is None else minimal):
        assert PROPVARIANT.build({"vt": vt, "_varUnion": fields}) == data


@pytest.mark.requirement("MQMQ-5-02")
@requirement("MQMQ-2.2.13.1-26")
def test_every_label_has_a_test() -> None:
    tested = {row.values[0] for row in MEMBERS} | {EMPTY, NULL}
    assert tested == LABELS
    assert len(LABELS) == 22


@pytest.mark.parametrize("vt, member, value, least", MEMBERS)
def test_cut_members_are_refused(vt: int, member: bytes, value: Any, least: Any) -> None:
    """Refused where the bytes end, or at the count that asks for more; never elsewhere."""
    data = variant(vt, member)
    for cut in range(len(data)):
        with pytest.raises(MalformedPacket) as caught:
            PROPVARIANT.parse(data[:cut])
        assert caught.value.path.startswith("PROPVARIANT")
        assert caught.value.offset == cut or caught.value.path.endswith(("cElems", "cbSize", "MaximumCount"))
    assert_refused(PROPVARIANT, data + b"\0", "PROPVARIANT", len(data))


@requirement("MQMQ-2.2.13.1-05", "MQMQ-2.2.13.1-01", "MQMQ-2.2.12.1-01")
@pytest.mark.parametrize("vt", [proving(0, ids="MQMQ-2.2.12-01"), proving(1, ids="MQMQ-2.2.12-02")])
def test_types_without_a_member(vt: int) -> None:
    """Only the union's padding follows the discriminant, and it may be missing at the end."""
    data = variant(vt, b"")
    assert PROPVARIANT.build({"vt": vt}) == data
    record = assert_same(PROPVARIANT, data)
    assert (record.vt, record.vt_, record._varUnion) == (vt, vt, None)
    assert_refused(PROPVARIANT, data + b"\0", "PROPVARIANT", 16)
    for cut in range(10, 16):
        short = PROPVARIANT.parse(data[:cut])
        assert PROPVARIANT.build(short) == data[:cut]
        assert bare(nested(short)) == bare(nested(record))


@requirement("MQMQ-2.2.13.1-27")
@pytest.mark.parametrize("vt", [EMPTY, NULL])
def test_padding_before_no_member_moves_pointees(vt: int) -> None:
    """The union is padded even without a member: the string is at 72, not at 68."""
    data = u32(2, 0x20000, 2) + bytes(4) + variant(31, REFERENT) + bytes(4) + variant(vt, b"") + string("x")
    record = assert_same(CAPROPVARIANT, data)
    assert record.Elements.Pointees[0].String == "x"
    elements = [{"vt": 31, "_varUnion": {}}, {"vt": vt}]
    assert (
        CAPROPVARIANT.build({"Elements": {"Elements": elements, "Pointees": [{"String": "x"}, None]}}) == data
    )


@requirement("MQMQ-2.2.13.2-01")
def test_the_name_of_the_type() -> None:
    assert PROPVARIANT.name == "PROPVARIANT"
    assert PROPVARIANT.section == "[MS-MQMQ] 2.2.13.1"


# -- what is refused ---------------------------------------------------------------------------------------


UNLISTED = {
    *range(0x60),
    *range(0xF00, 0x1060),
    *(vt ^ 1 << bit for vt in LABELS for bit in range(16)),
} - LABELS


@requirement("MQMQ-2.2.13.1-26")
@pytest.mark.parametrize("vt", sorted(UNLISTED | {0xFFF, 0xFFFF}), ids=hex)
def test_types_that_the_union_does_not_list_are_refused(vt: int) -> None:
    """Types adjacent to the listed ones are refused, as a peer's RPC layer refuses an invalid tag."""
    assert_refused(PROPVARIANT, variant(vt, bytes(40)), "PROPVARIANT.vt", 0)


@requirement("MQMQ-2.2.13.1-26")
@pytest.mark.parametrize(
    "vt",
    [
        proving(0x1002, name="vector of I2"),
        proving(0x100B, name="vector of bool"),
        proving(0x1014, name="vector of I8"),
        proving(0x1041, name="vector of blobs"),
        proving(0x1010, name="vector of I1"),
        proving(0x1000, name="vector of nothing"),
        proving(0x100C ^ 0x1000, ids="MQMQ-2.2.12-06", name="variant alone"),
        proving(8, name="BSTR"),
    ],
)
def test_types_that_others_know(vt: int) -> None:
    """Plausible types are refused at vt, alone and in an array."""
    assert_refused(PROPVARIANT, variant(vt, bytes(32)), "PROPVARIANT.vt", 0)
    data = u32(1, 0x20000, 1) + bytes(4) + variant(vt, bytes(32))
    assert_refused(CAPROPVARIANT, data, "CAPROPVARIANT.Elements.Elements[0].vt", 16)


@requirement("MQMQ-2.2.13.1-04", "MQMQ-2.2.13.1-27")
@pytest.mark.parametrize("vt", sorted(LABELS))
def test_the_discriminant_is_vt(vt: int) -> None:
    """The union must match vt: any other discriminant is refused at its own path."""
    for other in LABELS - {vt} | {vt ^ 0x8000}:
        data = variant(vt, bytes(40), discriminant=other)
        assert_refused(PROPVARIANT, data, "PROPVARIANT.vt_", 8)


@requirement("MQMQ-2.2.13.1-27")
@pytest.mark.parametrize("cut", range(10))
def test_a_cut_head_is_refused_where_it_ends(cut: int) -> None:
    starts = {"vt": 0, "wReserved1": 2, "wReserved2": 3, "wReserved3": 4, "vt_": 8}
    name = [name for name, start in starts.items() if start <= cut][-1]
    assert_refused(PROPVARIANT, head(3)[:cut], f"PROPVARIANT.{name}", cut)


# -- reserved members and padding --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("wReserved1", 2, b"\xff", 255, ids="MQMQ-2.2.13.1-02"),
        proving("wReserved2", 3, b"\x01", 1, ids="MQMQ-2.2.13.1-02"),
        proving("wReserved3", 4, b"\x04\x03\x02\x01", 0x01020304, ids="MQMQ-2.2.13.1-03"),
        proving("wReserved3", 4, b"\xff\xff\xff\xff", 0xFFFFFFFF, ids="MQMQ-2.2.13.1-03", name="max"),
    ],
)
def test_reserved_members_are_kept_and_ignored(path: str, offset: int, data: bytes, value: int) -> None:
    for base in (variant(3, b"\7\0\0\0"), variant(31, REFERENT + string("x"))):
        assert_field(PROPVARIANT, base, path, offset, data, value)
    assert PROPVARIANT.build({"vt": 3, "_varUnion": {"lVal": 7}})[2:8] == bytes(6)


@requirement("MQMQ-2.2.13.1-27")
def test_padding_may_hold_anything() -> None:
    """Padding octets have no meaning in NDR: preserved when parsed, 0 by default."""
    data = head(3) + b"\xaa" * 6 + b"\7\0\0\0"
    record = assert_same_bytes(PROPVARIANT, data)
    assert record._varUnion.lVal == 7
    array = u32(1, 0x20000, 1) + b"\xbb" * 4 + variant(3, b"\7\0\0\0")
    assert assert_same_bytes(CAPROPVARIANT, array).Elements.Elements[0]._varUnion.lVal == 7


def assert_same_bytes(schema: Header, data: bytes) -> Any:
    """Like `assert_same`, for values that JSON cannot represent."""
    record = schema.parse(data)
    assert schema.build(record) == schema.build(nested(record)) == data
    return record


# -- VARIANT_BOOL ------------------------------------------------------------------------------------------


@requirement("MQMQ-2.2.14-03")
@pytest.mark.parametrize(
    "value, data",
    [
        proving(-1, b"\xff\xff", ids="MQMQ-2.2.14-01"),
        proving(0, b"\0\0", ids="MQMQ-2.2.14-02"),
        proving(1, b"\1\0"),
        proving(-0x8000, b"\0\x80"),
        proving(0x7FFF, b"\xff\x7f"),
    ],
)
def test_variant_bool(value: int, data: bytes) -> None:
    """A signed 16-bit number: TRUE is -1, all ones; other values are preserved."""
    assert PROPVARIANT.build({"vt": 11, "_varUnion": {"boolVal": value}}) == variant(11, data)
    assert assert_same(PROPVARIANT, variant(11, data))._varUnion.boolVal == value


@requirement("MQMQ-2.2.14-01", "MQMQ-2.2.14-03")
@pytest.mark.parametrize("value", [0xFFFF, 0x8000, -0x8001])
def test_values_beyond_a_short_are_refused(value: int) -> None:
    with pytest.raises(InvalidValue) as caught:
        PROPVARIANT.build({"vt": 11, "_varUnion": {"boolVal": value}})
    assert (caught.value.path, caught.value.offset) == ("PROPVARIANT._varUnion.boolVal", 16)


# -- counted arrays by themselves --------------------------------------------------------------------------

# structure, count, elements after MaximumCount (at 12), their values
ARRAYS = [
    proving(CAUB, b"\1\xff", b"\1\xff", ids="MQMQ-2.2.16.1-01", name="CAUB"),
    proving(CAUI, b"\1\0\xff\xff", [{"Value": 1}, {"Value": 0xFFFF}], ids="MQMQ-2.2.16.2-01", name="CAUI"),
    proving(
        CAL,
        b"\1\0\0\0\xff\xff\xff\xff",
        [{"Value": 1}, {"Value": -1}],
        ids="MQMQ-2.2.16.3-01",
        name="CAL",
    ),
    proving(
        CAUL,
        b"\1\0\0\0\xff\xff\xff\xff",
        [{"Value": 1}, {"Value": 0xFFFFFFFF}],
        ids="MQMQ-2.2.16.4-01",
        name="CAUL",
    ),
    proving(
        CAUH,  # 64-bit elements begin at 16
        bytes(4) + b"\1" + bytes(7) + b"\xff" * 8,
        [{"QuadPart": 1}, {"QuadPart": 0xFFFFFFFFFFFFFFFF}],
        ids=("MQMQ-2.2.16.5-01", "MQMQ-2.2.17-01"),
        name="CAUH",
    ),
    proving(
        CACLSID, GUID + OTHER, [{"Value": ID}, {"Value": OTHER_ID}], ids="MQMQ-2.2.16.6-01", name="CACLSID"
    ),
    proving(
        CALPWSTR,  # the pointers at 12, the strings at 20 and 36 (34 aligned to 4)
        bytes.fromhex("00000200 04000200") + string("") + bytes(2) + string("c"),
        [{"pwszVal": 0x20000}, {"pwszVal": 0x20004}],
        ids="MQMQ-2.2.16.7-01",
        name="CALPWSTR",
    ),
    proving(
        CAPROPVARIANT,  # at 16 and 40 (36 aligned to 8)
        bytes(4) + variant(3, b"\7\0\0\0") + bytes(4) + variant(17, b"\5"),
        [
            {"vt": vt, "wReserved1": 0, "wReserved2": 0, "wReserved3": 0, "vt_": vt, "_varUnion": union}
            for vt, union in ((3, {"lVal": 7}), (17, {"bVal": 5}))
        ],
        ids="MQMQ-2.2.16.8-01",
        name="CAPROPVARIANT",
    ),
]
REFUSED_COUNTS = [3, 0x100, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


@requirement("MQMQ-2.2.16-01")
@pytest.mark.parametrize("schema, data, elements", ARRAYS)
def test_arrays(schema: Header, data: bytes, elements: Any) -> None:
    """cElems, a referent id, MaximumCount, the elements; the count is filled in."""
    array_bytes = u32(2, 0x20000, 2) + data
    record = assert_same(schema, array_bytes)
    assert (record.cElems, record.pElems, record.Elements.MaximumCount) == (2, 0x20000, 2)
    assert bare(nested(record.Elements.Elements)) == elements
    fields = {**bare(nested(record.Elements)), "Elements": elements}
    assert schema.build({"Elements": fields}) == array_bytes


@requirement("MQMQ-2.2.16.7-01")
def test_strings_of_an_array() -> None:
    fields = {"Elements": {"Elements": [{}, {}], "Strings": [{"String": ""}, {"String": "c"}]}}
    data = u32(2, 0x20000, 2, 0x20000, 0x20000) + string("") + bytes(2) + string("c")
    assert CALPWSTR.build(fields) == data
    assert [pointee.String for pointee in CALPWSTR.parse(data).Elements.Strings] == ["", "c"]


@requirement("MQMQ-2.2.16-01")
@pytest.mark.parametrize("schema, data, elements", ARRAYS)
@pytest.mark.parametrize("maximum", [0, 1, 3, 0xFFFFFFFF])
def test_the_conformance_is_the_count(schema: Header, data: bytes, elements: Any, maximum: int) -> None:
    """[size_is(cElems)]: an array with a different element count is refused there."""
    array_bytes = u32(2, 0x20000, maximum) + data + bytes(32)
    assert_refused(schema, array_bytes, f"{schema.name}.Elements.MaximumCount", 8)


@requirement("MQMQ-2.2.16-01")
@pytest.mark.parametrize("schema, data, elements", ARRAYS)
@pytest.mark.parametrize("count", REFUSED_COUNTS)
def test_counts_past_the_end_are_refused(schema: Header, data: bytes, elements: Any, count: int) -> None:
    """Refused at the count, before anything is allocated for so many elements."""
    array_bytes = u32(count, 0x20000, count) + data
    if schema in (CAPROPVARIANT, CALPWSTR) and count == 3:  # there is room for three; the third is truncated
        with pytest.raises(MalformedPacket):
            schema.parse(array_bytes)
        return
    assert_refused_at_once(schema, array_bytes, f"{schema.name}.cElems", 0)


def assert_refused_at_once(schema: Header, data: bytes, path: str, offset: int) -> None:
    """Refused there without using much memory."""
    with pytest.raises(MalformedPacket):
        schema.parse(data)  # so that the generated code is already compiled
    tracemalloc.start()
    try:
        assert_refused(schema, data, path, offset)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000


@requirement("MQMQ-2.2.16-01")
@pytest.mark.parametrize("schema", [row.values[0] for row in ARRAYS], ids=lambda schema: schema.name)
@pytest.mark.parametrize("count", [0, 1, 0xFFFFFFFF])
def test_null_arrays(schema: Header, count: int) -> None:
    """Referent id 0: no elements, whatever the count says."""
    record = assert_same(schema, u32(count, 0))
    assert (record.cElems, record.pElems, record.Elements) == (count, 0, None)
    assert schema.build({"cElems": count}) == u32(count, 0)


@requirement("MQMQ-2.2.16-01")
@pytest.mark.parametrize("schema", [row.values[0] for row in ARRAYS], ids=lambda schema: schema.name)
def test_empty_arrays(schema: Header) -> None:
    """A pointer to an empty array is not a null pointer."""
    data = schema.build({"Elements": {}})
    assert data[:12] == u32(0, 0x20000, 0)
    assert data[12:] in (b"", bytes(4))  # it is open whether absent 64-bit elements are aligned
    assert len(assert_same(schema, data).Elements.Elements) == 0


@pytest.mark.parametrize("schema, data, elements", ARRAYS)
def test_cut_arrays(schema: Header, data: bytes, elements: Any) -> None:
    array_bytes = u32(2, 0x20000, 2) + data
    names = ("cElems", "pElems", "Elements.MaximumCount")
    for cut in range(12):
        assert_refused(schema, array_bytes[:cut], f"{schema.name}.{names[cut // 4]}", cut)
    for cut in range(12, len(array_bytes)):
        with pytest.raises(MalformedPacket) as caught:
            schema.parse(array_bytes[:cut])
        blamed = (caught.value.path, caught.value.offset)
        assert blamed == (f"{schema.name}.cElems", 0) or (
            blamed[0].startswith(f"{schema.name}.Elements.") and 12 <= (blamed[1] or 0) <= cut
        )
    assert_refused(schema, array_bytes + b"\0", schema.name, len(array_bytes))


# -- BLOB and ULARGE_INTEGER -------------------------------------------------------------------------------


@requirement("MQMQ-2.2.15-01")
def test_blob() -> None:
    """cbSize, a pointer, and as many bytes as both counts state."""
    data = bytes.fromhex("03000000 00000200 03000000 aabbcc")
    record = assert_same(BLOB, data)
    assert (record.cbSize, record.pBlobData) == (3, 0x20000)
    assert (record.Elements.MaximumCount, record.Elements.Elements) == (3, b"\xaa\xbb\xcc")
    assert BLOB.build({"Elements": {"Elements": b"\xaa\xbb\xcc"}}) == data
    assert BLOB.build({}) == bytes(8)
    for maximum in (0, 2, 4):
        assert_refused(BLOB, u32(3, 0x20000, maximum) + b"\xaa\xbb\xcc\xdd", "BLOB.Elements.MaximumCount", 8)
    for size in (4, 0x80000000, 0xFFFFFFFF):
        assert_refused_at_once(BLOB, u32(size, 0x20000, size) + b"\xaa\xbb\xcc", "BLOB.cbSize", 0)
    assert_refused(BLOB, data + b"\0", "BLOB", 15)


@requirement("MQMQ-2.2.17-01")
@pytest.mark.parametrize("value", [0, 1, 0x0102030405060708, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF])
def test_ularge_integer(value: int) -> None:
    data = struct.pack("<Q", value)
    assert assert_same(ULARGE_INTEGER, data).QuadPart == value
    assert ULARGE_INTEGER.build({"QuadPart": value}) == data
    assert_refused(ULARGE_INTEGER, data[:7], "ULARGE_INTEGER.QuadPart", 7)
    assert_refused(ULARGE_INTEGER, data + b"\0", "ULARGE_INTEGER", 8)


# -- pointers ----------------------------------------------------------------------------------------------


@requirement("MQMQ-2.2.13.1-27")
@pytest.mark.parametrize(
    "vt, member, target",
    [
        proving(31, bytes(4), "String", ids="MQMQ-2.2.13.1-17", name="pwszVal"),
        proving(72, bytes(4), "Guid", ids="MQMQ-2.2.13.1-15", name="puuid"),
        proving(65, bytes(8), "Elements", ids="MQMQ-2.2.13.1-16", name="blob"),
        proving(0x1011, bytes(8), "Elements", ids="MQMQ-2.2.13.1-18", name="caub"),
        proving(0x100C, bytes(8), "Elements", ids="MQMQ-2.2.13.1-25", name="capropvar"),
    ],
)
def test_null_pointers(vt: int, member: bytes, target: str) -> None:
    record = assert_same(PROPVARIANT, variant(vt, member))
    assert record._varUnion[target] is None
    assert PROPVARIANT.build({"vt": vt, "_varUnion": {target: None}}) == variant(vt, member)


@requirement("MQMQ-2.2.13.1-27")
@pytest.mark.parametrize("referent", [1, 0x20004, 0xFFFFFFFF])
def test_any_referent_id_points_to_something(referent: int) -> None:
    record = assert_same(PROPVARIANT, variant(72, u32(referent) + GUID))
    assert (record._varUnion.puuid, record._varUnion.Guid.Value) == (referent, ID)


@requirement("MQMQ-2.2.13.1-17")
@pytest.mark.parametrize("count", [4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_string_counts_past_the_end(count: int) -> None:
    data = variant(31, REFERENT + u32(count, 0, count) + handmade.wide("ab"))
    assert_refused_at_once(PROPVARIANT, data, "PROPVARIANT._varUnion.String.MaximumCount", 20)


@requirement("MQMQ-2.2.16.7-01")
def test_null_strings_in_an_array() -> None:
    """A null pointer has no string; the others keep their order."""
    data = u32(3, 0x20000, 3, 0x20000, 0, 0x20000) + string("a") + string("b")
    record = assert_same(CALPWSTR, data)
    assert [None if text is None else text.String for text in record.Elements.Strings] == ["a", None, "b"]
    strings = [{"String": "a"}, None, {"String": "b"}]
    assert CALPWSTR.build({"Elements": {"Elements": [{}, {"pwszVal": 0}, {}], "Strings": strings}}) == data
    assert_refused(CALPWSTR, data[:40], "CALPWSTR.Elements.Strings[2].MaximumCount", 40)
    huge = data[:40] + u32(0x40000000, 0, 0x40000000)
    assert_refused_at_once(CALPWSTR, huge, "CALPWSTR.Elements.Strings[2].MaximumCount", 40)


# -- arrays of variants ------------------------------------------------------------------------------------


@requirement("MQMQ-2.2.16.8-01", "MQMQ-2.2.13.1-25")
def test_pointees_follow_the_array_in_the_order_of_its_elements() -> None:
    """Variants with and without pointers, then the pointees, each aligned separately."""
    elements = [
        variant(31, u32(0x20000)) + bytes(4),
        variant(65, u32(3, 0x20004)),
        variant(2, b"\xff\xff") + bytes(6),
        variant(72, u32(0x20008)) + bytes(4),
        variant(0x1015, u32(1, 0x2000C)),
        variant(0x101F, u32(2, 0x20010)),
        variant(31, u32(0)),
    ]
    data = u32(7, 0x20000, 7) + bytes(4) + b"".join(elements)
    assert len(data) == 16 + 6 * 24 + 20
    pointees = [
        string("a"),
        u32(3) + b"\1\2\3" + bytes(1),
        GUID,
        u32(1),
        struct.pack("<Q", 5),
        u32(2, 0x20000, 0x20004) + string("b") + string("c"),
    ]
    data += b"".join(pointees[:3])
    assert len(data) % 8 == 4  # the count brings the number to a multiple of 8: no gap
    data += b"".join(pointees[3:])
    array = assert_same(CAPROPVARIANT, data).Elements
    assert [element.vt for element in array.Elements] == [31, 65, 2, 72, 0x1015, 0x101F, 31]
    values = [bare(nested(pointee)) for pointee in array.Pointees]
    assert values == [
        counts("a"),
        {"MaximumCount": 3, "Elements": b"\1\2\3"},
        None,
        {"Value": ID},
        {"MaximumCount": 1, "Elements": [{"QuadPart": 5}]},
        {
            "MaximumCount": 2,
            "Elements": [{"pwszVal": 0x20000}, {"pwszVal": 0x20004}],
            "Strings": [counts("b"), counts("c")],
        },
        None,
    ]


@requirement("MQMQ-2.2.16.8-01")
def test_a_64_bit_array_in_an_array_is_aligned() -> None:
    """The same array after another pointee: now there is a gap between its count and its elements."""
    data = u32(2, 0x20000, 2) + bytes(4) + variant(0x1011, u32(4, 0x20000)) + variant(0x1015, u32(1, 0x20000))
    data += u32(4) + b"\1\2\3\4" + u32(1) + bytes(4) + struct.pack("<Q", 5)
    array = assert_same(CAPROPVARIANT, data).Elements
    assert bare(nested(array.Pointees[1])) == {"MaximumCount": 1, "Elements": [{"QuadPart": 5}]}
    elements = [{"vt": 0x1011, "_varUnion": {}}, {"vt": 0x1015, "_varUnion": {}}]
    pointees = [{"Elements": b"\1\2\3\4"}, {"Elements": [{"QuadPart": 5}]}]
    assert CAPROPVARIANT.build({"Elements": {"Elements": elements, "Pointees": pointees}}) == data


@requirement("MQMQ-2.2.16.8-01")
def test_pointees_of_pointees_come_before_the_next_pointee() -> None:
    """[[ "a" ], "b"]: the inner array with its string, then the outer array's string."""
    data = u32(2, 0x20000, 2) + bytes(4)
    data += variant(0x100C, u32(1, 0x20000)) + variant(31, REFERENT)  # at 16 and 40, up to 60
    data += u32(1) + variant(31, REFERENT) + string("a") + string("b")  # the inner array is at 64
    record = assert_same(CAPROPVARIANT, data)
    inner, outer = record.Elements.Pointees
    assert inner.Pointees[0].String == "a"
    assert outer.String == "b"


def nested_arrays(depth: int) -> bytes:
    """A PROPVARIANT of nested one-element vectors around an empty vector of bytes."""
    vector = variant(0x100C, u32(1, 0x20000)) + u32(1) + bytes(4)  # 24 bytes, the count and padding
    return vector * depth + variant(0x1011, u32(0, 0x20000)) + u32(0)


@requirement("MQMQ-2.2.16.8-01")
@pytest.mark.parametrize("depth", range(4))
def test_nesting(depth: int) -> None:
    record = assert_same(PROPVARIANT, nested_arrays(depth))
    assert record.vt == (0x100C if depth else 0x1011)


@requirement("MQMQ-2.2.16.8-01")
@pytest.mark.parametrize("depth", [4, 5, 100, 100_000])
def test_nesting_has_a_limit(depth: int) -> None:
    """Three nested vectors of variants are accepted; a fourth is refused at its vt."""
    path = "PROPVARIANT._varUnion.Elements.Pointees[0].Pointees[0].Elements[0].vt"
    assert_refused(PROPVARIANT, nested_arrays(depth), path, 96)


@requirement("MQMQ-2.2.16-01", "MQMQ-2.2.15-01")
@pytest.mark.parametrize("vt", [65, 0x1003, 0x100C, 0x1011, 0x1012, 0x1013, 0x1015, 0x101F, 0x1048])
@pytest.mark.parametrize("maximum", [0, 2])
def test_the_conformance_in_an_array_is_the_count(vt: int, maximum: int) -> None:
    """As for a separate array: the count is in the element, here 40 bytes before the array."""
    data = u32(1, 0x20000, 1) + bytes(4) + variant(vt, u32(1, 0x20000)) + u32(maximum)
    data += bytes(4) if vt in (0x1015, 0x100C) else b""
    data += bytes({65: 1, 0x1011: 1, 0x1012: 2, 0x1048: 16, 0x1015: 8, 0x100C: 16}.get(vt, 4) * maximum)
    with pytest.raises(MalformedPacket) as caught:
        CAPROPVARIANT.parse(data)
    assert (caught.value.path, caught.value.offset) == ("CAPROPVARIANT.Elements.Pointees[0].MaximumCount", 40)


@requirement("MQMQ-2.2.16.8-01")
@pytest.mark.parametrize("count", [0x10000, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("vt", [65, 0x100C, 0x1011, 0x1013, 0x1015, 0x101F, 0x1048])
def test_counts_past_the_end_in_an_array(vt: int, count: int) -> None:
    data = u32(1, 0x20000, 1) + bytes(4) + variant(vt, u32(count, 0x20000)) + u32(count) + bytes(64)
    assert_refused_at_once(CAPROPVARIANT, data, "CAPROPVARIANT.Elements.Pointees[0].MaximumCount", 40)


# -- values that can't be built ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, path, offset",
    [
        ({"vt": 0x10000}, "PROPVARIANT.vt", 0),
        ({"vt": 16, "_varUnion": {"cVal": 128}}, "PROPVARIANT._varUnion.cVal", 16),
        ({"vt": 17, "_varUnion": {"bVal": -1}}, "PROPVARIANT._varUnion.bVal", 16),
        ({"vt": 3, "_varUnion": {"lVal": 0x80000000}}, "PROPVARIANT._varUnion.lVal", 16),
        ({"vt": 20, "_varUnion": {"hVal": 1 << 63}}, "PROPVARIANT._varUnion.hVal", 16),
        ({"vt": 21, "_varUnion": {"uhVal": 1 << 64}}, "PROPVARIANT._varUnion.uhVal", 16),
        ({"vt": 72, "_varUnion": {"Guid": {"Value": "no"}}}, "PROPVARIANT._varUnion.Guid.Value", 20),
        ({"vt": 31, "_varUnion": {"String": {"String": 5}}}, "PROPVARIANT._varUnion.String.String", 32),
        ({"_varUnion": {"dblVal": 1}}, "PROPVARIANT._varUnion", 16),
        ({"wReserved3": 1 << 32}, "PROPVARIANT.wReserved3", 4),
    ],
)
def test_values_that_do_not_fit(value: dict[str, Any], path: str, offset: int) -> None:
    with pytest.raises(InvalidValue) as caught:
        PROPVARIANT.build(value)
    assert (caught.value.path, caught.value.offset) == (path, offset)


def test_a_pointee_without_a_pointer_is_refused() -> None:
    with pytest.raises(InvalidValue) as caught:
        CAPROPVARIANT.build(
            {
                "Elements": {
                    "Elements": [{"vt": 3, "_varUnion": {"lVal": 1}}],
                    "Pointees": [{"String": "a"}],
                }
            }
        )
    assert caught.value.path == "CAPROPVARIANT.Elements.Pointees[0]"
