"""The driver of a core: what is called in one turn is durable together, and nothing is told before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue, MsmqError, StoreDamaged, StoreRefused, Unreachable
from msmqwire.names import parse_format_name
from msmqwire.qm.model.changes import Changes, Table
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import OpenQueueDescriptor
from msmqwire.qm.model.enumerations import DeliveryGuarantee, EnqueueStatus, QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.read_results import PENDING
from msmqwire.qm.runtime import engine_driver as module
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.store.memory import MemoryStore
from tests.support.running import ORDERS, PATIENCE_S

FAR = r"DIRECT=TCP:192.0.2.1\private$\far"


class Watched(MemoryStore):
    """A store that tells when it commits, and may refuse to.

    Attributes:
        happened: commits and, from `Wire`, effects, in their order.
        failure: what it raises instead of committing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.happened: list[str] = []
        self.failure: Exception | None = None
        self.refused = 0

    def commit(self, changes: Changes) -> None:
        if self.failure is not None:
            self.refused += 1
            raise self.failure
        super().commit(changes)
        self.happened.append("commit")

    def messages(self) -> int:
        """How many are durable."""
        return len(list(self.rows(Table.MESSAGE)))


class Wire:
    """A network that tells what is wanted of it."""

    def __init__(self, happened: list[str]) -> None:
        self._happened = happened

    def resolve(self, request: int, host: str) -> None:
        self._happened.append(f"resolve {host}")

    def connect(self, connection: int, address: str, host: str) -> None:
        self._happened.append(f"connect {address}")

    def send(self, connection: int, data: bytes) -> None:
        self._happened.append(f"send {connection}")

    def disconnect(self, connection: int) -> None:
        self._happened.append(f"disconnect {connection}")

    def send_datagram(self, address: str, port: int, data: bytes, *, request: bool) -> None:
        self._happened.append("datagram")

    def flush(self) -> None:
        self._happened.append("flush")


class Desk:
    """A driver with a core that has one queue, and what can be done with it."""

    def __init__(self) -> None:
        self.store = Watched()
        self.core = open_core(self.store, "alpha")
        self.driver = EngineDriver(self.core, self.store)
        self.driver.network = Wire(self.store.happened)
        self.driver.start()
        self.driver.call(queues.create, self.core, {"queue": ORDERS})

    def open(self, name: str, access: QueueAccessType) -> OpenQueueDescriptor:
        status, found = self.core.queues.open(parse_format_name(name), access)
        assert found is not None, status
        return found

    def send(self, name: str = rf"DIRECT=OS:alpha\{ORDERS}", count: int = 1) -> list[Any]:
        """Send recoverable messages, each with a call of its own."""
        there = self.open(name, QueueAccessType.SEND_ACCESS)
        guarantee = DeliveryGuarantee.RECOVERABLE
        return [
            self.driver.call(self.core.send, there, Message(body=b"x", delivery_guarantee=guarantee))
            for _ in range(count)
        ]

    async def wait(self, timeout: int) -> ReadCompleted:
        """Read what is not there yet."""
        there = self.open(rf"DIRECT=OS:alpha\{ORDERS}", QueueAccessType.RECEIVE_ACCESS)
        read = self.driver.call(lambda: self.core.messages.dequeue(there, timeout=timeout))
        assert read.status == PENDING
        future: asyncio.Future[ReadCompleted] = asyncio.get_running_loop().create_future()
        self.driver.on_read(read.request, future.set_result)
        return await future


