"""The checker can fail: each deliberate mistake is found within few seeds, by an invariant that it breaks."""

from __future__ import annotations

import pytest

from msmqwire.qm.sim.mistakes import MISTAKES, injected
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World

SEEDS = 400


def first_violation():
    for seed in range(SEEDS):
        violation = World(make_plan(seed)).run().violation
        if violation is not None:
            return violation
    return None


def test_there_are_twenty():
    assert len(MISTAKES) >= 20


@pytest.mark.parametrize("name", MISTAKES)
def test_it_is_found(name):
    with injected(name) as mistake:
        violation = first_violation()
    assert violation is not None, "no invariant finds it"
    assert violation.invariant in mistake.detected_by, str(violation)


def test_what_is_spoiled_is_mended():
    name = next(iter(MISTAKES))
    mistake = MISTAKES[name]
    right = mistake.owner.__dict__[mistake.attribute]
    with injected(name):
        assert mistake.owner.__dict__[mistake.attribute] is not right
    assert mistake.owner.__dict__[mistake.attribute] is right
