"""Hostile XML in place of an SRMP envelope is refused, and with work that its size bounds."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.scan import DEPTH_MAX, ELEMENTS_MAX, SIZE_MAX, TAG_MAX, scan
from tests.support.srmp.srmp_envelopes import SMALL, changed, refused

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BILLION = f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]>'.encode()
QUADRATIC = f'<!DOCTYPE x [<!ENTITY a "{"a" * 100_000}">]>'.encode()
FILE = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
TO = b"<to>http://h/q"

DOCUMENT_TYPES = {
    "billion laughs": BILLION + SMALL.replace(TO, TO + b"&l9;"),
    "quadratic blow-up": QUADRATIC + SMALL.replace(TO, TO + b"&a;" * 10_000),
    "external entity": FILE + SMALL.replace(TO, TO + b"&e;"),
    "parameter entity": b'<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p"> %p;]>' + SMALL,
    "external subset": b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">' + SMALL,
    "after a declaration": b'<?xml version="1.0"?><!-- --><!DOCTYPE x>' + SMALL,
    "inside": SMALL.replace(TO, b"<!ENTITY a 'b'>" + TO),
    "in lower case": b"<!doctype x>" + SMALL,
}


@pytest.mark.parametrize("name", DOCUMENT_TYPES)
def test_no_document_type_and_no_entity(name):
    data = DOCUMENT_TYPES[name]
    exc = refused(data)
    assert "document type" in exc.why
    at = exc.offset
    assert data[at : at + 9].lower() in (b"<!doctype", b"<!entity ")


@pytest.mark.parametrize("entity", [b"&a;", b"&nbsp;", b"&#0;", b"&#xD800;", b"&", b"&lt", b"\0", b"\x01"])
def test_references_that_mean_nothing(entity):
    data = SMALL.replace(TO, TO + entity)
    exc = refused(data)
    assert "not well-formed" in exc.why
    assert abs(exc.offset - data.index(TO) - len(TO)) < 12


def nested(levels: int) -> bytes:
    """An unknown element in the header, with so many of its kind inside each other."""
    return SMALL.replace(b"</se:Header>", b"<x>" * levels + b"</x>" * levels + b"</se:Header>")


def test_depth():
    assert len(parse_envelope(nested(DEPTH_MAX - 2)).unknown) == 1
    exc = refused(nested(DEPTH_MAX - 1))
    assert f"{DEPTH_MAX} deep" in exc.why
    assert refused(nested(1000)).offset == exc.offset
    assert refused(SMALL.replace(b"</se:Header>", b"<x>" * 100_000)).offset == exc.offset


def test_number_of_elements():
    here = len(scan(SMALL))
    room = ELEMENTS_MAX - here
    assert len(parse_envelope(SMALL.replace(b"</se:Header>", b"<x/>" * room + b"</se:Header>")).kept) == room
    data = SMALL.replace(b"</se:Header>", b"<x/>" * (room + 1) + b"</se:Header>")
    assert f"{ELEMENTS_MAX} elements" in refused(data).why


def test_size():
    room = SIZE_MAX - len(SMALL)
    label = "l" * room
    data = changed(SMALL, "MSMQ:l", f"MSMQ:{label}l")
    assert len(data) == SIZE_MAX
    assert parse_envelope(data).path.action == f"MSMQ:{label}l"
    exc = refused(data + b" ")
    assert f"more than {SIZE_MAX:,}" in exc.why
    assert exc.offset == SIZE_MAX


def test_length_of_a_tag():
    filler = "a" * (TAG_MAX - len("<to b=''>"))
    assert parse_envelope(changed(SMALL, "<to>", f"<to b='{filler}'>"))
    exc = refused(changed(SMALL, "<to>", f"<to b='{filler}a'>"))
    assert (exc.offset, "tag" in exc.why) == (SMALL.index(b"<to>"), True)


@pytest.mark.requirement("SRMP-2.2-01")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7"])
def test_another_encoding_than_utf_8(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + SMALL.decode().replace("MSMQ:l", "MSMQ:\u00e9")
    assert refused(text.encode(encoding)).path == "Envelope"
    assert refused(text.encode()).why.startswith("declares another encoding")


def test_utf_8_may_be_declared():
    for start in (b"\xef\xbb\xbf", b'<?xml version="1.0" encoding="UTF-8"?>', b"<?xml version='1.0'?>\r\n"):
        assert parse_envelope(start + SMALL) == parse_envelope(SMALL)
    label = parse_envelope(changed(SMALL, "MSMQ:l", "MSMQ:\u00e9\U0001f600")).path.action
    assert label == "MSMQ:\u00e9\U0001f600"
    cut = SMALL.replace(b"MSMQ:l", b"MSMQ:\xc3")
    assert refused(cut).offset == cut.index(b"\xc3")


@pytest.mark.parametrize(
    "old, new",
    [
        ("<to>", "<z:to>"),
        ("<se:Body>", "<soap:Body>"),
        ("<to>", '<to z:a="1">'),
        ("</to>", "</To>"),
        ("<to>", '<to a="1" a="2">'),
        ("<to>", "<to a=1>"),
        ("<to>", '<to a="<">'),
        ("<to>", '<to xmlns:a="">'),
        ("</se:Envelope>", ""),
        ("</se:Envelope>", "</se:Envelope><x/>"),
        ("</se:Envelope>", "</se:Envelope>x"),
        ("<to>", "<to><!-- -- -->"),
        ("<to>", "<to><!-- "),
        ("<to>", "<to><![CDATA["),
        ("<to>", "<to>]]>"),
        ("<to>", "<to><?xml version='1.0'?>"),
    ],
)
def test_xml_that_is_not_well_formed(old, new):
    exc = refused(changed(SMALL, old, new))
    assert exc.path == "Envelope"
    assert "SRMP-3.1.5.1.2-02" in exc.why


def test_what_is_cut_anywhere_is_refused():
    for length in range(len(SMALL)):
        exc = refused(SMALL[:length])
        assert exc.offset is None or exc.offset <= length


def test_tags_are_where_xml_says_that_they_are():
    data = b"<!--><no/>--><a b='>' c=\"/>\"><![CDATA[<no/>]]><?no <no/>?><b\n/></a>"
    inner = data.index(b"<b"), len(data) - len(b"</a>")
    assert scan(data) == [(data.index(b"<a"), False, len(data)), (inner[0], True, inner[1])]


def test_an_end_without_a_start_is_no_element():
    assert scan(b"</a><b></b></c>") == [(4, False, 11)]


FLOODS = {
    "starts of comments": b"<!--" * (SIZE_MAX // 4),
    "starts of sections": b"<![CDATA[" * (SIZE_MAX // 9),
    "starts of tags": b"<" * SIZE_MAX,
    "tags without an end": b"<a" * (SIZE_MAX // 2),
    "quotation marks": b"<a " + b"\"'" * (SIZE_MAX // 2 - 2),
    "elements": b"<a/>" * (SIZE_MAX // 4),
    "levels": b"<a>" * (SIZE_MAX // 3),
    "attributes": SMALL.replace(
        b"<to>", b"<to " + b" ".join(b"a%d='1'" % n for n in range(SIZE_MAX // 20)) + b">"
    ),
    "namespaces": (b"<a " + b" ".join(b"xmlns:a%d='u'" % n for n in range(250)) + b">") * 40,
    "long namespaces": SMALL.replace(
        b"<se:Header>", b"<se:Header xmlns:a='%b' xmlns:b='%b'>" % (b"a" * 1900, b"b" * 1900)
    ).replace(b"</se:Header>", b"<a:x>" + b"<b:x/>" * (ELEMENTS_MAX - 20) + b"</a:x></se:Header>"),
    "digits": changed(SMALL, "uuid:7", "uuid:" + "7" * (SIZE_MAX - 1000)),
    "digits of a date": changed(SMALL, "20070619T210654", "2" * (SIZE_MAX - 1000)),
    "text": changed(SMALL, "http://h/q", "x" * (SIZE_MAX - 1000)),
    "references": changed(SMALL, "MSMQ:l", "MSMQ:" + "&#97;" * (SIZE_MAX // 5 - 1000)),
    "processing instructions": b"<?a?>" * (SIZE_MAX // 5),
    "comments": b"<!---->" * (SIZE_MAX // 7),
    "sections": b"<a>" + b"<![CDATA[]]>" * (SIZE_MAX // 13),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
def test_work_is_bounded(name):
    """At most 64 bytes of memory for each byte, and a second or so on any machine; 10 are allowed."""
    data = FLOODS[name]
    assert len(data) <= SIZE_MAX
    tracemalloc.start()
    start = time.process_time()
    try:
        parse_envelope(data)
    except MalformedPacket as exc:
        assert len(str(exc)) < 1000  # noqa: PT017
    finally:
        took, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert took < 10
    assert peak < 64 * SIZE_MAX
