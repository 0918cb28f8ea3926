"""Lost synchronisation: the compiled scan finds the next packet, and makes the rows of the generic reader."""

from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from benchmarks.support.hostile_packets import LOST
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import assert_same, columnar, generic

ACK = h.session_ack()
GOOD = h.user_message(properties=h.properties_header(label="label", body=b"body" * 40))
MALFORMED = h.user_message(properties=h.properties_header(body=b"b" * 30, allocation_body_size=10_000))
EXTENDED = [
    h.user_message(trailing=b"".join(number.to_bytes(4, "little") for number in (size, counted, 0, 7)))
    for size, counted in [(12, 4), (16, 0), (12, 0), (17, 0), (0, 16), (16, 4)]
]
CHANGED = {name: change(GOOD) for name, (_, change) in LOST.items()}
GARBAGE = {
    "text": b"z" * 70,
    "signatures": b"LIOR" * 30,
    "end of a header": b"\x10\0\0\0LIOR\x40",
    "claims in vain": (h.base_header(160) + b"q" * 8) * 9,
    "claims of many sizes": b"".join(h.base_header(60 + 97 * n) for n in range(12)),
    "claims before a packet": b"z" * 20 + h.base_header(len(GOOD)) * 4 + GOOD,
    "malformed": MALFORMED[:8] + b"\xff\xff" + MALFORMED[10:],
    "hiding packets": h.user_message(trailing=b"xyz" + ACK * 3) + b"z" * 30,
    "hiding packets, in its body too": h.user_message(
        trailing=b"xyz" + ACK, properties=h.properties_header(body=ACK * 2)
    )
    + b"z" * 30,
    "run of 64 KiB": b"z" * 0x1_0003,
}
SIZES = [1, 7, 11, 12, 13, 16, 100, 1460, 9000]


def conversation(*packets: bytes, mss: int = 1460) -> c.TcpConversation:
    talk = c.TcpConversation(mss=mss).handshake()
    for packet in packets:
        talk.send(packet, acknowledged=False)
    return talk


@pytest.mark.parametrize("mss", [12, 13, 100, 1460])
@pytest.mark.parametrize(
    "name",
    [
        *CHANGED,
        "text",
        "signatures",
        "claims before a packet",
        "malformed",
        "hiding packets, in its body too",
    ],
)
def test_the_compiled_scan_finds_the_next_packet(name: str, mss: int) -> None:
    bad = (CHANGED | GARBAGE)[name]
    frames = conversation(GOOD, bad, GOOD, ACK, bad, bad, GOOD, ACK, GOOD, mss=mss).close().frames
    files = [c.pcap_bytes(frames)]
    assert_same(files)
    assert columnar(files)[0].handed <= 5  # at the end of the connection


@pytest.mark.parametrize("packet", EXTENDED)
def test_a_certain_packet_has_explained_bytes_after_its_headers(packet: bytes) -> None:
    for mss in (13, 1460):
        assert_same([c.pcap_bytes(conversation(ACK, b"z" * 20, packet, ACK, mss=mss).close().frames)])


@pytest.mark.parametrize(
    "first", [b"\x05\0\x0b\x03" + b"z" * 40, b"DmdT" + b"z" * 40, b"tNcP", b"z" * 40, b"z"]
)
def test_a_connection_that_begins_with_something_else(first: bytes) -> None:
    for mss in (1, 5, 1460):
        assert_same([c.pcap_bytes(conversation(first, GOOD, ACK, mss=mss).close().frames)])


@pytest.mark.parametrize("name", ["Signature", "PacketSize", "early", "cover", "hiding packets"])
def test_a_run_goes_on_in_the_next_file(name: str) -> None:
    bad = (CHANGED | GARBAGE)[name]
    frames = conversation(GOOD, bad, bad, GOOD, ACK, mss=60).close().frames
    for cut in range(3, len(frames)):
        assert_same([c.pcap_bytes(frames[:cut]), c.pcap_bytes(frames[cut:])])


@pytest.mark.parametrize("name", ["Signature", "PacketSize", "early", "cover", "hiding packets"])
def test_gaps_and_segments_out_of_order(name: str) -> None:
    bad = (CHANGED | GARBAGE)[name]
    frames = conversation(GOOD, bad, bad, GOOD, ACK, GOOD, mss=60).close().frames
    for at in range(3, len(frames) - 1):
        assert_same([c.pcap_bytes(frames[:at] + frames[at + 1 :])])
        later = [*frames[:at], *frames[at + 1 : at + 4], frames[at], *frames[at + 4 :]]
        assert_same([c.pcap_bytes(later)], ARENA=500, ROWS=2)


def test_connections_return_to_the_scan_when_memory_is_freed() -> None:
    talks = [c.TcpConversation(mss=60_000, client=("10.0.0.1", 2000 + n)).handshake() for n in range(20)]
    for round_ in range(40):
        for talk in talks:
            talk.send((h.base_header(4 << 20) if round_ % 20 == 0 else b"").ljust(60_000, b"z"))
    runs = [talk.frames for talk in talks]
    frames = [frame for step in zip(*runs, strict=True) for frame in step]
    decoder, table = columnar([c.pcap_bytes(frames)])
    assert "too much is held" in "".join(filter(None, table["error"].to_pylist()))
    assert decoder.handed < len(frames) / 10


