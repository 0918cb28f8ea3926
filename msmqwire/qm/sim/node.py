"""A queue manager of a run: its driver, its disk, its clock, its crashes and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from msmqwire.errors import EngineFailed, MsmqError, StoreError, StoreRefused, Unreachable
from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import Effect, EnlistTransaction, RpcAnswer, RpcFault, TransactionReply
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.rules.routing import Routes
from msmqwire.qm.runtime.connection import SessionConnection
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.qm.sim import invariants
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.joined import simulated
from msmqwire.qm.sim.ledger import MessageLedger
from msmqwire.qm.sim.network import Network
from msmqwire.qm.sim.observed_core import ObservedCore
from msmqwire.qm.sim.plan import NOBODY, START_UTC, Plan, address_of, identifier_of, stray_hop
from msmqwire.qm.sim.policies import KeptHandOuts
from msmqwire.qm.sim.protection import Keys
from msmqwire.qm.sim.queue_observer import QueueObserver
from msmqwire.qm.sim.reader_ledger import ReaderLedger
from msmqwire.qm.sim.remote_server import RemoteServer
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.taken import Taken
from msmqwire.qm.sim.transport import VirtualPings, VirtualResolver
from msmqwire.qm.sim.violation import Invariant
from msmqwire.qm.store import memory_store
from msmqwire.service.carrier import Performers
from msmqwire.service.store.changes import Changes
from msmqwire.service.virtual.clock import VirtualClock
from msmqwire.service.virtual.loop import Killed
from msmqwire.service.virtual.process_loop import ProcessLoop
from msmqwire.service.virtual.violation import Violation

T = TypeVar("T")
QUOTA: Final = 1 << 20
_STORED: Final = 0.5
"""The probability that a commit interrupted by a crash has reached the disk."""
_STOP_S: Final = 10.0
"""Seconds that a stop waits for a disk that refuses commits."""
_WRITER: Final = Executor()
"""The executor in place of a thread: `ProcessLoop` does its work."""
_FUSE_MS: Final = 2_000
"""The longest time before a crash that waits for effects."""


class Applications(Protocol):
    """The programs that use the queue managers, for notices of a node."""

    def replied(self, node: Node, reply: TransactionReply) -> None:
        """Take the reply to a transaction coordinator."""

    def enlist(self, node: Node, effect: EnlistTransaction) -> None:
        """Enlist a node in a transaction of a remote reader."""

    def crashed(self, node: Node) -> None:
        """Take note that a node is down."""

    def started(self, node: Node) -> None:
        """Take note that a node is up again."""


class Node:
    """A computer with a queue manager, down until it boots.

    Attributes:
        core: None while it is down.
        store: the durable rows.
        clock: its time at the start of the run, in seconds since 1970-01-01.
        epoch: the number of its starts.
        remote: the server of remote readers in its present process.
        refuses_until, unresolved_until, disk_refuses_until, disk_slow_until, disk_full_until: faults that
            last for a time.
        disk_slow_ms: the time of a commit in a thread while the disk is slow.
        decided_utc: the latest time that the core was given in the turns of the last commit: its clock may
            have been set before that was durable.
        effect_utc: the time that it was given in the step whose effect is carried out.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        ledger: MessageLedger,
        reader_ledger: ReaderLedger,
        contents: StoreContents,
        network: Network,
        applications: Applications,
        keys: Keys,
    ) -> None:
        self.name, self.network = name, network
        self._environment, self._ledger, self._contents = environment, ledger, contents
        self._reader_ledger = reader_ledger
        self._applications, self._keys = applications, keys
        self.loop = environment.loop
        plan = environment.plan
        self.address, self.identifier = address_of(name), identifier_of(name)
        self.clock = START_UTC + plan.clock_offsets[plan.nodes.index(name)]
        self.store = memory_store()
        self.core: Core | None = None
        self.remote = RemoteServer(environment, self, reader_ledger)
        self.epoch = 0
        self._handed_out: dict[int, int] = {}
        self.decided_utc = self.effect_utc = 0
        self.refuses_until = self.unresolved_until = -1
        self.disk_refuses_until = self.disk_slow_until = self.disk_full_until = -1
        self.disk_slow_ms = 0
        self._process: ProcessLoop | None = None
        self._driver: EngineDriver | None = None
        self._guest: ObservedCore | None = None
        self._tcp: TcpNetwork | None = None
        self._stored: Taken | None = None  # the last one
        self._taken: list[Taken] = []  # changes that a crash loses, oldest first
        self._decided: dict[int, int] = {}  # the utc of the steps of effects that are not carried out
        self._fuse: int | None = None  # commits and effects until a crash
        self._down_ms = 0

    def __repr__(self) -> str:
        return self.name

    @property
    def now(self) -> int:
        """Milliseconds since the start of the run."""
        return self._environment.now

    @property
    def utc(self) -> int:
        """The time by its clock, in seconds since 1970-01-01."""
        return self.clock + self._environment.now // 1000

    @property
    def driver(self) -> EngineDriver:
        """The driver of its present process."""
        assert self._driver is not None, f"{self.name} is down"
        return self._driver

    @property
    def busy(self) -> bool:
        """Whether anything waits for the disk."""
        return self._driver is not None and not self._driver.settled

    def call(self, action: Callable[[Core], T]) -> T | None:
        """Call the core as a program does; return None while the node is down."""
        core, guest = self.core, self._guest
        if core is None or guest is None:
            return None
        result = self.driver.call(action, core)
        if self.core is core:
            guest.step_over()
        return result

    def program(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a program at this node, until the node crashes; nothing while it is down."""
        if self._process is None:
            work.close()
            return
        self._process.create_task(work).add_done_callback(self._program_ended)

    def _program_ended(self, program: asyncio.Task[None]) -> None:
        failure = None if program.cancelled() else program.exception()
        if failure is not None and not isinstance(failure, Unreachable):  # the queue manager has stopped
            raise failure

    # -- input and output -------------------------------------------------------------------------------

    def socket(self) -> asyncio.Protocol:
        """Return the queue manager's end of a connection that comes in."""
        assert self._tcp is not None, f"{self.name} is down"
        return SessionConnection(self._tcp, None)

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """A datagram has come."""
        if self.core is not None and self._tcp is not None:
            self._tcp.datagram(data, address, port, request=request)

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """See `Surroundings`."""
        return await self.network.connect(self, factory, host)

    def thread_delays(self) -> tuple[float, float]:
        """See `Surroundings`: the durations of a commit."""
        environment = self._environment
        delay = environment.rng.choice((0, 1, 2, 8, 30))
        if environment.now < self.disk_slow_until:
            delay = self.disk_slow_ms
        before = environment.rng.randrange(delay + 1)
        return before / 1000, (delay - before) / 1000

    def _performers(self, core: Core) -> Performers:
        """The carrier of all effects but those of TCP."""
        joined = {
            kind: perform
            for network in self.network.joined
            for kind, perform in network.performers(self).items()
        }
        return {
            **joined,
            RpcAnswer: self.remote.perform,
            RpcFault: self.remote.perform,
            TransactionReply: lambda effect: self._applications.replied(self, effect),
            EnlistTransaction: lambda effect: self._applications.enlist(self, effect),
        }

    def _until_it_crashes(self, perform: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the function that carries out an effect, unless the node crashes before."""

        def performed(effect: Any) -> None:
            self._burn()
            self.effect_utc = self._decided.pop(id(effect), self.utc)
            perform(effect)

        return performed

    def _burn(self) -> None:
        """Count one more commit or effect. Raises Killed if the node crashes before it."""
        if self._fuse is not None:
            self._fuse -= 1
            if self._fuse < 0:
                self.crash(self._down_ms)
                raise Killed

    # -- the disk: a `Committer` ------------------------------------------------------------------------

    def commit(self, taken: Taken) -> None:
        """Store rows or refuse to, or crash silently before or after that."""
        environment = self._environment
        if environment.now < self.disk_refuses_until:
            environment.counts["refused commits"] += 1
            environment.log(self.name, "the disk refuses a commit")
            raise StoreRefused("the disk refuses", file=self.name)
        if self._fuse == 0 and environment.rng.random() < _STORED:
            self._store(taken)
        self._burn()
        self._store(taken)

    def _store(self, taken: Taken) -> None:
        self._environment.counts["commits"] += 1
        self._stored, self.decided_utc = taken, taken.utc
        self.store.commit(taken.changes)
        self._contents.committed(self, taken.changes)
        if taken in self._taken:
            self._taken.remove(taken)
        invariants.check_commit(self.name, self.store)

    def renew_key(self) -> None:
        """Get a new key for the bodies that are sent to this node."""
        self._keys.renew(self.name)
        self.call(lambda core: core.protection.configure(self._keys.configuration(self.name)))

    # -- going down and coming back ---------------------------------------------------------------------

    def boot(self) -> None:
        """Start from the durable rows."""
        environment, plan = self._environment, self._environment.plan
        self.core = core = Core(
            self.store,
            new_guid=environment.guid,
            computer_name=self.name,
            settings=plan.settings,
            addresses=[self.address],
            routes=_routes(plan, self.name),
            identifier=self.identifier,
            quota=QUOTA,
            remote_read=RemoteReadConfiguration(anonymous=True, pending_s=plan.remote_pending_s),
            security=self._keys.configuration(self.name),
            hand_outs=KeptHandOuts(self._handed_out),
        )
        core.remote_read.transacting.coordinated = True
        self.remote = RemoteServer(environment, self, self._reader_ledger)
        self.epoch += 1
        self._process = process = ProcessLoop(environment.loop, self)
        self._guest = guest = ObservedCore(core, self, self._reader_ledger)
        self._driver = driver = EngineDriver(
            core,
            self,
            guest=guest,
            loop=process,
            clock=VirtualClock(environment.loop, lambda: self.utc, start=environment.now),
            writer=_WRITER if plan.commits_in_thread else None,
        )
        driver.room = VirtualRoom(self)
        driver.broken.add_done_callback(partial(_raise_fault, process))
        self._tcp = TcpNetwork(
            driver, resolver=VirtualResolver(self.network, self), pings=VirtualPings(self.network, self)
        )
        for kind, perform in (*self._tcp.performers.items(), *self._performers(core).items()):
            driver.perform_by(kind, self._until_it_crashes(perform))
        driver.carriers.append(self._tcp)
        core.context.subscribers.append(QueueObserver(self._ledger, self._reader_ledger, self))
        for protocol in simulated():
            protocol.booted(core)

        def restore() -> None:
            core.start()
            self._contents.restarted(self)

        driver.begin(restore)

    def taken(self, core: Core, changes: Changes, utc: int) -> Taken:
        """The changes and effects of a turn have been taken, in which `utc` was the latest time."""
        invariants.check_step(self.name, core)
        taken = Taken(changes, self._ledger.take_undo(self.name), utc)
        self._taken.append(taken)
        return taken

    def durable(self) -> None:
        """The core considers everything taken durable: check that it is."""
        if any(self._taken):
            raise Violation(Invariant.DURABLE, f"{self.name} considers changes durable that are not")
        self._taken.clear()

    def step_over(self, effects: list[Effect], since: int, utc: int) -> None:
        """A call or the action of a timer is over, with these effects; `since` is when it began."""
        for effect in effects:
            self._decided[id(effect)] = utc
        self.remote.decided(effects, since)

    def crash_soon(self, effects: int, down_ms: int) -> None:
        """Crash before a commit or effect to come, by its number, or after a while; for 0 at once."""
        self._fuse, self._down_ms = effects, down_ms
        if not effects:
            self.crash(down_ms)
            return
        epoch = self.epoch

        def crash() -> None:
            if self.epoch == epoch and self._fuse is not None:
                self.crash(down_ms)

        self._environment.after(_FUSE_MS, crash)

    def crash(self, down_ms: int, *, stored: bool = False) -> None:
        """Lose all changes that are not durable; start again after a time.

        With `stored` a commit under way has reached the disk, though no caller learns of it.
        """
        if self.core is None:
            return
        under_way = self.driver.under_way
        if stored and under_way is not None and under_way is not self._stored:
            self._store(under_way)
        self._environment.log(self.name, f"CRASH, down for {down_ms} ms")
        lost = [undo for taken in self._taken for undo in taken.undo]
        self._ledger.roll_back(lost + self._ledger.take_undo(self.name))
        self._go_down(down_ms)

    def restart(self, down_ms: int) -> None:
        """Stop in good order, then start again."""
        if self.core is None or self._process is None:
            return
        self._environment.log(self.name, f"stops, down for {down_ms} ms")
        self._process.create_task(self._stop(self.driver, down_ms))

    async def _stop(self, driver: EngineDriver, down_ms: int) -> None:
        driver.stop_listening()
        try:
            await driver.finish(_STOP_S)
        except (TimeoutError, StoreError):
            driver.abandon()
        except Unreachable:
            return  # it stops already
        await driver.close_carriers()
        self._environment.loop.call_soon(self.crash, down_ms)

    def _go_down(self, down_ms: int) -> None:
        self.core = None
        if self._process is not None:
            self._process.kill()
        self._process = self._driver = self._guest = self._tcp = None
        self._taken, self._fuse = [], None
        self._decided.clear()
        self.network.crashed(self)
        self._applications.crashed(self)
        epoch = self.epoch

        def start() -> None:
            if self.epoch == epoch and self.core is None:
                self._environment.log(self.name, "starts")
                self.boot()
                self._applications.started(self)

        self._environment.after(down_ms, start)

    def end_faults(self) -> None:
        """End all faults of this node."""
        self.refuses_until = self.unresolved_until = -1
        self.disk_refuses_until = self.disk_slow_until = self.disk_full_until = -1
        self._fuse = None
        self.call(lambda core: core.queues.bring_online())


class VirtualRoom:
    """The room on the disk of a node: low as long as it is full."""

    least, plenty, spare = 1, False, 1 << 30

    def __init__(self, node: Node) -> None:
        self._node = node
        self.low = False

    def free(self) -> int:
        """See `Room.free`."""
        return 0 if self.low else 1 << 30

    def look(self, *, tidy: bool = False) -> None:
        """See `Room.look`."""
        self.low = self._node._environment.now < self._node.disk_full_until

    def release(self) -> bool:
        """There is no reserve."""
        return False


def _raise_fault(process: ProcessLoop, broken: asyncio.Future[MsmqError]) -> None:
    """Let a fault in a queue manager that is alive end the run."""
    failure = broken.result()
    if process.alive:
        raise failure.why if isinstance(failure, EngineFailed) else failure


def _routes(plan: Plan, name: str) -> Routes:
    """Return the fixed routes of a node: by the router, except between it and the other nodes."""
    routes: dict[UUID | None, list[UUID | str]] = {}
    for other in plan.nodes:
        if other != name:
            via_router = plan.router is not None and plan.router not in (name, other)
            routes[identifier_of(other)] = [plan.router if via_router and plan.router else other]
    if name != (hop := stray_hop(plan.nodes, plan.router)):
        routes[NOBODY] = [hop]
    return routes
