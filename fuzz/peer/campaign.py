"""Tests a peer for some time: directed cases, walks, and the follow-up of each failure."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeAlias

from fuzz.peer.evidence import ReportedFailure, Seed, keep, prepare_folder
from fuzz.peer.failure import DOWN, NO_QUEUE, PeerFailure
from fuzz.peer.memory import MemoryWatch
from fuzz.peer.performing import Outcome, Stage
from fuzz.peer.protocols import FuzzedProtocol
from fuzz.peer.replaying import Replay, blamed, replay
from fuzz.peer.shrinking import Cases, shrink
from fuzz.peer.steps import Case
from fuzz.peer.target import PACKETS_MAX, RunOptions, Target
from fuzz.peer.upkeep import Upkeep
from fuzz.peer.walks import walk
from fuzz.peer.watcher import Watcher, noticing
from msmqwire.errors import InvalidValue, Unreachable
from msmqwire.names.printable import counted

Key: TypeAlias = tuple[str, tuple[str, ...]]
WORKERS: Final = 4
WALKS: Final = 10
"""Walks of one round."""
LATER: Final = 16
"""Directed cases of one later round."""
HISTORY: Final = 60
"""Cases before a failure that are tried with it when it does not show alone."""
SHRINK_S: Final = 20.0
"""Seconds for making one failure shorter."""
GRACE_S: Final = 20.0
"""Seconds after the end of a run in which the last finding is still repeated and shortened; nothing is waited
for after them, whatever the peer does.
"""
LATE_S: Final = 1.0
"""Seconds in which a peer may still go down after a case that seemed to do no harm."""
LOOKS: Final = 4
"""Times at least that it is looked at meanwhile."""
_PAUSE_S: Final = 0.02
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
        self._known: dict[Key, int] = {}
        self._deadly: set[str] = set()
        self._history: dict[str, deque[Case]] = {name: deque(maxlen=HISTORY) for name in protocols}
        self._source = random.Random(options.seed)
        self._memory = None if options.pid is None else MemoryWatch(options.pid, self.stage)
        self._began = time.monotonic()
        self._set_end(self._began + options.time)
        self.lost = self._away = False

    def run(self) -> None:
        """Test the peer until the time is over.

        Raises Unreachable if it is not there at the beginning, and InvalidValue if a queue is not.
        """
        for name in self.stage.protocols:
            with noticing(
                self._watcher, f"waiting for an answer at {self._target.host}:{self._target.port(name)}"
            ):
                outcome = self.stage.perform(self.stage.protocols[name].fresh(self._target))
            if outcome.failure is not None and outcome.failure.what == "gone":
                raise Unreachable(f"{name}: {outcome.failure.text}")
            self._judge(outcome, keep_always=True)
            self._choose_probe(name)
        prepare_folder(self._options.out)
        turn = 0
        while not self._over:
            for name in self.stage.protocols:
                self._directed(name, None if turn == 0 else LATER)
                self._walks(name, turn)
            turn += 1

    def _set_end(self, end: float) -> None:
        """Set the end of the run: cases that go on then are cut off after the bound."""
        self._end = end
        self.stage.until = end + min(self._target.bound, GRACE_S)

    def _choose_probe(self, name: str) -> None:
        """Probe the peer by more than a fresh session, if it stands the probe now.

        Raises InvalidValue if it says that it does not have a queue of the target.
        """
        protocol = self.stage.protocols[name]
        if self._over:
            return
        began = time.monotonic()
        with self._grace():
            if protocol.has_queue is not None:
                self._beginning(protocol.has_queue(self._target))
            if protocol.serving is not None:
                outcome = self._beginning(protocol.serving(self._target))
                if outcome.failure is None and not outcome.cut:
                    self.stage.probes[name] = outcome.case
        self._set_end(self._end + time.monotonic() - began)  # the run has the time that was asked for

    def _beginning(self, case: Case) -> Outcome:
        """Perform a case before the run begins. Raises InvalidValue if it shows that a queue is not there."""
        outcome = self.stage.perform(case)
        failure = outcome.failure
        if failure is not None and failure.what == NO_QUEUE:
            why = f"the peer does not have the queue: {failure.text}"
            raise InvalidValue(f"{why}; name one that it has with --queue or --transactional-queue")
        return outcome

    def _tick(self) -> None:
        self._watcher.tick(time.monotonic() - self._began, self.stage.packets, len(self.failures))

    @property
    def _over(self) -> bool:
        enough = self.stage.packets >= PACKETS_MAX or len(self.failures) >= self._options.failures_max
        return self.lost or enough or time.monotonic() >= self._end

    @contextmanager
    def _grace(self) -> Iterator[None]:
        """Give a finding the time after the end of the run."""
        until, self.stage.until = self.stage.until, self._end + GRACE_S
        try:
            yield
        finally:
            self.stage.until = until

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
        if down is None and any(
            outcome.failure.key not in self._known for outcome in failed if outcome.failure
        ):
            down = self._upkeep(name).unserved()
        if down is None:
            self._history[name].extend(outcome.case for outcome in outcomes if outcome.failure is None)
        else:  # which one was it?
            for outcome in outcomes:
                outcome.failure = blamed(outcome.case, down)
            failed = sorted(outcomes, key=lambda outcome: not any(s.breaks for s in outcome.case.steps))
        explained = self._explained(failed, deadly=down is not None)
        if down is not None and not explained:
            self._look_for_late_end(name, outcomes, down)

    def _explained(self, failed: list[Outcome], *, deadly: bool) -> bool:
        """Judge the failures of cases performed at the same time; return whether one was seen again.

        The first of those after which the peer is down ends the search, as it is the one to blame.
        """
        left = list(failed)
        for history in (False, True):  # most cases that fail at the same time do not need the earlier ones
            for outcome in failed:
                if len(self.failures) >= self._options.failures_max or self._out_of_time:
                    return len(left) < len(failed)
                if outcome not in left:
                    continue
                if self._judge(outcome, history=history):
                    left.remove(outcome)
                    if deadly:
                        self._deadly.add(outcome.case.text)
                        return True
                if self.lost:
                    return True  # the first one was the likeliest, and is kept
        return len(left) < len(failed)

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
        said = "memory grows: looking for the case that makes it grow"
        with self._grace(), noticing(self._watcher, said):
            found = self._memory.blame(directed, lambda: self._upkeep(name).down() is None)
        if found is None:
            self._watcher.line("memory grows, but with no case in particular")
            return
        case, failure = found
        outcome = self.stage.perform(case)
        self._keep(Replay((case,), failure, [outcome.recording]))

    # -- failures -----------------------------------------------------------------------------------------

    def _upkeep(self, name: str) -> Upkeep:
        return Upkeep(self.stage, name, self._options.restart, self._watcher)

    @property
    def _out_of_time(self) -> bool:
        return time.monotonic() >= self._end + GRACE_S

    def _judge(self, outcome: Outcome, *, history: bool = True, keep_always: bool = False) -> bool:
        """Replay, shrink and keep a failure; return whether it was seen again.

        With `history` it is also looked for with the cases before it. With `keep_always`, and where the peer
        does not come back, it is kept even if it can't be seen again.
        """
        failure = outcome.failure
        if failure is None:
            return False
        with self._grace(), noticing(self._watcher, f"seeing again: {failure.text}"):
            return self._seen_again(outcome, failure, history=history, keep_always=keep_always)

    def _seen_again(
        self, outcome: Outcome, failure: PeerFailure, *, history: bool, keep_always: bool
    ) -> bool:
        case = outcome.case
        if failure.key in self._known:
            self._count(failure)
            self._back(case.protocol)
            return True
        before = list(self._history[case.protocol])
        found: Replay | None = None
        count = 0
        while found is None and not (self.lost or self.stage.over):
            found = self._replay((*before[len(before) - count :], case), failure)
            if found is None and count == 0 and failure.what != DOWN and not self.lost:
                # Others were performed at the same time: alone it may fail in another way.
                failure = self.stage.perform(case).failure or failure
                if failure.key in self._known:
                    self._count(failure)
                    return True
                found = self._replay((case,), failure)
            if count >= len(before) or (found is None and not history):
                break
            count = min(len(before), count * 2 or 1)
        if found is None and not history and not (self.lost or self.stage.over):
            return False
        if found is None:
            why = "no time to see it again" if self.stage.over else "not seen again"
            why = "not repeated, as the peer is not back" if self.lost else why
            self._watcher.line(f"{why}: {failure.text}")
            if self.stage.over and self._away and not keep_always:
                self._keep_unexplained(case.protocol, [outcome], failure)
                return True
            if keep_always or (self.lost and failure.what == DOWN):
                self._keep(Replay((*before, case), failure, [outcome.recording]), replayed=False)
            return False
        shortest = self._shrink(found)
        culprit = self._culprit(shortest.cases[:-1])
        if culprit is not None:
            self._keep_deadly(culprit)
        else:
            self._keep(shortest)
            self._known.setdefault(failure.key, len(self.failures) - 1)
        self._back(case.protocol)
        return True

    def _keep_deadly(self, culprit: Replay) -> None:
        self._deadly.add(culprit.cases[-1].text)
        if culprit.failure.key in self._known:
            self._count(culprit.failure)
        else:
            self._keep(culprit)

    def _culprit(self, cases: Cases) -> Replay | None:
        """Return the failure that the peer goes down after these cases, if it does so twice."""
        found: Replay | None = None
        for _ in range(2 if cases else 0):
            if not self._back(cases[-1].protocol):
                return None
            recordings = [self.stage.perform(case).recording for case in cases]
            down = self._falls(cases[-1].protocol)
            if down is None:
                return None
            found = Replay(cases, blamed(cases[-1], down), recordings)
        return found

    def _falls(self, name: str) -> PeerFailure | None:
        """Return why the peer does not serve, as soon as that is so; None if it serves all the time.

        It is looked at for `LATE_S`, and `LOOKS` times if the machine is so busy that this takes longer.
        """
        late, upkeep = time.monotonic() + LATE_S, self._upkeep(name)
        looks = 1
        while (down := upkeep.unserved()) is None and (looks < LOOKS or time.monotonic() < late):
            looks += 1
            time.sleep(_PAUSE_S)
        return down

    def _look_for_late_end(self, name: str, outcomes: Sequence[Outcome], down: PeerFailure) -> None:
        """Find the case after which the peer goes down some time later; else keep that it was down."""
        last = [*self._history[name]][-WORKERS:]
        with self._grace(), noticing(self._watcher, "looking for the case after which the peer goes down"):
            for case in (*last, *(outcome.case for outcome in outcomes)):
                culprit = None if self.lost or self.stage.over else self._culprit((case,))
                if culprit is not None:
                    self._keep_deadly(culprit)
                    self._back(name)
                    return
        self._keep_unexplained(name, outcomes, down)

    def _keep_unexplained(self, name: str, outcomes: Sequence[Outcome], down: PeerFailure) -> None:
        """Keep that the peer was down, without a case to name: each of them alone may be innocent."""
        some = f"one of {counted(len(outcomes), 'case')}"
        text = f"the peer was down after {some}, but is up after each of them alone"
        if self._out_of_time or len(outcomes) == 1:
            text = "the peer does not serve any more, and there is no time to see after which case"
        failure = PeerFailure((), f"{text}: {down.text}", DOWN)
        if failure.key in self._known:
            self._count(failure)
            return
        cases = (*self._history[name], *(outcome.case for outcome in outcomes))
        self._keep(Replay(cases, failure, [outcome.recording for outcome in outcomes]), replayed=False)

    def _shrink(self, found: Replay) -> Replay:
        """Return a failure with as few cases and steps as there is time to find."""
        deadline = min(time.monotonic() + SHRINK_S, self.stage.until)
        quick = Stage(
            replace(self._target, bound=min(self._target.bound, SHRINK_BOUND_S)),
            self.stage.protocols,
            self._options.seed + 1,
            until=deadline,
            probes=self.stage.probes,
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
        self._known[found.failure.key] = len(self.failures)
        self.failures.append(kept)
        ids = ", ".join(kept.requirements)
        self._watcher.line(
            f"found: {': '.join(filter(None, (ids, kept.text)))} ({counted(kept.packets, 'packet')})"
        )

    def _count(self, failure: PeerFailure) -> None:
        """Count one more case that has shown a failure."""
        number = self._known[failure.key]
        self.failures[number] = replace(self.failures[number], cases=self.failures[number].cases + 1)

    def _back(self, name: str, *, quick: bool = False) -> bool:
        """Wait until the peer serves: as long as the run goes on, and a little longer."""
        self._tick()
        if self.lost:
            return False
        deadline = max(self._end, time.monotonic() + self._target.bound)
        self._away = not self._upkeep(name).bring_back(deadline, quick=quick)
        if not self._away:
            return True
        if not self.stage.over:
            self.lost = True
            self._watcher.line("the peer is not back: the run ends")
        return False

    def _replay(self, cases: Cases, failure: PeerFailure, stage: Stage | None = None) -> Replay | None:
        """Perform cases alone, twice; return the result if the peer fails in the same way both times."""
        found: Replay | None = None
        for _ in range(2):  # the first time an earlier session may have left the necessary state in the peer
            quick = stage is not None and failure.what != DOWN
            if not self._back(cases[-1].protocol, quick=quick):
                return None
            found = replay(stage or self.stage, cases, failure)
            if found is None:
                break
        return found


def coverage(stage: Stage) -> dict[str, Any]:
    """Return the coverage, for the report."""
    return {"requirements": dict(sorted(stage.tested.items())), "kinds": dict(stage.kinds.most_common())}
