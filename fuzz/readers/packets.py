"""Targets for packets, headers, streams of them, and messages made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Literal

from fuzz.invariants import (
    both_readers_agree,
    only_invalid_value_is_raised,
    only_malformed_packet_is_raised,
    refusal_has_a_position,
    the_position_does_not_matter,
    what_is_accepted_rebuilds,
)
from fuzz.readers.inputs import payloads, pieces, vectors
from fuzz.readers.registry import target
from fuzz.whole_packets import SELF_CONTAINED
from msmqwire.analysis.lint.packet import lint_packet
from msmqwire.constants import MessageClass
from msmqwire.errors import MalformedPacket
from msmqwire.framing import Framer
from msmqwire.headers.acknowledgements import ACK_LABEL, ORDER_QUEUE_NAME
from msmqwire.headers.base import PACKET_SIZE_MAX, SIGNATURE_BYTES
from msmqwire.packets import Protocol, build, packet_length, parse, to_json
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules import serialization
from msmqwire.schema import SCHEMAS, Header, Record, UInt

CAPTURES = ("session.pcap", "hostile.pcapng", "protected.pcap")
PROTOCOLS: tuple[Protocol, ...] = ("session", "ping", "remote_read")


def _streams() -> Iterator[bytes]:
    for capture in CAPTURES:
        for port, data in payloads(capture, "tcp"):
            if port == 1801:
                yield data


def _packets() -> Iterator[bytes]:
    yield from vectors("MS-MQQB-*.hex")
    yield from vectors("srmp/usermsg*.hex")
    for stream in _streams():
        yield from Framer().feed(stream)


def _datagrams() -> Iterator[bytes]:
    yield from vectors("MS-MQQB-4.1.[12]-*.hex")
    for capture in CAPTURES:
        yield from (data for _, data in payloads(capture, "udp"))


def _words() -> Iterator[bytes]:
    yield SIGNATURE_BYTES
    yield PACKET_SIZE_MAX.to_bytes(4, "little")
    yield from (number.to_bytes(2, "little") for number in MessageClass)
    yield from (text.encode("utf-16-le") for text in (ORDER_QUEUE_NAME, ACK_LABEL, "\\private$\\", "\0"))
    for schema in SCHEMAS.values():
        for part in schema.parts:
            if isinstance(part, UInt):
                order: Literal["little", "big"] = "big" if part.big_endian else "little"
                yield from (value.to_bytes(part.bits // 8, order) for value in sorted(part.must or ()))


def _comes_back(data: bytes, protocol: Protocol) -> None:
    """Bytes are a packet that builds to them, or refused with a position."""
    try:
        packet = parse(data, protocol=protocol)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
        return
    assert build(packet) == data
    assert packet_length(data) == len(data) or protocol == "remote_read"


@target(seeds=_packets, words=_words, size_max=4096)
def session(data: bytes) -> None:
    """Packets of a session."""
    _comes_back(data, "session")


@target(seeds=_packets, words=_words, size_max=4096)
def remote_read(data: bytes) -> None:
    """Message packets, as remote read returns them."""
    _comes_back(data, "remote_read")


@target(seeds=_datagrams, words=_words, size_max=64)
def ping(data: bytes) -> None:
    """Ping packets, in all their forms."""
    only_malformed_packet_is_raised(data, "ping")


@target(seeds=lambda: (bytes([0]) + data for data in _packets()), words=_words, size_max=4096)
def forms(data: bytes) -> None:
    """A packet has a layout without gaps, JSON that makes it again, and findings that stand in it."""
    protocol = PROTOCOLS[data[0] % len(PROTOCOLS)] if data else "session"
    only_malformed_packet_is_raised(data[1:], protocol)
    try:
        packet = parse(data[1:], protocol=protocol)
    except MalformedPacket:
        return
    for finding in lint_packet(packet, data[1:]):
        assert 0 <= finding.offset <= len(data)
        assert finding.message
        assert finding.path


@cache
def _schemas() -> dict[bytes, Header]:
    return {key.encode(): schema for key, schema in SELF_CONTAINED.items() if not schema.variant}


def _headers() -> Iterator[bytes]:
    keys = {schema: key for key, schema in _schemas().items()}
    yield from (key + bytes([0x3A, 0]) + bytes(64) for key in _schemas())
    for data in _packets():
        with suppress(MalformedPacket):
            for header in dict(parse(data)).values():
                if isinstance(header, Record) and header.schema in keys:
                    yield keys[header.schema] + b":\3" + header.to_bytes()


@target(seeds=_headers, words=lambda: (*_words(), *_schemas()), size_max=1024)
def headers(data: bytes) -> None:
    """Both readers of each structure, the generated one and that of construct, at any position."""
    key, _, content = data.partition(b":")
    schema = _schemas().get(key)
    if schema is None or not content:
        return
    before, content = bytes(content[0] % 8), content[1:]
    what_is_accepted_rebuilds(schema, content)
    both_readers_agree(schema, content)
    the_position_does_not_matter(schema, content, before)


def _stream_seeds() -> Iterator[bytes]:
    for number, stream in enumerate(_streams()):
        yield bytes([number % 256]) + stream[:4000]


def _framed(data: bytes, choice: int) -> tuple[list[bytes], int, object]:
    framer, packets = Framer(), list[bytes]()
    for piece in pieces(data, choice):
        packets += framer.feed(piece)
        assert framer.buffered <= PACKET_SIZE_MAX + 16
        if framer.error is not None:
            break
    assert framer.offset == sum(map(len, packets))
    error = framer.error and (framer.error.why, framer.error.path, framer.error.offset)
    return packets, framer.offset, error


@target(seeds=_stream_seeds, words=_words, size_max=4096)
def stream(data: bytes) -> None:
    """Wherever a stream is cut, the same packets come of it, in order and without a byte between them."""
    if not data:
        return
    content = data[1:]
    whole = _framed(content, 0)
    assert _framed(content, data[0]) == whole
    packets, end, error = whole
    assert b"".join(packets) == content[:end]
    assert all(packet_length(packet) == len(packet) for packet in packets)
    if error is None and len(content) - end >= 16:
        assert packet_length(content[end:]) > len(content) - end


def _json_seeds() -> Iterator[bytes]:
    for data in _packets():
        try:
            yield json.dumps(to_json(parse(data))).encode()
        except MalformedPacket:
            continue


@target(seeds=_json_seeds, words=lambda: (b'"fields"', b'"packet"', b"null", b"{}", b"-1"), size_max=4096)
def from_json(data: bytes) -> None:
    """Packets as JSON, as `msmqwire build` reads them."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    only_invalid_value_is_raised(value)


def _attributes(message: Message) -> dict[str, object]:
    return {name: getattr(message, name) for name in Message.__annotations__ if name != "packet"}


@target(seeds=_packets, words=_words, size_max=4096)
def messages(data: bytes) -> None:
    """A packet that becomes a message gives the same message again from the packet made of that."""
    try:
        message = serialization.deserialize(data)
    except MalformedPacket as refusal:
        assert refusal.path
        return
    again = serialization.deserialize(serialization.to_packet(message))
    assert _attributes(again) == _attributes(message)
    assert again.packet == message.packet
    rebuilt = serialization.to_packet(message.copy(packet=None))
    assert serialization.to_packet(serialization.deserialize(rebuilt).copy(packet=None)) == rebuilt
