"""Flows joined in the middle, ports used again and numbers far away: both readers give the same columns."""

from __future__ import annotations

import random
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from msmqwire.analysis.dissection import tracker
from msmqwire.capture.direction import FAR, START_WINDOW
from msmqwire.capture.tcp import START_NS as OPENING_NS
from msmqwire.capture.tcp import START_SEGMENTS
from msmqwire.tables.scanning.flow_events import FlowTable
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import assert_same, columnar

PACKET = h.user_message(properties=h.properties_header(label="label", body=b"body"))
SYN, SYN_ACK, BOTH = c.SYN, c.SYN | c.ACK, c.RST | c.ACK
PAYLOADS = [
    PACKET, PACKET, PACKET, h.session_ack(), PACKET[:40], PACKET[40:], PACKET[9:] + PACKET, b"\x10", b"\x05",
    b"z", b"junk" * 20, b"xxDmdT\0\0\0\x1a" + bytes(40), b"tNcP", b"POST /msmq HTTP/1.1\r\n",
    b"D" * 20 + b"DmdT",
]  # fmt: skip
STEPS_NS = [1_000] * 12 + [
    60_000_000, OPENING_NS - 1_000, OPENING_NS, 400_000_000, 1_100_000_000, 31_000_000_000, 76_000_000_000,
    601_000_000_000, -1_000, -300_000_000, -61_000_000_000,
]  # fmt: skip
AHEAD = [0] * 8 + [
    -len(PACKET), len(PACKET), 1, -1, 2 * len(PACKET), START_WINDOW + 5, -START_WINDOW, FAR - 1, FAR,
    FAR + 50, -FAR,
]  # fmt: skip
TINY = {"CHUNK": 300, "ARENA": 64, "ROWS": 1}
CONTROLS = [SYN, SYN, SYN_ACK, c.RST, BOTH, c.FIN | c.ACK, SYN | c.FIN, 0, c.ACK]


class Endpoints:
    """Two peers that are never seen to agree on where their streams begin."""

    def __init__(self, number: int, port: int) -> None:
        self.ends = (c.CLIENT, 40_000 + number), (c.SERVER, port)
        self.seq = [1_001, 0xFFFF_FFA0]

    def frame(
        self, time_ns: int, side: int, payload: bytes = b"", flags: int = c.ACK, ahead: int = 0, ack: int = 0
    ) -> c.Frame:
        """A segment so far ahead of the next one of this side; ``ack`` is how far beyond the peer's it is."""
        seq = self.seq[side] + ahead & 0xFFFF_FFFF
        number = self.seq[1 - side] + ack & 0xFFFF_FFFF
        segment = c.Segment(self.ends[side], self.ends[1 - side], seq, number, flags, payload)
        if ahead == 0:
            self.seq[side] = seq + len(payload) & 0xFFFF_FFFF
        return c.Frame(time_ns, c.ethernet(segment.packet()), segment)


@st.composite
def captures(draw: st.DrawFn) -> list[c.Frame]:
    """Segments of a few connections, in which anything may come first."""
    port = draw(st.sampled_from([1801, 1801, 1801, 5999, 80]))
    connections = [Endpoints(number, port) for number in range(draw(st.integers(1, 3)))]
    now, frames = c.START_NS, []
    for _ in range(draw(st.integers(1, 40))):
        now += draw(st.sampled_from(STEPS_NS))
        connection, side = draw(st.sampled_from(connections)), draw(st.sampled_from([0, 0, 0, 1]))
        ack = draw(st.sampled_from([0, 0, 0, 1, 2, -3, 100, START_WINDOW]))
        kind = draw(st.sampled_from(["data"] * 4 + ["nothing", "control", "again"]))
        if kind == "data":
            payload, ahead = draw(st.sampled_from(PAYLOADS)), draw(st.sampled_from(AHEAD))
            frames.append(connection.frame(now, side, payload, ahead=ahead, ack=ack))
        elif kind == "nothing":
            frames.append(connection.frame(now, side, ahead=draw(st.sampled_from(AHEAD)), ack=ack))
        elif kind == "control":
            flags, payload = draw(st.sampled_from(CONTROLS)), draw(st.sampled_from([b"", b"", b"", b"y"]))
            ahead = draw(st.sampled_from([-1, -1, 0, 7]))
            frames.append(connection.frame(now, side, payload, flags, ahead, ack))
        else:
            connection.seq[side] = draw(st.sampled_from([1_000, 1_001, 77_000, 0x8000_0000]))
            frames.append(connection.frame(now, side, b"", SYN, 0, ack))
            connection.seq[side] += 1
    return frames


