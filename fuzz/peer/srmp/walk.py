"""Walks through SRMP: a Hypothesis state machine whose rules are steps."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fuzz.peer.srmp.cases import accepted
from fuzz.peer.srmp.messages import envelope, post
from fuzz.peer.srmp.streams import message as stream_message
from fuzz.peer.srmp.taken import RECEIPT, asking
from fuzz.peer.steps import Step
from fuzz.peer.target import Target

CONNECTIONS = st.integers(0, 3)
NUMBERS = st.integers(1, 0xFFFF_FFFF)
LABELS = st.characters(min_codepoint=33, max_codepoint=126) | st.characters(
    min_codepoint=0xA1, max_codepoint=0x2FF
)
_AT = 9
"""A separate connection, for bytes that are not a request."""


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw bytes with some of them changed, left out, doubled or put in."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 12))
        put = draw(
            st.one_of(
                st.binary(max_size=12), st.sampled_from((b"\0", b"<", b">", b"&", b"\r\n", b'"', b"9" * 9))
            )
        )
        match draw(st.sampled_from(("change", "drop", "double"))):
            case "change":
                data = data[:at] + put + data[at + len(put) :]
            case "drop":
                data = data[:at] + data[at + length :]
            case _:
                data = data[: at + length] + put + data[at:]
    return data


def walk(target: Target, perform: Callable[[Step], None]) -> type[RuleBasedStateMachine]:
    """Return the state machine of walks before a peer; it does its steps by `perform`."""

    class Walk(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.current = self.last = 0

        @initialize(first=NUMBERS)
        def begin(self, first: int) -> None:
            self.last = first

        def number(self) -> int:
            """Return a number for a message, which no other one of the walk has."""
            self.last = self.last % 0xFFFF_FFFF + 1
            return self.last

        @rule(at=CONNECTIONS, body=st.none() | st.binary(max_size=3000), again=st.sampled_from((1, 1, 1, 2)))
        def send(self, at: int, body: bytes | None, again: int) -> None:
            data = post(target, asking(target, self.number()), body)
            for _ in range(again):
                perform(accepted(RECEIPT, data, "a message", at))

        @rule(at=CONNECTIONS, cuts=st.sets(st.integers(1, 1500), max_size=3))
        def pipelined(self, at: int, cuts: set[int]) -> None:
            data = b"".join(post(target, asking(target, self.number())) for _ in range(3))
            perform(accepted("SRMP-2.1.1-01", data, "three messages at once", at, cuts=tuple(sorted(cuts))))

        @rule(label=st.text(LABELS, max_size=60))
        def labelled(self, label: str) -> None:
            text = envelope(target, self.number(), {"path": {"action": f"MSMQ:{label}"}})
            perform(accepted("SRMP-2.2.4.1-02", post(target, text), "a message with a label"))

        @rule(data=st.data())
        def damaged_envelope(self, data: st.DataObject) -> None:
            text = data.draw(damaged(envelope(target, self.number())))
            perform(Step("request", data=post(target, text), expects="answered", note="a damaged envelope"))

        @rule(data=st.data())
        def damaged_request(self, data: st.DataObject) -> None:
            request = data.draw(damaged(post(target, envelope(target, self.number()), b"body")))
            perform(Step("bytes", _AT, request, note="a damaged request"))
            perform(Step("close", _AT))

        @rule(at=CONNECTIONS, cut=st.integers(1, 600), ends=st.booleans())
        def half(self, at: int, cut: int, ends: bool) -> None:
            data = post(target, envelope(target, self.number()), b"half")
            perform(Step("half", 10 + at, data, (cut,), expects=f"accepted {RECEIPT}", note="half a message"))
            if ends:
                perform(Step("close", 10 + at))

        @rule(at=CONNECTIONS)
        def rest(self, at: int) -> None:
            perform(Step("rest", 10 + at))

        @rule(at=CONNECTIONS, how=st.sampled_from(("close", "reset", "shutdown")))
        def end(self, at: int, how: str) -> None:
            perform(Step(how, at))

        if target.transactional_queue:

            @rule(leap=st.sampled_from((1, 1, 1, 1, 0, 2, -1)), bridged=st.booleans())
            def in_stream(self, leap: int, bridged: bool) -> None:
                current = max(1, self.current + leap)
                previous = self.current if bridged and 0 < self.current < current else None
                if current == self.current + 1 or previous is not None:
                    self.current = current
                perform(stream_message(target, self.number(), current, previous=previous))

    return Walk
