"""Limits on peers of a server: connections, sessions, packets, unacknowledged bytes, time."""

from __future__ import annotations

import socket
import struct
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

import msmqwire
from msmqwire.errors import Unreachable
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import SETTINGS
from tests.support.peers.raw_peer import Session, establish
from tests.support.running import (
    ADDRESS,
    ORDERS,
    PATIENCE_S,
    InThread,
    called,
    listed,
    options,
    peeked,
    recoverable,
    served,
    until,
)

pytestmark = pytest.mark.usefixtures("computers")
TO_ORDERS = rf"DIRECT=TCP:{ADDRESS}\{ORDERS}"
BETA = "127.0.0.32"


def connect(server: InThread, source: str = "127.0.0.41") -> socket.socket:
    return socket.create_connection((server.address, server.port), PATIENCE_S, source_address=(source, 0))


def speaking(server: InThread, source: str = "127.0.0.41") -> socket.socket:
    """A connection whose peer has begun a session."""
    peer = connect(server, source)
    peer.sendall(establish())
    assert peer.recv(1)
    return peer


def is_ended(peer: socket.socket) -> bool:
    """Wait for the end of a connection on which the server sends nothing."""
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def traffic(server: InThread, name: str) -> int:
    count: int = server.do(lambda running: getattr(running.network.traffic, name))
    return count


def connections(server: InThread) -> int:
    return server.do(lambda running: len(running.network.connections))


def sessions(data: Path) -> list[dict]:
    with attach(data) as local:
        statuses: list[dict] = local.call("status")["sessions"]
        return statuses


def test_there_are_no_more_connections_than_allowed(data: Path) -> None:
    with served(options(data, limits=Limits(connections=3))) as server:
        peers = [speaking(server, f"127.0.0.{40 + n}") for n in range(3)]
        until(lambda: connections(server) == 3, "three are accepted")
        with connect(server, "127.0.0.50") as fourth:
            assert is_ended(fourth)
        assert (traffic(server, "accepted"), traffic(server, "refused")) == (3, 1)
        peers.pop().close()
        until(lambda: connections(server) == 2, "one connection has ended")
        peers.append(speaking(server))
        until(lambda: connections(server) == 3, "its place is free")
        for peer in peers:
            peer.close()


def test_one_peer_has_no_more_connections_than_allowed(data: Path) -> None:
    with served(options(data, limits=Limits(connections_per_peer=2))) as server:
        peers = [speaking(server), speaking(server)]
        until(lambda: connections(server) == 2, "two are accepted")
        with connect(server) as third:
            assert is_ended(third)
        peers.append(speaking(server, "127.0.0.42"))
        until(lambda: connections(server) == 3, "another peer is accepted")
        assert traffic(server, "refused") == 1
        for peer in peers:
            peer.close()
        until(lambda: connections(server) == 0, "all connections have ended")
        with connect(server):
            until(lambda: connections(server) == 1, "the first peer is accepted again")


def test_connections_in_which_no_session_begins_end(data: Path) -> None:
    with served(options(data, settings=replace(SETTINGS, session_initialization_ms=500))) as server:
        with connect(server) as silent, connect(server) as slow:
            slow.sendall(b"\x10")
            assert is_ended(silent)
            assert is_ended(slow)
        assert connections(server) == 0


def test_quiet_sessions_end_and_begin_again_when_needed(data: Path) -> None:
    with served(options(data, ORDERS, settings=replace(SETTINGS, session_cleanup_ms=500))) as server:
        with msmqwire.connect(TO_ORDERS, port=server.port, drain=PATIENCE_S) as client:
            client.send(b"1", recoverable=True).transferred(PATIENCE_S)
            until(lambda: not sessions(data), "the session ends")
            client.send(b"2", recoverable=True).transferred(PATIENCE_S)
        assert peeked(data, ORDERS) == [b"1", b"2"]
        assert traffic(server, "accepted") >= 2


