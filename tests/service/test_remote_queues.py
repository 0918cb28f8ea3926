"""Queues of a real server, read from elsewhere: by programs with `msmqwire.connect`, and with ``--remote``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import QueueError, ReadTimeout, RpcFault, Unreachable
from msmqwire.qm.client import Connection, Queue, ReceivedMessage, SyncQueue
from msmqwire.qm.runtime.local import attach
from tests.support.queues import rest
from tests.support.running import (
    ADDRESS,
    LEDGER,
    ORDERS,
    Process,
    called,
    message,
    process,
    put,
    recoverable,
    until,
)

NAME = rf"DIRECT=TCP:{ADDRESS}\{ORDERS}"
USER, PASSWORD = "LAB\\alice", "Grün: blau 7"


@pytest.fixture(params=["anonymous", "privacy"])
def alpha(
    request: pytest.FixtureRequest, data: Path, tmp_path: Path
) -> Iterator[tuple[Process, dict[str, str]]]:
    """A server with an endpoint mapper, and who reads its queues."""
    users = tmp_path / "users"
    users.write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
    users.chmod(0o600)
    auth = ("--rpc-users", str(users)) if request.param == "privacy" else ("--rpc-auth", "none")
    queues = "--queue", ORDERS, "--queue", f"{LEDGER};transactional"
    mapper = "--endpoint-mapper", f"{ADDRESS}:0", "--set", "close_s=0.2"
    with process(data, *queues, "--rpc", f"{ADDRESS}:0", *mapper, *auth) as server:
        yield server, {"user": USER, "password": PASSWORD} if request.param == "privacy" else {}


def seen(data: Path, queue: str) -> list[dict[str, Any]]:
    """The messages of a queue, as commands at its own computer print them."""
    return called("peek", queue, "--data", data, "--count", "100").lines


async def given_back(queue: Queue) -> None:
    """Receive the first message, which nobody else sees meanwhile, and give it back."""
    async with queue.receiving(0) as first:
        assert first.text == "order 0"
        assert len(await rest(queue)) == 3
        raise ZeroDivisionError


def test_programs(alpha: tuple[Process, dict[str, str]], data: Path) -> None:
    server, who = alpha

    def connect() -> Connection:
        return msmqwire.connect(NAME, port=server.port, endpoint_mapper=server.mapper_port, **who)  # type: ignore[arg-type]

    async def scenario(queue: Queue) -> None:
        for number in range(6):
            await (await queue.send(f"order {number}", priority=7 - number, recoverable=True)).transferred(60)
        async with queue.cursor() as cursor:
            there = [found async for found in cursor]
        assert [found.text for found in there] == [f"order {number}" for number in range(6)]
        assert [found.to_json() for found in there] == seen(data, ORDERS)
        assert (await queue.receive_by_lookup(there[0].lookup_identifier, "next")).text == "order 1"
        await queue.move(there[2], r"private$\orders;poison")
        with pytest.raises(ZeroDivisionError):
            await given_back(queue)
        assert (await queue.receive(0)).text == "order 0"
        await queue.purge()
        waiting = [asyncio.create_task(queue.receive(60)) for _ in range(8)]
        cancelled = asyncio.create_task(queue.receive())
        with pytest.raises(ReadTimeout):
            await queue.peek(0.2)
        cancelled.cancel()
        for number in range(8):
            await queue.send(bytes([number]), recoverable=True)
        assert {(await read).body for read in waiting} == {bytes([number]) for number in range(8)}
        with pytest.raises(QueueError) as empty:
            await queue.receive_by_lookup(there[0].lookup_identifier)
        assert empty.value.name == "MQ_ERROR_MESSAGE_NOT_FOUND"

    async def main() -> None:
        async with connect() as queue:
            await scenario(queue)

    asyncio.run(main())
    with connect() as queue:
        queue.send(b"last", recoverable=True).transferred(60)
        assert queue.receive(60).body == b"last"


def test_commands(alpha: tuple[Process, dict[str, str]], data: Path, tmp_path: Path) -> None:
    server, who = alpha
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    options: list[str | Path] = ["--rpc-port", str(server.rpc_port)]
    options += ["--user", USER, "--password-file", tmp_path / "password"] if who else []
    with attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3", b"4"))
    expected = seen(data, ORDERS)
    assert called("peek", "--remote", NAME, *options, "--count", "9").lines == expected
    assert called("receive", "--remote", NAME, *options, "--count", "2", "--json").lines == expected[:2]
    moved = called("move", "--remote", NAME, rf"{NAME};poison", *options).one
    assert moved == {"identifier": expected[2]["identifier"], "to": rf"{NAME};poison"}
    assert called("receive", "--remote", rf"{NAME};poison", *options).one["body"] == expected[2]["body"]
    assert called("purge", "--remote", NAME, *options).one == {"queue": NAME}
    assert called("receive", "--remote", NAME, *options, "--timeout", "0.2").lines == []
    missing = called("receive", "--remote", rf"DIRECT=TCP:{ADDRESS}\private$\nothing", *options)
    assert missing.error(66)["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    if who:
        assert called("receive", "--remote", NAME, *options[:2]).error(69)["error"].endswith("ACCESS_DENIED")
        (tmp_path / "password").write_text("wrong", encoding="utf-8")
        assert called("receive", "--remote", NAME, *options).error(69)["error"].endswith("ACCESS_DENIED")


def test_transactional_messages(alpha: tuple[Process, dict[str, str]], data: Path) -> None:
    server, who = alpha
    name = rf"DIRECT=TCP:{ADDRESS}\{LEDGER}"
    with attach(data) as local:
        put(local, LEDGER, *(message(body, delivery="transactional") for body in (b"1", b"2", b"3")))
    expected = seen(data, LEDGER)
    with msmqwire.connect(name, rpc_port=server.rpc_port, **who) as queue:  # type: ignore[arg-type]
        with queue.cursor() as cursor:
            found = list(cursor)
        assert [each.to_json() for each in found] == expected
        assert queue.receive_by_lookup(found[1].lookup_identifier).body == b"2"
        assert [queue.receive(0).body for _ in range(2)] == [b"1", b"3"]


def test_a_killed_server_has_what_was_not_acknowledged(
    alpha: tuple[Process, dict[str, str]], data: Path
) -> None:
    server, who = alpha
    with attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2"))
    with msmqwire.connect(NAME, rpc_port=server.rpc_port, **who) as queue:  # type: ignore[arg-type]
        assert queue.receive(0).body == b"1"
        with pytest.raises(Unreachable):
            received_while_killed(server, queue)
    with process(data, "--rpc", f"{ADDRESS}:0", "--rpc-auth", "none") as again:
        with msmqwire.connect(NAME, rpc_port=again.rpc_port) as queue:
            assert [found.body for found in (queue.receive(0), *there(queue))] == [b"2"]


def there(queue: SyncQueue) -> list[ReceivedMessage]:
    with queue.cursor() as cursor:
        return list(cursor)


def received_while_killed(server: Process, queue: SyncQueue) -> None:
    with queue.receiving(0) as second:
        assert second.body == b"2"
        server.kill()
        until(lambda: not _served(queue), "the connection ends")


def _served(queue: SyncQueue) -> bool:
    try:
        queue.peek(0)
    except Unreachable:
        return False
    except (QueueError, RpcFault):
        return True
    return True
