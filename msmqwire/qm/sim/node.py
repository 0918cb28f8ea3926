"""A queue manager of a run: its core, its disk, its clock, and how it goes down and comes back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from msmqwire.qm.core import Core
from msmqwire.qm.model.changes import Changes
from msmqwire.qm.model.effects import (
    Connect,
    Disconnect,
    Effect,
    ReadCompleted,
    Resolve,
    Send,
    SendDatagram,
    TransactionReply,
)
from msmqwire.qm.sim import invariants
from msmqwire.qm.sim.ledger import Note, Watcher
from msmqwire.qm.sim.plan import NAMES
from msmqwire.qm.store.memory import MemoryStore

if TYPE_CHECKING:
    from msmqwire.qm.sim.world import World

T = TypeVar("T")
UTC: Final = 1_700_000_000
"""Seconds since 1970-01-01 when every run begins."""
QUOTA: Final = 1 << 20
_RETRY_MS: Final = 250
"""A commit that was refused is tried again after this time."""
_FUSE_MS: Final = 2_000
"""A crash that waits for effects comes after this time at the latest."""


@dataclass(slots=True)
class Step:
    """What one call into the core has changed and wants done, and what it means for messages."""

    number: int
    utc: int
    changes: Changes
    effects: list[Effect]
    notes: list[Note]


class Node:
    """One computer with a queue manager.

    Attributes:
        core: None while it is down.
        store: what is durable.
        epoch: how often it was started.
        steps: how many steps there were, over all its lives.
        refuses_until, unresolved_until, disk_refuses_until, disk_slow_until: faults that last for a time.
        notes: what the current step means for messages, of the ledger.
        decided_utc: the latest time that a step of the commit under way was told: its clock may be another
            by the time the commit is durable.
    """

    def __init__(self, world: World, name: str, clock: int) -> None:
        self.world, self.name = world, name
        number = NAMES.index(name)
        self.address = f"10.0.0.{number + 1}"
        self.identifier = UUID(int=0xA0 + number)
        self.clock = UTC + clock
        self.store = MemoryStore()
        self.core: Core | None = None
        self.epoch = self.steps = self._booted = self.decided_utc = 0
        self.refuses_until = self.unresolved_until = -1
        self.disk_refuses_until = self.disk_slow_until = -1
        self.disk_slow_ms = 0
        self.notes: list[Note] = []
        self._waiting: deque[Step] = deque()
        self._committing: list[Step] = []
        self._merged = Changes()
        self._alarm = -1
        self._fuse: int | None = None
        self._down_ms = 0

    def __repr__(self) -> str:
        return self.name

    @property
    def utc(self) -> int:
        """What its clock tells."""
        return self.clock + self.world.now // 1000

    @property
    def busy(self) -> bool:
        """Whether anything waits for the disk."""
        return bool(self._committing or self._waiting)

    # -- steps ------------------------------------------------------------------------------------------

    def call(self, action: Callable[[Core], T]) -> T | None:
        """One step: tell the time, call something, and take what came of it. None while it is down."""
        core = self.core
        if core is None:
            return None
        core.at(self.world.now - self._booted, self.utc)
        result = action(core)
        self._stepped(core)
        return result

    def _stepped(self, core: Core) -> None:
        invariants.after_a_step(self, core)
        changes, effects = core.take()
        self.steps += 1
        notes, self.notes = self.notes, []
        if changes or effects or notes:
            self._waiting.append(Step(self.steps, core.context.utc, changes, effects, notes))
            self._commit()
        self._set_alarm(core)

    def _set_alarm(self, core: Core) -> None:
        if self.core is not core or core.deadline is None:
            return
        due = core.deadline + self._booted
        if due == self._alarm:
            return
        self._alarm = due
        self.world.after(due - self.world.now, self._of_this_life(lambda: self._ring(due)))

    def _ring(self, due: int) -> None:
        if due == self._alarm:
            self._alarm = -1
            self.call(lambda core: None)

    def _of_this_life(self, event: Callable[[], None]) -> Callable[[], None]:
        epoch = self.epoch

        def still() -> None:
            if self.epoch == epoch and self.core is not None:
                event()

        return still

    # -- the disk: effects wait until the changes before them are durable -------------------------------

    def _commit(self) -> None:
        if self._committing or not self._waiting:
            return
        world = self.world
        self._gather()
        if not self._merged:
            self._committed()
            return
        delay = world.rng.choice((0, 1, 2, 8, 30))
        if world.now < self.disk_slow_until:
            delay = self.disk_slow_ms
        world.after(delay, self._of_this_life(self._write))

    def _gather(self) -> None:
        """All steps that wait become durable together."""
        for step in self._waiting:
            self._merged.add(step.changes)
            self.decided_utc = max(self.decided_utc, step.utc)
            self._committing.append(step)
        self._waiting.clear()

    def _write(self) -> None:
        world = self.world
        if world.now < self.disk_refuses_until:
            world.counts["refused commits"] += 1
            world.tell(self.name, "the disk refuses a commit")
            self.call(lambda core: core.queues.begin_flow_control())
            self._gather()
            world.after(_RETRY_MS, self._of_this_life(self._write))
            return
        world.counts["commits"] += 1
        changes, self._merged = self._merged, Changes()
        self.store.commit(changes)
        world.ledger.stored(self, changes)
        self._committed()
        self.call(_end_flow_control)

    def _committed(self) -> None:
        steps, self._committing, self.decided_utc = self._committing, [], 0
        for step in steps:
            self.world.ledger.durable(self, step.notes)
        invariants.after_a_commit(self)
        epoch = self.epoch
        for step in steps:
            for effect in step.effects:
                if self._fuse is not None:
                    self._fuse -= 1
                    if self._fuse < 0:
                        self.crash(self._down_ms)
                if self.epoch != epoch or self.core is None:
                    return
                self._perform(effect)
        self._commit()

    def _perform(self, effect: Effect) -> None:
        world = self.world
        match effect:
            case Send():
                world.network.send(self, effect.connection, effect.data)
            case Connect():
                world.network.connect(self, effect.connection, effect.address)
            case Disconnect():
                world.network.disconnect(self, effect.connection)
            case Resolve():
                world.network.resolve(self, effect.request, effect.host)
            case SendDatagram():
                world.network.datagram(self, effect.address, effect.port, effect.data)
            case ReadCompleted():
                world.after(0, self._of_this_life(lambda: world.workload.completed(self, effect)))
            case TransactionReply():
                world.workload.replied(self, effect)

    # -- going down and coming back ---------------------------------------------------------------------

    def boot(self) -> None:
        """Start, from what is durable."""
        world = self.world
        self._booted, self._alarm = world.now, -1
        self.core = core = Core(
            self.store,
            new_guid=world.guid,
            computer_name=self.name,
            settings=world.plan.settings,
            addresses=[self.address],
            routes=world.workload.routes(self),
            identifier=self.identifier,
            quota=QUOTA,
        )
        self.epoch += 1
        core.at(0, self.utc)
        core.context.subscribers.append(Watcher(world.ledger, self))
        core.start()
        world.ledger.restarted(self, core)
        self._stepped(core)

    def crash_soon(self, effects: int, down_ms: int) -> None:
        """Go down before an effect, this many from now, or after a while."""
        self._fuse, self._down_ms = effects, down_ms
        if not effects:
            self.crash(down_ms)
            return
        fuse_of = self._of_this_life(lambda: self.crash(down_ms) if self._fuse is not None else None)
        self.world.after(_FUSE_MS, fuse_of)

    def crash(self, down_ms: int) -> None:
        """Lose all that is not durable; come back after a time."""
        if self.core is None:
            return
        world = self.world
        if self._committing and self._merged and world.rng.random() < 0.3:
            # The commit has reached the disk, but nobody knows yet.
            changes, self._merged = self._merged, Changes()
            self.store.commit(changes)
            world.ledger.stored(self, changes)
            for step in self._committing:
                world.ledger.durable(self, step.notes)
            self._committing = []
        world.tell(self.name, f"CRASH, down for {down_ms} ms")
        lost = [note for step in (*self._committing, *self._waiting) for note in step.notes]
        world.ledger.undone(self, lost + self.notes)
        self._go_down(down_ms)

    def restart(self, down_ms: int) -> None:
        """Stop in good order, then start."""
        if self.core is None:
            return
        self.world.tell(self.name, f"stops, down for {down_ms} ms")
        self.call(lambda core: core.stop())
        self.world.after(2_000, self._of_this_life(lambda: self.crash(down_ms)))

    def _go_down(self, down_ms: int) -> None:
        world = self.world
        self.core = None
        self._waiting.clear()
        self._committing, self._merged, self.notes, self.decided_utc = [], Changes(), [], 0
        self._fuse = None
        world.network.down(self)
        world.workload.down(self)
        epoch = self.epoch

        def up() -> None:
            if self.epoch == epoch and self.core is None:
                world.tell(self.name, "starts")
                self.boot()
                world.workload.up(self)

        world.after(down_ms, up)

    def calm(self) -> None:
        """All faults are over."""
        self.refuses_until = self.unresolved_until = self.disk_refuses_until = self.disk_slow_until = -1
        self._fuse = None
        self.call(lambda core: core.queues.bring_online())


def _end_flow_control(core: Core) -> None:
    if core.queue_manager.throttled:
        core.queues.end_flow_control()
