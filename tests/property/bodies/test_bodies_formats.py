"""Bodies of ActiveX, XML, JSON, text and headers: no bytes break a reader, what is written is read."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.bodies import FORMATS, Body, Limits, dates, decode, encode, plain
from msmqwire.constants import VarEnum
from msmqwire.errors import MalformedBody

TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
XML_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc",), exclude_characters="\ufffe\uffff")
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
KINDS = st.one_of(
    st.sampled_from([0, 1, 8, 0x1011, 0x300, *VarEnum]),
    st.sampled_from(list(VarEnum)).map(lambda kind: kind | VarEnum.VT_VECTOR),
    st.integers(0, (1 << 32) - 1),
)
PIECES = (
    b"<", b">", b"</", b"/>", b"<a>", b"</a>", b"<int>", b"</int>", b"<ArrayOfInt>", b"</ArrayOfInt>", b"1",
    b'="', b"'", b' xmlns="u"', b"&#1;", b"&#x1;", b"&lt;", b"&x;", b"<!--", b"-->", b"<![CDATA[", b"]]>",
    b"<?", b"?>", b"<!DOCTYPE a>", b"{", b"}", b"[", b"]", b'"', b'"a":', b",", b"\\", b"\\ud800", b"\\u0041",
    b"NaN", b"1e400", b"9" * 20, b"true", b'"$type":', b"\0", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\x1f\x8b\x08", b"\xe4",
    b"<ArrayOfHeaderInfo>", b"</ArrayOfHeaderInfo>", b"<HeaderInfo>", b"</HeaderInfo>", b"<Key>", b"</Key>",
    b"<Value>", b"</Value>", b"<Value/>", gzip.compress(b'{"a": 1}', mtime=0), b'"message":',
    b'"messageType":',
)  # fmt: skip
BYTES = st.one_of(st.binary(max_size=80), st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))


@given(body=BYTES, body_type=KINDS, extension=BYTES)
def test_any_bytes_are_a_body_or_malformed(body, body_type, extension):
    try:
        found = decode(body, body_type=body_type, extension=extension)
    except MalformedBody as exc:
        refused = exc
    else:
        _is_sound(found)
        return
    assert refused.why
    assert refused.offset is None or 0 <= refused.offset <= len(body)


def _is_sound(found):
    assert isinstance(found, Body)
    assert found.format in FORMATS
    assert "\n" not in found.text.encode().decode()
    plain.dumps(found.to_json()).encode()
    assert found.named is not None
    assert all(problem.error for problem in found.problems)


@given(body=BYTES, limit=st.integers(0, 5))
def test_small_limits_break_no_reader(body, limit):
    limits = Limits(depth=limit, records=limit, items=limit, references=limit, text=limit, memory=400 * limit)
    for body_type in (0, 8, 30, 0x1002, 0x101E):
        try:
            plain.dumps(decode(body, body_type=body_type, extension=body, limits=limits).to_json())
        except MalformedBody:
            continue


NUMBERS = st.one_of(
    st.integers(-plain.EXACT, plain.EXACT),
    st.integers(-(1 << 90), 1 << 90).map(plain.integer),
    st.floats(allow_nan=False, allow_infinity=False),
)
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(TEXTS.map(plain.member), inner, max_size=5)
    ),
    max_leaves=20,
)  # fmt: skip


@given(
    value=st.one_of(st.lists(JSON_VALUES, max_size=4), st.dictionaries(TEXTS.map(plain.member), JSON_VALUES))
)
def test_json_is_read_back(value):
    body, body_type, _ = encode(value, "json")
    read = decode(body, body_type=body_type, extension=b'{"rbs2-content-type": "application/json"}')
    if read.format == "json":  # the rest are envelopes
        assert (plain.dumps(read.value), read.problems) == (plain.dumps(value), ())


DATES = st.integers(1, dates.TICKS_MAX).map(lambda ticks: {plain.DATE: dates.of_ticks(ticks, "Z")})
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)
SCALARS = st.one_of(
    XML_TEXTS,
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1).map(plain.integer),
    DECIMALS.map(plain.decimal),
    st.floats().map(plain.floating),
    DATES,
    st.binary(max_size=20).map(plain.raw),
    st.uuids().map(lambda guid: {plain.GUID: str(guid)}),
)


@given(value=SCALARS)
def test_a_simple_value_in_xml_is_read_back(value):
    body, body_type, _ = encode(value, "xml")
    read = decode(body, body_type=body_type)
    assert (read.value, read.problems) == (value, ())


LEAVES = XML_TEXTS.filter(lambda text: text == "" or not text.isspace())
ELEMENTS = st.recursive(
    st.one_of(LEAVES, st.none()),
    lambda inner: st.dictionaries(
        NAMES.filter(lambda name: not name.startswith("ArrayOf")),
        st.one_of(inner, st.lists(inner, min_size=2, max_size=4)),
        min_size=1,
        max_size=4,
    ),
    max_leaves=20,
)


@given(
    members=st.dictionaries(NAMES.filter(lambda name: not name.startswith("ArrayOf")), ELEMENTS, min_size=1)
)
def test_an_object_in_xml_is_read_back(members):
    value = {"$type": "Order", **members}
    body, body_type, _ = encode(value, "xml")
    read = decode(body, body_type=body_type)
    assert (read.value, read.problems) == (value, ())


GUIDS = st.uuids().map(lambda guid: {plain.GUID: str(guid)})
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
CURRENCY = st.integers(-(1 << 63) + 1, (1 << 63) - 1).map(
    lambda units: plain.decimal(f"{'-' * (units < 0)}{abs(units) // 10_000}.{abs(units) % 10_000:04}")
)
FILETIMES = st.integers(dates.FILETIME_EPOCH, dates.TICKS_MAX).map(
    lambda ticks: {plain.DATE: dates.of_ticks(ticks, "Z")}
)
DAYS = st.integers(0, dates.TICKS_MAX // 10_000).map(
    lambda milliseconds: {plain.DATE: dates.of_ticks(milliseconds * 10_000)}
)


@given(
    value=st.one_of(
        st.text(st.characters(codec="utf-8")),
        st.booleans(),
        st.none(),
        st.floats().map(plain.floating),
        st.integers(-(1 << 63), (1 << 64) - 1).map(plain.integer),
        GUIDS,
        CURRENCY,
        st.lists(st.integers(-(1 << 31), (1 << 31) - 1)),
        st.lists(WORDS, min_size=1),
        FILETIMES,
        DAYS,
    )
)
def test_a_value_of_activex_is_read_back(value):
    body, body_type, _ = encode(value, "activex")
    read = decode(body, body_type=body_type)
    assert (read.value, read.problems) == (value, ())


@pytest.mark.parametrize("format", ["nservicebus", "rebus"])
@given(headers=st.dictionaries(TEXTS, TEXTS, max_size=8))
def test_headers_are_read_back(format, headers):
    _, _, extension = encode("x", "text", headers=headers, headers_format=format)
    read = decode(b"x", extension=extension)
    assert (read.headers_format, list(read.headers.items()), read.problems) == (
        format,
        list(headers.items()),
        (),
    )


SIZE = 1 << 18


def _filled(unit, start=b"", end=b""):
    return start + unit * ((SIZE - len(start) - len(end)) // len(unit)) + end


@pytest.mark.parametrize(
    ("body", "body_type"),
    [
        (_filled(b"[],", b"[", b"[]]"), 0),
        (_filled(b"{},", b"[", b"{}]"), 0),
        (b"{" + b",".join(b'"%x":1' % number for number in range(SIZE // 10)) + b"}", 0),
        (_filled(b'"ab",', b"[", b"1]"), 0),
        (b"[" * SIZE, 0),
        (_filled(b"<a/>", b"<r>", b"</r>"), 0),
        (b"<r>" + b"".join(b"<a%x/>" % number for number in range(SIZE // 9)) + b"</r>", 0),
        (b"<r " + b" ".join(b'a%x="1"' % number for number in range(SIZE // 11)) + b"/>", 0),
        (_filled(b"x<a/>", b"<r>", b"</r>"), 0),
        (_filled(b"&#x1;", b"<r>", b"</r>"), 0),
        (_filled(b'<n:a n:b=""/>', b'<r xmlns:n="' + b"u" * 10_000 + b'">', b"</r>"), 0),
        (_filled(b"<a>"), 0),
        (_filled(b"\1\1"), 0x1002),
        (_filled(b"\1\1"), 0x100B),
        (_filled(b"\0"), 0x101E),
        (_filled(b"\1" * 16), 0x1048),
        (gzip.compress(b"[]," * (8 << 20), mtime=0), 0),
        (_filled(gzip.compress(b"", mtime=0)), 0),
    ],
    ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else hex(value),
)
def test_memory_is_within_its_bound(body, body_type):
    for small in (b"<a/>", b"{}", b"<a>"):
        decode(small)  # what is imported is not memory of a body
    tracemalloc.start()
    try:
        decode(body, body_type=body_type)
        peak = tracemalloc.get_traced_memory()[1]
    except MalformedBody:
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 16 * len(body) + (16 << 20)
