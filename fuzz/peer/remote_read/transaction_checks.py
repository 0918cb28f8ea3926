"""Cases of transactions and moves: [MS-MQRR] 3.1.4.10 to 3.1.4.15."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.reading_steps import (
    FIND_MS,
    PEEK,
    H,
    call,
    emptied,
    end,
    filled,
    found,
    opened,
    receive,
)
from fuzz.peer.remote_read.rpc_checks import case
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.names import DirectName
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum
from msmqwire.rpc.queue_format import queue_format_of


def transaction_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, with values that are drawn anew."""
    yield from _transactions(target, source)
    yield from _moves(target, source)


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
            pdus.start_receive(4, H, 1, timeout=FIND_MS, transaction=bytes(16)),
            "R_StartTransactionalReceive",
            expects="message",
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
        peek = pdus.start_receive(4, H, 1, PEEK, transaction=some)
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
    folder, _, queue = target.queue.rpartition("\\")
    name = DirectName("TCP", target.host, queue, private=bool(folder), subqueue="msmqwire")
    form = queue_format_of(name, subqueue_prefix=False)
    there = pdus.call_of(20, Opnum.R_OpenQueueForMove, **pdus.opening(form, Access.MQ_MOVE_ACCESS))
    yield case(
        ("MQRR-3.1.4.10-12",),
        "A message that is not there is not moved.",
        *emptied(target),
        call(there, "R_OpenQueueForMove of a subqueue"),
        moving(5, pdus.move_context(20), source.randrange(1 << 50, 1 << 56)),
    )
    yield case(
        ("MQRR-3.1.4.10-16",),
        "A message that is moved is no longer where it was.",
        *filled(target, 2, source),
        found(4, 1),
        end(5, 1, Acknowledge.RR_NACK),
        call(there, "R_OpenQueueForMove of a subqueue"),
        moving(6, pdus.move_context(20), pdus.lookup(1)),
        found(7, 2),
        receive(8, 3),
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
