"""Bytes that are not an SRMP message: what lint says they are, and that nothing makes it raise."""

from __future__ import annotations

import time

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from msmqwire.analysis.lint import Finding, lint
from msmqwire.srmp.fields import FIELD_COUNT_MAX, HEAD_SIZE_MAX
from msmqwire.srmp.limits import ENTITY_SIZE_MAX
from msmqwire.srmp.message import parse_message
from msmqwire.srmp.multipart import PART_COUNT_MAX, Multipart
from msmqwire.srmp.scan import DEPTH_MAX, ELEMENTS_MAX
from tests.support.srmp.srmp_envelopes import PATH, PROPERTIES, SMALL, xml
from tests.support.srmp.srmp_messages import MESSAGES, with_envelope

POST = b"POST /msmq/private$/q HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(SMALL)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH_PATH, CODING_PATH = "HeaderFields.Content-Length", "HeaderFields.Transfer-Encoding"


def attacks(data: bytes) -> list[tuple[str, str, bytes]]:
    """Findings of attacks: id, path, and the bytes there."""
    findings = lint(data, protocol="srmp")
    assert all(0 <= finding.offset <= len(data) for finding in findings)
    return [(f.id, f.path, data[f.offset : f.offset + 9]) for f in findings if f.severity == "ATTACK"]


def refusal(data: bytes) -> Finding:
    """The requirement by which bytes are refused."""
    (finding,) = (f for f in lint(data, protocol="srmp") if f.severity != "ATTACK")
    assert finding.severity == "MUST"
    return finding


# --- heads -------------------------------------------------------------------------------------------------

