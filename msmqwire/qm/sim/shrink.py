"""A failing run made as short as it can be: what is not needed for it to fail in the same way is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from msmqwire.qm.sim.plan import Item, Plan
from msmqwire.qm.sim.world import Outcome, World

RUNS_MAX: Final = 600


class _Shrinking:
    def __init__(self, outcome: Outcome) -> None:
        assert outcome.violation is not None, "only what fails is shrunk"
        self.plan, self._invariant, self._runs = outcome.plan, outcome.violation.invariant, 0

    def holds(self, plan: Plan) -> bool:
        """Whether a plan fails in the same way; it is the best one then."""
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
                if not self.holds(self.plan.having(items[:start] + items[start + size :])):
                    start += size
            if size == 1:
                return
            size //= 2

    def simpler_items(self) -> None:
        """Fewer messages in each, and nothing that they do not need to ask for."""
        for place in range(len(self.plan.items)):
            for simpler in _simpler(self.plan.items[place]):
                items = self.plan.items
                self.holds(self.plan.having((*items[:place], simpler(items[place]), *items[place + 1 :])))

    def plainer(self) -> None:
        """Nodes that nothing happens at, clocks that differ, pieces and losses."""
        plan = self.plan
        named = {plan.router} | {item.node for item in plan.items}
        named |= {value for item in plan.items for value in _values(item.args)}
        kept = [place for place, name in enumerate(plan.nodes) if name in named]
        if len(kept) < len(plan.nodes):
            nodes = tuple(plan.nodes[place] for place in kept)
            self.holds(replace(plan, nodes=nodes, clocks=tuple(plan.clocks[place] for place in kept)))
        for change in (
            {"chunks": 0.0},
            {"lossy": 0.0},
            {"clocks": (0,) * len(self.plan.nodes)},
            {"router": None},
        ):
            changed = replace(self.plan, **change)
            if changed != self.plan:
                self.holds(changed)


def _values(args: Any) -> Iterator[Any]:
    for value in args.values():
        if isinstance(value, dict):
            yield from _values(value)
        elif isinstance(value, str):
            yield value


def _simpler(item: Item) -> Iterator[Any]:
    def without(name: str) -> Any:
        return lambda now: replace(now, args={key: value for key, value in now.args.items() if key != name})

    def given(name: str, value: Any) -> Any:
        return lambda now: replace(now, args={**now.args, name: value})

    if item.what in ("send", "transaction", "receive"):
        for count in (1, 2, 3):
            if count < item.args["count"]:
                yield given("count", count)
        if item.args.get("hold_ms"):
            yield given("hold_ms", 0)
        for name in ("journal", "deadletter", "acks", "reach_s", "receive_s", "priority", "also"):
            if name in item.args:
                yield without(name)
        if item.args.get("size"):
            yield given("size", 0)


def shrink(outcome: Outcome) -> Outcome:
    """The shortest run found that violates the same invariant, with its story."""
    shrinking = _Shrinking(outcome)
    before = None
    while before != shrinking.plan:
        before = shrinking.plan
        shrinking.fewer_items()
        shrinking.plainer()
        shrinking.simpler_items()
    return World(shrinking.plan, story=True).run()
