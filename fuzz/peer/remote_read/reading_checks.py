"""Cases of handles, cursors, reads and messages: [MS-MQRR] 3.1.4 and 3.1.6."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from fuzz.peer.binary import messages
from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.queue_model import PATIENT_MS
from fuzz.peer.remote_read.rpc_checks import BIND, CONNECT, case
from fuzz.peer.steps import IDENTITY, Case, Step
from fuzz.peer.target import Target
from msmqwire.names import DirectName
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.remote_read.queue_format import queue_format_of
from msmqwire.rpc.constants import NDR64, PduType
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle

H: Final = pdus.handle(2)
"""The handle that the opening of `opened` gives."""
LONG_MS: Final = 10_000
FIND_MS: Final = 2 * PATIENT_MS
LASTING_S: Final = 0x0FFF_FFFF
"""TimeToReachQueue of messages: years."""

_RECEIVE, _PEEK, _NEXT = Action.MQ_ACTION_RECEIVE, Action.MQ_ACTION_PEEK_CURRENT, Action.MQ_ACTION_PEEK_NEXT
_READS: Final = frozenset({Opnum.R_StartReceive, Opnum.R_StartTransactionalReceive})


def call(data: bytes, note: str, **more: Any) -> Step:
    """Return a call whose answer is judged by what is known."""
    return Step("call", data=data, note=note, **more)


def opened(
    target: Target, *, connection: int = 0, slot: int = 2, group: bool = False, **how: Any
) -> tuple[Step, ...]:
    """Return the steps that open a queue on a new connection; `slot` is the call id, and names the handle."""
    bind = pdus.bind(assoc_group_id=pdus.group(0)) if group else BIND.data
    return (
        Step("connect", connection),
        Step("bind", connection, bind, note="bind"),
        Step("persist", connection, pdus.open_queue(slot, target, **how), note="R_OpenQueue"),
    )


def emptied(target: Target, **how: Any) -> tuple[Step, ...]:
    """Return the steps that open the usual queue, and empty it."""
    return (*opened(target, **how), call(pdus.of_handle(3, Opnum.R_PurgeQueue, H), "R_PurgeQueue"))


def message(target: Target, number: int, body: bytes = b"") -> Step:
    """Return the step that sends a message to the usual queue; its MessageID is `number`, below 256."""
    fields = {
        "BaseHeader": {"TimeToReachQueue": LASTING_S},
        "UserHeader": {"SentTime": int(time.time())},
        "MessagePropertiesHeader": {
            "Label": f"message {number}",
            "MessageBody": str(IDENTITY).encode() + body,
        },
    }
    data = messages.message(target, number, fields, recoverable=True).to_bytes()
    return Step("deliver", data=data, note=f"message {number}")


def filled(target: Target, count: int, source: random.Random) -> tuple[Step, ...]:
    """Return the steps that put messages into the emptied queue, and see the last of them arrive."""
    sent = [
        message(target, number, source.randbytes(source.randrange(400))) for number in range(1, count + 1)
    ]
    return (*emptied(target), *sent)


def receive(slot: int, request: int, action: int = _RECEIVE, of: ContextHandle = H, **how: Any) -> Step:
    """Return R_StartReceive."""
    name = Action(action).name if action in iter(Action) else f"the action {action:#x}"
    return call(pdus.start_receive(slot, of, request, action, **how), f"R_StartReceive, {name}")


def found(slot: int, request: int, action: int = _RECEIVE, of: ContextHandle = H, **how: Any) -> Step:
    """Return R_StartReceive that waits for a message which may still be on its way into the queue."""
    return replace(receive(slot, request, action, of, timeout=FIND_MS, **how), expects="message")


def end(slot: int, request: int, ack: int = Acknowledge.RR_ACK, of: ContextHandle = H) -> Step:
    """Return R_EndReceive."""
    return call(pdus.end_receive(slot, of, request, ack), f"R_EndReceive, {Acknowledge(ack).name}")


def drain(slot: int) -> Step:
    """Return the step that receives all messages, whoever has sent them."""
    data = pdus.start_receive(slot, H, 77) + pdus.end_receive(slot + 1, H, 77)
    return Step("drain", data=data, note="R_StartReceive and R_EndReceive of all that is left")


def reading_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, with values that are drawn anew."""
    yield from _opening(target, source)
    yield from _handles(target, source)
    yield from _parameters(target, source)
    yield from _empty(target, source)
    yield from _waiting(target, source)
    yield from _messages(target, source)
    yield from _sections(target, source)
    yield from _given_back(target, source)
    yield from _cursors(target, source)
    yield from _lookups(target, source)
    yield from _transactions(target, source)
    yield from _moves(target, source)


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
    yield "MQRR-3.1.4.7-41", receive(slot, 1, _PEEK, of=of)
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
        ("MQ_ACTION_PEEK_CURRENT and a LookupId", {"action": _PEEK, "lookup": some}),
        ("MQ_ACTION_PEEK_NEXT and no cursor", {"action": _NEXT}),
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
    cursor = receive(4, 1, _PEEK, cursor=source.randrange(1 << 16, 1 << 32))
    yield case(ids, "A cursor that is not there has STATUS_INVALID_HANDLE.", *opened(target), cursor)
    peeking = opened(target, access=Access.PEEK_ACCESS)
    purge = call(pdus.of_handle(4, Opnum.R_PurgeQueue, H), "R_PurgeQueue by a handle that peeks")
    yield case(("MQRR-3.1.4.6-05",), "A purge needs receive access.", *peeking, purge)
    yield case(("MQRR-3.1.4.7-12",), "A receive needs receive access.", *peeking, receive(4, 1))


