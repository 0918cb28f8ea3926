"""Two hundred runs with every kind of fault injected, and six hundred at night: all invariants hold in each.

``MSMQWIRE_SIMULATION_SEEDS`` sets a different number; ``python -m msmqwire.qm.sim`` runs any range and prints
the story of a seed that fails.
"""

from __future__ import annotations

import os

import pytest

from msmqwire.qm.sim.__main__ import run_block
from msmqwire.qm.sim.plan import FAULTS, FULL_DISK
from tests.support.nightly import NIGHTLY

SEEDS = int(os.environ.get("MSMQWIRE_SIMULATION_SEEDS", "600" if NIGHTLY else "200"))
BLOCK = max(SEEDS // 20, 1)
OF_HTTP = (
    "requests", "responses 200", "responses 400", "failed requests", "lost in HTTP", "repeated requests",
)  # fmt: skip
OF_SECURITY = "signed", "encrypted", "new keys"
OF_REMOTE_READ = ("remote calls", "remote connections", "remote messages")
RARE_OF_HTTP = ("responses 500", "refused requests", "exchanges cut")


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_every_invariant_holds(first):
    counts, failed = run_block(first, min(first + BLOCK, SEEDS), None)
    assert not failed, "\n".join(f"seed {seed}: {violation}" for seed, violation in failed)
    assert counts["messages"]
    assert counts["received"]
    if BLOCK >= 100:
        assert [fault for fault in (*FAULTS, FULL_DISK) if not counts[fault]] == []
        assert [event for event in OF_HTTP + OF_REMOTE_READ + OF_SECURITY if not counts[event]] == []


def test_every_invariant_holds_where_all_links_are_of_srmp():
    counts, failed = run_block(0, 100 if NIGHTLY else 40, None, http=1.0)
    assert not failed, "\n".join(f"seed {seed}: {violation}" for seed, violation in failed)
    assert [event for event in OF_HTTP + RARE_OF_HTTP if not counts[event]] == []
