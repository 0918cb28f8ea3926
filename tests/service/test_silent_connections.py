"""Silent connections of several origins: at each listener, honest peers are served beside them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msmqwire.netware.runtime.limits import NcpLimits
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.http.options import HttpOptions
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.remote_read.constants import Access
from msmqwire.rpc.constants import AuthLevel
from tests.support.certificates import Certificates
from tests.support.netware.netware_running import in_memory
from tests.support.netware.netware_station import MemoryServer
from tests.support.own_addresses import own_loopback
from tests.support.patience import PATIENCE_S
from tests.support.peers.raw_peer import Session, establish
from tests.support.peers.raw_reader import RawReader
from tests.support.qm.peer_server import ORDERS, SERVER, at, server_options, serves
from tests.support.running import ADDRESS, InThread, asyncio_only, served, until
from tests.support.srmp.http_service import post

pytestmark = pytest.mark.usefixtures("computers")
ATTACKERS = tuple(f"127.0.0.{number}" for number in range(81, 85))
HONEST = "127.0.0.91"
KNOWN = "127.0.0.92"
PLACES, EACH = 16, 4
LIMITS = {
    f"{prefix}connections{part}": number
    for prefix in ("", "http_", "rpc_")
    for part, number in (("", PLACES), ("_per_peer", EACH))
}
TURNS = 8
"""Turns of the server's loop, in which it accepts a connection and reads its first bytes."""
LOST_S = 3600.0
"""The time after which a peer that does nothing would be ended anyway."""


@contextmanager
def server(data: Path, *, https: tuple[str, str] | None = None) -> Iterator[InThread]:
    """A server with all listeners of a queue manager, and few places at each."""
    endpoint = SERVER, 0
    certificate, key = https or (None, None)
    http = HttpOptions(http=endpoint, https=endpoint if https else None, tls_cert=certificate, tls_key=key)
    limits = Limits(**LIMITS, http_idle_s=LOST_S, http_read_s=LOST_S, rpc_read_s=LOST_S, close_s=0.2)
    options = replace(
        server_options(data, limits=limits, session_initialization_ms=3_600_000),
        overrides=AddressOverrides(hosts={"known": (KNOWN, 1)}),
        rpc=RpcOptions((ADDRESS, 0), endpoint_mapper=(ADDRESS, 0), level=AuthLevel.NONE),
        protocols={"srmp": http},
        metrics=endpoint,
    )
    with served(options) as running:
        yield running


@contextmanager
def crowd(
    running: InThread, where: tuple[str, int], first: bytes = b"", *, answers: bool = False
) -> Iterator[list[socket.socket]]:
    """Connections of four attackers, as many as each may have, which send some bytes and then nothing."""
    with ExitStack() as stack:
        sockets = []
        for _ in range(EACH):
            for attacker in ATTACKERS:
                peer = stack.enter_context(socket.create_connection(where, PATIENCE_S, (attacker, 0)))
                peer.sendall(first)
                if answers:
                    with suppress(ConnectionError):  # it is refused
                        peer.recv(1 << 16)
                for _ in range(TURNS):
                    running.do(lambda _: None)
                sockets.append(peer)
        yield sockets


def traffic(running: InThread, of: Callable[[Any], Any], name: str) -> int:
    """A counter of one of the listeners."""
    count: int = running.do(lambda started: getattr(of(started), name))
    return count


def binary(started: Any) -> Any:
    return started.network.traffic


def http(started: Any) -> Any:
    return started.joined["srmp"].traffic


def remote_read(started: Any) -> Any:
    return started.rpc_network.traffic


def mapper(started: Any) -> Any:
    return started.rpc_network.mapper_traffic


def is_open(peer: socket.socket) -> bool:
    """Whether a connection is open, as far as can be seen now."""
    peer.setblocking(False)
    try:
        return peer.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


# -- sessions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [b"", establish()[:-1]], ids=["nothing", "half a packet"])
def test_sessions_begin_beside_silent_connections(tmp_path: Path, first: bytes) -> None:
    with server(tmp_path / "alpha") as running, crowd(running, at(running), first):
        until(lambda: traffic(running, binary, "evicted") >= EACH, "a quarter of the places is free of them")
        with ExitStack() as stack:
            for number in range(EACH):
                peer = stack.enter_context(Session.opened(at(running), address=f"127.0.0.{101 + number}"))
                assert peer.fence() == []
            serves(running)
        assert traffic(running, binary, "refused") == 0


