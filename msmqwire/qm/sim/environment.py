"""What every part of a run shares: virtual time, the event queue, chance, counters and the story."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final
from uuid import UUID

from msmqwire.qm.sim.plan import Plan
from msmqwire.qm.sim.story import Story
from msmqwire.qm.sim.violation import Invariant, Violation

_EVENTS_MAX: Final = 60_000


class Environment:
    """Virtual time, the events that are due in it, and one source of chance for all that is not planned.

    Attributes:
        plan: the plan of the run.
        now: milliseconds since the start.
        faults_over: whether no more faults occur.
        rng: source of all delays, sizes and choices beyond the plan.
        counts: how often each kind of thing happened.
        story: what happened, if it is recorded.
    """

    def __init__(self, plan: Plan, *, story: bool = False) -> None:
        self.plan = plan
        self.now = 0
        self.faults_over = False
        self.rng = Random(f"run {plan.seed}")
        self.counts: Counter[str] = Counter()
        self.story = Story(story)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0

    def guid(self) -> UUID:
        """Return a new GUID."""
        return UUID(int=self.rng.getrandbits(128))

    def after(self, delay: int, event: Callable[[], None]) -> None:
        """Schedule an event, `delay` milliseconds from now; events of the same time keep their order."""
        self._scheduled += 1
        heapq.heappush(self._events, (self.now + max(delay, 0), self._scheduled, event))

    def log(self, node: str, text: str, other: str = "") -> None:
        """Add a line to the story, if it is recorded."""
        if self.story.enabled:
            self.story.add(self.now, node, text, other)

    def run_until(self, end: int) -> None:
        """Process all events up to a time, in milliseconds since the start.

        Raises:
            Violation: the run has had far more events than any healthy one.
        """
        while self.run_event(end):
            pass
        self.now = end

    def run_event(self, end: int) -> bool:
        """Process the next event up to a time; return whether there was one. Raises like `run_until`."""
        events = self._events
        if not events or events[0][0] > end:
            return False
        self.now, _, event = heapq.heappop(events)
        event()
        self.counts["events"] += 1
        if self.counts["events"] > _EVENTS_MAX:
            raise Violation(Invariant.BOUNDED, f"more than {_EVENTS_MAX} events")
        return True
