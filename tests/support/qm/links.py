"""Stations that record the reports of a network: over a simulated network and over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import permutations
from types import SimpleNamespace
from typing import Any, Final, Protocol
from unittest.mock import patch

from msmqwire.qm.model.effects import Connect, Effect, Send
from msmqwire.qm.model.refusals import Refusals
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.qm.sim.node import Node
from msmqwire.qm.sim.plan import Plan
from msmqwire.qm.sim.transport import VirtualPings, VirtualResolver
from msmqwire.qm.sim.world import World
from msmqwire.qm.store import memory_store
from msmqwire.service.store.changes import Changes
from msmqwire.service.virtual.clock import VirtualClock
from msmqwire.service.virtual.process_loop import ProcessLoop
from tests.support.patience import happens

NAMES: Final = ("alpha", "beta", "gamma")
PATIENCE_MS: Final = 600_000
"""Milliseconds of patience in virtual time."""
FENCE: Final = 1_000_000
UNKNOWN: Final = "nowhere.invalid"


class Recorder:
    """Records, in place of an engine, everything that a network reports.

    Attributes:
        events: the name of each event and its arguments, in order.
    """

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self._numbers = 0

    def next_connection(self) -> int:
        self._numbers += 1
        return self._numbers

    def accepted(self, connection: int, address: str) -> None:
        self.events.append(("accepted", connection, address))

    def connected(self, connection: int) -> None:
        self.events.append(("connected", connection))

    def connect_failed(self, connection: int, status: object, detail: str = "") -> None:
        self.events.append(("connect_failed", connection, status))

    def received(self, connection: int, data: bytes) -> None:
        self.events.append(("received", connection, data))

    def has_begun(self, connection: int) -> bool:
        """Any bytes begin a session here."""
        return self.data(connection) != b""

    def buffered(self, connection: int) -> int:
        return 0

    def disconnected(self, connection: int) -> None:
        self.events.append(("disconnected", connection))

    def resolved(self, request: int, addresses: list[str]) -> None:
        self.events.append(("resolved", request, list(addresses)))

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        self.events.append(("datagram", data, address, port, request))

    # -- queries by tests -------------------------------------------------------------------------------

    def all(self, event: str) -> list[tuple[Any, ...]]:
        """The arguments of each event of a kind."""
        return [entry[1:] for entry in self.events if entry[0] == event]

    def of(self, connection: int) -> list[str]:
        """The events of a connection; consecutive chunks of bytes count as one."""
        names: list[str] = []
        for event, number, *_ in self.events:
            concerns = event not in ("resolved", "datagram") and number == connection
            if concerns and not (event == "received" and names[-1:] == ["received"]):
                names.append(event)
        return names

    def having(self, data: bytes) -> list[int]:
        """The connections over which exactly these bytes were received."""
        return [number for number, _ in self.all("accepted") if self.data(number) == data]

    def data(self, connection: int) -> bytes:
        """All bytes received over a connection."""
        return b"".join(data for number, data in self.all("received") if number == connection)


class Core:
    """As much of a core as an engine driver and the simulated network need."""

    deadline = None

    def __init__(self) -> None:
        self.binary = Recorder()
        self.effects: list[Effect] = []
        self.context = SimpleNamespace(now=0, refusals=Refusals())
        self.messages = SimpleNamespace(pool=SimpleNamespace(known=frozenset[str]()))

    def at(self, now_ms: int, utc: int) -> None:
        """No timers."""

    def take(self) -> tuple[Changes, list[Effect]]:
        effects, self.effects = self.effects, []
        return Changes(), effects

    def committed(self) -> None:
        """Nothing depends on it."""


class Station(Protocol):
    """One computer.

    Attributes:
        name, address: name and address of the computer.
        engine: the reports to it.
        ping_port: the port for ping requests.
    """

    name: str
    address: str
    engine: Recorder

    def perform(self, *effects: Effect) -> None:
        """Perform effects."""

    def die(self) -> None:
        """Disappear without closing anything."""


class Links:
    """Three stations and the network between them."""

    stations: Mapping[str, Any]
    ping_port: int

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Let time pass until a condition holds."""
        raise NotImplementedError

    def settle(self) -> None:
        """Let everything in transit arrive."""
        raise NotImplementedError

    def at_once(self, *work: tuple[Any, tuple[Effect, ...]]) -> None:
        """Make several stations perform effects at the same time."""
        raise NotImplementedError

    def connect(self, first: Any, second: Any) -> tuple[int, int]:
        """Connect one station to another; return the number of the connection at each."""
        number, accepted_before = first.engine.next_connection(), len(second.engine.all("accepted"))
        first.perform(Connect(number, second.address, second.name))
        self.until(lambda: len(second.engine.all("accepted")) > accepted_before, "a connection is accepted")
        self.until(lambda: (number,) in first.engine.all("connected"), "the connection is reported")
        return number, second.engine.all("accepted")[accepted_before][0]


# -- simulated ------------------------------------------------------------------------------------------


