"""The client in programs: wrong use, several threads and tasks, cancellation."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import InvalidName, InvalidValue, LocatedError, Unreachable
from tests.support.patience import limit
from tests.support.running import InThread, bodies, until
from tests.support.sending import LEDGER, ORDERS, connect, messages, run

NAME = rf"DIRECT=TCP:127.0.0.35\{ORDERS}"


# -- misuse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, path",
    [
        ({"port": 0}, "port"),
        ({"port": 65_536}, "port"),
        ({"port": "1801"}, "port"),
        ({"port": True}, "port"),
        ({"hosts": {"alpha": "127.0.0.1"}}, "hosts[alpha]"),
        ({"hosts": {"alpha": ("127.0.0.1", -1)}}, "hosts[alpha]"),
        ({"listen": "127.0.0.1:0"}, "listen"),
        ({"listen": ("127.0.0.1", None)}, "listen"),
        ({"drain": -1}, "drain"),
        ({"drain": float("nan")}, "drain"),
        ({"drain": None}, "drain"),
        ({"state": 5}, "state"),
        ({"format_name": None}, "format_name"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        msmqwire.connect(**{"format_name": NAME, **arguments})
    assert caught.value.path == path


@pytest.mark.parametrize("name", ["", "orders", r"alpha\private$\orders", "DIRECT=TCP:x", f"{NAME},"])
def test_a_wrong_format_name_is_refused_at_once(name: str) -> None:
    with pytest.raises(InvalidName):
        msmqwire.connect(name)


@pytest.mark.parametrize(
    "properties, path",
    [
        ({"label": "x" * 250}, "label"),
        ({"label": b"x"}, "label"),
        ({"priority": 8}, "priority"),
        ({"priority": "high"}, "priority"),
        ({"recoverable": "yes"}, "recoverable"),
        ({"acknowledge": "everything"}, "acknowledge"),
        ({"acknowledge": 5}, "acknowledge"),
        ({"acknowledge": ["full_receive", 5]}, "acknowledge"),
        ({"admin_queue": "here"}, "admin_queue"),
        ({"response_queue": "here"}, "response_queue"),
        ({"correlation": b"too short"}, "correlation"),
        ({"correlation": "no identifier"}, "correlation"),
        ({"body_type": -1}, "body_type"),
        ({"message_class": 0x0200}, "message_class"),
        ({"application": 1 << 32}, "application"),
        ({"extension": "text"}, "extension"),
        ({"journal": 1}, "journal"),
        ({"dead_letter": None, "journal": "x"}, "journal"),
        ({"time_to_reach_queue": 1.5}, "time_to_reach_queue"),
        ({"time_to_be_received": -1}, "time_to_be_received"),
        ({"delivery": "transactional"}, "delivery"),
        ({"class": 1}, "class"),
        ({"colour": "red"}, "colour"),
        ({"body": 5}, "body"),
        ({"body": None}, "body"),
        ({"body": ["x"]}, "body"),
    ],
)
def test_a_wrong_property_is_named_and_nothing_is_sent(
    server: InThread, properties: dict[str, Any], path: str
) -> None:
    with connect(server) as client:
        with pytest.raises(LocatedError) as caught:
            client.send(**properties)
        assert caught.value.path == path
        client.send(b"right")
    assert bodies(messages(server)) == [b"right"]


def test_more_than_a_packet_holds_is_refused(server: InThread) -> None:
    with connect(server) as client:
        with pytest.raises(InvalidValue):
            client.send(b"x" * (4 << 20))
        client.send(b"right")
    assert bodies(messages(server)) == [b"right"]


def test_it_is_entered_once(server: InThread) -> None:
    connection = connect(server)
    with connection as client:
        with pytest.raises(InvalidValue, match="entered before"):
            connection.__enter__()
        with pytest.raises(InvalidValue, match="entered before"):
            run(connection.__aenter__())
        client.send(b"still")
    with pytest.raises(InvalidValue, match="entered before") as caught:
        connection.__enter__()
    assert caught.value.path == "connection"
    assert bodies(messages(server)) == [b"still"]


def test_nothing_is_sent_after_leaving(server: InThread) -> None:
    async def send() -> None:
        async with connect(server, LEDGER) as client:
            pass
        for properties in ({}, {"transactional": True}):
            with pytest.raises(InvalidValue, match="it was left") as caught:
                await client.send(b"late", **properties)  # type: ignore[arg-type]
            assert caught.value.path == "connection"
        with pytest.raises(InvalidValue, match="it was left"):
            async with client.transaction():
                pass

    run(send())


def test_nothing_is_sent_after_leaving_without_asyncio(server: InThread) -> None:
    with connect(server) as client:
        sent = client.send(b"in time", acknowledge="full_receive")
        sent.transferred()
    with pytest.raises(InvalidValue, match="it was left"):
        client.send(b"late")
    with pytest.raises(InvalidValue, match="it was left"):
        client.send(b"late", transactional=True)
    with pytest.raises(InvalidValue, match="it was left"):
        client.transaction().__enter__()
    sent.transferred(timeout=1)  # this is known
    for wait in (sent.received, sent.acknowledged):
        with pytest.raises(Unreachable, match="the connection was left"):
            wait()
        with pytest.raises(Unreachable, match="the connection was left"):
            wait(timeout=1)
    assert bodies(messages(server)) == [b"in time"]


def test_a_transaction_that_has_ended_takes_nothing(server: InThread) -> None:
    with connect(server, LEDGER) as client:
        with client.transaction() as transaction:
            transaction.send(b"1")
        with pytest.raises(InvalidValue, match="it has ended") as caught:
            transaction.send(b"2")
        assert caught.value.path == "transaction"
        with suppress(ZeroDivisionError), client.transaction() as transaction:
            raise ZeroDivisionError
        with pytest.raises(InvalidValue, match="it has ended"):
            transaction.send(b"3")
    assert bodies(messages(server, LEDGER)) == [b"1"]


def test_leaving_with_a_transaction_open_sends_nothing_of_it(server: InThread) -> None:
    async def send() -> None:
        async with connect(server, LEDGER) as client:
            transaction = client.transaction()
            inside = await transaction.__aenter__()
            inside.send(b"never")
        with pytest.raises(InvalidValue, match="it was left"):
            await transaction.__aexit__(None, None, None)

    run(send())
    assert messages(server, LEDGER) == []


def test_an_address_that_is_not_of_this_computer(tmp_path: Path) -> None:
    connection = msmqwire.connect(NAME, state=tmp_path / "state", listen=("192.0.2.1", 0))
    with pytest.raises(Unreachable, match=r"can't listen at 192\.0\.2\.1:0: .*assign"):
        connection.__enter__()
    with pytest.raises(Unreachable, match=r"can't listen at x{100}:0: "):
        msmqwire.connect(NAME, listen=("x" * 100, 0)).__enter__()
    with msmqwire.connect(NAME, state=tmp_path / "state"):  # the file is free again
        pass


# -- threads and tasks ----------------------------------------------------------------------------------


def test_several_threads_use_one_connection(server: InThread) -> None:
    with connect(server, LEDGER) as client:

        def send(name: int) -> None:
            for number in range(40):
                if number % 2:
                    client.send(b"%d %d" % (name, number), transactional=True)
                else:
                    with client.transaction() as transaction:
                        transaction.send(b"%d %d" % (name, number)).identifier.encode()

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(send, range(6)))
    received = bodies(messages(server, LEDGER))
    assert len(received) == 240
    for name in range(6):
        of_thread = [body for body in received if body.startswith(b"%d " % name)]
        assert of_thread == [b"%d %d" % (name, number) for number in range(40)]


def test_threads_that_still_send_while_it_is_left(server: InThread) -> None:
    sent: list[bytes] = []
    errors: list[Exception] = []

    def send(name: int) -> None:
        try:
            for number in range(1_000_000):
                client.send(b"%d %d" % (name, number), recoverable=True)
                sent.append(b"%d %d" % (name, number))
        except (InvalidValue, Unreachable) as exc:
            errors.append(exc)

    threads = [threading.Thread(target=send, args=(name,)) for name in range(3)]
    with suppress(Unreachable), connect(server, drain=0.05) as client:
        for thread in threads:
            thread.start()
        until(lambda: len(sent) > 100, "they send")
    for thread in threads:
        thread.join(limit(60))
        assert not thread.is_alive()
    assert len(errors) == 3


def test_a_cancelled_task_leaves_in_good_order(server: InThread) -> None:
    async def send() -> None:
        inside, before = asyncio.Event(), asyncio.all_tasks()

        async def body() -> None:
            async with connect(server) as client:
                await client.send(b"x", recoverable=True)
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(body())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before

    run(send())


def test_cancelled_while_it_waits_at_the_end(tmp_path: Path) -> None:
    async def send() -> None:
        state = tmp_path / "state"
        leaving, before = asyncio.Event(), asyncio.all_tasks()

        async def body() -> None:
            async with msmqwire.connect(NAME, port=1, state=state, drain=10_000) as client:
                await client.send(b"x", recoverable=True)
                leaving.set()

        task = asyncio.ensure_future(body())
        await leaving.wait()
        for _ in range(20):  # turns of the loop, after which it waits for the peer
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before
        async with msmqwire.connect(NAME, port=1, state=state, drain=0):  # the file is free again
            pass

    run(send())


def test_a_cancelled_send_is_sent_or_not_but_breaks_nothing(server: InThread) -> None:
    async def send() -> None:
        async with connect(server, LEDGER) as client:
            for number in range(50):
                task = asyncio.ensure_future(client.send(b"%d" % number, transactional=True))
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await client.send(b"last", transactional=True)

    run(send())
    received = bodies(messages(server, LEDGER))
    assert received[-1] == b"last"
    assert [int(body) for body in received[:-1]] == sorted({int(body) for body in received[:-1]})


def test_a_cancelled_transaction_sends_nothing(server: InThread) -> None:
    async def send() -> None:
        async with connect(server, LEDGER) as client:
            inside = asyncio.Event()

            async def body() -> None:
                async with client.transaction() as transaction:
                    transaction.send(b"never")
                    inside.set()
                    await asyncio.Event().wait()

            task = asyncio.ensure_future(body())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await client.send(b"last", transactional=True)

    run(send())
    assert bodies(messages(server, LEDGER)) == [b"last"]
