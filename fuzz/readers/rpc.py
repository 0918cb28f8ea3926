"""Targets for DCE/RPC: PDUs, streams of them, both ends of an association, towers, trailers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzz.invariants import both_readers_agree, refusal_has_a_position
from fuzz.readers.inputs import payloads, pieces
from fuzz.readers.registry import target
from msmqwire.errors import AuthenticationFailed, MalformedPacket, RpcFault
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import FRAG_LENGTH_MAX, NDR20, NDR64, AuthLevel, AuthType, PduType, SyntaxId
from msmqwire.rpc.endpoint_mapper import EPT_MAP, EndpointMapper, map_request, mapped_port
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.limits import STUB_MAX
from msmqwire.rpc.pdu import PduFramer, build_pdu, make_pdu, parse_pdu, pdu_from_json
from msmqwire.rpc.pdus import PDUS
from msmqwire.rpc.server_association import ServerAssociation
from msmqwire.rpc.towers import Tower, build_tower, parse_tower
from msmqwire.rpc.verification_trailer import SIGNATURE, TRAILER_MAX, split_trailer

CAPTURE = "remote_read.pcap"
TOKEN, SIGNED = b"open", b"sign"
CALLS_MAX = 3


class Transparent:
    """A security context that accepts the right token and signature, in clear."""

    def __init__(self) -> None:
        self.complete = False
        self.identity = "LAB\\alice"

    def step(self, token: bytes) -> bytes:
        if token == TOKEN:
            self.complete = True
            return b""
        if not token or token[:1] == b"?":
            return b"?"
        raise AuthenticationFailed("a token that is not known")

    def signature_size(self, seal: bool) -> int:
        return len(SIGNED)

    def protect(
        self, head: bytes, body: bytes, trailer: bytes, *, seal: bool, sign_head: bool
    ) -> tuple[bytes, bytes]:
        return body, SIGNED

    def unprotect(
        self, head: bytes, body: bytes, trailer: bytes, signature: bytes, *, seal: bool, sign_head: bool
    ) -> bytes:
        if signature != SIGNED:
            raise AuthenticationFailed("a wrong signature")
        return body


def _streams() -> Iterator[bytes]:
    for _, stream in payloads(CAPTURE, "tcp"):
        if PduFramer().feed(stream):
            yield stream


def _pdus() -> Iterator[bytes]:
    for stream in _streams():
        yield from (frame.data for frame in PduFramer().feed(stream))
    for kind in PDUS:
        yield build_pdu(make_pdu(PduType(kind), {}))
        verifier = {"auth_type": 10, "auth_level": 6, "auth_context_id": 1, "auth_value": SIGNED}
        yield build_pdu(make_pdu(PduType(kind), {}, sec_trailer=verifier))


def _words() -> Iterator[bytes]:
    yield from (bytes([5, 0, kind, 3, 16, 0, 0, 0]) for kind in PDUS)
    for syntax in (INTERFACE, NDR20, NDR64):
        yield syntax.uuid.bytes_le + syntax.major.to_bytes(2, "little") + syntax.minor.to_bytes(2, "little")
    yield from (TOKEN, SIGNED, SIGNATURE, b"\x0a\6", b"\x0a\2")


@target(seeds=_pdus, words=_words, size_max=1024)
def pdus(data: bytes) -> None:
    """A PDU comes back whole, from its JSON too, and both readers of its schema agree."""
    try:
        pdu = parse_pdu(data)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
        return
    assert build_pdu(pdu) == data
    assert pdu_from_json(pdu.to_json()) == pdu
    if pdu.sec_trailer is None:
        both_readers_agree(pdu.record.schema, data)


def _cut() -> Iterator[bytes]:
    for number, stream in enumerate(_streams()):
        yield bytes([number * 37 % 256]) + stream[:4000]


def _framed(data: bytes, choice: int) -> tuple[list[Any], object, bytes]:
    framer, frames = PduFramer(), list[Any]()
    for piece in pieces(data, choice):
        frames += framer.feed(piece)
        assert framer.buffered < FRAG_LENGTH_MAX
    error = framer.error and (framer.error.why, framer.error.path, framer.error.offset)
    return frames, error, framer.bad_header


@target(seeds=_cut, words=_words, size_max=4096)
def stream(data: bytes) -> None:
    """Wherever a stream is cut, the same PDUs come of it, in order and without a byte between them."""
    if not data:
        return
    whole = _framed(data[1:], 0)
    assert _framed(data[1:], data[0]) == whole
    joined = b"".join(frame.data for frame in whole[0])
    assert data[1:].startswith(joined)
    assert data[1 + len(joined) :].startswith(whole[2])


def _associated(association: Any, data: bytes, choice: int) -> tuple[list[str], bytes]:
    """The results of a stream: events, and the bytes to send."""
    events: list[str] = []
    for piece in pieces(data, choice):
        found = association.received(piece)
        events += map(repr, found)
    calls = [event for event in events if event.startswith("Called")]
    assert len(calls) <= len(data) // 24
    return events, association.data_to_send()


def _server() -> ServerAssociation:
    return ServerAssociation(
        {INTERFACE: len(PROCEDURES)},
        groups=AssociationGroups(),
        port=2103,
        security=lambda auth_type, level: Transparent() if auth_type == AuthType.WINNT else None,
        calls_max=CALLS_MAX,
    )


def _client(level: AuthLevel) -> ClientAssociation:
    security = Transparent() if level > AuthLevel.NONE else None
    association = ClientAssociation(INTERFACE, security=security, level=level)
    association.bind()
    association.data_to_send()
    return association


def _to_server() -> Iterator[bytes]:
    for stream in _streams():
        if stream[2] == PduType.BIND:
            yield b"\0" + stream[:4000]
            yield b"\x25" + stream[:4000]
    elements = [
        {"p_cont_id": 0, "abstract_syntax": _fields(INTERFACE), "transfer_syntaxes": [_fields(NDR20)]}
    ]
    for level in (2, 5, 6):
        verifier = {"auth_type": 10, "auth_level": level, "auth_context_id": 1}
        bind = make_pdu(
            PduType.BIND, {"p_context_elem": elements}, sec_trailer={**verifier, "auth_value": TOKEN}
        )
        call = make_pdu(
            PduType.REQUEST, {"opnum": 3, "stub_data": bytes(16)}, header={"call_id": 2},
            sec_trailer={**verifier, "auth_value": SIGNED},
        )  # fmt: skip
        yield b"\0" + build_pdu(bind) + build_pdu(call)


def _fields(syntax: SyntaxId) -> dict[str, Any]:
    return {"if_uuid": syntax.uuid, "major": syntax.major, "minor": syntax.minor}


@target(seeds=_to_server, words=_words, size_max=2048)
def server(data: bytes) -> None:
    """The server's end: the same events and answers wherever a stream is cut, and no more than its limits."""
    if not data:
        return
    association = _server()
    whole = _associated(association, data[1:], 0)
    assert association.outstanding <= CALLS_MAX
    assert (association.incomplete or 0) <= STUB_MAX + FRAG_LENGTH_MAX
    PduFramer().feed(whole[1])
    assert _associated(_server(), data[1:], data[0]) == whole