# -- an empty queue --------------------------------------------------------------------------------------


def _empty(target: Target, source: random.Random) -> Iterator[Case]:
    text = "A read of an empty queue ends with MQ_ERROR_IO_TIMEOUT, when its time is over."
    ids = ("MQRR-3.1.4.7-53",)
    yield case(ids, text, *emptied(target), receive(4, 1), receive(5, 2, _PEEK), end(6, 9))
    yield case(
        ("MQRR-3.1.2.1-03",),
        text,
        *emptied(target),
        receive(4, 1, timeout=source.randrange(250, 400)),
        receive(5, 2, _PEEK, timeout=source.randrange(250, 400)),
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
    for action in (_RECEIVE, _PEEK):
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


# -- messages --------------------------------------------------------------------------------------------


def _messages(target: Target, source: random.Random) -> Iterator[Case]:
    three = filled(target, 3, source)
    first = found(4, 1)
    yield case(
        ("MQRR-3.1.4.9-05",),
        "Messages come in their order, and are gone once they are acknowledged.",
        *three,
        *(step for n in range(3) for step in (found(4 + 2 * n, n), end(5 + 2 * n, n))),
        receive(20, 9),
        receive(21, 10, _PEEK),
    )
    yield case(
        ("MQRR-3.1.4.9-06",),
        "A message that is given back comes again, at its place.",
        *three,
        first,
        end(5, 1, Acknowledge.RR_NACK),
        found(6, 2),
        found(7, 3),
        end(8, 2, Acknowledge.RR_NACK),
        found(9, 4),
        end(10, 4),
        end(11, 3),
    )
    yield case(
        ("MQRR-3.1.4.7-45",),
        "A message that was received is not given to others until that is ended.",
        *filled(target, 2, source),
        first,
        found(5, 2, _PEEK),
        found(6, 3),
        receive(7, 4),
        receive(8, 5, _PEEK),
        end(9, 3),
        end(10, 1),
    )
    yield case(
        ("MQRR-3.1.4.7-05",),
        "A peek leaves the message where it is, and has no end.",
        *filled(target, 1, source),
        found(4, 1, _PEEK),
        found(5, 1, _PEEK),
        end(6, 1),
        found(7, 2),
        end(8, 2),
    )
    yield case(
        ("MQRR-3.1.4.9-08",),
        "Another number than that of a receive has MQ_ERROR_INVALID_PARAMETER; it goes on.",
        *filled(target, 1, source),
        first,
        end(5, source.randrange(2, 1 << 32)),
        end(6, 1),
        end(7, 1),
    )
    yield case(
        ("MQRR-3.1.4.9-09",),
        "A receive ends once.",
        *filled(target, 2, source),
        first,
        found(5, 2),
        end(6, 1, Acknowledge.RR_NACK),
        end(7, 1),
        end(8, 2),
        end(9, 2),
        receive(10, 3),
    )
    yield case(
        ("MQRR-3.1.1.3-01",),
        "One number on two handles is two receives.",
        *filled(target, 2, source),
        Step("persist", data=pdus.open_queue(90, target), note="R_OpenQueue"),
        first,
        found(5, 1, of=pdus.handle(90)),
        end(6, 1, of=pdus.handle(90)),
        end(7, 1, Acknowledge.RR_NACK),
        receive(8, 2),
    )
    yield case(
        ("MQRR-3.1.4.6-04",),
        "A purge takes all messages away.",
        *emptied(target),
        drain(50),
        *three[len(emptied(target)) :],
        found(4, 1, _PEEK),
        call(pdus.of_handle(5, Opnum.R_PurgeQueue, H), "R_PurgeQueue"),
        receive(6, 2),
        receive(7, 3, _PEEK),
        drain(60),
    )
    yield case(
        ("MQRR-3.1.4.6-05",),
        "A purge without receive access leaves the queue as it is.",
        *filled(target, 1, source),
        Step(
            "persist", data=pdus.open_queue(90, target, access=Access.PEEK_ACCESS), note="R_OpenQueue to peek"
        ),
        found(4, 1, _PEEK),
        call(pdus.of_handle(5, Opnum.R_PurgeQueue, pdus.handle(90)), "R_PurgeQueue by a handle that peeks"),
        found(6, 2, of=pdus.handle(90)),
        found(7, 3),
    )


def _sections(target: Target, source: random.Random) -> Iterator[Case]:
    long = message(target, 1, source.randbytes(source.randrange(20_000, 60_000)))
    text = "A body is returned as far as it is asked for."
    peeks = [
        found(6 + n, n, _PEEK, body=size) for n, size in enumerate((0, 1, 36, source.randrange(37, 20_000)))
    ]
    for bind in (BIND, Step("bind", data=pdus.bind(NDR64), note="bind to NDR64")):
        syntax = {} if bind is BIND else {"transfer": NDR64}
        steps = [
            Step("persist", data=pdus.open_queue(2, target, **syntax), note="R_OpenQueue"),
            call(pdus.of_handle(3, Opnum.R_PurgeQueue, H, **syntax), "R_PurgeQueue"),
            long,
            found(4, 1, _PEEK, **syntax),
            *(peeks if bind is BIND else ()),
            found(20, 9, body=source.randrange(1000), **syntax),
        ]
        yield case(("MQRR-3.1.4.7-32", "MQRR-3.1.4.7-33"), text, CONNECT, bind, *steps)
    short = message(target, 1, source.randbytes(30))
    yield case(
        ("MQRR-3.1.4.7-32",),
        "A limit that equals the size cuts nothing; that of the other kind does not matter.",
        *emptied(target),
        short,
        found(4, 1, _PEEK, body=66),
        found(5, 2, _PEEK, body=65),
        found(6, 3, _PEEK, body=67),
    )


def _given_back(target: Target, source: random.Random) -> Iterator[Case]:
    text = "A message that was received, and not ended when its client goes, comes back."
    again = Step(
        "persist",
        1,
        pdus.start_receive(21, pdus.handle(20), 1, timeout=FIND_MS),
        expects="message",
        note="R_StartReceive by the next client",
    )
    for how in ("close", "reset"):
        yield case(
            ("MQRR-3.1.6.2-04",),
            text,
            *filled(target, 1, source),
            found(4, 1),
            Step(how),
            *opened(target, connection=1, slot=20),
            again,
        )
    yield case(
        ("MQRR-3.1.6.2-04",),
        text,
        *filled(target, 3, source),
        found(4, 1),
        found(5, 2),
        Step("send", data=pdus.start_receive(6, H, 3)[:20], breaks=("MQRR-3.1.6.2-04",), note="half a call"),
        Step("reset"),
        *opened(target, connection=1, slot=20),
        again,
    )


def _cursors(target: Target, source: random.Random) -> Iterator[Case]:
    made = call(pdus.of_handle(4, Opnum.R_CreateCursor, H), "R_CreateCursor")
    at = pdus.cursor(4)
    closed = call(pdus.of_handle(30, Opnum.R_CloseCursor, H, hCursor=at), "R_CloseCursor")
    text = "A cursor goes from message to message."
    yield case(
        ("MQRR-3.1.4.7-48",),
        text,
        *filled(target, 3, source),
        found(40, 40, _PEEK),
        made,
        found(5, 1, _PEEK, cursor=at),
        found(6, 2, _NEXT, cursor=at),
        found(7, 3, _PEEK, cursor=at),
        found(8, 4, _NEXT, cursor=at),
        receive(9, 5, _NEXT, cursor=at),
        closed,
    )
    yield case(
        ("MQRR-3.1.4.7-45",),
        "A receive by a cursor takes the message at the cursor.",
        *filled(target, 3, source),
        found(40, 40, _PEEK),
        made,
        found(5, 1, _PEEK, cursor=at),
        found(6, 2, _NEXT, cursor=at),
        found(7, 3, cursor=at),
        end(8, 3),
        found(9, 4),
        end(10, 4),
        found(11, 5),
        receive(12, 6),
    )
    again = replace(
        closed,
        data=pdus.of_handle(31, Opnum.R_CloseCursor, H, hCursor=at),
        note="R_CloseCursor of a closed one",
    )
    yield case(("MQRR-3.1.4.5-04",), "A cursor is closed once.", *opened(target), made, closed, again)
    used = receive(32, 1, _PEEK, cursor=at)
    yield case(("MQRR-3.1.4.7-42",), "A closed cursor reads nothing.", *opened(target), made, closed, used)
    several = [call(pdus.of_handle(slot, Opnum.R_CreateCursor, H), "R_CreateCursor") for slot in range(4, 12)]
    yield case(("MQRR-3.1.4.4-04",), "Each cursor is another one.", *opened(target), *several)
    foreign = call(
        pdus.of_handle(31, Opnum.R_CloseCursor, pdus.handle(20), hCursor=at),
        "R_CloseCursor by another handle",
    )
    second = Step("persist", data=pdus.open_queue(20, target), note="R_OpenQueue")
    yield case(
        ("MQRR-3.1.4.5-04",),
        "A cursor is closed by its handle.",
        *opened(target),
        made,
        second,
        foreign,
        closed,
    )


def _lookups(target: Target, source: random.Random) -> Iterator[Case]:
    unknown = 4 << 56 | source.randrange(1 << 50, 1 << 56)
    text = "A LookupId that no message has finds nothing."
    for action in (Action.MQ_LOOKUP_PEEK_CURRENT, Action.MQ_LOOKUP_RECEIVE_CURRENT):
        yield case(("MQRR-3.1.4.7-55",), text, *emptied(target), receive(4, 1, action, lookup=unknown))
    by = [pdus.lookup(number) for number in range(4)]
    yield case(
        ("MQRR-3.1.4.7-49",),
        "A LookupId names one message.",
        *filled(target, 3, source),
        found(4, 1),
        found(5, 2),
        found(6, 3),
        *(end(6 + n, n, Acknowledge.RR_NACK) for n in (1, 2, 3)),
        receive(10, 4, Action.MQ_LOOKUP_PEEK_CURRENT, lookup=by[2]),
        receive(11, 5, Action.MQ_LOOKUP_RECEIVE_CURRENT, lookup=by[2]),
        end(12, 5),
        receive(13, 6, Action.MQ_LOOKUP_PEEK_CURRENT, lookup=by[2]),
        receive(14, 7, Action.MQ_LOOKUP_PEEK_NEXT, lookup=by[1]),
        receive(15, 8, Action.MQ_LOOKUP_PEEK_PREV, lookup=by[3]),
    )


# -- transactions and moves ------------------------------------------------------------------------------


def _transactions(target: Target, source: random.Random) -> Iterator[Case]:
    some = source.randbytes(16)
    within = call(pdus.start_receive(4, H, 1, transaction=some), "R_StartTransactionalReceive")
    yield case(
        ("MQRR-3.1.4.13-33",),
        "A non-transactional queue is not read in a transaction.",
        *opened(target),
        within,
    )
    yield case(
        ("MQRR-3.1.4.13-30",),
        "Without a transaction R_StartTransactionalReceive is R_StartReceive.",
        *filled(target, 1, source),
        call(
            pdus.start_receive(4, H, 1, timeout=2 * PATIENT_MS, transaction=bytes(16)),
            "R_StartTransactionalReceive",
        ),
        end(5, 1),
        call(pdus.start_receive(6, H, 2, transaction=bytes(16)), "R_StartTransactionalReceive"),
    )
    wrong = pdus.start_receive(4, H, 1, Action.MQ_LOOKUP_RECEIVE_NEXT, transaction=bytes(16))
    yield case(
        ("MQRR-3.1.4.13-29",),
        "It checks its arguments as well.",
        *opened(target),
        call(wrong, "R_StartTransactionalReceive"),
    )
    ending = pdus.end_receive(4, H, 1, opnum=Opnum.R_EndTransactionalReceive)
    yield case(
        ("MQRR-3.1.4.15-07",),
        "What has not begun does not end.",
        *opened(target),
        call(ending, "R_EndTransactionalReceive"),
    )
    rejection = pdus.of_handle(
        4, Opnum.R_SetUserAcknowledgementClass, H, LookupId=source.randrange(1 << 50, 1 << 56), usClass=0xC004
    )
    yield case(
        ("MQRR-3.1.4.14-08",),
        "A message that is not there is not rejected.",
        *emptied(target),
        call(rejection, "R_SetUserAcknowledgementClass"),
    )
    if target.transactional_queue:
        peek = pdus.start_receive(4, H, 1, _PEEK, transaction=some)
        yield case(
            ("MQRR-3.1.4.13-34",),
            "A peek is never part of a transaction.",
            *opened(target, queue=target.transactional_queue),
            call(peek, "R_StartTransactionalReceive, a peek"),
        )


def _moves(target: Target, source: random.Random) -> Iterator[Case]:
    def moving(slot: int, to: int, lookup: int) -> Step:
        data = pdus.call_of(
            slot,
            Opnum.R_MoveMessage,
            phContextFrom=H,
            ullContextTo=to,
            LookupId=lookup,
            pTransactionId={"rgb": bytes(16)},
        )
        return call(data, "R_MoveMessage")

    text = "A move goes to a queue that was opened for it."
    yield case(("MQRR-3.1.4.10-09",), text, *opened(target), moving(4, source.randrange(1, 1 << 64), 1))
    name = DirectName("TCP", target.host, target.queue.rpartition("\\")[2], private=True, subqueue="msmqwire")
    form = queue_format_of(name, subqueue_prefix=False)
    there = pdus.call_of(20, Opnum.R_OpenQueueForMove, **pdus.opening(form, Access.MQ_MOVE_ACCESS))
    yield case(
        ("MQRR-3.1.4.10-12",),
        "A message that is not there is not moved.",
        *emptied(target),
        call(there, "R_OpenQueueForMove of a subqueue"),
        moving(5, pdus.move_context(20), source.randrange(1 << 50, 1 << 56)),
    )
    if target.transactional_queue:
        other = pdus.open_queue(
            20, target, target.transactional_queue, access=Access.MQ_MOVE_ACCESS, for_move=True
        )
        yield case(
            ("MQRR-3.1.4.10-10",),
            "Messages move between a queue and its subqueues alone.",
            *opened(target),
            call(other, "R_OpenQueueForMove"),
            moving(5, pdus.move_context(20), 1),
        )
