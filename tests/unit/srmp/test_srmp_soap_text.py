"""Header and Body of an envelope as text."""

from __future__ import annotations

import pytest

from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.soap_text import soap_text
from tests.support.srmp.srmp_envelopes import PUBLISHED, SMALL, WITH_MSMQ, changed

COMMENT = "<!-- </se:Header><se:Body>no</se:Body> -->"


@pytest.mark.parametrize("name", PUBLISHED)
def test_published(name: str) -> None:
    data = PUBLISHED[name]
    text = soap_text(data)
    assert text.envelope == data.decode()
    start, end = text.envelope.index("<se:Header>"), text.envelope.index("</se:Header>")
    assert text.header == text.envelope[start : end + len("</se:Header>")]
    assert text.body == "<se:Body></se:Body>"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<se:Body></se:Body>", "<se:Body></se:Body>"),
        ("<se:Body/>", "<se:Body/>"),
        ("<se:Body ><x/><!-- </se:Body> -->\u00e9</se:Body\n>", None),
        (f"{COMMENT}<se:Body> </se:Body>", "<se:Body> </se:Body>"),
        ("<se:Body a='/>'/>", None),
        ("<se:Body a='/>'></se:Body>", None),
        ("<se:Body><se:Body/></se:Body>", None),
        ("<se:Body><se:Header>?></se:Header></se:Body>", None),
        ("<?pi <se:Body/>?><se:Body>?></se:Body>", "<se:Body>?></se:Body>"),
    ],
)
def test_body(body: str, found: str | None) -> None:
    data = changed(SMALL, "<se:Body></se:Body>", body)
    parse_envelope(data)
    assert soap_text(data).body == (found or body)


def test_header() -> None:
    data = changed(WITH_MSMQ, "<se:Header>", f"<se:Header a='>'>{COMMENT}<x xmlns='urn:a'><Body/></x>")
    data = b"\xef\xbb\xbf" + data
    parse_envelope(data)
    text = soap_text(data)
    assert text.envelope == data.decode("utf-8-sig")
    assert text.header.startswith("<se:Header a='>'>")
    assert text.header.endswith("</Msmq></se:Header>")
    assert text.body == "<se:Body></se:Body>"
