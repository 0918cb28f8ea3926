"""A queue manager of a run: its core, its disk, its clock, and how it crashes and starts again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar
from uuid import UUID

from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import (
    Connect,
    Disconnect,
    Effect,
    EnlistTransaction,
    ErrorReport,
    HttpRequest,
    HttpResponse,
    ReadCompleted,
    Resolve,
    RpcAnswer,
    RpcFault,
    Send,
    SendDatagram,
    TransactionReply,
)
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.rules.routing import Routes
from msmqwire.qm.sim import invariants
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.hands import Hands
from msmqwire.qm.sim.http_network import HTTP_PORT
from msmqwire.qm.sim.ledger import Ledger, Undo
from msmqwire.qm.sim.network import Network
from msmqwire.qm.sim.plan import NOBODY, START_UTC, Plan, address_of, identifier_of, stray_hop
from msmqwire.qm.sim.protection import Keys
from msmqwire.qm.sim.queue_observer import QueueObserver
from msmqwire.qm.sim.remote_server import RemoteServer
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.store import memory_store
from msmqwire.service.store.changes import Changes

T = TypeVar("T")
QUOTA: Final = 1 << 20
_RETRY_MS: Final = 250
"""A commit that was refused is tried again after this time."""
_STORED: Final = 0.3
"""How likely a commit that a crash interrupts has reached the disk."""
_FUSE_MS: Final = 2_000
"""A crash that waits for effects comes after this time at the latest."""


class Applications(Protocol):
    """The programs that use the queue managers, as far as a node informs them."""

    def completed(self, node: Node, effect: ReadCompleted) -> None:
        """Take the completion of a read that waited."""

    def replied(self, node: Node, reply: TransactionReply) -> None:
        """Take the reply to a transaction coordinator."""

    def enlist(self, node: Node, effect: EnlistTransaction) -> None:
        """Enlist a node in a transaction of a remote reader."""

    def crashed(self, node: Node) -> None:
        """Take note that a node is down."""

    def started(self, node: Node) -> None:
        """Take note that a node is up again."""


@dataclass(slots=True)
class Step:
    """The changes and effects of one call into the core.

    Attributes:
        utc: the time that the core was given, in seconds since 1970-01-01.
        changes: rows to store.
        effects: to carry out once the changes are durable.
        undo: what to undo in the ledger if a crash loses the step.
    """

    utc: int
    changes: Changes
    effects: list[Effect]
    undo: list[Undo]


class Node:
    """A computer with a queue manager, down until it boots.

    Attributes:
        core: None while it is down.
        store: what is durable.
        clock: its time at the start of the run, in seconds since 1970-01-01.
        epoch: how often it was started.
        remote: what it serves to remote readers in its present life.
        refuses_until, unresolved_until, disk_refuses_until, disk_slow_until: faults that last for a time.
        disk_slow_ms: how long a commit takes while the disk is slow.
        decided_utc: the latest time that the core was given in the steps of the commit under way, and in the
            step whose effects are carried out: the clock may be set before the commit is durable.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        ledger: Ledger,
        hands: Hands,
        contents: StoreContents,
        network: Network,
        applications: Applications,
        keys: Keys,
    ) -> None:
        self.name, self.network = name, network
        self._environment, self._ledger, self._contents = environment, ledger, contents
        self._hands = hands
        self._applications, self._keys = applications, keys
        plan = environment.plan
        self.address, self.identifier = address_of(name), identifier_of(name)
        self.clock = START_UTC + plan.clock_offsets[plan.nodes.index(name)]
        self.store = memory_store()
        self.core: Core | None = None
        self.remote = RemoteServer(environment, self, hands)
        self.epoch = self.decided_utc = 0
        self.refuses_until = self.unresolved_until = -1
        self.disk_refuses_until = self.disk_slow_until = -1
        self.disk_slow_ms = 0
        self._booted_at = 0
        self._waiting: deque[Step] = deque()
        self._committing: list[Step] = []
        self._merged = Changes()  # of the steps in `_committing`, while they are not durable
        self._alarm = -1
        self._fuse: int | None = None  # effects until a crash
        self._down_ms = 0

    def __repr__(self) -> str:
        return self.name

    @property
    def utc(self) -> int:
        """The time by its clock, in seconds since 1970-01-01."""
        return self.clock + self._environment.now // 1000

    @property
    def busy(self) -> bool:
        """Whether anything waits for the disk."""
        return bool(self._committing or self._waiting)

    # -- steps ------------------------------------------------------------------------------------------

    def call(self, action: Callable[[Core], T]) -> T | None:
        """Carry out one step: set the time, call something, and take the changes and effects.

        Returns:
            What the action returns; None while the node is down.
        """
        core = self.core
        if core is None:
            return None
        core.at(self._environment.now - self._booted_at, self.utc)
        result = action(core)
        self._finish_step(core)
        return result

    def _finish_step(self, core: Core) -> None:
        invariants.check_step(self.name, core)
        changes, effects = core.take()
        self.remote.decided(effects)
        undo = self._ledger.take_undo(self.name)
        if changes or effects or undo:
            self._waiting.append(Step(core.context.utc, changes, effects, undo))
            self._commit()
        self._set_alarm(core)

    def _set_alarm(self, core: Core) -> None:
        if self.core is not core or core.deadline is None:
            return
        due = core.deadline + self._booted_at
        if due == self._alarm:
            return
        self._alarm = due
        self._environment.after(due - self._environment.now, self._in_this_life(lambda: self._ring(due)))

    def _ring(self, due: int) -> None:
        if due == self._alarm:
            self._alarm = -1
            self.call(lambda core: None)

    def _in_this_life(self, event: Callable[[], None]) -> Callable[[], None]:
        """Return an event that does nothing once the node has gone down."""
        epoch = self.epoch

        def guarded() -> None:
            if self.epoch == epoch and self.core is not None:
                event()

        return guarded

    # -- the disk: effects wait until the changes before them are durable -------------------------------

    def _commit(self) -> None:
        if self._committing or not self._waiting:
            return
        environment = self._environment
        self._gather()
        if not self._merged:
            self._committed()
            return
        delay = environment.rng.choice((0, 1, 2, 8, 30))
        if environment.now < self.disk_slow_until:
            delay = self.disk_slow_ms
        environment.after(delay, self._in_this_life(self._write))

    def _gather(self) -> None:
        """Merge all steps that wait: they become durable together."""
        for step in self._waiting:
            self._merged.add(step.changes)
            self.decided_utc = max(self.decided_utc, step.utc)
            self._committing.append(step)
        self._waiting.clear()

    def _write(self) -> None:
        environment = self._environment
        if environment.now < self.disk_refuses_until:
            environment.counts["refused commits"] += 1
            environment.log(self.name, "the disk refuses a commit")
            self.call(lambda core: core.queues.begin_flow_control())
            self._gather()
            environment.after(_RETRY_MS, self._in_this_life(self._write))
            return
        environment.counts["commits"] += 1
        self._store_merged()
        self._committed()
        self.call(_end_flow_control)

    def _store_merged(self) -> None:
        changes, self._merged = self._merged, Changes()
        self.store.commit(changes)
        self._contents.committed(self, changes)

    def _committed(self) -> None:
        steps, self._committing = self._committing, []
        invariants.check_commit(self.name, self.store)
        epoch = self.epoch
        for step in steps:
            self.decided_utc = step.utc
            for effect in step.effects:
                if self._fuse is not None:
                    self._fuse -= 1
                    if self._fuse < 0:
                        self.crash(self._down_ms)
                if self.epoch != epoch or self.core is None:
                    return
                self._perform(effect)
        self.decided_utc = 0
        self._commit()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send():
                self.network.send(self, effect.connection, effect.data)
            case Connect():
                self.network.connect(self, effect.connection, effect.address)
            case Disconnect():
                self.network.disconnect(self, effect.connection)
            case Resolve():
                self.network.resolve(self, effect.request, effect.host)
            case SendDatagram():
                self.network.datagram(self, effect.address, effect.port, effect.data)
            case HttpRequest():
                self.network.http.request(self, effect.request, effect.url, effect.message)
            case HttpResponse():
                self.network.http.respond(self, effect.request, effect.status)
            case ReadCompleted():
                completed = self._in_this_life(lambda: self._applications.completed(self, effect))
                self._environment.after(0, completed)
            case TransactionReply():
                self._applications.replied(self, effect)
            case RpcAnswer() | RpcFault():
                self.remote.perform(effect)
            case EnlistTransaction():
                self._applications.enlist(self, effect)
            case ErrorReport(text):
                self._environment.log(self.name, f"reports {text}")
                self._environment.counts[f"reports: {text.partition(':')[0]}"] += 1

    def renew_key(self) -> None:
        """Get a new key for the bodies that are sent to this node."""
        self._keys.renew(self.name)
        self.call(lambda core: core.protection.configure(self._keys.configuration(self.name)))

    # -- going down and coming back ---------------------------------------------------------------------

    def boot(self) -> None:
        """Start from what is durable."""
        environment, plan = self._environment, self._environment.plan
        self._booted_at, self._alarm = environment.now, -1
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
        )
        core.remote_read.transacting.coordinated = True
        self.remote = RemoteServer(environment, self, self._hands)
        self.epoch += 1
        core.at(0, self.utc)
        core.context.subscribers.append(QueueObserver(self._ledger, self._hands, self))
        core.srmp.urls.listens(http=HTTP_PORT, https=None)
        core.start()
        self._contents.restarted(self)
        self._finish_step(core)

    def crash_soon(self, effects: int, down_ms: int) -> None:
        """Crash before the effect that is so many from now, or after a while; for 0 at once."""
        self._fuse, self._down_ms = effects, down_ms
        if not effects:
            self.crash(down_ms)
            return
        crash = self._in_this_life(lambda: self.crash(down_ms) if self._fuse is not None else None)
        self._environment.after(_FUSE_MS, crash)

    def crash(self, down_ms: int, *, stored: bool | None = None) -> None:
        """Lose all that is not durable; start again after a time.

        `stored` says whether a commit under way has reached the disk, though nobody was informed; drawn if
        left out.
        """
        if self.core is None:
            return
        under_way = self._committing and self._merged
        if under_way and (self._environment.rng.random() < _STORED if stored is None else stored):
            self._store_merged()
            self._committing = []
        self._environment.log(self.name, f"CRASH, down for {down_ms} ms")
        lost = [undo for step in (*self._committing, *self._waiting) for undo in step.undo]
        self._ledger.roll_back(lost + self._ledger.take_undo(self.name))
        self._go_down(down_ms)

    def restart(self, down_ms: int) -> None:
        """Stop in good order, then start again."""
        if self.core is None:
            return
        self._environment.log(self.name, f"stops, down for {down_ms} ms")
        self._hands.stops(self.name)
        self.call(lambda core: core.stop())
        self._environment.after(2_000, self._in_this_life(lambda: self.crash(down_ms)))

    def _go_down(self, down_ms: int) -> None:
        self.core = None
        self._waiting.clear()
        self._committing, self._merged, self.decided_utc = [], Changes(), 0
        self._fuse = None
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
        self.refuses_until = self.unresolved_until = self.disk_refuses_until = self.disk_slow_until = -1
        self._fuse = None
        self.call(lambda core: core.queues.bring_online())


def _routes(plan: Plan, name: str) -> Routes:
    """Return the fixed routes of a node: by the router, except between it and the others."""
    routes: dict[UUID | None, list[UUID | str]] = {}
    for other in plan.nodes:
        if other != name:
            via_router = plan.router is not None and plan.router not in (name, other)
            routes[identifier_of(other)] = [plan.router if via_router and plan.router else other]
    if name != (hop := stray_hop(plan.nodes, plan.router)):
        routes[NOBODY] = [hop]
    return routes


def _end_flow_control(core: Core) -> None:
    if core.queue_manager.throttled:
        core.queues.end_flow_control()
