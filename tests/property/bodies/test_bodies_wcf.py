"""Bodies of WCF: what is written is read, and no bytes break the reader."""

from __future__ import annotations

import csv
import gzip
import struct
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from msmqwire.bodies import decode, encode, wcf
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.wcf import characters, nbfx, records
from msmqwire.bodies.wcf.fault import build_size
from msmqwire.bodies.wcf.infoset import End, Start, Text, events
from msmqwire.bodies.wcf.problems import Problems
from msmqwire.bodies.wcf.words import WORDS
from msmqwire.bodies.wcf.writing import write_document
from msmqwire.errors import MalformedBody
from tests.support.paths import VECTORS

PREAMBLE = b"\x00\x01\x00\x01\x04\x02\x01u\x03\x07"
WITH_TABLE = PREAMBLE[:-1] + b"\x08"
AS_TEXT = PREAMBLE[:-1] + b"\x03"
SIMPLEX = b"\x00\x01\x00\x01\x03\x02\x01u\x03\x07\x0c"


def _documents():
    with (VECTORS / "bodies" / "nbfx_records.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield PREAMBLE + b"\x40\x01r" + bytes.fromhex(row["bytes"]) + b"\x01"


SEEDS = [
    *(bytes.fromhex(path.read_text()) for path in sorted(VECTORS.glob("bodies/wcf_*.hex"))),
    *(bytes.fromhex(path.read_text()) for path in sorted(VECTORS.glob("bodies/nbf*.hex"))),
    *_documents(),
]
NAMES = st.sampled_from(["a", "Order", "Body", "mustUnderstand", "Größe", "x" * 130, "_1.2-3"])
PREFIXES = st.sampled_from(["", "s", "z", "pre"])
URIS = st.sampled_from(["http://tempuri.org/", WORDS[4], "urn:a&b", "u" * 200])
# What XML forbids has its own test; a line end before a parser is one character.
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=200).filter(
    lambda text: (
        characters.escape(text).count("&#") == text.count("\r")
        and "\ufffe" not in text
        and "\uffff" not in text
    )
)


@st.composite
def elements(draw, depth=4):
    """Draw the XML of an element that declares what it uses, as another library writes it."""
    prefix, name, uri = draw(PREFIXES), draw(NAMES), draw(URIS)
    element = etree.Element(f"{{{uri}}}{name}", nsmap={prefix or None: uri, "q": "urn:q"})
    for key in draw(st.sets(NAMES, max_size=3)):
        qualified = draw(st.booleans())
        element.set(f"{{urn:q}}{key}" if qualified else key, draw(TEXTS))
    element.text = draw(TEXTS)
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        child = etree.fromstring(draw(elements(depth=depth - 1)))
        child.tail = draw(TEXTS)
        element.append(child)
    return etree.tostring(element, encoding="unicode")


def canonical(xml):
    return etree.canonicalize(xml)


@given(elements(), st.sampled_from([7, 8, 0, 3, 4]), st.sampled_from(["SingletonSized", "Simplex"]))
@settings(deadline=None, max_examples=60)
def test_what_is_written_is_read(xml, encoding, mode):
    value = {"via": "net.msmq://web01/private/orders", "encoding": encoding, "xml": xml}
    if mode != "SingletonSized":
        value |= {"mode": mode, "more": [xml, xml]}
    body, body_type, extension = encode(value, "wcf")
    read = decode(body, body_type=body_type, extension=extension)
    assert read.format == "wcf"
    assert read.problems == ()
    assert canonical(read.value["xml"]) == canonical(xml)
    assert {**read.value, "xml": "", "more": ""} == {**value, "xml": "", "more": ""}
    assert [canonical(text) for text in read.value.get("more", [])] == [canonical(xml)] * len(
        value.get("more", [])
    )
    # What was read is written as the same bytes, but for empty elements and quotes of a text.
    if encoding in (7, 8):
        assert encode(read.value, "wcf")[0] == body


@given(elements())
@settings(deadline=None, max_examples=60)
def test_events_are_those_of_another_parser(xml):
    ours = []
    for event in events(xml, DEFAULT.depth):
        if isinstance(event, Start):
            ours.append((event.prefix or None, event.name))
        elif isinstance(event, End):
            ours.append("end")
        elif isinstance(event, Text):
            ours.append(event.text)
    theirs = []
    for kind, element in etree.iterwalk(etree.fromstring(xml), events=("start", "end")):
        if kind == "start":
            theirs.append((element.prefix, etree.QName(element).localname))
            theirs.extend(filter(None, [element.text]))
        else:
            theirs.append("end")
            theirs.extend(filter(None, [element.tail]))
    assert ours == theirs


