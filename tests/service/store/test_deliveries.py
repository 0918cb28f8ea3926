"""Deliveries of a message: a program had it, and did not end it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.qm.runtime import hand_out_file
from msmqwire.qm.runtime.control_frames import Incoming
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.runtime.hand_out_file import HandOutFile
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.store import memory_store
from tests.support.running import ORDERS, PATIENCE_S, called, message, process

SUB = rf"{ORDERS};later"
TO_ORDERS = rf"DIRECT=OS:alpha\{ORDERS}"


class Sink:
    """The client of a session with subscriptions."""

    writable = True

    def __init__(self) -> None:
        self.receipts: list[int] = []
        self._incoming = Incoming(lambda _: None, lambda _, receipt, record: self.receipts.append(receipt))

    def when_writable(self, action: Callable[[], None]) -> None:
        raise AssertionError("it is always writable")

    def push(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._incoming.feed(frame)

    def subscription_ended(self, subscription: int, error: Exception) -> None:
        raise AssertionError(error)


class Bench:
    """A queue manager whose store survives it."""

    def __init__(self, store: Any = None, hand_outs: HandOuts | None = None) -> None:
        self.store = store or memory_store()
        self.driver = EngineDriver(open_core(self.store, "alpha", hand_outs=hand_outs), self.store)
        self.driver.start()
        self.sink = Sink()
        self.session = LocalSession(self.driver, sink=self.sink)
        self.other = LocalSession(self.driver)

    async def ask(self, op: str, **request: Any) -> dict[str, Any]:
        return await self.session.run({"op": op, **request})

    async def filled(self, count: int = 1, delivery: str = "recoverable") -> None:
        await self.other.run({"op": "create", "queue": ORDERS, "transactional": delivery == "transactional"})
        messages = [message(b"%d" % number, delivery=delivery) for number in range(count)]
        await self.other.run({"op": "send", "to": TO_ORDERS, "messages": messages})

    async def receive(self, **more: Any) -> dict[str, Any]:
        answer = await self.ask("receive", queue=ORDERS, **more)
        return answer["messages"][0]  # type: ignore[no-any-return]

    async def counts(self, queue: str = ORDERS) -> list[int]:
        answer = await self.other.run({"op": "peek", "queue": queue, "count": 100})
        return [message["deliveries"] for message in answer["messages"]]

    def again(self, hand_outs: HandOuts | None = None) -> Bench:
        """The queue manager after it was killed."""
        self.driver.abandon()
        return Bench(self.store, hand_outs)


def run(scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def scene() -> None:
        bench = Bench()
        await scenario(bench)

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_message_given_back_has_a_delivery_more() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled()
        for expected in range(3):
            received = await bench.receive()
            assert (received["deliveries"], received["reason"]) == (expected, None)
            await bench.ask("end", back=[received["receipt"]])
            assert await bench.counts() == [expected + 1]
        assert await bench.again().counts() == [3]

    run(scenario)


@pytest.mark.parametrize("delivery", ["express", "recoverable"])
def test_the_end_of_a_session_gives_back(delivery: str) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled(3, delivery)
        await bench.receive(count=2)
        bench.session.close()
        await bench.driver.durable()
        assert await bench.counts() == [1, 1, 0]

    run(scenario)


def test_an_aborted_transaction_delivers_and_its_move_does_not() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled(3, "transactional")
        transaction = (await bench.ask("begin"))["transaction"]
        await bench.ask("read", queue=ORDERS, action="receive", transaction=transaction)
        await bench.ask("move", queue=ORDERS, to=SUB, transaction=transaction)
        assert await bench.counts() == [0]
        await bench.ask("abort", transaction=transaction)
        assert await bench.counts() == [1, 0, 0]

    run(scenario)


def test_pushed_messages_count_only_when_they_are_named() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled(5)
        await bench.ask("subscribe", subscription=1, queue=ORDERS, window=4)
        await turns()
        first, second, third, _ = bench.sink.receipts
        await bench.ask("end", back=[second])
        await turns()
        await bench.ask("unsubscribe", subscription=1, upto=first, back=third)
        assert await bench.counts() == [1, 1, 0, 0]

    run(scenario)


def test_a_session_that_ends_names_no_pushed_message() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled(2)
        await bench.ask("subscribe", subscription=1, queue=ORDERS, window=2)
        await turns()
        assert len(bench.sink.receipts) == 2
        bench.session.close()
        await bench.driver.durable()
        assert await bench.counts() == [0, 0]

    run(scenario)


def test_a_read_that_its_client_left_delivers_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.other.run({"op": "create", "queue": ORDERS})
        reading = asyncio.create_task(bench.receive(wait_ms=60_000))
        await turns()
        sending = {"op": "send", "to": TO_ORDERS, "messages": [message(b"1", delivery="recoverable")]}
        asyncio.create_task(bench.other.run(sending)).add_done_callback(lambda _: None)
        await turns(1)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await turns()
        assert await bench.counts() == [0]

    run(scenario)


def test_a_move_begins_at_zero() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled()
        await bench.ask("end", back=[(await bench.receive())["receipt"]])
        await bench.ask("move", queue=ORDERS, to=SUB)
        assert await bench.counts(SUB) == [0]
        assert await bench.again().counts(SUB) == [0]

    run(scenario)


def test_a_journal_copy_has_no_deliveries() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled()
        await bench.other.run({"op": "set", "queue": ORDERS, "journal": True})
        await bench.ask("end", back=[(await bench.receive())["receipt"]])
        await bench.ask("end", done=[(await bench.receive())["receipt"]])
        assert await bench.counts(rf"{ORDERS};journal") == [0]

    run(scenario)


def test_a_block_that_an_exception_leaves_gives_back(tmp_path: Path) -> None:
    assert called("queue", "create", ORDERS, "--data", tmp_path).status == 0
    with msmqwire.attach(tmp_path) as manager:
        queue = manager.queue(ORDERS)
        for body in (b"1", b"2", b"3"):
            queue.send(body, recoverable=True)
        with suppress(ValueError), queue.messages(timeout=1) as messages:
            assert [next(messages).body for _ in range(2)] == [b"1", b"2"]
            raise ValueError
        with queue.cursor() as cursor:
            assert [(one.body, one.deliveries) for one in cursor] == [(b"2", 1), (b"3", 0)]


# -- a queue manager that is killed --------------------------------------------------------------------


def killed(folder: Path, scenario: Callable[[Bench], Awaitable[None]]) -> list[int]:
    """The counts after a scenario and a kill."""

    async def scene() -> list[int]:
        bench = Bench(hand_outs=HandOutFile(folder / "handed-out"))
        await scenario(bench)
        return await bench.again(HandOutFile(folder / "handed-out")).counts()

    return asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


def test_messages_that_programs_had_count_after_a_kill(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled(5)
        await bench.ask("end", done=[(await bench.receive())["receipt"]])
        await bench.ask("end", back=[(await bench.receive())["receipt"]])
        await bench.receive()
        await bench.ask("read", queue=ORDERS, action="receive")
        await bench.ask("subscribe", subscription=1, queue=ORDERS, window=9)
        await turns()

    assert killed(tmp_path, scenario) == [2, 1, 0, 0]


def test_a_note_counts_once_however_often_the_start_is_repeated(tmp_path: Path) -> None:
    notes = tmp_path / "handed-out"

    async def scenario() -> None:
        bench = Bench(hand_outs=HandOutFile(notes))
        await bench.filled()
        await bench.receive()
        for _ in range(3):
            bench = bench.again(HandOutFile(notes))
            assert await bench.counts() == [1]
        await bench.receive()
        assert await bench.again(HandOutFile(notes)).counts() == [2]

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_note_of_a_message_that_was_moved_means_nothing(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.filled()
        await bench.ask("end", back=[(await bench.receive())["receipt"]])
        await bench.ask("move", queue=ORDERS, to=SUB)
        await bench.ask("move", queue=SUB, to=ORDERS)

    assert killed(tmp_path, scenario) == [0]


def test_notes_use_the_room_of_ended_ones(tmp_path: Path) -> None:
    notes = HandOutFile(tmp_path / "notes")
    for number in range(1000):
        notes.note(number, 1, lasting=True)
        assert notes.ended(number)
        assert not notes.ended(number)
    notes.note(7000, 3, lasting=True)
    notes.note(7001, 1, lasting=False)
    assert (tmp_path / "notes").stat().st_size == 16
    assert HandOutFile(tmp_path / "notes").left() == {7000: 3}
    notes.withdraw(7000)
    assert HandOutFile(tmp_path / "notes").left() == {}


@pytest.mark.parametrize("damage", [b"", b"\xff" * 1000, b"\0" * 160, b"x" * 15])
def test_damaged_notes_are_ignored(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "notes").write_bytes(damage)
    assert HandOutFile(tmp_path / "notes").left() == {}


def test_a_place_that_takes_no_notes_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "notes").symlink_to(tmp_path / "elsewhere")
    notes = HandOutFile(tmp_path / "notes")
    notes.note(1, 1, lasting=True)
    assert notes.ended(1)
    assert not (tmp_path / "elsewhere").exists()


def test_no_more_is_written_down_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_out_file, "SLOTS_MAX", 3)
    notes = HandOutFile(tmp_path / "notes")
    for number in range(5):
        notes.note(number, 1, lasting=True)
    assert HandOutFile(tmp_path / "notes").left() == {0: 1, 1: 1, 2: 1}
    assert all(notes.ended(number) for number in range(5))


def test_a_killed_server_counts_the_message_of_its_program(tmp_path: Path) -> None:
    with process(tmp_path / "data", "--queue", ORDERS) as server, msmqwire.attach(server.data) as manager:
        queue = manager.queue(ORDERS)
        queue.send(b"1", recoverable=True)
        with suppress(msmqwire.Unreachable), queue.receiving(timeout=PATIENCE_S) as received:
            assert (received.deliveries, received.reason) == (0, None)
            server.kill()
    with attach(
        tmp_path / "data"
    ) as local:  # as another program: this one leaves the store to the next server
        (message,) = local.call("peek", queue=ORDERS)["messages"]
    assert message["deliveries"] == 1
