"""Helpers of the tests of queues as objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import QueueError
from msmqwire.qm.client import Queue
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


async def refused(work: Awaitable[object]) -> str:
    """The name of the code with which something is refused."""
    with pytest.raises(QueueError) as caught:
        await work
    assert f"0x{caught.value.hresult:08X}" != caught.value.name
    return caught.value.name
