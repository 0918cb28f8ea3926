"""Bodies of BinaryMessageFormatter: records of [MS-NRBF] read to plain data."""

from __future__ import annotations

import base64
import json
import struct
import tracemalloc
from itertools import combinations

import pytest

from msmqwire.bodies import Limits, decode, nrbf, plain
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.nrbf.gadgets import GADGETS, dangerous, type_names
from msmqwire.bodies.nrbf.records import Binary, Primitive, Record
from msmqwire.errors import MalformedBody
from tests.support.codec_checks import proving
from tests.support.nrbf_streams import (
    END,
    NULL,
    SHOP,
    array,
    header,
    int32,
    klass,
    library,
    nulls,
    objects,
    order,
    primitives,
    ref,
    same,
    stream,
    string,
    strings,
    text,
    typed,
    untyped,
    with_code,
)
from tests.support.paths import VECTORS

INT32 = Primitive.INT32
CORE = "System.Runtime.Remoting.Messaging.LogicalCallContext"


def read(body, limits=DEFAULT):
    return nrbf.read(body, Budget(limits, len(body)))


def value(*records, root=1):
    """The value of a stream without problems."""
    content = read(stream(*records, root=root))
    assert content.problems == ()
    return content.value


def problems(*records, root=1):
    content = read(stream(*records, root=root))
    return content.value, [(problem.path, problem.offset, problem.error) for problem in content.problems]


def vector(name):
    return bytes.fromhex((VECTORS / "bodies" / name).read_text())


ADDRESS = {
    "$type": "DOJRemotingMetadata.Address, DOJRemotingMetadata, Version=1.0.2622.31326, Culture=neutral, "
    "PublicKeyToken=null",
    "$id": 2,
    "Street": "One Microsoft Way",
    "City": "Redmond",
    "State": "WA",
    "Zip": "98054",
}


@pytest.mark.requirement(
    "NRBF-2.2.3.1-01",
    "NRBF-2.3.2.1-01",
    "NRBF-2.4.3.2-01",
    "NRBF-2.5.3-01",
    "NRBF-2.5.7-01",
    "NRBF-2.6.1-03",
    "NRBF-2.6.2-01",
    "NRBF-2.6.3-01",
    "NRBF-2.3-01",
    "NRBF-2.3-02",
)
def test_the_printed_call():
    content = read(vector("nrbf_methodcall.hex"))
    assert content.problems == ()
    assert content.value == {
        "$call": "SendAddress",
        "type": "DOJRemotingMetadata.MyServer, DOJRemotingMetadata, Version=1.0.2622.31326, Culture=neutral, "
        "PublicKeyToken=null",
        "args": [ADDRESS],
        "context": None,
    }


@pytest.mark.requirement("NRBF-2.2.3.3-01", "NRBF-2.2.3.3-03", "NRBF-2.6.1-04")
def test_the_printed_return():
    content = read(vector("nrbf_methodreturn.hex"))
    assert content.problems == ()
    assert content.value == {"$return": "Address received"}


def test_an_order():
    content = decode(order(2), body_type=0x300)
    assert content.format == "nrbf"
    assert content.problems == ()
    items = content.value["Items"]
    assert content.value["$type"] == f"Shop.Order, {SHOP}"
    assert content.value["Status"] == {"$type": f"Shop.Status, {SHOP}", "$id": -6, "value__": 2}
    assert content.value["Created"] == {"$date": "2026-07-04T04:00:00.123456700", "$kind": "local"}
    assert content.value["Total"] == {"$decimal": "1299.50"}
    assert items["$type"] == f"System.Collections.Generic.List`1[[Shop.Item, {SHOP}]]"
    assert [(item["$id"], item["Article"]) for item in items["_items"]] == [
        (9, "A-1000 screws, box of 100"),
        (10, "A-1001 screws, box of 100"),
    ]


def test_a_text_and_a_primitive_value_are_their_own_line():
    assert read(stream(string(1, "order 7"))).text == "order 7"
    boxed = klass(1, "System.Int32", [("m_value", Binary.PRIMITIVE, INT32)]) + int32(5)
    assert read(stream(boxed)).text == "5"
    assert value(boxed) == {"$type": "System.Int32", "$id": 1, "m_value": 5}


def test_gadgets_are_found_wherever_a_stream_names_them():
    name = "System.Windows.Data.ObjectDataProvider"
    inner = stream(klass(1, name, []))
    delegate = [("type", Binary.STRING), ("assembly", Binary.STRING)]
    for body in (
        inner,
        stream(klass(1, "A", [("b", Binary.SYSTEM_CLASS, name)]), NULL),
        stream(array(1, 0, [0], Binary.SYSTEM_CLASS, name)),
        stream(klass(1, f"System.Collections.Generic.List`1[[{name}, PresentationFramework]]", [])),
        stream(klass(1, "System.UnitySerializationHolder", delegate), string(2, name), string(3, "x")),
        stream(objects(1, 1), string(2, f"{name}, PresentationFramework, Version=4.0.0.0")),
        stream(objects(1, 1), string(2, f"{name}, PresentationFramework")),
        stream(objects(1, 1), string(2, base64.b64encode(inner).decode())),
        stream(objects(1, 1), string(2, f'<a msdata:DataType="{name}, PresentationFramework"/>')),
        stream(primitives(1, Primitive.BYTE, list(inner))),
        stream(klass(1, name, []))[:-1] + b"\x30",
        header() + b"\x30" + name.encode(),
    ):
        assert dangerous(type_names(body)) == [(name, GADGETS[name])]


def test_a_delegate_lists_the_types_that_its_entries_name():
    entry = "System.DelegateSerializationHolder+DelegateEntry"
    names = ("type", "assembly", "targetTypeAssembly", "targetTypeName", "methodName")
    kind = "System.Func`2[[System.String, mscorlib],[System.Diagnostics.Process, System, Version=4.0.0.0]]"
    texts = (kind, "mscorlib", "System, Version=4.0.0.0", "System.Diagnostics.Process", "Start")
    body = stream(
        klass(1, "System.DelegateSerializationHolder", [("Delegate", Binary.SYSTEM_CLASS, entry)]),
        klass(2, entry, [(name, Binary.STRING) for name in names]),
        *(string(3 + number, text) for number, text in enumerate(texts)),
    )
    assert type_names(body) == (
        "System.DelegateSerializationHolder", entry, kind, "System.Diagnostics.Process",
    )  # fmt: skip
    assert [name for name, _ in dangerous(type_names(body))] == [
        "System.DelegateSerializationHolder", entry, "System.Diagnostics.Process",
    ]  # fmt: skip


def test_ordinary_bodies_name_no_gadget():
    assert type_names(order()) == (
        "Shop.Order",
        "Shop.Status",
        f"System.Collections.Generic.List`1[[Shop.Item, {SHOP}]]",
        "Shop.Item[]",
        "Shop.Item",
    )
    assert dangerous(type_names(order())) == []
    assert type_names(b"") == type_names(b"text" * 10) == ()


def test_a_text_that_speaks_of_a_type_names_none():
    assert type_names(stream(objects(1, 1), string(2, "Smith, John"))) == ()
    assert type_names(stream(string(1, "Version, Culture=what it is"))) == ()
    assert type_names(stream(string(1, "System.Diagnostics.Process has ended, sorry"))) == ()


# -- primitive values and texts --


def boxed(kind, data):
    """The value of an only item, as a bare value in an array."""
    content = read(stream(array(1, 0, [1], Binary.PRIMITIVE, kind), data))
    return content.value, [(problem.path, problem.offset, problem.error) for problem in content.problems]


