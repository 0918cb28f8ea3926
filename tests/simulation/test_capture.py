"""The traffic of simulated runs, written as a capture, is what the dissector and the linter know."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from msmqwire.dissection import dissect
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_dissected_without_one_must_finding(first: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(first, first + 10):
        file, plan = io.BytesIO(), make_plan(seed)
        # A routing server that has lost messages passes on later ones first: no queue manager is to do that.
        plan = plan.with_items(item for item in plan.items if item.what != "amnesia")
        outcome = World(plan, capture=file).run()
        assert outcome.violation is None
        file.seek(0)
        for item in dissect([file]):
            kinds[item.kind] += 1
            found = [finding for finding in item.findings if finding.severity == "MUST"]
            assert not found, f"seed {seed}, frame {item.frames}: {found}"
            if item.error is not None:  # a connection was cut inside a packet
                assert "the data ends after" in item.error.why
    assert {"UserMessage", "SessionAck", "OrderAck", "FinalAck", "EstablishConnection", "Ping"} <= set(kinds)
    assert kinds["Malformed"] < sum(kinds.values()) / 100
    assert not kinds["Skipped"]
