"""Whatever happens to segments, bytes are delivered once and in order, and gaps at their offsets."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import given

from msmqwire.capture import Data, Datagram, End, Event, Gap, IpDecoder, Reassembler, Record
from tests.support import captures as c

ACK, SYN, FIN = c.ACK, c.SYN, c.FIN


def segment(
    seq: int, payload: bytes = b"", flags: int = ACK, *, number: int = 1, missing: int = 0
) -> Datagram:
    return Datagram(
        "tcp", "10.0.0.1", 5000, "10.0.0.2", 1801, number * 1_000_000, (number,), "f",
        payload, missing, seq % 2**32, 0, flags,
    )  # fmt: skip


def run(segments: Iterable[Datagram], **limits: int) -> list[Event]:
    reassembler = Reassembler(**limits)
    events = [event for item in segments for event in reassembler.feed(item)]
    events += reassembler.flush()
    assert reassembler.buffered == reassembler.connections == 0
    return events


def text(events: Iterable[Event]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Data))


@st.composite
def segmentations(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, int]]]:
    """A stream, and the ranges sent of it: together they cover it, in any order, overlapping and repeated."""
    data = draw(st.binary(min_size=1, max_size=300))
    cuts = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=10))})
    ranges = list(pairwise(cuts))
    extra = st.tuples(st.integers(0, len(data)), st.integers(0, len(data))).map(sorted).map(tuple)
    return data, draw(st.permutations(ranges + draw(st.lists(extra, max_size=10))))


@given(segmentations(), st.integers(0, 2**32 - 1), st.booleans())
def test_any_segmentation_order_repetition_and_overlap(sent, isn, closed):
    data, ranges = sent
    segments = [segment(isn, flags=SYN)]
    segments += [
        segment(isn + 1 + start, data[start:stop], number=number)
        for number, (start, stop) in enumerate(ranges, 2)
    ]
    if closed:
        segments.insert(
            random.Random(isn).randrange(1, len(segments) + 1), segment(isn + 1 + len(data), flags=FIN | ACK)
        )
    events = run(segments)
    assert text(events) == data
    assert not any(isinstance(event, Gap) for event in events)
    assert [event.reason for event in events if isinstance(event, End)] == ["fin" if closed else "capture"]
    offset = 0
    for event in events:
        assert not event.flow.midstream
        if isinstance(event, Data):
            start, stop = ranges[event.frame - 2]
            assert start <= offset <= offset + len(event.data) <= stop
            assert event.time_ns == event.frame * 1_000_000 <= event.completed_ns
            offset += len(event.data)


@given(segmentations(), st.integers(0, 2**32 - 1), st.sets(st.integers(0, 25)))
def test_delivered_bytes_and_gaps_are_at_their_offsets(sent, isn, lost):
    data, ranges = sent
    captured = [item for number, item in enumerate(ranges) if number not in lost]
    covered = {offset for start, stop in captured for offset in range(start, stop)}
    segments = [segment(isn, flags=SYN)]
    segments += [segment(isn + 1 + start, data[start:stop]) for start, stop in captured]
    segments.append(segment(isn + 1 + len(data), flags=FIN | ACK))
    offset, delivered = 0, set()
    for event in run(segments):
        if isinstance(event, Data):
            assert data[offset : offset + len(event.data)] == event.data
            delivered |= set(range(offset, offset + len(event.data)))
            offset += len(event.data)
        elif isinstance(event, Gap):
            assert event.size
            assert not covered & set(range(offset, offset + event.size))
            offset += event.size
    assert delivered == covered
    assert offset == len(data)


@given(
    segmentations(), st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 5), st.integers(300, 6000)
)
def test_small_limits_lose_order_only_where_they_must(sent, isn, segment_count, flows, size):
    """Once limits are reached, gaps are given up: data is still in order and at its offset."""
    data, ranges = sent
    segments = [segment(isn, flags=SYN)]
    segments += [segment(isn + 1 + start, data[start:stop]) for start, stop in ranges]
    events = run(
        segments,
        max_segments_per_flow=segment_count,
        max_buffered_per_flow=size,
        max_buffered_total=size,
        max_flows=flows,
    )
    offset = 0
    for event in events:
        if isinstance(event, Data):
            assert data[offset : offset + len(event.data)] == event.data
            offset += len(event.data)
        elif isinstance(event, Gap):
            offset += event.size or 0
    assert offset == len(data)


def is_start_overtaken(segments: list[Datagram], port: int, first: int) -> bool:
    """Whether an acknowledgement of the first byte from ``port`` precedes the segment with that byte."""
    for item in segments:
        if item.src_port != port and (item.ack - first) % 2**32 not in (0, 2**32 - 1):
            return True
        if item.src_port == port and item.payload and item.seq == first % 2**32:
            return False
    return False


@given(
    st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=3000)), max_size=8),
    st.randoms(),
    st.booleans(),
)
def test_a_conversation_in_disorder(sends, rng, midstream):
    client_isn, server_isn = rng.getrandbits(32), rng.getrandbits(32)
    conversation = c.TcpConversation(client_isn=client_isn, server_isn=server_isn, mss=700).handshake()
    for by_client, data in sends:
        # Midstream, a single byte overtaken by its acknowledgement looks like a keep-alive probe.
        conversation.send(data * 2 if midstream else data, by_client=by_client)
    conversation.close()
    frames = conversation.frames[3:] if midstream else conversation.frames
    odd = 0 if midstream else 0.2
    frames = c.disorder(frames, rng, reorder=0.2, reach=3, duplicate=0.2, resegment=odd, overlap=odd)
    decoder = IpDecoder()
    records = (Record("f", n, f.time_ns, 1, f.data, len(f.data), 0) for n, f in enumerate(frames, 1))
    segments = [datagram for record in records for datagram in decoder.feed(record)]
    events = run(segments)
    assert not any(isinstance(event, Gap) for event in events)
    streams: dict[int, bytes] = defaultdict(bytes)
    for event in events:
        assert event.flow.stream == 0
        if isinstance(event, Data):
            streams[event.flow.src_port] += event.data
    for port, first, sent in (
        (50_000, client_isn + 1, conversation.sent[True]),
        (1801, server_isn + 1, conversation.sent[False]),
    ):
        if midstream and is_start_overtaken(segments, port, first):
            # What precedes an acknowledged start may have been sent before the capture.
            assert sent.endswith(streams[port])
        else:
            assert streams[port] == sent
    assert sorted(event.flow.src_port for event in events if isinstance(event, End)) == [1801, 50_000]
    assert not decoder.ignored


hostile = st.builds(
    Datagram,
    transport=st.sampled_from(["tcp", "tcp", "tcp", "udp"]),
    src=st.sampled_from("ab"),
    src_port=st.integers(1, 2),
    dst=st.sampled_from("ab"),
    dst_port=st.integers(1, 2),
    time_ns=st.one_of(st.integers(0, 10), st.integers(0, 10**19)),
    frames=st.tuples(st.integers(1, 99)),
    file=st.just("f"),
    payload=st.binary(max_size=20),
    missing=st.integers(0, 70_000),
    seq=st.one_of(st.integers(0, 40), st.integers(2**31 - 40, 2**31 + 40), st.integers(0, 2**32 - 1)),
    ack=st.one_of(st.integers(0, 40), st.integers(0, 2**32 - 1)),
    flags=st.one_of(st.just(ACK), st.integers(0, 255)),
)


@given(st.lists(hostile, max_size=60), st.integers(1, 4), st.integers(0, 2000))
def test_hostile_segments_never_raise_and_every_flow_ends_once(datagrams, flows, total):
    reassembler = Reassembler(max_flows=flows, max_buffered_total=total)
    events = []
    for datagram in datagrams:
        events += reassembler.feed(datagram)
        assert reassembler.buffered <= total
        assert reassembler.connections <= flows
    events += reassembler.flush()
    assert reassembler.buffered == reassembler.connections == 0
    ended = set()
    for event in events:
        assert event.flow not in ended
        if isinstance(event, End):
            ended.add(event.flow)
        elif isinstance(event, Data):
            assert event.data
        else:
            assert event.size is None or event.size > 0
    assert {event.flow for event in events} == ended