OF_KINDS = {
    3: "NRBF-2.1.1.1-01",
    5: ("NRBF-2.1.1.7-01", "NRBF-2.1.1.7-03"),
    11: "NRBF-2.1.1.3-01",
    12: "NRBF-2.1.1.4-01",
    13: "NRBF-2.1.1.5-01",
}
VALUES = [
    (1, b"\x01", True),
    (1, b"\x00", False),
    (3, b"a", "a"),
    (3, "ß".encode(), "ß"),
    (3, "€".encode(), "€"),
    *((3, each.encode(), each) for each in ("\x7f", "\x80", "\u07ff", "\u0800", "\uffff")),
    (5, text("-1.50"), {"$decimal": "-1.50"}),
    (5, text("79228162514264337593543950335"), {"$decimal": "79228162514264337593543950335"}),
    (6, struct.pack("<d", 0.1), 0.1),
    (6, struct.pack("<d", float("nan")), {"$float": "NaN"}),
    (6, struct.pack("<d", float("-inf")), {"$float": "-INF"}),
    (7, b"\xfe\xff", -2),
    (8, b"\0\0\0\x80", -(1 << 31)),
    (9, struct.pack("<q", 1 << 53), 1 << 53),
    (9, struct.pack("<q", -(1 << 53) - 1), {"$decimal": "-9007199254740993"}),
    (10, b"\x80", -128),
    (11, struct.pack("<f", 0.1), 0.1),
    (11, bytes.fromhex("01000000"), 1e-45),  # the smallest Single, and the largest that is not normal
    (11, bytes.fromhex("ffff7f00"), 1.1754942e-38),
    (11, bytes.fromhex("00008000"), 1.1754944e-38),
    (11, bytes.fromhex("ffff7f7f"), 3.4028235e38),
    (11, bytes.fromhex("43e96437"), 1.36441695e-05),  # nine digits
    (11, struct.pack("<f", float("inf")), {"$float": "INF"}),
    (12, struct.pack("<q", 0), {"$timespan": "PT0S"}),
    (12, struct.pack("<q", 26 * 36_000_000_000), {"$timespan": "P1DT2H"}),
    (12, struct.pack("<q", -15), {"$timespan": "-PT0.0000015S"}),
    (12, struct.pack("<q", -(1 << 63)), {"$timespan": "-P10675199DT2H48M5.4775808S"}),
    (12, struct.pack("<q", 864_000_000_000), {"$timespan": "P1D"}),
    (13, struct.pack("<Q", 0), {"$date": "0001-01-01T00:00:00.000000000"}),
    (
        13,
        struct.pack("<Q", 3_155_378_975_999_999_999 | 1 << 62),
        {"$date": "9999-12-31T23:59:59.999999900Z"},
    ),
    (
        13,
        struct.pack("<Q", 639_187_344_001_234_567 | 2 << 62),
        {"$date": "2026-07-04T04:00:00.123456700", "$kind": "local"},
    ),
    # The hour that comes twice: .NET writes the kind 3, which the text does not have.
    (
        13,
        struct.pack("<Q", 639_187_344_001_234_567 | 3 << 62),
        {"$date": "2026-07-04T04:00:00.123456700", "$kind": "local"},
    ),
    (14, b"\xfe\xff", 65534),
    (15, b"\xff" * 4, (1 << 32) - 1),
    (16, b"\xff" * 8, {"$decimal": "18446744073709551615"}),
]


@pytest.mark.requirement("NRBF-2.1.2.3-01", "NRBF-2.5.2-01")
@pytest.mark.parametrize(
    "kind, data, expected", [proving(*one, ids=OF_KINDS.get(one[0], ())) for one in VALUES]
)
def test_primitive_values(kind, data, expected):
    assert boxed(Primitive(kind), data) == ([expected], [])


@pytest.mark.requirement("NRBF-2.1.1.7-01", "NRBF-2.1.1.7-03")
@pytest.mark.parametrize(
    "junk, why",
    [
        ("", "'' is not a decimal"),
        ("1.", "'1.' is not a decimal"),
        (".5", "'.5' is not a decimal"),
        ("+1", "'+1' is not a decimal"),
        ("1e5", "'1e5' is not a decimal"),
        ("\u0661", "'\u0661' is not a decimal"),
        ("79228162514264337593543950336", "79228162514264337593543950336 is beyond the range of a decimal"),
        ("-" + "9" * 60, "-" + "9" * 39 + " is beyond the range of a decimal"),
    ],
)
def test_junk_of_decimals_is_a_problem_and_kept_as_text(junk, why):
    value, found = boxed(Primitive.DECIMAL, text(junk))
    assert value == [junk]
    assert [(path, error) for path, _, error in found] == [("[0]", why)]


@pytest.mark.requirement("NRBF-2.1.1.7-02")
@pytest.mark.parametrize(
    "digits, rounded",
    [
        ("1." + "3" * 40, "1." + "3" * 28),
        ("1." + "6" * 29, "1." + "6" * 27 + "7"),
        ("-0." + "6" * 29, "-0." + "6" * 27 + "7"),
        ("9." + "9" * 40, "10." + "0" * 27),
        ("0." + "0" * 40 + "1", "0." + "0" * 28),
        ("12345678901234567890123456789.5", "12345678901234567890123456790"),
        ("12345678901234567890123456788.5", "12345678901234567890123456788"),
    ],
)
def test_decimals_of_more_digits_are_rounded(digits, rounded):
    assert boxed(Primitive.DECIMAL, text(digits)) == ([{"$decimal": rounded}], [])


def test_times_behind_the_year_9999_are_a_problem():
    raw = 3_155_378_976_000_000_000
    value, found = boxed(Primitive.DATE_TIME, struct.pack("<Q", raw))
    assert value == [{"$decimal": str(raw)}]
    assert found[0][1:] == (33, f"{raw} ticks are later than the year 9999")


def test_a_converted_member_that_is_junk_has_its_name_and_offset():
    members = [("a", Binary.PRIMITIVE, INT32), ("b", Binary.PRIMITIVE, Primitive.DATE_TIME)]
    body = stream(klass(1, "T", members), int32(5), struct.pack("<Q", (1 << 62) - 1))
    content = read(body)
    assert content.value["a"] == 5
    assert [(problem.path, problem.offset) for problem in content.problems] == [("b", len(body) - 9)]


