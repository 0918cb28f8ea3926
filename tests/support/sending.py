"""What the tests of the client share: ways to the queues of a server, and what is in them."""

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


def way(server: Serving, queue: str = ORDERS, **more: Any) -> Connection:
    """A way to a queue of a server."""
    return msmqwire.connect(rf"DIRECT=TCP:{server.address}\{queue}", **{"port": server.port, **more})


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own, which is told of no error that nobody has caught."""
    errors: list[Any] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        return await asyncio.wait_for(work, 2 * PATIENCE_S)

    found = asyncio.run(watched())
    assert errors == []
    return found


def messages(server: Serving, queue: str = ORDERS) -> list[dict[str, Any]]:
    """All messages of a queue."""
    with attach(server.data) as local:
        found: list[dict[str, Any]] = local.call("peek", queue=queue, count=1000)["messages"]
    return found


def arrived(server: Serving, count: int, queue: str = ORDERS) -> list[bytes]:
    """The bodies of the messages of a queue, once there are so many."""
    until(lambda: len(messages(server, queue)) >= count, f"{count} messages come")
    return bodies(messages(server, queue))


def taken(server: Serving, queue: str = ORDERS) -> None:
    """Receive a message."""
    with attach(server.data) as local:
        (one,) = local.call("receive", queue=queue, count=1, wait_ms=60_000)["messages"]
        local.call("end", done=[one["receipt"]])


__all__ = ["LEDGER", "ORDERS", "arrived", "messages", "run", "taken", "way"]
