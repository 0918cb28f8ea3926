"""Whatever a direction carries: every byte is accounted for, and all complete packets in sync are found."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given

from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.errors import MalformedPacket
from msmqwire.packets import parse, well_formed
from tests.support import handmade as h
from tests.support.capture.finders import PacketFinder

ACK = h.session_ack()
PACKETS = [
    ACK,
    h.connection_parameters(),
    h.establish_connection(),
    h.user_message(properties=h.properties_header(label="label", body=b"body")),
    h.user_message(session=h.session_header(), properties=h.properties_header(body=b"x" * 500)),
    h.user_message(transaction=h.transaction_header(), flags=0),
    h.order_ack(),
    h.final_ack(),
    h.user_message(properties=h.properties_header(body=ACK + h.connection_parameters() + ACK)),
    h.user_message(properties=h.properties_header(body=h.base_header(3000) * 8)),
]
packets = st.sampled_from(PACKETS)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A packet with some bytes changed."""
    data = bytearray(draw(packets))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.one_of(st.integers(0, 15), st.integers(0, len(data) - 1)))
        data[at] = draw(st.sampled_from([0, 1, 0x10, 0x7F, 0xFF, data[at] ^ 1]))
    return bytes(data)


@st.composite
def lying(draw: st.DrawFn) -> bytes:
    """A header with any size and flags, perhaps with bytes after it."""
    size = draw(st.sampled_from([0, 15, 16, 17, 36, 40, 200, 3000, 0x400000, 0x400001, 0xFFFFFFFF]))
    return h.base_header(size, draw(st.integers(0, 0xFFFF))) + draw(st.binary(max_size=40))


garbage = st.one_of(st.binary(min_size=1, max_size=50), damaged(), lying(), packets.map(lambda p: p[17:]))


class Run:
    """A finder with the stream fed to it and its results."""

    def __init__(self, midstream: bool = False) -> None:
        self.finder = PacketFinder(midstream=midstream)
        self.fed, self.results, self.frame = bytearray(), list[ScanResult](), 0
        self.gaps = list[int]()

    def feed(self, data: bytes) -> None:
        for cut in range(0, len(data), 100):
            self.frame += 1
            segment = data[cut : cut + 100]
            self.fed += segment
            self.add(self.finder.feed(segment, self.frame, self.frame * 10))

    def gap(self, size: int | None) -> None:
        results = self.finder.gap(size, "lost", self.frame, self.frame * 10)
        if size:
            gap = results.pop()
            assert (gap.size, gap.data, gap.reason) == (size, b"", "not in the capture: lost")
            self.gaps.append(size)
        self.add(results)
        assert sum(result.size for result in self.results) == len(self.fed)

    def add(self, results: list[ScanResult]) -> None:
        self.results += results

    def end(self) -> list[ScanResult]:
        self.add(self.finder.end())
        assert self.finder.held == 0
        self.check()
        return self.results

    def check(self) -> None:
        """Every byte is in one result, in order, and each result is consistent."""
        offset = 0
        for result in self.results:
            assert result.size > 0
            if result.reason:
                assert (result.packet, result.error, result.data) == (None, None, b"")
            else:
                assert result.data == self.fed[offset : offset + result.size]
                assert (result.packet is None) != (result.error is None)
            if result.packet is not None:
                assert parse(result.data) == result.packet
            if result.error is not None:
                with pytest.raises(MalformedPacket) as raised:
                    parse(result.data)
                assert raised.value.to_json() == result.error.to_json()
            offset += result.size
            assert result.frames
            assert list(result.frames) == sorted(set(result.frames))
            assert result.time_ns == result.frames[-1] * 10
        assert offset == len(self.fed)


def complete_packets(results: list[ScanResult]) -> list[bytes]:
    return [result.data for result in results if result.packet is not None]


@given(st.lists(packets, max_size=8), st.lists(st.integers(0, 5000), max_size=30))
def test_in_sync_all_packets_are_found_and_nothing_else(sent, cuts):
    data = b"".join(sent)
    finder, results = PacketFinder(), []
    for start, stop in pairwise(sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})):
        results += finder.feed(data[start:stop], 1, 1)
    assert [result.data for result in results + finder.end()] == sent


@given(st.lists(st.one_of(packets, garbage), max_size=8), st.booleans())
def test_every_byte_is_accounted_for(parts, midstream):
    run = Run(midstream)
    for part in parts:
        run.feed(part)
    run.end()


@given(
    st.lists(
        st.tuples(st.one_of(packets, garbage), st.sampled_from([-1, -1, None, 0, 1, 30, 5000])), max_size=8
    ),
    st.booleans(),
)
def test_every_byte_is_accounted_for_whatever_is_lost(parts, midstream):
    run = Run(midstream)
    for data, size in parts:
        run.feed(data)
        if size != -1:
            run.gap(size)
    run.end()


@given(st.lists(st.one_of(packets, garbage), max_size=6), st.lists(st.integers(0, 9), max_size=3))
def test_discarding_at_any_time_loses_no_bytes(parts, when):
    run = Run()
    for number, data in enumerate(parts):
        run.feed(data)
        if number in when:
            run.add(run.finder.discard())
            assert run.finder.held == 0
    run.end()


@given(packets, st.binary(min_size=1, max_size=60), st.lists(packets, min_size=1, max_size=5), st.booleans())
def test_after_garbage_all_packets_are_found(first, noise, then, midstream):
    assume(b"LIOR" not in noise)
    run = Run(midstream)
    run.feed(first)
    run.feed(noise)
    for packet in then:
        run.feed(packet)
    assert complete_packets(run.end()) == [first, *then]


@given(packets, st.integers(1, 700), st.lists(packets, min_size=1, max_size=5))
def test_a_capture_beginning_inside_a_packet_finds_later_ones(first, cut, then):
    assume(b"LIOR" not in first[cut:])  # otherwise packets in its body are just as certain
    run = Run(midstream=True)
    run.feed(first[cut:])
    for packet in then:
        run.feed(packet)
    assert complete_packets(run.end()) == then


@given(st.lists(packets, min_size=1, max_size=6), st.integers(0, 4000), st.integers(1, 2000), st.booleans())
def test_a_gap_costs_no_packet_but_those_it_touches(sent, start, size, known):
    data = b"".join(sent)
    assume(start < len(data))
    stop = min(start + size, len(data))
    offset, intact = 0, []
    for packet in sent:
        end = offset + len(packet)
        if end <= start or offset >= stop:
            intact.append(packet)
        elif b"LIOR" in packet[16:]:
            assume(known and offset <= start and start - offset >= 16 and end >= stop)
        offset = end
    run = Run()
    run.feed(data[:start])
    run.gap(stop - start if known else None)
    run.feed(data[stop:])
    assert complete_packets(run.end()) == intact


@given(st.one_of(packets, damaged(), lying()), st.binary(max_size=20), st.binary(max_size=20))
def test_a_packet_is_judged_alike_at_any_offset(data, before, after):
    size = int.from_bytes(data[8:12], "little") + (16 if data[2] & 0x18 == 0x10 else 0)
    assume(len(data) >= 12 and data[0] == 0x10 and data[4:8] == b"LIOR" and 16 <= size == len(data))
    stream = before + data + after
    judged = well_formed(stream, len(before), len(before) + len(data))
    assert judged == well_formed(bytearray(stream), len(before), len(before) + len(data))
    try:
        parse(data)
    except MalformedPacket:
        assert not judged or data[2] == data[3] == 0  # an OrderAck or FinalAck has a body of its own format
    else:
        assert judged