@pytest.mark.parametrize("claims", range(5))
@pytest.mark.parametrize("is_sound", [True, False])
def test_checks_that_failed_are_counted_once(claims: int, is_sound: bool) -> None:
    """Of ranges of one size only so many are checked: those before a packet, and what covers it."""
    hidden = b"xyz" + h.base_header(len(GOOD)) * claims + GOOD
    cover = h.user_message(trailing=hidden)
    if not is_sound:
        cover = cover[:16] + b"\xff" * 48 + cover[64:]
    assert len(cover).bit_length() == len(GOOD).bit_length()
    for mss in (1, 7, 60, 1460):
        assert_same([c.pcap_bytes(conversation(ACK, cover, b"z" * 90, GOOD, ACK, mss=mss).frames)])


@pytest.mark.parametrize("mss", [11, 100, 1460])
@pytest.mark.parametrize("size", [60, 300], ids=["of another size", "of the same size"])
def test_a_break_forgets_no_checks_that_failed(size: int, mss: int) -> None:
    """The search goes to the end of the bytes and then back to a packet that is cut off.

    Four failed ranges of its size cover it, so that it is not checked: it ends where the next cut-off packet
    begins. The false packet at the end is checked between the two, and pushes none of the four out.
    """
    covering = b"".join(h.base_header(claimed) for claimed in (300, 400, 500, 600))
    message = h.user_message(properties=h.properties_header(body=b"b" * 5000))
    packets = [
        covering,
        message[:400],
        h.base_header(5000).ljust(200, b"z"),
        h.base_header(size).ljust(size, b"z"),
    ]
    files = [c.pcap_bytes(conversation(*packets, mss=mss).frames)]
    assert_same(files)
    for read in (generic, columnar):
        rows = read(files)[1]
        assert rows["kind"].to_pylist() == ["Malformed"] * 3
        assert rows["size"].to_pylist() == [64, 400, 200 + size]


@pytest.mark.parametrize("mss", range(1, 41))
def test_what_follows_a_doubtful_packet_is_awaited(mss: int) -> None:
    cover = h.user_message(trailing=b"xyz" + ACK * 3)
    for talk in (conversation(cover, GOOD, cover, mss=mss), conversation(cover + GOOD, GOOD + ACK, mss=mss)):
        assert_same([c.pcap_bytes(talk.frames)])


@pytest.mark.parametrize("name", ["Signature", "PacketSize", "early", "cover", "hiding packets"])
def test_the_scan_goes_on_behind_a_hole(name: str) -> None:
    bad = (CHANGED | GARBAGE)[name]
    talk = c.TcpConversation(mss=60, step_ns=300_000_000).handshake()
    for packet in (GOOD, bad, GOOD, ACK, bad, GOOD, GOOD, ACK):
        talk.send(packet)
    frames = talk.frames
    for at in range(3, len(frames) - 1):
        assert_same([c.pcap_bytes(frames[:at] + frames[at + 1 :])])


pieces = st.one_of(
    st.sampled_from([GOOD, ACK, MALFORMED, GOOD, ACK, *EXTENDED]),
    st.sampled_from(list(CHANGED.values())),
    st.sampled_from(list(GARBAGE.values())[:-1]),
    st.builds(lambda packet, size: packet[:size], st.sampled_from([GOOD, ACK]), st.integers(1, 60)),
    st.binary(min_size=1, max_size=20),
)


@given(
    packets=st.lists(pieces, min_size=1, max_size=12),
    mss=st.sampled_from(SIZES),
    seed=st.integers(0, 1 << 20),
    disorder=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    sizes=st.sampled_from([{}, {}, {"CHUNK": 256, "ARENA": 64, "ROWS": 3}, {"ROWS": 1}]),
    ends=st.booleans(),
    long_run=st.integers(0, 9),
)
@settings(max_examples=max(60, settings.default.max_examples))
def test_any_bytes_between_packets(
    packets: list[bytes],
    mss: int,
    seed: int,
    disorder: float,
    sizes: dict[str, int],
    ends: bool,
    long_run: int,
) -> None:
    if long_run == 0 and mss > 1000:
        packets = [GARBAGE["run of 64 KiB"], *packets]
    talk = conversation(*packets, mss=mss)
    frames = talk.close().frames if ends else talk.frames
    if disorder:
        frames = c.disorder(
            frames, random.Random(seed), reorder=disorder, reach=4, duplicate=disorder / 2,
            resegment=disorder, overlap=0.0, drop=disorder / 8, keep_control=True,
        )  # fmt: skip
    cut = random.Random(seed).randrange(len(frames))
    files = [frames] if seed % 3 else [frames[:cut], frames[cut:]]
    assert_same([c.pcap_bytes(file) for file in files], **sizes)
