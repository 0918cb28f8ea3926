"""Cases of reads that find nothing, or wait: [MS-MQRR] 3.1.4.7 and 3.1.4.8."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.reading_steps import (
    FIND_MS,
    LONG_MS,
    PEEK,
    RECEIVE,
    H,
    call,
    emptied,
    end,
    message,
    opened,
    receive,
)
from fuzz.peer.remote_read.rpc_checks import case
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.remote_read.constants import Acknowledge, Opnum
from msmqwire.rpc.constants import PduType


def waiting_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, with values that are drawn anew."""
    yield from _empty(target, source)
    yield from _waiting(target, source)


def _empty(target: Target, source: random.Random) -> Iterator[Case]:
    text = "A read of an empty queue ends with MQ_ERROR_IO_TIMEOUT, when its time is over."
    ids = ("MQRR-3.1.4.7-53",)
    yield case(ids, text, *emptied(target), receive(4, 1), receive(5, 2, PEEK), end(6, 9))
    yield case(
        ("MQRR-3.1.2.1-03",),
        text,
        *emptied(target),
        receive(4, 1, timeout=source.randrange(250, 400)),
        receive(5, 2, PEEK, timeout=source.randrange(250, 400)),
    )
    yield case(
        ("MQRR-3.1.4.9-07",),
        "The end of a receive on a handle without one has MQ_ERROR_INVALID_HANDLE.",
        *opened(target),
        end(4, source.randrange(1 << 32)),
        end(5, source.randrange(1 << 32), Acknowledge.RR_NACK),
    )
    cancel = pdus.of_handle(4, Opnum.R_CancelReceive, H, dwRequestId=source.randrange(1 << 32))
    yield case(
        ("MQRR-3.1.4.8-06",),
        "Nothing is cancelled that does not wait.",
        *opened(target),
        call(cancel, "R_CancelReceive"),
    )


def _waiting(target: Target, source: random.Random) -> Iterator[Case]:
    ids = ("MQRR-3.1.4.8-08",)
    text = "R_CancelReceive ends a read that waits, with MQ_ERROR_OPERATION_CANCELLED."
    number = source.randrange(1 << 32)
    cancel = pdus.of_handle(5, Opnum.R_CancelReceive, H, dwRequestId=number)
    for action in (RECEIVE, PEEK):
        waiting = replace(receive(4, number, action, timeout=LONG_MS), action="send", expects="waits")
        yield case(
            ids,
            text,
            *emptied(target),
            waiting,
            Step("persist", data=cancel, note="R_CancelReceive"),
            Step("answers"),
        )
    other = (
        Step("connect", 1),
        Step("bind", 1, pdus.bind(assoc_group_id=pdus.group(0)), note="a bind to the same group"),
        Step("persist", 1, cancel, note="R_CancelReceive on another connection"),
    )
    waiting = replace(receive(4, number, timeout=LONG_MS), action="send")
    yield case(ids, text, *emptied(target), waiting, *other, Step("answers"))
    second = pdus.handle(90)
    yield case(
        ("MQRR-3.1.4.8-05",),
        "R_CancelReceive ends the read of its own handle, not one of another handle with the same number.",
        *emptied(target),
        Step("persist", data=pdus.open_queue(90, target), note="R_OpenQueue"),
        replace(waiting, expects="waits"),
        replace(receive(6, number, of=second, timeout=LONG_MS), action="send", expects="waits"),
        Step("persist", data=cancel, note="R_CancelReceive", expects="waiting"),
        Step("wait", 20),
        Step(
            "persist",
            data=pdus.of_handle(8, Opnum.R_CancelReceive, second, dwRequestId=number),
            note="R_CancelReceive of the other handle",
            expects="waiting",
        ),
        Step("answers"),
    )
    yield case(
        ("MQRR-2.2.4.1-01",),
        "Calls of one handle run while a read of it waits.",
        *emptied(target),
        replace(waiting, expects="waits"),
        call(pdus.of_handle(5, Opnum.R_CreateCursor, H), "R_CreateCursor while a read waits"),
        receive(6, number ^ 1),
        Step(
            "persist",
            data=pdus.of_handle(7, Opnum.R_CancelReceive, H, dwRequestId=number),
            note="R_CancelReceive",
        ),
        Step("answers"),
    )
    yield case(
        ("MQRR-3.1.4.3-04",),
        "R_CloseQueue ends the reads of its handle that wait.",
        *emptied(target),
        replace(waiting, expects="waits"),
        Step("wait", 30),
        call(pdus.of_handle(5, Opnum.R_CloseQueue, H), "R_CloseQueue while a read waits"),
        Step("answers", note="R_CloseQueue"),
    )
    yield case(
        ("MQRR-3.1.4.7-07",),
        "A message that comes while a read waits is its result.",
        *emptied(target),
        waiting,
        message(target, 1),
        Step("answers", note="a message has come"),
        end(5, number),
        receive(6, 8),
    )
    yield case(
        ("MQRR-3.1.6.1-03",),
        "A client that goes while it waits is forgotten, and takes no message.",
        *emptied(target),
        waiting,
        Step("reset"),
        *opened(target, connection=1, slot=5),
        message(target, 1),
        Step(
            "persist",
            1,
            pdus.start_receive(6, pdus.handle(5), 1, timeout=FIND_MS),
            expects="message",
            note="R_StartReceive",
        ),
    )
    for kind in (PduType.CO_CANCEL, PduType.ORPHANED):
        step = Step(
            "send",
            data=pdus.short(kind, 4),
            breaks=("MQRR-3.1.4.8-02",),
            note=f"{kind.name} of a read that waits",
        )
        after = opened(target, connection=1, slot=5)
        yield case(("MQRR-3.1.4.8-02",), "Others are served on.", *emptied(target), waiting, step, *after)
