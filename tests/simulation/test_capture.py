"""The captured traffic of simulated runs passes the dissector and the linter."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from msmqwire.dissection import dissect
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_finding_about_a_must_requirement(first: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(first, first + 10):
        file, plan = io.BytesIO(), make_plan(seed)
        # A router that has lost messages sends later ones first, which the linter rightly reports.
        plan = plan.with_items(item for item in plan.items if item.kind != "amnesia")
        outcome = World(plan, capture=file).run()
        assert outcome.violation is None
        file.seek(0)
        for item in dissect([file]):
            kinds[item.kind] += 1
            musts = [finding for finding in item.findings if finding.severity == "MUST"]
            assert not musts, f"seed {seed}, frame {item.frames}: {musts}"
            if item.error is not None:  # a connection was cut off inside a packet
                assert "the data ends after" in item.error.why or "are left" in item.error.why
    assert {
        "SrmpMessage",
        "UserMessage",
        "SessionAck",
        "OrderAck",
        "FinalAck",
        "EstablishConnection",
        "Ping",
    } <= set(kinds)
    assert kinds["Malformed"] < sum(kinds.values()) / 100
    assert not kinds["Skipped"]
