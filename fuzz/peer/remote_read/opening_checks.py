"""Cases of queues that are opened, of handles, and of arguments: [MS-MQRR] 3.1.4.2 to 3.1.4.7."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.association import TRANSPORT
from fuzz.peer.remote_read.reading_steps import (
    NEXT,
    OPEN_TO_PEEK,
    PEEK,
    H,
    call,
    end,
    filled,
    found,
    opened,
    receive,
)
from fuzz.peer.remote_read.rpc_checks import BIND, CONNECT, case, port_call
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.remote_read.constants import Access, Action, Opnum, ShareMode
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle


def opening_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, with values that are drawn anew."""
    yield from _opening(target, source)
    yield from _handles(target, source)
    yield from _parameters(target, source)


# -- opening ---------------------------------------------------------------------------------------------


def _opening(target: Target, source: random.Random) -> Iterator[Case]:
    unknown = f"private$\\{source.randrange(1 << 64):016x}"
    for opnum, rule in ((2, "MQRR-3.1.4.2-25"), (11, "MQRR-3.1.4.11-16")):
        data = pdus.open_queue(2, target, unknown, for_move=opnum == 11)
        text = "A queue that is not there can't be opened: a fault with MQ_ERROR_QUEUE_NOT_FOUND."
        yield case((rule,), text, CONNECT, BIND, call(data, "the opening of a queue that is not there"))
    shared, alone = ShareMode.MQ_DENY_NONE, ShareMode.MQ_DENY_SHARE
    text = "Who has a queue open exclusively has it alone, until it is closed."
    for first, second in ((alone, shared), (alone, alone), (shared, alone)):
        yield case(
            ("MQRR-3.1.4.2-27",),
            text,
            *opened(target, share=first),
            Step("connect", 1),
            replace(BIND, connection=1),
            Step("call", 1, pdus.open_queue(3, target, share=second), note="R_OpenQueue of a queue in use"),
            call(pdus.of_handle(4, Opnum.R_CloseQueue, H), "R_CloseQueue"),
            Step(
                "persist", 1, pdus.open_queue(5, target, share=second), note="R_OpenQueue after R_CloseQueue"
            ),
        )
    yield case(
        ("MQRR-3.1.6.1-03",),
        "A queue that was open exclusively is free once the connection is lost.",
        *opened(target, share=alone),
        Step("reset"),
        *opened(target, connection=1, slot=3, share=alone),
    )
    yield case(
        ("MQRR-3.1.4.2-21",),
        "Each opening of a queue gives another handle.",
        CONNECT,
        BIND,
        *(Step("persist", data=pdus.open_queue(slot, target), note="R_OpenQueue") for slot in range(2, 7)),
        *(
            call(pdus.of_handle(slot + 10, Opnum.R_CloseQueue, pdus.handle(slot)), "R_CloseQueue")
            for slot in range(2, 7)
        ),
    )
    several = pdus.get_server_port(4) + pdus.of_handle(5, Opnum.R_CreateCursor, H) + pdus.get_server_port(6)
    yield case(
        (TRANSPORT,),
        "Calls of several methods in one segment are answered each by its call id.",
        *opened(target),
        call(several, "three calls in one segment"),
        call(pdus.of_handle(7, Opnum.R_CloseCursor, H, hCursor=pdus.cursor(5)), "R_CloseCursor"),
    )
    odd = [(source.randrange(2, 32), 0), (0, 0), (1, source.randrange(2, 1 << 32)), (0xFFFFFFFF, 0xFFFFFFFF)]
    steps = [
        call(pdus.open_queue(slot, target, access=access, share=share), f"R_OpenQueue, access {access:#x}")
        for slot, (access, share) in enumerate(odd, 2)
    ]
    text = "An access or share mode that is none is taken for another one, or refused."
    yield case(("MQRR-3.1.4.2-06",), text, CONNECT, BIND, *steps, port_call(90))


def _of_handle(slot: int, of: ContextHandle) -> Iterator[tuple[str, Step]]:
    """Yield a call of each method that has a handle."""
    for opnum, rule in (
        (Opnum.R_CloseQueue, "MQRR-3.1.4.3-03"),
        (Opnum.R_CreateCursor, "MQRR-3.1.4.4-03"),
        (Opnum.R_PurgeQueue, "MQRR-3.1.4.6-03"),
    ):
        yield rule, call(pdus.of_handle(slot, opnum, of), opnum.name)
    yield (
        "MQRR-3.1.4.5-04",
        call(pdus.of_handle(slot, Opnum.R_CloseCursor, of, hCursor=1), "R_CloseCursor"),
    )
    yield (
        "MQRR-3.1.4.8-04",
        call(pdus.of_handle(slot, Opnum.R_CancelReceive, of, dwRequestId=1), "R_CancelReceive"),
    )
    yield "MQRR-3.1.4.7-41", receive(slot, 1, of=of)
    yield "MQRR-3.1.4.7-41", receive(slot, 1, PEEK, of=of)
    yield "MQRR-3.1.4.9-10", end(slot, 1, of=of)
    yield (
        "MQRR-3.1.4.15-10",
        call(
            pdus.end_receive(slot, of, 1, opnum=Opnum.R_EndTransactionalReceive), "R_EndTransactionalReceive"
        ),
    )
    rejection = pdus.of_handle(slot, Opnum.R_SetUserAcknowledgementClass, of, LookupId=1, usClass=0xC004)
    yield "MQRR-3.1.4.14-07", call(rejection, "R_SetUserAcknowledgementClass")
    yield (
        "MQRR-3.1.4.13-31",
        call(pdus.start_receive(slot, of, 1, transaction=bytes(16)), "R_StartTransactionalReceive"),
    )
    moving = pdus.call_of(
        slot,
        Opnum.R_MoveMessage,
        phContextFrom=of,
        ullContextTo=1,
        LookupId=1,
        pTransactionId={"rgb": bytes(16)},
    )
    yield "MQRR-3.1.4.10-08", call(moving, "R_MoveMessage")


