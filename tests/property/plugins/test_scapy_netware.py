"""Layers of scapy for NCP against its schemas: the same bytes from values, and the same values from bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet as ScapyPacket
from scapy.packet import Raw
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession

from fuzz.strategies import mutated, partial, values
from msmqwire.errors import InvalidValue
from msmqwire.ncp.framing import build_unit
from msmqwire.ncp.headers import NCP_PORT, NCP_TCP_REPLY, NCP_TCP_REQUEST
from msmqwire.ncp.packets import CALLS, NcpReply, NcpRequest, make_reply, make_request
from msmqwire.plugins.scapy.netware import (
    REPLIES,
    REQUESTS,
    NcpReplyHeader,
    NcpRequestHeader,
    NcpSubfunctionHeader,
    NcpTcpReply,
    NcpTcpRequest,
)
from msmqwire.plugins.scapy.structure import LAYERS, Structure, owner_of
from msmqwire.plugins.scapy.structure import partial as record_of
from msmqwire.schema import plain
from tests.support.capture.scapy_layers import layer_of

MANY = settings(max_examples=max(100, settings.default.max_examples))  # there are so many structures
FEWER = settings(max_examples=max(40, settings.default.max_examples // 2))
FEW = settings(max_examples=max(20, settings.default.max_examples // 4))
COMPUTED = (NcpTcpRequest, NcpTcpReply, NcpSubfunctionHeader)
"""Layers that count their payload."""
STRUCTURES: list[type[Structure]] = [
    *(layer for layer in LAYERS.values() if owner_of(layer.schema) and layer not in COMPUTED),
    *(layer for forms in REQUESTS.values() for layer in forms.values()),
    *(layer for forms in REPLIES.values() for layer in forms.values()),
]
PREAMBLE = 24
"""Bytes of the longest preamble."""

bytes_of_numbers = st.integers(0, 0xFF)
calls = st.sampled_from(sorted(CALLS.values(), key=lambda call: (call.function, call.number)))
signatures = st.none() | st.binary(min_size=8, max_size=8)


@pytest.fixture(autouse=True, scope="module")
def _no_error_is_hidden() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conf, "debug_dissector", True)
        yield


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[NcpRequest, NcpReply]:
    """Draw a request, and a reply to it, with data or a completion code."""
    call = draw(calls)
    connection = draw(st.integers(0, 0xFFFF))
    numbers = {"sequence": draw(bytes_of_numbers), "connection": connection, "task": draw(bytes_of_numbers)}
    request = make_request(call, draw(values(call.request)), **numbers)
    code = draw(st.just(0) | bytes_of_numbers)
    return request, make_reply(request, None if code else draw(values(call.reply)), completion=code)


def request_stack(request: NcpRequest) -> ScapyPacket:
    """A request as layers made by constructors; what follows from others is left out."""
    call, data = request.call, request.data
    assert call is not None
    assert data is not None
    numbers = {name: value for name, value in dict(request.header).items() if name != "FunctionCode"}
    head = NcpRequestHeader(**numbers)
    layer = REQUESTS[call.function, call.number][data.schema.key]
    stack = head / NcpSubfunctionHeader() if call.has_subfunction else head
    return stack / layer_of(data.schema, data, layer)


def reply_stack(reply: NcpReply) -> ScapyPacket:
    """A reply as layers made by constructors."""
    head = layer_of(reply.header.schema, reply.header)
    if reply.data is None or not len(reply.data.to_bytes()):
        return head
    assert reply.call is not None
    layer = REPLIES[reply.call.function, reply.call.number][reply.data.schema.key]
    return head / layer_of(reply.data.schema, reply.data, layer)


def built(build: Any) -> bytes | str:
    """The bytes, or that the values can't be built."""
    try:
        return bytes(build())
    except InvalidValue as exc:
        return exc.why


def data_of(header: ScapyPacket) -> Any:
    """The data behind a header as plain values."""
    layer = header.lastlayer()
    return plain(layer.schema.make(record_of(layer)))


@MANY
@given(data=st.data())
def test_structures(data: st.DataObject) -> None:
    layer = data.draw(st.sampled_from(STRUCTURES))
    record = data.draw(values(layer.schema))
    expected = record.to_bytes()
    dissected = layer(expected)
    assert plain(layer.schema.make(record_of(dissected))) == plain(record)
    assert bytes(dissected) == bytes(layer_of(layer.schema, record, layer)) == expected
    value = data.draw(partial(layer.schema, json=False))
    assert built(lambda: layer_of(layer.schema, value, layer)) == built(lambda: layer.schema.build(value))


