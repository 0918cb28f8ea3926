"""Walks through sessions of remote read: a Hypothesis state machine whose rules are steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.association import TRANSPORT
from fuzz.peer.remote_read.reading_steps import call, emptied, message
from fuzz.peer.remote_read.rpc_checks import BIND, STRICT, port_call
from fuzz.peer.steps import Step
from fuzz.peer.target import Target
from fuzz.strategies import mutated
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.pdus import PDUS

REQUESTS = st.integers(1, 4)
"""Few numbers of requests, so that some meet."""


def walk(target: Target, perform: Callable[[Step], None]) -> type[RuleBasedStateMachine]:
    """Return the state machine of walks before a peer; it does its steps by `perform`."""

    class Walk(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.messages, self.other = 3, 0, 0
            self.handles, self.cursors = [2], list[tuple[int, int]]()

        def slot(self) -> int:
            """Return another call id."""
            self.calls += 1
            return self.calls

        def handle(self, which: int) -> Any:
            return pdus.handle(self.handles[which % len(self.handles)])

        @initialize()
        def open(self) -> None:
            for step in emptied(target):
                perform(step)

        @rule(access=st.sampled_from(list(Access)[::2]), share=st.sampled_from(ShareMode))
        def open_another(self, access: int, share: int) -> None:
            slot = self.slot()
            self.handles.append(slot)
            perform(call(pdus.open_queue(slot, target, access=access, share=share), "R_OpenQueue"))

        @rule(which=st.integers(1, 20))
        def close_one(self, which: int) -> None:
            if len(self.handles) > 1:  # the first one stays
                slot = self.handles.pop(1 + which % (len(self.handles) - 1))
                perform(
                    call(pdus.of_handle(self.slot(), Opnum.R_CloseQueue, pdus.handle(slot)), "R_CloseQueue")
                )

        @rule(body=st.binary(max_size=3000))
        def deliver(self, body: bytes) -> None:
            self.messages += 1
            perform(message(target, self.messages, body))

        @rule(
            which=st.integers(0, 20),
            request=REQUESTS,
            action=st.sampled_from([Action.MQ_ACTION_RECEIVE, Action.MQ_ACTION_PEEK_CURRENT]),
            body=st.sampled_from([0, 1, 40, 1000, pdus.ALL]),
        )
        def read(self, which: int, request: int, action: int, body: int) -> None:
            data = pdus.start_receive(self.slot(), self.handle(which), request, action, body=body)
            perform(call(data, "R_StartReceive"))

        @rule(
            which=st.integers(0, 20),
            request=REQUESTS,
            number=st.integers(0, 20),
            action=st.sampled_from([action for action in Action if action.by_lookup_identifier]),
        )
        def look_up(self, which: int, request: int, number: int, action: int) -> None:
            lookup = pdus.lookup(number % (self.messages + 1))
            data = pdus.start_receive(self.slot(), self.handle(which), request, action, lookup=lookup)
            perform(call(data, "R_StartReceive by a LookupId"))

        @rule(which=st.integers(0, 20))
        def create_cursor(self, which: int) -> None:
            slot = self.slot()
            self.cursors.append((which % len(self.handles), slot))
            perform(call(pdus.of_handle(slot, Opnum.R_CreateCursor, self.handle(which)), "R_CreateCursor"))

        @rule(
            which=st.integers(0, 20),
            request=REQUESTS,
            action=st.sampled_from(
                [Action.MQ_ACTION_RECEIVE, Action.MQ_ACTION_PEEK_CURRENT, Action.MQ_ACTION_PEEK_NEXT]
            ),
        )
        def read_by_cursor(self, which: int, request: int, action: int) -> None:
            if self.cursors:
                handle, cursor = self.cursors[which % len(self.cursors)]
                data = pdus.start_receive(
                    self.slot(), self.handle(handle), request, action, cursor=pdus.cursor(cursor)
                )
                perform(call(data, "R_StartReceive by a cursor"))

        @rule(which=st.integers(0, 20), request=REQUESTS, ack=st.sampled_from(Acknowledge))
        def end(self, which: int, request: int, ack: int) -> None:
            perform(call(pdus.end_receive(self.slot(), self.handle(which), request, ack), "R_EndReceive"))

        @rule(which=st.integers(0, 20), request=REQUESTS)
        def cancel(self, which: int, request: int) -> None:
            data = pdus.of_handle(self.slot(), Opnum.R_CancelReceive, self.handle(which), dwRequestId=request)
            perform(call(data, "R_CancelReceive"))

        @rule(which=st.integers(0, 20))
        def purge(self, which: int) -> None:
            perform(call(pdus.of_handle(self.slot(), Opnum.R_PurgeQueue, self.handle(which)), "R_PurgeQueue"))

        @rule()
        def ask(self) -> None:
            perform(port_call(self.slot()))

        @rule(
            opnum=st.sampled_from(Opnum),
            seed=st.integers(0, 1 << 32),
            cuts=st.lists(st.integers(1, 100), max_size=2),
        )
        def wrong_stub(self, opnum: Opnum, seed: int, cuts: list[int]) -> None:
            data = _wrong_stub(target, self.slot(), opnum, self.handle(seed), random.Random(seed))
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
