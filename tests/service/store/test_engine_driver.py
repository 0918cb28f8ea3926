"""The driver of a core: the calls of one turn are committed together, and nothing is sent before that."""

from __future__ import annotations

import asyncio
import time

import pytest

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue, MsmqError, StoreDamaged, StoreRefused, Unreachable
from msmqwire.qm.model.enumerations import EnqueueStatus
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.service import clock as clock_module
from msmqwire.service import driver as module
from tests.support.patience import happens
from tests.support.qm.driver_harness import TO_ELSEWHERE, DriverHarness, run
from tests.support.running import ORDERS

# -- one commit for a turn ------------------------------------------------------------------------------


def test_what_is_called_in_one_turn_is_one_commit() -> None:
    async def work(harness: DriverHarness) -> None:
        before = harness.driver.commits
        assert harness.send(count=200) == [EnqueueStatus.OK] * 200
        assert harness.store.events == []
        await harness.driver.durable()
        assert harness.store.events == ["commit", "flush"]
        assert (harness.driver.commits, harness.store.messages()) == (before + 1, 200)

    run(work)


def test_tasks_of_one_turn_share_a_commit() -> None:
    async def work(harness: DriverHarness) -> None:
        results: list[str] = []

        async def send() -> None:
            harness.send()
            await harness.driver.durable()
            results.append(f"{harness.store.messages()} durable")

        await asyncio.gather(*(send() for _ in range(50)))
        assert harness.store.events.count("commit") == 1
        assert results == ["50 durable"] * 50

    run(work)


def test_what_has_changed_nothing_waits_for_nothing() -> None:
    async def work(harness: DriverHarness) -> None:
        await harness.driver.durable()
        harness.driver.call(queues.listed, harness.core)
        await harness.driver.durable()
        assert "commit" not in harness.store.events

    run(work)


def test_one_that_raises_keeps_nothing_of_the_others_back() -> None:
    async def work(harness: DriverHarness) -> None:
        harness.send()
        with pytest.raises(InvalidValue):
            harness.driver.call(queues.find, harness.core, {})
        harness.send()
        await harness.driver.durable()
        assert harness.store.messages() == 2

    run(work)


# -- durable first --------------------------------------------------------------------------------------


def test_effects_are_carried_out_after_the_commit() -> None:
    async def work(harness: DriverHarness) -> None:
        harness.send(TO_ELSEWHERE, count=3)
        await harness.driver.durable()
        assert harness.store.events == ["commit", "resolve 192.0.2.1", "flush"]

    run(work)


def test_a_reader_is_notified_after_the_commit() -> None:
    async def work(harness: DriverHarness) -> None:
        reading = asyncio.ensure_future(harness.wait(60_000))
        await asyncio.sleep(0)
        await harness.driver.durable()
        harness.store.failure = StoreRefused("full", file="x")
        harness.driver.call(harness.core.queues.end_flow_control)
        harness.send()
        await happens(lambda: harness.store.refused >= 3)
        assert not reading.done()
        harness.store.failure = None
        read = await reading
        assert (read.status, read.message and read.message.body) == (MQ_OK, b"x")
        assert "commit" in harness.store.events

    run(work)


def test_while_the_store_refuses_nothing_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def work(harness: DriverHarness) -> None:
        harness.store.failure = StoreRefused("the disk is full", file="x")
        assert harness.send() == [EnqueueStatus.OK]
        harness.send(TO_ELSEWHERE)
        durable = asyncio.ensure_future(harness.driver.durable())
        await happens(lambda: harness.store.refused >= 2)
        assert harness.driver.refused
        assert harness.core.queue_manager.throttled
        assert harness.send(count=3) == [EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED] * 3
        later = asyncio.ensure_future(harness.driver.durable())
        before = harness.store.refused
        await happens(lambda: harness.store.refused >= before + 3)
        assert harness.store.events == []
        assert not durable.done()
        assert not later.done()
        assert harness.store.messages() == 0

        harness.store.failure = None
        await durable
        await later
        assert harness.store.events[:3] == ["commit", "resolve 192.0.2.1", "flush"]
        assert harness.store.messages() == 2
        await harness.driver.durable()
        assert not harness.driver.refused
        assert not harness.core.queue_manager.throttled
        assert harness.send() == [EnqueueStatus.OK]
        await harness.driver.durable()
        assert harness.store.messages() == 3

    run(work)


def test_timers_expire_while_the_disk_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The retry is far away: only the driver's alarm can have rung, for a timer set before or meanwhile."""
    monkeypatch.setattr(module, "RETRY_S", 3600.0)

    async def work(harness: DriverHarness) -> None:
        timers, expired = harness.core.context.timers, list[str]()
        harness.driver.call(timers.start, Timer.PING_RESPONSE, None, 20, lambda: expired.append("before"))
        harness.store.failure = StoreRefused("the disk is full", file="x")
        harness.send()
        await happens(lambda: harness.store.refused)
        harness.driver.call(timers.start, Timer.SESSION_ACK_SEND, 1, 20, lambda: expired.append("meanwhile"))
        await happens(lambda: sorted(expired) == ["before", "meanwhile"])
        assert harness.store.refused == 1

    run(work)


