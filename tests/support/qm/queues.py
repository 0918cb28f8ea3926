"""Helpers of the tests of queues as objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import QueueError
from msmqwire.qm.client import Queue
from msmqwire.qm.runtime.in_store_requests import InStoreRequests
from msmqwire.qm.runtime.requests import LastingRequests
from tests.support.patience import happens
from tests.support.running import LEDGER, ORDERS

POISON = rf"{ORDERS};poison"


@asynccontextmanager
async def orders(folder: Path, *bodies: bytes, name: str = ORDERS) -> AsyncIterator[Queue]:
    """A queue with messages."""
    async with msmqwire.attach(folder) as manager:
        queue = manager.queue(name)
        for body in bodies:
            await queue.send(body, recoverable=True, transactional=name == LEDGER)
        yield queue


async def rest(queue: Queue) -> list[bytes]:
    """The bodies that are in a queue, which they stay in."""
    async with queue.cursor() as cursor:
        return [message.body async for message in cursor]


async def reads_wait(queue: Queue, count: int) -> None:
    """Wait until `count` reads, all of its program, have come to the queue manager and wait."""
    requests = queue._sending._requests
    await happens(lambda: len(under_way(requests)) == count, f"{count} reads are begun")
    await requests.call("status")  # the requests of a connection are begun in their order


def under_way(requests: LastingRequests) -> Collection[object]:
    """The requests of a program that have no answer."""
    connection = requests._connection
    return connection._calls if isinstance(connection, InStoreRequests) else connection._pending


async def subscriptions_wait(queue: Queue, count: int) -> None:
    """Wait until `count` subscriptions of its program wait for a message, and have no other."""
    requests = queue._sending._requests
    pushed = requests._connection._subscribed._pushed
    await happens(
        lambda: sum(one._waiting is not None and not one.records for one in pushed.values()) == count,
        f"{count} subscriptions wait",
    )


async def refused(work: Awaitable[object]) -> str:
    """The name of the code with which something is refused."""
    with pytest.raises(QueueError) as caught:
        await work
    assert f"0x{caught.value.hresult:08X}" != caught.value.name
    return caught.value.name
