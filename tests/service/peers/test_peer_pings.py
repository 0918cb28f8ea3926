"""Pings from and to a hand-written peer over UDP: [MS-MQQB] 2.2.7 and 3.1.7.6 to 3.1.7.9."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.paths import VECTORS
from tests.support.peers.raw_peer import GUID, PATIENCE_S, PEER, Listener, Session, establish
from tests.support.qm.peer_server import (
    SERVER,
    alpha,
    at,
    identity,
    recoverable,
    send,
    server_options,
    serves,
)
from tests.support.running import InThread, served

RC, RF = 1, 2


def ping(flags: int = 0, cookie: int = 4, guid: bytes = GUID, signature: int = 0x5548) -> bytes:
    """A ping packet."""
    return struct.pack("<HHL16s", flags, signature, cookie, guid)


@contextmanager
def datagrams(address: str = PEER) -> Iterator[socket.socket]:
    """A UDP socket of the peer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((address, 0))
        udp.settimeout(PATIENCE_S)
        yield udp


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InThread]:
    with alpha(tmp_path / "alpha") as server:
        yield server
        serves(server)


def ask(server: InThread, request: bytes, client: socket.socket) -> tuple[bytes, tuple[str, int]]:
    client.sendto(request, (SERVER, server.ping_port))
    return client.recvfrom(1 << 16)


@pytest.mark.requirement(
    "MQQB-2.1.2-02", "MQQB-2.1.2-07", "MQQB-2.2.7-01", "MQQB-2.2.7-04", "MQQB-2.2.7-08", "MQQB-2.2.7-11",
    "MQQB-2.2.7-13", "MQQB-3.1.7.7-02",
)  # fmt: skip
@pytest.mark.parametrize("cookie", [0, 4, 0xFFFFFFFF])
@pytest.mark.parametrize("flags", [0, RC])
def test_a_ping_is_answered_with_its_cookie(server: InThread, flags: int, cookie: int) -> None:
    with datagrams() as client:
        response, source = ask(server, ping(flags, cookie), client)
    assert source == (SERVER, server.ping_port)
    assert response == ping(flags, cookie, identity(server))


@pytest.mark.requirement("MQQB-2.2.7-07")
def test_the_published_request_is_answered(server: InThread) -> None:
    vector = VECTORS / "MS-MQQB-4.1.1-PingRequest.hex"
    with datagrams() as client:
        response, _ = ask(server, bytes.fromhex(vector.read_text()), client)
    flags = struct.unpack_from("<H", response)[0]
    assert flags & (RC | RF) == RC, "0x7D01 has RC"
    assert response[2:8] == bytes.fromhex("48 55 04 00 00 00")
    assert response[8:] == identity(server)


@pytest.mark.requirement("MQQB-3.1.7.7-01", "MQQB-2.2.7-09")
def test_other_datagrams_are_not_answered(server: InThread) -> None:
    rng = random.Random(1)
    hostile = [
        b"", b"\0", ping()[:23], ping() + b"\0", ping(signature=0x4855), ping(signature=0), bytes(24),
        b"\xff" * 24, establish(), rng.randbytes(24), rng.randbytes(60_000),
        *(rng.randbytes(rng.randrange(64)) for _ in range(200)),
    ]  # fmt: skip
    guid = identity(server)
    with datagrams() as client:
        for number, batch in enumerate(batched(hostile, 10)):
            for datagram in batch:
                client.sendto(datagram, (SERVER, server.ping_port))
            response, _ = ask(server, ping(cookie=number), client)
            assert response == ping(0, number, guid), "no datagram before it was answered"


def batched(items: list[bytes], size: int) -> list[list[bytes]]:
    """Batches of datagrams; a socket would lose them if it received too many at once."""
    return [items[start : start + size] for start in range(0, len(items), size)]


@pytest.mark.requirement("MQQB-2.2.7-06", "MQQB-3.1.7.7-03", "MQQB-3.1.5.3.1-02", "MQQB-2.2.1-09")
def test_a_full_server_says_so(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha", max_in_sessions=1) as server, datagrams() as client:
        guid = identity(server)
        assert ask(server, ping(0, 1), client)[0] == ping(0, 1, guid)
        with Session.opened(at(server)) as first:
            assert ask(server, ping(0, 2), client)[0] == ping(RF, 2, guid)
            with Session.connect(at(server)) as second:
                second.send(establish())
                (answer,) = second.ended()
                assert (answer.kind, answer.CS) == ("EstablishConnection", 1), "a peer that has not pinged"
            assert first.fence() == []
            first.finish()
        serves(server)
        assert ask(server, ping(0, 3), client)[0] == ping(0, 3, guid)


@pytest.mark.requirement("MQQB-2.1.2-06")
def test_a_server_that_does_not_answer_pings(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha", answer_pings=False) as server, datagrams() as client:
        client.sendto(ping(), (SERVER, server.ping_port))
        serves(server)
        client.settimeout(0)
        with pytest.raises(BlockingIOError):
            client.recv(64)


# -- requests of the server -----------------------------------------------------------------------------


@contextmanager
def pinging(data: Path, listener: Listener, port: int) -> Iterator[InThread]:
    """A server that pings before it connects."""
    options = server_options(data, listener, ping=True, ping_response_ms=30_000)
    with served(replace(options, overrides=replace(options.overrides, ping_port=port))) as server:
        yield server


@pytest.mark.requirement("MQQB-2.2.7-13")
@pytest.mark.requirement(
    "MQQB-2.2.7-03", "MQQB-2.2.7-05", "MQQB-3.1.7.6-01", "MQQB-3.1.7.6-04", "MQQB-3.1.7.8-01",
    "MQQB-3.1.7.8-02", "MQQB-3.1.5.2.2-02", "MQQB-2.2.3.1-10", "MQQB-2.1.2-05",
)  # fmt: skip
def test_a_server_pings_before_it_connects(tmp_path: Path) -> None:
    with (
        Listener() as listener,
        datagrams() as pings,
        pinging(tmp_path / "alpha", listener, pings.getsockname()[1]) as server,
    ):
        send(server, *recoverable(b"1"))
        request, source = pings.recvfrom(64)
        cookie = struct.unpack_from("<L", request, 4)[0]
        assert request == ping(0, cookie, identity(server))
        assert source[1] != server.ping_port, "its port is free, and the response goes there"
        for wrong in (ping(RF, cookie + 1), ping(RF, cookie, signature=1), ping(RF, cookie)[:20], b""):
            pings.sendto(wrong, source)
        pings.sendto(ping(0, cookie), source)
        with listener.ring() as peer:
            request = peer.take()
            assert request.OperatingSystem & 0x100 == 0, "SE: a ping was sent for this session"


@pytest.mark.requirement("MQQB-3.1.5.2.2-01", "MQQB-3.1.5.2.2-03", "MQQB-3.1.7.6-04")
def test_a_refused_ping_is_followed_by_a_connection_without(tmp_path: Path) -> None:
    with (
        Listener() as listener,
        datagrams() as pings,
        pinging(tmp_path / "alpha", listener, pings.getsockname()[1]) as server,
    ):
        send(server, *recoverable(b"1"))
        request, source = pings.recvfrom(64)
        pings.sendto(ping(RF, struct.unpack_from("<L", request, 4)[0]), source)
        with listener.ring() as peer:
            assert peer.take().OperatingSystem & 0x100, "a retry does not ping"
        pings.settimeout(0)
        with pytest.raises(BlockingIOError):
            pings.recv(64)
