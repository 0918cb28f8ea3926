"""Walks through pings: a Hypothesis state machine whose rules are steps."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fuzz.peer.ping.checks import AWAIT
from fuzz.peer.ping.datagrams import request
from fuzz.peer.steps import Step
from fuzz.peer.target import Target
from fuzz.strategies import mutated, packet_bytes
from msmqwire.ping import PING

PORTS = st.integers(0, 7)
COOKIES = st.integers(0, 0xFFFF_FFFF)


def walk(target: Target, perform: Callable[[Step], None]) -> type[RuleBasedStateMachine]:
    """Return the state machine of walks before a peer; it does its steps by `perform`."""

    class Walk(RuleBasedStateMachine):
        @rule(cookie=COOKIES, flags=st.integers(0, 0xFFFF), port=PORTS)
        def ping(self, cookie: int, flags: int, port: int) -> None:
            data = bytearray(request(cookie))
            data[:2] = (flags & ~2).to_bytes(2, "little")
            perform(Step("send", port, bytes(data), note=f"a Ping Request with Flags {flags & ~2:#06x}"))

        @rule(cookie=COOKIES, count=st.integers(2, 6), port=PORTS)
        def repeated(self, cookie: int, count: int, port: int) -> None:
            for _ in range(count):
                perform(Step("send", port, request(cookie), note="a Ping Request, several times"))

        @rule(data=mutated(packet_bytes("ping"), PING), port=PORTS)
        def malformed(self, data: bytes, port: int) -> None:
            perform(Step("send", port, data, note="mutated bytes"))

        @rule(data=st.binary(max_size=64), port=PORTS)
        def bytes_at_large(self, data: bytes, port: int) -> None:
            perform(Step("send", port, data, note="bytes at large"))

        @rule()
        def wait(self) -> None:
            perform(AWAIT)

    return Walk
