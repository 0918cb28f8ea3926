"""Any bytes of HTTP in captures: nothing raises, no byte is lost, and both readers agree."""

from __future__ import annotations

import io
import random
from collections import Counter

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import example, given, settings

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.dissection.http_finder import HttpFinder
from msmqwire.pgm import checksum_is_right
from msmqwire.tables import arrow_schema, read_capture
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s

NAMES = [column.name for column in UNJUDGED]
MESSAGE = s.published("4.3-3")  # the shortest but one, without parts
PIECES = [
    MESSAGE,
    s.published("4.5"),
    s.chunked(MESSAGE, 3, 300),
    s.RESPONSE,
    s.GET,
    s.PAGE,
    MESSAGE.replace(b"<path", b"<pith"),
    MESSAGE.replace(b"Host:", b"Ho st:"),
    MESSAGE[:200],
    MESSAGE[200:],
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"POST ",
    b"PO",
    b"\r\n",
    h.session_ack(),
    b"\0\xff" * 40,
]
pieces = st.one_of(
    st.sampled_from(PIECES),
    st.sampled_from(PIECES[:4]).flatmap(lambda piece: st.integers(0, len(piece)).map(lambda n: piece[:n])),
    st.binary(max_size=30),
)
streams = st.lists(pieces, max_size=6).map(b"".join)
turns = st.lists(st.tuples(st.booleans(), streams), min_size=1, max_size=4)
ports = st.sampled_from([80, 8080])
segment_sizes = st.sampled_from([1, 7, 300, 1460])


def talk(port: int, mss: int, said: list[tuple[bool, bytes]]) -> c.TcpConversation:
    conversation = s.http(port, mss=mss)
    for by_client, data in said:
        conversation.send(data, by_client=by_client, acknowledged=mss > 1)
    return conversation


def dissected(frames: list[c.Frame]) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(frames))))


@settings(max_examples=60)
@given(ports, segment_sizes, turns)
@example(80, 1, [(True, MESSAGE + MESSAGE[200:] + MESSAGE)])
@example(8080, 300, [(False, b"POST "), (True, MESSAGE[:238] + h.session_ack())])
def test_no_byte_of_a_connection_of_srmp_is_lost(port, mss, said):
    conversation = talk(port, mss, said).close()
    items = dissected(conversation.frames)
    for item in items:
        item.to_json()
        assert item.kind in ("SrmpMessage", "Malformed", "Skipped", "SessionAck")
        assert len(item.raw) == (0 if item.kind == "Skipped" else item.size)
    shown = Counter[bool]()
    for item in items:
        shown[item.dst_port == port] += item.size
    for by_client, data in conversation.sent.items():
        assert shown[by_client] in (0, len(data))
    if any(item.kind == "SrmpMessage" and item.dst_port == port for item in items):
        assert shown[True] == len(conversation.sent[True])


@settings(max_examples=40)
@given(ports, segment_sizes, turns, st.integers(0, 2**32), st.booleans())
def test_both_readers_give_the_same_rows(port, mss, said, seed, disordered):
    frames = talk(port, mss, said).frames
    if disordered:
        frames = c.disorder(
            frames, random.Random(seed), reorder=0.1, duplicate=0.1, drop=0.1, resegment=0.1, behind_acks=True
        )
    frames = frames[seed % 5 :]
    binary = c.TcpConversation((c.CLIENT, 40_000)).handshake().send(h.user_message() * 2)
    data = c.pcap_bytes(c.merged(frames, binary.frames, c.timed(f.data for f in s.over_ip(PGM))))
    made = batches(dissect(io.BytesIO(data), lint=False), UNJUDGED, batch_rows=100_000)
    expected = pa.Table.from_batches(list(made), arrow_schema(UNJUDGED))
    assert read_capture(io.BytesIO(data), columns=NAMES).equals(expected)


PGM = s.multicast_with_a_repair()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(PGM), st.integers(0, 500), st.binary(max_size=2)), max_size=12))
def test_damaged_pgm_never_raises_and_gives_an_item_per_packet(packets):
    damaged = [data[:at] + patch + data[at + len(patch) :] for data, at, patch in packets]
    over_ip, over_udp = dissected(list(s.over_ip(damaged))), dissected(list(s.over_udp(damaged)))
    kinds = ("PgmPacket", "Malformed")
    assert [item.raw for item in over_ip if len(item.frames) == 1 and item.kind in kinds] == damaged
    listed = {item.frames[0] for item in over_udp if item.kind in kinds}
    for number, data in enumerate(damaged, 1):
        assert number in listed or not checksum_is_right(data)
    for item in (*over_ip, *over_udp):
        item.to_json()


@settings(max_examples=60)
@given(st.lists(st.sampled_from(PIECES[:6]), max_size=5), st.lists(st.integers(1, 900), max_size=9))
def test_whole_messages_are_found_however_they_are_cut(messages, cuts):
    stream, finder, found = b"".join(messages), HttpFinder(), []
    for number, size in enumerate([*cuts, len(stream)]):
        part, stream = stream[:size], stream[size:]
        if part:
            found += finder.feed(part, number, number)
    found += finder.end()
    assert [item.data for item in found] == messages
    assert all(item.message is not None for item in found)
    assert finder.held == 0
