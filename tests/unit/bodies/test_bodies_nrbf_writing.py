"""Bodies written for BinaryMessageFormatter: bytes as .NET writes them, and values that have none."""

from __future__ import annotations

import base64

import pytest

from msmqwire.bodies import encode, nrbf
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.nrbf.records import Primitive, Record
from msmqwire.errors import InvalidArgument, InvalidValue
from tests.support.codec_checks import proving
from tests.support.nrbf_streams import int32, nulls, objects, primitives, ref, stream, string, strings, typed

OF_INT32 = "System.Collections.Generic.List`1[[System.Int32]]"
OF_INT32_WHOLE = (
    "System.Collections.Generic.List`1[[System.Int32, mscorlib, Version=4.0.0.0, Culture=neutral, "
    "PublicKeyToken=b77a5c561934e089]]"
)

PRIMITIVE_ITEMS = ("NRBF-2.4.3.3-03", "NRBF-2.4.3.3-04")


def read(body):
    content = nrbf.read(body, Budget(DEFAULT, len(body)))
    assert content.problems == ()
    return content.value


@pytest.mark.requirement(
    "NRBF-2.6.1-01", "NRBF-2.6.1-02", "NRBF-2.6.1-05", "NRBF-2.6.1-09", "NRBF-2.6.1-10", "NRBF-2.6.3-01",
    "NRBF-2.3.2.3-01", "NRBF-2.3-01", "NRBF-2.5.2-01",
)  # fmt: skip
def test_an_int32_as_dotnet_writes_it():
    # What BinaryFormatter makes of the int 5, often seen as text.
    expected = "AAEAAAD/////AQAAAAAAAAAEAQAAAAxTeXN0ZW0uSW50MzIBAAAAB21fdmFsdWUACAUAAAAL"
    assert nrbf.write(5) == base64.b64decode(expected)


@pytest.mark.requirement("NRBF-2.4.3.2-01", "NRBF-2.4.3.3-01", "NRBF-2.4.3.4-01", "NRBF-2.5.7-01")
@pytest.mark.parametrize(
    "value, records",
    [
        ("order 7", [string(1, "order 7")]),
        proving([5, 6], [primitives(1, Primitive.INT32, [5, 6])], ids=PRIMITIVE_ITEMS, name="Int32"),
        ([5, 1 << 40], [primitives(1, Primitive.INT64, [5, 1 << 40])]),
        proving(
            ["a", None, None, "b", None],
            [strings(1, 5), string(2, "a"), nulls(2), string(3, "b"), b"\x0a"],
            ids=("NRBF-2.4-01", "NRBF-2.4-02", "NRBF-2.4-04", "NRBF-2.5.4-01", "NRBF-2.5.6-01"),
            name="texts and nulls",
        ),
        proving(
            ["a", *[None] * 255],
            [strings(1, 256), string(2, "a"), b"\x0d\xff"],
            ids=("NRBF-2.4-04", "NRBF-2.5.6-01", "NRBF-2.5.6-02"),
            name="255 nulls",
        ),
        proving(
            ["a", *[None] * 256],
            [strings(1, 257), string(2, "a"), b"\x0e" + int32(256)],
            ids=("NRBF-2.4-04", "NRBF-2.5.5-01", "NRBF-2.5.6-02"),
            name="256 nulls",
        ),
        proving(
            {"$bytes": "00ff"}, [primitives(1, Primitive.BYTE, [0, 255])], ids=PRIMITIVE_ITEMS, name="bytes"
        ),
        ([{"$decimal": "1.50"}], [primitives(1, Primitive.DECIMAL, ["1.50"])]),
        proving(
            [True, "x", [1.5], None, {"$bytes": "07"}],
            [
                objects(1, 5),
                typed(Primitive.BOOLEAN, True),
                string(2, "x"),
                ref(3),
                b"\x0a",
                ref(4),
                objects(3, 1),
                typed(Primitive.DOUBLE, 1.5),
                primitives(4, Primitive.BYTE, [7]),
            ],
            ids=(
                "NRBF-2.4-01", "NRBF-2.4-02", "NRBF-2.5.1-01", "NRBF-2.5.3-01", "NRBF-2.5.3-02",
                "NRBF-2.5.3-03",
            ),
            name="objects",
        ),
        ([], [objects(1, 0)]),
    ],
)  # fmt: skip
def test_records(value, records):
    assert nrbf.write(value) == stream(*records)


