"""Walks through sessions of remote read: a Hypothesis state machine whose rules are steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.association import TRANSPORT
from fuzz.peer.remote_read.reading_steps import call, emptied, message, opened
from fuzz.peer.remote_read.rpc_checks import BIND, STRICT, port_call
from fuzz.peer.steps import Step
from fuzz.peer.target import Target
from fuzz.strategies import mutated
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.pdus import PDUS

REQUESTS: Final = st.integers(1, 4)
"""Few numbers of requests, so that some meet."""
WHICH: Final = st.integers(0, 20)
ACCESSES: Final = st.sampled_from([Access.RECEIVE_ACCESS, Access.PEEK_ACCESS])
OTHER: Final = 2
"""The connection of a second client."""
WAIT_MS: Final = 3_000


def walk(target: Target, perform: Callable[[Step], None]) -> type[RuleBasedStateMachine]:
    """Return the state machine of walks before a peer; it does its steps by `perform`."""

    class Walk(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.messages = 10, 0
            self.handles: list[tuple[int, int]] = []  # connections and call ids
            self.cursors: list[tuple[tuple[int, int], int]] = []

        def slot(self) -> int:
            """Return another call id."""
            self.calls += 1
            return self.calls

        def on(self, which: int, build: Callable[[int, Any], bytes], note: str, **more: Any) -> None:
            """Make a call that has one of the handles."""
            connection, slot = self.handles[which % len(self.handles)]
            data = build(self.slot(), pdus.handle(slot))
            perform(replace(call(data, note), connection=connection, **more))

        @initialize()
        def open(self) -> None:
            for step in (*emptied(target), *opened(target, connection=OTHER, slot=4)):
                perform(step)
            self.handles = [(0, 2), (OTHER, 4)]

        @rule(access=ACCESSES, share=st.sampled_from(ShareMode), connection=st.sampled_from([0, OTHER]))
        def open_another(self, access: int, share: int, connection: int) -> None:
            slot = self.slot()
            self.handles.append((connection, slot))
            data = pdus.open_queue(slot, target, access=access, share=share)
            perform(replace(call(data, "R_OpenQueue"), connection=connection))

        @rule(which=WHICH)
        def close_one(self, which: int) -> None:
            if len(self.handles) > 2:  # the first ones stay
                at = 2 + which % (len(self.handles) - 2)
                self.on(at, lambda slot, of: pdus.of_handle(slot, Opnum.R_CloseQueue, of), "R_CloseQueue")
                del self.handles[at]

        @rule(how=st.sampled_from(["close", "reset"]))
        def lose_client(self, how: str) -> None:
            """A client goes, and another one comes."""
            perform(Step(how, OTHER))
            slot = self.slot()
            self.handles = [(0, 2), (OTHER, slot), *(each for each in self.handles[2:] if each[0] == 0)]
            for step in opened(target, connection=OTHER, slot=slot):
                perform(step)

        @rule(body=st.binary(max_size=3000))
        def deliver(self, body: bytes) -> None:
            self.messages += 1
            perform(message(target, self.messages, body))

        @rule(
            which=WHICH,
            request=REQUESTS,
            action=st.sampled_from([Action.MQ_ACTION_RECEIVE, Action.MQ_ACTION_PEEK_CURRENT]),
            body=st.sampled_from([0, 1, 40, 1000, pdus.ALL]),
            transaction=st.sampled_from([None, None, pdus.NO_TRANSACTION, b"msmqwire-unit-of"]),
        )
        def read(self, which: int, request: int, action: int, body: int, transaction: bytes | None) -> None:
            def build(slot: int, of: Any) -> bytes:
                return pdus.start_receive(slot, of, request, action, body=body, transaction=transaction)

            self.on(which, build, "R_StartReceive")

        @rule(which=WHICH, request=st.integers(11, 14), action=st.sampled_from(list(Action)[:2]))
        def wait_and_cancel(self, which: int, request: int, action: int) -> None:
            def build(slot: int, of: Any) -> bytes:
                return pdus.start_receive(slot, of, request, action, timeout=WAIT_MS)

            def cancel(slot: int, of: Any) -> bytes:
                return pdus.of_handle(slot, Opnum.R_CancelReceive, of, dwRequestId=request)

            def ending(slot: int, of: Any) -> bytes:
                return pdus.end_receive(slot, of, request)

            connection = self.handles[which % len(self.handles)][0]
            self.on(which, build, "R_StartReceive that waits", action="send", expects="waits")
            self.on(which, cancel, "R_CancelReceive", action="persist", expects="waiting")
            perform(Step("answers", connection))
            self.on(which, ending, "R_EndReceive")

        @rule(
            which=WHICH,
            request=REQUESTS,
            number=WHICH,
            action=st.sampled_from([action for action in Action if action.by_lookup_identifier]),
        )
        def look_up(self, which: int, request: int, number: int, action: int) -> None:
            lookup = pdus.lookup(number % (self.messages + 1))

            def build(slot: int, of: Any) -> bytes:
                return pdus.start_receive(slot, of, request, action, lookup=lookup)

            self.on(which, build, "R_StartReceive by a LookupId")

        @rule(which=WHICH)
        def create_cursor(self, which: int) -> None:
            self.cursors.append((self.handles[which % len(self.handles)], self.calls + 1))
            self.on(which, lambda slot, of: pdus.of_handle(slot, Opnum.R_CreateCursor, of), "R_CreateCursor")

        @rule(
            which=WHICH,
            request=REQUESTS,
            action=st.sampled_from(
                [Action.MQ_ACTION_RECEIVE, Action.MQ_ACTION_PEEK_CURRENT, Action.MQ_ACTION_PEEK_NEXT]
            ),
        )
        def read_by_cursor(self, which: int, request: int, action: int) -> None:
            if self.cursors:
                (connection, slot), cursor = self.cursors[which % len(self.cursors)]
                data = pdus.start_receive(
                    self.slot(), pdus.handle(slot), request, action, cursor=pdus.cursor(cursor)
                )
                perform(replace(call(data, "R_StartReceive by a cursor"), connection=connection))

        @rule(which=WHICH, request=REQUESTS, ack=st.sampled_from(Acknowledge))
        def end(self, which: int, request: int, ack: int) -> None:
            self.on(which, lambda slot, of: pdus.end_receive(slot, of, request, ack), "R_EndReceive")

        @rule(which=WHICH, request=REQUESTS)
        def cancel(self, which: int, request: int) -> None:
            def build(slot: int, of: Any) -> bytes:
                return pdus.of_handle(slot, Opnum.R_CancelReceive, of, dwRequestId=request)

            self.on(which, build, "R_CancelReceive")

        @rule(which=WHICH)
        def purge(self, which: int) -> None:
            self.on(which, lambda slot, of: pdus.of_handle(slot, Opnum.R_PurgeQueue, of), "R_PurgeQueue")

        @rule()
        def ask(self) -> None:
            perform(port_call(self.slot()))

        @rule(
            opnum=st.sampled_from(Opnum),
            seed=st.integers(0, 1 << 32),
            cuts=st.lists(st.integers(1, 100), max_size=2),
        )
        def wrong_stub(self, opnum: Opnum, seed: int, cuts: list[int]) -> None:
            data = _wrong_stub(target, self.slot(), opnum, pdus.handle(2), random.Random(seed))
            self.elsewhere(data, f"a changed stub of {opnum.name}", tuple(cuts), STRICT)

        @rule(data=st.one_of([mutated(st.just(BIND.data), PDUS[PduType.BIND]), st.binary(max_size=200)]))
        def wrong_bytes(self, data: bytes) -> None:
            self.elsewhere(data, "changed bytes", (), TRANSPORT)

        def elsewhere(self, data: bytes, note: str, cuts: tuple[int, ...], rule: str) -> None:
            """Send something wrong on a connection of its own; its association has no handle."""
            perform(Step("connect", 1))
            perform(Step("bind", 1, BIND.data, note="bind"))
            perform(Step("call", 1, data, cuts, breaks=(rule,), expects="any", note=note))
            perform(Step("close", 1))

    return Walk


def _wrong_stub(target: Target, slot: int, opnum: Opnum, handle: Any, source: random.Random) -> bytes:
    """Return a call whose stub differs from a right one in some bytes, or in its length."""
    match opnum:
        case Opnum.R_OpenQueue | Opnum.R_OpenQueueForMove:
            form = pdus.format_of(target, target.queue)
            stub = pdus.stub_of(opnum, **pdus.opening(form, Access.PEEK_ACCESS))
        case Opnum.R_EndReceive | Opnum.R_EndTransactionalReceive:
            stub = pdus.stub_of(opnum, phContext=handle, dwAck=2, dwRequestId=9)
        case _:
            stub = source.randbytes(source.randrange(80))
    changed = bytearray(stub)
    for _ in range(source.randrange(1, 4)):
        if changed:
            at = source.randrange(len(changed))
            changed[at] = source.choice([0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)])
    return pdus.request(
        slot, opnum, bytes(changed[: source.choice([len(changed), source.randrange(len(changed) + 1)])])
    )