@pytest.mark.requirement("NRBF-2.1.1.6-01", "NRBF-2.1.1.6-02", "NRBF-2.1.1.6-03", "NRBF-2.1.1.6-05")
@pytest.mark.parametrize("size", [0, 1, 127, 128, 16383, 16384, 2097152])
def test_texts_of_any_length(size):
    assert value(string(1, "x" * size)) == "x" * size
    assert value(string(1, "é" * (size // 2))) == "é" * (size // 2)  # its bytes are counted


@pytest.mark.requirement("NRBF-2.1.1.6-01", "NRBF-2.1.1.6-04")
@pytest.mark.parametrize(
    "prefix, why",
    [
        (b"\x80\x80\x80\x80\x80\x01", "the length takes more than five bytes"),
        (b"\xff\xff\xff\xff\x0f", "the length takes more than 31 bits"),
        (b"\x80\x80\x80\x80\x08", "the length takes more than 31 bits"),
        (b"\xff\xff\xff\xff\x07", "the body ends inside of it"),
        (b"\x05ab", "the body ends inside of it"),
        (b"\x80", "the body ends inside of it"),
    ],
)
def test_lengths_that_no_text_has(prefix, why):
    content = read(header() + b"\x06" + int32(1) + prefix)
    assert content.value is None
    assert content.problems[0].error == why
    assert content.problems[0].path == "BinaryObjectString.Value"


def test_texts_that_are_not_well_formed():
    body = stream(string(1, b"ab\xffc"))
    content = read(body)
    assert content.value == "ab\ufffdc"
    assert (content.problems[0].offset, content.problems[0].error) == (25, "not well-formed UTF-8")


def test_characters():
    # The character beyond 16 bits counts twice.
    data = "aé😀b".encode()
    body = stream(b"\x0f" + int32(1, 5) + bytes([Primitive.CHAR]) + data)
    assert read(body).value == ["a", "é", "😀", "b"]
    assert read(body).problems == ()
    broken = read(stream(b"\x0f" + int32(1, 2) + bytes([Primitive.CHAR]) + b"a\xff"))
    assert broken.problems[0].error == "the bytes are not a character in UTF-8"


@pytest.mark.requirement(
    "NRBF-2.1.2.1-01", "NRBF-2.3.2.5-01", "NRBF-2.3.2.4-01", "NRBF-2.3.2.2-01", "NRBF-2.3.2.3-01",
    "NRBF-2.4.3.1-01", "NRBF-2.5.1-01", "NRBF-2.5.4-01", "NRBF-2.5.6-01", "NRBF-2.5.5-01", "NRBF-2.4.3.3-01",
    "NRBF-2.4.3.4-01", "NRBF-2.2.3.1-01", "NRBF-2.2.3.3-01", "NRBF-2.3.2.1-01", "NRBF-2.4.3.2-01",
    "NRBF-2.5.3-01", "NRBF-2.5.7-01", "NRBF-2.6.1-02", "NRBF-2.6.2-01", "NRBF-2.6.3-01",
)  # fmt: skip
def test_the_numbers_of_records():
    assert {record.name: int(record) for record in Record} == {
        "SERIALIZED_STREAM_HEADER": 0, "CLASS_WITH_ID": 1, "SYSTEM_CLASS_WITH_MEMBERS": 2,
        "CLASS_WITH_MEMBERS": 3, "SYSTEM_CLASS_WITH_MEMBERS_AND_TYPES": 4, "CLASS_WITH_MEMBERS_AND_TYPES": 5,
        "BINARY_OBJECT_STRING": 6, "BINARY_ARRAY": 7, "MEMBER_PRIMITIVE_TYPED": 8, "MEMBER_REFERENCE": 9,
        "OBJECT_NULL": 10, "MESSAGE_END": 11, "BINARY_LIBRARY": 12, "OBJECT_NULL_MULTIPLE_256": 13,
        "OBJECT_NULL_MULTIPLE": 14, "ARRAY_SINGLE_PRIMITIVE": 15, "ARRAY_SINGLE_OBJECT": 16,
        "ARRAY_SINGLE_STRING": 17, "METHOD_CALL": 21, "METHOD_RETURN": 22,
    }  # fmt: skip


@pytest.mark.requirement("NRBF-2.1.2.2-01", "NRBF-2.1.2.3-01")
def test_the_numbers_of_types():
    assert [kind.name for kind in sorted(Binary)] == [
        "PRIMITIVE", "STRING", "OBJECT", "SYSTEM_CLASS", "CLASS", "OBJECT_ARRAY", "STRING_ARRAY",
        "PRIMITIVE_ARRAY",
    ]  # fmt: skip
    assert [int(kind) for kind in sorted(Binary)] == list(range(8))
    assert {kind.name: int(kind) for kind in Primitive} == {
        "BOOLEAN": 1, "BYTE": 2, "CHAR": 3, "DECIMAL": 5, "DOUBLE": 6, "INT16": 7, "INT32": 8, "INT64": 9,
        "SBYTE": 10, "SINGLE": 11, "TIME_SPAN": 12, "DATE_TIME": 13, "UINT16": 14, "UINT32": 15, "UINT64": 16,
        "NULL": 17, "STRING": 18,
    }  # fmt: skip


# -- classes --


@pytest.mark.requirement("NRBF-2.3.2.3-01", "NRBF-2.3.1.1-04", "NRBF-2.1.2.2-01")
@pytest.mark.requirement("NRBF-2.3.1.2-01", "NRBF-2.3.1.2-02", "NRBF-2.3.1.2-03", "NRBF-2.3.1.2-04")
def test_members_of_every_type():
    members = [
        ("primitive", Binary.PRIMITIVE, INT32),
        ("text", Binary.STRING),
        ("object", Binary.OBJECT),
        ("system", Binary.SYSTEM_CLASS, "System.Version"),
        ("of", Binary.CLASS, "Shop.Item", 2),
        ("objects", Binary.OBJECT_ARRAY),
        ("texts", Binary.STRING_ARRAY),
        ("primitives", Binary.PRIMITIVE_ARRAY, Primitive.INT16),
    ]
    assert value(
        library(2),
        klass(1, "T", members),
        int32(7),
        string(3, "a"),
        typed(Primitive.BOOLEAN, True),
        klass(4, "System.Version", [("_Major", Binary.PRIMITIVE, INT32)]),
        int32(2),
        NULL,
        ref(5),
        ref(6),
        ref(7),
        objects(5, 1),
        ref(3),
        strings(6, 2),
        ref(3),
        string(8, "b"),
        primitives(7, Primitive.INT16, [1, -1]),
    ) == {
        "$type": "T", "$id": 1, "primitive": 7, "text": "a", "object": True,
        "system": {"$type": "System.Version", "$id": 4, "_Major": 2}, "of": None, "objects": ["a"],
        "texts": ["a", "b"], "primitives": [1, -1],
    }  # fmt: skip


@pytest.mark.requirement(
    "NRBF-2.3.1.2-01", "NRBF-2.3.1.2-02", "NRBF-2.3.1.2-03", "NRBF-2.3.1.2-04", "NRBF-2.3.2.5-01"
)
def test_a_class_is_described_once_and_used_later():
    members = [("b", Binary.OBJECT), ("a", Binary.PRIMITIVE, Primitive.BYTE), ("c", Binary.STRING)]
    found = value(
        library(9),
        objects(1, 3),
        klass(2, "P", members, 9),
        NULL,
        b"\x05",
        NULL,
        same(3, 2),
        ref(2),
        b"\x06",
        string(4, "x"),
        same(-5, 2),
        NULL,
        b"\x07",
        ref(4),
    )
    assert [list(item.values()) for item in found] == [
        [f"P, {SHOP}", 2, None, 5, None],
        [f"P, {SHOP}", 3, {"$ref": 2}, 6, "x"],
        [f"P, {SHOP}", -5, None, 7, "x"],
    ]
    assert list(found[0]) == ["$type", "$id", "b", "a", "c"]


@pytest.mark.requirement("NRBF-2.3.2.2-01", "NRBF-2.3.2.4-01", "NRBF-2.5.1-01")
def test_classes_without_types():
    assert value(
        library(2),
        untyped(1, "A", ["x", "y"], 2),
        typed(Primitive.DECIMAL, "1.0"),
        untyped(3, "B", ["z"]),
        string(4, "t"),
    ) == {
        "$type": f"A, {SHOP}",
        "$id": 1,
        "x": {"$decimal": "1.0"},
        "y": {"$type": "B", "$id": 3, "z": "t"},
    }


@pytest.mark.requirement("NRBF-2.3.2.5-02")
def test_a_class_that_was_not_described():
    found, wrong = problems(objects(1, 2), NULL, same(3, 2))
    assert found == [None]
    assert wrong == [("ClassWithId.MetadataId", 32, "no class is described by the id 2")]


@pytest.mark.requirement(
    "NRBF-2.3.2.1-02", "NRBF-2.3.2.2-03", "NRBF-2.1.1.8-01", "NRBF-2.3.2.2-02", "NRBF-2.6.2-02"
)
def test_libraries_that_are_missing_or_wrong():
    found, wrong = problems(klass(1, "A", [], 2))
    assert found == {"$type": "A", "$id": 1}
    assert wrong == [("LibraryId", 28, "no library has the id 2")]
    assert problems(untyped(1, "A", [], 5))[1] == [("LibraryId", 28, "no library has the id 5")]
    assert problems(untyped(1, "A", [], -1))[1][0][2] == "no library has the id -1"
    for late in (klass(1, "A", [], 2), untyped(1, "A", [], 2), array(1, 0, [0], Binary.CLASS, "B", 2)):
        assert [error for _, _, error in problems(late, library(2))[1]] == ["no library has the id 2"]
    of_class = klass(1, "A", [("b", Binary.CLASS, "B", 2)]) + NULL
    assert [error for _, _, error in problems(of_class, library(2))[1]] == ["no library has the id 2"]
    _, wrong = problems(klass(1, "A", [("b", Binary.CLASS, "B", 7)]), NULL)
    assert wrong[0][0::2] == ("ClassTypeInfo.LibraryId", "no library has the id 7")
    _, wrong = problems(array(1, 0, [0], Binary.CLASS, "B", 7))
    assert wrong[0][0::2] == ("ClassTypeInfo.LibraryId", "no library has the id 7")
    for number in (-1, 0):
        _, wrong = problems(library(number), klass(1, "A", [], number))
        assert wrong == [("BinaryLibrary.LibraryId", 18, "the id is not positive")]
    _, wrong = problems(library(2, "X"), library(2, "Y"), klass(1, "A", [], 2))
    assert wrong[0][2] == "the id 2 is that of two libraries"


def test_dollar_names_are_escaped_and_duplicates_numbered():
    members = [("$type", Binary.OBJECT), ("$$x", Binary.OBJECT), ("a", Binary.OBJECT), ("a", Binary.OBJECT)]
    found = value(klass(1, "T", members), *(string(number, str(number)) for number in (2, 3, 4, 5)))
    assert found == {"$type": "T", "$id": 1, "$$type": "2", "$$$x": "3", "a": "4", "a#3": "5"}


@pytest.mark.parametrize(
    "rest, path, why",
    [
        proving(int32(-1), "ClassInfo.MemberCount", "-1 is negative", ids="NRBF-2.3.1.1-03"),
        proving(
            int32(0x7FFFFFFF),
            "ClassInfo.MemberCount",
            "2147483647 members do not fit into the body",
            ids="NRBF-4-01",
        ),
        proving(
            int32(1) + text("a") + b"\0\x11",
            "MemberTypeInfo.AdditionalInfos",
            "17 is not a primitive type of a member",
            ids="NRBF-2.3.1.2-05",
        ),
        proving(
            int32(1) + text("a") + b"\0\x12",
            "MemberTypeInfo.AdditionalInfos",
            "18 is not a primitive type of a member",
            ids="NRBF-2.3.1.2-05",
        ),
        (
            int32(1) + text("a") + b"\0\x04",
            "MemberTypeInfo.AdditionalInfos",
            "4 is not a primitive type of a member",
        ),
        proving(
            int32(1) + text("a") + b"\x08",
            "MemberTypeInfo.BinaryTypeEnums",
            "8 is not a type of a member",
            ids="NRBF-2.1.2.2-01",
        ),
    ],
)
def test_descriptions_that_can_not_be(rest, path, why):
    _, wrong = problems(b"\x04" + int32(1) + text("T") + rest)
    assert wrong[0][0].endswith(path)
    assert wrong[0][2] == why


SAMPLES = {kind: (data, expected) for kind, data, expected in VALUES} | {2: (b"\x07", 7)}


@pytest.mark.requirement("NRBF-2.3.1.2-05", "NRBF-2.4.3.1-09", "NRBF-2.4.3.3-02", "NRBF-2.5.1-02")
@pytest.mark.parametrize("kind", sorted(set(Primitive) - {Primitive.NULL, Primitive.STRING}))
def test_every_other_primitive_type_is_one_of_members_and_items(kind):
    data, expected = SAMPLES[kind]
    items = {"$bytes": data.hex()} if kind == Primitive.BYTE else [expected]
    assert value(klass(1, "T", [("a", Binary.PRIMITIVE, kind)]), data)["a"] == expected
    assert value(array(1, 0, [1], Binary.PRIMITIVE, kind), data) == items
    assert value(b"\x0f" + int32(1, 1) + bytes([kind]) + data) == items
    assert value(objects(1, 1), bytes([8, kind]) + data) == [expected]


# -- arrays --


@pytest.mark.requirement(
    "NRBF-2.4-01", "NRBF-2.4-02", "NRBF-2.4.3.3-01", "NRBF-2.4.3.3-03", "NRBF-2.4.3.3-04", "NRBF-2.4.3.4-01"
)
def test_arrays():
    assert value(primitives(1, Primitive.BYTE, [0, 255])) == {"$bytes": "00ff"}
    assert value(primitives(1, Primitive.BOOLEAN, [True, False])) == [True, False]
    assert value(primitives(1, Primitive.INT16, list(range(-300, 300)))) == list(range(-300, 300))
    assert value(primitives(1, Primitive.DECIMAL, ["1.0", "2"])) == [{"$decimal": "1.0"}, {"$decimal": "2"}]
    assert value(primitives(1, INT32, [])) == []
    assert value(strings(1, 2), string(2, "a"), NULL) == ["a", None]
    assert value(objects(1, 0)) == []


@pytest.mark.requirement(
    "NRBF-2.4.3.1-01",
    "NRBF-2.4-03",
    "NRBF-2.4.3.1-04",
    "NRBF-2.4.3.1-06",
    "NRBF-2.4.3.1-07",
    "NRBF-2.4.3.1-08",
)
def test_arrays_of_several_dimensions_and_lower_bounds():
    data = struct.pack("<6h", *range(6))
    assert value(array(1, 2, [2, 3], Binary.PRIMITIVE, Primitive.INT16), data) == {
        "$lengths": [2, 3], "$lower": [0, 0], "$items": [0, 1, 2, 3, 4, 5],
    }  # fmt: skip
    assert value(array(1, 3, [2], Binary.STRING, lower=[-5]), string(2, "a"), NULL) == {
        "$lengths": [2], "$lower": [-5], "$items": ["a", None],
    }  # fmt: skip
    assert value(array(1, 5, [1, 1], Binary.OBJECT, lower=[1, 2]), string(2, "a"))["$lower"] == [1, 2]
    assert value(array(1, 2, [1, 2], Binary.PRIMITIVE, Primitive.BYTE), b"\1\2")["$items"] == [1, 2]
    assert value(array(1, 3, [1], Binary.OBJECT_ARRAY, lower=[0]), NULL) == [None]
    assert value(array(1, 4, [1], Binary.STRING_ARRAY, lower=[7]), NULL) == {
        "$lengths": [1], "$lower": [7], "$items": [None],
    }  # fmt: skip
    assert value(
        array(1, 1, [2], Binary.PRIMITIVE_ARRAY, INT32), ref(2), NULL, primitives(2, INT32, [5])
    ) == [
        [5],
        None,
    ]
    assert value(array(1, 0, [1], Binary.PRIMITIVE, Primitive.BYTE), b"\1") == {"$bytes": "01"}


@pytest.mark.parametrize(
    "record, path, why",
    [
        proving(
            objects(-1, 0), "ArraySingleObject.ObjectId", "the id is not positive", ids="NRBF-2.4.2.1-01"
        ),
        proving(
            objects(0, 0), "ArraySingleObject.ObjectId", "the id is not positive", ids="NRBF-2.4.2.1-01"
        ),
        *(
            proving(
                array(number, 0, [0], Binary.OBJECT), "BinaryArray.ObjectId", "the id is not positive",
                ids="NRBF-2.4.3.1-02", name=f"BinaryArray {number}",
            )
            for number in (-1, 0)
        ),
        proving(
            objects(1, -1), "ArraySingleObject.ArrayInfo.Length", "-1 is negative", ids="NRBF-2.4.2.1-02"
        ),
        proving(
            strings(1, -1), "ArraySingleString.ArrayInfo.Length", "-1 is negative", ids="NRBF-2.4.2.1-02"
        ),
        proving(
            array(1, 0, [-1], Binary.OBJECT), "BinaryArray.Lengths", "-1 is negative", ids="NRBF-2.4.3.1-05"
        ),
        proving(
            b"\x07" + int32(1) + b"\0" + int32(-1), "BinaryArray.Rank", "-1 is negative",
            ids="NRBF-2.4.3.1-03",
        ),
        (b"\x07" + int32(1) + b"\0" + int32(33), "BinaryArray.Rank", "33 dimensions, an array has 1 to 32"),
        (array(1, 6, [1], Binary.OBJECT), "BinaryArray.BinaryArrayTypeEnum", "6 is not a type of an array"),
        *(
            proving(
                array(1, 0, [1], Binary.PRIMITIVE) + kind, "MemberTypeInfo.AdditionalInfos", None,
                ids="NRBF-2.4.3.1-09",
            )
            for kind in (b"\x11", b"\x12")
        ),
        *(
            proving(
                b"\x0f" + int32(1, 0) + kind, "ArraySinglePrimitive.PrimitiveTypeEnum", None,
                ids="NRBF-2.4.3.3-02",
            )
            for kind in (b"\x11", b"\x12")
        ),
        proving(
            b"\x0f" + int32(1, 0x7FFFFFFF) + b"\x08", "Length", "2147483647 items do not fit into the body",
            ids="NRBF-4-01",
        ),
    ],
)  # fmt: skip
def test_arrays_that_can_not_be(record, path, why):
    _, wrong = problems(record)
    assert wrong[0][0] == path
    assert why is None or wrong[0][2] == why


@pytest.mark.requirement("NRBF-4-01")
@pytest.mark.parametrize(
    "record, kept, error",
    [
        (b"\x0f" + int32(1, 5) + b"\x08" + int32(1, 2) + b"\x03", [1, 2], "5 items do not fit into the body"),
        (b"\x0f" + int32(1, 5) + b"\x02ab", {"$bytes": "6162"}, "5 items do not fit into the body"),
        (b"\x0f" + int32(1, 3) + b"\x03ab\xff", ["a", "b"], "the bytes are not a character in UTF-8"),
        (
            b"\x0f" + int32(1, 3) + b"\x05\x031.0\x071",
            [{"$decimal": "1.0"}],
            "the body ends inside of it",
        ),
        (
            array(1, 2, [2, 2], Binary.PRIMITIVE) + b"\x08" + int32(1, 2),
            {"$lengths": [2, 2], "$lower": [0, 0], "$items": [1, 2]},
            "4 items do not fit into the body",
        ),
    ],
)
def test_items_before_the_end_of_the_body_are_kept(record, kept, error):
    content = read(stream(record)[: -len(END)])
    assert content.value == kept
    assert [problem.error for problem in content.problems] == [error]


@pytest.mark.requirement("NRBF-2.4-04", "NRBF-2.5.4-01", "NRBF-2.5.5-01", "NRBF-2.5.6-01", "NRBF-2.5.6-02")
def test_runs_of_nulls():
    assert value(objects(1, 600), nulls(255), nulls(344), string(2, "x")) == [None] * 599 + ["x"]
    assert value(objects(1, 2), b"\x0d\0", NULL, b"\x0d\1") == [None, None]
    members = [("a", Binary.OBJECT), ("b", Binary.STRING), ("c", Binary.OBJECT)]
    assert value(klass(1, "T", members), nulls(2), string(2, "x")) == {
        "$type": "T", "$id": 1, "a": None, "b": None, "c": "x",
    }  # fmt: skip


@pytest.mark.requirement("NRBF-2.5.5-02", "NRBF-2.5.6-02")
def test_runs_of_nulls_that_do_not_fit():
    found, wrong = problems(objects(1, 2), b"\x0e" + int32(0), nulls(3))
    assert found == [None, None]
    assert [error for _, _, error in wrong] == [
        "the count is not positive",
        "3 nulls, where 2 items are left",
    ]
    assert wrong[0][0] == "ObjectNullMultiple.NullCount"
    found, wrong = problems(objects(1, 2), b"\x0e" + int32(-1))
    assert (found, wrong[0][2]) == ([], "-1 is negative")
    members = [("a", Binary.OBJECT), ("b", Binary.PRIMITIVE, INT32)]
    found, wrong = problems(klass(1, "T", members), nulls(2), int32(1))
    assert (found, wrong[0][2]) == (
        {"$type": "T", "$id": 1},
        "2 nulls are more than the members there are",
    )
    assert problems(klass(1, "T", members), b"\x0d\0")[1][0][2] == "a member is a run of no nulls"


@pytest.mark.requirement("NRBF-4-01")
def test_nulls_are_counted_before_they_are_made():
    for count in (1 << 30, 0x7FFFFFFF):
        content = read(stream(objects(1, count), b"\x0e" + int32(count)))
        assert content.value == []
        assert content.problems[0].error == "there are more than 2,000,000 items of arrays"
    assert len(value(objects(1, 1_000_000), nulls(1_000_000))) == 1_000_000


# -- references --


@pytest.mark.requirement("NRBF-2.5.3-03")
def test_objects_stand_where_they_are_met_first():
    members = [("a", Binary.OBJECT), ("b", Binary.OBJECT)]
    found = value(
        klass(1, "T", members),
        ref(3),
        ref(2),
        klass(2, "U", members),
        ref(1),
        ref(3),
        klass(3, "V", members),
        ref(2),
        ref(3),
    )
    assert found == {
        "$type": "T", "$id": 1,
        "a": {
            "$type": "V", "$id": 3,
            "a": {"$type": "U", "$id": 2, "a": {"$ref": 1}, "b": {"$ref": 3}},
            "b": {"$ref": 3},
        },
        "b": {"$ref": 2},
    }  # fmt: skip


def test_an_object_referred_to_earlier_stands_inline():
    members = [("a", Binary.OBJECT), ("b", Binary.OBJECT)]
    found = value(klass(1, "T", members), ref(2), klass(2, "U", []), root=1)
    assert (found["a"], found["b"]) == ({"$type": "U", "$id": 2}, {"$ref": 2})


def test_arrays_have_an_id_only_where_they_are_referred_to():
    assert value(objects(1, 2), ref(2), ref(2), objects(2, 1), ref(1)) == {
        "$id": 1,
        "$items": [{"$id": 2, "$items": [{"$ref": 1}]}, {"$ref": 2}],
    }
    found = value(objects(1, 4), ref(2), ref(2), ref(3), ref(3), primitives(2, Primitive.BYTE, [7]), array(
        3, 2, [1, 1], Binary.PRIMITIVE, Primitive.BYTE), b"\x09")  # fmt: skip
    assert found == [
        {"$bytes": "07", "$id": 2},
        {"$ref": 2},
        {"$id": 3, "$lengths": [1, 1], "$lower": [0, 0], "$items": [9]},
        {"$ref": 3},
    ]


def test_texts_are_copied():
    assert value(objects(1, 3), ref(2), string(2, "x"), ref(2)) == ["x", "x", "x"]


@pytest.mark.requirement("NRBF-2.5.3-02", "NRBF-2.5.3-03", "NRBF-2.3.1.1-01", "NRBF-2.5.7-02")
def test_references_that_lead_nowhere():
    found, wrong = problems(objects(1, 3), ref(7), ref(7), ref(0))
    assert found == [{"$ref": 7}, {"$ref": 7}, {"$ref": 0}]
    assert [(path, error) for path, _, error in wrong] == [
        ("MemberReference.IdRef", "the id is not positive"),
        ("MemberReference.IdRef", "no object has the id 7"),
        ("MemberReference.IdRef", "no object has the id 0"),
    ]
    for positive in (1 << 24, (1 << 31) - 1):
        assert value(objects(1, 1), ref(positive), string(positive, "x")) == ["x"]
    _, wrong = problems(objects(1, 1), ref(-(1 << 31)), klass(-(1 << 31), "T", []))
    assert wrong == [("MemberReference.IdRef", 27, "the id is not positive")]
    found, wrong = problems(objects(1, 1), ref(-2), klass(-2, "T", []))
    assert found == [{"$type": "T", "$id": -2}]
    assert wrong == [("MemberReference.IdRef", 27, "the id is not positive")]
    for number in (-3, 0):
        assert problems(string(number, "x"), root=number)[1] == [
            ("BinaryObjectString.ObjectId", 18, "the id is not positive")
        ]
    found, wrong = problems(objects(1, 1), klass(-2, "T", []))  # nothing refers to it
    assert ([item["$type"] for item in found], wrong) == (["T"], [])


def test_an_id_that_is_used_twice():
    members = [("a", Binary.OBJECT)]
    found, wrong = problems(
        objects(1, 4), klass(2, "T", members), ref(3), klass(2, "U", members), ref(3), objects(2, 1), ref(3),
        string(2, "x"), string(3, "y"),
    )  # fmt: skip
    assert found == [
        {"$type": "T", "$id": 2, "a": "y"},
        {"$type": "U", "$id": 2, "a": "y"},
        ["y"],
        "x",
    ]
    assert [error for _, _, error in wrong] == ["the id 2 is that of two objects"] * 3


# -- the stream --


@pytest.mark.requirement("NRBF-2.6.1-01", "NRBF-2.6.1-02", "NRBF-2.6.1-09", "NRBF-2.6.1-10")
@pytest.mark.parametrize(
    "body, path, why",
    [
        (b"", "SerializationHeaderRecord", "the header of a serialized object is missing"),
        (header()[:-1], "SerializationHeaderRecord", "the header of a serialized object is missing"),
        (
            b"\x06" + header()[1:] + END,
            "SerializationHeaderRecord",
            "the header of a serialized object is missing",
        ),
        (header(major=2) + END, "SerializationHeaderRecord.MajorVersion", "the version is 2, not 1"),
        (header(minor=1) + END, "SerializationHeaderRecord.MinorVersion", "the version is 1.1, not 1.0"),
    ],
)
def test_bodies_of_another_format_are_refused(body, path, why):
    assert not nrbf.recognises(body)
    with pytest.raises(MalformedBody) as caught:
        decode(body, body_type=0x300)
    assert (caught.value.path, caught.value.why) == (path, why)


def test_bodies_are_recognised_without_their_type():
    assert nrbf.recognises(order())
    assert decode(order()).format == "nrbf"


@pytest.mark.requirement("NRBF-2.6.1-08")
def test_the_header_id_is_ignored():
    for head in (99, -1, 0):
        content = read(header(head=head) + string(1, "x") + END)
        assert (content.value, content.problems) == ("x", ())


@pytest.mark.requirement("NRBF-2.6.1-05")
def test_a_root_that_is_missing():
    found, wrong = problems(string(2, "a"), string(3, "b"), root=7)
    assert found == "a"
    assert wrong == [("SerializationHeaderRecord.RootId", 1, "no object has the id 7")]
    assert problems(root=7)[0] is None


@pytest.mark.requirement("NRBF-2.6.3-01", "NRBF-2.7-01", "NRBF-2.1.2.1-01")
def test_where_a_stream_ends():
    assert problems(string(1, "a"), END + b"more")[1] == [("MessageEnd", 25, "5 bytes follow the end")]
    content = read(header() + string(1, "a"))
    assert content.value == "a"
    assert [problem.to_json() for problem in content.problems] == [
        {"path": "", "offset": 24, "error": "the body ends inside of it"}
    ]
    assert problems(objects(1, 1))[1] == [("MessageEnd", 26, "record 11 is not a value")]
    assert problems(b"\x12")[1][0][2] == "record 18 can't stand here"
    assert problems(objects(1, 1), header())[1][0][2] == "record 0 is not a value"
    assert problems(string(1, "a"), NULL, nulls(2), ref(1), typed(INT32, 5))[1] == [
        (path, offset, "the value belongs to no object")
        for path, offset in (
            ("ObjectNull", 24), ("ObjectNullMultiple256", 25), ("MemberReference", 27),
            ("MemberPrimitiveTyped", 32),
        )
    ]  # fmt: skip


@pytest.mark.requirement("NRBF-2.7-01")
def test_libraries_may_precede_any_object():
    described = klass(4, "A", [("b", Binary.OBJECT)], 3)
    assert value(
        library(2), objects(1, 3), library(3), described, library(5), NULL, library(6), library(7),
        string(8, "x"), NULL,
    ) == [{"$type": f"A, {SHOP}", "$id": 4, "b": None}, "x", None]  # fmt: skip


@pytest.mark.requirement("NRBF-2.7-01")
def test_objects_may_stand_before_a_method():
    method = call(0x18, objects(1, 1), ref(10), objects(10, 1), ref(50))[17:]
    content = read(header(1) + string(50, "a") + method)
    assert (content.value["args"], content.problems) == (["a"], ())


def test_what_was_read_before_a_fault_stays():
    members = [
        ("a", Binary.PRIMITIVE, INT32),
        ("b", Binary.OBJECT),
        ("c", Binary.OBJECT),
        ("d", Binary.OBJECT),
    ]
    found, wrong = problems(klass(1, "T", members), int32(5), objects(2, 3), string(3, "x"), b"\xff")
    assert found == {"$type": "T", "$id": 1, "a": 5, "b": ["x"]}
    assert wrong[0][2] == "record 255 is not a value"


def test_faults_are_listed_up_to_a_number():
    content = read(stream(objects(1, 1000), *(ref(-1) for _ in range(1000))))
    assert len(content.problems) == 65
    assert content.problems[-1].error == "there are more problems, which are not listed"


# -- methods --


def call(flags, *rest, root=1, name="Do", of="Shop.Server, Shop", record=21):
    names = with_code(Primitive.STRING, name) + with_code(Primitive.STRING, of) if record == 21 else b""
    return header(root) + bytes([record]) + struct.pack("<I", flags) + names + b"".join(rest) + END


@pytest.mark.requirement(
    "NRBF-2.2.2.1-01",
    "NRBF-2.2.2.1-02",
    "NRBF-2.2.2.2-01",
    "NRBF-2.2.2.3-01",
    "NRBF-2.2.3.1-03",
    "NRBF-2.2.3.1-04",
    "NRBF-2.2.3.1-05",
    "NRBF-2.2.3.1-06",
    "NRBF-2.2.3.3-03",
    "NRBF-2.2.3.3-04",
    "NRBF-2.2.3.3-05",
)
@pytest.mark.requirement(
    *(f"NRBF-2.2.1.1-{number:02}" for number in range(1, 6)),
    *("NRBF-2.2.3.1-02", "NRBF-2.2.3.3-02", "NRBF-2.6.1-03", "NRBF-2.6.1-04"),
)
def test_what_stands_in_the_record_of_a_method():
    context = {
        "__RemotingData": {
            "$type": "System.Runtime.Remoting.Messaging.CallContextRemotingData",
            "logicalCallID": "id",
        }
    }
    inline = (
        with_code(Primitive.STRING, "id"),
        int32(3),
        with_code(INT32, 5),
        with_code(Primitive.NULL),
        with_code(Primitive.STRING, "x"),
    )
    content = read(call(0x22, *inline, root=0))
    assert content.problems == ()
    assert content.value == {
        "$call": "Do", "type": "Shop.Server, Shop", "args": [5, None, "x"], "context": context,
    }  # fmt: skip
    content = read(call(0x822, with_code(Primitive.BOOLEAN, True), *inline, root=0, record=22))
    assert content.problems == ()
    assert content.value == {"$return": True, "args": [5, None, "x"], "context": context}
    assert read(call(0x11, root=0)).value["args"] == []
    assert read(call(0x211, root=0, record=22)).value == {"$return": None}
    for flags, record, missing in (
        (0x21, 21, "CallContext"),
        (0x221, 22, "CallContext"),
        (0x12, 21, "Args.Length"),
        (0x212, 22, "Args.Length"),
        (0x811, 22, "BinaryMethodReturn.ReturnValue"),
    ):
        assert read(call(flags, root=0, record=record)[:-1]).problems[0].path == missing


def context_object(number):
    return klass(number, CORE, [("user", Binary.STRING)]) + string(number + 1, "ann")


CONTEXT = {"$type": CORE, "$id": 20, "user": "ann"}


@pytest.mark.requirement(
    "NRBF-2.2.3.2-01",
    "NRBF-2.2.3.2-02",
    "NRBF-2.2.3.2-03",
    "NRBF-2.2.3.2-05",
    "NRBF-2.2.3.2-07",
    "NRBF-2.2.3.2-08",
    "NRBF-2.2.3.2-09",
    "NRBF-2.2.1.1-04",
    "NRBF-2.2.1.1-05",
)
def test_the_array_of_a_call():
    items = [objects(1, 5), *(ref(number) for number in (10, 11, 12, 20, 13))]
    arrays = [
        objects(10, 1), string(50, "a"), objects(11, 1), string(51, "T"), strings(12, 1), string(52, "S"),
        context_object(20), objects(13, 0),
    ]  # fmt: skip
    content = read(call(0x8 | 0x8000 | 0x80 | 0x40 | 0x100, *items, *arrays))
    assert content.problems == ()
    assert content.value == {
        "$call": "Do", "type": "Shop.Server, Shop", "args": ["a"], "context": CONTEXT, "generic": ["T"],
        "signature": ["S"], "properties": [],
    }  # fmt: skip
    content = read(call(0x8 | 0x10, objects(1, 1), ref(10), objects(10, 0)))
    assert content.problems == ()
    assert content.value == {"$call": "Do", "type": "Shop.Server, Shop", "args": [], "context": None}
    content = read(call(0x8000 | 0x1 | 0x10, objects(1, 1), ref(11), objects(11, 1), string(51, "T")))
    assert content.problems == ()
    assert (content.value["args"], content.value["generic"]) == ([], ["T"])


@pytest.mark.requirement(
    "NRBF-2.2.3.4-01",
    "NRBF-2.2.3.4-02",
    "NRBF-2.2.3.4-03",
    "NRBF-2.2.3.4-04",
    "NRBF-2.2.3.4-05",
    "NRBF-2.2.3.4-06",
    *(f"NRBF-2.2.1.1-{number:02}" for number in range(2, 6)),
)
def test_the_array_of_a_return():
    items = [objects(1, 4), string(9, "r"), ref(10), ref(20), ref(13)]
    arrays = [objects(10, 1), string(50, "a"), context_object(20), objects(13, 0)]
    content = read(call(0x8 | 0x1000 | 0x40 | 0x100, *items, *arrays, record=22))
    assert content.problems == ()
    assert content.value == {"$return": "r", "args": ["a"], "context": CONTEXT, "properties": []}
    error = klass(5, "System.Exception", [("Message", Binary.STRING)]) + string(6, "no")
    content = read(call(0x2010, objects(1, 1), ref(5), error, record=22))
    assert content.problems == ()
    assert content.value == {
        "$return": None, "exception": {"$type": "System.Exception", "$id": 5, "Message": "no"},
    }  # fmt: skip
    items = [objects(1, 3), ref(5), ref(20), ref(13)]
    content = read(call(0x2000 | 0x40 | 0x100, *items, error, context_object(20), objects(13, 0), record=22))
    assert content.problems == ()
    assert (content.value["exception"]["$id"], content.value["context"]) == (5, CONTEXT)
    assert content.value["properties"] == []


ARGS, CONTEXTS, RETURNS = (0x1, 0x2, 0x4, 0x8), (0x10, 0x20, 0x40), (0x200, 0x400, 0x800, 0x1000)
SEVERAL_PLACES = "the flags have more than one place"
APART = "the flags are of categories that exclude each other"


@pytest.mark.parametrize(
    "flags, record, why",
    [
        *(
            proving(one | other, record, f"{SEVERAL_PLACES} for {name}", ids="NRBF-2.2.1.1-01")
            for flags, record, name in (
                (ARGS, 21, "arguments"), (CONTEXTS, 21, "the context"), (RETURNS, 22, "the return value"),
            )
            for one, other in combinations(flags, 2)
        ),
        *(proving(0x2000 | flag, 22, APART, ids="NRBF-2.2.1.1-02") for flag in ARGS),
        *(proving(0x2000 | flag, 22, APART, ids="NRBF-2.2.1.1-03") for flag in RETURNS),
        *(proving(0x80 | flag, 22, APART, ids="NRBF-2.2.1.1-04") for flag in RETURNS),
        proving(0x2080, 22, APART, ids="NRBF-2.2.1.1-05"),
        *(
            proving(0x11 | flag, 21, "a call has flags of a return", ids="NRBF-2.2.3.1-02")
            for flag in (*RETURNS, 0x2000)
        ),
        proving(0x91, 22, "a return has flags of a call", ids="NRBF-2.2.3.3-02"),
        proving(0x8011, 22, "a return has flags of a call", ids="NRBF-2.2.3.3-02"),
    ],
)  # fmt: skip
def test_flags_that_can_not_be(flags, record, why):
    assert why in [problem.error for problem in read(call(flags, record=record)).problems]


@pytest.mark.parametrize(
    "body, why",
    [
        proving(
            call(0x98, objects(1, 2), ref(10), ref(11), objects(10, 1), NULL, objects(11, 0)),
            "the signature has not as many items as there are arguments",
            ids="NRBF-2.2.3.2-06",
        ),
        proving(call(0x18, objects(1, 2), NULL, NULL), "the array has 2 items, not 1", ids="NRBF-2.2.3.2-02"),
        (call(0x14), "the array that the flags announce is missing"),
        proving(call(0x11), "the RootId is 1, though no array follows", ids="NRBF-2.6.1-03"),
        proving(call(0x211, record=22), "the RootId is 1, though no array follows", ids="NRBF-2.6.1-04"),
        proving(
            header(0) + b"\x15" + int32(0x11) + b"\x08",
            "the primitive type is 8, not 18",
            ids="NRBF-2.2.2.2-01",
        ),
        proving(
            call(0x12, int32(1000), root=0),
            "1,000 arguments do not fit into the body",
            ids="NRBF-2.2.2.3-01",
        ),
        (call(0x12, int32(1), b"\x04", root=0), "4 is not a primitive type of a value"),
        (call(0x12, int32(1), with_code(Primitive.DECIMAL, "x"), root=0), "'x' is not a decimal"),
        (call(0x11, call(0x11, root=0)[17:-1], root=0), "a second method"),
    ],
)
def test_methods_that_can_not_be(body, why):
    assert why in [problem.error for problem in read(body).problems]


@pytest.mark.requirement("NRBF-2.5.1-02")
@pytest.mark.parametrize("kind", [17, 18, 4, 0])
def test_typed_values_of_no_type(kind):
    _, wrong = problems(objects(1, 1), bytes([8, kind]))
    assert wrong[0][2] == f"{kind} is not a primitive type of a value"


# -- limits --


@pytest.mark.requirement("NRBF-4-02")
def test_no_type_is_looked_up(monkeypatch):
    monkeypatch.setattr("builtins.__import__", lambda name, *rest: pytest.fail(f"{name} was imported"))
    assert read(stream(klass(1, "os.system", []))).value == {"$type": "os.system", "$id": 1}


def chain(length, *, value_behind):
    """A list of linked objects, each of which refers to the next, as .NET writes it."""
    members = [("Next", Binary.CLASS, "Node", 2), ("Value", Binary.PRIMITIVE, INT32)]
    values = (lambda n: (ref(n + 1), int32(n))) if value_behind else (lambda n: (int32(n), ref(n + 1)))
    members = members if value_behind else members[::-1]
    parts = [library(2), klass(10, "Node", members, 2), *values(10)]
    for number in range(11, 10 + length):
        parts += [same(number, 10), *values(number)]
    parts[-2 if value_behind else -1] = NULL
    return stream(*parts, root=10)


@pytest.mark.parametrize("value_behind", [False, True])
def test_a_long_chain_of_objects(value_behind):
    length = 100_000
    body = chain(length, value_behind=value_behind)
    content = read(body)
    assert content.problems == ()
    node, count = content.value, 0
    while node is not None:
        assert node["Value"] == 10 + count
        node, count = node["Next"], count + 1
    assert count == length
    assert plain.dumps(content.value).count('"$id"') == length
    assert content.text.startswith("Node{")


def test_structures_within_each_other_are_limited():
    body = stream(*(objects(number, 1) for number in range(1, 200)), NULL)
    content = read(body)
    assert content.problems[0].error == "there are more than 128 objects within each other"
    assert plain.dumps(content.value).startswith("[[[[")
    assert read(stream(*(objects(number, 1) for number in range(1, 128)), NULL)).problems == ()


@pytest.mark.parametrize(
    "limits, records, why",
    [
        (
            Limits(records=3),
            [objects(1, 4), *(klass(n, "T", []) for n in range(2, 6))],
            "more than 3 records",
        ),
        (Limits(references=3), [objects(1, 4), *[ref(1)] * 4], "more than 3 references"),
        (Limits(text=10), [objects(1, 2), string(2, "x" * 6), string(3, "x" * 6)], "more than 10 characters"),
        (Limits(text=10), [objects(1, 2), string(2, "x" * 6), ref(2)], "more than 10 characters"),
        (Limits(items=3), [primitives(1, INT32, [1, 2, 3, 4])], "more than 3 items"),
        (Limits(memory=1000), [objects(1, 9), *(klass(n, "T", []) for n in range(2, 11))], "more memory"),
        (Limits(depth=1), [objects(1, 1), objects(2, 1), NULL], "more than 1 objects within each other"),
    ],
)
def test_limits(limits, records, why):
    content = read(stream(*records), limits)
    assert why in content.problems[0].error
    json.dumps(content.value)


def test_names_of_classes_count_as_text():
    body = stream(library(2, "L" * 100_000), objects(1, 3000), klass(3, "T", [], 2), *(
        same(n, 3) for n in range(4, 3003)))  # fmt: skip
    content = read(body)
    assert content.problems[0].error == "the texts have more than 67,108,864 characters"
    assert len(content.value) < 700


def test_paths_of_problems_are_cut():
    members = [("n" * 5000, Binary.PRIMITIVE, Primitive.DATE_TIME)]
    _, wrong = problems(klass(1, "T", members), b"\xff" * 8)
    assert wrong[0][0] == "n" * 200


HOSTILE = {
    "nulls": lambda: stream(objects(1, 1 << 30), b"\x0e" + int32(900_000)),
    "texts without characters": lambda: stream(
        objects(1, 1 << 20), *(string(n, "") for n in range(2, 40_000))
    ),
    "wide texts": lambda: stream(
        objects(1, 1 << 20), *(string(n, "😀" + "x" * 900) for n in range(2, 2_000))
    ),
    "small objects": lambda: stream(
        objects(1, 1 << 20), klass(2, "T", []), *(same(n, 2) for n in range(3, 40_000))
    ),
    "objects of many members": lambda: stream(
        objects(1, 1 << 20),
        klass(2, "T", [(f"{n}", Binary.OBJECT) for n in range(3000)]),
        nulls(3000),
        *(same(n, 2) + nulls(3000) for n in range(3, 5_000)),
    ),
    "many classes": lambda: stream(objects(1, 1 << 20), *(klass(n, f"{n}", []) for n in range(2, 30_000))),
    "a long library": lambda: stream(
        library(2, "L" * 500_000), objects(1, 1 << 20), *(klass(n, "T", [], 2) for n in range(3, 5_000))
    ),
    "references to nothing": lambda: stream(objects(1, 40_000), *(ref(n) for n in range(2, 40_002))),
    "arrays in a chain": lambda: stream(*(objects(n, 1) + ref(n + 1) for n in range(1, 40_000))),
    "a chain": lambda: chain(60_000, value_behind=True),
    "dates": lambda: stream(primitives(1, Primitive.DATE_TIME, range(40_000))),
    "characters": lambda: stream(
        primitives(1, Primitive.CHAR, [chr(256 + n % 50_000) for n in range(100_000)])
    ),
    "int16": lambda: stream(primitives(1, Primitive.INT16, [n % 30_000 - 30_000 for n in range(100_000)])),
    "typed dates": lambda: stream(objects(1, 1 << 20), *[typed(Primitive.DATE_TIME, 5)] * 40_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_memory_of_hostile_bodies(name):
    body = HOSTILE[name]()
    tracemalloc.start()
    try:
        content = read(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert content.format == "nrbf"
    assert peak <= 16 * len(body) + (16 << 20), f"{peak / len(body):.1f} times the input of {len(body)}"
