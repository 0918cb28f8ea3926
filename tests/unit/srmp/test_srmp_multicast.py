"""SRMP messages that come over PGM: their HTTP header is there, and does not matter."""

from __future__ import annotations

import pytest

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.message import parse_message, parse_multicast
from tests.support.paths import VECTORS

EXAMPLE = (VECTORS / "srmp" / "4.5.http").read_bytes()
HEAD, _, ENTITY = EXAMPLE.partition(b"\r\n\r\n")
ENVELOPE = parse_message(EXAMPLE).envelope_bytes
CUT = len(ENTITY) // 2


@pytest.mark.requirement("SRMP-2.1.2-01", "SRMP-2.1.2-03", "SRMP-4.5-01", "SRMP-4.5-02")
def test_the_example():
    message = parse_multicast(EXAMPLE)
    assert message == parse_message(EXAMPLE)
    assert message.to_bytes() == EXAMPLE
    assert message.body == "ardenwhite".encode("utf-16-le")
    assert message.envelope.path.to == "MSMQ:MULTICAST=234.1.1.1:8001"


@pytest.mark.requirement("SRMP-2.1.2-04", "SRMP-2.1.2-05")
@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET / HTTP/1.0",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 0",
        b"not http at all\nwith\rcontrols\0",
        HEAD.replace(b"234.1.1.1:8001", b"elsewhere"),
        HEAD.replace(b"Content-Length: ", b"Content-Length: 9"),
        HEAD.replace(b"Content-Length: ", b"Content-Length: x"),
        HEAD + b"\r\nTransfer-Encoding: chunked",
        HEAD.replace(b"multipart/related", b"image/png"),
        HEAD.replace(b"SOAP boundary", b"other boundary"),
    ],
)
def test_no_header_is_wrong(head):
    message = parse_multicast(head + b"\r\n\r\n" + ENTITY)
    assert message.envelope_bytes == ENVELOPE
    assert message.body == "ardenwhite".encode("utf-16-le")
    assert message.departures is not None
    assert message.to_bytes().endswith(ENTITY)


@pytest.mark.requirement("SRMP-2.1.2-04")
def test_an_envelope_alone_whatever_the_content_type_says():
    message = parse_multicast(HEAD + b"\r\n\r\n" + ENVELOPE)
    assert (message.envelope_bytes, message.body) == (ENVELOPE, None)


@pytest.mark.parametrize(
    "data",
    [b"", ENTITY, HEAD, HEAD + b"\r\n\r\n", HEAD + b"\r\n\r\n" + ENTITY[:CUT], HEAD + b"\r\n\r\n--",
     HEAD + b"\r\n\r\n--\r\n", HEAD + b"\r\n\r\n<a/>", HEAD + b"\r\n\r\n" + ENTITY + b"x"],
)  # fmt: skip
def test_entities_that_are_refused(data):
    with pytest.raises(MalformedPacket) as caught:
        parse_multicast(data)
    assert caught.value.offset is not None
    assert caught.value.offset <= len(data)


def test_an_entity_over_the_limit():
    with pytest.raises(MalformedPacket, match="more than 100"):
        parse_multicast(EXAMPLE, 100)
