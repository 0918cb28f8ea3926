"""Helpers of the tests of the client: connections to the queues of a server, and their contents."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msmqwire
from msmqwire.qm.client import Connection
from msmqwire.qm.runtime.local import attach
from tests.support.running import LEDGER, ORDERS, PATIENCE_S, InThread, Process, bodies, until

T = TypeVar("T")
Serving = InThread | Process


def connect(server: Serving, queue: str = ORDERS, **more: Any) -> Connection:
    """Connect the client to a queue of a server."""
    return msmqwire.connect(rf"DIRECT=TCP:{server.address}\{queue}", **{"port": server.port, **more})


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own; fail if an error there goes uncaught."""
    errors: list[Any] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        return await asyncio.wait_for(work, 2 * PATIENCE_S)

    result = asyncio.run(watched())
    assert errors == []
    return result


def messages(server: Serving, queue: str = ORDERS) -> list[dict[str, Any]]:
    """The messages of a queue."""
    with attach(server.data) as local:
        peeked: list[dict[str, Any]] = local.call("peek", queue=queue, count=1000)["messages"]
    return peeked


def arrived(server: Serving, count: int, queue: str = ORDERS) -> list[bytes]:
    """Wait until a queue has `count` messages; return the bodies of all."""
    until(lambda: len(messages(server, queue)) >= count, f"{count} messages come")
    return bodies(messages(server, queue))


def receive_one(server: Serving, queue: str = ORDERS) -> None:
    """Receive a message and confirm it."""
    with attach(server.data) as local:
        (message,) = local.call("receive", queue=queue, count=1, wait_ms=60_000)["messages"]
        local.call("end", done=[message["receipt"]])


__all__ = ["LEDGER", "ORDERS", "arrived", "connect", "messages", "receive_one", "run"]