def _to_client() -> Iterator[bytes]:
    for stream in _streams():
        if stream[2] != PduType.BIND:
            yield b"\0\0" + stream[:4000]
            yield b"\1\x25" + stream[:4000]


@target(seeds=_to_client, words=_words, size_max=2048)
def client(data: bytes) -> None:
    """The client's end, with a call as soon as it is bound: the same events wherever a stream is cut."""
    if len(data) < 2:
        return
    level = AuthLevel.PKT_INTEGRITY if data[0] & 1 else AuthLevel.NONE
    results = []
    for choice in (0, data[1]):
        association = _client(level)
        events: list[str] = []
        for frame in pieces(data[2:], choice):
            events += map(repr, association.received(frame))
        if association.bound:
            association.call(3, b"arguments")
            events += map(repr, association.received(data[2:]))
        assert association.outstanding <= 1
        results.append((events, association.data_to_send(), association.closed))
    assert results[0] == results[1]


def _towers() -> Iterator[bytes]:
    yield build_tower(Tower(INTERFACE, NDR20, 2103))
    yield build_tower(Tower(INTERFACE, NDR64))


@target(seeds=_towers, words=_words, size_max=256)
def towers(data: bytes) -> None:
    """A tower of TCP is built again as it was, but for what its floors hold beyond their fields."""
    try:
        tower = parse_tower(data)
    except MalformedPacket as refusal:
        assert refusal.path.startswith("protocol_tower_t")
        return
    assert parse_tower(build_tower(tower)) == tower
    assert len(build_tower(tower)) <= len(data) + 2


def _mapper() -> Iterator[bytes]:
    for number, syntax in enumerate((NDR20, NDR64)):
        stub = map_request(INTERFACE, syntax)
        yield bytes([number]) + stub
        yield bytes([number]) + EndpointMapper({INTERFACE: 2103}).called(EPT_MAP, stub, syntax)


@target(seeds=_mapper, words=_words, size_max=512)
def mapper(data: bytes) -> None:
    """Any question to the endpoint mapper is answered, any answer read, and its own answers are read."""
    if not data:
        return
    syntax = (NDR20, NDR64)[data[0] & 1]
    try:
        port = mapped_port(data[1:], INTERFACE, syntax)
        assert 0 < port <= 0xFFFF
    except (MalformedPacket, RpcFault) as refusal:
        assert str(refusal)
    try:
        answer = EndpointMapper({INTERFACE: 2103}).called(EPT_MAP, data[1:], syntax)
    except RpcFault as fault:
        assert fault.status
        return
    try:
        assert mapped_port(answer, INTERFACE, syntax) == 2103
    except (MalformedPacket, RpcFault) as refusal:
        assert str(refusal)


def _trailers() -> Iterator[bytes]:
    yield b"arguments\0\0\0" + SIGNATURE + bytes.fromhex("0140040001000000")
    syntaxes = b"".join(syntax.uuid.bytes_le + bytes(4) for syntax in (INTERFACE, NDR20))
    yield bytes(8) + SIGNATURE + bytes.fromhex("02402800") + syntaxes


@target(
    seeds=_trailers, words=lambda: (SIGNATURE, b"\1\x40\4\0", b"\2\x40\x28\0", b"\3\x40\x10\0"), size_max=1400
)
def trailers(data: bytes) -> None:
    """A verification trailer is taken off at its signature, or all is the stub."""
    try:
        stub, commands = split_trailer(data)
    except (MalformedPacket, AuthenticationFailed) as refusal:
        assert str(refusal)
        return
    assert data.startswith(stub)
    if len(stub) < len(data):
        assert data.startswith(SIGNATURE, len(stub))
        assert len(stub) % 4 == 0
        assert len(data) - len(stub) <= TRAILER_MAX
    else:
        assert not commands
