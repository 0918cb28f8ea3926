"""A peer made of a few rules, and a protocol in which it is tested without a network."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fuzz.peer.failure import PeerFailure
from fuzz.peer.protocols import FuzzedProtocol
from fuzz.peer.recording import Ends, Recording
from fuzz.peer.steps import Case, Disguise, Step
from fuzz.peer.target import Target

NAME = "binary"
HERE = ("127.0.0.1", 1)
THERE = ("127.0.0.1", 2)


class FakePeer:
    """Counts what it gets over all sessions.

    Attributes:
        heard: all data, since it was started.
        down: whether it has ended.
        starts: the number of its starts.
        rule: takes the peer after each send; returns a failure for the fuzzer to see, or None.
        connected: takes the peer before each connection.
        left, missed: the sessions until its end, and those that have missed it since; for `connected`.
    """

    def __init__(
        self,
        rule: Callable[[FakePeer], PeerFailure | None] = lambda peer: None,
        connected: Callable[[FakePeer], None] = lambda peer: None,
    ) -> None:
        self.rule, self.connected = rule, connected
        self.left = self.missed = 0
        self.heard: list[bytes] = []
        self.down = False
        self.starts = 0

    def start(self) -> None:
        """Begin anew."""
        self.heard, self.down, self.starts = [], False, self.starts + 1


class _Player:
    def __init__(self, peer: FakePeer, recording: Recording) -> None:
        self._peer, self._recording = peer, recording
        self._number = recording.connection(Ends(HERE, THERE, True))

    def perform(self, step: Step) -> None:
        if step.action == "connect":
            self._peer.connected(self._peer)
        if self._peer.down:
            raise PeerFailure((), "no connection: refused", "gone")
        if step.action == "send":
            self._recording.note("sent", self._number, step.data)
            self._peer.heard.append(step.data)
            failure = self._peer.rule(self._peer)
            if failure is not None:
                raise failure

    def finish(self) -> None:
        """There is nothing to wait for."""

    def close(self) -> None:
        self._recording.note("closed", self._number)


def protocol(peer: FakePeer, sent: tuple[bytes, ...] = (), walked: tuple[bytes, ...] = ()) -> FuzzedProtocol:
    """Return a protocol that has a directed case for each of some data, and walks that send others."""

    def player(target: Target, disguise: Disguise, recording: Recording) -> _Player:
        return _Player(peer, recording)

    def checks(target: Target, source: random.Random) -> Iterator[Case]:
        for data in sent:
            step = Step("send", data=data, breaks=(f"ID-{data.decode()}",), note=data.decode())
            yield Case(NAME, (Step("connect"), step), (f"ID-{data.decode()}",), data.decode())

    def walk(target: Target, perform: Callable[[Step], None]) -> type[RuleBasedStateMachine]:
        class Walk(RuleBasedStateMachine):
            @rule(data=st.sampled_from(walked or (b"walked",)))
            def send(self, data: bytes) -> None:
                perform(Step("send", data=data))

        return Walk

    def fresh(target: Target) -> Case:
        return Case(NAME, (Step("connect"),))

    return FuzzedProtocol(NAME, player, fresh, checks, walk, lambda data: data.decode())