def test_peers_are_served_beside_half_open_sessions(tmp_path: Path) -> None:
    with (
        server(tmp_path / "alpha") as running,
        crowd(running, at(running), establish(), answers=True) as peers,
    ):
        assert all(map(is_open, peers[: PLACES - PLACES // 8])), "who has sent a packet makes room for none"
        with Session.opened(at(running), address=KNOWN) as peer:
            assert peer.fence() == []
        assert traffic(running, binary, "evicted") == 0
        with Session.opened(at(running), address=HONEST) as peer:
            assert peer.fence() == []
        assert traffic(running, binary, "evicted") == 1, "it has no other; an attacker has many"


def test_a_peer_that_waits_before_its_first_packet_is_served(tmp_path: Path) -> None:
    """As long as there is room."""
    with server(tmp_path / "alpha") as running, Session.connect(at(running), address=HONEST) as slow:
        for number in range(PLACES // 2):
            with Session.opened(at(running), address=f"127.0.0.{101 + number}") as peer:
                assert peer.fence() == []
        slow.send(establish())
        assert slow.take().kind == "EstablishConnection"
        assert traffic(running, binary, "evicted") == 0


def test_one_that_has_said_nothing_outlasts_a_crowd(tmp_path: Path) -> None:
    """Attackers pay with their own places, not with that of a peer that has one."""
    with server(tmp_path / "alpha") as running, Session.connect(at(running), address=HONEST) as slow:
        until(lambda: traffic(running, binary, "accepted") == 1, "it is there first")
        with crowd(running, at(running)), crowd(running, at(running)):
            until(lambda: traffic(running, binary, "evicted") >= PLACES, "attackers make room for each other")
            slow.send(establish())
            assert slow.take().kind == "EstablishConnection"


# -- HTTP -----------------------------------------------------------------------------------------------


def http_at(running: InThread, scheme: str = "http") -> tuple[str, int]:
    return running.do(lambda started: started.joined["srmp"].endpoints[scheme])


def is_answered(at: tuple[str, int], address: str) -> None:
    """An honest request is answered; what is asked for does not matter."""
    with socket.create_connection(at, PATIENCE_S, (address, 0)) as peer:
        peer.sendall(post(b"no envelope"))
        assert peer.recv(1 << 10).startswith(b"HTTP/1.1 400 ")


HALF = {"nothing": b"", "half a head": post()[:20], "half a request": post()[:-1], "another page": b"GET /"}


@pytest.mark.parametrize("first", HALF.values(), ids=HALF)
def test_requests_are_answered_beside_silent_connections(tmp_path: Path, first: bytes) -> None:
    with server(tmp_path / "alpha") as running, crowd(running, http_at(running), first):
        until(lambda: traffic(running, http, "evicted") >= EACH, "a quarter of the places is free of them")
        for number in range(EACH):
            is_answered(http_at(running), f"127.0.0.{101 + number}")
        assert traffic(running, http, "refused") == 0


@asyncio_only
def test_https_is_served_beside_handshakes_that_do_not_begin(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    issued = tuple(map(str, certificates.issue("alpha")))
    with (
        server(tmp_path / "alpha", https=issued) as running,
        crowd(running, http_at(running, "https")) as peers,
    ):
        until(lambda: traffic(running, http, "evicted") >= EACH, "a quarter of the places is free of them")
        until(lambda: sum(map(is_open, peers)) == PLACES - EACH, "their connections are closed")
        is_answered(http_at(running), HONEST)
        assert traffic(running, http, "refused") == 0


# -- remote read ----------------------------------------------------------------------------------------


def rpc_at(running: InThread) -> tuple[str, int]:
    return running.do(lambda started: started.rpc_network.listen)


def mapper_at(running: InThread) -> tuple[str, int]:
    return running.do(lambda started: started.rpc_network.endpoint_mapper)


def test_readers_are_served_beside_those_who_bind_and_no_more(tmp_path: Path) -> None:
    with server(tmp_path / "alpha") as running, ExitStack() as stack:
        for _ in range(EACH):
            for attacker in ATTACKERS:
                stack.callback(RawReader(rpc_at(running)[1], source=attacker).disconnect)
        for number in range(EACH):
            reader = RawReader(rpc_at(running)[1], source=f"127.0.0.{101 + number}")
            stack.callback(reader.disconnect)
            reader.open(rf"DIRECT=OS:alpha\{ORDERS}", Access.PEEK_ACCESS)
        assert traffic(running, remote_read, "evicted") >= EACH
        assert traffic(running, remote_read, "refused") == 0


def test_the_mapper_makes_room_as_well(tmp_path: Path) -> None:
    with server(tmp_path / "alpha") as running, crowd(running, mapper_at(running)):
        until(lambda: traffic(running, mapper, "evicted") >= EACH, "a quarter of the places is free of them")
        with socket.create_connection(mapper_at(running), PATIENCE_S, (HONEST, 0)) as peer:
            until(lambda: traffic(running, mapper, "accepted") > PLACES, "it is admitted")
            assert is_open(peer)


# -- NetWare --------------------------------------------------------------------------------------------


def test_clients_log_in_beside_connections_without_a_login() -> None:
    office = MemoryServer()
    office.add("ALICE")
    office.service.take()
    limits = NcpLimits(connections=PLACES, connections_per_peer=EACH, partial_s=LOST_S)
    listening = own_loopback(1)
    with in_memory(office, limits=limits, address=listening) as running, ExitStack() as stack:
        for _ in range(EACH):
            for attacker in ATTACKERS:
                stack.enter_context(running.connect(source=attacker))
        until(lambda: running.listener.service_connections <= PLACES - EACH, "a quarter is free")
        for number in range(EACH):
            client = stack.enter_context(running.connect(source=f"127.0.0.{101 + number}"))
            client.login("ALICE")
        assert running.listener.traffic.evicted >= EACH
        assert running.listener.traffic.refused == 0
