"""Host names under a resolver that is silent: local senders are served, and nothing grows without limit."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.model.effects import Resolve
from msmqwire.qm.runtime import resolver
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.resolver import Resolver
from tests.support.patience import happens
from tests.support.peers.raw_peer import PATIENCE_S, PEER, Listener
from tests.support.qm.peer_server import recoverable, send, server_options, serves
from tests.support.running import InThread, served, until

pytestmark = pytest.mark.uvloop

HONEST = "honest.example"


class Names:
    """A resolver of the system that answers `known` names at once and others only when it is released.

    Attributes:
        asked: how often each name was asked for.
        busy: threads that wait.
    """

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {HONEST: [PEER]}
        self.asked: Counter[str] = Counter()
        self.busy = 0
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._system: Any = socket.getaddrinfo

    def getaddrinfo(self, name: str, *arguments: Any, **more: Any) -> list[Any]:
        if name[0].isdigit():  # an address
            return self._system(name, *arguments, **more)
        with self._lock:
            self.asked[name] += 1
            self.busy += 1
        try:
            if name not in self.known:
                self.released.wait(PATIENCE_S)
        finally:
            with self._lock:
                self.busy -= 1
        if not self.known.get(name):
            raise socket.gaierror("no answer")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in self.known[name]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    yield names
    names.released.set()
    until(lambda: not names.busy, "all threads end")


@contextmanager
def server_to(listener: Listener, data: Path, **limits: Any) -> Iterator[InThread]:
    """A server that connects to the port of the listener, whatever the host."""
    options = server_options(data, limits=Limits(**limits))
    with served(replace(options, overrides=AddressOverrides(port=listener.at[1]))) as server:
        yield server


def test_120_silent_names_of_peers_leave_room_for_a_destination(tmp_path: Path, names: Names) -> None:
    with Listener() as listener, server_to(listener, tmp_path / "alpha") as server:
        for number in range(120):
            server.do(lambda running, n=number: running.network.resolve(Resolve(n, f"h{n}.example")))
        until(lambda: names.busy == 8, "half of 16 places are used")
        send(server, *recoverable(b"1"), to=rf"DIRECT=OS:{HONEST}\private$\inbox")
        with listener.accept() as peer:
            assert peer.until("UserMessage").body == b"1"
            peer.acknowledge()
            assert peer.fence() == []
            peer.finish()
        serves(server)
        assert sum(names.asked.values()) == 8 + 1


def test_silent_local_names_time_out_and_free_their_places(tmp_path: Path, names: Names) -> None:
    """Places are free again when a name has taken too long."""
    with Listener() as listener, server_to(listener, tmp_path / "alpha", resolve_s=0.2) as server:
        for number in range(8):
            send(server, *recoverable(b""), to=rf"DIRECT=OS:l{number}.example\private$\inbox")
        send(server, *recoverable(b"1"), to=rf"DIRECT=OS:{HONEST}\private$\inbox")
        with listener.accept() as peer:
            assert peer.until("UserMessage").body == b"1"
            peer.acknowledge()
            assert peer.fence() == []


# -- the resolver alone ---------------------------------------------------------------------------------


class Asking:
    """Questions and their answers, by name."""

    def __init__(self, **limits: Any) -> None:
        self.resolver = Resolver(Limits(**{"resolutions": 4, "resolve_s": 60.0, **limits}))
        self.answers: list[tuple[str, list[str]]] = []

    def ask(self, *names: str, local: bool = False) -> None:
        for name in names:
            self.resolver.resolve(
                name, lambda found, name=name: self.answers.append((name, found)), local=local
            )


def test_names_from_unknown_peers_resolved_at_once_are_bounded(names: Names) -> None:
    async def run() -> None:
        asking = Asking()
        asking.ask(*(f"h{number}" for number in range(10)))
        await happens(lambda: names.busy == 2)
        names.known |= {f"h{number}": ["192.0.2.1"] for number in range(2, 10)}
        asking.ask(HONEST, local=True)
        await happens(lambda: asking.answers == [(HONEST, [PEER])])
        assert sum(names.asked.values()) == 3
        names.released.set()
        await happens(lambda: len(asking.answers) == 11)
        assert Counter(len(found) for _, found in asking.answers) == {0: 2, 1: 9}

    asyncio.run(run())


def test_the_same_name_is_resolved_once(names: Names) -> None:
    async def run() -> None:
        asking = Asking()
        asking.ask("h", "H", "h")
        asking.ask("h", local=True)
        await happens(lambda: names.busy == 1)
        names.known["h"] = ["192.0.2.1"]
        names.released.set()
        await happens(lambda: len(asking.answers) == 4)
        assert asking.answers[-1] == ("h", ["192.0.2.1"])
        assert names.asked == {"h": 1}

    asyncio.run(run())


def test_a_local_name_is_looked_up_before_names_of_peers(names: Names) -> None:
    async def run() -> None:
        asking = Asking()
        asking.ask("a", "b", HONEST)
        await happens(lambda: names.busy == 2)
        assert names.asked[HONEST] == 0
        asking.ask(HONEST, local=True)
        await happens(lambda: asking.answers == [(HONEST, [PEER])] * 2)
        assert names.asked[HONEST] == 1

    asyncio.run(run())


def test_a_failed_name_of_a_peer_is_not_looked_up_again_soon(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        asking = Asking()
        names.known["gone"] = []
        for count in range(1, 4):
            asking.ask("gone")
            await happens(lambda due=count: len(asking.answers) == due)
        assert names.asked["gone"] == 1
        names.known["gone"] = ["192.0.2.1"]
        asking.ask("gone", local=True)
        await happens(lambda: asking.answers[-1] == ("gone", ["192.0.2.1"]))
        asking.ask("gone")
        await happens(lambda: len(asking.answers) == 5)
        assert (asking.answers[-1][1], names.asked["gone"]) == (["192.0.2.1"], 3), "it is there again"
        monkeypatch.setattr(resolver, "FAILED_S", 0.0)
        names.known["gone"] = []
        for count in (6, 7):
            asking.ask("gone")
            await happens(lambda due=count: len(asking.answers) == due)
        assert names.asked["gone"] == 5, "it is forgotten after a time"

    asyncio.run(run())


def test_what_is_remembered_and_what_waits_is_bounded(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "FAILED_MAX", 3)
    monkeypatch.setattr(resolver, "WAITING_MAX", 5)

    async def run() -> None:
        asking = Asking()
        names.known |= {f"gone{number}": [] for number in range(5)}
        for number in range(5):
            asking.ask(f"gone{number}")
            await happens(lambda due=number + 1: len(asking.answers) == due)
        assert len(asking.resolver._failed) == 3
        asking.answers.clear()
        asking.ask(*(f"h{number}" for number in range(20)))
        await happens(lambda: len(asking.answers) == 20 - 2 - 5)
        assert {name for name, _ in asking.answers} == {f"h{number}" for number in range(7, 20)}
        asking.ask(HONEST, local=True)
        await happens(lambda: asking.answers[-1] == (HONEST, [PEER]))

    asyncio.run(run())


def test_unreturned_resolver_threads_are_limited_and_reused(names: Names) -> None:
    async def run() -> None:
        asking = Asking(resolve_s=0.05)
        asking.ask(*(f"h{number}" for number in range(30)))
        await happens(lambda: len(asking.answers) == 4)
        await asyncio.sleep(0.2)  # in which no other name is asked for
        assert (names.busy, len(asking.answers)) == (4, 4), "two places, and as many lost threads besides"
        asking.ask(HONEST, local=True)
        await happens(lambda: asking.answers[-1] == (HONEST, [PEER]))
        names.released.set()
        await happens(lambda: len(asking.answers) == 31)
        assert sum(names.asked.values()) == 31

    asyncio.run(run())


def test_a_name_has_a_bounded_number_of_addresses(names: Names) -> None:
    names.known["many"] = [f"192.0.2.{number}" for number in range(200)]

    async def run() -> None:
        asking = Asking()
        asking.ask("many")
        await happens(lambda: asking.answers)
        assert asking.answers[0][1] == names.known["many"][: resolver.ADDRESSES_MAX]

    asyncio.run(run())
