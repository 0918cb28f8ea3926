"""`Queue.messages`: messages that are pushed to a program, through a server and in a store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import EngineFailed, InvalidValue, QueueError, ReadTimeout, Unreachable
from msmqwire.qm.client import Queue
from msmqwire.qm.client.pushed_messages import PushedMessages
from msmqwire.qm.runtime.in_store_requests import InStoreRequests
from tests.support.patience import happens
from tests.support.qm.queues import orders, refused, rest, subscriptions_wait
from tests.support.running import (
    LEDGER,
    ORDERS,
    InThread,
    Process,
    environment,
    peeked,
    process,
    until,
)
from tests.support.sending import run

pytestmark = pytest.mark.uvloop


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, count)]


async def taken(queue: Queue, window: int = 100) -> list[bytes]:
    """Take all messages of a queue."""
    async with queue.messages(window, timeout=0.2) as messages:
        return [message.body async for message in messages]


# -- receiving ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 7, 1000])
@pytest.mark.parametrize("name", [ORDERS, LEDGER])
def test_all_messages_come_once_and_in_order(folder: Path, window: int, name: str) -> None:
    async def scenario() -> None:
        async with orders(folder, *numbered(30), name=name) as queue:
            assert await taken(queue, window) == numbered(30)
            assert await rest(queue) == []
        async with orders(folder, name=name) as queue:
            assert await rest(queue) == []

    run(scenario())


def test_messages_that_come_later_are_pushed(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder) as queue, queue.messages(3) as messages:
            for number in range(10):
                waiting = asyncio.ensure_future(anext(messages))
                await asyncio.sleep(0)
                await queue.send(b"%d" % number, recoverable=True)
                assert (await waiting).body == b"%d" % number
        async with orders(folder) as queue:
            assert await rest(queue) == []

    run(scenario())


def test_leaving_by_break_ends_the_last_message_and_no_later_one(folder: Path) -> None:
    """The messages after it return to the queue."""

    async def scenario() -> None:
        async with orders(folder, *numbered(10)) as queue:
            async with queue.messages(5) as messages:
                async for message in messages:
                    if message.body == b"3":
                        break
            assert await rest(queue) == numbered(10, 4)

    run(scenario())


def test_an_exception_returns_the_present_one_as_well(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, *numbered(10)) as queue:

            async def receive() -> None:
                async with queue.messages(5) as messages:
                    async for message in messages:
                        if message.body == b"3":
                            raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await receive()
            assert await rest(queue) == numbered(10, 3)

    run(scenario())


def test_nothing_is_deleted_before_it_is_done(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, *numbered(3)) as queue:

            async def receive() -> None:
                async with queue.messages(5) as messages:
                    assert (await anext(messages)).body == b"0"
                    await asyncio.sleep(0.2)  # longer than ends are told after
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await receive()
            async with queue.messages(5):
                pass
            assert await rest(queue) == numbered(3)

    run(scenario())


def test_a_processed_message_is_reported_soon_under_load(server: InThread) -> None:
    """The server pushes the next one before the rest of the window is processed."""

    async def scenario() -> None:
        async with orders(server.data, *numbered(40)) as queue, queue.messages(30) as messages:
            await happens(lambda: len(messages._pushed.records) == 30, "the window is full")
            await anext(messages)
            await anext(messages)

            async def one_more_is_pushed() -> bool:
                return len(await asyncio.to_thread(peeked, server.data, ORDERS)) <= 9

            await happens(one_more_is_pushed, "one more is pushed")

    run(scenario())


def test_what_is_awaited_is_deleted_durably_inside_the_block(alpha: Process) -> None:
    async def scenario() -> None:
        async with orders(alpha.data, *numbered(5)) as queue:

            async def receive() -> None:
                async with queue.messages(3) as messages:
                    await messages.durable()  # nothing yet
                    await anext(messages)
                    await anext(messages)
                    await messages.durable()
                    alpha.kill()
                    await happens(lambda: messages._pushed.error, "the loss is known")
                    with pytest.raises(Unreachable):
                        await messages.durable()
                    with pytest.raises(Unreachable):
                        await anext(messages)  # what was pushed has returned to the queue

            with pytest.raises(Unreachable):
                await receive()

    run(scenario())
    assert peeked(alpha.data, ORDERS) == numbered(5, 2)


def test_the_iteration_ends_when_nothing_comes_in_time(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder) as queue, queue.messages(timeout=0.05) as messages:
            assert [message async for message in messages] == []
            await queue.send(b"1", recoverable=True)
            assert [message.body async for message in messages] == [b"1"]  # it may go on after that

    run(scenario())


def test_several_iterations_share_a_queue(folder: Path) -> None:
    async def reader(queue: Queue, window: int) -> list[bytes]:
        return await taken(queue, window)

    async def scenario() -> None:
        async with orders(folder, *numbered(50)) as queue:
            parts = await asyncio.gather(*(reader(queue, window) for window in (1, 3, 10)))
            assert sorted((body for part in parts for body in part), key=int) == numbered(50)
            assert await rest(queue) == []

    run(scenario())


def test_a_cancelled_task_gives_back_what_it_has(folder: Path) -> None:
    async def receive(queue: Queue, got: list[bytes]) -> None:
        async with queue.messages(3) as messages:
            async for message in messages:
                got.append(message.body)
                if len(got) == 2:
                    await asyncio.sleep(3600)  # until it is cancelled

    async def scenario() -> None:
        async with orders(folder, *numbered(5)) as queue:
            got: list[bytes] = []
            task = asyncio.create_task(receive(queue, got))
            await happens(lambda: len(got) == 2, "two are taken")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await rest(queue) == numbered(5, 1)

    run(scenario())


def test_a_cancelled_task_has_ended_its_earlier_messages(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1") as queue:
            task = asyncio.create_task(_all(queue))
            await subscriptions_wait(queue, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await rest(queue) == []

    async def _all(queue: Queue) -> None:
        async with queue.messages() as messages:
            async for _ in messages:
                pass

    run(scenario())


def test_a_message_too_large_for_one_segment_comes_whole(folder: Path) -> None:
    large = [bytes([number]) * 1_000_000 for number in range(5)]

    async def scenario() -> None:
        async with orders(folder, *large) as queue:
            assert await taken(queue) == large

    run(scenario())


# -- what goes wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, -1, 1001, 1.5, "3", None, True])
def test_a_wrong_window_is_refused(folder: Path, window: int) -> None:
    async def scenario() -> None:
        async with orders(folder) as queue:
            with pytest.raises(InvalidValue) as caught:
                await queue.messages(window).__aenter__()
            assert caught.value.path == "window"
            with pytest.raises(InvalidValue) as caught:
                await queue.messages(timeout=-1).__aenter__()
            assert caught.value.path == "timeout"

    run(scenario())


def test_a_queue_that_is_not_there_is_reported(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            missing = manager.queue(r"private$\nothing")
            assert await refused(missing.messages().__aenter__()) == "MQ_ERROR_QUEUE_NOT_FOUND"

    run(scenario())


def test_the_deletion_of_the_queue_ends_the_iteration(server: InThread) -> None:
    async def scenario() -> None:
        async with orders(server.data, b"1") as queue:

            async def receive() -> None:
                async with queue.messages() as messages:
                    async for _ in messages:
                        server.run(_delete(server))

            with pytest.raises(QueueError) as caught:
                await receive()
            assert caught.value.name == "MQ_ERROR_QUEUE_DELETED"
            assert caught.value.why == rf"{queue.format_name}: the queue was deleted"

    run(scenario())


async def _delete(server: InThread) -> None:
    driver = server.server.driver
    assert driver is not None
    queue = driver.core.queues.lookup.path(rf"alpha\{ORDERS}")
    assert queue is not None
    driver.call(driver.core.queues.delete, queue)


def test_closing_the_queue_ends_processed_messages_only(folder: Path) -> None:
    """The last one and the rest return to the queue."""

    async def scenario() -> None:
        async with orders(folder, *numbered(5)) as queue:

            async def receive() -> None:
                async with queue.messages(3) as messages:
                    await anext(messages)
                    await anext(messages)
                    await queue.close()
                    assert await rest(queue) == numbered(5, 1)

            with pytest.raises(QueueError) as caught:
                await receive()
            assert caught.value.name == "MQ_ERROR_INVALID_HANDLE"
            assert await taken(queue) == numbered(5, 1)

    run(scenario())


def test_leaving_the_manager_ends_the_iteration(folder: Path) -> None:
    async def scenario() -> None:
        waiting: asyncio.Task[object] | None = None
        async with orders(folder, b"1") as queue:
            block = queue.messages()
            messages = await block.__aenter__()
            await anext(messages)
            waiting = asyncio.create_task(anext(messages))  # type: ignore[arg-type]
            await subscriptions_wait(queue, 1)
        with pytest.raises(QueueError) as caught:
            await waiting
        assert caught.value.name == "MQ_ERROR_OPERATION_CANCELLED"
        with pytest.raises(QueueError):
            await block.__aexit__(None, None, None)

    run(scenario())


def test_a_server_that_stops_ends_the_iteration(server: InThread) -> None:
    async def scenario() -> None:
        async with orders(server.data, b"1", b"2") as queue:

            async def receive() -> None:
                async with queue.messages() as messages:
                    await anext(messages)
                    server.run(server.server.stop())
                    await happens(lambda: messages._pushed.error, "the end is known")
                    with pytest.raises(QueueError):
                        await anext(messages)  # what was pushed is back in the queue

            with pytest.raises(QueueError) as caught:
                await receive()
            assert caught.value.name == "MQ_ERROR_OPERATION_CANCELLED"

    run(scenario())
    assert peeked(server.data, ORDERS) == [b"1", b"2"]


def test_a_fault_inside_ends_the_iteration(data: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(data, create=True) as manager:
            queue = await manager.create_queue(ORDERS)
            requests = manager._requests._connection
            assert isinstance(requests, InStoreRequests)

            async def receive() -> None:
                async with queue.messages() as messages:
                    requests._driver.fail(ZeroDivisionError())
                    await anext(messages)

            with pytest.raises(EngineFailed):
                await receive()

    run(scenario())


# -- kills ----------------------------------------------------------------------------------------------

_RECEIVER = """
import asyncio, sys, msmqwire

