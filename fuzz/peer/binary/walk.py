"""Walks through sessions of the binary protocol: a Hypothesis state machine whose rules are steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import OPENED
from fuzz.peer.steps import Step
from fuzz.peer.target import Target
from fuzz.strategies import mutated, packet_bytes
from msmqwire.packets import USER_MESSAGE


def walk(target: Target, perform: Callable[[Step], None]) -> type[RuleBasedStateMachine]:
    """Return the state machine of walks before a peer; it does its steps by `perform`."""

    class Walk(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.number = 0

        def message(self, recoverable: bool, fields: dict[str, Any] | None = None) -> bytes:
            self.number += 1
            return messages.message(target, self.number, fields, recoverable=recoverable).to_bytes()

        @initialize()
        def open(self) -> None:
            for step in OPENED:
                perform(step)

        @rule(recoverable=st.booleans(), body=st.binary(max_size=2000))
        def send(self, recoverable: bool, body: bytes) -> None:
            data = self.message(recoverable, {"MessagePropertiesHeader": {"MessageBody": body}})
            perform(Step("send", data=data, note="UserMessage"))

        @rule()
        def fence(self) -> None:
            perform(Step("fence"))

        @rule(data=mutated(packet_bytes(), USER_MESSAGE))
        def malformed(self, data: bytes) -> None:
            perform(Step("send", data=data, note="mutated bytes"))
            perform(Step("close"))
            for step in OPENED:
                perform(step)

    return Walk
