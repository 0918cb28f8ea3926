"""Tests a peer for some time: directed cases, walks, and the follow-up of each failure."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from fuzz.peer.evidence import ReportedFailure, Seed, keep
from fuzz.peer.failure import DOWN, PeerFailure
from fuzz.peer.memory import MemoryWatch
from fuzz.peer.performing import Outcome, Stage
from fuzz.peer.protocols import FuzzedProtocol
from fuzz.peer.replaying import Replay, blamed, replay
from fuzz.peer.shrinking import Cases, shrink
from fuzz.peer.steps import Case
from fuzz.peer.target import PACKETS_MAX, RunOptions, Target
from fuzz.peer.upkeep import Upkeep
from fuzz.peer.walks import walk
from fuzz.peer.watcher import Watcher
from msmqwire.errors import Unreachable
from msmqwire.names.printable import counted

WORKERS: Final = 4
WALKS: Final = 10
"""Walks of one round."""
LATER: Final = 16
"""Directed cases of one later round."""
HISTORY: Final = 60
"""Cases before a failure that are tried with it when it does not show alone."""
SHRINK_S: Final = 20.0
"""Seconds for making one failure shorter."""
GRACE_S: Final = 30.0
"""Seconds after the end of a run in which the last finding is still repeated and shortened."""
SHRINK_BOUND_S: Final = 1.0
"""The bound meanwhile: a shortened case that fails is performed once more with the bound of the run."""


class Campaign:
    """One run against a peer.

    Args:
        target: the peer.
        options: the options of the run.
        protocols: the tested protocols, by name.
        watcher: is notified of events.

    Attributes:
        stage: has the counts.
        failures: the failures found.
        lost: whether the peer is down and did not come back.
    """

    def __init__(
        self, target: Target, options: RunOptions, protocols: dict[str, FuzzedProtocol], watcher: Watcher
    ) -> None:
        self._target, self._options, self._watcher = target, options, watcher
        self.stage = Stage(target, protocols, options.seed)
        self.failures: list[ReportedFailure] = []
        self._known: set[tuple[str, tuple[str, ...]]] = set()
        self._deadly: set[str] = set()
        self._history: dict[str, deque[Case]] = {name: deque(maxlen=HISTORY) for name in protocols}
        self._source = random.Random(options.seed)
        self._memory = None if options.pid is None else MemoryWatch(options.pid, self.stage)
        self._began = time.monotonic()
        self._end = self._began + options.time
        self.lost = False

    def run(self) -> None:
        """Test the peer until the time is over. Raises Unreachable if it is not there at the beginning."""
        for name in self.stage.protocols:
            outcome = self.stage.perform(self.stage.protocols[name].fresh(self._target))
            if outcome.failure is not None and outcome.failure.what == "gone":
                raise Unreachable(f"{name}: {outcome.failure.text}")
            self._judge(outcome, keep_always=True)
        self._options.out.mkdir(parents=True, exist_ok=True)
        turn = 0
        while not self._over:
            for name in self.stage.protocols:
                self._directed(name, None if turn == 0 else LATER)
                self._walks(name, turn)
            turn += 1

    def _tick(self) -> None:
        self._watcher.tick(time.monotonic() - self._began, self.stage.packets, len(self.failures))

    @property
    def _over(self) -> bool:
        enough = self.stage.packets >= PACKETS_MAX or len(self.failures) >= self._options.failures_max
        return self.lost or enough or time.monotonic() >= self._end

    @property
    def _late(self) -> bool:
        return time.monotonic() >= self._end + GRACE_S

    # -- performing --------------------------------------------------------------------------------------

    def _directed(self, name: str, most: int | None) -> None:
        """Perform directed cases, first all in order and later some of them, a few at the same time.

        The simplest come first, so that a mistake is reported by the requirement that it breaks.
        """
        cases = list(self.stage.protocols[name].checks(self._target, self._source))
        if most is not None:
            self._source.shuffle(cases)
        waiting = iter([case for case in cases if case.text not in self._deadly][:most])
        with ThreadPoolExecutor(WORKERS) as pool:
            while batch := list(islice(waiting, WORKERS)):
                if self._over:
                    return
                outcomes = list(pool.map(self.stage.perform, batch))
                self._tick()
                self._judge_batch(name, outcomes)
                self._look_at_memory(name, batch)

    def _judge_batch(self, name: str, outcomes: list[Outcome]) -> None:
        down = self._upkeep(name).down()
        failed = [outcome for outcome in outcomes if outcome.failure is not None]
        if down is None:
            self._history[name].extend(outcome.case for outcome in outcomes if outcome.failure is None)
        else:  # which one was it?
            for outcome in outcomes:
                outcome.failure = blamed(outcome.case, down)
            failed = sorted(outcomes, key=lambda outcome: not any(s.breaks for s in outcome.case.steps))
        left = list(failed)
        for history in (False, True):  # most cases that fail at the same time do not need the earlier ones
            for number, outcome in enumerate(failed, 1):
                if len(self.failures) >= self._options.failures_max or self._late:
                    return
                if outcome not in left:
                    continue
                last_hope = history and down is not None and number == len(failed)
                if self._judge(outcome, history=history, keep_always=last_hope):
                    left.remove(outcome)
                    if down is not None:
                        self._deadly.add(outcome.case.text)
                        return
                if self.lost:
                    return  # the first one was the likeliest, and is kept

    def _walks(self, name: str, turn: int) -> None:
        failed: list[Outcome] = []
        done: list[Case] = []

        def judge(outcome: Outcome) -> bool:
            self._tick()
            down = self._upkeep(name).down()
            if down is not None:
                outcome.failure = blamed(outcome.case, down)
            if outcome.failure is None:
                self._history[name].append(outcome.case)
                done.append(outcome.case)
            else:
                failed.append(outcome)
            return bool(failed) or self._over

        if not self._over:
            walk(self.stage, name, self._source.randrange(1 << 62), WALKS, self._end, judge)
        for outcome in failed:
            self._judge(outcome, keep_always=outcome.failure is not None and outcome.failure.what == DOWN)
        self._look_at_memory(name, done)

    def _look_at_memory(self, name: str, cases: Sequence[Case]) -> None:
        if self._memory is None or not cases or not self._memory.note(cases):
            return
        directed = list(self.stage.protocols[name].checks(self._target, self._source))
        found = self._memory.blame(directed, lambda: self._upkeep(name).down() is None)
        if found is None:
            self._watcher.line("memory grows, but with no case in particular")
            return
        case, failure = found
        outcome = self.stage.perform(case)
        self._keep(Replay((case,), failure, [outcome.recording]))

    # -- failures -----------------------------------------------------------------------------------------

    def _upkeep(self, name: str) -> Upkeep:
        return Upkeep(self.stage, name, self._options.restart)

    def _judge(self, outcome: Outcome, *, history: bool = True, keep_always: bool = False) -> bool:
        """Replay, shrink and keep a failure; return whether it was seen again.

        With `history` it is also looked for with the cases before it. With `keep_always`, and where the peer
        does not come back, it is kept even if it can't be seen again.
        """
        failure, case = outcome.failure, outcome.case
        if failure is None:
            return False
        if failure.key in self._known:
            self._back(case.protocol)
            return True
        before = list(self._history[case.protocol])
        found: Replay | None = None
        count = 0
        while found is None and not self.lost:
            found = self._replay((*before[len(before) - count :], case), failure)
            if found is None and count == 0 and failure.what != DOWN:
                # Others were performed at the same time: alone it may fail in another way.
                failure = self.stage.perform(case).failure or failure
                if failure.key in self._known:
                    return True
                found = self._replay((case,), failure)
            if count >= len(before) or self._late or (found is None and not history):
                break
            count = min(len(before), count * 2 or 1)
        if found is None and not history and not self.lost:
            return False
        if found is None:
            self._watcher.line(f"not seen again: {failure.text}")
            if keep_always or (self.lost and failure.what == DOWN):
                self._known.add(failure.key)
                self._keep(Replay((*before, case), failure, [outcome.recording]), replayed=False)
            return False
        self._known |= {failure.key, found.failure.key}
        self._keep(self._shrink(found))
        self._back(case.protocol)
        return True

    def _shrink(self, found: Replay) -> Replay:
        """Return a failure with as few cases and steps as there is time to find."""
        deadline = min(time.monotonic() + SHRINK_S, self._end + GRACE_S)
        quick = Stage(
            replace(self._target, bound=min(self._target.bound, SHRINK_BOUND_S)),
            self.stage.protocols,
            self._options.seed + 1,
        )

        def fails(cases: Cases) -> bool:
            if time.monotonic() >= deadline:
                return False
            return self._replay(cases, found.failure, quick) is not None

        shortest = shrink(found.cases, fails)
        if shortest == found.cases:
            return found
        return self._replay(shortest, found.failure) or found

    def _keep(self, found: Replay, *, replayed: bool = True) -> None:
        seed = Seed(self._target, found.cases, found.failure)
        number = len(self.failures) + 1
        kept = keep(self._options.out, number, seed, found.recordings, replayed=replayed)
        self.failures.append(kept)
        self._watcher.line(
            f"found: {', '.join(kept.requirements)}: {kept.text} ({counted(kept.packets, 'packet')})"
        )

    def _back(self, name: str) -> bool:
        if not self.lost and not self._upkeep(name).bring_back():
            self.lost = True
            self._watcher.line("the peer is not back: the run ends")
        return not self.lost

    def _replay(self, cases: Cases, failure: PeerFailure, stage: Stage | None = None) -> Replay | None:
        """Perform cases alone, twice; return the result if the peer fails in the same way both times."""
        found: Replay | None = None
        for _ in range(2):  # the first time an earlier session may have left the necessary state in the peer
            if not self._back(cases[-1].protocol):
                return None
            found = replay(stage or self.stage, cases, failure)
            if found is None:
                break
        return found


def coverage(stage: Stage) -> dict[str, Any]:
    """Return the coverage, for the report."""
    return {"requirements": dict(sorted(stage.tested.items())), "kinds": dict(stage.kinds.most_common())}