VALUES = {
    kind: st.binary(min_size=layout.size, max_size=layout.size)
    for kind, (layout, _) in characters.FIXED.items()
}


@st.composite
def text_records(draw, attribute=False):
    """Draw the bytes of a text record with a value that is in order, without the end of an element."""
    kind = draw(st.sampled_from([*VALUES, *characters.CONSTANTS, 0x98, 0x9A, 0x9E, 0xB6, 0xAA, 0xBC]))
    if kind in characters.CONSTANTS:
        return bytes([kind])
    if kind in (0x98, 0x9A, 0x9E, 0xB6):
        text = draw(st.text(st.characters(codec="utf-8"), max_size=40))
        raw = text.encode("utf-16-le" if kind == 0xB6 else "utf-8")
        return bytes([kind]) + len(raw).to_bytes(2 if kind == 0x9A else 1, "little") + raw
    if kind in (0xAA, 0xBC):
        letter = bytes([draw(st.integers(0, 25))]) if kind == 0xBC else b""
        return bytes([kind]) + letter + build_size(draw(st.sampled_from(sorted(WORDS))))
    raw = draw(VALUES[kind])
    fault = characters.FAULTS.get(kind)
    (value,) = characters.FIXED[kind][0].unpack(raw)
    return b"\x80" if fault is not None and fault(value) else bytes([kind]) + raw


@st.composite
def trees(draw, depth=3):
    """Draw the bytes of an element."""
    data = draw(st.sampled_from([b"\x40\x01a", b"\x42\x0e", b"\x40\x05Order", b"\x41\x03xml\x01b"]))
    if draw(st.booleans()):
        data += b"\x04\x01k" + draw(text_records())
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        data += draw(st.one_of(trees(depth=depth - 1), text_records()))
    last = draw(text_records())
    return data + (bytes([last[0] | 1]) + last[1:] if draw(st.booleans()) else b"\x01")


@given(trees())
@settings(deadline=None, max_examples=150)
def test_records_that_are_in_order_are_read_without_a_problem(data):
    problems = Problems()
    xml = nbfx.read_document(data, None, Budget(DEFAULT, len(data)), problems)
    assert problems.all() == ()
    found = list(records.records(data))
    if not any(value != value for record in found for value in record.fields):  # bits of NaN
        assert records.build(found) == data
    # What is read can be written, and says the same again.
    written = write_document(xml)
    again = nbfx.read_document(written, None, Budget(DEFAULT, len(written)), problems)
    assert again == xml
    assert problems.all() == ()


def is_read(body):
    """Read a body; what comes out can be printed, its places are in the body, and its XML is whole."""
    read = wcf.read(body, Budget(DEFAULT, len(body)))
    read.text.encode()
    for problem in read.problems:
        assert problem.offset is None or 0 <= problem.offset <= len(body)
    for xml in (read.value["xml"], *read.value.get("more", ())):
        if xml is not None:
            xml.encode()
            if not read.problems:
                list(events(xml, DEFAULT.depth))


@given(st.binary(max_size=200), st.sampled_from([b"", PREAMBLE, WITH_TABLE, AS_TEXT, SIMPLEX, PREAMBLE[:-1]]))
@example(b"", PREAMBLE)
def test_any_bytes(data, preamble):
    wcf.recognises(data)
    try:
        is_read(preamble + data)
    except MalformedBody:
        return


@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
    st.integers(0, 400),
    st.binary(max_size=6),
)
@settings(deadline=None, max_examples=300)
def test_changed_bodies(body, changes, at, inserted):
    changed = bytearray(body)
    for place, byte in changes:
        changed[place % len(changed)] = byte
    at %= len(changed)
    changed[at:at] = inserted
    try:
        is_read(bytes(changed))
    except MalformedBody:
        return


def _sized(kind, raw):
    return bytes([kind]) + len(raw).to_bytes(4, "little") + raw


def _table(*strings):
    content = b"".join(build_size(len(string)) + string for string in strings)
    return build_size(len(content)) + content


