"""A disk that is full, or almost: consumers drain, publishers are refused in time, and a stop ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from msmqwire.errors import ChangeWaits, QueueError, StoreRefused
from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.store import open_store
from msmqwire.service import disk
from msmqwire.service import driver as driver_module
from msmqwire.service.disk import DiskRoom
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.sqlite import PAGE_SIZE, SqliteStore
from tests.support.patience import happens
from tests.support.peers.raw_peer import Message, Session
from tests.support.qm import failing_store, peer_server
from tests.support.qm.driver_harness import DriverHarness, run
from tests.support.running import (
    ORDERS,
    PATIENCE_S,
    InThread,
    bodies,
    called,
    environment,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
)
from tests.support.running import until as wait_until
from tests.support.small_disks import report_of

MIB = 1 << 20
LEAST = 8 * MIB


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The free bytes of the disk, to be set by the test."""
    room = [100 * MIB]
    monkeypatch.setattr(disk, "free_on_disk", lambda _: room[0])
    return room


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with open_store(tmp_path / "store") as store:
        yield store


def packets(count: int, *, delete: bool = False) -> Changes:
    changes = Changes()
    for key in range(count):
        if delete:
            changes.delete(Table.PACKET, key)
        else:
            changes.put(Table.PACKET, key, bytes(PAGE_SIZE))
    return changes


# -- the mark -------------------------------------------------------------------------------------------


