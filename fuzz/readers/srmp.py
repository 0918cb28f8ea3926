"""Targets for SRMP: envelopes, HTTP messages and streams of them, MIME parts, messages of PGM."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache

from fuzz.invariants import refusal_has_a_position
from fuzz.readers.inputs import EXAMPLES, pieces, vectors
from fuzz.readers.registry import target
from msmqwire.errors import InvalidSignature, InvalidValue, MalformedPacket
from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.srmp.deserializing import deserialize
from msmqwire.qm.rules import serialization
from msmqwire.schema import NULL_GUID
from msmqwire.srmp.certificates import Signer, Trust
from msmqwire.srmp.elements import Group
from msmqwire.srmp.envelope import build_envelope, envelope_from_json, parse_envelope
from msmqwire.srmp.fields import HEAD_SIZE_MAX
from msmqwire.srmp.http_framer import CHUNK_LINE_MAX, HttpFramer, parse_http
from msmqwire.srmp.http_message import HttpMessage
from msmqwire.srmp.message import SrmpMessage, parse_message, parse_multicast
from msmqwire.srmp.message_json import from_json, to_json
from msmqwire.srmp.multipart import PART_COUNT_MAX, parse_multipart
from msmqwire.srmp.request import make_request
from msmqwire.srmp.scan import scan
from msmqwire.srmp.schema import HEADER
from msmqwire.srmp.signature_element import CANONICALIZATIONS, DIGESTS, DSA
from msmqwire.srmp.signing import sign
from msmqwire.srmp.verifying import verify

ENTITY_MAX = 1000
BODY, EXTENSION = b"body \0--MSMQ", b"an extension"
ARRIVAL = 1_182_300_000


def _envelopes() -> Iterator[bytes]:
    yield from vectors("srmp/*.xml")


def _requests() -> Iterator[bytes]:
    yield from vectors("srmp/*.http")


def _markup() -> Iterator[bytes]:
    yield from (
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?",
        b"?>",
        b"&#0;",
        b"&#x41;",
        b"&lt;",
        b"\xef\xbb\xbf",
    )
    yield from (
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b' encoding="utf-16"',
        b"</",
        b"/>",
        b'xmlns:x="',
        b'xmlns="',
    )
    yield from (
        b'se:mustUnderstand="1"',
        b"uuid:",
        b"uid:",
        b"20380119T031407",
        b"<via/>",
        b"9999999999999999999999",
    )


@cache
def _elements() -> tuple[bytes, ...]:
    names, groups = dict[str, None](), [HEADER]
    while groups:
        group = groups.pop()
        names[group.name] = None
        for child in group.children:
            names[child.name] = None
            if isinstance(child, Group):
                groups.append(child)
    return tuple(name.encode() for name in names)


def _words() -> Iterator[bytes]:
    yield from _markup()
    yield from _elements()


@target(seeds=_envelopes, words=_words, size_max=4096)
def envelopes(data: bytes) -> None:
    """An envelope comes back; built anew it is the same, or what it departs in can't be built."""
    try:
        envelope = parse_envelope(data)
    except MalformedPacket as refusal:
        assert refusal.path.startswith("Envelope")
        assert refusal.offset is None or 0 <= refusal.offset <= len(data)
        return
    assert build_envelope(envelope) == data
    assert envelope_from_json(json.loads(json.dumps(envelope.to_json()))) == envelope
    for departure in envelope.departures:
        assert departure.path
        assert departure.text
    try:
        anew = build_envelope(envelope.replace())
    except InvalidValue:
        assert envelope.departures
        return
    assert parse_envelope(anew) == envelope


@target(seeds=_envelopes, words=_markup, size_max=2048)
def markup(data: bytes) -> None:
    """Every element has its place: a start tag, in the order of the bytes, none but by its end."""
    try:
        places = scan(data)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
        return
    before = -1
    for place in places:
        assert before < place.start < place.end <= len(data)
        assert data[place.start] == ord("<")
        assert data[place.end - 1] == ord(">")
        before = place.start


def _http_words() -> Iterator[bytes]:
    yield from (
        b"\r\n",
        b"\r\n\r\n",
        b"POST /q HTTP/1.1\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"Content-Length: ",
        b"0\r\n",
    )
    yield from (
        b"Transfer-Encoding: chunked",
        b"Content-Type: ",
        b"multipart/related; boundary=",
        b"text/xml",
    )
    yield from (
        b"--",
        b"Content-Id: ",
        b"body@",
        b"extension@",
        b"charset=UTF-8",
        b"HTTP/1.0",
        b" 204 ",
        b'\\"',
    )


@target(seeds=_requests, words=_http_words, size_max=4096)
def messages(data: bytes) -> None:
    """An HTTP message, and the SRMP in it, come back whole, from their JSON too."""
    try:
        http = parse_http(data)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
    else:
        assert http.to_bytes() == data
    for parse in (parse_message, parse_multicast):
        try:
            message = parse(data)
        except MalformedPacket as refusal:
            refusal_has_a_position(refusal, data)
            continue
        if parse is parse_message:
            assert message.to_bytes() == data
        else:
            assert data.endswith(SrmpMessage(None, (), message.content).to_bytes())
        assert all(departure.path and departure.text for departure in message.departures)
        assert from_json(json.loads(json.dumps(to_json(message)))) == message