class SimStation(Node):
    """A node with a recorder."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(
            world.environment,
            name,
            world.ledger,
            world.reader_ledger,
            world.contents,
            world.network,
            world.workload,
            world.keys,
        )
        self.core = core = Core()  # type: ignore[assignment]
        self.engine: Recorder = core.binary
        self._process = ProcessLoop(world.environment.loop, self)
        self._driver = EngineDriver(
            core,
            memory_store(),
            loop=self._process,
            clock=VirtualClock(world.environment.loop, lambda: self.utc),
        )
        self._tcp = TcpNetwork(
            self._driver,
            resolver=VirtualResolver(world.network, self),
            pings=VirtualPings(world.network, self),
        )
        self._driver.register(self._tcp)

    def perform(self, *effects: Effect) -> None:
        self.driver.call(self.core.effects.extend, effects)  # type: ignore[union-attr]

    def die(self) -> None:
        assert self._process is not None
        self.core = None
        self._process.kill()
        self.network.crashed(self)


class SimLinks(Links):
    """The network of simulations, in virtual time."""

    ping_port = 3527

    def __init__(self, seed: int) -> None:
        self._world = World(Plan(seed, NAMES, Settings(), (0, 0, 0), None, 0.5, 0.0, ()))
        self.stations = {name: SimStation(self._world, name) for name in NAMES}
        self._world.nodes.update(self.stations)

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = self._world.environment.now + PATIENCE_MS
        while not condition():
            assert self._world.environment.now < end, f"in vain: {what}"
            self._world.environment.run_until(self._world.environment.now + 1)

    def settle(self) -> None:
        self._world.environment.run_until(self._world.environment.now + 2 * 60_000)

    def at_once(self, *work: tuple[Any, tuple[Effect, ...]]) -> None:
        for station, effects in work:
            station.perform(*effects)


# -- sockets --------------------------------------------------------------------------------------------


class TcpStation:
    """An engine driver and its sockets, with a recorder in place of the queue manager."""

    def __init__(
        self, name: str, address: str, loop: asyncio.AbstractEventLoop, overrides: AddressOverrides
    ) -> None:
        self.name, self.address, self._loop = name, address, loop
        self.core = Core()
        self.engine = self.core.binary
        self.driver = EngineDriver(self.core, memory_store())  # type: ignore[arg-type]
        self.network = TcpNetwork(self.driver, overrides=overrides, limits=Limits(connect_s=60.0))
        self.driver.register(self.network)

    def order(self, *effects: Effect) -> None:
        """Queue effects for the end of this turn of the loop."""
        self.driver.call(self.core.effects.extend, effects)

    def perform(self, *effects: Effect) -> None:
        async def act() -> None:
            self.order(*effects)
            await self.driver.durable()

        self._loop.run_until_complete(act())

    def die(self) -> None:
        async def act() -> None:
            self.network.stop_listening()
            for connection in list(self.network.connections.values()):
                transport = connection._transport
                assert transport is not None
                transport.abort()

        self._loop.run_until_complete(act())


class TcpLinks(Links):
    """Real sockets, all in one loop."""

    def __init__(self, addresses: tuple[str, ...] = ("127.0.0.41", "127.0.0.42", "127.0.0.43")) -> None:
        self.loop = asyncio.new_event_loop()
        self.errors: list[Any] = []
        self._fences = 0
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))
        self._addresses = addresses
        self.loop.run_until_complete(self._start())

    async def _start(self) -> None:
        hosts: dict[str, tuple[str, int | None]] = {}
        while True:
            self.ping_port = 0
            self.stations = {}
            try:
                for name, address in zip(NAMES, self._addresses, strict=True):
                    await self._add(name, address, hosts)
            except OSError:  # the first port is in use at another address
                await self._end()
            else:
                return

    async def _add(self, name: str, address: str, hosts: dict[str, tuple[str, int | None]]) -> None:
        station = TcpStation(
            name, address, self.loop, AddressOverrides(hosts=hosts, ping_port=self.ping_port)
        )
        self.stations = {**self.stations, name: station}
        port = await station.network.listen(address, 0)
        hosts[name] = address, port
        port = await station.network.answer_pings(address, self.ping_port)
        if not self.ping_port:
            self.ping_port = port
            station.network._overrides = AddressOverrides(hosts=hosts, ping_port=port)

    def until(self, condition: Callable[[], object], what: str) -> None:
        self.loop.run_until_complete(happens(condition, what))

    def settle(self) -> None:
        """Send bytes both ways between all stations: what was in transit arrives before them."""
        alive = [station for station in self.stations.values() if station.network.is_listening]
        for first, second in permutations(alive, 2):
            self._fences += 1
            number, text = FENCE + self._fences, b"fence %d" % self._fences
            first.perform(Connect(number, second.address, second.name))
            self.until(lambda f=first, n=number: f.engine.of(n), "the connection of a fence is reported")
            first.perform(Send(number, text))
            self.until(lambda s=second, t=text: s.engine.having(t), "a fence arrives")
            second.perform(Send(second.engine.having(text)[0], text))
            self.until(lambda f=first, n=number, t=text: f.engine.data(n) == t, "a fence is returned")
        self.until(
            lambda: not any(s.network._tasks for s in self.stations.values()), "connection attempts end"
        )

    def at_once(self, *work: tuple[Any, tuple[Effect, ...]]) -> None:
        async def act() -> None:
            for station, effects in work:
                station.order(*effects)
            for station, _ in work:
                await station.driver.durable()

        self.loop.run_until_complete(act())

    async def _end(self) -> None:
        for station in self.stations.values():
            await station.network.close()

    def close(self) -> None:
        """Close the network and the loop."""
        self.loop.run_until_complete(self._end())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        assert self.errors == []


class Deaf:
    """A listener that ignores all packets: these stations do not send packets."""

    def __init__(self, *args: object) -> None:
        pass

    def sent(self, data: bytes, opposite: Deaf) -> None:
        pass


@contextmanager
def simulated(seed: int = 1) -> Iterator[Links]:
    """Links over a simulated network."""
    with patch("msmqwire.qm.sim.network.PacketObserver", Deaf):
        yield SimLinks(seed)


@contextmanager
def sockets() -> Iterator[Links]:
    """Links over TCP and UDP."""
    links = TcpLinks()
    with contextlib.closing(links):
        yield links


__all__ = ["UNKNOWN", "Links", "Recorder", "Station", "TcpLinks", "simulated", "sockets"]
