"""Performs cases: each as another queue manager, recorded, and judged at its end."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from random import SystemRandom
from uuid import UUID

from fuzz.peer.failure import PeerFailure
from fuzz.peer.protocols import FuzzedProtocol, Player
from fuzz.peer.recording import Recording
from fuzz.peer.steps import ADDRESS, Case, Disguise, Step
from fuzz.peer.target import PACKETS_A_SECOND, Target

_NUMBERS, _LEAST = 90, 10
"""The last three numbers of an address have two digits each, as those of `ADDRESS`."""


@dataclass(slots=True)
class Outcome:
    """The result of a case.

    Attributes:
        case: the case performed.
        failure: the failure of the peer; None if there is none.
        recording: the traffic.
        cut: whether the time of the stage was over before its end, so that it proves nothing.
    """

    case: Case
    failure: PeerFailure | None
    recording: Recording
    cut: bool = False


@dataclass(slots=True)
class Stage:
    """The stage of cases: a peer, and the queue managers that it meets.

    Attributes:
        target: the peer.
        protocols: by name.
        seed: the seed of the identities.
        packets: the number sent on it.
        size: the number of bytes.
        tested: the number of tests of each requirement.
        kinds: the number of packets of each kind that were sent.
        until: the time after which no step is begun and nothing waited for, by the monotonic clock.
        probes: the case by which a peer is known to serve, by protocol, where that is more than a fresh
            session.
    """

    target: Target
    protocols: dict[str, FuzzedProtocol]
    seed: int
    packets: int = 0
    size: int = 0
    tested: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    until: float = math.inf
    probes: dict[str, Case] = field(default_factory=dict)
    _performances: int = 0
    _first: int = field(default_factory=lambda: SystemRandom().randrange(_NUMBERS**3))  # runs do not meet
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def disguise(self) -> Disguise:
        """Return another queue manager, from an address that the peer has not heard of before.

        A peer that lost a session to an address may connect to it ever less often.
        """
        with self._lock:
            self._performances += 1
            number = self._performances
        digest = hashlib.sha256(f"{self.seed} {number}".encode()).digest()
        address = _loopback_address(self._first + number) if self.target.loopback else self.target.own
        return Disguise(UUID(bytes=digest[:16], version=4), address)

    def perform(self, case: Case) -> Outcome:
        """Perform a case to its end or its first failure."""
        performance = Performance(self, case.protocol)
        for step in case.steps:
            performance.perform(step)
        return performance.end(case.requirements, case.text)

    def count(self, case: Case, recording: Recording) -> None:
        """Add a case and its traffic; wait if that was too much for its time."""
        kind = self.protocols[case.protocol].kind
        ids = {*case.requirements, *(name for step in case.steps for name in step.breaks)}
        with self._lock:
            self.packets += recording.packets
            self.size += recording.size
            self.tested.update(ids)
            self.kinds.update(kind(step.data) for step in case.steps if step.data)
            ahead = self._began + self.packets / PACKETS_A_SECOND - time.monotonic()
        ahead = min(ahead, self.until - time.monotonic())
        if ahead > 0:
            time.sleep(ahead)

    @property
    def over(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() >= self.until

    def fresh(self, protocol: str) -> PeerFailure | None:
        """Return the failure of a fresh session; None if there is none."""
        return self.perform(self.protocols[protocol].fresh(self.target)).failure


def _loopback_address(number: int) -> str:
    """Return one of 729,000 addresses of this computer, by its number."""
    numbers = [str(_LEAST + number // _NUMBERS**place % _NUMBERS) for place in (2, 1, 0)]
    return ".".join([ADDRESS.partition(".")[0], *numbers])


class Performance:
    """A case that is performed step by step.

    Attributes:
        steps: those that were done.
        failure: the failure of the peer; no more steps are performed then.
        cut: whether the time of the stage was over before the end; what the peer left out then is no failure.
    """

    def __init__(self, stage: Stage, protocol: str) -> None:
        self._stage, self._protocol = stage, protocol
        self._recording = Recording(until=stage.until)
        self.steps: list[Step] = []
        self.failure: PeerFailure | None = None
        self.cut = False
        self._player: Player = stage.protocols[protocol].player(
            stage.target, stage.disguise(), self._recording
        )

    def perform(self, step: Step) -> None:
        """Do a step, unless something is wrong already."""
        if self.failure is not None or self._is_cut():
            return
        self.steps.append(step)
        try:
            self._player.perform(step)
        except PeerFailure as failure:
            self.failure = failure if not self._is_cut() else None

    def _is_cut(self) -> bool:
        self.cut = self.cut or time.monotonic() >= self._recording.until
        return self.cut

    def end(self, requirements: tuple[str, ...] = (), text: str = "") -> Outcome:
        """Wait for outstanding answers, end all connections, and report the result."""
        try:
            if self.failure is None and not self._is_cut():
                self._player.finish()
        except PeerFailure as exc:
            self.failure = exc if not self._is_cut() else None
        finally:
            self._player.close()
        case = Case(self._protocol, tuple(self.steps), requirements, text)
        self._stage.count(case, self._recording)
        failure = self.failure
        if failure is not None and not failure.requirements and requirements:
            failure = PeerFailure(requirements, failure.text, failure.what)
        return Outcome(case, failure, self._recording, self.cut)
