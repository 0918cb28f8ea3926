"""A message is durable before a receiver sees it: it cannot vanish or change in a crash."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from msmqwire.qm.core import Core
from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.store import memory_store
from tests.support.running import PATIENCE_S, message

QUEUE = r"private$\orders"


@pytest.mark.parametrize("delivery", ["recoverable", "transactional"])
@pytest.mark.parametrize("wait_ms", [0, 60_000])
@pytest.mark.parametrize("op", ["receive", "read"])
def test_a_message_of_the_same_turn_is_read_once_it_is_durable(delivery: str, wait_ms: int, op: str) -> None:
    store = memory_store()

    async def run() -> tuple[list[Any], int]:
        driver = EngineDriver(Core(store, new_guid=uuid4, computer_name="alpha"), store)
        driver.start()
        sender, receiver = LocalSession(driver), LocalSession(driver)
        await sender.run({"op": "create", "queue": QUEUE, "transactional": delivery == "transactional"})
        to_send = [message(body, delivery=delivery) for body in (b"one", b"two")]
        request = {"op": "send", "to": rf"DIRECT=OS:alpha\{QUEUE}", "messages": to_send}

        async def receive() -> tuple[list[Any], int]:
            more = {"count": 2} if op == "receive" else {"action": "receive"}
            answer = await receiver.run({"op": op, "queue": QUEUE, "wait_ms": wait_ms, **more})
            messages = answer["messages"] if op == "receive" else [answer["message"]]
            return messages, len(list(store.rows(Table.PACKET)))

        requests = [sender.run(request), receive()]  # in one turn
        if wait_ms:
            requests.reverse()  # the receiver waits first, and is woken
        results = await asyncio.gather(*requests)
        received = results[0 if wait_ms else 1]
        await driver.stop()
        assert isinstance(received, tuple)
        return received

    messages, stored = asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    assert (len(messages), stored) == (2 if op == "receive" else 1, 2)
