"""Connections that make room for others give the same columns with both readers."""

from __future__ import annotations

from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from msmqwire.analysis.dissection import tracker
from tests.support import handmade as h
from tests.support.capture.attacks import ACK, SYN, pcap, segment
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.capture_files import START_NS

FIN = 1
PACKET = h.session_ack()
STEPS_NS = st.sampled_from([1000, 1000, 1000, 1_000_000, 300_000_000, 1_500_000_000, 700_000_000_000])


def frames_of(client: int, kind: str, at: int) -> list[bytes]:
    """The next frames of a connection; ``at`` is the offset of the next byte of its client."""
    if kind == "begins":
        return [segment(b"", client=client, seq=0, flags=SYN)]
    if kind == "opens":
        answer = segment(b"", client=client, seq=0, flags=SYN | ACK, by_client=False)
        return [segment(b"", client=client, seq=0, flags=SYN), answer]
    if kind == "ends":
        return [
            segment(b"", client=client, seq=1 + at, flags=FIN | ACK),
            segment(b"", client=client, seq=1, ack=2 + at, flags=FIN | ACK, by_client=False),
        ]
    if kind == "acknowledges too much":
        return [segment(b"", client=client, seq=1, ack=50 + at, by_client=False)]
    sent = {"sends": PACKET, "sends part": PACKET[:20], "sends beyond a gap": PACKET}[kind]
    return [segment(sent, client=client, seq=1 + at + 7 * (kind == "sends beyond a gap"))]


KINDS = [
    "begins",
    "opens",
    "opens",
    "ends",
    "acknowledges too much",
    "sends",
    "sends part",
    "sends beyond a gap",
]


@st.composite
def connections(draw: st.DrawFn) -> bytes:
    """A capture of more connections than are tracked, each anywhere between its SYN and its FIN."""
    frames: list[tuple[int, bytes]] = []
    now, offsets = START_NS, dict.fromkeys(range(12), 0)
    for _ in range(draw(st.integers(5, 50))):
        now += draw(STEPS_NS)
        client, kind = draw(st.integers(0, 11)), draw(st.sampled_from(KINDS))
        frames += ((now, frame) for frame in frames_of(client, kind, offsets[client]))
        offsets[client] += {"sends": len(PACKET), "sends part": 20}.get(kind, 0)
    return pcap(frames)


@settings(max_examples=60)
@given(capture=connections(), limit=st.integers(1, 6))
def test_evicted_connections_give_the_same_columns(capture: bytes, limit: int) -> None:
    with mock.patch.object(tracker, "CONNECTIONS_MAX", limit):
        assert_same([capture])


@pytest.mark.parametrize("kind", ["begins", "opens"])
def test_silently_ended_connections_are_evicted_in_the_scan(kind):
    """Of 500 connections, a sixteenth of 64 at a time makes room, by one frame for the generic reader."""
    frames = [frame for client in range(500) for frame in frames_of(client, kind, 0)]
    with mock.patch.object(tracker, "CONNECTIONS_MAX", 64):
        assert_same([pcap(frames)])
        dissection, _ = columnar([pcap(frames)])
        assert dissection.counters()["evicted"] == 436
        assert dissection.handed < 230  # one for each four, and the answer that it gets
