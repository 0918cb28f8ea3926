"""The fate of messages in captures of simulated runs, beside the record of what became of them."""

from __future__ import annotations

import io
from collections import Counter
from uuid import UUID

import pytest

from msmqwire.analysis.fate import MessageFate, State, fates
from msmqwire.constants import class_name
from msmqwire.qm.model.message import ObjectId
from msmqwire.qm.sim.fates import OF_SESSIONS
from msmqwire.qm.sim.ledger import MessageLedger
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.tracked import Tracked
from msmqwire.qm.sim.world import World
from tests.support.nightly import nightly


def tracked(ledger: MessageLedger, fate: MessageFate) -> Tracked | None:
    """The record of a message; None for one that a crash has lost, whose number another one has got."""
    if fate.message_id is None:
        return None
    found = ledger.by_identifier.get(bytes(ObjectId(UUID(fate.source_qm), fate.message_id)))
    return found if found is not None and found.label == fate.label else None


def agrees(fate: MessageFate, message: Tracked) -> bool:
    """Whether what a capture shows is what has happened."""
    classes = {class_name(number) for number, _ in message.acknowledgements}
    status = (
        f"HTTP status {message.refusal}" if message.fates is not OF_SESSIONS else class_name(message.refusal)
    )
    match fate.state:
        case State.READ:
            return message.received > 0
        case State.DELIVERED:
            return bool(message.arrivals)
        case State.REFUSED | State.EXPIRED | State.DELETED | State.REJECTED:
            return fate.reason in classes | {status, class_name(message.failed)}
        case State.DEAD_LETTERED:
            return message.deadlettered > 0
        case State.RECEIVED | State.STORED | State.SENT:
            return bool(message.transmitted_by)
    return False


@pytest.mark.parametrize(
    "first", [0, 10, *(pytest.param(first, marks=nightly) for first in range(20, 60, 10))]
)
def test_the_fates_are_those_of_the_record(first: int) -> None:
    states: Counter[State] = Counter()
    for seed in range(first, first + 10):
        file = io.BytesIO()
        world = World(make_plan(seed), capture=file)
        assert world.run().violation is None
        file.seek(0)
        for fate in fates([file]):
            message = tracked(world.ledger, fate)
            if message is None:
                assert fate.state is State.UNKNOWN, f"seed {seed}: {fate}"
                continue
            assert fate.recoverable is (not message.is_express), f"seed {seed}: {fate}"
            assert agrees(fate, message), f"seed {seed}: {message}: {fate}"
            # Nobody forges anything here.
            assert not any(event.doubt for event in fate.events), f"seed {seed}: {fate}"
            assert not (fate.stuck and fate.state in (State.READ, State.DELIVERED))
            states[fate.state] += 1
    assert {State.READ, State.DELIVERED, State.STORED, State.RECEIVED} <= set(states)
    assert states[State.READ] > 20
