"""Mutation tests of the simulator: each deliberate mistake violates an invariant within a few seeds."""

from __future__ import annotations

import pytest

from msmqwire.qm.sim.mistakes import MISTAKES
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.remote_mistakes import REMOTE_MISTAKES
from msmqwire.qm.sim.security_mistakes import SECURITY_MISTAKES
from msmqwire.qm.sim.srmp.mistakes import SRMP_MISTAKES
from msmqwire.qm.sim.world import World
from msmqwire.service.virtual.mistake import injected
from tests.support.nightly import nightly

SEEDS = 700


def first_violation(first, **shares):
    for seed in range(first, SEEDS):
        violation = World(make_plan(seed, **shares)).run().violation
        if violation is not None:
            return violation
    return None


def test_each_protocol_has_its_least_number_of_mistakes():
    """Twenty of the binary protocol, ten each of SRMP and of remote read, and three of security."""
    assert len(SRMP_MISTAKES) >= 10
    assert len(REMOTE_MISTAKES) >= 10
    assert len(SECURITY_MISTAKES) >= 3
    others = len(SRMP_MISTAKES) + len(REMOTE_MISTAKES) + len(SECURITY_MISTAKES)
    assert len(MISTAKES) - others >= 20


LONG = {"a restart counts messages for nobody"}
"""Mistakes that only hundreds of seeds show."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=nightly) if name in LONG else name for name in MISTAKES]
)
def test_a_mistake_is_detected(name):
    with injected(MISTAKES[name]) as mistake:
        violation = first_violation(
            mistake.first,
            http=1.0 if name in SRMP_MISTAKES else 0.0,
            remote=1.0 if name in REMOTE_MISTAKES else 0.0,
            secured=1.0 if name in SECURITY_MISTAKES else 0.0,
        )
    assert violation is not None, "no invariant detects it"
    assert violation.invariant in mistake.detected_by, str(violation)


def test_the_original_function_is_restored():
    name = next(iter(MISTAKES))
    mistake = MISTAKES[name]
    original = mistake.owner.__dict__[mistake.attribute]
    with injected(MISTAKES[name]):
        assert mistake.owner.__dict__[mistake.attribute] is not original
    assert mistake.owner.__dict__[mistake.attribute] is original