def run(work: Callable[[Desk], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine with a desk; the loop must not be told of an error that nobody has caught."""
    errors: list[Any] = []

    async def start() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        desk = Desk()
        await desk.driver.durable()
        desk.store.happened.clear()
        await asyncio.wait_for(work(desk), PATIENCE_S)
        desk.driver.abandon()

    asyncio.run(start())
    assert errors == []


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


# -- one commit for a turn ------------------------------------------------------------------------------


def test_what_is_called_in_one_turn_is_one_commit() -> None:
    async def work(desk: Desk) -> None:
        before = desk.driver.commits
        assert desk.send(count=200) == [EnqueueStatus.OK] * 200
        assert desk.store.happened == []
        await desk.driver.durable()
        assert desk.store.happened == ["commit", "flush"]
        assert (desk.driver.commits, desk.store.messages()) == (before + 1, 200)

    run(work)


def test_tasks_of_one_turn_share_a_commit() -> None:
    async def work(desk: Desk) -> None:
        ends: list[str] = []

        async def one() -> None:
            desk.send()
            await desk.driver.durable()
            ends.append(f"{desk.store.messages()} durable")

        await asyncio.gather(*(one() for _ in range(50)))
        assert desk.store.happened.count("commit") == 1
        assert ends == ["50 durable"] * 50

    run(work)


def test_what_has_changed_nothing_waits_for_nothing() -> None:
    async def work(desk: Desk) -> None:
        await desk.driver.durable()
        desk.driver.call(queues.listed, desk.core)
        await desk.driver.durable()
        assert "commit" not in desk.store.happened

    run(work)


def test_one_that_raises_keeps_nothing_of_the_others_back() -> None:
    async def work(desk: Desk) -> None:
        desk.send()
        with pytest.raises(InvalidValue):
            desk.driver.call(queues.find, desk.core, {})
        desk.send()
        await desk.driver.durable()
        assert desk.store.messages() == 2

    run(work)


# -- durable first --------------------------------------------------------------------------------------


def test_effects_are_carried_out_after_the_commit() -> None:
    async def work(desk: Desk) -> None:
        desk.send(FAR, count=3)
        await desk.driver.durable()
        assert desk.store.happened == ["commit", "resolve 192.0.2.1", "flush"]

    run(work)


def test_a_reader_is_told_after_the_commit() -> None:
    async def work(desk: Desk) -> None:
        reading = asyncio.ensure_future(desk.wait(60_000))
        await asyncio.sleep(0)
        await desk.driver.durable()
        desk.store.failure = StoreRefused("full", file="x")
        desk.driver.call(desk.core.queues.end_flow_control)
        desk.send()
        await until(lambda: desk.store.refused >= 3)
        assert not reading.done()
        desk.store.failure = None
        done = await reading
        assert (done.status, done.message and done.message.body) == (MQ_OK, b"x")
        assert "commit" in desk.store.happened

    run(work)


def test_while_the_store_refuses_nothing_is_told_or_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def work(desk: Desk) -> None:
        desk.store.failure = StoreRefused("the disk is full", file="x")
        assert desk.send() == [EnqueueStatus.OK]
        desk.send(FAR)
        told = asyncio.ensure_future(desk.driver.durable())
        await until(lambda: desk.store.refused >= 2)
        assert desk.driver.refused
        assert desk.core.queue_manager.throttled
        assert desk.send(count=3) == [EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED] * 3
        later = asyncio.ensure_future(desk.driver.durable())
        before = desk.store.refused
        await until(lambda: desk.store.refused >= before + 3)
        assert desk.store.happened == []
        assert not told.done()
        assert not later.done()
        assert desk.store.messages() == 0

        desk.store.failure = None
        await told
        await later
        assert desk.store.happened[:3] == ["commit", "resolve 192.0.2.1", "flush"]
        assert desk.store.messages() == 2
        await desk.driver.durable()
        assert not desk.driver.refused
        assert not desk.core.queue_manager.throttled
        assert desk.send() == [EnqueueStatus.OK]
        await desk.driver.durable()
        assert desk.store.messages() == 3

    run(work)


def test_a_store_that_refuses_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def work(desk: Desk) -> None:
        for number in range(1, 4):
            desk.store.failure = StoreRefused("the disk is full", file="x")
            desk.send()
            told = asyncio.ensure_future(desk.driver.durable())
            seen = desk.store.refused
            await until(lambda seen=seen: desk.store.refused > seen)
            desk.store.failure = None
            await told
            await desk.driver.durable()
            assert desk.store.messages() == number

    run(work)


def test_a_damaged_store_ends_it_and_those_who_wait_are_told() -> None:
    async def work(desk: Desk) -> None:
        desk.store.failure = StoreDamaged("the pages are torn", file="x")
        desk.send(FAR)
        for _ in range(2):
            with pytest.raises(StoreDamaged, match="the pages are torn"):
                await desk.driver.durable()
            desk.send()
        assert desk.store.happened == []

    run(work)


# -- time -----------------------------------------------------------------------------------------------


def test_timers_ring_by_themselves() -> None:
    async def work(desk: Desk) -> None:
        begun = time.monotonic()
        done = await desk.wait(300)
        assert (done.status, done.message) == (HResult.MQ_ERROR_IO_TIMEOUT, None)
        assert time.monotonic() - begun >= 0.29

    run(work)


def test_the_sooner_timer_rings_though_a_later_one_was_there() -> None:
    async def work(desk: Desk) -> None:
        long = asyncio.ensure_future(desk.wait(10_000_000))
        await asyncio.sleep(0)
        await desk.driver.durable()
        assert (await desk.wait(50)).status == HResult.MQ_ERROR_IO_TIMEOUT
        assert not long.done()
        long.cancel()

    run(work)


def test_the_core_is_never_told_an_earlier_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [2_000_000_000.0]
    monkeypatch.setattr(module.time, "time", lambda: clock[0])

    async def work(desk: Desk) -> None:
        told: list[tuple[int, int]] = []
        inner = desk.core.at

        def at(now_ms: int, utc: int) -> None:
            told.append((now_ms, utc))
            inner(now_ms, utc)

        monkeypatch.setattr(desk.core, "at", at)
        for step in (0, 10, -3600, 5, -100_000, 0):
            clock[0] += step
            desk.send()
            await desk.driver.durable()
            assert told[-1][1] == int(clock[0])
            await asyncio.sleep(0.002)
        times = [now for now, _ in told]
        assert times == sorted(times)
        assert times[-1] > times[0]

    run(work)


# -- the end --------------------------------------------------------------------------------------------


def test_stopping_makes_all_durable_and_ends_the_sessions() -> None:
    async def work(desk: Desk) -> None:
        number = desk.core.engine.next_connection()
        desk.driver.call(desk.core.engine.accepted, number, "192.0.2.7")
        desk.send(count=5)
        await desk.driver.stop()
        assert desk.store.messages() == 5
        assert f"disconnect {number}" in desk.store.happened
        happened = list(desk.store.happened)
        desk.send()
        desk.driver.call(desk.core.engine.disconnected, number)
        await asyncio.sleep(0.05)
        assert desk.store.happened == happened
        with pytest.raises(MsmqError):
            await desk.driver.durable()

    run(work)


def test_a_core_goes_on_where_it_was_stopped() -> None:
    async def work(desk: Desk) -> None:
        desk.send(count=5)
        desk.send(FAR, count=2)
        await desk.driver.stop()
        again = EngineDriver(open_core(desk.store.copy(), "alpha"), desk.store.copy())
        again.start()
        counts = {one["queue"]: one["messages"] for one in queues.listed(again.core)}
        assert counts[ORDERS] == 5
        assert 2 in counts.values()
        await again.stop()

    run(work)


def test_who_waits_when_it_is_given_up_is_told_that_it_is_not_durable() -> None:
    async def work(desk: Desk) -> None:
        desk.store.failure = StoreRefused("the disk is full", file="x")
        desk.send()
        told = asyncio.ensure_future(desk.driver.durable())
        await until(lambda: desk.store.refused)
        desk.driver.abandon()
        with pytest.raises(Unreachable, match="before it was durable"):
            await told
        before = desk.store.refused
        await asyncio.sleep(2 * module.RETRY_S)
        assert desk.store.refused == before

    run(work)