@settings(max_examples=max(150, settings.default.max_examples))
@given(
    frames=captures(), files=st.integers(1, 2), limit=st.sampled_from([1, 2, 100]),
    sizes=st.sampled_from([{}, TINY]),
)  # fmt: skip
def test_whatever_comes_first(frames: list[c.Frame], files: int, limit: int, sizes: dict[str, int]) -> None:
    step = -(-len(frames) // files)
    parts = [c.pcap_bytes(frames[at : at + step], nanoseconds=True) for at in range(0, len(frames), step)]
    with mock.patch.object(tracker, "CONNECTIONS_MAX", limit):
        assert_same(parts, **sizes)


def joined(number: int, order: list[int], *, acks: int = 0) -> list[c.Frame]:
    """The frames of a connection whose SYN is missing, its packets in this order."""
    ends = Endpoints(number, 1801)
    frames = [ends.frame(c.START_NS + number * 1_000_000, 0) for _ in range(acks)]
    for place, packet in enumerate(order):
        time_ns = c.START_NS + number * 1_000_000 + 1_000 * place
        ends.seq[0] = 1_001 + len(PACKET) * packet
        frames.append(ends.frame(time_ns, 0, PACKET))
    return frames


@pytest.mark.parametrize("order", [[0], [0, 1, 2], [2, 0, 1], [*range(20)], [1, 0, *range(2, 20)]], ids=str)
def test_flows_joined_in_the_middle_start_in_the_scan(order):
    """All packets are found where the lowest of the first numbers is; only where the capture ends, once."""
    files = [c.pcap_bytes([frame for number in range(300) for frame in joined(number, order, acks=1)])]
    assert_same(files)
    dissection, table = columnar(files)
    assert table.num_rows == 300 * len(order)
    assert set(table["kind"].to_pylist()) == {"UserMessage"}
    assert dissection.handed <= 1


def test_a_sweep_starts_flows_in_the_order_in_which_they_opened():
    frames = [frame for number in range(60) for frame in joined(number, [0, 1])]
    later = Endpoints(1_000, 1801)
    frames.append(later.frame(c.START_NS + 2 * OPENING_NS, 0, PACKET))
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    dissection, table = columnar(files)
    assert table["stream"].to_pylist() == [number for number in range(61) for _ in range(2)][:121]
    assert dissection.handed <= 1


@pytest.mark.parametrize("count", [START_SEGMENTS - 1, START_SEGMENTS])
def test_a_flow_starts_with_its_eighth_segment(count):
    """What is behind a hole at its start is not delivered until the hole is given up."""
    ends = Endpoints(0, 1801)
    frames = [ends.frame(c.START_NS, 0)]
    ends.seq[0] += 50
    frames += [ends.frame(c.START_NS + 1_000 * number, 0, PACKET) for number in range(count)]
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    assert columnar(files)[0].handed <= 1


def test_single_acknowledgements_need_no_generic_reader():
    files = [c.pcap_bytes([Endpoints(number, 1801).frame(c.START_NS, 0) for number in range(500)])]
    assert_same(files)
    dissection, table = columnar(files)
    assert (dissection.handed, table.num_rows) == (0, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_syns_on_the_same_ports_need_no_generic_reader(side):
    """Each begins another connection, on which packets are found; one repeated does not."""
    ends, frames = Endpoints(0, 1801), []
    for number in range(200):
        now = c.START_NS + 10_000 * number
        ends.seq = [5_000 * number, 9_000 + 7 * number]
        turn = side if number < 100 else side ^ number & 1  # first one peer, then both in turn
        syn = ends.frame(now, turn, flags=SYN)
        frames += [syn, syn, ends.frame(now + 1_000, 1 - turn, flags=SYN_ACK)]
        ends.seq[turn] += 1
        frames.append(ends.frame(now + 2_000, turn, PACKET))
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    dissection, table = columnar(files)
    assert table["stream"].to_pylist() == list(range(200))
    assert dissection.handed <= 1


def test_a_connection_ended_by_port_reuse_returns_to_the_scan():
    """Half a packet is for the generic reader, and what comes after it is not."""
    ends = Endpoints(0, 1801)
    frames = [ends.frame(c.START_NS, 0, flags=SYN)]
    ends.seq[0] += 1
    frames.append(ends.frame(c.START_NS, 0, PACKET[:60]))
    for number in range(50):
        ends.seq[0] = 70_000 * (number + 1)
        frames.append(ends.frame(c.START_NS + number, 0, flags=SYN))
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    assert columnar(files)[0].handed <= 2


def far_away(count: int, *, in_a_row: bool) -> list[c.Frame]:
    talk = c.TcpConversation().handshake().send(PACKET)
    for number in range(count):
        talk.segment(True, PACKET, seq=FAR + 50_000 + number * (len(PACKET) if in_a_row else 5_000))
    return talk.send(PACKET).frames


def test_segments_far_away_need_no_generic_reader():
    files = [c.pcap_bytes(far_away(200, in_a_row=False))]
    assert_same(files)
    dissection, table = columnar(files)
    assert dissection.counters()["far_segments"] == 200
    assert (table.num_rows, dissection.handed) == (2, 0)


@pytest.mark.parametrize("count", [3, 4, 9])
def test_far_segments_in_a_row_are_where_the_stream_goes_on(count):
    """The fourth in a row is believed."""
    files = [c.pcap_bytes(far_away(count, in_a_row=True))]
    assert_same(files)
    assert columnar(files)[0].counters()["far_segments"] == (3 if count < 4 else 3 + 1)


def test_far_segments_count_on_across_the_generic_reader():
    """A run of far segments may have begun before something that the generic reader takes."""
    talk = c.TcpConversation().handshake().send(PACKET)
    for number in range(4):
        talk.segment(True, PACKET, seq=FAR + 50_000 + number * len(PACKET))
        if number == 1:
            talk.segment(False, flags=c.ACK | c.FIN, seq=77)
    files = [c.pcap_bytes(talk.frames)]
    assert_same(files)
    assert columnar(files)[0].counters()["far_segments"] == 3  # the fourth is believed


@pytest.mark.parametrize("limit", [64, 1000])
@pytest.mark.parametrize("ahead", [0, 50])
def test_flows_still_opening_end_in_the_scan(limit: int, ahead: int) -> None:
    """They are evicted, or end with the capture, with a hole at their start or without one."""
    frames = []
    for number in range(300):
        ends = Endpoints(number, 1801)
        frames.append(ends.frame(c.START_NS + number, 0))
        ends.seq[0] += ahead
        frames += [ends.frame(c.START_NS + number, 0, packet) for packet in (PACKET, PACKET[:40])]
    files = [c.pcap_bytes(frames)]
    with mock.patch.object(tracker, "CONNECTIONS_MAX", limit):
        assert_same(files)
        with mock.patch.object(FlowTable, "take_event", side_effect=AssertionError):
            table = columnar(files)[1]
    holes = [error for error in table["error"].to_pylist() if error == "not in the capture: end"]
    assert len(holes) == (300 if ahead else 0)
    assert table["kind"].to_pylist().count("UserMessage") == 300


def test_flows_due_at_the_end_start_without_the_generic_reader() -> None:
    """The last segment is late enough for all others, but there is no sweep after it."""
    frames = [Endpoints(number, 1801).frame(c.START_NS + number, 0, PACKET) for number in range(300)]
    later = Endpoints(1_000, 1801)
    frames += [later.frame(c.START_NS + OPENING_NS * part // 2, 0, PACKET) for part in (1, 3)]
    files = [c.pcap_bytes(frames, nanoseconds=True)]
    assert_same(files)
    with mock.patch.object(FlowTable, "take_event", side_effect=AssertionError):
        assert columnar(files)[1].num_rows == 302


def test_segments_with_earlier_times_are_due_first_at_the_end() -> None:
    """The clock goes back between two files, to before what the first one ends with."""
    late, early = Endpoints(0, 1801), Endpoints(1, 1801)
    first = [late.frame(c.START_NS + 60_000_017_000, 0, PACKET)]
    second = [early.frame(c.START_NS + 4_000, 0, PACKET)]
    files = [c.pcap_bytes(first), c.pcapng_bytes(second)]
    assert_same(files)
    assert columnar(files)[1]["src_port"].to_pylist() == [40_001, 40_000]


def test_a_far_segment_that_ends_a_gap_is_counted_once() -> None:
    """It acknowledges bytes after a gap of its peer, whose rows need more room than there is."""
    ends, second = Endpoints(0, 1801), 1_100_000_000
    frames = [ends.frame(c.START_NS, 0, flags=SYN), ends.frame(c.START_NS, 1, flags=SYN_ACK)]
    ends.seq = [number + 1 for number in ends.seq]
    frames.append(ends.frame(c.START_NS, 0, PACKET[:40]))
    frames += [ends.frame(c.START_NS, 1, PACKET[:40]), ends.frame(c.START_NS, 1, PACKET * 3, ahead=50)]
    frames += [
        ends.frame(c.START_NS + second + number, 0, PACKET, ahead=FAR + number * len(PACKET), ack=300)
        for number in range(3)
    ]
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    assert_same(files, **TINY)
    dissection, table = columnar(files)
    assert dissection.counters()["far_segments"] == 3
    assert table["error"].to_pylist().count("not in the capture: acknowledged") == 1
    assert dissection.handed <= 1


def test_backscatter_needs_no_generic_reader():
    frames = [Endpoints(number, 1801).frame(c.START_NS, 1, flags=BOTH) for number in range(300)]
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    assert columnar(files)[0].handed <= 1


def test_many_connections_at_once():
    """Floods of flows among wanted packets, more than are tracked, in any order."""
    rng = random.Random(4)
    frames = [frame for number in range(120) for frame in joined(number, rng.sample(range(9), 5))]
    frames += [frame for number in range(200, 210) for frame in c.TcpConversation(
        (c.CLIENT, 50_000 + number)).handshake().send(PACKET * 3).close().frames]  # fmt: skip
    frames.sort(key=lambda frame: frame.time_ns)
    with mock.patch.object(tracker, "CONNECTIONS_MAX", 64):
        assert_same([c.pcap_bytes(frames)])


def test_a_gap_ends_by_an_acknowledgement_in_the_next_file() -> None:
    """The generic reader takes that segment, as the packet began in the file before."""
    talk = c.TcpConversation(step_ns=1_700_000_000)
    talk.segment(True, flags=c.SYN)
    talk.segment(False, PACKET[:7]).segment(False, PACKET[7:28]).segment(False, bytes(7))
    talk.segment(True, b"\0", seq=1_000)
    opening, start, _, behind, acknowledging = talk.frames
    files = [c.pcap_bytes([opening, start]), c.pcap_bytes([behind, acknowledging])]
    assert_same(files)
    table = columnar(files)[1]
    times = [value.value // 1000 for value in table["time"].combine_chunks()]
    assert acknowledging.time_ns // 1000 in times
