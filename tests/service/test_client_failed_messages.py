"""Leaving a client whose messages were refused or given up raises, unless the program knows it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidValue, NotDelivered, Unreachable
from msmqwire.qm.client import connection as connection_module
from msmqwire.qm.client import manager as manager_module
from msmqwire.qm.client.manager import ClientManager, Failures, Waiting
from msmqwire.qm.model.message import ObjectId
from tests.support.running import PATIENCE_S, InThread
from tests.support.sending import LEDGER, ORDERS, messages, run, way

NOWHERE = r"private$\nothing"


class Nobody:
    """Where no server is."""

    address, port = "127.0.0.99", 1


REFUSALS = [
    pytest.param(ORDERS, "NACK_NOT_TRANSACTIONAL_Q", id="not transactional"),
    pytest.param(NOWHERE, "NACK_BAD_DST_Q", id="not there"),
]


def told(caught: Any, name: str) -> None:
    """One message was refused, by a final acknowledgement of this class."""
    assert (caught.value.why, caught.value.message_class) == (name, MessageClass[f"MQMSG_CLASS_{name}"])


@pytest.mark.parametrize("queue, name", REFUSALS)
def test_leaving_tells_of_a_transaction_that_is_refused(server: InThread, queue: str, name: str) -> None:
    def send() -> None:
        with way(server, queue) as there, there.transaction() as transaction:
            sent.append(transaction.send(b"x").identifier)

    sent: list[str] = []
    with pytest.raises(NotDelivered) as caught:
        send()
    told(caught, name)
    assert [caught.value.identifier] == sent
    assert str(caught.value) == f"{sent[0]}: {name}"


@pytest.mark.parametrize("queue, name", REFUSALS)
def test_who_waits_is_told_the_class_and_leaving_says_nothing_more(
    server: InThread, queue: str, name: str
) -> None:
    with way(server, queue) as there:
        sent = there.send(b"x", transactional=True)
        with pytest.raises(NotDelivered) as caught:
            sent.transferred()
        told(caught, name)


def test_who_was_told_by_an_acknowledgement_is_not_told_again(server: InThread) -> None:
    async def send() -> None:
        async with way(server) as there:
            for _ in range(20):
                sent = await there.send(b"x", transactional=True, acknowledge="full_reach_queue")
                with pytest.raises(NotDelivered):
                    await sent.arrived()
                del sent
                gc.collect()

    run(send())


def test_leaving_tells_how_many_were_not_delivered(server: InThread) -> None:
    async def send() -> None:
        async with way(server) as there:
            for _ in range(5):
                await there.send(b"x", transactional=True)
            await there.send(b"this one comes", recoverable=True)
            known = await there.send(b"x", transactional=True)
            with pytest.raises(NotDelivered):
                await known.transferred()

    with pytest.raises(NotDelivered) as caught:
        run(send())
    assert caught.value.why == "NACK_NOT_TRANSACTIONAL_Q, and 4 more were not delivered"
    assert len(messages(server)) == 1


@pytest.mark.parametrize("how", [{}, {"recoverable": True}, {"transactional": True}], ids=str)
def test_leaving_tells_of_a_time_that_was_over(how: dict[str, Any]) -> None:
    def send() -> None:
        with way(Nobody, LEDGER, drain=PATIENCE_S) as there:  # type: ignore[arg-type]
            there.send(b"x", time_to_reach_queue=1, **how)

    begun = time.monotonic()
    with pytest.raises(NotDelivered, match="it was given up") as caught:
        send()
    assert caught.value.message_class is None
    assert time.monotonic() - begun < PATIENCE_S


def test_an_exception_of_the_block_is_the_one_that_leaves_it(server: InThread) -> None:
    async def send() -> None:
        async with way(server) as there:
            sent = await there.send(b"x", transactional=True)
            with pytest.raises(NotDelivered):
                await sent.transferred()
            await there.send(b"x", transactional=True)
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(send())


def test_what_is_lost_is_told_first(server: InThread) -> None:
    async def send() -> None:
        names = rf"{ORDERS},DIRECT=TCP:127.0.0.99\{LEDGER}"
        async with way(server, names, drain=0.5) as there:
            await there.send(b"x", recoverable=True)

    with pytest.raises(Unreachable, match=r"a message was not transferred"):
        run(send())


def test_many_failures_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "_FAILURES_MAX", 3)
    failures = Failures()
    ids = [ObjectId(UUID(int=1), number) for number in range(1, 8)]
    for one in ids:
        failures.add(one, None)
        failures.add(ids[0], None)
    found = failures.error()
    assert found is not None
    assert found.why == "it was given up, and 6 more were not delivered"
    failures.mark_reported(ids[0])
    found = failures.error()
    assert found is not None
    assert found.identifier.endswith("\\2")
    assert found.why == "it was given up, and 5 more were not delivered"


def test_failures_that_are_known_are_not_told_also_when_they_come_later() -> None:
    failures, one = Failures(), ObjectId(UUID(int=1), 1)
    failures.mark_reported(one)
    failures.add(one, None)
    assert failures.error() is None


@pytest.mark.parametrize("wrong", ["no", 1, None, []])
def test_transactional_is_true_or_false(server: InThread, wrong: Any) -> None:
    with way(server) as there, pytest.raises(InvalidValue, match="neither true nor false") as caught:
        there.send(b"x", transactional=wrong)
    assert caught.value.path == "transactional"
    assert messages(server) == []


def test_looking_for_what_waits_ends_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving looks often: what it costs must not grow with what waits."""
    looked: list[object] = []

    def look(manager: ClientManager) -> Iterator[Waiting]:
        looks = len(looked)
        for one in waiting(manager):
            looked.append(one)
            if len(looked) > looks + 1:
                more.append(len(looked))
            yield one

    async def send() -> None:
        async with way(Nobody, drain=0.3) as there:  # type: ignore[arg-type]
            for _ in range(1000):
                await there.send(b"x", recoverable=True)

    waiting, more = ClientManager.waiting, list[int]()
    monkeypatch.setattr(ClientManager, "waiting", look)
    monkeypatch.setattr(connection_module, "_GRACE_S", -1)
    with pytest.raises(Unreachable, match="1000 messages"):
        run(send())
    assert len(looked) - 1000 > 0, "it has looked more than the once at the end"
    assert len(more) == 999, "all were looked at only once"
