"""Layers of scapy against the schemas: the same bytes from values, and the same values from bytes."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet as ScapyPacket
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession

from fuzz.strategies import (
    SESSION_PACKETS,
    mutated,
    packet,
    packet_bytes,
    partial,
    partial_packet,
    remote_read_messages,
    values,
)
from msmqwire.errors import InvalidValue
from msmqwire.headers.base import SIGNATURE_END
from msmqwire.plugins.scapy import MSMQBaseHeader
from msmqwire.plugins.scapy.bindings import MSMQ_PORT
from msmqwire.plugins.scapy.stack import Stack
from msmqwire.plugins.scapy.structure import LAYERS, Structure, owner_of
from msmqwire.plugins.scapy.structure import partial as record_of
from msmqwire.schema import Record, View, plain
from msmqwire.schema.references import stands_alone
from tests.support.capture.scapy_layers import layer_of, packet_of

SOME = settings(max_examples=max(30, settings.default.max_examples // 2))
FEW = settings(max_examples=max(6, settings.default.max_examples // 10))  # there are so many structures
PACKETS = {schema.name: schema for schema in SESSION_PACKETS}
STRUCTURES = sorted(
    key for key, layer in LAYERS.items() if stands_alone(layer.schema) and not owner_of(layer.schema)
)


@pytest.fixture(autouse=True, scope="module")
def _no_error_is_hidden() -> Any:
    shown, conf.debug_dissector = conf.debug_dissector, True
    yield
    conf.debug_dissector = shown


def built(build: Any) -> bytes | str:
    """The bytes, or that the values can't be built."""
    try:
        return bytes(build())
    except InvalidValue as exc:
        return exc.why


def headers(packet: ScapyPacket) -> dict[str, Any]:
    """The layers of a packet as plain values."""
    layers = [layer for layer in packet.iterpayloads() if isinstance(layer, Structure)]
    return {layer.schema.name: plain(layer.schema.make(record_of(layer))) for layer in layers}


def parts(record: Record) -> dict[str, Any]:
    """The headers of a packet as plain values."""
    inner = [value for value in dict(record).values() if isinstance(value, Record)]
    return {value.schema.name: plain(value) for value in inner if not value.schema.name.endswith("Body")}


@pytest.mark.parametrize("key", STRUCTURES)
@FEW
@given(data=st.data())
def test_structures(key: str, data: st.DataObject) -> None:
    layer = LAYERS[key]
    record = data.draw(values(layer.schema))
    expected = record.to_bytes()
    dissected = layer(expected)
    assert plain(layer.schema.make(record_of(dissected))) == plain(record)
    assert bytes(dissected) == bytes(layer_of(layer.schema, record)) == expected
    value = data.draw(partial(layer.schema, json=False))
    assert built(lambda: layer_of(layer.schema, value)) == built(lambda: layer.schema.build(value))


@pytest.mark.parametrize("name", PACKETS)
@SOME
@given(data=st.data())
def test_packets(name: str, data: st.DataObject) -> None:
    schema = PACKETS[name]
    record = data.draw(packet(schema))
    expected = record.to_bytes()
    dissected = MSMQBaseHeader(expected)
    assert headers(dissected) == parts(record)
    assert bytes(dissected) == bytes(packet_of(schema, record)) == expected


@pytest.mark.parametrize("name", PACKETS)
@SOME
@given(data=st.data())
def test_packets_with_parts_left_out(name: str, data: st.DataObject) -> None:
    schema = PACKETS[name]
    value = data.draw(partial_packet(schema))
    views = [part.name for part in schema.parts if isinstance(part, View)]
    assume(all(value.get(name) is not None for name in views))  # how else should scapy know
    assert built(lambda: packet_of(schema, value)) == built(lambda: schema.build(value))


@SOME
@given(record=remote_read_messages())
def test_messages_of_remote_read(record: Record) -> None:
    assert bytes(packet_of(record.schema, record)) == record.to_bytes()
    assert bytes(MSMQBaseHeader(record.to_bytes())) == record.to_bytes()


@given(data=mutated(packet_bytes()))
def test_changed_bytes_come_back_whole(data: bytes) -> None:
    segment = bytes(TCP(dport=1801)) + data
    assert bytes(TCP(segment)) == segment


@given(data=st.binary(max_size=100), port=st.sampled_from([MSMQ_PORT, 4711]))
def test_any_bytes_come_back_whole(data: bytes, port: int) -> None:
    for below in (TCP, UDP):
        frame = bytes(below(dport=port)) + data
        assert bytes(below(frame)) == frame


@SOME
@given(
    sent=st.lists(packet_bytes(), min_size=1, max_size=4),
    cuts=st.lists(st.floats(0, 1, exclude_max=True), max_size=6),
    port=st.sampled_from([MSMQ_PORT, 4711]),
)
def test_a_stream_is_put_together(sent: list[bytes], cuts: list[float], port: int) -> None:
    stream = b"".join(sent)
    starts = {0, *accumulate(map(len, sent))}
    places = {int(cut * len(stream)) for cut in cuts}
    if port != MSMQ_PORT:  # the signature that tells of a packet there must not be cut
        places = {place for place in places if not any(0 < place - start < SIGNATURE_END for start in starts)}
    segments = [
        IP(src="127.0.0.1", dst="127.0.0.1") / TCP(dport=port, flags="A", seq=1 + start) / stream[start:end]
        for start, end in pairwise(sorted(places | {0, len(stream)}))
    ]
    found = sniff(offline=[IP(bytes(segment)) for segment in segments], session=TCPSession, quiet=True)
    packets = [
        layer for frame in found for layer in frame.iterpayloads() if isinstance(layer, MSMQBaseHeader)
    ]
    assert [bytes(Stack(layer).build()) for layer in packets] == sent