def _handles(target: Target, source: random.Random) -> Iterator[Case]:
    invented = ContextHandle(0, UUID(int=source.getrandbits(128)))
    text = "A call with a handle that stands for nothing fails."
    for what, of in (("a handle of nobody", invented), ("the null handle", NULL_HANDLE)):
        for rule, step in _of_handle(3, of):
            named = replace(step, note=f"{step.note} with {what}", breaks=(rule,))
            yield case((rule,), text, CONNECT, BIND, named)
    for rule, step in _of_handle(4, H):
        closed = replace(step, note=f"{step.note} with a closed handle", breaks=(rule,))
        closing = call(pdus.of_handle(3, Opnum.R_CloseQueue, H), "R_CloseQueue")
        yield case((rule,), text, *opened(target), closing, closed)
    for rule, step in _of_handle(4, H):
        foreign = replace(
            step, connection=1, note=f"{step.note} with a handle of another client", breaks=(rule,)
        )
        other = (Step("connect", 1), Step("bind", 1, BIND.data, note="bind"))
        yield case((rule,), "A handle is good only for who has opened it.", *opened(target), *other, foreign)
    yield case(
        ("MQRR-2.2.4-01",),
        "All connections of an association group have its handles.",
        *opened(target),
        Step("connect", 1),
        Step("bind", 1, pdus.bind(assoc_group_id=pdus.group(0)), note="a bind to the same group"),
        Step(
            "call", 1, pdus.of_handle(3, Opnum.R_CreateCursor, H), note="R_CreateCursor on another connection"
        ),
    )
    yield case(
        ("MQRR-2.2.4-01",),
        "A handle lives as long as a connection of its association group.",
        *opened(target),
        Step("connect", 1),
        Step("bind", 1, pdus.bind(assoc_group_id=pdus.group(0)), note="a bind to the same group"),
        Step("close"),
        Step("wait", 20),
        Step(
            "call",
            1,
            pdus.of_handle(3, Opnum.R_CreateCursor, H),
            note="R_CreateCursor on the connection left",
        ),
    )


# -- arguments -------------------------------------------------------------------------------------------


def _parameters(target: Target, source: random.Random) -> Iterator[Case]:
    ids = ("MQRR-3.1.4.7-40",)
    some = source.randrange(1, 1 << 56)
    wrong: list[tuple[str, dict[str, Any]]] = [
        (
            "an unknown action",
            {"action": source.choice([1, 2, 0x80000002, 0x40000013, 0x40000000, 0xFFFFFFFF])},
        ),
        ("MQ_ACTION_RECEIVE and a LookupId", {"lookup": some}),
        ("MQ_ACTION_PEEK_CURRENT and a LookupId", {"action": PEEK, "lookup": some}),
        ("MQ_ACTION_PEEK_NEXT and no cursor", {"action": NEXT}),
        ("MQ_LOOKUP_PEEK_CURRENT and no LookupId", {"action": Action.MQ_LOOKUP_PEEK_CURRENT}),
        ("MQ_LOOKUP_RECEIVE_NEXT and no LookupId", {"action": Action.MQ_LOOKUP_RECEIVE_NEXT}),
        (
            "MQ_LOOKUP_PEEK_CURRENT and a time-out",
            {"action": Action.MQ_LOOKUP_PEEK_CURRENT, "lookup": some, "timeout": 100},
        ),
        (
            "MQ_LOOKUP_PEEK_CURRENT and a cursor",
            {"action": Action.MQ_LOOKUP_PEEK_CURRENT, "lookup": some, "cursor": 1},
        ),
    ]
    for note, how in wrong:
        data = pdus.start_receive(4, H, 1, **how)
        step = call(data, f"R_StartReceive with {note}", breaks=ids)
        yield case(
            ids, "Arguments that do not go together have MQ_ERROR_INVALID_PARAMETER.", *opened(target), step
        )
    ids = ("MQRR-3.1.4.7-42",)
    cursor = receive(4, 1, PEEK, cursor=source.randrange(1 << 16, 1 << 32))
    yield case(ids, "A cursor that is not there has STATUS_INVALID_HANDLE.", *opened(target), cursor)
    peeking = opened(target, access=Access.PEEK_ACCESS)
    purge = call(pdus.of_handle(4, Opnum.R_PurgeQueue, H), "R_PurgeQueue by a handle that peeks")
    yield case(("MQRR-3.1.4.6-05",), "A purge needs receive access.", *peeking, purge)
    yield case(
        ("MQRR-3.1.4.7-12",),
        "A receive needs receive access.",
        *filled(target, 1, source),
        Step("persist", data=pdus.open_queue(90, target, access=Access.PEEK_ACCESS), note=OPEN_TO_PEEK),
        found(4, 1, of=pdus.handle(90)),
    )