def test_there_are_no_more_sessions_of_others_than_allowed(data: Path) -> None:
    with served(options(data, ORDERS, settings=replace(SETTINGS, max_in_sessions=1))) as server:
        first = msmqwire.connect(TO_ORDERS, port=server.port, drain=PATIENCE_S)
        second = msmqwire.connect(TO_ORDERS, port=server.port, drain=PATIENCE_S)
        with second as second_client:
            with first as client:
                client.send(b"1", recoverable=True).transferred(PATIENCE_S)
                waiting = second_client.send(b"2", recoverable=True)
                until(lambda: traffic(server, "accepted") >= 3, "the second client has tried twice")
                assert len(sessions(data)) == 1
                assert peeked(data, ORDERS) == [b"1"]
            waiting.transferred(PATIENCE_S)
        assert peeked(data, ORDERS) == [b"1", b"2"]


@pytest.mark.parametrize("size, ends", [(2048, False), (2049, True), (1 << 31, True), (15, True)])
def test_a_packet_is_judged_by_its_size_before_it_has_come(data: Path, size: int, ends: bool) -> None:
    header = struct.pack("<BBHIII", 0x10, 0, 3, 0x524F494C, size, 0xFFFFFFFF)
    limited = options(data, settings=replace(SETTINGS, packet_size_max=2048))
    with served(limited) as server, Session.opened((server.address, server.port)) as peer:
        before = traffic(server, "bytes_received")
        peer.send(header)
        until(lambda: traffic(server, "bytes_received") == before + len(header), "the header has arrived")
        if ends:
            assert peer.ended() == []
        assert connections(server) == (0 if ends else 1)


def test_a_message_beyond_the_size_is_not_taken_and_others_are(data: Path) -> None:
    with served(options(data, ORDERS, settings=replace(SETTINGS, packet_size_max=2048))) as server:
        large = msmqwire.connect(TO_ORDERS, port=server.port, drain=0.1)
        large_client = large.__enter__()
        large_client.send(b"x" * 4000, recoverable=True)
        until(lambda: traffic(server, "accepted") >= 2, "the client has tried twice")
        with pytest.raises(Unreachable):
            large.__exit__(None, None, None)
        with msmqwire.connect(TO_ORDERS, port=server.port, drain=PATIENCE_S) as client:
            client.send(b"small", recoverable=True).transferred(PATIENCE_S)
        assert peeked(data, ORDERS) == [b"small"]


def test_no_more_is_sent_than_may_be_unacknowledged(data: Path, tmp_path: Path) -> None:
    slow = replace(
        SETTINGS, recoverable_ack_delay_ms=600_000, ack_delay_ms=600_000, ack_wait_timeout_ms=120_000
    )
    beta = tmp_path / "beta"
    with served(options(beta, ORDERS, address=BETA, name="beta", settings=slow)) as receiver:
        overrides = AddressOverrides(hosts={"beta": (BETA, receiver.port)})
        limited = replace(slow, unacknowledged_bytes_max=10_000)
        with served(options(data, settings=limited, overrides=overrides)) as sender, attach(data) as local:
            to = rf"DIRECT=OS:beta\{ORDERS}"
            local.call("send", to=to, messages=recoverable(*[b"x" * 4000] * 20))
            until(lambda: peeked(beta, ORDERS), "some messages have arrived")
            assert 8_000 < traffic(sender, "bytes_sent") < 20_000
            assert [row["messages"] for row in listed(data).values() if row["kind"] == "outgoing"] == [20]


def test_the_options_of_the_command_line_are_the_limits(data: Path) -> None:
    options = (
        "--max-connections", "10", "--set", "connections_per_peer=5", "--set", "partial_bytes=3000",
        "--set", "pings=40", "--set", "pings_per_network=4", "--set", "resolutions=6",
    )  # fmt: skip
    expected = {
        (): Limits(),
        options: Limits(10, 5, partial_bytes=3000, pings=40, pings_per_network=4, resolutions=6),
    }
    for given, limits in expected.items():
        with (
            mock.patch("msmqwire.cli.serve._run") as run,
            mock.patch("msmqwire.service.logs.begin"),
            mock.patch("msmqwire.service.descriptors.raise_limit"),
        ):
            assert called("serve", "--data", data, *given).status == 0
        assert run.call_args.args[0].limits == limits