@FEWER
@given(pair=exchanges(), room=st.integers(0, 0xFFFFFFFF), signature=signatures)
def test_requests_and_replies(pair: tuple[NcpRequest, NcpReply], room: int, signature: bytes | None) -> None:
    request, reply = pair
    sent = request_stack(request)
    preamble = NcpTcpRequest(ReplyBufferSize=room, PacketSignature=signature)
    unit = build_unit(NCP_TCP_REQUEST, request.to_bytes(), ReplyBufferSize=room, PacketSignature=signature)
    answer = build_unit(NCP_TCP_REPLY, reply.to_bytes(), PacketSignature=signature)
    assert bytes(sent) == request.to_bytes()
    assert bytes(preamble / sent) == unit
    assert bytes(reply_stack(reply)) == reply.to_bytes()
    assert bytes(NcpTcpReply(PacketSignature=signature) / reply_stack(reply)) == answer

    asked = UDP(bytes(UDP(sport=1024, dport=NCP_PORT) / sent))
    answered = UDP(bytes(UDP(sport=NCP_PORT, dport=asked.sport) / Raw(reply.to_bytes())))
    assert answered.answers(asked)
    assert answered.hashret() == asked.hashret()
    assert data_of(asked[NcpRequestHeader]) == plain(request.data)
    header = answered[NcpReplyHeader]
    assert header.call is request.call
    if reply.data is not None and reply.data.to_bytes():
        assert data_of(header) == plain(reply.data)
    assert (bytes(asked.payload), bytes(answered.payload)) == (request.to_bytes(), reply.to_bytes())


@st.composite
def units(draw: st.DrawFn) -> bytes:
    """Draw a unit or a datagram."""
    request, reply = draw(exchanges())
    signature = draw(signatures)
    return draw(
        st.sampled_from(
            [
                build_unit(NCP_TCP_REQUEST, request.to_bytes(), PacketSignature=signature),
                build_unit(NCP_TCP_REPLY, reply.to_bytes(), PacketSignature=signature),
                request.to_bytes(),
                reply.to_bytes(),
            ]
        )
    )


@FEWER
@given(data=mutated(units()) | st.binary(max_size=60), port=st.sampled_from([NCP_PORT, 4711]))
def test_changed_bytes_come_back_whole(data: bytes, port: int) -> None:
    for below in (TCP, UDP):
        for ports in ({"sport": 4712, "dport": port}, {"sport": port, "dport": 4712}):
            frame = bytes(below(**ports) / Raw(data))
            assert bytes(below(frame)) == frame


@pytest.mark.parametrize("rest", ["", "0005", "000114", "000514", "00051400"])
def test_a_request_that_ends_after_a_header_comes_back_whole(rest: str) -> None:
    """Of function 23 and what follows it; no bytes are not those of a request that is to be built."""
    data = bytes.fromhex("222200000000" + "17" + rest)
    for port in (NCP_PORT, 4711):
        frame = bytes(UDP(sport=4712, dport=port) / Raw(data))
        assert bytes(UDP(frame)) == frame


@FEW
@given(
    pairs=st.lists(exchanges(), min_size=1, max_size=3, unique_by=lambda pair: pair[0].header.SequenceNumber),
    cuts=st.lists(st.floats(0, 1, exclude_max=True), max_size=6),
    port=st.sampled_from([NCP_PORT, 4711]),
)
def test_streams_are_put_together_and_replies_paired(
    pairs: list[tuple[NcpRequest, NcpReply]], cuts: list[float], port: int
) -> None:
    requests = [build_unit(NCP_TCP_REQUEST, request.to_bytes()) for request, _ in pairs]
    replies = [build_unit(NCP_TCP_REPLY, reply.to_bytes()) for _, reply in pairs]
    segments = [
        *segments_of(requests, cuts, sport=4712, dport=port),
        *segments_of(replies, cuts, sport=port, dport=4712),
    ]
    found = sniff(offline=segments, session=TCPSession, quiet=True)
    layers = [layer for frame in found for layer in frame.iterpayloads()]
    assert [bytes(only(layer)) for layer in layers if isinstance(layer, NcpTcpRequest)] == requests
    assert [bytes(only(layer)) for layer in layers if isinstance(layer, NcpTcpReply)] == replies
    headers = [layer for layer in layers if isinstance(layer, NcpReplyHeader)]
    assert [header.call for header in headers] == [request.call for request, _ in pairs]
    for header, (_, reply) in zip(headers, pairs, strict=True):
        assert bytes(only(header)) == reply.to_bytes()


def only(layer: ScapyPacket) -> ScapyPacket:
    """A copy of a layer up to the next unit."""
    copy = layer.copy()
    last = copy
    while last.payload and not isinstance(last.payload, NcpTcpRequest | NcpTcpReply):
        last = last.payload
    last.remove_payload()
    return copy


def segments_of(units: list[bytes], cuts: list[float], **ports: int) -> Iterator[ScapyPacket]:
    """The segments of a stream that is cut at places; not inside a preamble if nothing else tells of it."""
    stream = b"".join(units)
    starts = {0, *accumulate(map(len, units))}
    places = {int(cut * len(stream)) for cut in cuts}
    if NCP_PORT not in ports.values():
        places = {place for place in places if not any(0 < place - start < PREAMBLE for start in starts)}
    for start, end in pairwise(sorted(places | {0, len(stream)})):
        segment = TCP(**ports, flags="A", seq=1 + start) / stream[start:end]
        yield IP(bytes(IP(src="127.0.0.1", dst="127.0.0.1") / segment))
