"""What is read at once because nothing about it is special reads exactly as it does step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire.errors import MalformedPacket
from msmqwire.srmp import reading, soap_text
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.fields import Field, FieldBlock, build_block
from msmqwire.srmp.http_framer import parse_http
from tests.support.paths import VECTORS
from tests.support.srmp.srmp_envelopes import EVERYTHING, SMALL, WITH_MSMQ, changed

ENVELOPES = [
    SMALL,
    WITH_MSMQ,
    EVERYTHING,
    *(path.read_bytes() for path in sorted(VECTORS.glob("srmp/*.xml"))),
]
REQUESTS = [path.read_bytes() for path in sorted(VECTORS.glob("srmp/*.http"))]
XML = [
    *(b"<", b">", b"/", b'"', b"&", b"&#x41;", b"\0", b"\xff", b"\xc3\xa9", b"\r\n", b" ", b"x" * 4096),
    *(
        b"<a>",
        b"</a>",
        b"<a/>",
        b"<!---->",
        b"<![CDATA[>]]>",
        b"<?a?>",
        b"<!DOCTYPE a>",
        b"<x:y/>",
        b"<via/>",
    ),
    *(
        b"<se:Header/>",
        b"<se:Body/>",
        b"<se:Header>",
        b"</se:Header>",
        b"</se:HeaderX>",
        b"<se:Body></se:Body>",
    ),
    *(b"<a>" * 33 + b"</a>" * 33, b"<a/>" * 70, b"<rev><via/></rev>", b"<sentAt>20070619T240000</sentAt>"),
]
HEAD = [
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"A: b\r\n", b"A:b\r\n", b"A: \r\n", b"A: b \r\n"),
    *(
        b" fold\r\n",
        b"Content-Length: 1\r\n",
        b"Content-Type: a/b\r\n",
        b"A: \xe9\r\n",
        b"A: b\r\n" * 101,
        b"\x85",
    ),
    *(b"A: " + b"b" * 17_000 + b"\r\n", b"Transfer-Encoding: chunked\r\n"),
]


@st.composite
def near(draw: st.DrawFn, published: list[bytes], pieces: list[bytes]) -> bytes:
    """A published message with some bytes replaced, taken out or put in, mostly where something begins."""
    data = draw(st.sampled_from(published))
    for _ in range(draw(st.integers(0, 3))):
        borders = [at for at, byte in enumerate(data) if byte in b"<\n"] or [0]
        start = draw(st.sampled_from(borders) | st.integers(0, len(data)))
        data = data[:start] + draw(st.sampled_from(pieces)) + data[start + draw(st.integers(0, 4)) :]
    return data


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except MalformedPacket as exc:
        return type(exc), exc.why, exc.path, exc.offset, exc.requirement


def read(data: bytes) -> tuple[Any, ...]:
    envelope = parse_envelope(data)
    return envelope, envelope.departures, envelope.offsets, soap_text.soap_text(data)


@given(near(ENVELOPES, XML))
@example(changed(SMALL, "</se:Header>", "<x xmlns='u'><se:HeaderX></se:HeaderX><se:Body/></x></se:Header>"))
@example(changed(SMALL, "</se:Body>", "</se:Body><x><se:Body></se:Body><se:Header></se:Header></x>"))
@example(changed(SMALL, "<se:Body></se:Body>", "<se:Body a='>'/><x><se:Body></se:Body></x>"))
def test_small_plain_envelopes_read_as_scanned_ones(data: bytes) -> None:
    found = outcome(lambda: read(data))
    with (
        patch.object(reading, "is_within_limits", lambda _: False),
        patch.object(soap_text, "is_within_limits", lambda _: False),
    ):
        assert outcome(lambda: read(data)) == found


@given(near(REQUESTS, HEAD))
def test_usual_header_blocks_read_as_line_by_line(data: bytes) -> None:
    found = outcome(lambda: parse_http(data))
    with patch.object(FieldBlock, "take_usual", lambda *_: -1):
        assert outcome(lambda: parse_http(data)) == found


TEXTS = st.text(st.sampled_from("ab: \t\r\n\x7f\xe9\u20ac"), max_size=6)


@given(st.lists(st.builds(Field, TEXTS, TEXTS), max_size=3))
def test_header_blocks_are_built_as_their_fields(fields: list[Field]) -> None:
    def by_field() -> bytes:
        return b"".join(field.to_bytes(f"p[{number}]") for number, field in enumerate(fields)) + b"\r\n"

    def built(action: Callable[[], bytes]) -> Any:
        try:
            return action()
        except ValueError as exc:
            return str(exc)

    assert built(lambda: build_block(fields, "p")) == built(by_field)
