"""Cases of messages that are read, ended and given back: [MS-MQRR] 3.1.4.7, 3.1.4.9 and 3.1.6."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.reading_steps import (
    FIND_MS,
    NEXT,
    OPEN_TO_PEEK,
    PEEK,
    H,
    call,
    drain,
    emptied,
    end,
    filled,
    found,
    message,
    opened,
    receive,
)
from fuzz.peer.remote_read.rpc_checks import BIND, CONNECT, case, port_call
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum
from msmqwire.rpc.constants import NDR64


def message_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, with values that are drawn anew."""
    yield from _messages(target, source)
    yield from _sections(target, source)
    yield from _in_ndr64(target, source)
    yield from _given_back(target, source)
    yield from _cursors(target, source)
    yield from _lookups(target, source)


def _messages(target: Target, source: random.Random) -> Iterator[Case]:
    three = filled(target, 3, source)
    first = found(4, 1)
    yield case(
        ("MQRR-3.1.4.9-05",),
        "Messages come in their order, and are gone once they are acknowledged.",
        *three,
        *(step for n in range(3) for step in (found(4 + 2 * n, n), end(5 + 2 * n, n))),
        receive(20, 9),
        receive(21, 10, PEEK),
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
        "A message that was received is not given to other callers until that is ended.",
        *filled(target, 2, source),
        first,
        found(5, 2, PEEK),
        found(6, 3),
        receive(7, 4),
        receive(8, 5, PEEK),
        end(9, 3),
        end(10, 1),
    )
    yield case(
        ("MQRR-3.1.4.7-05",),
        "A peek leaves the message where it is, and has no end.",
        *filled(target, 1, source),
        found(4, 1, PEEK),
        found(5, 1, PEEK),
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
        found(4, 1, PEEK),
        call(pdus.of_handle(5, Opnum.R_PurgeQueue, H), "R_PurgeQueue"),
        receive(6, 2),
        receive(7, 3, PEEK),
        drain(60),
    )
    yield case(
        ("MQRR-3.1.4.6-05",),
        "A purge without receive access leaves the queue as it is.",
        *filled(target, 1, source),
        Step("persist", data=pdus.open_queue(90, target, access=Access.PEEK_ACCESS), note=OPEN_TO_PEEK),
        found(4, 1, PEEK),
        call(pdus.of_handle(5, Opnum.R_PurgeQueue, pdus.handle(90)), "R_PurgeQueue by a handle that peeks"),
        found(6, 2, of=pdus.handle(90)),
        found(7, 3),
    )


def _sections(target: Target, source: random.Random) -> Iterator[Case]:
    long = message(target, 1, source.randbytes(source.randrange(20_000, 60_000)))
    text = "A body is returned as far as it is asked for."
    peeks = [
        found(6 + n, n, PEEK, body=size) for n, size in enumerate((0, 1, 36, source.randrange(37, 20_000)))
    ]
    for bind in (BIND, Step("bind", data=pdus.bind(NDR64), note="bind to NDR64")):
        syntax: dict[str, Any] = {} if bind is BIND else {"transfer": NDR64}
        steps = [
            Step("persist", data=pdus.open_queue(2, target, **syntax), note="R_OpenQueue"),
            call(pdus.of_handle(3, Opnum.R_PurgeQueue, H, **syntax), "R_PurgeQueue"),
            long,
            found(4, 1, PEEK, **syntax),
            *(peeks if bind is BIND else ()),
            found(20, 9, body=source.randrange(1000), **syntax),
        ]
        yield case(("MQRR-3.1.4.7-32", "MQRR-3.1.4.7-33"), text, CONNECT, bind, *steps)
    narrow = Step("bind", data=pdus.bind(max_recv_frag=1432, max_xmit_frag=1432), note="bind with 1432 bytes")
    yield case(
        ("MQRR-2.1-01",),
        "No fragment of an answer is longer than its client takes.",
        CONNECT,
        narrow,
        Step("persist", data=pdus.open_queue(2, target), note="R_OpenQueue"),
        call(pdus.of_handle(3, Opnum.R_PurgeQueue, H), "R_PurgeQueue"),
        long,
        found(4, 1, PEEK),
        found(5, 2),
        end(6, 2),
    )
    short = message(target, 1, source.randbytes(30))
    yield case(
        ("MQRR-3.1.4.7-32",),
        "A limit that equals the size cuts nothing; that of the other kind does not matter.",
        *emptied(target),
        short,
        found(4, 1, PEEK, body=66),
        found(5, 2, PEEK, body=65),
        found(6, 3, PEEK, body=67),
    )


