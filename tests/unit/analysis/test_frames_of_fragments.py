"""The frames of a packet: those of all fragments of IP that carry it, in items, columns and excerpts."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

import msmqwire
from msmqwire.analysis.dissection import dissect, frame_ranges
from msmqwire.analysis.dissection.frame_ranges import FragmentFrames
from msmqwire.capture import open_records
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.paths import EXAMPLES
from tests.support.running import in_process as command

MESSAGES = [
    h.user_message(properties=h.properties_header(label=f"number {n}", body=b"x" * 3000)) for n in range(4)
]
SIZE = 400


def packet_of(frame: c.Frame, ident: int) -> bytes:
    """The IP packet in a frame, of IPv4 with an identification."""
    packet = frame.data[14:]
    if packet[0] >> 4 == 6:
        return packet[: 40 + int.from_bytes(packet[4:6], "big")]
    return packet[:4] + ident.to_bytes(2, "big") + packet[6 : int.from_bytes(packet[2:4], "big")]


def fragmented(talk: c.TcpConversation) -> tuple[list[bytes], list[set[int]]]:
    """The frames of a talk with all large segments in fragments, and for each segment the frames it has."""
    frames: list[bytes] = []
    of_segments = []
    for ident, frame in enumerate(talk.frames):
        packet, before = packet_of(frame, ident), len(frames)
        if packet[0] >> 4 == 6:
            parts = c.fragments_6(packet, SIZE, ident + 1)
        else:
            parts = c.fragments_4(packet, SIZE)
        frames += map(c.ethernet, parts if len(packet) > SIZE + 60 else [packet])
        of_segments.append(set(range(before + 1, len(frames) + 1)))
    return frames, of_segments


def talk_of(version: int) -> c.TcpConversation:
    ends = (c.CLIENT, c.SERVER) if version == 4 else (c.CLIENT_6, c.SERVER_6)
    return c.TcpConversation((ends[0], 50_000), (ends[1], 1801)).handshake()


@pytest.mark.parametrize("version", [4, 6])
def test_items_have_all_fragments_of_all_segments(version: int) -> None:
    talk, expected = talk_of(version), []
    for message in MESSAGES:
        first = len(talk.frames)
        talk.send(message)
        expected.append(range(first, len(talk.frames)))
    frames, of_segments = fragmented(talk)
    data = c.pcap_bytes(frames)
    items = list(dissect(io.BytesIO(data)))
    assert [item.kind for item in items] == ["UserMessage"] * len(MESSAGES)
    for item, segments in zip(items, expected, strict=True):
        carriers = [number for number in segments if talk.frames[number].segment.payload]  # type: ignore[union-attr]
        assert set(item.frames) == set().union(*(of_segments[number] for number in carriers))
        assert item.frames == tuple(sorted(item.frames))
        assert len(item.frames) > len(carriers) > 1
    assert_same([data])
    assert columnar([data])[1]["frame"].to_pylist() == [item.frames[-1] for item in items]


def test_packets_that_share_a_segment_share_its_fragments() -> None:
    small = h.user_message(properties=h.properties_header(label="small", body=b"y" * 100))
    data = c.pcap_bytes(fragmented(talk_of(4).send(small * 4))[0])
    items = list(dissect(io.BytesIO(data)))
    assert len(items) == 4
    assert {item.frames for item in items} == {items[0].frames}
    assert len(items[0].frames) > 1
    assert_same([data])


@pytest.mark.parametrize("seed", range(6))
def test_disorder_repetition_and_several_files(seed: int) -> None:
    """Both readers have the same frame of each packet that comes in fragments out of order and repeated."""
    rng, talk = random.Random(seed), talk_of(4)
    for message in MESSAGES:
        talk.send(message)
    frames = fragmented(talk)[0]
    frames = [frame for frame in frames for _ in range(1 + (rng.random() < 0.1))]
    order = sorted(range(len(frames)), key=lambda number: number + rng.random() * 6)
    frames = [frames[number] for number in order]
    cut = rng.randrange(len(frames))
    files = [c.pcap_bytes(frames[:cut]), c.pcap_bytes(frames[cut:])]
    assert_same([c.pcap_bytes(frames)])
    assert_same(files)


def seen(source: Path) -> list[tuple[str, int, bytes]]:
    return [(item.kind, item.size, item.raw) for item in msmqwire.dissect(source, lint=False)]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("options", [[], ["--connections"]], ids=" ".join)
def test_an_excerpt_has_all_frames_that_its_packets_need(
    version: int, options: list[str], tmp_path: Path
) -> None:
    """Packets of fragmented segments that are wanted, among others that are not, are read again."""
    talk, other = talk_of(version), c.TcpConversation(("10.0.0.7", 50_001), ("10.0.0.8", 80)).handshake()
    for message in MESSAGES:
        talk.send(message)
        other.send(bytes(3000))
    whole, out = tmp_path / "whole.pcapng", tmp_path / "out.pcapng"
    whole.write_bytes(c.pcapng_bytes([*fragmented(talk)[0], *fragmented(other)[0]]))
    done = command("pcap", whole, "-o", out, *options)
    assert done.returncode == 0, done.stderr
    assert seen(out) == seen(whole) == [("UserMessage", len(m), m) for m in MESSAGES]
    wanted = command("pcap", whole, "-o", out, "--where", "label == 'number 2'", *options)
    assert wanted.returncode == 0, wanted.stderr
    assert ("UserMessage", len(MESSAGES[2]), MESSAGES[2]) in seen(out)
    if not options:
        (item,) = [item for item in msmqwire.dissect(whole) if item.raw == MESSAGES[2]]
        assert wanted.stderr.decode() == f"1 packet, {len(item.frames)} frames\n"
        numbers = set(item.frames)
        expected = [record.data for record in open_records(whole) if record.number in numbers]
        assert [record.data for record in open_records(out)] == expected


def test_a_ping_in_fragments() -> None:
    ping = next(item.raw for item in msmqwire.dissect(EXAMPLES / "session.pcap") if item.kind == "Ping")
    frames = [c.ethernet(part) for part in c.fragments_4(c.udp_packet(ping, ident=5), 8)]
    (item,) = dissect(io.BytesIO(c.pcap_bytes(frames)))
    assert item.frames == tuple(range(1, len(frames) + 1))
    assert_same([c.pcap_bytes(frames)])


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest segments are forgotten, and of one with very many fragments the first ones."""
    monkeypatch.setattr(frame_ranges, "FRAGMENTS_MAX", 10)
    monkeypatch.setattr(frame_ranges, "FRAGMENTS_OF_SEGMENT_MAX", 4)
    fragments = FragmentFrames()
    for last in range(3, 30, 3):
        fragments.add((last - 2, last - 1, last))
    assert fragments.of((27,)) == (25, 26, 27)
    assert fragments.of((3,)) == (3,)
    assert fragments.of((3, 24, 28)) == (3, 22, 23, 24, 28)
    fragments.add(tuple(range(40, 60)))
    assert fragments.of((59,)) == (56, 57, 58, 59)
    assert fragments.of((27, 59)) == (25, 26, 27, 56, 57, 58, 59)
