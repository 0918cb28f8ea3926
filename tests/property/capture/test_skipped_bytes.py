"""Bytes out of sync with their packets give the same columns with both readers."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.support import handmade as h
from tests.support.capture.attacks import ACK, SYN, pcap, segment
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.capture_files import START_NS

PACKETS = [
    h.session_ack(),
    h.user_message(properties=h.properties_header(body=b"y" * 3000)),
    h.user_message(properties=h.properties_header(body=h.session_ack() * 3)),
]
GARBAGE = [
    b"LIOR" * 40,
    b"\x10\0\0\0LIOR",
    h.base_header(900),
    h.base_header(0x0040_0000),
    b"z" * 700,
    b"\x10",
]
LARGE = [b"z" * 30_000, b"LIOR" * 9_000, h.base_header(70_000) + b"z" * 60_000]

parts = st.one_of(
    st.sampled_from(PACKETS), st.sampled_from(GARBAGE), st.sampled_from(LARGE), st.binary(max_size=20)
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A capture of a connection with garbage and holes, from its SYN or midstream, on any port."""
    stream = b"".join(draw(st.lists(parts, min_size=1, max_size=8)))
    frames: list[bytes | tuple[int, bytes]] = []
    if draw(st.booleans()):
        frames.append(segment(b"", seq=0, flags=SYN))
        frames.append(segment(b"", seq=0, flags=SYN | ACK, by_client=False))
    at, sizes = 0, draw(st.sampled_from([(1, 5, 13), (40, 11, 12), (1460,), (1460, 300, 9000)]))
    if len(sizes) == 3 and sizes[0] < 100:
        stream = stream[:2000]
    while at < len(stream):
        size = draw(st.sampled_from(sizes)) if len(frames) < 40 else sizes[-1]
        fate = draw(st.integers(0, 30)) if len(frames) < 60 else 9
        if fate == 0:  # lost, and acknowledged
            frames.append(segment(b"", seq=1, ack=1 + at + size + 1000, by_client=False))
        elif fate == 1:  # late
            later = segment(stream[at + size : at + 2 * size], seq=1 + at + size)
            frames += (later, segment(stream[at : at + size], seq=1 + at))
        else:
            frames.append(segment(stream[at : at + size], seq=1 + at))
        at += size
    now, timed = START_NS, []
    for frame in frames:
        now += draw(st.sampled_from([1000, 1000, 1_100_000_000])) if len(timed) < 40 else 1000
        timed.append((now, frame))
    return pcap(timed)


@settings(max_examples=40)
@given(capture=streams(), rows=st.sampled_from([{}, {"CHUNK": 3000, "ARENA": 64, "ROWS": 1}]))
def test_any_garbage_gives_the_same_columns(capture: bytes, rows: dict[str, int]) -> None:
    assert_same([capture], **rows)


def one_flow(stream: bytes, mss: int) -> list[bytes]:
    """The frames of a connection from its SYN on."""
    frames = [segment(b"", seq=0, flags=SYN), segment(b"", seq=0, flags=SYN | ACK, by_client=False)]
    return frames + [segment(stream[at : at + mss], seq=1 + at) for at in range(0, len(stream), mss)]


@pytest.mark.parametrize("mss", [1, 7, 100, 1460])
@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"LIOR" * 1500, id="signatures"),
        pytest.param(
            b"x" * 200 + h.base_header(5000) + b"y" * 3000, id="the header of a packet that is cut off"
        ),
        pytest.param(b"\x10\0\0\0LIO" * 900, id="almost headers"),
    ],
)
def test_skipped_bytes_are_for_the_compiled_scan(stream, mss):
    frames = one_flow(h.session_ack() + stream, mss)
    assert_same([pcap(frames)])
    assert columnar([pcap(frames)])[0].handed < 20


def test_the_rest_of_a_packet_after_a_hole_stays_in_the_scan():
    message = h.user_message(properties=h.properties_header(body=b"y" * 60_000))
    frames = one_flow(message + h.session_ack(), 500)
    del frames[6]
    frames.insert(8, segment(b"", seq=1, ack=20_000, by_client=False))
    assert_same([pcap(frames)])
    dissection, table = columnar([pcap(frames)])
    assert "the rest of a packet that is not whole" in table["error"].to_pylist()
    assert table["kind"].to_pylist()[-1] == "SessionAck"
    assert dissection.handed < 20


def test_a_run_of_skipped_bytes_is_a_row_each_64_kib():
    frames = one_flow(h.session_ack() + b"x" * 400_000, 1460)
    assert_same([pcap(frames)])
    dissection, table = columnar([pcap(frames)])
    assert table["kind"].to_pylist().count("Skipped") == 7
    assert dissection.handed < 20
