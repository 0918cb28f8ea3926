"""The simulation of the NetWare queue service: seeds, what happens in them, and deliberate mistakes."""

from __future__ import annotations

import pytest

from msmqwire.netware.sim.__main__ import main, run_seeds
from msmqwire.netware.sim.mistakes import MISTAKES
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.netware.sim.world import NetwareOutcome, NetwareWorld
from msmqwire.service.virtual.mistake import injected
from msmqwire.service.virtual.violation import Violation

SEEDS = 12
HAPPENS = (
    "calls", "jobs", "jobs started", "jobs taken", "jobs finished", "jobs aborted", "jobs removed",
    "jobs held", "jobs released", "jobs moved", "connections lost", "kills", "refusals of the disk",
)  # fmt: skip


@pytest.mark.requirement(
    "QMS-flags-01", "QMS-flags-02", "QMS-flags-03", "QMS-flags-04", "QMS-flags-05", "QMS-submit-08",
    "QMS-submit-09", "QMS-service-16", "QMS-service-17", "QMS-jobfields-33", "QMS-files-08",
)  # fmt: skip
def test_every_invariant_holds_and_everything_happens():
    counts, failed = run_seeds(range(6))
    assert not failed, "\n".join(f"seed {seed}: {violation}" for seed, violation in failed)
    assert [event for event in HAPPENS if not counts[event]] == []


def test_a_run_of_a_seed_is_always_the_same():
    assert NetwareWorld(3).run() == NetwareWorld(3).run()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_detected(name):
    with injected(MISTAKES[name]) as mistake:
        violation = next((one for seed in range(SEEDS) if (one := NetwareWorld(seed).run().violation)), None)
    assert violation is not None, "no invariant detects it"
    assert violation.invariant in mistake.detected_by, str(violation)


def test_the_command_tells_a_violation_with_its_seed(monkeypatch, capsys):
    def run(world: NetwareWorld) -> NetwareOutcome:
        return NetwareOutcome(7, Violation(JobInvariant.KEPT, "job 3 is lost"), world.scene.counts)

    monkeypatch.setattr(NetwareWorld, "run", run)
    assert main(["--seeds", "7:8"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 seeds, ")
    assert lines[1:] == [f"seed 7: {JobInvariant.KEPT}: job 3 is lost"]
