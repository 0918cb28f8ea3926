"""One run: virtual time, what happens in it, and how it ended."""

from __future__ import annotations

import heapq
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import BinaryIO, Final
from uuid import UUID

from msmqwire.qm.sim import invariants
from msmqwire.qm.sim.capture import Capture
from msmqwire.qm.sim.ledger import Ledger
from msmqwire.qm.sim.network import Network
from msmqwire.qm.sim.node import Node
from msmqwire.qm.sim.plan import BUSY_MS, FAULTS, Plan
from msmqwire.qm.sim.story import Story
from msmqwire.qm.sim.violation import Violated
from msmqwire.qm.sim.workload import Workload

PREPARED_MS: Final = 100
"""The plan begins when the queues are there, and durable."""
CALM_MS: Final = BUSY_MS + 40_000
"""When faults have ended."""
SETTLE_MS: Final = 900_000
"""Within this time after the end of all faults everything must have come to rest."""
REST_MS: Final = 3_000
_STEPS_MAX: Final = 60_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        plan: what was run.
        violation: the invariant that did not hold; None when all did.
        counts: what happened how often.
        story: what happened, if it was wanted.
    """

    plan: Plan
    violation: Violated | None
    counts: Counter[str]
    story: Story


class World:
    """The time, the chance, and everything in it.

    Attributes:
        now: milliseconds since the start.
        rng: all that is left to chance.
        calm: whether the faults are over.
        counts: what happened how often.
        capture: takes what goes over the network, if that is wanted.
    """

    def __init__(self, plan: Plan, *, story: bool = False, capture: BinaryIO | None = None) -> None:
        self.plan = plan
        self.capture = Capture(capture) if capture else None
        self.now = 0
        self.calm = False
        self.rng = Random(f"run {plan.seed}")
        self.counts: Counter[str] = Counter()
        self.story = Story(story)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self.ledger = Ledger(self)
        self.network = Network(self)
        self.nodes = {
            name: Node(self, name, clock) for name, clock in zip(plan.nodes, plan.clocks, strict=True)
        }
        self.workload = Workload(self)

    def guid(self) -> UUID:
        """A GUID that there is nowhere else."""
        return UUID(int=self.rng.getrandbits(128))

    def after(self, delay: int, event: Callable[[], None]) -> None:
        """Have something happen after so many milliseconds."""
        self._count += 1
        heapq.heappush(self._events, (self.now + max(delay, 0), self._count, event))

    def tell(self, node: str, text: str, other: str = "") -> None:
        """A line of the story."""
        if self.story.wanted:
            self.story.add(self.now, node, text, other)

    # -- the run ----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run the plan to its end."""
        violation = None
        try:
            self._run()
        except Violated as found:
            violation = found
        except Exception as error:  # of the engine or of the rules: nothing may be raised there
            place = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno})"
            violation = Violated("no errors", what)
            violation.__cause__ = error
        if violation is not None:
            self.tell("", f"VIOLATED {violation}")
        return Outcome(self.plan, violation, self.counts, self.story)

    def _run(self) -> None:
        for node in self.nodes.values():
            node.boot()
        self.workload.prepare()
        self._until(PREPARED_MS)
        for item in self.plan.items:
            self.after(item.at, self.workload.action(item))
            if item.what in FAULTS:
                self.counts[item.what] += 1
        self._until(CALM_MS)
        self.calm = True
        for node in self.nodes.values():
            node.calm()
        self.workload.calm()
        self._settle("settling")
        self.workload.drain()
        self._settle("settling after the last reads")
        invariants.at_the_end(self)
        self.counts["virtual seconds"] += self.now // 1000
        self.counts["messages"] += len(self.ledger.messages)

    def _settle(self, what: str) -> None:
        """Until nothing is on its way any more."""
        limit = self.now + SETTLE_MS
        rested = self.now
        while self.now < limit:
            self._until(min(self.now + REST_MS, limit))
            if (waits := invariants.on_the_way(self)) is None:
                if self.now - rested >= 2 * REST_MS:
                    return
            else:
                rested = self.now
        if waits is not None:
            raise Violated(invariants.HANGS, f"{waits} after {SETTLE_MS // 1000} s of {what}")

    def _until(self, end: int) -> None:
        events = self._events
        while events and events[0][0] <= end:
            self.now, _, event = heapq.heappop(events)
            event()
            self.counts["events"] += 1
            if self.counts["events"] > _STEPS_MAX:
                raise Violated("memory and tables stay bounded", f"more than {_STEPS_MAX} events")
        self.now = end
