"""Holes, ends and limits: breaks of a flow in the compiled scan give the rows of the generic reader."""

from __future__ import annotations

from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from benchmarks.support.hostile_packets import LOST
from msmqwire.analysis.dissection.tracker import HELD_MAX
from msmqwire.capture.tcp import ACKED_SEGMENTS
from msmqwire.tables.scanning.flow_events import FlowTable
from tests.support import handmade as h
from tests.support.capture.attacks import ACK, SYN, pcap, segment
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.capture_files import START_NS

FIN, RST, MS = 1, 4, 1_000_000
GOOD = h.user_message(properties=h.properties_header(label="label", body=b"body" * 40))
SMALL = h.session_ack()
PACKETS = [
    GOOD,
    SMALL,
    *(change(GOOD) for _, change in LOST.values()),
    h.base_header(4 << 20) + b"q" * 30,
    h.user_message(trailing=b"xyz" + SMALL * 3),
    h.user_message(trailing=b"xyz" + h.base_header(3000) * 2),
    h.base_header(500)[:14],
    h.base_header(7)[:14],
    b"z" * 50,
]
FIRST = 0
"""Frames for the generic reader."""
TINY = {"CHUNK": 400, "ARENA": 64, "ROWS": 1}


def opened(client: int = 0) -> list[bytes]:
    answer = segment(b"", client=client, seq=0, flags=SYN | ACK, by_client=False)
    return [segment(b"", client=client, seq=0, flags=SYN), answer]


class Stream:
    """The segments of both sides of a connection, some of which are not in the capture."""

    def __init__(self, client: int = 0) -> None:
        self.client, self.sent, self.frames = client, {True: 0, False: 0}, opened(client)

    def send(self, data: bytes, *, by_client: bool = True, lost: bool = False, flags: int = ACK) -> None:
        at = self.sent[by_client]
        if not lost:
            ack = 1 + self.sent[not by_client]
            frame = segment(data, client=self.client, seq=1 + at, ack=ack, flags=flags, by_client=by_client)
            self.frames.append(frame)
        self.sent[by_client] = at + len(data)