def test_a_store_that_refuses_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def work(harness: DriverHarness) -> None:
        for number in range(1, 4):
            harness.store.failure = StoreRefused("the disk is full", file="x")
            harness.send()
            durable = asyncio.ensure_future(harness.driver.durable())
            before = harness.store.refused
            await happens(lambda before=before: harness.store.refused > before)
            harness.store.failure = None
            await durable
            await harness.driver.durable()
            assert harness.store.messages() == number

    run(work)


def test_a_damaged_store_ends_it_and_waiting_calls_fail() -> None:
    async def work(harness: DriverHarness) -> None:
        harness.store.failure = StoreDamaged("the pages are torn", file="x")
        harness.send(TO_ELSEWHERE)
        for _ in range(2):
            with pytest.raises(StoreDamaged, match="the pages are torn"):
                await harness.driver.durable()
            harness.send()
        assert harness.store.events == []

    run(work)


# -- time -----------------------------------------------------------------------------------------------


def test_timers_ring_by_themselves() -> None:
    async def work(harness: DriverHarness) -> None:
        start = time.monotonic()
        read = await harness.wait(300)
        assert (read.status, read.message) == (HResult.MQ_ERROR_IO_TIMEOUT, None)
        assert time.monotonic() - start >= 0.29

    run(work)


def test_the_sooner_timer_rings_though_a_later_one_was_there() -> None:
    async def work(harness: DriverHarness) -> None:
        long = asyncio.ensure_future(harness.wait(10_000_000))
        await asyncio.sleep(0)
        await harness.driver.durable()
        assert (await harness.wait(50)).status == HResult.MQ_ERROR_IO_TIMEOUT
        assert not long.done()
        long.cancel()

    run(work)


def test_the_core_never_gets_an_earlier_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [2_000_000_000.0]
    monkeypatch.setattr(clock_module.time, "time", lambda: clock[0])

    async def work(harness: DriverHarness) -> None:
        times: list[tuple[int, int]] = []
        original = harness.core.at

        def at(now_ms: int, utc: int) -> None:
            times.append((now_ms, utc))
            original(now_ms, utc)

        monkeypatch.setattr(harness.core, "at", at)
        for step in (0, 10, -3600, 5, -100_000, 0):
            clock[0] += step
            harness.send()
            await harness.driver.durable()
            assert times[-1][1] == int(clock[0])
            await asyncio.sleep(0.002)  # the monotonic clock goes on
        milliseconds = [now for now, _ in times]
        assert milliseconds == sorted(milliseconds)
        assert milliseconds[-1] > milliseconds[0]

    run(work)


# -- the end --------------------------------------------------------------------------------------------


def test_stopping_makes_all_durable_and_ends_the_sessions() -> None:
    async def work(harness: DriverHarness) -> None:
        connection = harness.core.binary.next_connection()
        harness.driver.call(harness.core.binary.accepted, connection, "192.0.2.7")
        harness.send(count=5)
        await harness.driver.stop()
        assert harness.store.messages() == 5
        assert f"disconnect {connection}" in harness.store.events
        events = list(harness.store.events)
        harness.send()
        harness.driver.call(harness.core.binary.disconnected, connection)
        await asyncio.sleep(0.05)  # in which nothing is stored
        assert harness.store.events == events
        with pytest.raises(MsmqError):
            await harness.driver.durable()

    run(work)


def test_a_core_goes_on_where_it_was_stopped() -> None:
    async def work(harness: DriverHarness) -> None:
        harness.send(count=5)
        harness.send(TO_ELSEWHERE, count=2)
        await harness.driver.stop()
        restarted = EngineDriver(open_core(harness.store.copy(), "alpha"), harness.store.copy())
        restarted.start()
        counts = {status["queue"]: status["messages"] for status in queues.listed(restarted.core)}
        assert counts[ORDERS] == 5
        assert 2 in counts.values()
        await restarted.stop()

    run(work)


def test_a_waiter_gets_an_error_if_the_driver_is_abandoned() -> None:
    """Nothing is durable by then."""

    async def work(harness: DriverHarness) -> None:
        harness.store.failure = StoreRefused("the disk is full", file="x")
        harness.send()
        durable = asyncio.ensure_future(harness.driver.durable())
        await happens(lambda: harness.store.refused)
        harness.driver.abandon()
        with pytest.raises(Unreachable, match="before it was durable"):
            await durable
        before = harness.store.refused
        await asyncio.sleep(2 * module.RETRY_S)  # in which it would be tried again
        assert harness.store.refused == before

    run(work)
