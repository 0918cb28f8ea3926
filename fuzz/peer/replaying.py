"""Performs cases again, to see whether the peer fails once more in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.peer.failure import DOWN, PeerFailure
from fuzz.peer.performing import Stage
from fuzz.peer.recording import Recording
from fuzz.peer.shrinking import Cases
from fuzz.peer.steps import Case
from fuzz.peer.upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class Replay:
    """Cases that were performed again, with a failure at their end.

    Attributes:
        cases: the performed cases.
        failure: the present failure.
        recordings: the traffic.
    """

    cases: Cases
    failure: PeerFailure
    recordings: list[Recording]


def replay(stage: Stage, cases: Sequence[Case], failure: PeerFailure | None) -> Replay | None:
    """Perform cases one after the other until the peer fails.

    Args:
        stage: the stage to perform on.
        cases: the cases to perform.
        failure: the failure to look for; any for None.
    """
    recordings: list[Recording] = []
    for done, case in enumerate(cases, 1):
        outcome = stage.perform(case)
        recordings.append(outcome.recording)
        found = outcome.failure
        if found is None or failure is None or failure.what == DOWN:
            upkeep = Upkeep(stage, case.protocol, None)
            sought = failure is not None and failure.what == DOWN
            down = upkeep.unserved() if sought else upkeep.down()
            found = blamed(case, down) if down is not None else found
        if found is not None and (failure is None or found.resembles(failure)):
            return Replay(tuple(cases[:done]), found, recordings)
    return None


def blamed(case: Case, failure: PeerFailure) -> PeerFailure:
    """Return a failure for a peer that is down because of a case."""
    broken = [step for step in case.steps if step.breaks]
    ids = broken[-1].breaks if broken else case.requirements or failure.requirements
    after = next((step.note for step in reversed(broken or case.steps) if step.note), "")
    text = f"the peer is down after {after or 'a session'}: {failure.text}"
    return PeerFailure(ids, text, DOWN)
