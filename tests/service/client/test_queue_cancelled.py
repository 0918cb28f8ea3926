"""Queues as objects: cancelled and interrupted reads lose nothing, ends of queue managers are told."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.errors import EngineFailed, QueueError, StoreRefused, Unreachable
from msmqwire.qm.client import Queue
from msmqwire.qm.client.finishing import finish
from msmqwire.qm.runtime import in_store_requests, served_requests
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.in_store_requests import InStoreRequests
from msmqwire.service.folder import ControlAddress
from tests.support.patience import happens
from tests.support.qm.queues import orders, reads_wait, refused, rest, under_way
from tests.support.running import LEDGER, ORDERS, InThread, Process, options, peeked, served, until
from tests.support.sending import run

pytestmark = pytest.mark.uvloop


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_receive_that_was_cancelled_takes_no_message(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder) as queue, queue.cursor() as cursor:
            for waiting in (queue.receive(), queue.peek(60), cursor.receive(), cursor.peek(), one_of(queue)):
                task = asyncio.create_task(waiting)
                await reads_wait(queue, 1)
                await cancelled(task)
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(0.05):
                    await queue.receive()
            assert not isinstance(caught.value, QueueError)  # of asyncio
            await queue.send(b"1", recoverable=True)
            assert await rest(queue) == [b"1"]
            assert (await cursor.receive(60)).body == b"1"

    run(scenario())


async def one_of(queue: Queue) -> None:
    """Receive a message in a block."""
    async with queue.receiving():
        pass


@pytest.mark.parametrize("name", [ORDERS, LEDGER])
def test_a_cancellation_at_any_moment_loses_nothing(folder: Path, name: str) -> None:
    chance, received = random.Random(12), list[bytes]()

    async def take(queue: Queue) -> None:
        match chance.randrange(3):
            case 0:
                received.append((await queue.receive()).body)
            case 1:
                async with queue.receiving() as message:
                    received.append(message.body)
                    try:
                        await asyncio.sleep(0)
                    except BaseException:
                        received.remove(message.body)
                        raise
            case 2:
                async with queue.transaction() as transaction:
                    kind = transaction if name == LEDGER else None
                    message = await queue.receive(transaction=kind)
                received.append(message.body)

    expected = [b"%d" % number for number in range(150)]

    async def scenario() -> None:
        async with orders(folder, name=name) as queue:
            for body in expected:
                task = asyncio.create_task(take(queue))
                for _ in range(chance.randrange(3)):
                    await asyncio.sleep(chance.choice((0, 0.001)))  # so that it is anywhere in its work
                sending = asyncio.create_task(
                    queue.send(body, recoverable=True, transactional=name == LEDGER)
                )
                for _ in range(chance.randrange(6)):
                    await asyncio.sleep(chance.choice((0, 0, 0.0005)))  # and so is the sending
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                await sending
        async with orders(folder, name=name) as queue:
            assert sorted(await rest(queue) + received) == sorted(expected)
            assert 10 < len(received) < 145

    run(scenario())


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancellation_waits_for_an_end_once(times: int) -> None:
    async def scenario() -> list[str]:
        story: list[str] = []
        release = asyncio.Event()

        async def work() -> str:
            await release.wait()
            return "result"

        async def caller() -> None:
            try:
                story.append(await finish(work()))
                await asyncio.sleep(0.2)  # a cancellation that comes later comes here
                story.append("not cancelled")
            except asyncio.CancelledError:
                story.append("cancelled")
                raise

        task = asyncio.create_task(caller())
        await asyncio.sleep(0)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return story

    assert run(scenario()) == (["result", "cancelled"] if times == 1 else ["cancelled"])


def test_a_time_limit_that_is_over_by_then_cancels_nothing_later() -> None:
    async def scenario() -> str:
        async def work() -> str:
            await asyncio.sleep(0.05)  # longer than the limit below
            return "result"

        async with asyncio.timeout(0.01):
            result = await finish(work())
        await asyncio.sleep(0.01)  # in which nothing is cancelled
        return result

    assert run(scenario()) == "result"


# -- the end of queue managers --------------------------------------------------------------------------


def test_waiting_reads_end_when_the_folder_is_left(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder) as queue:
            waiting = [asyncio.create_task(work) for work in (queue.receive(), queue.peek(), one_of(queue))]
            await reads_wait(queue, 3)
        for task in waiting:
            assert await refused(task) == "MQ_ERROR_OPERATION_CANCELLED"
        with pytest.raises(msmqwire.InvalidValue, match="it was left"):
            await queue.receive(0)

    run(scenario())


def test_closing_a_queue_cancels_its_reads_and_returns_messages(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1") as queue:
            block = queue.receiving()
            assert (await block.__aenter__()).body == b"1"
            waiting = [asyncio.create_task(work) for work in (queue.receive(), queue.peek(), one_of(queue))]
            await reads_wait(queue, 3)
            await queue.close()
            for task in waiting:
                assert await refused(task) == "MQ_ERROR_OPERATION_CANCELLED"
            assert await refused(block.__aexit__(None, None, None)) == "MQ_ERROR_INVALID_HANDLE"
            assert await rest(queue) == [b"1"]

    run(scenario())


@pytest.mark.parametrize("answer", [b"", b'{"id": 2, "ans', b"no JSON\n", b"[]\n", b"{}\n"])
def test_what_answers_like_no_server_is_gone(data: Path, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        status = {"id": 1, "answer": {"name": "alpha", "identifier": str(UUID(int=1))}}
        writer.write(json.dumps(status).encode() + b"\n")
        await reader.readline()
        writer.write(answer)
        writer.write_eof()
        await reader.read()
        writer.close()

    async def scenario() -> None:
        data.mkdir()
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            DataFolder(data).write_control(ControlAddress(port=server.sockets[0].getsockname()[1], token="x"))
            async with msmqwire.attach(data) as manager:
                for _ in range(2):
                    with pytest.raises(Unreachable):
                        await manager.queue(ORDERS).receive()

    run(scenario())


@pytest.mark.parametrize(
    "answer", [{"name": "alpha"}, {"name": "alpha", "identifier": "x"}, {"identifier": 7}]
)
def test_what_answers_like_another_version_is_no_server(data: Path, answer: dict[str, Any]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(json.dumps({"id": 1, "answer": answer}).encode() + b"\n")
        await reader.read()
        writer.close()

    async def scenario() -> None:
        data.mkdir()
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            DataFolder(data).write_control(ControlAddress(port=server.sockets[0].getsockname()[1], token="x"))
            with pytest.raises(Unreachable, match="not that of a queue manager of this version"):
                async with msmqwire.attach(data):
                    pass

    run(scenario())


def test_a_server_is_reached_over_tcp_as_well(data: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(data) as manager:
            assert manager.served
            await manager.queue(ORDERS).send("1")
            assert (await manager.queue(ORDERS).receive(60)).text == "1"

    with served(options(data, ORDERS, control_tcp=True)):
        run(scenario())


def test_waiting_reads_end_when_the_server_stops(alpha: Process) -> None:
    async def scenario() -> None:
        async with orders(alpha.data) as queue:
            waiting = [asyncio.create_task(work) for work in (queue.receive(), queue.peek(), one_of(queue))]
            await reads_wait(queue, 3)
            await asyncio.to_thread(alpha.stop)
            for task in waiting:
                assert await refused(task) == "MQ_ERROR_OPERATION_CANCELLED"
            with pytest.raises(Unreachable):
                await queue.receive(0)

    run(scenario())


def test_a_killed_server_is_gone_and_its_messages_are_not(alpha: Process) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(alpha.data) as manager:
            queue = manager.queue(ORDERS)
            await queue.send(b"1", recoverable=True)
            with pytest.raises(Unreachable):
                async with queue.receiving(0):
                    alpha.kill()
            with pytest.raises(Unreachable):
                await queue.receive(0)
        with pytest.raises(Unreachable, match="leaves its store to the next"):
            async with msmqwire.attach(alpha.data):
                pytest.fail("the store is the next server's")

    run(scenario())
    assert peeked(alpha.data, ORDERS) == [b"1"]


def test_a_fault_inside_ends_what_waits(data: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(data, create=True) as manager:
            queue = await manager.create_queue(ORDERS)
            waiting = asyncio.create_task(queue.receive())
            await reads_wait(queue, 1)
            requests = manager._requests._connection
            assert isinstance(requests, InStoreRequests)
            requests._driver.fail(ZeroDivisionError())
            for work in (waiting, queue.peek()):
                with pytest.raises(EngineFailed):
                    await work

    run(scenario())


def test_a_disk_that_refuses_changes_is_reported(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_store_requests, "DISK_S", 0.2)

    async def scenario() -> None:
        async with msmqwire.attach(data, create=True) as manager:
            queue = await manager.create_queue(ORDERS)
            requests = manager._requests._connection
            assert isinstance(requests, InStoreRequests)

            def refuse(changes: object) -> None:
                raise StoreRefused("disk full", file="x")

            monkeypatch.setattr(requests._store, "commit", refuse)
            with pytest.raises(StoreRefused, match="does not take"):
                await queue.send(b"1", recoverable=True)
            with pytest.raises(StoreRefused, match="does not take"):
                await queue.receive(0)

    run(scenario())


def test_reads_over_the_limit_are_refused_until_one_is_cancelled(
    server: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_requests, "_READS_MAX", 20)

    async def scenario() -> None:
        async with orders(server.data) as queue:
            waiting = [asyncio.create_task(queue.receive()) for _ in range(20)]
            await happens(lambda: len(under_way(queue._sending._requests)) == 20, "all reads are begun")
            assert await refused(queue.peek(0)) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
            for task in waiting:
                await cancelled(task)
            await queue.send(b"1", recoverable=True)
            await happens(lambda: has_room(queue), "the server has cancelled the first one")
            assert await rest(queue) == [b"1"]

    run(scenario())


async def has_room(queue: Queue) -> bool:
    """Whether a read is let through."""
    try:
        await queue.peek(0)
    except QueueError as exc:
        return exc.name != "MQ_ERROR_INSUFFICIENT_RESOURCES"
    return True


def test_an_interrupted_program_without_asyncio_takes_no_message(folder: Path) -> None:
    with msmqwire.attach(folder) as manager:
        queue = manager.queue(ORDERS)

        def interrupt() -> None:
            until(lambda: under_way(queue._queue._sending._requests), "the read waits")
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            queue.receive(60)
        queue.send(b"1", recoverable=True)
        assert queue.receive(60).body == b"1"
