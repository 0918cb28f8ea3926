"""Malformed packets in streams: the compiled scan makes the same rows as the generic reader."""

from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import malformed
from tests.support.capture.both_readers import assert_same, columnar, generic

ACK = h.session_ack()
GOOD = h.user_message(properties=h.properties_header(label="label", body=b"body" * 40))
HIDING = h.user_message(trailing=b"xyz" + ACK[:9])
BAD = {
    "allocation": h.user_message(properties=h.properties_header(body=b"b" * 30, allocation_body_size=10_000)),
    "queue": h.user_message(user=h.user_header(destination=(1, h.private_id(9)))),
    "final": h.final_ack()[:-3] + b"abc",
    "small": malformed.resized(GOOD, 16),
    "internal": h.session_ack(internal=9),
    "large": malformed.resized(GOOD, 70_000),
    "soap": h.user_message(soap=h.soap_header(body_id=9)),
    "list": next(malformed.lists()),
    "hiding": HIDING,
    "hiding a packet": h.user_message(trailing=ACK * 3),
}
SIZES = [1, 7, 11, 12, 13, 100, 1460, 9000]


def conversation(*packets: bytes, mss: int = 1460) -> c.TcpConversation:
    talk = c.TcpConversation(mss=mss).handshake()
    for packet in packets:
        talk.send(packet, acknowledged=False)
    return talk


def handed(frames: list[c.Frame]) -> int:
    """How many records the generic reader takes; the rows are checked."""
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    return columnar(files)[0].handed


@pytest.mark.parametrize("mss", [13, 1460])
def test_messages_with_every_header_stay_in_the_compiled_scan(mss: int) -> None:
    assert handed(conversation(*malformed.WELL_FORMED, mss=mss).close().frames) <= 2


@pytest.mark.parametrize("mss", SIZES)
@pytest.mark.parametrize("name", BAD)
def test_malformed_packets_among_valid_ones_stay_in_the_scan(name: str, mss: int) -> None:
    packets = [GOOD, BAD[name], GOOD, BAD[name], BAD[name], ACK, BAD[name], GOOD]
    if len(BAD[name]) < 10_000 or mss > 100:
        assert handed(conversation(*packets, mss=mss).close().frames) <= 2


@pytest.mark.parametrize("name", BAD)
def test_packets_that_end_inside_a_segment(name: str) -> None:
    talk = conversation(GOOD + (BAD[name] + ACK) * 3 + BAD[name] * 2 + GOOD[:5], GOOD[5:])
    assert handed(talk.close().frames) <= 2


@pytest.mark.parametrize("name", BAD)
def test_the_last_packet_of_a_direction_ends_with_it(name: str) -> None:
    assert handed(conversation(GOOD, BAD[name]).close().frames) <= 2
    assert_same([c.pcap_bytes(conversation(GOOD, BAD[name]).reset().frames)])
    assert_same([c.pcap_bytes(conversation(GOOD, BAD[name]).frames)])


@pytest.mark.parametrize("rest", [b"\x10", b"\x10\0", ACK[:8], ACK[:11], ACK[:12], ACK[:20], b"z", b"z" * 40])
@pytest.mark.parametrize("name", BAD)
def test_what_follows_decides_where_a_packet_ends(name: str, rest: bytes) -> None:
    for mss in (1, 13, 1460):
        if len(BAD[name]) < 10_000:
            for talk in (conversation(BAD[name], rest, mss=mss), conversation(BAD[name] + rest, mss=mss)):
                assert_same([c.pcap_bytes(talk.frames)])
                assert_same([c.pcap_bytes(talk.send(GOOD).close().frames)])


@pytest.mark.parametrize("name", ["allocation", "hiding"])
def test_a_packet_of_one_file_may_end_in_the_next(name: str) -> None:
    frames = conversation(GOOD, BAD[name], BAD[name], GOOD[:7], GOOD[7:], mss=60).close().frames
    for cut in range(len(frames)):
        assert_same([c.pcap_bytes(frames[:cut]), c.pcap_bytes(frames[cut:])])


@pytest.mark.parametrize("name", ["allocation", "hiding"])
def test_gaps_and_segments_out_of_order(name: str) -> None:
    frames = conversation(GOOD, BAD[name], BAD[name], ACK, GOOD, BAD[name], mss=60).close().frames
    for at in range(3, len(frames) - 1):
        assert_same([c.pcap_bytes(frames[:at] + frames[at + 1 :])])
        swapped = [*frames[:at], frames[at + 1], frames[at], *frames[at + 2 :]]
        assert_same([c.pcap_bytes(swapped)])
        later = [*frames[:at], *frames[at + 1 : at + 5], frames[at], *frames[at + 5 :]]
        assert_same([c.pcap_bytes(later)], ARENA=500, ROWS=2)


packets = st.one_of(
    st.sampled_from([GOOD, ACK, HIDING, *(packet for packet in BAD.values() if len(packet) < 10_000)]),
    st.builds(
        malformed.resized,
        st.sampled_from(malformed.WELL_FORMED),
        st.integers(16, 300),
    ),
)


@given(
    packets=st.lists(packets, min_size=1, max_size=10),
    mss=st.sampled_from(SIZES),
    seed=st.integers(0, 1 << 20),
    disorder=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    sizes=st.sampled_from([{}, {"CHUNK": 256, "ARENA": 64, "ROWS": 3}, {"ROWS": 1}]),
    ends=st.booleans(),
)
@settings(max_examples=max(50, settings.default.max_examples // 2))
def test_any_malformed_packets(
    packets: list[bytes], mss: int, seed: int, disorder: float, sizes: dict[str, int], ends: bool
) -> None:
    talk = conversation(*packets, mss=mss)
    frames = talk.close().frames if ends else talk.frames
    if disorder:
        frames = c.disorder(
            frames, random.Random(seed), reorder=disorder, reach=4, duplicate=disorder / 2,
            resegment=disorder, overlap=0.0, drop=disorder / 8, keep_control=True,
        )  # fmt: skip
    assert_same([c.pcap_bytes(frames)], **sizes)


def test_a_mutated_packet_in_a_stream_is_refused_as_it_is_alone() -> None:
    packets = random.Random(4).sample(list(malformed.with_sound_frames()), 300)
    files = [c.pcap_bytes(conversation(*packets).close().frames)]
    assert_same(files)
    kinds = generic(files)[1]["kind"].to_pylist()
    assert kinds.count("Malformed") > 50


@pytest.mark.parametrize("count", [3, 5, 7, 8])
def test_packets_claimed_in_vain_go_to_the_generic_reader(count: int) -> None:
    """Malformed packets before them have sizes that cover them."""
    claiming = BAD["queue"][:8] + (600).to_bytes(4, "little") + BAD["queue"][12:68]
    talk = conversation(*[claiming + ACK] * count, *[ACK] * 12)
    assert_same([c.pcap_bytes(talk.frames)])
