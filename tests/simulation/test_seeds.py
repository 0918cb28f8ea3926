"""Two thousand runs with every kind of fault injected: all invariants hold in each.

``MSMQWIRE_SIMULATION_SEEDS`` sets a different number; ``python -m msmqwire.qm.sim`` runs any range and prints
the story of a seed that fails.
"""

from __future__ import annotations

import os

import pytest

from msmqwire.qm.sim.__main__ import run_block
from msmqwire.qm.sim.plan import FAULTS

SEEDS = int(os.environ.get("MSMQWIRE_SIMULATION_SEEDS", "2000"))
BLOCK = max(SEEDS // 20, 1)
OF_HTTP = (
    "requests", "responses 200", "responses 400", "responses 500", "failed requests", "refused requests",
    "lost in HTTP", "repeated requests", "exchanges cut",
)  # fmt: skip


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_every_invariant_holds(first):
    counts, failed = run_block(first, min(first + BLOCK, SEEDS), None)
    assert not failed, "\n".join(f"seed {seed}: {violation}" for seed, violation in failed)
    assert counts["messages"]
    assert counts["received"]
    assert all(counts[fault] for fault in FAULTS if BLOCK >= 100), "a hundred plans have every kind of fault"
    assert all(counts[event] for event in OF_HTTP if BLOCK >= 100), "and what happens to requests of HTTP"
