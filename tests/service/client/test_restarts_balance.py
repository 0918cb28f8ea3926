"""Senders and readers that stay attached while their server is killed again and again: the books balance."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import msmqwire
from msmqwire.errors import (
    EndUnknown,
    OutcomeUnknown,
    QueueError,
    ReadTimeout,
    TransactionAborted,
    Unreachable,
)
from msmqwire.qm.client import Queue, ReceivedMessage
from tests.support.running import LEDGER, ORDERS, Process, listed
from tests.support.sending import run

KILLS = 10
PAUSE_S = 0.02


class Books:
    """What was sent and received, by the bodies of messages."""

    def __init__(self) -> None:
        self.stored: set[str] = set()
        self.sent_in_doubt: set[str] = set()
        self.received: Counter[str] = Counter()
        self.ends_in_doubt: set[str] = set()
        self.outages = 0


async def send(queue: Queue, books: Books, stop: asyncio.Event, *, transactional: bool) -> None:
    """Send numbered messages; what surely was not sent is sent again."""
    number = 0
    while not stop.is_set():
        body = f"{'t' if transactional else 'r'}{number}"
        try:
            await queue.send(body.encode(), recoverable=not transactional, transactional=transactional)
            books.stored.add(body)
        except OutcomeUnknown:
            books.sent_in_doubt.add(body)
        except Unreachable:
            books.outages += 1
            await asyncio.sleep(PAUSE_S)  # and of its next attempt
            continue
        number += 1
        await asyncio.sleep(PAUSE_S)  # the pace of a program


async def receive(queue: Queue, books: Books, stop: asyncio.Event, chance: random.Random) -> None:
    """Receive by one of several ways until nothing comes any more."""
    while True:
        stopping = stop.is_set()
        body = ""
        try:
            if chance.random() < 0.4:
                body = (await queue.receive(0.3)).body.decode()
            elif queue.format_name.upper().endswith("LEDGER") and chance.random() < 0.5:
                async with queue.transaction() as transaction:
                    body = (await queue.receive(0.3, transaction=transaction)).body.decode()
            else:
                async with queue.receiving(0.3) as message:
                    body = message.body.decode()
        except ReadTimeout:
            if stopping:
                return
            continue
        except OutcomeUnknown as exc:
            if isinstance(exc, EndUnknown) and isinstance(exc.message, ReceivedMessage):
                body = exc.message.body.decode()
            assert body, "what is in doubt is known"
            books.ends_in_doubt.add(body)
            continue
        except (TransactionAborted, Unreachable, QueueError):
            books.outages += 1
            await asyncio.sleep(PAUSE_S)  # and of its next attempt
            continue
        books.received[body] += 1


def test_books_of_attached_programs_balance_over_server_kills(data: Path) -> None:
    chance, books = random.Random(77), Books()
    servers = [Process(data, "--queue", ORDERS, "--queue", f"{LEDGER};transactional")]

    async def scenario() -> None:
        stop = asyncio.Event()
        async with msmqwire.attach(data) as sending, msmqwire.attach(data) as receiving:
            programs = [
                asyncio.create_task(send(sending.queue(ORDERS), books, stop, transactional=False)),
                asyncio.create_task(send(sending.queue(LEDGER), books, stop, transactional=True)),
            ]
            programs += [
                asyncio.create_task(receive(receiving.queue(name), books, stop, random.Random(seed)))
                for seed, name in enumerate((ORDERS, ORDERS, LEDGER, LEDGER))
            ]
            for _ in range(KILLS):
                await asyncio.sleep(chance.uniform(0.2, 1.5))  # the moment of the kill, at random
                await asyncio.to_thread(servers[-1].close)  # by SIGKILL
                await asyncio.sleep(chance.uniform(0, 0.5))  # the outage
                servers.append(await asyncio.to_thread(Process, data))
            await asyncio.sleep(1)  # the programs go on after the last outage
            stop.set()
            await asyncio.gather(*programs)

    try:
        run(scenario())
        assert all(listed(data)[name]["messages"] == 0 for name in (ORDERS, LEDGER))
    finally:
        servers[-1].stop()
        servers[-1].close()
    received = set(books.received)
    assert books.outages > KILLS
    assert len(books.stored) > KILLS
    assert books.stored <= received | books.ends_in_doubt, "nothing is lost"
    assert received <= books.stored | books.sent_in_doubt, "nothing comes from nowhere"
    twice = {body for body, times in books.received.items() if times > 1}
    assert twice == set(), "once, and at most once more where the end was in doubt, which is counted apart"
