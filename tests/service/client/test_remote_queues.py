"""Queues of a real server, read from elsewhere by `msmqwire.connect` and by commands with ``--remote``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import msmqwire
from msmqwire.errors import QueueError, ReadTimeout, RpcFault, Unreachable
from msmqwire.qm.client import Connection, Queue, ReceivedMessage, SyncQueue
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.rpc.constants import AuthLevel
from tests.support.qm.queues import rest
from tests.support.running import (
    ADDRESS,
    LEDGER,
    ORDERS,
    Process,
    called,
    message,
    options,
    process,
    put,
    recoverable,
    served,
    until,
)

NAME = rf"DIRECT=TCP:{ADDRESS}\{ORDERS}"
USER, PASSWORD = "LAB\\alice", "Grün: blau 7"


class Alpha(NamedTuple):
    """A server: its ports, and who reads its queues."""

    port: int
    rpc_port: int
    mapper_port: int
    who: dict[str, Any]


@pytest.fixture(params=["anonymous", "privacy"])
def alpha(request: pytest.FixtureRequest, data: Path) -> Iterator[Alpha]:
    """A server with an endpoint mapper, that lets in everybody or one user."""
    anonymous = request.param == "anonymous"
    rpc = RpcOptions(
        (ADDRESS, 0),
        endpoint_mapper=(ADDRESS, 0),
        users={} if anonymous else {USER: PASSWORD},
        level=AuthLevel.NONE if anonymous else AuthLevel.PKT_PRIVACY,
    )
    queues = ORDERS, f"{LEDGER};transactional"
    with served(options(data, *queues, rpc=rpc, limits=Limits(close_s=0.2))) as server:
        rpc_port, mapper_port = server.do(
            lambda running: (running.rpc_network.listen[1], running.rpc_network.endpoint_mapper[1])  # type: ignore[union-attr, index]
        )
        who = {} if anonymous else {"user": USER, "password": PASSWORD}
        yield Alpha(server.port, rpc_port, mapper_port, who)


def seen(data: Path, queue: str) -> list[dict[str, Any]]:
    """The messages of a queue, as commands at its own computer print them."""
    return called("peek", queue, "--data", data, "--count", "100").lines


def as_programs_see(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What programs have of messages that commands print: all but the body as text."""
    return [{name: value for name, value in line.items() if name != "text"} for line in lines]


async def given_back(queue: Queue) -> None:
    """Receive the first message, which nobody else sees meanwhile, and give it back."""
    async with queue.receiving(0) as first:
        assert first.text == "order 0"
        assert len(await rest(queue)) == 3
        raise ZeroDivisionError


def test_programs(alpha: Alpha, data: Path) -> None:

    def connect() -> Connection:
        return msmqwire.connect(NAME, port=alpha.port, endpoint_mapper=alpha.mapper_port, **alpha.who)

    async def scenario(queue: Queue) -> None:
        for number in range(6):
            await (await queue.send(f"order {number}", priority=7 - number, recoverable=True)).transferred(60)
        async with queue.cursor() as cursor:
            there = [found async for found in cursor]
        assert [found.text for found in there] == [f"order {number}" for number in range(6)]
        assert [found.to_json() for found in there] == as_programs_see(seen(data, ORDERS))
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


def test_remote_messages_are_received_singly_without_push(alpha: Alpha, data: Path) -> None:
    async def main() -> None:
        async with msmqwire.connect(
            NAME, port=alpha.port, endpoint_mapper=alpha.mapper_port, **alpha.who
        ) as queue:
            for number in range(6):
                await (await queue.send(b"%d" % number, recoverable=True)).transferred(60)
            async with queue.messages(timeout=0.2) as messages:
                assert (await anext(messages)).body == b"0"
                assert (await anext(messages)).body == b"1"
                assert len(seen(data, ORDERS)) == 4
                await messages.durable()
                assert (await anext(messages)).body == b"2"
            assert await rest(queue) == [b"3", b"4", b"5"]
            with suppress(ZeroDivisionError):
                async with queue.messages() as messages:
                    async for message in messages:
                        if message.body == b"4":
                            raise ZeroDivisionError
            assert await rest(queue) == [b"4", b"5"]
            async with queue.messages(timeout=0.2) as messages:
                assert [found.body async for found in messages] == [b"4", b"5"]

    asyncio.run(main())
    assert seen(data, ORDERS) == []


def test_commands(alpha: Alpha, data: Path, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    remote: list[str | Path] = ["--rpc-port", str(alpha.rpc_port)]
    remote += ["--user", USER, "--password-file", tmp_path / "password"] if alpha.who else []
    with attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3", b"4"))
    expected = seen(data, ORDERS)
    assert called("peek", "--remote", NAME, *remote, "--count", "9").lines == expected
    assert called("receive", "--remote", NAME, *remote, "--count", "2", "--json").lines == expected[:2]
    moved = called("move", "--remote", NAME, rf"{NAME};poison", *remote).one
    assert moved == {"identifier": expected[2]["identifier"], "to": rf"{NAME};poison"}
    assert called("receive", "--remote", rf"{NAME};poison", *remote).one["body"] == expected[2]["body"]
    assert called("purge", "--remote", NAME, "--yes", *remote).one == {"queue": NAME}
    assert called("receive", "--remote", NAME, *remote, "--timeout", "0.2").lines == []
    missing = called("receive", "--remote", rf"DIRECT=TCP:{ADDRESS}\private$\nothing", *remote)
    assert missing.error(66)["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    if alpha.who:
        assert called("receive", "--remote", NAME, *remote[:2]).error(69)["error"].endswith("ACCESS_DENIED")
        (tmp_path / "password").write_text("wrong", encoding="utf-8")
        assert called("receive", "--remote", NAME, *remote).error(69)["error"].endswith("ACCESS_DENIED")


def test_transactional_messages(alpha: Alpha, data: Path) -> None:
    name = rf"DIRECT=TCP:{ADDRESS}\{LEDGER}"
    with attach(data) as local:
        put(local, LEDGER, *(message(body, delivery="transactional") for body in (b"1", b"2", b"3")))
    expected = as_programs_see(seen(data, LEDGER))
    with msmqwire.connect(name, rpc_port=alpha.rpc_port, **alpha.who) as queue:  # type: ignore[arg-type]
        with queue.cursor() as cursor:
            found = list(cursor)
        assert [each.to_json() for each in found] == expected
        assert queue.receive_by_lookup(found[1].lookup_identifier).body == b"2"
        assert [queue.receive(0).body for _ in range(2)] == [b"1", b"3"]


def test_a_killed_server_has_what_was_not_acknowledged(data: Path) -> None:
    rpc = "--rpc", f"{ADDRESS}:0", "--rpc-auth", "none"
    with process(data, "--queue", ORDERS, *rpc) as server:
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"1", b"2"))
        with msmqwire.connect(NAME, rpc_port=server.rpc_port) as queue:
            assert queue.receive(0).body == b"1"
            with pytest.raises(Unreachable):
                received_while_killed(server, queue)
    with process(data, *rpc) as again, msmqwire.connect(NAME, rpc_port=again.rpc_port) as queue:
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
