"""The effects of a turn of the event loop are carried out with its one commit, and never before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import Send
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.runtime.connection import SessionConnection
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.qm.store import LAYOUT, open_store
from msmqwire.service import disk
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.memory import MemoryStore
from tests.support.qm.recording_carrier import RecordingCarrier
from tests.support.running import PATIENCE_S

CALLS_MAX = 32


class RecordingStore(MemoryStore):
    """A store that records its commits."""

    def __init__(self, events: list[object]) -> None:
        super().__init__(LAYOUT)
        self.events = events

    def commit(self, changes: Changes) -> None:
        super().commit(changes)
        self.events.append(sorted(str(key) for table, key, _ in changes if table is Table.HISTORY))


def events_of(act: Callable[[EngineDriver], None]) -> list[object]:
    """Call a function in one turn; return what is committed and sent, in order."""
    events: list[object] = []

    async def run() -> None:
        store = RecordingStore(events)
        driver = EngineDriver(Core(store, new_guid=uuid4, computer_name="alpha"), store)
        carrier = RecordingCarrier(events, lambda effect: effect.data)
        driver.register(carrier)
        driver.flush_by(carrier.flush)
        driver.start()
        events.clear()
        act(driver)
        await driver.durable()
        driver.abandon()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    return events


def test_what_is_due_at_once_is_sent_with_the_commit_of_its_turn() -> None:
    def message(driver: EngineDriver, key: bytes) -> None:
        context = driver.core.context
        context.changes.put(Table.HISTORY, key, bytes(8))
        acknowledge = Send(7, b"acknowledged")
        context.timers.start(Timer.SESSION_ACK_SEND, 1, 0, lambda: context.effects.append(acknowledge))

    def two(driver: EngineDriver) -> None:
        driver.call(message, driver, b"first")
        # the second call comes when the timer of the first may have expired: that is acknowledged as well
        driver.core.context.changes.put(Table.HISTORY, b"second", bytes(8))

    assert events_of(two) == [["b'first'", "b'second'"], b"acknowledged", "flush"]


def test_what_is_due_later_is_not_sent_with_it() -> None:
    def message(driver: EngineDriver) -> None:
        context = driver.core.context
        context.changes.put(Table.HISTORY, b"first", bytes(8))
        late = Send(7, b"late")
        context.timers.start(Timer.SESSION_ACK_SEND, 1, 3_600_000, lambda: context.effects.append(late))

    assert events_of(lambda driver: driver.call(message, driver)) == [["b'first'"], "flush"]


def sent_by_many(driver: EngineDriver) -> None:
    """Make the calls of many tasks in one turn."""
    driver.calls_max = CALLS_MAX
    for number in range(CALLS_MAX + 8):
        key = f"{number:02}".encode()
        driver.call(put, driver, key)


def put(driver: EngineDriver, key: bytes) -> None:
    driver.core.context.changes.put(Table.HISTORY, key, bytes(8))


def keys(first: int, end: int) -> list[str]:
    return [f"b'{number:02}'" for number in range(first, end)]


def test_of_many_calls_the_first_do_not_wait_for_the_last() -> None:
    first, flush, second, *rest = events_of(sent_by_many)
    assert (first, flush, second) == (keys(0, CALLS_MAX), "flush", keys(CALLS_MAX, CALLS_MAX + 8))
    assert set(map(str, rest)) == {"flush"}


def test_a_disk_that_refuses_is_not_hurried() -> None:
    def refused(driver: EngineDriver) -> None:
        driver.refused = True
        sent_by_many(driver)

    assert events_of(refused)[0] == keys(0, CALLS_MAX + 8)


@pytest.mark.parametrize(
    ("connections", "busy", "at_once"), [(1, False, True), (2, False, False), (1, True, False)]
)
def test_what_the_only_connection_sends_is_committed_at_once(
    connections: int, busy: bool, at_once: bool
) -> None:
    """Unless others are likely to share the commit: there are some, or the last turn had many calls."""
    after_call: list[object] = []

    def bytes_arrive(driver: EngineDriver) -> None:
        if busy:
            driver.calls_max = CALLS_MAX
            for _ in range(CALLS_MAX + 1):
                driver.call(lambda: None)
        network, (recording,) = TcpNetwork(driver), driver.carriers
        assert isinstance(recording, RecordingCarrier)
        recording.events.clear()
        for number in range(1, connections + 1):
            network.connections[number] = SessionConnection(network, number)
        for connection in network.connections.values():
            network.received(connection, b"")
        after_call.extend(recording.events)

    assert set(map(str, events_of(bytes_arrive))) == {"flush"}
    assert after_call == (["flush"] if at_once else [])


@pytest.mark.parametrize("plenty", [False, True])
def test_with_plenty_of_room_a_commit_does_not_look_at_the_disk(plenty: bool, tmp_path: Path) -> None:
    looks: list[int] = []
    mark = 1 << 20

    def free(folder: Path) -> int:
        looks.append(len(looks))
        return mark + (1 << 30) - (not plenty)

    with pytest.MonkeyPatch.context() as patch, open_store(tmp_path / "store.db") as store:
        patch.setattr(disk, "free_on_disk", free)
        room = disk.DiskRoom(store, mark)
        looks.clear()

        def commit(driver: EngineDriver) -> None:
            driver.room = room
            driver.call(driver.core.context.changes.put, Table.HISTORY, b"key", bytes(8))

        events_of(commit)
        assert bool(looks) != plenty
        looks.clear()
        room.look(tidy=True)
        assert looks, "from time to time it does"