def test_below_the_mark_it_is_low_until_there_is_a_quarter_more(store: SqliteStore, free: list[int]) -> None:
    room = DiskRoom(store, LEAST)
    for now, low in (
        (LEAST, False),
        (LEAST - 1, True),
        (LEAST, True),
        (LEAST * 5 // 4 - 1, True),
        (LEAST * 5 // 4, False),
        (LEAST, False),
    ):
        free[0] = now
        room.look()
        assert (room.low, room.free()) == (low, now)


def test_free_store_pages_count_as_room_unless_the_disk_is_full(store: SqliteStore, free: list[int]) -> None:
    room = DiskRoom(store, LEAST)
    store.commit(packets(3 * LEAST // PAGE_SIZE))
    free[0] = LEAST // 2
    room.look()
    assert (room.low, room.free()) == (True, free[0])
    store.commit(packets(3 * LEAST // PAGE_SIZE, delete=True))
    room.look()
    assert not room.low
    assert room.free() == free[0] + store.reusable() > 3 * LEAST
    free[0] = LEAST // 4 - 1  # no change could be logged
    room.look()
    assert (room.low, room.free()) == (True, free[0])


def test_without_a_mark_nothing_is_ever_low(store: SqliteStore, free: list[int]) -> None:
    free[0] = 0
    room = DiskRoom(store, 0)
    assert (room.low, list(store.path.parent.glob("*.reserve"))) == (False, [])


def test_the_log_has_a_quarter_of_the_mark_and_is_truncated(store: SqliteStore, free: list[int]) -> None:
    room, log = DiskRoom(store, LEAST), store.path.with_name("store-wal")
    for start in range(0, 4000, 50):
        changes = Changes()
        for key in range(start, start + 50):
            changes.put(Table.PACKET, key, bytes(PAGE_SIZE))
        store.commit(changes)
    assert LEAST // 8 < log.stat().st_size < LEAST // 2
    free[0] = LEAST - 1
    room.look()
    assert log.stat().st_size == 0


def test_the_reserve_has_its_room_on_the_disk_and_is_used_once(store: SqliteStore, free: list[int]) -> None:
    room, reserve = DiskRoom(store, LEAST), store.path.with_name("store.reserve")
    assert reserve.stat().st_blocks * 512 >= reserve.stat().st_size == LEAST // 32
    assert reserve.stat().st_mode & 0o777 == 0o600
    assert (room.release(), reserve.exists(), room.release()) == (True, False, False)
    free[0] = LEAST
    room.look()
    assert not reserve.exists()
    free[0] = 2 * LEAST
    room.look()
    assert reserve.exists()


# -- the driver -----------------------------------------------------------------------------------------


def test_the_reserve_is_released_for_a_commit_that_is_refused(
    store: SqliteStore, free: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "RETRY_S", PATIENCE_S)  # it must not wait for that

    async def work(harness: DriverHarness) -> None:
        harness.driver.room = room = DiskRoom(store, LEAST)
        harness.store.failure = StoreRefused("the disk is full", file="x")
        monkeypatch.setattr(room, "release", lambda: setattr(harness.store, "failure", None) or True)
        harness.send()
        await harness.driver.durable()
        assert (harness.store.refused, harness.store.messages()) == (1, 1)

    run(work)


def test_others_who_fill_the_disk_are_noticed_without_a_commit(
    store: SqliteStore, free: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "POLL_S", 0.01)

    async def work(harness: DriverHarness) -> None:
        harness.driver.room = DiskRoom(store, LEAST)
        harness.driver.start()
        free[0] = 0
        await happens(lambda: not harness.driver.accepts)
        free[0] = 100 * MIB
        await happens(lambda: harness.driver.accepts)

    run(work)


# -- the server -----------------------------------------------------------------------------------------


def test_publishers_are_refused_and_consumers_drain(data: Path, free: list[int]) -> None:
    with served(options(data, ORDERS, min_free=LEAST)) as server, attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3"))
        assert local.call("status")["disk"] == {"accepts": True, "free": 100 * MIB, "min_free": LEAST}
        free[0] = LEAST - 1
        wait_until(lambda: not accepts(server), "the disk is low")
        assert local.call("status")["disk"] == {"accepts": False, "free": LEAST - 1, "min_free": LEAST}
        with pytest.raises(QueueError, match="or its disk full"):
            put(local, ORDERS, *recoverable(b"4"))
        received = local.call("receive", queue=ORDERS, count=2)["messages"]
        assert bodies(received) == [b"1", b"2"]
        local.call("end", done=[message["receipt"] for message in received])
        free[0] = 100 * MIB
        wait_until(lambda: accepts(server), "there is room again")
        put(local, ORDERS, *recoverable(b"5"))
    assert peeked(data, ORDERS) == [b"3", b"5"]


def accepts(server: InThread) -> bool:
    return server.do(lambda running: running.driver is not None and running.driver.accepts)


def test_a_peer_is_not_acknowledged_while_the_disk_is_low(data: Path, free: list[int]) -> None:
    """Its session ends before the message is accepted, so that it sends it again: MQQB-3.1.5.8.2."""
    with served(peer_server.server_options(data)) as server:
        free[0] = 0
        wait_until(lambda: not accepts(server), "the disk is low")
        with Session.opened(peer_server.at(server)) as peer:
            peer.push(Message(b"1", recoverable=True))
            assert peer.ended() == []
        assert peer_server.in_queue(server) == []
        free[0] = 100 * MIB
        wait_until(lambda: accepts(server), "there is room again")
        peer_server.serves(server)


def test_a_command_is_notified_as_well(data: Path, free: list[int]) -> None:
    with served(options(data, ORDERS)) as server:
        free[0] = 0
        wait_until(lambda: not accepts(server), "the disk is low")
        to = rf"DIRECT=OS:alpha\{ORDERS}"
        error = called("send", to, "--data", data, "--body", "x", "--recoverable").error(69)
        assert "or its disk full" in error["error"]


# -- a disk that refuses, and a stop --------------------------------------------------------------------

FULL = "the disk is full; make room, nothing is lost"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_while_the_disk_refuses_and_says_so(tmp_path: Path, number: int) -> None:
    mark, data = tmp_path / "full", tmp_path / "alpha"
    server = failing_store.start(mark, StoreRefused, FULL, data, ORDERS)
    try:
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"stored"))
        mark.touch()
        lost = subprocess.Popen(
            [sys.executable, "-m", "msmqwire", "send", rf"DIRECT=OS:alpha\{ORDERS}", "--data", data,
             "--body", "lost", "--recoverable"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
        )  # fmt: skip
        with attach(data) as local:
            wait_until(lambda: not local.call("status")["disk"]["accepts"], "the commit is refused")
        server.send_signal(number)
        _, errors = server.communicate(timeout=PATIENCE_S)
        out, lost_errors = lost.communicate(timeout=PATIENCE_S)
    finally:
        server.kill()
        server.wait(PATIENCE_S)
    lines = [json.loads(line) for line in errors.splitlines()]
    error = f"queues.msmq: {FULL}"
    assert (server.returncode, lines[-1]) == (74, {"error": error, "path": "", "offset": None})
    assert (lost.returncode, out) == (75, "")  # the request had been taken
    assert "whether it did this is not known" in lost_errors
    mark.unlink()
    assert peeked(data, ORDERS) == [b"stored"]


def test_a_start_on_a_disk_that_refuses_ends(tmp_path: Path) -> None:
    mark = tmp_path / "full"
    mark.touch()
    server = failing_store.start(mark, StoreRefused, FULL, tmp_path / "alpha", ORDERS)
    out, errors = server.communicate(timeout=PATIENCE_S)
    lines = [json.loads(line) for line in errors.splitlines()]
    assert (server.returncode, out) == (74, "")
    assert lines[-1]["error"] == f"queues.msmq: {FULL}"


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether the disk of a server refuses commits, to be set by the test; requests wait for a moment."""
    state, commit = [False], SqliteStore.commit

    def refused(self: SqliteStore, changes: Changes) -> None:
        if state[0]:
            raise StoreRefused(FULL, file="queues.msmq")
        commit(self, changes)

    monkeypatch.setattr(SqliteStore, "commit", refused)
    monkeypatch.setattr("msmqwire.qm.runtime.server.DISK_S", 0.3)
    yield state
    state[0] = False


def test_receive_ends_while_the_disk_refuses(data: Path, refusing: list[bool]) -> None:
    """The message is printed, and deleted once there is room; the next ones stay where they are."""
    with served(options(data, ORDERS, min_free=0)), attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3"))
        refusing[0] = True
        first = called("receive", ORDERS, "--data", data, "--json")
        error = json.loads(first.err)["error"]
        assert first.status == 69
        assert error.startswith(f"queues.msmq: {FULL}; the change waits")
        assert "1 message printed may be back in the queue" in error
        for command in (
            ("receive", ORDERS, "--data", data),
            ("receive", ORDERS, "--data", data, "--timeout", "60"),
            ("queue", "create", "private$\\others", "--data", data),
            ("queue", "purge", ORDERS, "--data", data, "--yes"),
        ):
            assert FULL in called(*command).error(69)["error"], command
        refusing[0] = False
        wait_until(lambda: local.call("status")["disk"]["accepts"], "the disk accepts commits")
    assert json.loads(first.out)["body"] == "MQ=="
    assert peeked(data, ORDERS) == []


def test_a_message_that_could_not_be_received_is_there(data: Path, refusing: list[bool]) -> None:
    """A program whose connection stays: nothing is held for it of which it has not learned."""
    with served(options(data, ORDERS, min_free=0)), attach(data) as local, attach(data) as other:
        put(local, ORDERS, *recoverable(b"1", b"2"))
        refusing[0] = True
        taken = other.call("receive", queue=ORDERS, count=1)["messages"]
        with pytest.raises(ChangeWaits, match=FULL):
            other.call("end", done=[taken[0]["receipt"]])
        for _ in range(2):
            with pytest.raises(ChangeWaits):
                local.call("receive", queue=ORDERS, count=1, wait_ms=60_000)
        refusing[0] = False
        wait_until(lambda: local.call("status")["disk"]["accepts"], "the disk accepts commits")
        assert bodies(other.call("receive", queue=ORDERS, count=5)["messages"]) == [b"2"]


def test_requests_wait_for_a_disk_that_soon_has_room(
    data: Path, refusing: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msmqwire.qm.runtime.server.DISK_S", PATIENCE_S)
    with served(options(data, ORDERS, min_free=0)), attach(data) as local:
        put(local, ORDERS, *recoverable(b"1"))
        refusing[0] = True
        with ThreadPoolExecutor(1) as beside, attach(data) as other:
            taken = other.call("receive", queue=ORDERS, count=1)["messages"]
            ended = beside.submit(other.call, "end", done=[taken[0]["receipt"]])
            wait_until(lambda: not local.call("status")["disk"]["accepts"], "the commit is refused")
            refusing[0] = False
            assert ended.result(PATIENCE_S) == {"ended": 1}
    assert peeked(data, ORDERS) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_a_stop_ends_where_the_system_takes_no_more_bytes(data: Path) -> None:
    """The files of the server may not grow any more: what was acknowledged stays."""
    import resource

    with process(data, "--queue", ORDERS) as server, attach(data) as local:
        put(local, ORDERS, *recoverable(*(bytes([number]) * 100_000 for number in range(30))))
        size = (data / "queues.msmq").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, size))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 74
        assert "IOERR" in server.logs()[-1]["error"]
    assert [body[:1] for body in peeked(data, ORDERS)] == [bytes([number]) for number in range(30)]


# -- a real disk ----------------------------------------------------------------------------------------


def test_a_small_disk_is_filled_and_drained(tmp_path: Path) -> None:
    report = report_of("tests.support.qm.small_disk", tmp_path)
    assert report.pop("first stored") > 60
    assert report.pop("second stored") > 60  # the room inside the store is used again
    assert report == {
        "first received": True,
        "second received": True,
        "others left nothing": True,
        "received on a full disk": True,
        "status": 0,
    }
