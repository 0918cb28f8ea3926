"""Datagrams with a forged source at the ping port: no loop, no reflection, no flood."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msmqwire.ping import PING_PORT
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.pings import REMEMBERED_MAX, REPEAT_S, PingGate
from tests.support import handmade as h
from tests.support.patience import limit
from tests.support.running import InThread, options, served, until

BETA = "127.0.0.32"


@contextmanager
def pair(tmp_path: Path, **limits: int) -> Iterator[tuple[InThread, InThread]]:
    """Two servers at ping ports that neither knows to be one."""
    made = Limits(**limits)
    with (
        served(options(tmp_path / "alpha", limits=made)) as alpha,
        served(options(tmp_path / "beta", address=BETA, name="beta", limits=made)) as beta,
    ):
        yield alpha, beta


def forge(server: InThread, data: bytes, source: tuple[str, int]) -> None:
    """Let a datagram arrive at the ping port as if it came from `source`."""
    server.do(lambda running: running.network.datagram(data, *source, request=True))


def received(server: InThread) -> int:
    count: int = server.do(lambda running: running.network.traffic.datagrams_received)
    return count


def answered(server: InThread) -> int:
    count: int = server.do(lambda running: running.network.traffic.pings_answered)
    return count


@contextmanager
def client(address: str = "127.0.0.33", port: int = 0) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((address, port))
        udp.settimeout(limit(10))
        yield udp


def fence(server: InThread, cookie: int = 0xFE0CE) -> None:
    """Ping and wait for the answer: what was sent before has been handled."""
    with client("127.0.1.34") as udp:
        udp.sendto(h.ping(cookie=cookie), (server.address, server.ping_port))
        assert udp.recv(100)[4:8] == cookie.to_bytes(4, "little")


def settle(*servers: InThread) -> None:
    """Wait until datagrams between servers that answer each other have stopped."""
    before: list[int] = []

    def quiet() -> bool:
        before.append(sum(map(received, servers)))
        assert before[-1] < 1_000, "they answer each other without end"
        return len(before) > 5 and before[-1] == before[-5]

    until(quiet, "no datagram moves any more")


def test_two_servers_do_not_answer_each_other_without_end(tmp_path: Path) -> None:
    with pair(tmp_path) as (alpha, beta):
        for cookie in range(1, 21):
            forge(alpha, h.ping(cookie=cookie), (beta.address, beta.ping_port))
        settle(alpha, beta)
        assert received(alpha) <= 20 + 20, (
            "beta answers what it takes for a request, alpha that, beta no more"
        )
        assert received(beta) <= 2 * 20
        fence(alpha)
        fence(beta)


def test_a_ping_port_is_never_answered(tmp_path: Path) -> None:
    with (
        client("127.0.0.33", PING_PORT) as usual,
        client() as configured,
        served(
            options(tmp_path / "alpha", overrides=AddressOverrides(ping_port=configured.getsockname()[1]))
        ) as alpha,
        client(port=alpha.ping_port) as own,
    ):
        sockets = (usual, configured, own)
        for udp in sockets:
            udp.sendto(h.ping(cookie=7), (alpha.address, alpha.ping_port))
        fence(alpha)
        assert (received(alpha), answered(alpha)) == (4, 1)
        for udp in sockets:
            udp.settimeout(0)
            with pytest.raises(BlockingIOError):
                udp.recv(100)


def test_a_server_does_not_answer_itself(tmp_path: Path) -> None:
    with served(options(tmp_path / "alpha")) as alpha:
        forge(alpha, h.ping(cookie=7), (alpha.address, alpha.ping_port))
        fence(alpha)
        assert (received(alpha), answered(alpha)) == (2, 1)


def test_what_another_service_returns_is_not_answered(tmp_path: Path) -> None:
    """As the echo service does, which returns a response from a port that is not a ping port."""
    with served(options(tmp_path / "alpha")) as alpha, client() as echo:
        echo.sendto(h.ping(cookie=7), (alpha.address, alpha.ping_port))
        echo.sendto(echo.recv(100), (alpha.address, alpha.ping_port))
        fence(alpha)
        assert (received(alpha), answered(alpha)) == (3, 2)


def test_a_response_is_not_answered(tmp_path: Path) -> None:
    with served(options(tmp_path / "alpha")) as alpha, client() as other:
        other.sendto(h.ping(flags=2, cookie=7), (alpha.address, alpha.ping_port))
        fence(alpha)
        assert answered(alpha) == 1


def test_one_request_gets_one_response(tmp_path: Path) -> None:
    """A cookie names a request, MQQB-3.1.1.3-18: the same one again is a copy of it, or a loop."""
    with served(options(tmp_path / "alpha")) as alpha, client() as other:
        for _ in range(5):
            other.sendto(h.ping(cookie=7), (alpha.address, alpha.ping_port))
        other.sendto(h.ping(cookie=8), (alpha.address, alpha.ping_port))
        assert [other.recv(100)[4] for _ in range(2)] == [7, 8]
        assert answered(alpha) == 2


def test_one_network_and_all_have_so_many_answers_a_second(tmp_path: Path) -> None:
    """More than one second may pass in between on a loaded machine: bounds, not numbers."""
    limits = Limits(pings=60, pings_per_network=20)
    with served(options(tmp_path / "alpha", limits=limits)) as alpha:
        for number in range(200):
            forge(alpha, h.ping(cookie=number), ("192.0.2.1", 4000))
        assert 20 <= answered(alpha) < 100
        assert received(alpha) == 200


def test_the_gate_counts_by_network_and_second() -> None:
    gate = PingGate(Limits(pings=60, pings_per_network=20))

    def admitted(sources: list[str], now: float) -> int:
        return sum(
            gate.admits(h.ping(cookie=number), source, 4000, now) for number, source in enumerate(sources)
        )

    assert admitted([f"192.0.2.{n}" for n in range(50)], 5.0) == 20, "a /24 is one network"
    assert admitted([f"2001:db8::{n:x}" for n in range(50)], 5.1) == 20, "a /64 is one network"
    assert admitted([f"2001:db8:0:{n:x}::1" for n in range(50)], 5.2) == 20, "60 in all"
    assert admitted(["203.0.113.1"], 5.99) == 0
    assert admitted([f"192.0.2.{n}" for n in range(50, 100)], 6.0) == 20, "the next second"


def test_all_the_loopback_is_one_network() -> None:
    """Any user of this computer has 65,536 networks of 24 bits there."""
    gate = PingGate(Limits(pings=60, pings_per_network=20))
    sources = [*(f"127.0.{number}.1" for number in range(40)), "::1"]
    admitted = [gate.admits(h.ping(cookie=n), source, 4000, 1.0) for n, source in enumerate(sources)]
    assert sum(admitted) == 20
    assert gate.admits(h.ping(cookie=99), "192.0.2.1", 4000, 1.0)


def test_the_gate_remembers_a_bounded_number_of_requests() -> None:
    gate = PingGate(Limits(pings=1 << 30, pings_per_network=1 << 30))
    for number in range(3 * REMEMBERED_MAX):
        assert gate.admits(h.ping(cookie=number), "192.0.2.1", 4000, 0.0)
    assert gate.remembered == REMEMBERED_MAX
    last = h.ping(cookie=3 * REMEMBERED_MAX - 1)
    assert not gate.admits(last, "192.0.2.1", 4000, REPEAT_S - 1)
    assert not gate.admits(last, "192.0.2.1", 4000, 2 * REPEAT_S - 2), "a loop that goes on is not forgotten"
    assert gate.admits(last, "192.0.2.1", 4000, 3 * REPEAT_S - 1)
    assert gate.remembered == 1, "what is old is forgotten"


def test_a_response_is_no_longer_than_its_request(tmp_path: Path) -> None:
    with served(options(tmp_path / "alpha")) as alpha, client() as other:
        for padded in (h.ping(cookie=1) + bytes(1000), h.ping(cookie=2)[:20]):
            other.sendto(padded, (alpha.address, alpha.ping_port))
        other.sendto(h.ping(cookie=3), (alpha.address, alpha.ping_port))
        response = other.recv(2000)
        assert (len(response), response[4]) == (24, 3)


def test_other_datagrams_use_up_nothing() -> None:
    gate = PingGate(Limits(pings=2, pings_per_network=2))
    for data in (b"", bytes(24), h.ping()[:23], h.ping() + b"\0", bytes(60_000), h.ping(signature=1)):
        for _ in range(5):
            assert gate.admits(data, "192.0.2.1", 4000, 1.0), "the engine does not answer it"
    assert gate.remembered == 0
    assert [gate.admits(h.ping(cookie=n), "192.0.2.1", 4000, 1.0) for n in range(3)] == [True, True, False]
    assert not gate.admits(h.ping(cookie=9), "198.51.100.1", 0, 5.0), "nobody sends from port 0"
