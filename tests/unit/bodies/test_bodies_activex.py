"""Bodies of ActiveXMessageFormatter and of MSMQ's ActiveX component, to the byte."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmqwire.bodies import Limits, decode, encode
from msmqwire.errors import InvalidArgument, InvalidValue, MalformedBody

GUID = "557358d1-9150-9595-4997-0c1a2b3c4d5e"
TICKS = 639_000_288_001_234_567
"""A time as .NET counts it."""


def date(text):
    return {"$date": text}


def decimal(text):
    return {"$decimal": text}


SCALARS = [
    (1, b"", None),
    (16, b"\xff", -1),
    (17, b"\xff", 255),
    (2, b"\xfe\xff", -2),
    (18, b"\xfe\xff", 65534),
    (3, b"\0\0\0\x80", -(1 << 31)),
    (22, b"\0\0\0\x80", -(1 << 31)),
    (19, b"\0\0\0\x80", 1 << 31),
    (23, b"\0\0\0\x80", 1 << 31),
    (20, b"\xff" * 8, -1),
    (20, (1 << 53).to_bytes(8, "little"), 1 << 53),
    (20, ((1 << 53) + 1).to_bytes(8, "little"), decimal("9007199254740993")),
    (21, b"\xff" * 8, decimal("18446744073709551615")),
    (4, struct.pack("<f", 1.5), 1.5),
    (5, struct.pack("<d", -0.25), -0.25),
    (5, struct.pack("<d", float("nan")), {"$float": "NaN"}),
    (5, struct.pack("<d", float("-inf")), {"$float": "-INF"}),
    (6, (1_234_500).to_bytes(8, "little"), decimal("123.4500")),
    (6, b"\xff" * 8, decimal("-0.0001")),
    (6, bytes(8), decimal("0.0000")),
    (7, bytes(8), date("1899-12-30T00:00:00.000000000")),
    (7, struct.pack("<d", 45293.75), date("2024-01-02T18:00:00.000000000")),
    (7, struct.pack("<d", -1.25), date("1899-12-29T06:00:00.000000000")),
    (7, struct.pack("<d", 46354.437673611109), date("2026-11-28T10:30:15.000000000")),
    (7, TICKS.to_bytes(8, "little"), date("2025-11-29T16:00:00.123456700")),
    (10, b"\x03\x00\x0e\xc0", 0xC00E0003),
    (11, b"\xff\xff", True),
    (11, b"\0\0", False),
    (
        64,
        (116_444_736_000_000_000 + 15_000_001).to_bytes(8, "little"),
        date("1970-01-01T00:00:01.500000100Z"),
    ),
    (72, UUID(GUID).bytes_le, {"$guid": GUID}),
    (14, struct.pack("<HBBIQ", 0, 2, 0x80, 0, 150), decimal("-1.50")),
    (
        14,
        struct.pack("<HBBIQ", 0, 28, 0, 0xFFFFFFFF, (1 << 64) - 1),
        decimal("7.9228162514264337593543950335"),
    ),
    (14, struct.pack("<HBBIQ", 0, 0, 0x80, 0, 0), decimal("-0")),
    (8, "Grüße €".encode("utf-16-le"), "Grüße €"),
    (8, "a\0".encode("utf-16-le"), "a\0"),
    (31, "text".encode("utf-16-le"), "text"),
    (30, "Größe".encode(), "Größe"),
    (66, b"\x01\x02", {"$bytes": "0102"}),
    (67, b"\x01\x02", {"$bytes": "0102"}),
    (68, b"\x01\x02", {"$bytes": "0102"}),
    (69, b"text", {"$bytes": "74657874"}),
    (0x1003, struct.pack("<2i", 1, -1), [1, -1]),
    (0x2003, struct.pack("<2i", 1, -1), [1, -1]),
    (0x1014, struct.pack("<2q", 1, 1 << 60), [1, decimal("1152921504606846976")]),
    (0x1005, struct.pack("<2d", 1.5, float("inf")), [1.5, {"$float": "INF"}]),
    (0x100B, b"\xff\xff\0\0", [True, False]),
    (0x1006, (10_000).to_bytes(8, "little") * 2, [decimal("1.0000")] * 2),
    (0x1007, struct.pack("<d", 45293.75), [date("2024-01-02T18:00:00.000000000")]),
    (0x1048, UUID(GUID).bytes_le * 2, [{"$guid": GUID}] * 2),
    (0x101F, "a\0b\0".encode("utf-16-le"), ["a", "b"]),
    (0x101E, b"one\0\0two\0", ["one", "", "two"]),
    (0x1003, b"", []),
]


@pytest.mark.parametrize(("body_type", "body", "value"), SCALARS)
def test_a_value_is_read_and_written_back(body_type, body, value):
    read = decode(body, body_type=body_type)
    assert (read.format, read.value, read.problems) == ("activex", value, ())
    assert type(read.value) is type(value)
    if body_type != 7 or body != TICKS.to_bytes(8, "little"):  # dates are written as days, not as ticks
        assert encode(value, "activex", type=hex(body_type)) == (body, body_type, b"")


@pytest.mark.parametrize(
    ("body_type", "body", "value"),
    [
        (11, b"\xff", True),  # System.Messaging writes one byte
        (11, b"\0", False),
        (31, "text\0".encode("utf-16-le"), "text"),
        (30, b"text\0", "text"),
        (0x101F, "a\0b".encode("utf-16-le"), ["a", "b"]),
        (0x101E, struct.pack("<II4sI4s", 2, 4, b"one\0", 4, b"two\0"), ["one", "two"]),
        (0x1008, struct.pack("<II6s2xI4s", 2, 6, b"a\0b\0c\0", 4, b"d\0e\0"), ["abc", "de"]),
    ],
)  # fmt: skip
def test_other_ways_of_writing_are_read(body_type, body, value):
    read = decode(body, body_type=body_type)
    assert (read.value, read.problems) == (value, ())


@pytest.mark.parametrize("many", [0x1011, 0x2011])
def test_bytes_are_of_another_format_if_they_clearly_are(many):
    assert decode(b"<int>5</int>", body_type=many).format == "xml"
    assert decode(b"\x80\x01", body_type=many).value == {"$bytes": "8001"}
    assert decode(b"\x80\x01", body_type=many).format == "activex"
    assert decode(b"", body_type=many).value == {"$bytes": ""}


@pytest.mark.parametrize(
    ("value", "body", "kind"),
    [
        ("a", b"a\0", 8),
        (5, b"\x05\0\0\0", 3),
        (1 << 40, (1 << 40).to_bytes(8, "little"), 20),
        (decimal("18446744073709551615"), b"\xff" * 8, 21),
        (True, b"\xff\xff", 11),
        (1.5, struct.pack("<d", 1.5), 5),
        (decimal("1.50"), (15_000).to_bytes(8, "little"), 6),
        (decimal("1.00001"), struct.pack("<HBBIQ", 0, 5, 0, 0, 100_001), 14),
        (date("2024-01-02T18:00:00"), struct.pack("<d", 45293.75), 7),
        (date("1970-01-01T00:00:00Z"), (116_444_736_000_000_000).to_bytes(8, "little"), 64),
        ({"$guid": GUID}, UUID(GUID).bytes_le, 72),
        ({"$bytes": "00ff"}, b"\0\xff", 0x1011),
        (None, b"", 1),
        ([1, 2], b"\x01\0\0\0\x02\0\0\0", 0x1003),
        ([1, 1 << 40], struct.pack("<2q", 1, 1 << 40), 0x1014),
        ([1, 1.5], struct.pack("<2d", 1, 1.5), 0x1005),
        (["a", "b"], "a\0b\0".encode("utf-16-le"), 0x1008),
        ([], b"", 0x1003),
    ],
)
def test_a_value_without_a_type_gets_the_one_that_fits(value, body, kind):
    assert encode(value, "activex") == (body, kind, b"")


@pytest.mark.parametrize(
    ("value", "kind", "path", "hint"),
    [
        ({"a": 1}, None, "", "write it as xml or json"),
        (1 << 70, None, "", "write it as a text"),
        (300, "VT_UI1", "", "an integer from 0 to 255"),
        ([1, 300], "VT_UI1 | VT_VECTOR", "[1]", "an integer from 0 to 255"),
        (decimal("1.00001"), "VT_CY", "", "write it as VT_DECIMAL"),
        (date("2024-01-02T18:00:00Z"), "VT_DATE", "", "as VT_FILETIME"),
        (date("yesterday"), None, "", 'write {"$date"'),
        ({"$guid": "x"}, None, "", 'write {"$guid"'),
        ({"$bytes": "xyz"}, None, "", "not bytes in hex"),
        (["a", 1], None, "", "of one type"),
        ("\ud800", None, "", "half a surrogate pair"),
        (1e300, "r4", "", "write it as VT_R8"),
    ],
)
def test_a_wrong_value_is_reported_with_a_right_one(value, kind, path, hint):
    with pytest.raises(InvalidValue) as caught:
        encode(value, "activex", type=kind)
    assert hint in caught.value.why
    assert caught.value.path == path


def test_an_unknown_type_has_the_nearest_name():
    with pytest.raises(InvalidArgument, match="did you mean VT_FILETIME"):
        encode(5, "activex", type="VT_FILTIME")
    assert encode([5], "activex", type="i2 | vector")[1] == 0x1002
    assert encode([5], "activex", type="VT_I2|VT_ARRAY")[1] == 0x2002


@pytest.mark.parametrize(
    ("body_type", "body", "why"),
    [
        (3, b"\x01\x02\x03", "VT_I4 takes 4 bytes, the body has 3"),
        (8, b"\x01\x02\x03", "VT_BSTR is UTF-16, the body has 3 bytes"),
        (7, struct.pack("<d", 1e300), "1e+300 days since 1899-12-30 is not a date"),
        (64, b"\xff" * 8, "18446744073709551615 times 100 ns since 1601 is not a date"),
        (14, struct.pack("<HBBIQ", 0, 29, 0, 0, 0), "a decimal with 29 places and the sign 0x00 is none"),
        (0x1003, b"\x01\x02", "VT_I4 | VT_VECTOR has elements of 4 bytes, the body has 2"),
        (9, b"\x01\x02", "bodies of type VT_DISPATCH are not read by their type"),
        (0x100C, b"\x01\x02", "bodies of type VT_VARIANT | VT_VECTOR are not read by their type"),
    ],
)
def test_why_bytes_are_no_value_of_their_type(body_type, body, why):
    with pytest.raises(MalformedBody) as caught:
        decode(body, body_type=body_type)
    assert caught.value.why == why


@pytest.mark.parametrize(
    ("body_type", "body", "value", "error"),
    [
        (8, b"\x00\xd8a\x00", "\ufffda", "not well-formed UTF-16 at byte 0"),
        (30, b"\xe4", "ä", "not UTF-8, read as Windows-1252"),
        (11, b"\x01\x00", True, "0x0001 is neither VARIANT_TRUE nor VARIANT_FALSE"),
        (0x1007, struct.pack("<2d", 0, 1e300), [date("1899-12-30T00:00:00.000000000")],
         "1e+300 days since 1899-12-30 is not a date"),
    ],
)  # fmt: skip
def test_a_fault_further_on_is_a_problem(body_type, body, value, error):
    read = decode(body, body_type=body_type)
    assert (read.value, [problem.error for problem in read.problems]) == (value, [error])


def test_texts_for_people():
    assert decode(b"\x03\x00\x0e\xc0", body_type=10).text == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert (
        decode(UUID(GUID).bytes_le + b"x", body_type=68).text
        == f"VT_STREAMED_OBJECT of 17 bytes, class {GUID}"
    )
    assert decode(b"\x01", body_type=66).text == "VT_STREAM of 1 byte"
    assert decode(struct.pack("<2i", 1, -1), body_type=0x1003).text == "[1, -1]"
    assert decode(b"", body_type=1).text == "null"


def test_items_of_vectors_are_limited():
    read = decode(bytes(400), body_type=0x1003, limits=Limits(items=10))
    assert read.value == [0] * 10
    assert read.problems[0].offset == 40
    read = decode(b"a\0" * 100, body_type=0x101E, limits=Limits(items=10))
    assert read.value == ["a"] * 10


def test_a_vector_may_begin_with_the_number_of_its_elements():
    two = struct.pack("<I2q", 2, 10_000, -15_000)
    assert decode(two, body_type=0x1006).value == [decimal("1.0000"), decimal("-1.5000")]
    body = decode(struct.pack("<Iqd", 2, 0, float("nan")), body_type=0x1007)
    assert body.value == [date("1899-12-30T00:00:00.000000000")]
    assert (body.problems[0].path, body.problems[0].offset) == ("[1]", 12)
    for body_type, data in ((0x2006, two), (0x1006, b"\3" + two[1:])):
        with pytest.raises(MalformedBody, match="elements of 8 bytes, the body has 20"):
            decode(data, body_type=body_type)
