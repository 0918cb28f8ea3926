"""Segments in any order, that overlap and contradict each other, give the same columns with both readers."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from msmqwire.capture.tcp import BUFFERED_PER_FLOW_MAX, SEGMENTS_PER_FLOW_MAX
from tests.support import handmade as h
from tests.support.capture.attacks import ACK, SYN, pcap, segment
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.capture_files import START_NS

MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"body" * 20))
STREAM = (MESSAGE + h.session_ack() + h.user_message(properties=h.properties_header(body=b"y" * 700))) * 3
STEPS_NS = st.sampled_from([1_000, 1_000, 1_000_000, 400_000_000, 1_200_000_000, -300_000_000, -900_000_000])


@st.composite
def segments(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """Frames of a connection whose client sends parts of a stream, some with changed bytes."""
    now, at, frames = START_NS, 0, []
    for frame in (segment(b"", seq=0, flags=SYN), segment(b"", seq=0, flags=SYN | ACK, by_client=False)):
        frames.append((now, frame))
    size = draw(st.sampled_from([5, 40, 300]))
    for _ in range(draw(st.integers(1, 60))):
        now += draw(STEPS_NS) if draw(st.integers(0, 9)) == 0 else 1_000
        start = max(0, at + size * draw(st.integers(-4, 6)) + draw(st.sampled_from([0, 0, 1, -1, 3])))
        payload = STREAM[start : start + draw(st.sampled_from([1, size, size, 2 * size, 5 * size]))]
        if draw(st.integers(0, 5)) == 0:
            payload = payload.swapcase()
        frames.append((now, segment(payload, seq=1 + start)))
        at = draw(st.sampled_from([at, start + len(payload), start + len(payload)]))
        if draw(st.integers(0, 3)) == 0:
            frames.append((now, segment(b"", seq=1, ack=1 + at, by_client=False)))
    return frames


@settings(max_examples=60)
@given(frames=segments(), rows=st.sampled_from([{}, {"CHUNK": 300, "ARENA": 64, "ROWS": 1}]))
def test_any_segments_give_the_same_columns(frames: list[tuple[int, bytes]], rows: dict[str, int]) -> None:
    assert_same([pcap(frames)], **rows)


def opened(*parts: tuple[int, bytes]) -> bytes:
    """A capture of a connection whose client sends parts of a stream at these offsets."""
    start = [segment(b"", seq=0, flags=SYN), segment(b"", seq=0, flags=SYN | ACK, by_client=False)]
    return pcap([*start, *(segment(data, seq=1 + at) for at, data in parts)])


FIFTEEN = [(at, STREAM[at : at + 9]) for at in range(20, 170, 10)]
OVERLAPS = {
    "begins earlier": ([(40, STREAM[40:80]), (20, STREAM[20:60]), (0, STREAM[:20])], 20, 0),
    "around another": ([(40, STREAM[40:80]), (30, b"?" * 70), (0, STREAM[:30])], 40, 40),
    "in order, around another": ([(40, STREAM[40:80]), (0, STREAM[:100])], 40, 0),
    "partly delivered": ([(0, STREAM[:60]), (20, STREAM[20:90])], 40, 0),
    "inside another": ([(40, STREAM[40:80]), (50, b"?" * 10), (0, STREAM[:40])], 10, 10),
    "fifteen holes filled at once": ([*FIFTEEN, (20, STREAM[20:170]), (0, STREAM[:20])], 135, 0),
    "fifteen holes filled in order": ([*FIFTEEN, (0, STREAM[:170])], 135, 0),
}


@pytest.mark.parametrize(("parts", "repeated", "conflicting"), OVERLAPS.values(), ids=OVERLAPS)
def test_overlaps_are_for_the_compiled_scan(parts, repeated, conflicting):
    data = opened(*parts)
    assert_same([data])
    dissection, table = columnar([data])
    assert dissection.handed == columnar([opened()])[0].handed
    counters = dissection.counters()
    assert (counters["repeated_bytes"], counters["conflicting_bytes"]) == (repeated, conflicting)
    delivered = max(at + len(part) for at, part in parts)
    assert sum(table["size"].to_pylist()) == delivered


LONG = STREAM * 12
HUNDRED = [(at, LONG[at : at + 9]) for at in range(20, 1020, 10)]
MANY = {
    "a hundred holes": HUNDRED,
    "a hundred holes filled at once": [*HUNDRED, (20, LONG[20:1020]), (0, LONG[:20])],
    "a hundred holes filled in order": [*HUNDRED, (0, LONG[:1020])],
    "a hundred backwards": [*reversed(HUNDRED), (0, LONG[:20])],
    "three hundred beyond each other": [(at, LONG[at : at + 15]) for at in range(3010, 0, -10)],
    "more segments than a direction may buffer": [
        (at, b"y") for at in range(2, 2 * SEGMENTS_PER_FLOW_MAX + 200, 2)
    ],
    "more bytes than a direction may buffer": [
        (at, bytes(60_000)) for at in range(9, BUFFERED_PER_FLOW_MAX + 200_000, 60_009)
    ],
}


@pytest.mark.parametrize("parts", MANY.values(), ids=MANY)
def test_many_segments_beyond_gaps_are_for_the_compiled_scan(parts):
    data = opened(*parts)
    assert_same([data])
    assert_same([data], CHUNK=300, ARENA=64, ROWS=7)
    assert columnar([data])[0].handed == columnar([opened()])[0].handed


def test_an_old_segment_before_a_gap_lets_it_be_skipped_at_once():
    """Its time, not that of its arrival, is what a gap waits from."""
    late = START_NS + 1_500_000_000
    frames = [
        (START_NS, segment(b"", seq=0, flags=SYN)),
        (START_NS, segment(b"", seq=0, flags=SYN | ACK, by_client=False)),
        (START_NS, segment(STREAM[100:140], seq=101)),
        (START_NS + 900_000_000, segment(STREAM[60:100], seq=61)),
        (late, segment(b"", seq=1, ack=141, by_client=False)),
        (START_NS + 200_000_000, segment(STREAM[40:60], seq=41)),
        (late, segment(b"", seq=1, ack=141, by_client=False)),
    ]
    assert_same([pcap(frames)])