@pytest.mark.parametrize(
    "value, type_, kind, data",
    [
        proving("a", "System.Char", Primitive.CHAR, "61", ids="NRBF-2.1.1.1-01"),
        proving("ß", "System.Char", Primitive.CHAR, "c39f", ids="NRBF-2.1.1.1-01"),
        proving("\uffff", "System.Char", Primitive.CHAR, "efbfbf", ids="NRBF-2.1.1.1-01"),
        proving(0.1, "System.Single", Primitive.SINGLE, "cdcccc3d", ids="NRBF-2.1.1.3-01"),
        proving(1e-45, "System.Single", Primitive.SINGLE, "01000000", ids="NRBF-2.1.1.3-01"),
        proving({"$float": "INF"}, "System.Single", Primitive.SINGLE, "0000807f", ids="NRBF-2.1.1.3-01"),
        proving(
            {"$timespan": "P1DT2H"}, None, Primitive.TIME_SPAN, "0090f2edd9000000", ids="NRBF-2.1.1.4-01"
        ),
        proving(
            {"$timespan": "PT0.5S"}, None, Primitive.TIME_SPAN, "404b4c0000000000", ids="NRBF-2.1.1.4-01"
        ),
        proving(
            {"$timespan": "-PT0.0000015S"}, None, Primitive.TIME_SPAN, "f1ffffffffffffff",
            ids="NRBF-2.1.1.4-01",
        ),
        proving(
            {"$timespan": "-P10675199DT2H48M5.4775808S"}, None, Primitive.TIME_SPAN, "0000000000000080",
            ids="NRBF-2.1.1.4-01",
        ),
        proving(
            {"$date": "0001-01-01T00:00:00.0000001"}, None, Primitive.DATE_TIME, "0100000000000000",
            ids="NRBF-2.1.1.5-01", name="unspecified",
        ),
        proving(
            {"$date": "9999-12-31T23:59:59.9999999Z"}, None, Primitive.DATE_TIME, "ff3f37f47528ca6b",
            ids="NRBF-2.1.1.5-01", name="UTC",
        ),
        proving(
            {"$date": "2026-07-04T04:00:00.1234567", "$kind": "local"}, None, Primitive.DATE_TIME,
            "87761eb880d9de88", ids="NRBF-2.1.1.5-01", name="local",
        ),
        proving(
            {"$decimal": "-1.50"}, None, Primitive.DECIMAL, "052d312e3530", ids="NRBF-2.1.1.7-01",
            name="a decimal",
        ),
    ],
)  # fmt: skip
def test_primitive_values_are_these_bytes(value, type_, kind, data):
    head = bytes([Record.ARRAY_SINGLE_PRIMITIVE]) + int32(1, 1) + bytes([kind])
    assert nrbf.write([value], type_ and f"{type_}[]") == stream(head + bytes.fromhex(data))


@pytest.mark.requirement("NRBF-2.1.1.6-01", "NRBF-2.1.1.6-02", "NRBF-2.1.1.6-03", "NRBF-2.1.1.6-05")
@pytest.mark.parametrize(
    "text, length",
    [
        ("", "00"), ("ß", "02"), ("x" * 127, "7f"), ("x" * 128, "8001"), ("x" * 16_383, "ff7f"),
        ("€" * 5_462, "828001"), ("x" * 2_097_152, "80808001"),
    ],
    ids=["none", "two bytes", "127", "128", "16383", "16386", "2097152"],
)  # fmt: skip
def test_the_length_before_a_text(text, length):
    record = bytes([Record.BINARY_OBJECT_STRING]) + int32(1)
    assert nrbf.write(text) == stream(record + bytes.fromhex(length) + text.encode())


