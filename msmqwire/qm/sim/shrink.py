"""Shrink a failing run: leave out the items that it does not need to violate the same invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from msmqwire.qm.sim.plan import Item, Plan
from msmqwire.qm.sim.world import RunOutcome, World

RUNS_MAX: Final = 600


class _Shrinking:
    def __init__(self, outcome: RunOutcome) -> None:
        assert outcome.violation is not None, "only a failing run is shrunk"
        self.plan, self._invariant, self._runs = outcome.plan, outcome.violation.invariant, 0

    def accept(self, plan: Plan) -> bool:
        """Run a plan; make it the current one and return True if it violates the same invariant."""
        if self._runs >= RUNS_MAX:
            return False
        self._runs += 1
        violation = World(plan).run().violation
        if violation is None or violation.invariant != self._invariant:
            return False
        self.plan = plan
        return True

    def fewer_items(self) -> None:
        """Delta debugging: leave out halves, quarters and so on, then single items."""
        size = max(len(self.plan.items) // 2, 1)
        while True:
            start = 0
            while start < len(self.plan.items):
                items = self.plan.items
                if not self.accept(self.plan.with_items(items[:start] + items[start + size :])):
                    start += size
            if size == 1:
                return
            size //= 2

    def simpler_items(self) -> None:
        """Reduce the number of messages of each item, and the options that they ask for."""
        for index in range(len(self.plan.items)):
            for simplify in _simplifications(self.plan.items[index]):
                items = self.plan.items
                simpler = (*items[:index], simplify(items[index]), *items[index + 1 :])
                self.accept(self.plan.with_items(simpler))

    def simpler_setting(self) -> None:
        """Leave out nodes without items, differing clocks, chunks, losses and routing."""
        plan = self.plan
        needed = {plan.router} | {item.node for item in plan.items}
        needed |= {value for item in plan.items for value in _strings(item.args)}
        clocks = {
            name: clock for name, clock in zip(plan.nodes, plan.clock_offsets, strict=True) if name in needed
        }
        if len(clocks) < len(plan.nodes):
            self.accept(replace(plan, nodes=tuple(clocks), clock_offsets=tuple(clocks.values())))
        for change in (
            {"split_probability": 0.0},
            {"loss_probability": 0.0},
            {"clock_offsets": (0,) * len(self.plan.nodes)},
            {"router": None},
            {"http_loss": 0.0},
            {"http_repeat": 0.0},
            {"http_timeout_ms": 60_000},
        ):
            changed = replace(self.plan, **change)
            if changed != self.plan:
                self.accept(changed)


def _strings(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield the strings among the parameters of an item."""
    for value in args.values():
        if isinstance(value, dict):
            yield from _strings(value)
        elif isinstance(value, str):
            yield value


def _simplifications(item: Item) -> Iterator[Callable[[Item], Item]]:
    """Yield functions, each of which simplifies the present version of an item."""

    def without(name: str) -> Callable[[Item], Item]:
        return lambda now: replace(now, args={key: value for key, value in now.args.items() if key != name})

    def having(name: str, value: Any) -> Callable[[Item], Item]:
        return lambda now: replace(now, args={**now.args, name: value})

    if item.kind in ("send", "transaction", "receive", "remote read"):
        for count in (1, 2, 3):
            if count < item.args["count"]:
                yield having("count", count)
        if item.args.get("hold_ms"):
            yield having("hold_ms", 0)
        for name in ("journal", "deadletter", "acks", "reach_s", "receive_s", "priority", "also"):
            if name in item.args:
                yield without(name)
        if item.args.get("size"):
            yield having("size", 0)


def shrink(outcome: RunOutcome) -> RunOutcome:
    """Shrink a run that violates an invariant.

    Returns:
        The shortest run found that violates the same invariant, with its story.
    """
    shrinking = _Shrinking(outcome)
    before = None
    while before != shrinking.plan:
        before = shrinking.plan
        shrinking.fewer_items()
        shrinking.simpler_setting()
        shrinking.simpler_items()
    return World(shrinking.plan, story=True).run()