def _streamed() -> Iterator[bytes]:
    for number, data in enumerate(_requests()):
        yield bytes([number * 41 % 256]) + data + data
    chunked = b"POST /q HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n"
    yield (
        b"\x09" + chunked + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.0 500 a\r\n\r\nuntil the end"
    )


def _framed(data: bytes, choice: int) -> tuple[list[HttpMessage], int, object]:
    framer, found = HttpFramer(ENTITY_MAX), list[HttpMessage]()
    try:
        for piece in pieces(data, choice):
            found += framer.feed(piece)
            assert framer.buffered <= 2 * HEAD_SIZE_MAX + ENTITY_MAX + CHUNK_LINE_MAX + 4
        found += framer.close()
    except MalformedPacket:
        assert framer.error is not None
    error = framer.error and (framer.error.why, framer.error.path, framer.error.offset)
    return found, framer.offset, error


@target(seeds=_streamed, words=_http_words, size_max=4096)
def stream(data: bytes) -> None:
    """Wherever a connection is cut, the same messages come of it, and together they are its bytes."""
    if not data:
        return
    whole = _framed(data[1:], 0)
    assert _framed(data[1:], data[0]) == whole
    found, end, _ = whole
    assert b"".join(message.to_bytes() for message in found) == data[1 : 1 + end]


def _parts() -> Iterator[bytes]:
    for data in _requests():
        _, _, entity = data.partition(b"\r\n\r\n")
        if entity.startswith(b"--"):
            yield entity
    yield b"--b\r\nContent-Length: 2\r\nContent-Id: body@x\r\n\r\nhi\r\n--b--\r\n"


@target(seeds=_parts, words=_http_words, size_max=2048)
def parts(data: bytes) -> None:
    """A multipart entity comes back whole, each part where its offset says."""
    boundary = data[2:].partition(b"\r\n")[0].decode("latin-1") if data.startswith(b"--") else "b"
    try:
        content = parse_multipart(data, boundary)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
        return
    assert content.to_bytes() == data
    assert content.size == len(data)
    assert len(content.parts) <= PART_COUNT_MAX
    for number, part in enumerate(content.parts):
        assert data.startswith(part.content, content.content_offset(number))


_NOT_STORED = ("arrival_time", "packet")  # the time stands beside the packet in a store


@target(seeds=_requests, words=_words, size_max=4096)
def queued(data: bytes) -> None:
    """A request becomes a message that can be stored and comes back, and nobody's signature is believed."""
    try:
        received = parse_message(data)
        message = deserialize(received, ARRIVAL)
    except (MalformedPacket, InvalidValue) as refusal:
        assert refusal.why
        return
    try:
        verify(received, Trust(()), ARRIVAL)
    except InvalidSignature as refusal:
        assert refusal.why
    else:
        raise AssertionError("a signature of nobody who is known is believed")
    try:
        stored = serialization.to_stored(message)
    except InvalidValue as refusal:
        assert refusal.why
        return
    again = serialization.deserialize(stored, stored=True)
    if message.transactional:  # no packet with a TransactionHeader has a priority: DMPR-3.1.7.1.32-04
        message.priority = 0
    else:  # and none without one has the flag
        message.final_ack_required = False
    for name in Message.__annotations__:
        if name not in _NOT_STORED:
            assert getattr(again, name) == getattr(message, name), name


@cache
def _alice() -> Signer:
    folder = EXAMPLES / "keys"
    return Signer.from_pem((folder / "alice.crt").read_bytes(), (folder / "alice.pem").read_bytes())


@cache
def _signed() -> tuple[bytes, ...]:
    """Return requests that alice has signed, with her certificate in them and without."""
    if not (EXAMPLES / "keys").exists():
        return ()
    alice, (simple,) = _alice(), vectors("srmp/MC-MQSRM-4.1-SimpleMessage.xml")
    unsigned = parse_envelope(simple).replace()
    envelope = build_envelope(sign(unsigned, alice, queue_manager=NULL_GUID, body=BODY, extension=EXTENSION))
    certificate = base64.b64encode(alice.certificate.der)
    key_info = (
        b"<KeyInfo><X509Data><X509Certificate>" + certificate + b"</X509Certificate></X509Data></KeyInfo>"
    )
    with_key_info = envelope.replace(b"</Signature>", key_info + b"</Signature>")
    return tuple(
        make_request(
            text, "/q", "h", boundary=7, queue_manager=NULL_GUID, body=BODY, extension=EXTENSION
        ).to_bytes()
        for text in (envelope, with_key_info)
    )


def _signature_words() -> Iterator[bytes]:
    yield from _markup()
    yield from (
        b"<Reference>",
        b"</SignedInfo>",
        b"cid:body@",
        b"cid:extension@",
        b"<KeyInfo>",
        b"AAAA",
        b"=",
    )
    yield from (name.encode() for name in (*CANONICALIZATIONS, *DIGESTS, DSA))


@target(seeds=_signed, words=_signature_words, size_max=4096)
def signed(data: bytes) -> None:
    """The verified data is the signed data, whatever stands around it; no made-up signature is valid."""
    try:
        message = parse_message(data)
        verified = verify(message, Trust([_alice().certificate]), _alice().certificate.not_before)
    except (MalformedPacket, InvalidSignature) as refusal:
        assert refusal.why
        return
    assert (verified.body, verified.extension) == (BODY, EXTENSION)
    assert (message.body, message.extension) == (BODY, EXTENSION)
