"""The parts of a protocol for the tests of a peer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from hypothesis.stateful import RuleBasedStateMachine

from fuzz.peer.recording import Recording
from fuzz.peer.steps import Case, Disguise, Step
from fuzz.peer.target import Target


class Player(Protocol):
    """Performs the steps of one case, and checks the behaviour of the peer.

    A player takes any steps in any order, also the remainder of a shortened case: a step that has lost its
    meaning does nothing.
    """

    def perform(self, step: Step) -> None:
        """Do one thing. Raises PeerFailure."""

    def finish(self) -> None:
        """Wait for outstanding answers. Raises PeerFailure."""

    def close(self) -> None:
        """End all connections."""


@dataclass(frozen=True, slots=True)
class FuzzedProtocol:
    """A protocol that peers are tested in.

    Attributes:
        name: of `fuzz.peer.target.PROTOCOLS`.
        player: makes a player.
        fresh: the case of a fresh session, which every peer that is up carries out.
        checks: cases that each test one thing, with values drawn from the given source.
        walk: makes the state machine of walks: it performs its steps by `perform` alone.
        kind: the kind of the packet in the bytes of a step, for the counts of the report.
        serving: the case of a peer that serves, where that is more than a fresh session.
        has_queue: the case that fails with `NO_QUEUE` at a peer that does not have the queue of the target.
    """

    name: str
    player: Callable[[Target, Disguise, Recording], Player]
    fresh: Callable[[Target], Case]
    checks: Callable[[Target, random.Random], Iterator[Case]]
    walk: Callable[[Target, Callable[[Step], None]], type[RuleBasedStateMachine]]
    kind: Callable[[bytes], str]
    serving: Callable[[Target], Case] | None = None
    has_queue: Callable[[Target], Case] | None = None