async def main():
    async with msmqwire.attach(sys.argv[1]) as manager:
        async with manager.queue(sys.argv[2]).messages(10) as messages:
            async for message in messages:
                if message.body == b"5":
                    await messages.durable()
                print(message.body.decode(), flush=True)
                if message.body == b"7":
                    await asyncio.sleep(3600)  # until it is killed

asyncio.run(main())
"""


def test_a_killed_program_gets_only_its_unawaited_messages_again(alpha: Process) -> None:
    async def fill() -> None:
        async with orders(alpha.data, *numbered(20)):
            pass

    run(fill())
    command = [sys.executable, "-c", _RECEIVER, str(alpha.data), ORDERS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as receiver:
        assert receiver.stdout is not None
        assert [receiver.stdout.readline() for _ in range(8)] == [b"%d\n" % n for n in range(8)]
        receiver.kill()
    until(lambda: len(peeked(alpha.data, ORDERS)) > 10, "the messages are back")
    left = peeked(alpha.data, ORDERS)
    assert left in (numbered(20, 6), numbered(20, 7))  # 6 was done, and not awaited


def test_a_killed_server_pushes_its_unawaited_messages_again(data: Path) -> None:
    async def scenario() -> list[bytes]:
        got = []
        async with orders(data, *numbered(20)) as queue:

            async def receive() -> None:
                async with queue.messages(10) as messages:
                    async for message in messages:
                        got.append(message.body)
                        if message.body == b"5":
                            await messages.durable()
                        if message.body == b"7":
                            server.kill()

            with pytest.raises(Unreachable):
                await receive()
        return got

    with process(data, "--queue", ORDERS) as server:
        assert run(scenario())[:8] == numbered(8)
    assert peeked(data, ORDERS) in (numbered(20, 6), numbered(20, 7))
    with process(data, "--queue", ORDERS):
        assert peeked(data, ORDERS) in (numbered(20, 6), numbered(20, 7))


# -- without asyncio --------------------------------------------------------------------------------------


def test_programs_without_asyncio_receive_in_the_same_way(folder: Path) -> None:
    with msmqwire.attach(folder) as manager:
        queue = manager.queue(ORDERS)
        for body in numbered(30):
            queue.send(body, recoverable=True)
        with queue.messages(4, timeout=0.2) as messages:
            assert [next(messages).body for _ in range(3)] == numbered(3)
            messages.durable()
            for message in messages:
                if message.body == b"9":
                    break
        with suppress(ZeroDivisionError), queue.messages(100) as messages:
            assert next(messages).body == b"10"
            assert next(messages).body == b"11"
            raise ZeroDivisionError
        with queue.messages(1, timeout=0.2) as messages:
            assert [message.body for message in messages] == numbered(30, 11)
        with queue.messages(timeout=0.01) as messages:
            assert list(messages) == []
    with msmqwire.attach(folder) as manager, pytest.raises(msmqwire.ReadTimeout):
        manager.queue(ORDERS).peek(0)


def test_threads_each_have_messages_of_their_own(folder: Path) -> None:
    got: list[list[bytes]] = [[], [], []]
    with msmqwire.attach(folder) as manager:
        queue = manager.queue(ORDERS)
        for body in numbered(100):
            queue.send(body, recoverable=True)

        def receive(mine: list[bytes]) -> None:
            with queue.messages(5, timeout=0.3) as messages:
                mine.extend(message.body for message in messages)

        threads = [threading.Thread(target=receive, args=(mine,)) for mine in got]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted((body for mine in got for body in mine), key=int) == numbered(100)
        with pytest.raises(ReadTimeout):
            queue.peek(0)


# -- how ends are told --------------------------------------------------------------------------------------


def test_ends_are_reported_many_at_a_time(server: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    def telling(original: Callable[..., None]) -> Callable[..., None]:
        def done(requests: object, subscription: int, upto: int) -> None:
            told.append(upto)
            original(requests, subscription, upto)

        return done

    async def scenario() -> None:
        async with (
            orders(server.data, *numbered(100)) as queue,
            queue.messages(20, timeout=0.2) as messages,
        ):
            assert isinstance(messages, PushedMessages)
            kind = type(messages._requests)
            monkeypatch.setattr(kind, "done", telling(kind.done))
            async for _ in messages:
                pass

    run(scenario())
    assert told[-1] == 100
    assert len(told) < 40, "about one for each ten"
    assert told == sorted(set(told))
