"""Restarts of a server under programs and commands that use its queues."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.cli import reading
from msmqwire.errors import (
    EndUnknown,
    ManagerStopped,
    MsmqError,
    OutcomeUnknown,
    QueueError,
    ReadTimeout,
    TransactionAborted,
    Unreachable,
)
from msmqwire.qm.client import Queue
from msmqwire.qm.runtime.data_folder import STORE
from msmqwire.qm.runtime.folder import default_name
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.requests import LastingRequests
from msmqwire.qm.store import open_store
from tests.support.patience import happens, limit
from tests.support.qm.queues import reads_wait, subscriptions_wait, under_way
from tests.support.running import (
    LEDGER,
    ORDERS,
    Process,
    Run,
    begun,
    called,
    ended,
    listed,
    peeked,
    process,
    put,
    recoverable,
    until,
)
from tests.support.sending import run
from tests.support.terminal import terminal

QUEUES = ("--queue", ORDERS, "--queue", f"{LEDGER};transactional")
BACK_S = limit(10.0)
"""Seconds after the start of a server within which calls succeed."""


@pytest.fixture
def alpha(data: Path) -> Iterator[Process]:
    """A server, to be killed."""
    with process(data, *QUEUES) as server:
        yield server


def end(server: Process, how: str) -> None:
    """Kill or stop a server."""
    server.kill() if how == "kill" else server.stop()


@asynccontextmanager
async def frozen(server: Process, requests: LastingRequests, count: int) -> AsyncIterator[None]:
    """Let a server do nothing more, and kill it at the end of the block once `count` requests are made."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
        await happens(lambda: len(under_way(requests)) == count, "what the program asks is on its way")
    finally:
        server.kill()


async def raises(kind: type[MsmqError], work: Coroutine[Any, Any, Any]) -> MsmqError:
    """The exception of exactly this kind that `work` raises."""
    with pytest.raises(kind) as caught:
        await asyncio.wait_for(work, limit(60))
    assert type(caught.value) is kind
    return caught.value


async def bodies(queue: Queue) -> list[bytes]:
    """What is in a queue, which is left as it is."""
    async with queue.cursor() as cursor:
        return [message.body async for message in cursor]


# -- programs ---------------------------------------------------------------------------------------------


@pytest.mark.uvloop
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_calls_raise_unreachable_in_an_outage_and_work_after_it(alpha: Process, how: str) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            queue, ledger = manager.queue(ORDERS), manager.queue(LEDGER)
            await queue.send(b"before", recoverable=True)
            await asyncio.to_thread(end, alpha, how)
            calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
                lambda: queue.send(b"lost"), lambda: queue.receive(60), lambda: queue.peek(0), queue.purge,
                lambda: queue.move(1, f"{ORDERS};x"), lambda: manager.create_queue(ORDERS),
                lambda: ledger.send(b"lost", transactional=True), lambda: bodies(queue),
            ]  # fmt: skip
            for call in calls:
                began = time.monotonic()
                with pytest.raises(Unreachable, match="no server runs") as caught:
                    await call()
                assert not isinstance(caught.value, OutcomeUnknown)
                assert time.monotonic() - began < limit(5)
            with open_store(alpha.data / STORE):
                assert manager.served  # and the store is for the next server to open
            with process(alpha.data):
                await asyncio.wait_for(queue.send(b"after", recoverable=True), BACK_S)
                assert await bodies(queue) == [b"before", b"after"]
                await ledger.send(b"sent", transactional=True)
                assert (await queue.receive(0)).body == b"before"
                await queue.purge()
                assert (await ledger.receive(0)).body == b"sent"

    run(scenario())
    assert listed(alpha.data)[ORDERS]["messages"] == 0


def test_the_same_without_asyncio(alpha: Process) -> None:
    with msmqwire.attach(alpha.data) as manager:
        queue, failures = manager.queue(ORDERS), []
        queue.send(b"1", recoverable=True)

        def reading() -> None:
            try:
                queue.receive()
            except Unreachable as exc:
                failures.append(type(exc))

        assert queue.receive(0).body == b"1"
        thread = threading.Thread(target=reading)
        thread.start()
        with pytest.raises(ReadTimeout):
            queue.peek(0.2)
        alpha.kill()
        thread.join(limit(60))
        assert failures == [Unreachable]
        with pytest.raises(Unreachable):
            queue.send(b"lost", recoverable=True)
        with process(alpha.data):
            queue.send(b"2", recoverable=True)
            assert queue.receive(0).body == b"2"