@pytest.mark.parametrize(
    "value, type_, members",
    [
        (5, "System.Int64", {"m_value": 5}),
        (5, "System.Int32, mscorlib, Version=4.0.0.0", {"m_value": 5}),
        ({"$decimal": "-1.50"}, None, {"flags": 2 << 16 | -1 << 31, "hi": 0, "lo": 150, "mid": 0}),
        ({"$decimal": "79228162514264337593543950335"}, None, {"flags": 0, "hi": -1, "lo": -1, "mid": -1}),
        (
            {"$date": "2026-11-28T08:00:00Z"},
            None,
            {"ticks": {"$decimal": "639314496000000000"}, "dateData": {"$decimal": "5251000514427387904"}},
        ),
        ({"$timespan": "-P1DT0.5S"}, None, {"_ticks": -864_005_000_000}),
        (
            {"$guid": "557358d1-9150-9595-4997-0c1a2b3c4d5e"},
            None,
            {
                "_a": 0x557358D1, "_b": -28336, "_c": -27243, "_d": 0x49, "_e": 0x97, "_f": 0x0C, "_g": 0x1A,
                "_h": 0x2B, "_i": 0x3C, "_j": 0x4D, "_k": 0x5E,
            },
        ),
    ],
)  # fmt: skip
def test_values_on_their_own(value, type_, members):
    found = read(nrbf.write(value, type_))
    del found["$type"], found["$id"]
    assert found == members


def test_times_with_an_offset_become_utc():
    assert read(nrbf.write([{"$date": "2026-01-01T01:00:00+02:00"}])) == [
        {"$date": "2025-12-31T23:00:00.000000000Z"}
    ]


def test_a_list():
    body = encode([5, 6], "nrbf", type=OF_INT32)[0]
    assert body == encode([5, 6], "binary", type=OF_INT32_WHOLE)[0]
    assert read(body) == {"$type": OF_INT32_WHOLE, "$id": 1, "_items": [5, 6], "_size": 2, "_version": 2}
    assert body.endswith(int32(2, 2) + primitives(2, Primitive.INT32, [5, 6]) + b"\x0b")


@pytest.mark.parametrize(
    "value, type_, path, why",
    [
        (["a", 5], "System.String[]", "[1]", "5 is not text"),
        ([1, 1 << 40], "System.Int32[]", "[1]", "1099511627776 is not an Int32: -2147483648 to 2147483647"),
        ([1.5], "System.Int32[]", "[0]", "1.5 is not an Int32"),
        ([256], "System.Byte[]", "[0]", "256 is not a Byte: 0 to 255"),
        ([True], "System.Int32[]", "[0]", "true is not a number"),
        ([1], "System.Boolean[]", "[0]", "1 is neither true nor false"),
        ([[1, {"a": 5}]], "System.Object[]", "[0][1]", "{a: 5} is not a value of a list that is written"),
        (["ab"], "System.Char[]", "[0]", "ab is not a character of 16 bits"),
        ([1e39], "System.Single[]", "[0]", "1e+39 is beyond the range of a Single"),
        ([{"$decimal": "1e30"}], "System.Decimal[]", "[0]", "more digits than a Decimal"),
        ([{"$decimal": "1." + "1" * 29}], "System.Decimal[]", "[0]", "more digits than a Decimal"),
        ([5], "System.TimeSpan[]", "[0]", "5 is not a time"),
        (["x"], "System.DateTime[]", "[0]", "x is not a date"),
        ([{"$date": "0001-01-01T00:00:00+01:00"}], None, "[0]", "beyond the range of a DateTime"),
        ([{"$timespan": "P1Y"}], "System.TimeSpan[]", "[0]", "P1Y is not a time"),
        ([{"$timespan": "P99999999D"}], None, "[0]", "beyond the range of a TimeSpan"),
        ([{"$timespan": "P"}], None, "[0]", "P is not a time"),
        (["\ud800"], None, "[0]", "half of a surrogate pair"),
        (None, None, "", "null has no type that is written"),
        ({"a": 1}, None, "", "write an object as json or xml"),
        ({"$type": "Shop.Order", "$id": 1}, None, "$type", "objects of Shop.Order are not written"),
        (5, "System.Int32[]", "", "5 is not a list"),
    ],
)
def test_values_that_can_not_be_written(value, type_, path, why):
    with pytest.raises(InvalidValue) as caught:
        nrbf.write(value, type_)
    assert caught.value.path == path
    assert why in caught.value.why


@pytest.mark.parametrize(
    "type_", ["Shop.Order", "System.Int33", OF_INT32.replace("Int32", "Object"), "", "int"]
)
def test_types_that_are_not_written(type_):
    with pytest.raises(InvalidArgument) as caught:
        nrbf.write([5], type_)
    assert caught.value.path == "type"
