"""The effects of a turn of the event loop are carried out with its one commit, and never before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

from msmqwire.qm.core import Core
from msmqwire.qm.model.changes import Changes, Table
from msmqwire.qm.model.effects import Send
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.runtime.engine_driver import MANY, EngineDriver
from msmqwire.qm.store.memory import MemoryStore
from tests.support.running import PATIENCE_S


class Recording(MemoryStore):
    """A store that writes down what was committed."""

    def __init__(self, story: list[object]) -> None:
        super().__init__()
        self.story = story

    def commit(self, changes: Changes) -> None:
        super().commit(changes)
        self.story.append(sorted(str(key) for table, key, _ in changes if table is Table.HISTORY))


class Sending:
    """A network that writes down what is sent."""

    def __init__(self, story: list[object]) -> None:
        self.story = story

    def resolve(self, request: int, host: str) -> None:
        raise NotImplementedError

    def connect(self, connection: int, address: str, host: str) -> None:
        raise NotImplementedError

    def send(self, connection: int, data: bytes) -> None:
        self.story.append(data)

    def disconnect(self, connection: int) -> None:
        raise NotImplementedError

    def send_datagram(self, address: str, port: int, data: bytes, *, request: bool) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        self.story.append("flush")


def story(act: Callable[[EngineDriver], None]) -> list[object]:
    """What is committed and sent when this is done in one turn."""
    told: list[object] = []

    async def run() -> None:
        store = Recording(told)
        driver = EngineDriver(Core(store, new_guid=uuid4, computer_name="alpha"), store)
        driver.network = Sending(told)
        driver.start()
        told.clear()
        act(driver)
        await driver.durable()
        driver.abandon()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    return told


def test_what_is_due_at_once_is_sent_with_the_commit_of_its_turn() -> None:
    def message(driver: EngineDriver, key: bytes) -> None:
        context = driver.core.context
        context.changes.put(Table.HISTORY, key, bytes(8))
        acknowledge = Send(7, b"acknowledged")
        context.timers.start(Timer.SESSION_ACK_SEND, 1, 0, lambda: context.effects.append(acknowledge))

    def two(driver: EngineDriver) -> None:
        driver.call(message, driver, b"first")
        # the second comes while the timer of the first may have expired: that one is acknowledged as well
        driver.core.context.changes.put(Table.HISTORY, b"second", bytes(8))

    assert story(two) == [["b'first'", "b'second'"], b"acknowledged", "flush"]


def test_what_is_due_later_is_not_sent_with_it() -> None:
    def message(driver: EngineDriver) -> None:
        context = driver.core.context
        context.changes.put(Table.HISTORY, b"first", bytes(8))
        late = Send(7, b"late")
        context.timers.start(Timer.SESSION_ACK_SEND, 1, 3_600_000, lambda: context.effects.append(late))

    assert story(lambda driver: driver.call(message, driver)) == [["b'first'"], "flush"]


def sent_by_many(driver: EngineDriver) -> None:
    """What many tasks do in one turn."""
    for number in range(MANY + 8):
        key = f"{number:02}".encode()
        driver.call(driver.core.context.changes.put, Table.HISTORY, key, bytes(8))
        driver.hurry()


def keys(first: int, end: int) -> list[str]:
    return [f"b'{number:02}'" for number in range(first, end)]


def test_of_many_calls_the_first_do_not_wait_for_the_last() -> None:
    first, flush, second, *rest = story(sent_by_many)
    assert (first, flush, second) == (keys(0, MANY), "flush", keys(MANY, MANY + 8))
    assert set(map(str, rest)) == {"flush"}


def test_a_disk_that_refuses_is_not_hurried() -> None:
    def refused(driver: EngineDriver) -> None:
        driver.refused = True
        sent_by_many(driver)

    assert story(refused)[0] == keys(0, MANY + 8)
