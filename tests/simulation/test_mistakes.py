"""Mutation tests of the simulator: each deliberate mistake violates an invariant within a few seeds."""

from __future__ import annotations

import pytest

from msmqwire.qm.sim.mistakes import MISTAKES, injected
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.security_mistakes import SECURITY_MISTAKES
from msmqwire.qm.sim.srmp_mistakes import SRMP_MISTAKES
from msmqwire.qm.sim.world import World

SEEDS = 400


def first_violation(first, http, secured):
    for seed in range(first, SEEDS):
        violation = World(make_plan(seed, http=http, secured=secured)).run().violation
        if violation is not None:
            return violation
    return None


def test_there_are_at_least_twenty_and_ten_of_srmp_and_three_of_security():
    assert len(SRMP_MISTAKES) >= 10
    assert len(SECURITY_MISTAKES) >= 3
    assert len(MISTAKES) - len(SRMP_MISTAKES) - len(SECURITY_MISTAKES) >= 20


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_detected(name):
    with injected(name) as mistake:
        shares = 1.0 if name in SRMP_MISTAKES else 0.0, 1.0 if name in SECURITY_MISTAKES else 0.0
        violation = first_violation(mistake.first, *shares)
    assert violation is not None, "no invariant detects it"
    assert violation.invariant in mistake.detected_by, str(violation)


def test_the_original_function_is_restored():
    name = next(iter(MISTAKES))
    mistake = MISTAKES[name]
    original = mistake.owner.__dict__[mistake.attribute]
    with injected(name):
        assert mistake.owner.__dict__[mistake.attribute] is not original
    assert mistake.owner.__dict__[mistake.attribute] is original