@pytest.mark.uvloop
def test_a_program_busy_during_the_restart_does_not_notice_it(alpha: Process) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            queue = manager.queue(ORDERS)
            alpha.kill()
            with process(alpha.data):  # the event loop has not run meanwhile
                try:
                    await queue.send(b"1", recoverable=True)
                    expected = [b"1"]
                except OutcomeUnknown:  # uvloop sends later, and tells no more than that it failed
                    assert "uvloop" in type(asyncio.get_running_loop()).__module__
                    expected = []
                assert await bodies(queue) == expected

    run(scenario())


@pytest.mark.uvloop
def test_what_may_have_been_done_is_said_to_be_unknown(alpha: Process) -> None:
    blocks = list[str]()

    async def receive_in_block(queue: Queue, frozen: asyncio.Event) -> None:
        async with queue.receiving(0):
            blocks.append("receive")
            await frozen.wait()

    async def commit(queue: Queue, frozen: asyncio.Event) -> None:
        async with queue.transaction() as transaction:
            transaction.send(b"x")
            blocks.append("commit")
            await frozen.wait()

    async def done_and_durable(queue: Queue, frozen: asyncio.Event) -> None:
        async with queue.messages(1) as messages:
            await anext(messages)
            blocks.append("done")
            await frozen.wait()
            await messages.durable()

    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            queue, ledger, stopped = manager.queue(ORDERS), manager.queue(LEDGER), asyncio.Event()
            for body in (b"1", b"2", b"3"):
                await queue.send(body, recoverable=True)
            await ledger.send(b"4", transactional=True)
            later = [
                raises(EndUnknown, receive_in_block(queue, stopped)),
                raises(OutcomeUnknown, done_and_durable(queue, stopped)),
                raises(TransactionAborted, commit(ledger, stopped)),  # its messages go before the commit
            ]
            tasks = [asyncio.create_task(work) for work in later]
            await happens(lambda: len(blocks) == len(later), "all are in their blocks")
            first = (await queue.peek(0)).lookup_identifier
            async with frozen(alpha, manager._requests, 11):
                stopped.set()
                changing = [
                    queue.send(b"5", recoverable=True),
                    queue.purge(),
                    queue.move(first, f"{ORDERS};x"),
                    ledger.send(b"6", recoverable=True),
                ]
                harmless = [queue.peek(60), manager.create_queue(ORDERS), queue.receive(60), bodies(queue)]
                tasks += [asyncio.create_task(raises(OutcomeUnknown, work)) for work in changing]
                tasks += [asyncio.create_task(raises(Unreachable, work)) for work in harmless]
            for task in tasks:
                assert "the server has gone" in str(await task)
            with process(alpha.data):
                # The server was stopped before all this: nothing of it was done.
                assert await bodies(queue) == [b"1", b"2", b"3"]
                assert await bodies(ledger) == [b"4"]

    run(scenario())


def test_a_commit_may_be_unknown(alpha: Process) -> None:
    """Nothing but the commit is asked of the server after it has stopped."""

    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            ledger, stopped = manager.queue(LEDGER), asyncio.Event()
            await ledger.send(b"1", transactional=True)

            async def take() -> None:
                async with ledger.transaction() as transaction:
                    await ledger.receive(0, transaction=transaction)
                    os.kill(alpha.process.pid, signal.SIGSTOP)
                    stopped.set()

            task = asyncio.create_task(raises(OutcomeUnknown, take()))
            await stopped.wait()
            await happens(lambda: under_way(manager._requests), "the commit is asked for")
            alpha.kill()
            await task

    run(scenario())


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_transaction_that_was_open_is_over_and_says_so(alpha: Process, how: str) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            ledger, poison = manager.queue(LEDGER), f"{LEDGER};poison"
            for body in (b"1", b"2"):
                await ledger.send(body, transactional=True)
            second = (await ledger.receive_by_lookup(await last_of(ledger))).lookup_identifier

            async def block() -> None:
                async with ledger.transaction() as transaction:
                    transaction.send(b"3")
                    assert (await ledger.receive(0, transaction=transaction)).body == b"1"
                    await asyncio.to_thread(end, alpha, how)
                    with process(alpha.data):
                        assert await bodies(ledger) == [b"1"]  # another connection, and the old transaction
                        for use in (
                            lambda: ledger.receive(0, transaction=transaction),
                            lambda: ledger.move(second, poison, transaction=transaction),
                            lambda: ledger.send(b"4", transaction=transaction),
                        ):
                            await raises(TransactionAborted, use())
                        async with ledger.transaction() as another:
                            await ledger.receive(0, transaction=another)
                            another.send(b"5")
                        # and now the first block is left
                        assert await bodies(ledger) == [b"5"]
                        async with ledger.cursor() as cursor, ledger.transaction() as third:
                            with pytest.raises(TransactionAborted):
                                await cursor.receive(0, transaction=transaction)
                            assert (await cursor.receive(0, transaction=third)).body == b"5"

            error = await raises(TransactionAborted, block())
            assert str(error) == (
                "the server has gone: the transaction is over, and nothing of it was done; begin another one"
            )

    run(scenario())
    assert peeked(alpha.data, LEDGER) == []


