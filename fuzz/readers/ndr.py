"""Targets for stubs of remote calls in NDR and NDR64, and the message packets in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from fuzz.readers.registry import target
from fuzz.readers.stub_checks import SYNTAXES, captured_stubs, comes_back, is_a_name_or_refused, stub_seeds
from msmqwire.errors import MalformedPacket
from msmqwire.remote_read.message_packet import message_packet, read_message_packet, state_of
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.remote_read.sections import message_of, sections_of
from msmqwire.rpc.endpoint_mapper import EPT_MAP_REQUEST, ept_map_response
from msmqwire.rpc.ndr import Stub, parse_stub

CAPTURE = "remote_read.pcap"


@cache
def _stubs() -> tuple[Stub, ...]:
    stubs = [stub for each in PROCEDURES.values() for stub in (each.request, each.response)]
    return tuple(stub for stub in (*stubs, EPT_MAP_REQUEST, ept_map_response(2)) if stub.members)


def _seeds() -> Iterator[bytes]:
    yield from stub_seeds(CAPTURE, _stubs())


def _words() -> Iterator[bytes]:
    yield from (
        b"\0\0\2\0",
        b"\4\0\2\0",
        b"\0\0\2\0\0\0\0\0",
        b"LIOR",
        b"\1\0\0\0\1\0\0\0",
        b"\xff\xff\xff\xff",
    )
    yield from (name.encode("utf-16-le") for name in ("OS:host\\private$\\q\0", "TCP:10.0.0.1\\q\0"))


@target(seeds=_seeds, words=_words, size_max=1024)
def stubs(data: bytes) -> None:
    """A stub is the same to both of its readers, and builds to its bytes, padding and referents too."""
    if len(data) < 2:
        return
    stub, syntax = _stubs()[data[0] % len(_stubs())], SYNTAXES[data[1] % len(SYNTAXES)]
    value = comes_back(stub, syntax, data[2:])
    if (queue := getattr(value, "pQueueFormat", None)) is not None:
        is_a_name_or_refused(queue)
    if sections := getattr(value, "ppPacketSections", None):
        _is_a_message_or_refused(sections)


def _is_a_message_or_refused(sections: object) -> None:
    try:
        message = message_of(sections)  # type: ignore[arg-type]
    except MalformedPacket as refusal:
        assert refusal.path
        return
    assert len(message.body) <= max(message.body_size, len(message.data))
    assert message.packet.schema.name


def _message_packets() -> Iterator[bytes]:
    response = PROCEDURES[7].response
    for stub in captured_stubs(CAPTURE):
        for syntax in SYNTAXES[:2]:
            try:
                value = parse_stub(response, stub, syntax)
            except MalformedPacket:
                continue
            for section in value.ppPacketSections or ():
                yield b"\x08\x08" + (section.pSectionBuffer or b"")


@target(seeds=_message_packets, words=_words, size_max=4096)
def sections(data: bytes) -> None:
    """A message packet that is cut into sections, anywhere, is put together as the message that it was."""
    if len(data) < 2:
        return
    content = data[2:]
    try:
        packet = read_message_packet(content)
        state = state_of(packet)
    except MalformedPacket as refusal:
        assert refusal.path
        return
    try:
        whole = message_of(sections_of(content, 1 << 22, 1 << 22))
    except MalformedPacket:
        whole = None
    try:
        cut = message_of(sections_of(content, data[0] * 4, data[1] * 16))
    except MalformedPacket:
        cut = None
    if whole is not None and cut is not None:
        assert whole.body.startswith(cut.body)
        assert whole.body == cut.body or cut.cut
        assert cut.state == whole.state == state
    try:
        again = message_packet(content, state)
    except MalformedPacket:
        return
    assert state_of(read_message_packet(again)) == state