def _in_ndr64(target: Target, source: random.Random) -> Iterator[Case]:
    """Every method in the other transfer syntax."""
    wide: dict[str, Any] = {"transfer": NDR64}
    lookup = source.randrange(1 << 50, 1 << 56)

    def of_handle(slot: int, opnum: Opnum, **more: Any) -> Step:
        return call(pdus.of_handle(slot, opnum, H, **wide, **more), opnum.name)

    def ending(slot: int, request: int, ack: int, opnum: Opnum = Opnum.R_EndReceive) -> Step:
        return call(pdus.end_receive(slot, H, request, ack, opnum, **wide), opnum.name)

    moving = pdus.call_of(
        40,
        Opnum.R_MoveMessage,
        phContextFrom=H,
        ullContextTo=lookup,
        LookupId=lookup,
        pTransactionId={"rgb": pdus.NO_TRANSACTION},
        **wide,
    )
    yield case(
        ("MQRR-2.2-01",),
        "All methods work in NDR64.",
        CONNECT,
        Step("bind", data=pdus.bind(NDR64), note="bind to NDR64"),
        Step("persist", data=pdus.open_queue(2, target, **wide), note="R_OpenQueue"),
        of_handle(3, Opnum.R_PurgeQueue),
        of_handle(4, Opnum.R_CreateCursor),
        message(target, 1, source.randbytes(100)),
        found(5, 1, PEEK, **wide),
        found(6, 2, PEEK, cursor=pdus.cursor(4), **wide),
        found(7, 3, **wide),
        ending(8, 3, Acknowledge.RR_NACK),
        found(9, 4, **wide),
        ending(10, 4, Acknowledge.RR_ACK),
        receive(11, 5, **wide),
        ending(12, 9, Acknowledge.RR_ACK),
        of_handle(13, Opnum.R_CancelReceive, dwRequestId=9),
        of_handle(14, Opnum.R_CloseCursor, hCursor=pdus.cursor(4)),
        of_handle(15, Opnum.R_SetUserAcknowledgementClass, LookupId=lookup, usClass=0xC004),
        receive(16, 6, transaction=pdus.NO_TRANSACTION, **wide),
        ending(17, 9, Acknowledge.RR_ACK, Opnum.R_EndTransactionalReceive),
        call(moving, "R_MoveMessage"),
        call(pdus.open_queue(41, target, for_move=True, **wide), "R_OpenQueueForMove"),
        port_call(42),
        call(pdus.of_handle(43, Opnum.R_CloseQueue, H, **wide), "R_CloseQueue"),
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
        found(40, 40, PEEK),
        made,
        found(5, 1, PEEK, cursor=at),
        found(6, 2, NEXT, cursor=at),
        found(7, 3, PEEK, cursor=at),
        found(8, 4, NEXT, cursor=at),
        receive(9, 5, NEXT, cursor=at),
        closed,
    )
    yield case(
        ("MQRR-3.1.4.7-45",),
        "A receive by a cursor takes the message at the cursor.",
        *filled(target, 3, source),
        found(40, 40, PEEK),
        made,
        found(5, 1, PEEK, cursor=at),
        found(6, 2, NEXT, cursor=at),
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
    used = receive(32, 1, PEEK, cursor=at)
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