async def last_of(queue: Queue) -> int:
    """The lookup identifier of the last message."""
    async with queue.cursor() as cursor:
        return [message.lookup_identifier async for message in cursor][-1]


def test_cursors_and_receipts_end_with_their_connection(
    alpha: Process,
) -> None:
    """They are not taken for the new ones that have their numbers."""

    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            queue = manager.queue(ORDERS)
            for body in (b"1", b"2", b"3"):
                await queue.send(body, recoverable=True)

            async def block() -> None:
                async with queue.receiving(0) as message, queue.cursor() as cursor:
                    await cursor.peek(0)
                    alpha.kill()
                    with process(alpha.data):
                        async with queue.cursor() as new_cursor, queue.receiving(0) as again:
                            # Their numbers are those of the lost ones.
                            assert message.body == again.body == b"1"
                            with pytest.raises(QueueError, match="the cursor is closed") as caught:
                                await cursor.peek(0)
                            assert caught.value.name == "MQ_ERROR_INVALID_HANDLE"
                            assert (await new_cursor.peek(0)).body == b"2"

            error = await raises(Unreachable, block())
            assert str(error).endswith(", and the message is back in its queue")

    run(scenario())
    assert peeked(alpha.data, ORDERS) == [b"2", b"3"]


@pytest.mark.parametrize("how, kind", [("kill", Unreachable), ("stop", ManagerStopped)])
def test_waiting_reads_fail_at_the_end_and_the_next_ones_work(
    alpha: Process, how: str, kind: type[MsmqError]
) -> None:
    async def all_pushed(queue: Queue) -> None:
        async with queue.messages() as messages:
            async for _ in messages:
                pass

    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            queue = manager.queue(ORDERS)
            waiting = [queue.receive(), queue.peek(60), all_pushed(queue), anext(aiter(queue))]
            tasks = [asyncio.create_task(raises(kind, work)) for work in waiting]
            await subscriptions_wait(queue, 1)
            await reads_wait(queue, 3)
            await asyncio.to_thread(end, alpha, how)
            for task in tasks:
                error = await task
                assert isinstance(error, Unreachable)
                if isinstance(error, QueueError):
                    assert error.name == "MQ_ERROR_OPERATION_CANCELLED"
            with process(alpha.data):
                taken = asyncio.create_task(queue.receive())
                await happens(lambda: under_way(manager._requests), "the read is begun")
                await queue.send(b"1")
                assert (await taken).body == b"1"
                await queue.send(b"2")
                async with queue.messages() as messages:
                    assert (await anext(messages)).body == b"2"

    run(scenario())


def test_another_queue_manager_in_the_folder_is_detected(alpha: Process) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            alpha.kill()
            for file in alpha.data.iterdir():
                file.unlink()
            with process(alpha.data, *QUEUES), pytest.raises(Unreachable, match="another queue manager"):
                await manager.queue(ORDERS).send(b"x")

    run(scenario())


def test_a_read_cancelled_before_reconnection_is_never_sent(alpha: Process) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            queue = manager.queue(ORDERS)
            alpha.kill()
            with process(alpha.data):
                await happens(lambda: manager._requests._connection.lost, "the loss is known")
                reads = [asyncio.create_task(queue.receive()) for _ in range(5)]
                await asyncio.sleep(0)
                for task in reads:
                    task.cancel()
                await asyncio.gather(*reads, return_exceptions=True)
                await queue.send(b"1", recoverable=True)
                await asyncio.sleep(0.3)  # in which no read takes it
                assert (await queue.receive(0)).body == b"1"

    run(scenario())


