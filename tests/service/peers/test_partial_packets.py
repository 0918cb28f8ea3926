"""Packets that begin and do not end: next to nothing is held before the handshake, a bounded sum after it."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.partial_packets import PartialPackets
from tests.support import handmade as h
from tests.support.peers.raw_peer import Message, Session, establish, parameters
from tests.support.qm.peer_server import alpha, at, in_queue, serves, sessions, until
from tests.support.running import InThread

ESTABLISH_SIZE = 572
PARAMETERS_SIZE = 32
LARGE = 4 << 20


def header(size: int, flags: int = 3) -> bytes:
    """A BaseHeader."""
    return struct.pack("<BBHIII", 0x10, 0, flags, 0x524F494C, size, h.INFINITE)


def held(server: InThread) -> list[int]:
    """What the framers hold, by session."""

    def count(running: Any) -> list[int]:
        return sorted(session.framer.buffered for session in running.driver.core.binary.sessions.values())

    return server.do(count)


def received(server: InThread) -> int:
    count: int = server.do(lambda running: running.network.traffic.bytes_received)
    return count


def total(server: InThread) -> int:
    count: int = server.do(lambda running: running.network.partial_packets.total)
    return count


def test_a_hundred_half_open_peers_can_not_begin_a_large_packet(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server, ExitStack() as stack:
        peers = [stack.enter_context(Session.connect(at(server))) for _ in range(100)]
        for peer in peers:
            peer.send(header(LARGE) + bytes(1000))
        assert [peer.ended() for peer in peers] == [[]] * 100
        until(lambda: sessions(server) == 0, "their sessions have ended")
        assert total(server) == 0
        serves(server)


@pytest.mark.parametrize("size", [ESTABLISH_SIZE - 1, ESTABLISH_SIZE + 1, PARAMETERS_SIZE, LARGE])
def test_only_the_length_of_a_request_is_right_before_one(tmp_path: Path, size: int) -> None:
    with alpha(tmp_path / "alpha") as server, Session.connect(at(server)) as peer:
        peer.send(header(size, flags=8))
        assert peer.ended() == []


def test_half_open_peers_hold_less_than_a_request(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server, ExitStack() as stack:
        peers = [stack.enter_context(Session.connect(at(server))) for _ in range(100)]
        for peer in peers:
            peer.send(establish()[:-1])
        until(lambda: received(server) == 100 * (ESTABLISH_SIZE - 1), "it has arrived")
        assert held(server) == [ESTABLISH_SIZE - 1] * 100
        assert total(server) == 100 * (ESTABLISH_SIZE - 1)
        for peer in peers:
            peer.send(establish()[-1:])
        assert {peer.take().kind for peer in peers} == {"EstablishConnection"}
        assert (held(server), total(server)) == ([0] * 100, 0)


@pytest.mark.parametrize("size", [LARGE, ESTABLISH_SIZE, PARAMETERS_SIZE - 1])
@pytest.mark.parametrize("flags", [8, 3, 0x13])
def test_after_the_request_only_parameters_may_come(tmp_path: Path, size: int, flags: int) -> None:
    with alpha(tmp_path / "alpha") as server, Session.connect(at(server)) as peer:
        peer.send(establish())
        assert peer.take().kind == "EstablishConnection"
        peer.send(header(size, flags) + bytes(PARAMETERS_SIZE))
        assert peer.ended() == []
        until(lambda: sessions(server) == 0, "the session has ended")


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_a_handshake_and_a_message_may_come_in_any_pieces(tmp_path: Path, step: int) -> None:
    data = establish() + parameters() + Message(b"1", recoverable=True).bytes()
    with alpha(tmp_path / "alpha") as server, Session.connect(at(server)) as peer:
        for start in range(0, len(data), step):
            peer.send(data[start : start + step])
        assert [peer.take().kind for _ in range(2)] == ["EstablishConnection", "ConnectionParameters"]
        peer.sent = peer.recoverable_sent = 1
        assert peer.until_acknowledged() == []
        assert in_queue(server) == [b"1"]


def test_the_largest_wait_ends_when_all_together_hold_too_much(tmp_path: Path) -> None:
    limits = Limits(partial_bytes=1_000_000)
    with alpha(tmp_path / "alpha", limits=limits) as server, ExitStack() as stack:
        opened = [stack.enter_context(Session.opened(at(server))) for _ in range(5)]
        *small, large, honest = opened
        for peer, size in zip((*small, large), (200_000, 200_000, 200_000, 390_000), strict=True):
            before = total(server)
            peer.send(header(LARGE) + bytes(size - 16))
            until(lambda due=before + size: total(server) == due, "it has arrived")
        honest.push(Message(bytes(9_000), recoverable=True))
        assert honest.until_acknowledged() == []
        assert total(server) == 990_000, "a packet that is complete is not waited for"
        small[0].send(bytes(10_001))
        assert large.ended() == []
        assert total(server) == 610_001
        assert sum(held(server)) == 610_001
        assert honest.fence() == []
        assert server.do(lambda running: running.network.traffic.partial_closed) == 1
        assert len(held(server)) == 4
        for peer in small:
            peer.close()
        until(lambda: total(server) == 0, "what they held is forgotten with them")
        serves(server)


def test_a_wait_is_measured_in_bytes_and_seconds() -> None:
    waits = PartialPackets(1_000)
    waits.update(1, 300, 0.0, received=300)
    waits.update(2, 500, 100.0, received=500)
    assert waits.excess(100.0) is None
    waits.update(3, 250, 100.0, received=250)
    assert waits.excess(100.0) == 1, "300 bytes for 100 seconds"
    waits.update(1, 300, 100.0, received=5_000)
    assert waits.excess(100.5) == 2, "another packet has begun meanwhile"
    waits.update(1, 310, 101.0, received=10)
    assert waits.total == 1_060
    waits.forget(2)
    waits.forget(2)
    assert (waits.total, waits.excess(200.0)) == (560, None)
    waits.update(1, 0, 200.0, received=90)
    waits.update(3, 0, 200.0, received=1)
    assert waits.total == 0
