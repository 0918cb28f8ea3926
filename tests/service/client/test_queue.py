"""``msmqwire.attach``: the queues of a folder as objects, through its server and in its store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import InvalidName, InvalidValue, ReadTimeout, StoreMissing
from msmqwire.qm.client import Queue, ReceivedMessage
from tests.support.qm.queues import POISON, orders, reads_wait, refused, rest
from tests.support.running import LEDGER, ORDERS
from tests.support.sending import run

GUID = "12345678-1234-1234-1234-123456789abc"


# -- one message ----------------------------------------------------------------------------------------


def test_a_message_has_the_properties_that_it_was_sent_with(folder: Path) -> None:
    properties: dict[str, Any] = {
        "label": "caf\xe9 \N{SNOWMAN}",
        "acknowledge": ["pos_arrival", "neg_receive"],
        "admin_queue": r"DIRECT=OS:away\PRIVATE$\admin",
        "response_queue": r"DIRECT=TCP:10.0.0.5\PRIVATE$\answers",
        "correlation": f"{GUID}\\77",
        "priority": 6,
        "message_class": 1,
        "application": 0xFFFFFFFF,
        "extension": b"\0\xff",
        "journal": True,
        "dead_letter": True,
        "time_to_reach_queue": 60,
        "time_to_be_received": 3600,
    }

    async def scenario() -> None:
        async with orders(folder) as queue:
            before = datetime.now(UTC).replace(microsecond=0)
            sent = await queue.send("na\xefve", recoverable=True, **properties)
            await sent.transferred(0)
            peeked = await queue.peek(0)
            message = await queue.receive(0)
            assert message == peeked
            for name, value in properties.items():
                assert getattr(message, name) == (tuple(value) if name == "acknowledge" else value), name
            assert (message.text, message.body, message.body_type) == (
                "na\xefve",
                "na\xefve".encode("utf-16-le"),
                8,
            )
            assert (message.identifier, message.recoverable, message.transactional) == (
                sent.identifier,
                True,
                False,
            )
            assert message.sent is not None
            assert message.arrived is not None
            assert before <= message.sent <= message.arrived <= datetime.now(UTC)
            assert message.destination == queue.format_name
            assert str(message.source) == sent.identifier.partition("\\")[0]
            assert (message.sender, message.hops, message.class_name) == (None, 0, "REPORT")

    run(scenario())


def test_a_message_that_says_nothing_has_nothing(folder: Path) -> None:
    async def scenario() -> ReceivedMessage:
        async with orders(folder, b"\xff\x00\x80") as queue:
            return await queue.receive(0)

    message = run(scenario())
    absent = (
        message.text, message.correlation, message.admin_queue, message.response_queue,
        message.time_to_be_received,
    )  # fmt: skip
    assert absent == (None,) * 5
    assert (message.acknowledge, message.extension, message.journal, message.dead_letter) == (
        (),
        b"",
        False,
        False,
    )
    assert "body" not in repr(message).replace("body_type", "")


def test_receive_deletes_and_peek_does_not(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1", b"2") as queue:
            assert [(await queue.peek()).body for _ in range(2)] == [b"1", b"1"]
            assert (await queue.receive()).body == b"1"
            assert await rest(queue) == [b"2"]
        async with orders(folder) as queue:
            assert await rest(queue) == [b"2"]

    run(scenario())


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_no_message_in_time(folder: Path, timeout: float) -> None:
    async def scenario() -> None:
        async with orders(folder) as queue:
            for read in (queue.receive, queue.peek, lambda limit: queue.receiving(limit).__aenter__()):
                before = asyncio.get_running_loop().time()
                with pytest.raises(TimeoutError) as caught:
                    await read(timeout)
                assert asyncio.get_running_loop().time() - before >= timeout - 0.01
                assert isinstance(caught.value, ReadTimeout)
                assert (caught.value.name, caught.value.hresult) == ("MQ_ERROR_IO_TIMEOUT", 0xC00E001B)

    run(scenario())


def test_iteration_yields_arriving_messages_and_leaves_the_rest(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1") as queue:
            received = []
            async for message in queue:
                received.append(message.body)
                if len(received) == 3:
                    break
                await queue.send(b"%d" % (len(received) + 1), recoverable=True)
            await queue.send(b"4", recoverable=True)
            assert (received, await rest(queue)) == ([b"1", b"2", b"3"], [b"4"])

    run(scenario())


def test_concurrent_receives_get_one_message_each(folder: Path) -> None:
    expected = [b"%d" % number for number in range(50)]

    async def scenario() -> None:
        async with orders(folder) as queue:
            waiting = [asyncio.create_task(queue.receive(60)) for _ in expected]
            await reads_wait(queue, len(expected))
            for body in expected:
                await queue.send(body, recoverable=True)
            messages = await asyncio.gather(*waiting)
            assert sorted(message.body for message in messages) == sorted(expected)
            assert await rest(queue) == []

    run(scenario())


# -- receiving ------------------------------------------------------------------------------------------


def test_a_message_is_deleted_once_its_block_is_left(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1", b"2") as queue:
            async with queue.receiving(0) as message:
                assert message.body == b"1"
                assert await rest(queue) == [b"2"]
                assert (await queue.receive(0)).body == b"2"  # nobody else gets the first
            assert await rest(queue) == []

    run(scenario())


def test_an_exception_gives_a_message_back_at_its_place(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1", b"2") as queue:
            with pytest.raises(ZeroDivisionError):
                async with queue.receiving(0):
                    raise ZeroDivisionError
            assert await rest(queue) == [b"1", b"2"]

    run(scenario())


def test_leaving_the_folder_returns_a_message_still_in_its_block(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1") as queue:
            block = queue.receiving(0)
            await block.__aenter__()
        with pytest.raises(InvalidValue, match="it was left"):
            await block.__aexit__(None, None, None)
        async with orders(folder) as queue:
            assert await rest(queue) == [b"1"]

    run(scenario())


# -- cursors and lookup identifiers ---------------------------------------------------------------------


def test_a_cursor_goes_from_message_to_message(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1", b"2", b"3") as queue, queue.cursor() as cursor:
            assert await refused(cursor.peek_next(0)) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
            assert [(await cursor.peek(0)).body for _ in range(2)] == [b"1", b"1"]
            assert (await cursor.peek_next(0)).body == b"2"
            assert (await cursor.receive(0)).body == b"2"
            assert [message.body async for message in cursor] == [b"3"]
            assert await rest(queue) == [b"1", b"3"]
            await queue.send(b"4", recoverable=True)
            assert [message.body async for message in cursor] == [b"4"]  # it goes on where it was
            async with queue.cursor() as other:
                await other.peek(0)
                await queue.purge()
                assert await refused(other.peek(0)) == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
                assert await refused(other.receive(0)) == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"

    run(scenario())


def test_a_cursor_waits_for_the_next_message(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1") as queue, queue.cursor() as cursor:
            await cursor.peek(0)
            waiting = asyncio.create_task(cursor.peek_next(60))
            await reads_wait(queue, 1)
            assert await refused(cursor.peek(0)) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"  # one read at a time
            await queue.send(b"2", recoverable=True)
            assert (await waiting).body == b"2"

    run(scenario())


def test_lookup_identifiers_find_a_message_and_its_neighbours(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1", b"2", b"3", b"4") as queue:
            second = (
                await queue.peek_by_lookup((await queue.peek(0)).lookup_identifier, "next")
            ).lookup_identifier
            for seek, body in (("current", b"2"), ("next", b"3"), ("previous", b"1")):
                assert (await queue.peek_by_lookup(second, seek)).body == body  # type: ignore[arg-type]
            assert (await queue.receive_by_lookup(second, "next")).body == b"3"
            assert (await queue.receive_by_lookup(second, "next")).body == b"4"
            assert (await queue.receive_by_lookup(second, "previous")).body == b"1"
            assert (await queue.receive_by_lookup(second)).body == b"2"
            assert await refused(queue.receive_by_lookup(second)) == "MQ_ERROR_MESSAGE_NOT_FOUND"
            assert await rest(queue) == []

    run(scenario())


# -- purge, move ----------------------------------------------------------------------------------------


def test_messages_are_moved_to_a_subqueue_and_back_and_purged(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            queue, poison = manager.queue(ORDERS), manager.queue(POISON)
            for body in (b"1", b"2"):
                await queue.send(body, recoverable=True)
            second = await queue.peek_by_lookup((await queue.peek(0)).lookup_identifier, "next")
            await queue.move(second, POISON)
            assert (await rest(queue), await rest(poison)) == ([b"1"], [b"2"])
            assert await refused(queue.move(second, POISON)) == "MQ_ERROR_MESSAGE_NOT_FOUND"
            await poison.move((await poison.peek(0)).lookup_identifier, ORDERS)
            assert (await rest(queue), await rest(poison)) == ([b"1", b"2"], [])
            assert await refused(queue.move(await queue.peek(0), LEDGER)) == "MQ_ERROR_INVALID_PARAMETER"
            await queue.purge()
            assert await rest(queue) == []

    run(scenario())


def test_a_message_that_somebody_has_received_is_not_moved(folder: Path) -> None:
    async def scenario() -> None:
        async with orders(folder, b"1") as queue, queue.receiving(0) as message:
            assert await refused(queue.move(message, POISON)) == "MQ_ERROR_MESSAGE_NOT_FOUND"

    run(scenario())


# -- what is refused ------------------------------------------------------------------------------------


def test_a_queue_that_is_not_there_or_is_deleted(folder: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            missing = manager.queue(r"private$\nothing")
            for work in (missing.receive(), missing.peek(), missing.send(recoverable=True), missing.purge()):
                assert await refused(work) == "MQ_ERROR_QUEUE_NOT_FOUND"
            queue = manager.queue(ORDERS)
            waiting = asyncio.create_task(queue.receive())
            await reads_wait(queue, 1)
            await manager._requests.call("delete", queue=ORDERS)
            assert await refused(waiting) == "MQ_ERROR_QUEUE_DELETED"

    run(scenario())


WRONG: list[tuple[Callable[[Queue], Awaitable[object]], str]] = [
    (lambda queue: queue.receive(-1), "timeout"),
    (lambda queue: queue.receive(float("nan")), "timeout"),
    (lambda queue: queue.peek("1"), "timeout"),  # type: ignore[arg-type]
    (lambda queue: queue.receive(True), "timeout"),
    (lambda queue: queue.receive(5_000_000), "timeout"),
    (lambda queue: queue.receive(0, transaction="t"), "transaction"),  # type: ignore[arg-type]
    (lambda queue: queue.send(b"", transaction="t"), "transaction"),  # type: ignore[arg-type]
    (lambda queue: queue.peek_by_lookup(0), "lookup_identifier"),
    (lambda queue: queue.peek_by_lookup("1"), "lookup_identifier"),  # type: ignore[arg-type]
    (lambda queue: queue.receive_by_lookup(1, "last"), "seek"),  # type: ignore[arg-type]
    (lambda queue: queue.move(1, None), "to"),  # type: ignore[arg-type]
    (lambda queue: queue.move(None, POISON), "lookup_identifier"),  # type: ignore[arg-type]
    (lambda queue: queue.send(5), "body"),  # type: ignore[arg-type]
    (lambda queue: queue.send(priority=8), "priority"),
    (lambda queue: queue.send(message_class=0x0200), "message_class"),
    (lambda queue: queue.send(recoverable=True, acknowledge="full_receive"), "admin_queue"),
    (lambda queue: queue.send(body_type=object()), "body_type"),  # type: ignore[arg-type]
]


def test_a_wrong_argument_is_named(folder: Path) -> None:
    async def scenario() -> list[str]:
        paths = []
        async with orders(folder) as queue:
            for use, _ in WRONG:
                with pytest.raises(InvalidValue) as caught:
                    await use(queue)
                paths.append(caught.value.path)
        return paths

    assert run(scenario()) == [path for _, path in WRONG]


def test_names_and_folders(folder: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(folder) as manager:
            assert manager.name == "alpha"
            assert manager.queue(ORDERS).format_name == r"DIRECT=OS:alpha\PRIVATE$\orders"
            away = r"DIRECT=OS:away\PRIVATE$\orders"
            await manager.queue(away).send(b"1", recoverable=True)
            assert await rest(manager.queue(away)) == [b"1"]  # of the outgoing queue
            with pytest.raises(InvalidName):
                manager.queue(r"private$\a\b")
            with pytest.raises(InvalidValue):
                manager.queue(5)  # type: ignore[arg-type]
            assert (await manager.create_queue(ORDERS)).format_name == manager.queue(ORDERS).format_name
            assert await refused(manager.create_queue(ORDERS, transactional=True)) == "MQ_ERROR_QUEUE_EXISTS"
        with pytest.raises(StoreMissing):
            await msmqwire.attach(tmp_path / "none").__aenter__()
        attachment = msmqwire.attach(folder)
        async with attachment:
            pass
        with pytest.raises(InvalidValue, match="entered before"):
            await attachment.__aenter__()

    run(scenario())
    with pytest.raises(InvalidValue):
        msmqwire.attach(5)  # type: ignore[arg-type]


def test_an_express_message_would_be_lost_in_a_store(data: Path) -> None:
    async def scenario() -> None:
        async with msmqwire.attach(data, create=True) as manager:
            assert not manager.served
            queue = await manager.create_queue(ORDERS)
            with pytest.raises(InvalidValue) as caught:
                await queue.send(b"1")
            assert caught.value.path == "recoverable"

    run(scenario())