def _worst(size):
    """Give bodies that would take much more memory than they have bytes."""

    def inside(data):
        return PREAMBLE + b"\x40\x01r" + data + b"\x01"

    wide = "😀".encode()
    long = b"x" * (size // 2)
    yield "elements", inside(b"\x40\x01a\x01" * (size // 4))
    yield "elements within each other", PREAMBLE + b"\x40\x01a" * (size // 3)
    yield "strings of the dictionary", inside(b"\xaa\x00" * (size // 2))
    yield "a wide character before strings", inside(_sized(0x9C, wide) + b"\xaa\x00" * (size // 2))
    yield "a wide character after", inside(_sized(0x9C, b"&" * size + wide))
    yield "an attribute of markup", PREAMBLE + b"\x40\x01r\x04\x01a" + _sized(0x9C, b'"' * size) + b"\x01"
    yield "a wide attribute", PREAMBLE + b"\x40\x01r\x04\x01a" + _sized(0x9C, b'"' * size + wide) + b"\x01"
    repeated = b"\xaa\x01" * (size // 4) + b"\x01"
    yield "a long string again and again", WITH_TABLE + _table(long) + b"\x40\x01r" + repeated
    names = b"\x42\x01\x01" * (size // 3)
    yield "a long name again and again", WITH_TABLE + _table(b"x" * 250) + b"\x40\x01r" + names + b"\x01"
    attributes = b"".join(b"\x04\x04%04x\xaa\x01" % number for number in range(9000))
    yield "a long value again and again", WITH_TABLE + _table(long) + b"\x40\x01r" + attributes + b"\x01"
    strings = [b"%x" % number for number in range(size // 6)]
    yield "many strings", WITH_TABLE + _table(*strings) + b"\x40\x01r\x01"
    count = min(size, 900_000)
    yield (
        "an array of long names",
        inside(b"\x03\x40" + build_size(200) + b"a" * 200 + b"\x01\xb5" + build_size(count) + bytes(count)),
    )
    yield "an array", inside(b"\x03\x40\x01a\x01\xb5" + build_size(count) + bytes(count))
    declared = b"\x40\x01r" + b"".join(b"\x09\x04a%03x\x01u" % number for number in range(4000))
    yield "declarations", PREAMBLE + declared * (size // len(declared))
    yield "a list", PREAMBLE + b"\x40\x01r\x04\x01a\xa4" + b"\x88\x7f" * (size // 2) + b"\xa6\x01"
    yield "text that is not UTF-8", inside(_sized(0x9C, b"\xff" * size))
    yield "names that are none", inside(b"\x40\x01<\x01" * (size // 4))
    packed = gzip.compress(b"\x40\x01r" + b"\x80" * (20 * size) + b"\x01")
    yield "much in few bytes", PREAMBLE[:-2] + b"\x04\x1capplication/soap+msbin1+gzip" + packed
    include = b"<x:Include href='cid:1'/>" * (size // 60)
    part = b"<r xmlns:x='http://www.w3.org/2004/08/xop/include'>" + include + b"</r>"
    mtom = b"--B\r\nContent-ID: <0>\r\n\r\n" + part + b"\r\n--B\r\nContent-ID: <1>\r\n\r\n" + long
    yield "a part again and again", PREAMBLE[:-1] + b"\x06" + mtom + b"\r\n--B--"
    yield (
        "many parts",
        PREAMBLE[:-1] + b"\x06--B\r\na:b\r\n\r\n<r/>" + b"\r\n--B\r\na:b\r\n\r\nx" * (size // 17),
    )
    text = b"<r" + b"".join(b" a%x=''" % number for number in range(size // 9)) + b"/>"
    yield "attributes of a text", AS_TEXT + text
    yield "a wide text", AS_TEXT + b"<r>" + b"x" * size + wide + b"</r>"
    yield "envelopes", SIMPLEX + b"\x06\x04\x40\x01a\x01" * (size // 6) + b"\x07"
    chunked = b"\x05\x03\x40\x01r" + b"\x02\x88\x05" * (size // 3) + b"\x01\x01\x00\x07"
    yield "chunks", SIMPLEX[:4] + b"\x01" + SIMPLEX[5:] + chunked


@pytest.mark.parametrize(
    "name, body", list(_worst(1 << 18)), ids=lambda item: item if isinstance(item, str) else ""
)
def test_memory_is_bounded_by_the_size_of_the_body(name, body):
    decode(body[:2000])  # what is imported when it is needed first
    tracemalloc.start()
    try:
        read = decode(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read.format == "wcf"
    assert peak <= 16 * len(body) + (16 << 20)


@given(st.floats())
@example(5e-324)
@example(1.7976931348623157e308)
def test_doubles_come_back(value):
    text = characters.double(value)
    back = float(text.replace("INF", "inf"))
    assert struct.pack("<d", back) == struct.pack("<d", value) or value != value


@given(st.floats(width=32))
@example(3.4028234663852886e38)
@example(1.401298464324817e-45)
def test_floats_come_back(value):
    text = characters.single(value)
    back = float(text.replace("INF", "inf"))
    assert struct.pack("<f", back) == struct.pack("<f", value) or value != value
