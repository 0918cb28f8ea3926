"""Queues as objects: transactions do all that belongs to them, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import InvalidValue
from msmqwire.qm.client import Queue, QueueManager
from msmqwire.qm.client.local_queues import LocalReading
from msmqwire.qm.client.reading import Read
from msmqwire.remote_read.constants import Action
from tests.support.qm.queues import POISON, orders, refused, rest
from tests.support.running import LEDGER, ORDERS
from tests.support.sending import run


async def ledger(manager: QueueManager, *bodies: bytes) -> Queue:
    """The transactional queue of a folder, with messages."""
    queue = manager.queue(LEDGER)
    for body in bodies:
        await queue.send(body, transactional=True)
    return queue


def test_a_transaction_takes_and_sends_when_it_is_committed(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            queue = await ledger(manager, b"1", b"2", b"3")
            answers = await manager.create_queue(r"private$\answers", transactional=True)
            async with queue.transaction() as transaction:
                first = await queue.receive(0, transaction=transaction)
                third = await queue.receive_by_lookup(
                    (
                        await queue.peek_by_lookup((await queue.peek(0)).lookup_identifier, "next")
                    ).lookup_identifier,
                    transaction=transaction,
                )
                sent = [transaction.send(b"4"), await answers.send(b"answer", transaction=transaction)]
                assert (first.body, third.body, third.transactional) == (b"1", b"3", True)
                assert (await rest(queue), await rest(answers)) == ([b"2"], [])
            assert (await rest(queue), await rest(answers)) == ([b"2", b"4"], [b"answer"])
            await sent[1].transferred(0)
            assert (await answers.receive(0)).identifier == sent[1].identifier

    run(scenario())


def test_an_aborted_transaction_undoes_all(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            queue = await ledger(manager, b"1", b"2", b"3")

            async def fail() -> None:
                async with queue.transaction() as transaction, queue.cursor() as cursor:
                    await queue.receive(0, transaction=transaction)
                    await cursor.receive(0, transaction=transaction)
                    await queue.move(await queue.peek(0), f"{LEDGER};done", transaction=transaction)
                    transaction.send(b"4")
                    assert await rest(queue) == []
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fail()
            assert await rest(queue) == [b"1", b"2", b"3"]
            async with queue.transaction() as transaction:
                await queue.move(await queue.peek(0), f"{LEDGER};done", transaction=transaction)
            assert await rest(manager.queue(f"{LEDGER};done")) == [b"1"]

    run(scenario())


def test_a_transaction_that_is_refused_does_nothing(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            queue = await ledger(manager, b"1")

            async def commit() -> None:
                async with queue.transaction() as transaction:
                    await queue.receive(0, transaction=transaction)
                    transaction.send(b"2")
                    await manager.queue(ORDERS).send(b"3", transaction=transaction)

            assert await refused(commit()) == "MQ_ERROR_TRANSACTION_USAGE"
            assert (await rest(queue), await rest(manager.queue(ORDERS))) == ([b"1"], [])

    run(scenario())


def test_leaving_the_folder_aborts_an_open_transaction(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            queue = await ledger(manager, b"1")
            block = queue.transaction()
            await queue.receive(0, transaction=await block.__aenter__())
        async with msmqwire.attach(folder) as manager:
            assert await rest(manager.queue(LEDGER)) == [b"1"]

    run(scenario())


@pytest.mark.requirement("DMPR-3.1.7.1.10-11")
def test_a_message_returned_in_a_transaction_survives_its_commit(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            queue = await ledger(manager, b"1", b"2")
            reading = LocalReading(manager._requests, queue.format_name, manager.name)
            async with queue.transaction() as transaction:
                await queue.receive(0, transaction=transaction)
                read = Read(Action.MQ_ACTION_RECEIVE, 0, transaction=transaction.unit.identifier)
                assert (await reading.start(1, read)).body == b"2"
                await reading.end(1, acknowledge=False)
                assert await rest(queue) == [b"2"]
            assert await rest(queue) == [b"2"]

    run(scenario())


def test_a_queue_that_is_not_transactional_takes_no_part(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1") as queue, queue.transaction() as transaction:
            assert await refused(queue.receive(0, transaction=transaction)) == "MQ_ERROR_TRANSACTION_USAGE"
            moving = queue.move(await queue.peek(0), POISON, transaction=transaction)
            assert await refused(moving) == "MQ_ERROR_TRANSACTION_USAGE"

    run(scenario())


@pytest.mark.requirement("DMPR-3.1.7.1.16-01")
@pytest.mark.parametrize("word", ["JOURNAL", "DEADLETTER", "DEADXACT"])
def test_nothing_moves_to_a_system_queue(folder: Path, word: str) -> None:
    """Neither in a transaction nor without one."""

    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            queue, system = await ledger(manager, b"1"), f"SYSTEM$;{word}"
            async with queue.transaction() as transaction:
                for unit in (transaction, None):
                    moving = queue.move(await queue.peek(0), system, transaction=unit)
                    assert await refused(moving) == "MQ_ERROR_INVALID_PARAMETER"
            assert (await rest(queue), await rest(manager.queue(system))) == ([b"1"], [])

    run(scenario())


def test_a_transaction_belongs_to_its_manager_until_it_ends(folder: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            msmqwire.attach(folder) as manager,
            msmqwire.attach(tmp_path / "other", create=True) as other,
        ):
            queue = await ledger(manager, b"1")
            elsewhere = await other.create_queue(LEDGER, transactional=True)
            async with queue.transaction() as transaction:
                with pytest.raises(InvalidValue) as caught:
                    await elsewhere.send(b"x", transaction=transaction)
                assert caught.value.path == "transaction"
                assert (
                    await refused(elsewhere.receive(0, transaction=transaction))
                    == "MQ_ERROR_TRANSACTION_SEQUENCE"
                )
            for late in (
                queue.receive(0, transaction=transaction),
                queue.send(b"x", transaction=transaction),
            ):
                with pytest.raises(InvalidValue, match="it has ended"):
                    await late
            assert await rest(queue) == [b"1"]

    run(scenario())