@st.composite
def broken_streams(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """Frames with a time of connections whose segments get lost, and which end anywhere."""
    data = b"".join(draw(st.lists(st.sampled_from(PACKETS), min_size=3, max_size=25)))
    size = draw(st.sampled_from([9, 16, 40, 100, 700]))
    loss = draw(st.sampled_from([3, 10, 30]))
    streams = [Stream(client) for client in range(draw(st.integers(1, 3)))]
    now, frames = START_NS, [(START_NS, frame) for stream in streams for frame in stream.frames]
    for at in range(0, len(data), size):
        stream = draw(st.sampled_from(streams))
        before = len(stream.frames)
        by_client = draw(st.integers(0, 5)) > 0
        stream.send(data[at : at + size], by_client=by_client, lost=draw(st.integers(0, loss)) == 0)
        if draw(st.integers(0, 3)) == 0:
            stream.send(b"", by_client=not by_client)
        if draw(st.integers(0, 30)) == 0:
            stream.send(b"", flags=draw(st.sampled_from([FIN | ACK, FIN | ACK, RST | ACK])))
        for frame in stream.frames[before:]:
            now += draw(st.sampled_from([1000] * 30 + [300 * MS, 1100 * MS, 31_000 * MS, -400 * MS]))
            frames.append((now, frame))
    return frames


@settings(max_examples=100)
@given(frames=broken_streams(), sizes=st.sampled_from([{}, TINY]), cut=st.integers(0, 200))
def test_any_breaks_give_the_same_columns(
    frames: list[tuple[int, bytes]], sizes: dict[str, int], cut: int
) -> None:
    files = [pcap(part) for part in (frames[:cut], frames[cut:]) if part]
    assert_same(files, **sizes)


@pytest.mark.parametrize("packet", PACKETS, ids=range(len(PACKETS)))
@pytest.mark.parametrize("end", [FIN | ACK, 0])
def test_a_flow_ending_inside_a_packet_stays_in_the_scan(packet: bytes, end: int) -> None:
    for cut in range(0, len(packet) + 1, 7):
        stream = Stream()
        for part in (GOOD, packet[:cut]):
            stream.send(part)
        if end:
            stream.send(b"", flags=end)
        data = pcap(stream.frames)
        assert_same([data], **TINY)
        assert columnar([data])[0].handed == FIRST


@pytest.mark.parametrize("waits", ["many segments", "a second", "half a minute"])
@pytest.mark.parametrize("packet", PACKETS[:6], ids=range(6))
def test_gaps_need_no_generic_reader(packet: bytes, waits: str) -> None:
    """A gap that is acknowledged after 32 segments or a second, and another one after half a minute."""
    stream = Stream()
    data = packet + GOOD * 4
    stream.send(GOOD + data[:20])
    stream.send(data[20:45], lost=True)
    for at in range(45, 45 + 40 * 9, 9):
        stream.send(data[at : at + 9])
        if at < 45 + 9 * 20:
            continue
        if waits == "many segments":
            stream.send(b"", by_client=False)
        elif at >= 45 + 9 * 31:
            break
    if waits == "a second":
        stream.send(b"", by_client=False)
    frames = [(START_NS + 1000 * at, frame) for at, frame in enumerate(stream.frames)]
    later = len(stream.frames)
    stream.send(SMALL)
    stream.send(SMALL, by_client=False)
    wait = {"many segments": 1, "a second": 1100, "half a minute": 31_000}[waits] * MS
    frames += [(frames[-1][0] + wait, frame) for frame in stream.frames[later:]]
    capture = pcap(frames)
    assert_same([capture])
    assert_same([capture], **TINY)
    dissection, table = columnar([capture])
    assert dissection.handed == FIRST
    reason = "timeout" if waits == "half a minute" else "acknowledged"
    assert table["error"].to_pylist().count(f"not in the capture: {reason}") == 1
    assert dissection.counters()["lost_bytes"] == 25


@pytest.mark.parametrize("revealed_by", ["client", "server", "another"])
def test_gaps_due_together_end_in_the_order_of_their_directions(revealed_by: str) -> None:
    """The direction that was seen first is the first."""
    stream, other = Stream(), Stream(1000)
    for by_client in (False, True):
        stream.send(b"z" * 10, by_client=by_client, lost=True)
        stream.send(SMALL + GOOD[:40], by_client=by_client)
    stream.send(b"", by_client=False)
    frames = [(START_NS, frame) for frame in stream.frames]
    if revealed_by == "another":
        later = other.frames
    else:
        stream.send(SMALL, by_client=revealed_by == "client")
        later = stream.frames[-1:]
    data = pcap([*frames, *((START_NS + 5000 * MS, frame) for frame in later)])
    assert_same([data])
    assert_same([data], **TINY)
    dissection, table = columnar([data])
    assert dissection.handed == FIRST
    rows = zip(table["error"].to_pylist(), table["dst_port"].to_pylist(), strict=True)
    given_up = [port for error, port in rows if error == "not in the capture: acknowledged"]
    assert len(given_up) == 2
    assert given_up[0] == 1801


def test_gaps_of_many_connections_are_given_up_by_age() -> None:
    """Each of a hundred waits; a segment of another connection shows that all of them are due."""
    streams = [Stream(client) for client in range(100)]
    frames = [frame for stream in streams for frame in stream.frames]
    for stream in [*streams[::2], *streams[1::2]]:
        before = len(stream.frames)
        stream.send(b"z" * 10, lost=True)
        stream.send(SMALL + GOOD[:40])
        frames += stream.frames[before:]
    other = Stream(1000)
    other.send(SMALL)
    start = [(START_NS + 1000 * at, frame) for at, frame in enumerate(frames)]
    data = pcap([*start, *((START_NS + 31_000 * MS, frame) for frame in other.frames)])
    assert_same([data])
    assert_same([data], **TINY)
    dissection, table = columnar([data])
    assert dissection.handed == FIRST
    assert table["error"].to_pylist().count("not in the capture: timeout") == 100


def test_evicted_connections_with_pending_data_stay_in_the_scan(monkeypatch) -> None:
    monkeypatch.setattr("msmqwire.analysis.dissection.tracker.CONNECTIONS_MAX", 64)
    frames = []
    for client in range(500):
        stream = Stream(client)
        stream.send(GOOD[:100], by_client=client % 3 > 0)
        if client % 4 == 0:
            stream.send(b"z" * 10, lost=True)
            stream.send(SMALL)
        frames += stream.frames
    data = pcap(frames)
    assert_same([data])
    assert_same([data], **TINY)
    dissection, table = columnar([data])
    assert dissection.counters()["evicted"] == 436
    assert dissection.handed < 240  # a SYN that evicts four, and the answer to it
    assert table["error"].to_pylist().count("not in the capture: end") == 125


@pytest.mark.parametrize("both", [False, True])
def test_what_is_let_go_is_that_of_those_that_hold_most(both: bool) -> None:
    """Of 40 connections some hold as much as others, perhaps in both directions."""
    streams = [Stream(client) for client in range(40)]
    frames = [frame for stream in streams for frame in stream.frames]
    total, step = 0, 0
    while total < 1.8 * HELD_MAX:
        stream = streams[step % 37]
        before = len(stream.frames)
        first = h.base_header(4 << 20) if step < 37 else b""
        size = 60_000 if step % 37 < 20 else 50_000
        stream.send(first.ljust(size, b"q"))
        if both and step % 5 == 0:
            stream.send(h.base_header(4 << 20).ljust(30_000, b"q"), by_client=False)
        frames += stream.frames[before:]
        total, step = total + size, step + 1
    data = pcap([*frames, *Stream(100).frames])
    assert_same([data])
    dissection, table = columnar([data])
    let_go = [error for error in table["error"].to_pylist() if error and "too much is held" in error]
    assert len(let_go) > 10
    assert both or dissection.handed < len(frames) / 50


def test_the_oldest_gap_is_given_up_where_too_much_is_buffered() -> None:
    """Of 300 connections each has four segments beyond a gap, together more than 64 MiB; some fill theirs."""
    streams = [Stream(client) for client in range(300)]
    frames = [frame for stream in streams for frame in stream.frames]
    for number in range(4):
        for stream in streams:
            before = len(stream.frames)
            if number == 0:
                stream.send(b"z" * 10, lost=True)
            if number == 2 and stream.client % 50 == 0:
                filling = segment(b"z" * 10, client=stream.client, seq=1)
                stream.frames.append(filling)
                stream.send(b"y" * 10, lost=True)
            stream.send(SMALL.ljust(60_000, b"z"))
            frames += stream.frames[before:]
    data = pcap(frames)
    assert_same([data])
    dissection, table = columnar([data])
    assert dissection.handed == FIRST
    assert table["error"].to_pylist().count("not in the capture: limit") > 10


def test_connections_over_the_buffer_limit_stay_in_the_scan() -> None:
    """One after the other, 2,200 connections have a segment beyond a gap, together more than 64 MiB."""
    frames = []
    for client in range(2200):
        stream = Stream(client)
        stream.send(b"z" * 10, lost=True)
        stream.send(SMALL.ljust(40_000, b"z"))
        frames += stream.frames
    data = pcap(frames)
    assert_same([data])
    dissection, table = columnar([data])
    assert dissection.handed < 10  # SYNs where the array of flows grows
    assert table["error"].to_pylist().count("not in the capture: limit") > 100


def test_gaps_due_at_the_end_of_the_capture_stay_in_the_scan() -> None:
    """The last segments are captured between two sweeps: one just before the gaps are due, and one after."""
    streams = [Stream(client) for client in range(100)]
    frames = [frame for stream in streams for frame in stream.frames]
    for stream in streams:
        before = len(stream.frames)
        stream.send(b"z" * 10, lost=True)
        stream.send(SMALL + GOOD[:40])
        frames += stream.frames[before:]
    start = [(START_NS + 1000 * at, frame) for at, frame in enumerate(frames)]
    other = Stream(1000)
    patched = mock.patch.object(FlowTable, "take_event", side_effect=AssertionError)
    data = pcap([*start, *zip((START_NS + 29_999 * MS, START_NS + 30_050 * MS), other.frames, strict=True)])
    assert_same([data])
    assert_same([data], **TINY)
    with patched:
        _, table = columnar([data])
    assert table["error"].to_pylist().count("not in the capture: timeout") == 100


@pytest.mark.parametrize("behind", range(ACKED_SEGMENTS - 2, ACKED_SEGMENTS + 2))
def test_conflicting_bytes_count_once_when_they_end_a_gap(behind: int) -> None:
    """With the last segment, enough bytes wait after a gap for it to be given up."""
    stream = Stream()
    stream.send(b"z" * 10, lost=True)
    for _ in range(behind):
        stream.send(SMALL)
        stream.send(b"y" * 5, lost=True)
    start = 1 + stream.sent[True] - 5 - len(SMALL)
    data = pcap([*stream.frames, segment(b"q" * (len(SMALL) + 4), client=0, seq=start)])
    assert_same([data])
    assert_same([data], **TINY)
    assert columnar([data])[0].counters()["conflicting_bytes"] == len(SMALL)
