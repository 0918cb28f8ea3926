"""TCP reassembly, rule by rule."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from msmqwire.capture import Data, Datagram, End, Event, Flow, Gap, Reassembler
from msmqwire.capture.direction import FAR, FAR_RUN, START_WINDOW
from msmqwire.capture.tcp import (
    ACKED_NS,
    ACKED_SEGMENTS,
    CLOCK_BACK_NS,
    GAP_NS_MAX,
    IDLE_NS_MAX,
    START_NS,
    START_SEGMENTS,
)
from tests.support.captures import ACK, FIN, RST, SYN

MS = 1_000_000
A, B = ("10.0.0.1", 5000), ("10.0.0.2", 1801)


class Wire:
    """Feeds segments, one millisecond and one frame apart; ``a`` starts at 1001 and ``b`` at 9001."""

    def __init__(self, *, handshake: bool = True, **limits: int) -> None:
        self.reassembler = Reassembler(**limits)
        self.events: list[Event] = []
        self.frame, self.time_ns = 0, 1_700_000_000_000 * MS
        if handshake:
            self.a(1000, flags=SYN, ack=0)
            self.b(9000, flags=SYN | ACK, ack=1001)
            self.a(1001, ack=9001)

    def put(self, src, dst, seq, payload=b"", flags=ACK, ack=0, missing=0) -> list[Event]:
        self.frame += 1
        self.time_ns += MS
        events = self.reassembler.feed(
            Datagram(
                "tcp", *src, *dst, self.time_ns, (self.frame,), "f", payload, missing, seq % 2**32, ack, flags
            )
        )
        self.events += events
        return events

    def a(self, seq, payload=b"", *, ack=9001, **more) -> list[Event]:
        return self.put(A, B, seq, payload, ack=ack, **more)

    def b(self, seq, payload=b"", *, ack=1001, **more) -> list[Event]:
        return self.put(B, A, seq, payload, ack=ack, **more)

    def wait(self, ns: int) -> None:
        self.time_ns += ns

    def flush(self) -> list[Event]:
        events = self.reassembler.flush()
        self.events += events
        return events


def short(events: Iterable[Event]) -> list[object]:
    """Return data as bytes, gaps as (size, reason), ends as their reason."""
    return [
        e.data if isinstance(e, Data) else (e.size, e.reason) if isinstance(e, Gap) else e.reason
        for e in events
    ]


def test_a_connection_in_order():
    wire = Wire()
    assert short(wire.a(1001, b"hello")) == [b"hello"]
    assert short(wire.b(9001, b"you", ack=1006)) == [b"you"]
    assert short(wire.a(1006, b"!", ack=9004, flags=FIN | ACK)) == [b"!", "fin"]
    assert short(wire.b(9004, ack=1008, flags=FIN | ACK)) == ["fin"]
    assert wire.a(1008, ack=9005) == wire.flush() == []
    forward, reverse = Flow(0, *A, *B, False), Flow(0, *B, *A, False)
    start = 1_700_000_000_000 * MS
    assert wire.events == [
        Data(forward, b"hello", start + 4 * MS, 4, start + 4 * MS),
        Data(reverse, b"you", start + 5 * MS, 5, start + 5 * MS),
        Data(forward, b"!", start + 6 * MS, 6, start + 6 * MS),
        End(forward, "fin", start + 6 * MS, 6),
        End(reverse, "fin", start + 7 * MS, 7),
    ]


def test_delivered_bytes_have_their_frame_and_completion_time():
    wire = Wire()
    assert wire.a(1004, b"def") == wire.a(1007, b"ghi") == []
    first, second, third = wire.a(1001, b"abc")
    assert [(e.data, e.frame) for e in (first, second, third)] == [(b"abc", 6), (b"def", 4), (b"ghi", 5)]
    assert {e.completed_ns for e in (first, second, third)} == {wire.time_ns}
    assert [wire.time_ns - e.time_ns for e in (first, second, third)] == [0, 2 * MS, MS]
    assert wire.reassembler.buffered == 0


def test_the_first_bytes_win_and_conflicts_are_counted():
    wire = Wire()
    wire.a(1004, b"def")
    wire.a(1003, b"CDEFG")
    assert short(wire.a(1001, b"ab")) == [b"ab", b"C", b"def", b"G"]
    assert wire.reassembler.counters.conflicting_bytes == 3
    assert wire.reassembler.counters.repeated_bytes == 3
    assert short(wire.a(1001, b"xxxxxxxh")) == [b"h"]
    assert wire.reassembler.counters.repeated_bytes == 10


def test_sequence_numbers_wrap():
    wire = Wire(handshake=False)
    wire.a(2**32 - 3, flags=SYN)
    assert short(wire.a(2**32 - 2, b"ab")) == [b"ab"]
    assert wire.a(2, b"ef") == []
    assert short(wire.a(0, b"cd")) == [b"cd", b"ef"]
    assert short(wire.a(2**32 - 1, b"bcdefg")) == [b"g"]


def test_data_on_syn():
    wire = Wire(handshake=False)
    assert short(wire.a(1000, b"fast", flags=SYN)) == [b"fast"]
    assert wire.a(1000, b"fast", flags=SYN) == []
    assert short(wire.a(1005, b"er")) == [b"er"]


@pytest.mark.parametrize("probe", [b"", b"\0"])
def test_keep_alive_probes_deliver_nothing(probe):
    wire = Wire()
    wire.a(1001, b"x")
    assert wire.a(1001, probe) == []
    assert short(wire.a(1002, b"y")) == [b"y"]


@pytest.mark.parametrize("probe", [b"", b"\0"])
def test_a_capture_that_begins_with_a_keep_alive_probe(probe):
    wire = Wire(handshake=False)
    wire.b(9001, ack=1002)
    wire.a(1001, probe)
    wire.b(9001, ack=1002)
    assert short(wire.a(1002, b"real")) == [b"real"]


def test_a_capture_whose_first_data_is_a_keep_alive_probe():
    wire = Wire(handshake=False)
    assert wire.a(1001, b"\0") == wire.b(9001, ack=1002) == []
    assert short(wire.a(1002, b"real")) == [b"real"]


def test_single_bytes_are_no_probe_where_single_bytes_follow():
    wire = Wire(handshake=False)
    assert wire.a(1001, b"a") == wire.b(9001, ack=1002) == []
    assert short(wire.a(1002, b"b")) == [b"a", b"b"]


def test_an_acknowledgement_starts_a_direction_without_a_syn():
    """So requests and answers come in the order of the capture."""
    wire = Wire(handshake=False)
    assert wire.a(1001, b"request", ack=9001) == []
    assert short(wire.b(9001, b"answer", ack=1008)) == [b"request", b"answer"]
    assert short(wire.a(1008, b"next", ack=9007)) == [b"next"]


def test_an_answer_seen_first_starts_with_the_next_request():
    wire = Wire(handshake=False)
    assert wire.b(9001, b"answer", ack=1001) == []
    assert short(wire.a(1001, b"request", ack=9007)) == [b"answer", b"request"]


def test_data_that_was_overtaken_still_starts_a_direction():
    wire = Wire(handshake=False)
    assert wire.b(9001, ack=1001) == []  # what follows is under way
    assert wire.a(1005, b"bb") == []
    assert short(wire.a(1001, b"aaaa")) == [b"aaaa", b"bb"]


# --- ends --------------------------------------------------------------------------------------------------


def test_a_reset_ends_both_directions_and_gives_up_gaps():
    wire = Wire()
    wire.b(9003, b"cd")
    assert short(wire.a(1001, flags=RST | ACK)) == ["rst", (2, "end"), b"cd", "rst"]
    assert [e.flow.src_port for e in wire.events] == [5000, 1801, 1801, 1801]
    assert wire.flush() == []


def test_a_reset_that_no_receiver_would_accept_is_ignored():
    wire = Wire()
    wire.a(1001, b"abc")
    assert wire.a(1003, flags=RST) == wire.a(1004 + FAR, flags=RST) == []
    assert wire.reassembler.counters.stray_resets == 2
    assert short(wire.a(1004, b"d")) == [b"d"]


def test_a_refused_connection_can_retry_with_the_same_number():
    wire = Wire(handshake=False)
    wire.a(1000, flags=SYN)
    assert short(wire.b(0, flags=RST | ACK)) == ["rst", "rst"]
    wire.a(1000, flags=SYN)
    wire.b(9000, flags=SYN | ACK)
    (event,) = wire.a(1001, b"in")
    assert event == Data(Flow(1, *A, *B, False), b"in", wire.time_ns, wire.frame, wire.time_ns)


def test_data_after_a_reset_is_a_new_connection_without_a_start():
    wire = Wire()
    wire.a(1001, b"abc")
    wire.b(9001, flags=RST)
    assert wire.a(1001, b"abc") == []
    wire.a(1004, b"def")
    assert [(e.flow.stream, e.flow.midstream) for e in wire.flush()] == [(1, True)] * 2
    assert short(wire.events) == [b"abc", "rst", "rst", b"def", "capture"]


def test_a_fin_beyond_a_gap_waits():
    wire = Wire()
    assert wire.a(1004, b"def", flags=FIN | ACK) == []
    assert wire.a(1008) == []
    assert short(wire.a(1001, b"abc")) == [b"abc", b"def", "fin"]
    assert wire.a(1001, b"abcdef") == []
    assert wire.a(1007, b"late") == []
    assert wire.reassembler.counters.late_segments == 1


def test_a_fin_before_data_is_not_believed():
    wire = Wire()
    wire.a(1003, flags=FIN | ACK)
    wire.a(1005, b"e")
    assert short(wire.a(1001, b"abcd")) == [b"abcd", b"e"]


def test_bytes_before_a_fin_that_never_came():
    wire = Wire()
    wire.a(1011, flags=FIN | ACK)
    assert short(wire.flush()) == [(10, "end"), "fin", "capture"]
    assert wire.reassembler.counters.lost_bytes == 10


def test_acknowledged_unseen_bytes_are_a_gap_of_unknown_size():
    wire = Wire()
    wire.a(1001, b"abc")
    wire.b(9001, ack=1100)
    assert short(wire.flush()) == [(None, "end"), "capture", "capture"]


def test_a_fin_that_was_acknowledged_but_not_captured_is_no_gap():
    wire = Wire()
    wire.a(1001, b"abc")
    wire.b(9001, ack=1005)
    assert short(wire.flush()) == ["capture", "capture"]


# --- starts ------------------------------------------------------------------------------------------------


def test_an_uncaptured_start_is_the_lowest_of_the_first_segments():
    wire = Wire(handshake=False)
    for at in range(START_SEGMENTS - 1):
        assert wire.a(1010 + at * 2, b"xy") == []
    events = wire.a(1008, b"ab")
    assert short(events) == [b"ab"] + [b"xy"] * (START_SEGMENTS - 1)
    assert events[0].flow == Flow(0, *A, *B, True)
    assert wire.a(1006, b"--") == []
    assert wire.reassembler.counters.repeated_bytes == 2


def test_a_start_that_was_not_captured_is_decided_by_time():
    wire = Wire(handshake=False)
    wire.a(1010, b"cd")
    wire.a(1008, b"ab")
    wire.wait(START_NS)
    assert short(wire.b(1)) == [b"ab", b"cd"]
    assert short(wire.a(1012, b"e")) == [b"e"]


def test_another_connection_advances_the_clock():
    wire = Wire(handshake=False)
    wire.a(1010, b"cd")
    wire.wait(START_NS)
    assert short(wire.put(("x", 1), ("y", 2), 1)) == [b"cd"]


def test_a_syn_after_its_data_is_the_start_nevertheless():
    wire = Wire(handshake=False)
    wire.a(1003, b"cd")
    wire.a(1001, b"ab")
    (first, second) = wire.a(1000, flags=SYN)
    assert (first.data, second.data) == (b"ab", b"cd")
    assert not first.flow.midstream
    assert wire.reassembler.connections == 1


def test_a_syn_ack_alone_gives_both_starts():
    wire = Wire(handshake=False)
    wire.b(9000, flags=SYN | ACK, ack=1001)
    (event,) = wire.a(1001, b"hi")
    assert not event.flow.midstream
    wire.a(1000, flags=SYN)
    assert wire.reassembler.connections == 1


def test_a_direction_starts_at_its_position_before_its_data():
    wire = Wire(handshake=False)
    wire.a(1001)
    wire.a(1011, b"later")
    assert short(wire.flush()) == [(10, "end"), b"later", "capture"]


def test_segments_before_the_start_window_are_ignored():
    wire = Wire(handshake=False)
    wire.a(START_WINDOW + 5000, b"abc")
    wire.a(1000, b"old")
    assert wire.reassembler.counters.far_segments == 1
    assert short(wire.flush()) == [b"abc", "capture"]


# --- ports reused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["nothing", "fin", "rst"])
def test_a_syn_with_another_sequence_number_is_a_new_connection(end):
    wire = Wire()
    wire.a(1001, b"old")
    if end == "fin":
        wire.a(1004, flags=FIN | ACK)
        wire.b(9001, flags=FIN | ACK)
    elif end == "rst":
        wire.a(1004, flags=RST)
    wire.a(5000, flags=SYN)
    wire.b(6000, flags=SYN | ACK, ack=5001)
    assert short(wire.a(5001, b"new")) == [b"new"]
    assert short(wire.b(6001, b"too")) == [b"too"]
    reason = "reused" if end == "nothing" else end
    assert short(wire.events) == [b"old", reason, reason, b"new", b"too"]
    assert [e.flow.stream for e in wire.events] == [0, 0, 0, 1, 1]


def test_a_repeated_syn_is_no_new_connection():
    wire = Wire()
    wire.a(1001, b"abc")
    wire.a(1000, flags=SYN)
    wire.b(9000, flags=SYN | ACK)
    assert short(wire.a(1004, b"d")) == [b"d"]
    assert wire.reassembler.connections == 1


def test_the_answer_of_a_new_connection_may_come_before_its_syn():
    wire = Wire()
    wire.a(1001, b"old")
    wire.b(6000, flags=SYN | ACK, ack=5001)
    wire.a(5000, flags=SYN)
    (event,) = wire.a(5001, b"new")
    assert event.flow == Flow(1, *A, *B, False)


# --- gaps --------------------------------------------------------------------------------------------------


def test_an_acknowledged_gap_is_given_up_after_a_while():
    wire = Wire()
    start = wire.time_ns
    wire.a(1003, b"cd")
    assert wire.b(9001, ack=1005) == []
    wire.wait(ACKED_NS)
    events = wire.b(9001, ack=1005)
    assert short(events) == [(2, "acknowledged"), b"cd"]
    # It timed out before this segment: it is reported at the last frame of the direction.
    assert (events[0].frame, events[0].time_ns) == (4, events[1].time_ns)
    assert start <= events[1].completed_ns == events[1].time_ns < wire.time_ns - ACKED_NS
    assert short(wire.a(1005, b"e")) == [b"e"]


def test_an_acknowledged_gap_is_given_up_after_some_segments():
    wire = Wire()
    for at in range(ACKED_SEGMENTS + 1):
        assert wire.a(1010 + at, b"x") == []
    assert short(wire.b(9001, ack=1010)) == [(9, "acknowledged")] + [b"x"] * (ACKED_SEGMENTS + 1)


def test_a_gap_without_acknowledgements_is_given_up_by_time():
    wire = Wire()
    wire.a(1003, b"cd")
    wire.wait(GAP_NS_MAX - 2 * MS)
    assert wire.a(1005, b"e") == []
    wire.wait(MS)
    assert short(wire.a(1006, b"f")) == [(2, "timeout"), b"cd", b"e", b"f"]


def test_progress_restarts_the_timeout():
    wire = Wire()
    wire.a(1100, b"forged")
    for at in range(40):
        wire.wait(GAP_NS_MAX // 2)
        assert short(wire.a(1001 + at, b"x")) == [b"x"]


@pytest.mark.parametrize("limits", [{"max_segments_per_flow": 3}, {"max_buffered_per_flow": 1000}])
def test_a_gap_is_given_up_when_a_direction_buffers_too_much(limits):
    wire = Wire(**limits)
    for at in (0, 2, 4):
        assert wire.a(1010 + at, b"x") == []
    assert short(wire.a(1016, b"x")) == [(9, "limit"), b"x"]


def test_the_oldest_gap_is_given_up_when_all_buffer_too_much():
    wire = Wire(max_buffered_total=1200)
    wire.a(1010, b"a")
    wire.put(("x", 1), ("y", 2), 1000, flags=SYN)
    wire.put(("x", 1), ("y", 2), 1002, b"x" * 300)
    assert short(wire.events) == []
    assert short(wire.put(("x", 1), ("y", 2), 1302, b"y" * 300)) == [(9, "limit"), b"a"]
    assert wire.reassembler.buffered <= 1200
    assert short(wire.put(("x", 1), ("y", 2), 1602, b"z" * 300))[0] == (1, "limit")
    assert wire.reassembler.buffered == 0


def test_bytes_cut_by_the_snaplen_are_a_gap():
    wire = Wire()
    assert short(wire.a(1001, b"abc", missing=7)) == [b"abc", (7, "cut")]
    assert wire.a(1014, b"", missing=5) == []
    assert short(wire.a(1011, b"xyz")) == [b"xyz", (5, "cut")]
    assert short(wire.a(1019, b"!")) == [b"!"]
    assert wire.reassembler.counters.lost_bytes == 12


def test_far_segments_are_ignored_unless_they_are_consecutive():
    wire = Wire()
    wire.a(1001, b"abc")
    for _ in range(10):
        assert wire.a(1004 + FAR, b"forged") == []
    assert wire.reassembler.counters.far_segments == 10
    assert short(wire.a(1004, b"d")) == [b"d"]
    for at in range(FAR_RUN - 1):
        assert wire.a(3 * FAR + at, b"x") == []
    assert short(wire.a(3 * FAR + FAR_RUN - 1, b"y")) == [(None, "jump"), b"y"]
    assert short(wire.a(3 * FAR + FAR_RUN, b"z")) == [b"z"]


def test_far_segments_with_others_in_between_are_never_believed():
    wire = Wire()
    for at in range(FAR_RUN * 3):
        assert wire.a(3 * FAR + at, b"x") == []
        assert short(wire.a(1001 + at, b"y")) == [b"y"]


# --- memory ------------------------------------------------------------------------------------------------


def test_idle_connections_are_forgotten():
    wire = Wire()
    wire.a(1001, b"a")
    wire.a(1004, b"d")
    wire.wait(IDLE_NS_MAX)
    events = wire.put(("x", 1), ("y", 2), 1, flags=SYN)
    assert short(events) == [(2, "timeout"), b"d", "idle", "idle"]
    assert wire.reassembler.connections == 1
    wire.a(1005, b"e")
    assert short(wire.flush()) == ["capture", b"e", "capture"]
    assert [e.flow.stream for e in wire.events[-2:]] == [2, 2]


def test_connections_are_bounded_in_number():
    wire = Wire(handshake=False, max_flows=32)
    for number in range(100):
        wire.put(("x", number), B, 1000, flags=SYN)
        wire.put(("x", number), B, 1002, b"z")
        assert wire.reassembler.connections <= 32
    assert wire.reassembler.counters.evicted == 68
    assert [e.flow.stream for e in wire.events if isinstance(e, End)] == list(range(68))
    assert short(wire.events)[:3] == [(1, "end"), b"z", "idle"]
    wire.flush()
    assert [e.flow.stream for e in wire.events if isinstance(e, End)] == list(range(100))


def test_ended_connections_are_evicted_first():
    wire = Wire(handshake=False, max_flows=2)
    wire.put(("x", 1), B, 1000, flags=SYN)
    wire.put(("x", 2), B, 1000, flags=SYN)
    wire.put(B, ("x", 2), 0, flags=RST)
    assert wire.put(("x", 3), B, 1000, flags=SYN) == []
    assert short(wire.put(("x", 1), B, 1001, b"here")) == [b"here"]


def test_a_file_from_an_earlier_time_moves_the_clock_back():
    wire = Wire()
    wire.wait(-2 * CLOCK_BACK_NS)
    wire.put(("x", 1), ("y", 2), 1000, b"m")
    wire.wait(START_NS)
    assert short(wire.put(("x", 3), ("y", 2), 1000)) == [b"m"]


def test_udp_is_ignored():
    datagram = Datagram("udp", *A, *B, 1, (1,), "f", b"x", 0, 0, 0, 0)
    reassembler = Reassembler()
    assert reassembler.feed(datagram) == reassembler.flush() == []


def test_a_connection_with_itself():
    wire = Wire(handshake=False)
    wire.put(A, A, 1000, flags=SYN)
    assert short(wire.put(A, A, 1001, b"me")) == [b"me"]
    assert short(wire.flush()) == ["capture"]
