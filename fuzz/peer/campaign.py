"""Tests a peer for some time: directed cases, walks, and what is done about each failure."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Final

from fuzz.peer.evidence import Kept, Seed, keep
from fuzz.peer.failure import PeerFailure
from fuzz.peer.performing import Outcome, Stage
from fuzz.peer.protocols import FuzzedProtocol
from fuzz.peer.recording import Recording
from fuzz.peer.shrinking import Cases, shrink
from fuzz.peer.steps import Case
from fuzz.peer.target import PACKETS_MAX, RunOptions, Target
from fuzz.peer.upkeep import DOWN, Upkeep
from fuzz.peer.walks import walk
from msmqwire.errors import Unreachable

WORKERS: Final = 4
WALKS: Final = 10
"""Walks of one round."""
HISTORY: Final = 60
"""Cases before a failure that are tried with it when it does not show alone."""
SHRINK_S: Final = 20.0
"""Seconds for making one failure shorter."""
FAILURES_MAX: Final = 50

Say = Callable[[str], None]


class Replay:
    """Cases that were performed again, with a failure at their end.

    Attributes:
        cases: those that were performed.
        failure: what was wrong this time.
        recordings: what passed.
    """

    def __init__(self, cases: Cases, failure: PeerFailure, recordings: list[Recording]) -> None:
        self.cases, self.failure, self.recordings = cases, failure, recordings


class Campaign:
    """One run against a peer.

    Args:
        target: the peer.
        options: of the run.
        protocols: those that are tested, by name.
        say: prints a line of progress.

    Attributes:
        stage: has the counts.
        failures: what was found.
    """

    def __init__(
        self, target: Target, options: RunOptions, protocols: dict[str, FuzzedProtocol], say: Say
    ) -> None:
        self._target, self._options, self._say = target, options, say
        self.stage = Stage(target, protocols, options.seed)
        self.failures: list[Kept] = []
        self._known: dict[tuple[str, tuple[str, ...]], int] = {}
        self._history: dict[str, deque[Case]] = {name: deque(maxlen=HISTORY) for name in protocols}
        self._source = random.Random(options.seed)
        self._end = 0.0
        self.lost = False

    def run(self) -> None:
        """Test the peer until the time is over. Raises Unreachable if it is not there at the beginning."""
        began = time.monotonic()
        self._end = began + self._options.time
        for name in self.stage.protocols:
            outcome = self.stage.perform(self.stage.protocols[name].fresh(self._target))
            if outcome.failure is not None and outcome.failure.what == "gone":
                raise Unreachable(f"{name}: {outcome.failure.text}")
            self._judge(outcome)
        turn = 0
        while not self._over:
            for name in self.stage.protocols:
                self._directed(name, None if turn == 0 else 2 * WORKERS)
                self._walks(name, turn)
            turn += 1

    @property
    def _over(self) -> bool:
        enough = self.stage.packets >= PACKETS_MAX or len(self.failures) >= FAILURES_MAX
        return self.lost or enough or time.monotonic() >= self._end

    # -- what is done ------------------------------------------------------------------------------------

    def _directed(self, name: str, most: int | None) -> None:
        """Perform directed cases, all at first and a drawn few later, some of them at the same time."""
        cases = list(self.stage.protocols[name].checks(self._target, self._source))
        self._source.shuffle(cases)
        waiting = iter(cases[:most])
        with ThreadPoolExecutor(WORKERS) as pool:
            while batch := list(islice(waiting, WORKERS)):
                if self._over:
                    return
                outcomes = list(pool.map(self.stage.perform, batch, range(len(batch))))
                self._judge_batch(name, outcomes)

    def _judge_batch(self, name: str, outcomes: list[Outcome]) -> None:
        failure = self._upkeep(name).down()
        failed = [outcome for outcome in outcomes if outcome.failure is not None]
        if failure is None and not failed:
            self._history[name].extend(outcome.case for outcome in outcomes)
            return
        if failure is not None:  # which one was it?
            for outcome in outcomes:
                outcome.failure = _blamed(outcome.case, failure)
            failed = sorted(outcomes, key=lambda outcome: not any(s.breaks for s in outcome.case.steps))
        for outcome in failed:
            found = self._judge(outcome)
            if found and failure is not None:
                break

    def _walks(self, name: str, turn: int) -> None:
        failed: list[Outcome] = []

        def judge(outcome: Outcome) -> bool:
            down = self._upkeep(name).down()
            if down is not None:
                outcome.failure = _blamed(outcome.case, down)
            if outcome.failure is None:
                self._history[name].append(outcome.case)
            else:
                failed.append(outcome)
            return bool(failed) or self._over

        if not self._over:
            walk(self.stage, name, self._source.randrange(1 << 62), WALKS, judge)
        for outcome in failed:
            self._judge(outcome)

    # -- what is done about a failure --------------------------------------------------------------------

    def _upkeep(self, name: str) -> Upkeep:
        return Upkeep(self.stage, name, self._options.restart)

    def _judge(self, outcome: Outcome) -> bool:
        """Replay, shrink and keep a failure; return whether it was seen again."""
        failure, name = outcome.failure, outcome.case.protocol
        if failure is None:
            return False
        if failure.key in self._known:
            self._known[failure.key] += 1
            self._back(name)
            return True
        attempts = [(outcome.case,), (*self._history[name], outcome.case)]
        for cases in attempts:
            again = self._replay(cases, failure)
            if again is not None:
                break
        else:
            self._say(f"not seen again: {failure.text}")
            return False
        self._known[failure.key] = 1
        deadline = time.monotonic() + SHRINK_S
        shortest = again

        def fails(some: Cases) -> bool:
            nonlocal shortest
            if time.monotonic() >= deadline or self.lost:
                return False
            result = self._replay(some, failure)
            if result is None:
                return False
            shortest = result
            return True

        shrink(cases, fails)
        self._keep(shortest)
        return True

    def _keep(self, found: Replay) -> None:
        seed = Seed(self._target, found.cases, found.failure)
        kept = keep(self._options.out, len(self.failures) + 1, seed, found.recordings, replayed=True)
        self.failures.append(kept)
        self._say(f"found: {', '.join(kept.requirements)}: {kept.text} ({kept.packets} packets)")

    def _back(self, name: str) -> bool:
        if not self._upkeep(name).bring_back():
            self.lost = True
            self._say("the peer is not back; the run ends")
        return not self.lost

    def _replay(self, cases: Cases, failure: PeerFailure) -> Replay | None:
        """Perform cases alone; return what was seen if the peer fails in the same way."""
        if not self._back(cases[-1].protocol):
            return None
        return replay(self.stage, cases, failure)


def replay(stage: Stage, cases: Cases, failure: PeerFailure | None) -> Replay | None:
    """Perform cases one after the other until the peer fails.

    Args:
        stage: where.
        cases: what is done.
        failure: which one is looked for; any for None.
    """
    recordings: list[Recording] = []
    for done, case in enumerate(cases, 1):
        outcome = stage.perform(case)
        recordings.append(outcome.recording)
        found = outcome.failure
        if failure is None or failure.what in DOWN or found is None:
            down = Upkeep(stage, case.protocol, None).down()
            found = _blamed(case, down) if down is not None else found
        if found is not None and (failure is None or found.key == failure.key):
            return Replay(tuple(cases[:done]), found, recordings)
    return None


def _blamed(case: Case, failure: PeerFailure) -> PeerFailure:
    """Return that a peer is down as what a case has brought about."""
    broken = [step for step in case.steps if step.breaks]
    ids = broken[-1].breaks if broken else case.requirements
    after = next((step.note for step in reversed(broken or case.steps) if step.note), "")
    text = f"the peer is down after {after or 'a session'}: {failure.text}"
    return PeerFailure(ids, text, failure.what)


def coverage(stage: Stage) -> dict[str, Any]:
    """Return what was tested, for the report."""
    return {"requirements": dict(sorted(stage.tested.items())), "kinds": dict(stage.kinds.most_common())}
