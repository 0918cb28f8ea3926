"""When subscriptions push, and when the ends of messages are committed: in turns of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from msmqwire.errors import MsmqError, StoreRefused
from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.control_frames import Incoming
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.runtime.message_record import body_of
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.store import LAYOUT
from msmqwire.service import driver as driver_module
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.memory import MemoryStore
from tests.support.patience import happens
from tests.support.running import ORDERS, PATIENCE_S, recoverable
from tests.support.running import message as express

TO_ORDERS = rf"DIRECT=OS:alpha\{ORDERS}"


class CountingStore(MemoryStore):
    """A store that counts commits, and may refuse them."""

    def __init__(self) -> None:
        super().__init__(LAYOUT)
        self.commits = 0
        self.refuses = False

    def commit(self, changes: Changes) -> None:
        if self.refuses:
            raise StoreRefused("disk full", file="x")
        super().commit(changes)
        self.commits += 1

    @property
    def messages(self) -> int:
        """The number of messages in it."""
        return len(list(self.rows(Table.MESSAGE)))


class Sink:
    """Keeps what is pushed."""

    def __init__(self) -> None:
        self.writable = True
        self.bodies: list[bytes] = []
        self.receipts: list[int] = []
        self.ended: list[tuple[int, MsmqError]] = []
        self.actions: list[Callable[[], None]] = []
        self._incoming = Incoming(lambda _: None, self._add)

    def _add(self, subscription: int, receipt: int, record: bytes) -> None:
        self.bodies.append(body_of(record))
        self.receipts.append(receipt)

    def when_writable(self, action: Callable[[], None]) -> None:
        self.actions.append(action)

    def push(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._incoming.feed(frame)

    def subscription_ended(self, subscription: int, error: MsmqError) -> None:
        self.ended.append((subscription, error))


class Bench:
    """A queue manager with one session, which is pushed to, and another one that sends."""

    def __init__(self) -> None:
        self.store, self.sink = CountingStore(), Sink()
        self.driver = EngineDriver(open_core(self.store, "alpha"), self.store)
        self.driver.start()
        self.driver.call(queues.create, self.driver.core, {"queue": ORDERS})
        self.session = LocalSession(self.driver, sink=self.sink)
        self._sender = LocalSession(self.driver)

    async def ask(self, op: str, **request: Any) -> dict[str, Any]:
        return await self.session.run({"op": op, **request})

    async def subscribe(self, window: int) -> None:
        await self.ask("subscribe", subscription=1, queue=ORDERS, window=window)
        await turns()

    async def send(self, *messages: dict[str, Any]) -> None:
        await self._sender.run({"op": "send", "to": TO_ORDERS, "messages": list(messages)})

    def done(self, upto: int) -> None:
        assert self.session.notify({"op": "done", "subscription": 1, "upto": upto})


async def turns(count: int = 5) -> None:
    """Let the event loop do what is due."""
    for _ in range(count):
        await asyncio.sleep(0)


def run(scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def scene() -> None:
        bench = Bench()
        await bench.driver.durable()
        await scenario(bench)
        bench.driver.abandon()

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


def test_a_message_is_pushed_only_after_its_commit() -> None:
    async def scenario(bench: Bench) -> None:
        for waits in (True, False):
            if waits:
                await bench.subscribe(10)
            bench.store.refuses = True
            sending = asyncio.create_task(bench.send(*recoverable(b"1")))
            await turns()
            assert bench.sink.bodies == []
            if not waits:
                await bench.subscribe(10)
                assert bench.sink.bodies == []
            bench.store.refuses = False
            await sending
            await turns()
            assert bench.sink.bodies == [b"1"]
            await bench.ask("unsubscribe", subscription=1, upto=bench.sink.receipts[-1])
            bench.sink.bodies.clear()

    run(scenario)


def test_receiving_and_ending_need_no_commit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "COMMIT_DELAY_S", 3600)

    async def scenario(bench: Bench) -> None:
        await bench.send(*recoverable(b"1", b"2", b"3"))
        await turns()
        before = bench.store.commits
        await bench.subscribe(1)
        for receipt in (1, 2):
            bench.done(receipt)
        assert bench.sink.bodies == [b"1", b"2", b"3"]
        await turns()
        assert (bench.store.commits, bench.store.messages) == (before, 3)
        await bench.ask("done", subscription=1, upto=3)
        assert (bench.store.commits, bench.store.messages) == (before + 1, 0)

    run(scenario)


def test_the_end_of_a_message_is_committed_by_itself_before_long() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.send(*recoverable(b"1", b"2"))
        await bench.subscribe(2)
        bench.done(1)
        assert bench.store.messages == 2
        await happens(lambda: bench.store.messages < 2, "the first end is committed")
        assert bench.store.messages == 1
        bench.done(2)  # and again
        await happens(lambda: bench.store.messages == 0, "the second end is committed")

    run(scenario)


def test_the_end_of_a_message_is_committed_with_the_next_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "COMMIT_DELAY_S", 3600)

    async def scenario(bench: Bench) -> None:
        await bench.send(*recoverable(b"1"))
        await bench.subscribe(1)
        before = bench.store.commits
        bench.done(1)
        await bench.send(*recoverable(b"2"))
        assert (bench.store.commits, bench.store.messages) == (before + 1, 1)
        await turns()
        assert bench.sink.bodies == [b"1", b"2"]

    run(scenario)


def test_a_journal_copy_is_pushed_only_after_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver_module, "COMMIT_DELAY_S", 3600)

    async def scenario(bench: Bench) -> None:
        bench.driver.call(queues.change, bench.driver.core, {"queue": ORDERS, "journal": True})
        await bench.send(*recoverable(b"1"))
        await bench.subscribe(1)
        await bench.ask("subscribe", subscription=2, queue=f"{ORDERS};journal", window=1)
        await turns()
        bench.store.refuses = True
        bench.done(1)
        await turns()
        assert bench.sink.bodies == [b"1"]
        bench.store.refuses = False
        await bench.driver.durable()
        await turns()
        assert bench.sink.bodies == [b"1", b"1"]
        assert bench.store.messages == 1

    run(scenario)


def test_an_unawaited_journal_copy_is_durable_before_its_push(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver_module, "COMMIT_DELAY_S", 3600)

    async def scenario(bench: Bench) -> None:
        bench.driver.call(queues.change, bench.driver.core, {"queue": ORDERS, "journal": True})
        await bench.send(*recoverable(b"1", b"2"))
        await bench.subscribe(1)
        bench.done(1)
        await bench.driver.durable()
        await bench.ask("subscribe", subscription=2, queue=f"{ORDERS};journal", window=1)
        await turns()
        assert bench.sink.bodies == [b"1", b"2", b"1"]
        bench.store.refuses = True
        bench.done(2)
        assert bench.session.notify({"op": "done", "subscription": 2, "upto": bench.sink.receipts[-1]})
        await turns()
        assert len(bench.sink.bodies) == 3
        bench.store.refuses = False
        await bench.driver.durable()
        await turns()
        assert bench.sink.bodies[3:] == [b"2"]

    run(scenario)


@pytest.mark.parametrize(
    "request_", [{"op": "receive"}, {"op": "read", "action": "receive"}, {"op": "read", "action": "peek"}]
)
def test_a_requested_message_is_durable_before_the_answer(request_: dict[str, Any]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.store.refuses = True
        sending = asyncio.create_task(bench.send(*recoverable(b"1")))
        await turns()
        asking = asyncio.create_task(bench.ask(**request_, queue=ORDERS))
        await turns()
        assert not asking.done()
        bench.store.refuses = False
        await sending
        assert await asking
        before = bench.store.commits
        bench.store.refuses = True
        with suppress(MsmqError):  # nothing was to be committed, so there is an answer at once
            await asyncio.wait_for(bench.ask(**request_, queue=ORDERS), PATIENCE_S)
        assert bench.store.commits == before

    run(scenario)


@pytest.mark.parametrize("awaited", [True, False])
def test_an_end_is_durable_with_its_answer_if_awaited(monkeypatch: pytest.MonkeyPatch, awaited: bool) -> None:
    monkeypatch.setattr(driver_module, "COMMIT_DELAY_S", 3600)

    async def scenario(bench: Bench) -> None:
        await bench.send(*recoverable(b"1", b"2", b"3"))
        (first,) = (await bench.ask("receive", queue=ORDERS))["messages"]
        await bench.ask("receive", queue=ORDERS, done=[first["receipt"]], awaited=awaited)
        assert bench.store.messages == (2 if awaited else 3)

    run(scenario)


def test_nothing_is_pushed_while_the_sink_takes_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.send(*(express(b"%d" % number) for number in range(5)))
        bench.sink.writable = False
        await bench.subscribe(3)
        assert bench.sink.bodies == []
        bench.sink.writable = True
        (resume,) = bench.sink.actions
        resume()
        assert bench.sink.bodies == [b"0", b"1", b"2"]

    run(scenario)


def test_large_messages_are_pushed_as_far_as_the_sink_takes_them() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.send(*(express(b"x" * 50_000) for _ in range(10)))
        push = bench.sink.push

        def full(frames: list[bytes]) -> None:
            push(frames)
            bench.sink.writable = False

        bench.sink.push = full  # type: ignore[method-assign]
        await bench.subscribe(10)
        assert len(bench.sink.bodies) == 2  # what is begun is more than 64 KiB

    run(scenario)


def test_a_message_arriving_as_the_session_closes_is_returned() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.subscribe(1)
        on_read = bench.driver._readers

        def closes(reader: Callable[[Any], None]) -> Callable[[Any], None]:
            def completed(read: Any) -> None:
                bench.session.close()
                reader(read)

            return completed

        for number, reader in list(on_read.items()):
            on_read[number] = closes(reader)
        await bench.send(*recoverable(b"1"))
        await bench.driver.durable()
        assert bench.sink.bodies == []
        assert (await bench._sender.run({"op": "peek", "queue": ORDERS}))["messages"]

    run(scenario)


def test_a_session_without_a_sink_has_no_subscriptions() -> None:
    async def scenario(bench: Bench) -> None:
        with pytest.raises(MsmqError, match="messages can't be pushed"):
            await bench._sender.run({"op": "subscribe", "subscription": 1, "queue": ORDERS, "window": 1})

    run(scenario)


def test_no_subscription_begins_when_the_server_stops() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.send(*recoverable(b"1"))
        await bench.subscribe(1)
        bench.session.stop_waiting()
        assert [number for number, _ in bench.sink.ended] == [1]
        with pytest.raises(MsmqError, match="cancelled"):
            await bench.ask("subscribe", subscription=2, queue=ORDERS, window=1)
        assert (await bench.ask("peek", queue=ORDERS))["messages"]

    run(scenario)
