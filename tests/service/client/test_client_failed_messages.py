"""Leaving a client raises if messages were refused or given up, unless the program was told already."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidValue, NotDelivered, Unreachable
from msmqwire.qm.client import connection as connection_module
from msmqwire.qm.client import manager as manager_module
from msmqwire.qm.client.manager import ClientManager, Failures, UntransferredMessage
from msmqwire.qm.model.message import ObjectId
from tests.support.running import PATIENCE_S, InThread
from tests.support.sending import LEDGER, ORDERS, connect, messages, run

NOWHERE = r"private$\nothing"


class Absent:
    """An address without a server."""

    address, port = "127.0.0.99", 1


REFUSALS = [
    pytest.param(ORDERS, "NACK_NOT_TRANSACTIONAL_Q", id="not transactional"),
    pytest.param(NOWHERE, "NACK_BAD_DST_Q", id="not there"),
]


def check_class(caught: Any, name: str) -> None:
    """Check that a message was refused by a final acknowledgement of this class."""
    assert (caught.value.why, caught.value.message_class) == (name, MessageClass[f"MQMSG_CLASS_{name}"])


@pytest.mark.parametrize("queue, name", REFUSALS)
def test_leaving_tells_of_a_transaction_that_is_refused(server: InThread, queue: str, name: str) -> None:
    def send() -> None:
        with connect(server, queue) as client, client.transaction() as transaction:
            sent.append(transaction.send(b"x").identifier)

    sent: list[str] = []
    with pytest.raises(NotDelivered) as caught:
        send()
    check_class(caught, name)
    assert [caught.value.identifier] == sent
    assert str(caught.value) == f"{sent[0]}: {name}"


@pytest.mark.parametrize("queue, name", REFUSALS)
def test_a_refusal_is_raised_to_the_waiter_and_not_again_on_exit(
    server: InThread, queue: str, name: str
) -> None:
    with connect(server, queue) as client:
        sent = client.send(b"x", transactional=True)
        with pytest.raises(NotDelivered) as caught:
            sent.transferred()
        check_class(caught, name)


def test_a_sender_with_an_acknowledgement_gets_no_second_one(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            for _ in range(20):
                sent = await client.send(b"x", transactional=True, acknowledge="full_reach_queue")
                with pytest.raises(NotDelivered):
                    await sent.arrived()
                del sent
                gc.collect()

    run(send())


def test_leaving_tells_how_many_were_not_delivered(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            for _ in range(5):
                await client.send(b"x", transactional=True)
            await client.send(b"this one comes", recoverable=True)
            known = await client.send(b"x", transactional=True)
            with pytest.raises(NotDelivered):
                await known.transferred()

    with pytest.raises(NotDelivered) as caught:
        run(send())
    assert caught.value.why == "NACK_NOT_TRANSACTIONAL_Q, and 4 more were not delivered"
    assert len(messages(server)) == 1


@pytest.mark.parametrize("properties", [{}, {"recoverable": True}, {"transactional": True}], ids=str)
def test_leaving_tells_of_a_time_that_was_over(properties: dict[str, Any]) -> None:
    def send() -> None:
        with connect(Absent, LEDGER, drain=PATIENCE_S) as client:  # type: ignore[arg-type]
            client.send(b"x", time_to_reach_queue=1, **properties)

    start = time.monotonic()
    with pytest.raises(NotDelivered, match="was over: nobody listens at 127") as caught:
        send()
    assert caught.value.message_class is None
    assert time.monotonic() - start < PATIENCE_S


def test_an_exception_of_the_block_is_the_one_that_leaves_it(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            sent = await client.send(b"x", transactional=True)
            with pytest.raises(NotDelivered):
                await sent.transferred()
            await client.send(b"x", transactional=True)
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(send())


def test_losses_are_reported_first(server: InThread) -> None:
    async def send() -> None:
        names = rf"{ORDERS},DIRECT=TCP:127.0.0.99\{LEDGER}"
        async with connect(server, names, drain=0.5) as client:
            await client.send(b"x", recoverable=True)

    with pytest.raises(Unreachable, match=r"a message was not transferred"):
        run(send())


def test_many_failures_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "_FAILURES_MAX", 3)
    failures = Failures()
    ids = [ObjectId(UUID(int=1), number) for number in range(1, 8)]
    for identifier in ids:
        failures.add(identifier, None)
        failures.add(ids[0], None)
    error = failures.error()
    assert error is not None
    assert error.why == "it was given up, and 6 more were not delivered"
    failures.mark_reported(ids[0])
    error = failures.error()
    assert error is not None
    assert error.identifier.endswith("\\2")
    assert error.why == "it was given up, and 5 more were not delivered"


def test_failures_already_reported_are_not_raised_again() -> None:
    """The failure may come after the report."""
    failures, identifier = Failures(), ObjectId(UUID(int=1), 1)
    failures.mark_reported(identifier)
    failures.add(identifier, None)
    assert failures.error() is None


@pytest.mark.parametrize("wrong", ["no", 1, None, []])
def test_transactional_is_true_or_false(server: InThread, wrong: Any) -> None:
    with connect(server) as client, pytest.raises(InvalidValue, match="neither true nor false") as caught:
        client.send(b"x", transactional=wrong)
    assert caught.value.path == "transactional"
    assert messages(server) == []


def test_looking_for_what_waits_ends_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving looks often: its cost must not grow with the number of waiting messages."""
    visited: list[object] = []

    def look(manager: ClientManager) -> Iterator[UntransferredMessage]:
        before = len(visited)
        for message in waiting(manager):
            visited.append(message)
            if len(visited) > before + 1:
                repeated.append(len(visited))
            yield message

    async def send() -> None:
        async with connect(Absent, drain=0.3) as client:  # type: ignore[arg-type]
            for _ in range(1000):
                await client.send(b"x", recoverable=True)

    waiting, repeated = ClientManager.waiting, list[int]()
    monkeypatch.setattr(ClientManager, "waiting", look)
    monkeypatch.setattr(connection_module, "_GRACE_S", -1)
    with pytest.raises(Unreachable, match="1,000 messages"):
        run(send())
    assert len(visited) - 1000 > 0, "it has looked before the end too"
    assert len(repeated) == 999, "all messages are looked at only once"


@pytest.mark.parametrize(
    ("queue", "properties"),
    [
        (ORDERS, {}),
        (ORDERS, {"recoverable": True}),
        (ORDERS, {"acknowledge": "full_receive"}),
        (LEDGER, {"transactional": True}),
        (NOWHERE, {"transactional": True}),
    ],
    ids=str,
)
def test_nothing_is_kept_of_messages_whose_outcome_is_known(
    server: InThread, queue: str, properties: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor of those of a transaction that is aborted: a program may send without end."""
    managers: list[ClientManager] = []
    start = ClientManager.start

    async def noted(self: ClientManager) -> None:
        managers.append(self)
        await start(self)

    monkeypatch.setattr(ClientManager, "start", noted)
    with suppress(NotDelivered), connect(server, queue) as client:
        for _ in range(40):
            client.send(b"x", **properties)
        if "transactional" in properties:
            with suppress(KeyError), client.transaction() as transaction:
                transaction.send(b"y")
                raise KeyError
    (manager,) = managers
    assert not manager._pending
    gc.collect()
    assert not manager._asking
