"""The environment of every part of a run: virtual time, randomness, counters and the story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final
from uuid import UUID

from msmqwire.qm.sim.plan import Plan
from msmqwire.qm.sim.story import Story
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.loop import VirtualLoop
from msmqwire.service.virtual.violation import Violation

_TURNS_MAX: Final = 400_000


class Environment:
    """Virtual time, the events due in it, and one source of randomness for everything that is not planned.

    Attributes:
        plan: the plan of the run.
        loop: the event loop of all queue managers.
        faults_over: whether no more faults occur.
        rng: source of all delays, sizes and choices beyond the plan.
        counts: the count of each kind of event.
        story: the events, if they are recorded.
    """

    def __init__(self, plan: Plan, *, story: bool = False) -> None:
        self.plan = plan
        self.loop = VirtualLoop()
        self.faults_over = False
        self.rng = Random(f"run {plan.seed}")
        self.counts: Counter[str] = Counter()
        self.story = Story(story)

    @property
    def now(self) -> int:
        """Milliseconds since the start."""
        return self.loop.now_ms

    def guid(self) -> UUID:
        """Return a new GUID."""
        return UUID(int=self.rng.getrandbits(128))

    def after(self, delay: int, event: Callable[[], object]) -> None:
        """Schedule an event, `delay` milliseconds from now; events of the same time keep their order."""
        self.loop.call_at((self.now + max(delay, 0)) / 1000, event)

    def log(self, node: str, text: str, other: str = "") -> None:
        """Add a line to the story, if it is recorded."""
        if self.story.enabled:
            self.story.add(self.now, node, text, other)

    def run_event(self, end: int) -> bool:
        """Run the next event, if it is due up to a time; return whether there was one."""
        return self.loop.run_one(end / 1000)

    def run_until(self, end: int) -> None:
        """Run all events due up to a time, in milliseconds since the start.

        Raises:
            Violation: the run has had far more turns of its loop than any healthy one.
        """
        self.loop.run_until(end / 1000)
        self.counts["turns"] = self.loop.turns
        if self.loop.turns > _TURNS_MAX:
            raise Violation(Invariant.BOUNDED, f"more than {_TURNS_MAX} turns of the loop")
