"""The core of a node as its driver sees it: each step is reported to the books of the run."""

from __future__ import annotations

from typing import Protocol

from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import Effect
from msmqwire.qm.sim.reader_ledger import ReaderLedger
from msmqwire.qm.sim.taken import Taken
from msmqwire.service.store.changes import Changes


class ObservedNode(Protocol):
    """A node as its observed core reports to it."""

    @property
    def name(self) -> str:
        """The name of the node."""

    @property
    def now(self) -> int:
        """Milliseconds since the start of the run."""

    @property
    def utc(self) -> int:
        """The time by its clock, in seconds since 1970-01-01."""

    def step_over(self, effects: list[Effect], since: int, utc: int) -> None:
        """A call or the action of a timer is over, with these effects; `since` is when it began."""

    def taken(self, core: Core, changes: Changes, utc: int) -> Taken:
        """The changes and effects of a turn have been taken, in which `utc` was the latest time."""

    def durable(self) -> None:
        """The core considers everything taken durable."""


class ObservedCore:
    """The guest of the driver: a core whose steps are reported to the books of the run."""

    def __init__(self, core: Core, node: ObservedNode, reader_ledger: ReaderLedger) -> None:
        self._core, self._node, self._reader_ledger = core, node, reader_ledger
        self._seen = 0  # effects of steps that are over
        self._since, self._utc = node.now, node.utc  # when the present step began
        self._latest_utc = 0  # since something was taken last

    @property
    def deadline(self) -> int | None:
        return self._core.deadline

    @property
    def arrivals(self) -> int:
        return self._core.arrivals

    def step_over(self) -> None:
        """A call is over, or the action of a timer."""
        effects = self._core.context.effects
        self._node.step_over(effects[self._seen :], self._since, self._utc)
        self._seen, self._since, self._utc = len(effects), self._node.now, self._node.utc

    def at(self, now_ms: int, utc: int) -> None:
        """A call begins, so that the one before is over."""
        self.step_over()
        self._latest_utc = max(self._latest_utc, utc)
        self._core.at(now_ms, utc)

    def take(self) -> tuple[Taken, list[Effect]]:
        """The turn is over."""
        self.step_over()
        changes, effects = self._core.take()
        taken = self._node.taken(self._core, changes, self._latest_utc)
        self._seen = self._latest_utc = 0
        return taken, effects

    def committed(self) -> None:
        """Changes that were taken are durable."""
        self._node.durable()
        self._core.committed()

    def throttle(self, *, on: bool) -> None:
        """See `Guest.throttle`."""
        self._core.throttle(on=on)

    def acknowledge_received(self) -> None:
        """See `Guest.acknowledge_received`."""
        self._core.acknowledge_received()

    def stop(self) -> None:
        """See `Guest.stop`."""
        self._reader_ledger.stops(self._node.name)
        self._core.stop()