LENGTH_AT = ("ATTACK-HTTP-LENGTH", LENGTH_PATH, b"Content-L")
CODING_AT = ("ATTACK-HTTP-LENGTH", CODING_PATH, b"Transfer-")
LINE = ("ATTACK-HTTP-LINE", "HeaderFields")
HEADS = {
    "a length and chunks": (LENGTH + CHUNKED, [CODING_AT]),
    "two lengths": (LENGTH + b"content-length: 5\r\n", [("ATTACK-HTTP-LENGTH", LENGTH_PATH, b"content-l")]),
    "the same length twice": (LENGTH + LENGTH, [LENGTH_AT]),
    "a list of lengths": (b"Content-Length: 5, 5\r\n", [LENGTH_AT]),
    "a length with a sign": (b"Content-Length: +5\r\n", [LENGTH_AT]),
    "a length of 20 digits": (b"Content-Length: 18446744073709551617\r\n", [LENGTH_AT]),
    "a folded length": (b"Content-Length: 5\r\n 5\r\n", [LENGTH_AT]),
    "two codings": (CHUNKED * 2, [CODING_AT]),
    "another coding": (b"Transfer-Encoding: xchunked\r\n", [CODING_AT]),
    "a huge length": (
        b"Content-Length: %d\r\n" % (ENTITY_SIZE_MAX + 1), [("ATTACK-LENGTH", *LENGTH_AT[1:])]
    ),
    "a length past the end": (
        b"Content-Length: %d\r\n" % (len(SMALL) + 1), [("ATTACK-TRUNCATED", *LENGTH_AT[1:])]
    ),
    "a blank before a colon": (
        LENGTH + b"Transfer-Encoding : chunked\r\n", [(*LINE, b"Transfer-"), CODING_AT]
    ),
    "a bare line feed": (LENGTH + b"A: b\nC: d\r\n", [(*LINE, b"A: b\nC: d")]),
    "a bare carriage return": (LENGTH + b"A: b\rC: d\r\n", [(*LINE, b"A: b\rC: d")]),
    "a null": (LENGTH + b"A: bc\0d\r\n", [(*LINE, b"A: bc\0d\r\n")]),
    "no colon": (LENGTH + b"GET / HTTP/1.1\r\n", [(*LINE, b"GET / HTT")]),
    "many fields": (
        LENGTH + b"A: b\r\n" * (FIELD_COUNT_MAX - 3) + b"Last: b\r\n",
        [("ATTACK-HTTP-FLOOD", "HeaderFields", b"Last: b\r\n")],
    ),
    "a large head": (
        LENGTH + b"A: " + b"b" * HEAD_SIZE_MAX + b"\r\n", [("ATTACK-HTTP-FLOOD", "HeaderFields", b"b" * 9)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_heads(name: str) -> None:
    lines, expected = HEADS[name]
    data = POST + lines + b"\r\n" + SMALL
    assert attacks(data) == expected
    assert refusal(data).id == "SRMP-3.1.5.1.2-01"


def test_heads_that_are_no_flood() -> None:
    """As many fields, and as large a head, as are read; the envelope is what is wrong."""
    many = POST + LENGTH + b"A: b\r\n" * (FIELD_COUNT_MAX - 3) + b"\r\n"
    room = HEAD_SIZE_MAX - len(POST + LENGTH + b"A: \r\n\r\n")
    large = POST + LENGTH + b"A: " + b"b" * room + b"\r\n\r\n"
    assert len(large) == HEAD_SIZE_MAX
    for head in (many, large):
        assert attacks(head + SMALL.replace(b"<to>", b"<ot>")) == []


def test_heads_that_begin_wrong() -> None:
    assert attacks(POST.replace(b"1.1\r", b"1.1") + LENGTH + b"\r\n" + SMALL)[0][0] == "ATTACK-HTTP-LINE"
    old = (
        POST.replace(b"HTTP/1.1", b"HTTP/1.0")
        + CHUNKED
        + b"\r\n%x\r\n" % len(SMALL)
        + SMALL
        + b"\r\n0\r\n\r\n"
    )
    assert attacks(old) == [("ATTACK-HTTP-LENGTH", CODING_PATH, b"Transfer-")]
    later = POST + b" more\r\n" + LENGTH + b"\r\n" + SMALL.replace(b"<to>", b"<ot>")
    assert attacks(later) == []  # a fold of another field
    folded = b"POST /q HTTP/1.1\r\n Host: h\r\n" + LENGTH + b"\r\n" + SMALL
    assert attacks(folded) == [("ATTACK-HTTP-LINE", "HeaderFields", b" Host: h\r")]


@pytest.mark.parametrize(
    "chunks, at",
    [
        (b"x\r\n", 0),
        (b"-1\r\n", 0),
        (b"3\r\n<a/>\r\n0\r\n\r\n", 6),
        (b"ffffff\r\n", 0),
        (b"0\r\nContent-Length: 5\r\n\r\n", 3),
    ],
)
def test_chunks(chunks: bytes, at: int) -> None:
    head = POST + CHUNKED + b"\r\n"
    ((id, path, place),) = attacks(head + chunks)
    assert (id, path.partition(".")[0]) == ("ATTACK-HTTP-CHUNK", "Chunking")
    assert place == chunks[at : at + 9]


# --- parts -------------------------------------------------------------------------------------------------


def with_parts(old: bytes, new: bytes) -> bytes:
    """Message 4.2 with something in its entity replaced, and the length that fits."""
    head, _, entity = MESSAGES["4.2"].partition(b"\r\n\r\n")
    assert entity.count(old) == 1
    entity = entity.replace(old, new)
    return head.replace(b"1273", b"%d" % len(entity)) + b"\r\n\r\n" + entity


BODY_TYPE = b"Content-Type: application/octet-stream\r\n"
PARTS = {
    "a longer part": (b"Content-Length: 775", b"Content-Length: 776"),
    "a shorter part": (b"Content-Length: 223", b"Content-Length: 22"),
    "a part past the end": (b"Content-Length: 223", b"Content-Length: 9999"),
    "two lengths": (b"Content-Length: 223\r\n", b"Content-Length: 223\r\nContent-Length: 1\r\n"),
    "two types": (BODY_TYPE, BODY_TYPE + b"Content-Type: text/xml\r\n"),
    "a field without a colon": (BODY_TYPE, BODY_TYPE + b"x\r\n"),
}


def test_a_part_that_breaks_off_is_no_attack() -> None:
    entity = b"--x\r\nContent-Type: text/xml\r\n"
    head = POST.replace(b"text/xml", b"multipart/related; boundary=x")
    data = head + b"Content-Length: %d\r\n\r\n" % len(entity) + entity
    assert attacks(data) == []
    assert (refusal(data).id, refusal(data).offset) == ("SRMP-2.2.2-17", len(data))


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    data = with_parts(*PARTS[name])
    ((id, path, _),) = attacks(data)
    assert (id, path.startswith("Multipart.Parts[")) == ("ATTACK-MIME-PART", True)
    assert refusal(data).id == "SRMP-2.2.2-17"


def test_a_second_body_and_many_parts() -> None:
    content = parse_message(MESSAGES["4.2"]).content
    assert isinstance(content, Multipart)
    end = b"--MSMQ - SOAP boundary, 26500--"
    body = Multipart(content.boundary, content.parts[1:]).to_bytes().removesuffix(b"--\r\n")
    twice = with_parts(end, body + b"--")
    assert [id for id, _, _ in attacks(twice)] == ["ATTACK-MIME-PART"]
    many = with_parts(
        end, b"--MSMQ - SOAP boundary, 26500\r\nContent-Length: 0\r\n\r\n" * PART_COUNT_MAX + end
    )
    assert [id for id, _, _ in attacks(many)] == ["ATTACK-HTTP-FLOOD"]
    assert refusal(twice).id == refusal(many).id == "SRMP-2.2.2-17"


# --- envelopes ---------------------------------------------------------------------------------------------

DOCTYPE = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
ENVELOPES = {
    "billion laughs": (DOCTYPE + SMALL.replace(b"http://h/q", b"http://h/q&b;"), "ENTITY", b"<!DOCTYPE"),
    "an external entity": (
        b'<?xml version="1.0"?><!DOCTYPE x SYSTEM "file:///etc/hostname">' + SMALL, "ENTITY", b"<!DOCTYPE"
    ),
    "depth": (xml(PATH, PROPERTIES, "<x>" * 100 + "</x>" * 100), "DEPTH", b"<x><x><x>"),
    "elements": (xml(PATH, PROPERTIES, "<x/>" * ELEMENTS_MAX), "SIZE", b"<x/><x/><"),
    "attributes": (
        SMALL.replace(b"<to>", b"<to %s>" % b" ".join(b"a%d='1'" % n for n in range(800))),
        "SIZE", b"<to a0='1",
    ),
    "a declared encoding": (b'<?xml version="1.0" encoding="utf-7"?>' + SMALL, "ENCODING", b'utf-7"?><'),
    "bytes that are not text": (SMALL.replace(b"MSMQ:l", b"MSMQ:\xff\xfe"), "ENCODING", b"\xff\xfe</actio"),
}  # fmt: skip


@pytest.mark.parametrize("wrapped", ["alone", "request", "chunks", "parts"])
@pytest.mark.parametrize("name", ENVELOPES)
def test_envelopes(name: str, wrapped: str) -> None:
    envelope, shape, at = ENVELOPES[name]
    data = {
        "alone": envelope,
        "request": POST + b"Content-Length: %d\r\n\r\n" % len(envelope) + envelope,
        "chunks": POST + CHUNKED + b"\r\n%x\r\n" % len(envelope) + envelope + b"\r\n0\r\n\r\n",
        "parts": with_envelope("4.2", envelope),
    }[wrapped]
    assert attacks(data) == [(f"ATTACK-XML-{shape}", "Envelope", at)]
    assert refusal(data).id == "SRMP-3.1.5.1.2-02"


def test_utf_16() -> None:
    data = SMALL.decode().encode("utf-16")
    assert attacks(POST + b"Content-Length: %d\r\n\r\n" % len(data) + data) == [
        ("ATTACK-XML-ENCODING", "Envelope", data[:9])
    ]


def test_an_attack_is_seen_behind_another_fault() -> None:
    data = POST + LENGTH + CHUNKED + b"\r\n" + DOCTYPE + SMALL
    assert [id for id, _, _ in attacks(data)] == ["ATTACK-HTTP-LENGTH", "ATTACK-XML-ENTITY"]
    data = with_envelope("4.2", DOCTYPE + SMALL).replace(b"Host:", b"Host :")
    assert [id for id, _, _ in attacks(data)] == ["ATTACK-HTTP-LINE", "ATTACK-XML-ENTITY"]


def test_not_an_attack() -> None:
    """A body with a document type, an envelope that is cut inside a character, one that lacks an element."""
    envelope = SMALL.replace(b"MSMQ:l", b"MSMQ:\xc3\xa9")
    cut = envelope.index(b"\xa9")
    assert attacks(envelope[:cut]) == []
    payload = with_parts(b"<orderId>3</orderId>", b"<!DOCTYPE x><a>3</a>")
    assert attacks(payload.replace(b"<to>", b"<ot>").replace(b"</to>", b"</ot>")) == []
    assert {id for id, _, _ in attacks(MESSAGES["4.2"][:700])} == {"ATTACK-TRUNCATED"}


REFUSED = [
    (b' se:mustUnderstand="1"><expiresAt', b"><expiresAt", "SRMP-2.2.5.1-02", b"<properties"),
    (b"20070619T210654", b"2007-06-19", "SRMP-2.2.5.1.1-01", b"<expiresAt>"),
    (b"http://h/q", b"ftp://h/q", "SRMP-2.2.4.2-06", b"<to>ftp://"),
    (PATH.encode(), b"", "SRMP-2.2.4-01", b"<se:Header>"),
    (b"</se:Header>", b'<x se:mustUnderstand="1"/></se:Header>', "SRMP-2.2.5-04", b"<x se:must"),
    (b"</se:Body>", b"", "SRMP-3.1.5.1.2-02", b""),
]


@pytest.mark.parametrize("old, new, id, at", REFUSED)
def test_the_requirement_of_a_refusal(old: bytes, new: bytes, id: str, at: bytes) -> None:
    assert SMALL.count(old) == 1
    data = SMALL.replace(old, new)
    finding = refusal(data)
    assert (finding.id, finding.path.split(".")[0]) == (id, "Envelope")
    assert data[finding.offset :].startswith(at)
    whole = refusal(POST + b"Content-Length: %d\r\n\r\n" % len(data) + data)
    assert (whole.id, whole.path) == (finding.id, finding.path)


# --- any bytes ---------------------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message with some bytes replaced, left out or repeated."""
    data = draw(st.sampled_from([*MESSAGES.values(), SMALL, POST + LENGTH + b"\r\n" + SMALL]))
    pieces = [
        b"\r\n",
        b"\n",
        b"<",
        b"<!DOCTYPE x>",
        b"Content-Length: 9\r\n",
        b"--",
        b"\xff",
        b": ",
        b"0\r\n",
    ]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        piece = draw(st.one_of(st.sampled_from(pieces), st.binary(max_size=6)))
        data = data[:at] + piece + data[at + draw(st.integers(0, 40)) :]
    return data


@settings(max_examples=200)
@given(data=damaged())
def test_nothing_makes_it_raise(data: bytes) -> None:
    findings = lint(data, protocol="srmp")
    assert [f.offset for f in findings] == sorted(f.offset for f in findings)
    assert all(0 <= f.offset <= len(data) for f in findings)
    try:
        parse_message(data)
    except ValueError:
        assert any(f.severity == "MUST" for f in findings)
    else:
        assert not any(f.severity == "ATTACK" for f in findings)


FLOODS = {
    "lines": lambda n: POST + b"a\n" * (n // 2),
    "delimiters": lambda n: with_envelope("4.2", SMALL) + b"--MSMQ - SOAP boundary, 26500" * (n // 29),
    "tags": lambda n: SMALL + b"</" * (n // 2),
    "nested": lambda n: b"<x>" * (n // 3),
    "lengths": lambda n: POST + b"Content-Length: 1\r\n" * (n // 19),
    "folds": lambda n: POST + b" x\r\n" * (n // 4),
    "unknown": lambda n: xml(PATH, PROPERTIES, "<New a='b'/>" * min(4000, n // 12)),
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_take_little_time(name: str) -> None:
    data = FLOODS[name](4_000_000)
    start = time.process_time()
    findings = lint(data, protocol="srmp")
    assert time.process_time() - start < 5
    assert 0 < len(findings) < 100


def test_depth_is_reported_at_the_element_that_is_too_deep() -> None:
    data = xml(PATH, PROPERTIES, "<x>" * 100)
    (finding,) = (f for f in lint(data, protocol="srmp") if f.id == "ATTACK-XML-DEPTH")
    assert data[: finding.offset].count(b"<x>") == DEPTH_MAX - 2