# -- commands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("command", ["receive", "peek"])
def test_a_command_waits_on_over_a_restart(alpha: Process, how: str, command: str) -> None:
    waiting = begun(command, ORDERS, "--data", alpha.data, "--timeout", "60")
    until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "it waits")
    end(alpha, how)
    time.sleep(0.5)  # the outage, in which it asks again and again
    with process(alpha.data):
        until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "it waits again")
        sent(alpha.data, b"after")
        assert b64decode(ended(waiting).one["body"]) == b"after"
        assert listed(alpha.data)[ORDERS]["messages"] == (command == "peek")


def test_a_command_waits_as_long_as_it_was_to_over_a_restart(alpha: Process) -> None:
    began = time.monotonic()
    waiting = begun("receive", ORDERS, "--data", alpha.data, "--timeout", "30")
    until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "it waits")
    alpha.kill()
    time.sleep(1)  # the outage
    with process(alpha.data):
        assert ended(waiting) == Run(0, "", "")
        assert 30 <= time.monotonic() - began < 30 + limit(30)


def test_on_a_terminal_it_says_that_it_waits(alpha: Process) -> None:
    with terminal("receive", ORDERS, "--data", alpha.data, "--timeout", "30") as run:
        until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "it waits")
        alpha.kill()
        run.shown(f"the server of {alpha.data} has gone: waiting up to ")
        with process(alpha.data):
            sent(alpha.data, b"after")
            run.shown("(no label): after")
            assert run.ended() == 0


def test_messages_whose_end_is_not_known_are_named(alpha: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is killed after the message was printed and before it was deleted."""
    sent(alpha.data, b"1")
    shown: list[str] = []

    def show(message: dict[str, Any], _: bool, *, decode: bool) -> None:
        shown.append(message["identifier"])
        alpha.kill()

    monkeypatch.setattr(reading, "show", show)
    for options in ("--count", "2", "--timeout", "60"), ():
        if shown:
            alpha = Process(alpha.data)
        error = called("receive", ORDERS, "--data", alpha.data, *options).error(69)["error"]
        assert error == f"the server has gone; 1 message printed may be back in the queue: {shown[0]}"
        alpha.close()
    assert shown[0] == shown[1]
    assert peeked(alpha.data, ORDERS) == [b"1"]


# -- a folder that nobody serves --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["receive", "peek"])
def test_a_waiting_command_lets_a_server_start(data: Path, command: str) -> None:
    with attach(data, create=True) as local:
        local.call("create", queue=ORDERS)
        name = local.call("status")["name"]
    waiting = begun(command, ORDERS, "--data", data, "--timeout", "60")
    time.sleep(limit(2))  # it looks into the folder, and waits for a change there
    assert waiting.poll() is None
    with process(data, name=name):
        until(lambda: listed(data)[ORDERS]["open"] == 1, "it waits at the server")
        sent(data, b"1")
        assert b64decode(ended(waiting).one["body"]) == b"1"


def test_waiting_commands_leave_an_unserved_folder_usable(data: Path) -> None:
    called("queue", "create", ORDERS, "--data", data)
    waiting = [begun("receive", ORDERS, "--data", data, "--timeout", "60") for _ in range(3)]
    time.sleep(limit(1))  # they look into the folder, and wait for a change there
    taken = []
    for number in range(3):
        sent(data, b"%d" % number)
        until(lambda: sum(one.poll() is not None for one in waiting) > number, "one has it")  # noqa: B023
    taken = [b64decode(ended(one).one["body"]) for one in waiting]
    assert sorted(taken) == [b"0", b"1", b"2"]
    assert listed(data)[ORDERS]["messages"] == 0


def test_a_killed_waiting_command_leaves_the_folder_usable(data: Path) -> None:
    called("queue", "create", ORDERS, "--data", data)
    waiting = begun("receive", ORDERS, "--data", data, "--timeout", "60")
    time.sleep(limit(1))  # it looks into the folder, and waits for a change there
    waiting.kill()
    ended(waiting)
    with process(data, name=default_name()):
        assert listed(data)[ORDERS]["messages"] == 0


def sent(data: Path, body: bytes) -> None:
    """Send a recoverable message to the queue of orders."""
    with attach(data) as local:
        put(local, ORDERS, *recoverable(body), computer=local.call("status")["name"])
