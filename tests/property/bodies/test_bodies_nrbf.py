"""Bodies of BinaryMessageFormatter: what is written is read, and no bytes break the reader."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msmqwire.bodies import dates, decode, encode, nrbf, plain
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.nrbf.gadgets import dangerous, type_names
from msmqwire.bodies.nrbf.primitives import single, time_span
from msmqwire.errors import MalformedBody
from tests.support.nrbf_streams import header, order
from tests.support.paths import VECTORS

SEEDS = [order(), *(bytes.fromhex(path.read_text()) for path in sorted(VECTORS.glob("bodies/nrbf_*.hex")))]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)
CHARACTERS = st.characters(codec="utf-8", max_codepoint=0xFFFF)
TICKS = st.integers(0, dates.TICKS_MAX)
DATES = st.one_of(
    TICKS.map(lambda ticks: {plain.DATE: dates.of_ticks(ticks)}),
    TICKS.map(lambda ticks: {plain.DATE: dates.of_ticks(ticks, "Z")}),
    TICKS.map(lambda ticks: {plain.DATE: dates.of_ticks(ticks), plain.KIND: "local"}),
)
SPANS = st.integers(-(1 << 63), (1 << 63) - 1).map(time_span)
DECIMALS = st.tuples(st.integers(-(1 << 96) + 1, (1 << 96) - 1), st.integers(0, 28)).map(
    lambda parts: plain.decimal(_decimal(*parts))
)
FLOATS = st.floats().map(plain.floating)
SINGLES = st.floats(width=32).map(single)


def _decimal(number, places):
    digits = f"{abs(number):0{places + 1}}"
    text = digits[:-places] + "." + digits[-places:] if places else digits
    return f"{'-' if number < 0 else ''}{text}"


def _integers(bits, signed):
    low = -(1 << (bits - 1)) if signed else 0
    return st.integers(low, low + (1 << bits) - 1).map(plain.integer)


VALUES = {
    "System.Boolean": st.booleans(),
    "System.Byte": _integers(8, False),
    "System.Char": CHARACTERS,
    "System.DateTime": DATES,
    "System.Decimal": DECIMALS,
    "System.Double": FLOATS,
    "System.Int16": _integers(16, True),
    "System.Int32": _integers(32, True),
    "System.Int64": _integers(64, True),
    "System.SByte": _integers(8, True),
    "System.Single": SINGLES,
    "System.String": st.none() | TEXTS,
    "System.TimeSpan": SPANS,
    "System.UInt16": _integers(16, False),
    "System.UInt32": _integers(32, False),
    "System.UInt64": _integers(64, False),
}
LISTS = st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), st.lists(VALUES[name])))


def read(body):
    content = nrbf.read(body, Budget(DEFAULT, len(body)))
    assert content.problems == ()
    return content.value


@given(LISTS)
def test_arrays_come_back(pair):
    name, items = pair
    value = read(nrbf.write(items, name + "[]"))
    if name == "System.Byte":
        assert value == plain.raw(bytes(items))
    else:
        assert value == items


@given(LISTS)
def test_lists_come_back(pair):
    name, items = pair
    body = nrbf.write(items, f"System.Collections.Generic.List`1[[{name}]]")
    value = read(body)
    assert value["$type"].startswith(f"System.Collections.Generic.List`1[[{name}, mscorlib, ")
    assert value["_size"] == len(items)
    if name != "System.Byte":
        assert value["_items"] == items
        assert nrbf.write(value) == body


@given(st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name])))
def test_values_come_back(pair):
    name, value = pair
    if value is None:
        return
    body = nrbf.write(value, name)
    found = read(body)
    if name == "System.String":
        assert found == value
    elif name not in ("System.DateTime", "System.TimeSpan", "System.Decimal"):
        assert found == {"$type": name, "$id": 1, "m_value": value}
        assert nrbf.write(found) == body
    else:
        assert found["$type"] == name


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | TEXTS | FLOATS | DATES | SPANS
        | DECIMALS | st.binary(max_size=20).map(plain.raw),
        lambda inner: st.lists(inner, max_size=6),
        max_leaves=30,
    ).filter(lambda value: isinstance(value, list))
)  # fmt: skip
def test_arrays_of_anything_come_back(value):
    assert read(nrbf.write(value, "System.Object[]")) == value


@given(st.text(st.characters(codec="utf-8"), min_size=1) | st.lists(TEXTS) | st.lists(st.integers(-9, 9)))
def test_encode_and_decode(value):
    body, body_type, extension = encode(value, "nrbf")
    assert (body_type, extension) == (0x300, b"")
    assert body == encode(value, "binary")[0]
    assert decode(body, body_type=body_type).value == value


def is_read_or_refused(body):
    try:
        content = nrbf.read(body, Budget(DEFAULT, len(body)))
    except MalformedBody:
        assert not nrbf.recognises(body)
        return
    plain.dumps(content.value).encode()
    content.text.encode()
    dangerous(type_names(body))


@given(st.binary(max_size=80), st.booleans())
@example(b"", False)
@example(b"\x10" + bytes(8), True)
def test_any_bytes(data, behind_a_header):
    is_read_or_refused(header() + data if behind_a_header else data)


@settings(max_examples=300)
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=5)), max_size=5))
def test_mutations(seed, changes):
    body = bytearray(seed)
    for place, data in changes:
        at = place % len(body)
        body[at : at + len(data)] = data
    is_read_or_refused(bytes(body))


@given(st.sampled_from(SEEDS).flatmap(lambda seed: st.tuples(st.just(seed), st.integers(0, len(seed) - 1))))
def test_a_cut_is_a_problem(pair):
    seed, cut = pair
    body = seed[:cut]
    try:
        content = nrbf.read(body, Budget(DEFAULT, len(body)))
    except MalformedBody:
        assert cut < 17
    else:
        assert content.problems[0].offset <= cut


@given(st.integers(0, 1 << 31).map(lambda bits: bits & 0x7F7F_FFFF), st.booleans())
def test_singles_are_the_shortest_that_are_the_same(bits, negative):
    value = struct.unpack("<f", struct.pack("<I", bits | negative << 31))[0]
    found = single(value)
    assert struct.pack("<f", found) == struct.pack("<f", value)
    assert len(repr(found)) <= len(repr(value))


@pytest.mark.parametrize("text", ["0.1", "1.1", "3.4028235e+38", "1e-45", "16777216.0", "-2.5", "0.33333334"])
def test_singles(text):
    value = struct.unpack("<f", struct.pack("<f", float(text)))[0]
    assert repr(single(value)) == text
