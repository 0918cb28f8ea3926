"""A driver of a core over a store and a network that record commits and sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msmqwire.names import parse_format_name
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import OpenQueueDescriptor
from msmqwire.qm.model.enumerations import DeliveryGuarantee, QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.read_results import PENDING
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.store import LAYOUT
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.memory import MemoryStore
from tests.support.qm.recording_carrier import RecordingCarrier
from tests.support.running import ORDERS, PATIENCE_S

TO_ELSEWHERE = r"DIRECT=TCP:192.0.2.1\private$\far"


class RecordingStore(MemoryStore):
    """A store that records its commits, and refuses them on demand.

    Attributes:
        events: commits and, from `RecordingCarrier`, effects, in order.
        failure: exception raised instead of a commit.
    """

    def __init__(self) -> None:
        super().__init__(LAYOUT)
        self.events: list[str] = []
        self.failure: Exception | None = None
        self.refused = 0

    def commit(self, changes: Changes) -> None:
        if self.failure is not None:
            self.refused += 1
            raise self.failure
        super().commit(changes)
        self.events.append("commit")

    def messages(self) -> int:
        """Return the number of durable messages."""
        return len(list(self.rows(Table.MESSAGE)))


class DriverHarness:
    """A driver with a core that has one queue."""

    def __init__(self) -> None:
        self.store = RecordingStore()
        self.core = open_core(self.store, "alpha")
        self.driver = EngineDriver(self.core, self.store)
        self.carrier = RecordingCarrier(self.store.events)
        self.driver.register(self.carrier)
        self.driver.flush_by(self.carrier.flush)
        self.driver.start()
        self.driver.call(queues.create, self.core, {"queue": ORDERS})

    def open(self, name: str, access: QueueAccessType) -> OpenQueueDescriptor:
        status, descriptor = self.core.queues.open(parse_format_name(name), access)
        assert descriptor is not None, status
        return descriptor

    def send(self, name: str = rf"DIRECT=OS:alpha\{ORDERS}", count: int = 1) -> list[Any]:
        """Send recoverable messages, each with a call of its own."""
        descriptor = self.open(name, QueueAccessType.SEND_ACCESS)
        guarantee = DeliveryGuarantee.RECOVERABLE
        return [
            self.driver.call(self.core.send, descriptor, Message(body=b"x", delivery_guarantee=guarantee))
            for _ in range(count)
        ]

    async def wait(self, timeout: int) -> ReadCompleted:
        """Wait for a message."""
        descriptor = self.open(rf"DIRECT=OS:alpha\{ORDERS}", QueueAccessType.RECEIVE_ACCESS)
        read = self.driver.call(lambda: self.core.messages.dequeue(descriptor, timeout=timeout))
        assert read.status == PENDING
        future: asyncio.Future[ReadCompleted] = asyncio.get_running_loop().create_future()
        self.driver.on_read(read.request, future.set_result)
        return await future


def run(work: Callable[[DriverHarness], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine with a harness; fail if the loop reports an unhandled error."""
    errors: list[Any] = []

    async def start() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        harness = DriverHarness()
        await harness.driver.durable()
        harness.store.events.clear()
        await asyncio.wait_for(work(harness), PATIENCE_S)
        harness.driver.abandon()

    asyncio.run(start())
    assert errors == []
