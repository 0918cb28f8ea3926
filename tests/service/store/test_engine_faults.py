"""Exceptions that nobody has foreseen end a queue manager; only what is durable has been acknowledged."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import EngineFailed, InvalidValue, StoreDamaged
from msmqwire.qm.model.effects import Resolve
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.store import open_store
from msmqwire.service.store.memory import MemoryStore
from tests.support import handmade as h
from tests.support.patience import happens
from tests.support.qm.driver_harness import TO_ELSEWHERE, DriverHarness, run
from tests.support.running import (
    ADDRESS,
    LEDGER,
    ORDERS,
    PATIENCE_S,
    called,
    environment,
    listed,
    message,
    peeked,
    put,
    recoverable,
)

AFTER_2106 = float(1 << 32)


class Unforeseen(Exception):
    """What nobody has foreseen."""


def fail(*_: object, **__: object) -> Any:
    raise Unforeseen("nobody expected this")


# -- the driver -----------------------------------------------------------------------------------------


async def has_ended(harness: DriverHarness) -> None:
    """Check that the driver has ended, told everybody, and stored and sent nothing since."""
    assert isinstance(harness.driver.broken.result(), EngineFailed)
    before = list(harness.store.events)
    with pytest.raises(EngineFailed, match="nobody expected this"):
        await harness.driver.durable()
    with pytest.raises(EngineFailed, match="nobody expected this"):
        harness.driver.call(queues.listed, harness.core)
    harness.driver.notify(harness.core.stop)
    await asyncio.sleep(0.02)  # in which nothing is stored or sent
    assert harness.store.events == before


@pytest.mark.parametrize("what", ["take", "at"])
def test_a_fault_before_the_commit_ends_it_and_nothing_is_stored(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(harness: DriverHarness) -> None:
        harness.send(TO_ELSEWHERE)
        monkeypatch.setattr(harness.core, what, fail)
        with pytest.raises(EngineFailed, match="nobody expected this"):
            await harness.driver.durable()
        assert (harness.store.events, harness.store.messages()) == ([], 0)
        await has_ended(harness)

    run(work)


def test_a_fault_in_the_commit_ends_it_and_nothing_is_sent() -> None:
    async def work(harness: DriverHarness) -> None:
        harness.store.failure = Unforeseen("nobody expected this")
        harness.send(TO_ELSEWHERE)
        with pytest.raises(EngineFailed, match="nobody expected this"):
            await harness.driver.durable()
        assert harness.store.events == []
        await has_ended(harness)
        assert harness.store.refused == 1

    run(work)


def test_a_fault_in_a_commit_before_the_end_of_the_turn_ends_it() -> None:
    async def work(harness: DriverHarness) -> None:
        harness.store.failure = Unforeseen("nobody expected this")
        harness.driver.calls_max = 32
        with pytest.raises(EngineFailed, match="nobody expected this"):
            harness.send(TO_ELSEWHERE, count=100)
        assert harness.store.refused == 1
        await has_ended(harness)

    run(work)


@pytest.mark.parametrize("what", [Resolve, "flush"])
def test_a_fault_in_an_effect_ends_the_driver_after_the_commit(what: type | str) -> None:
    """Who waited for the commit gets its success."""

    async def work(harness: DriverHarness) -> None:
        harness.carrier.fails_at[what] = fail
        harness.send(TO_ELSEWHERE)
        await harness.driver.durable()  # it is on disk
        assert harness.store.messages() == 1
        await has_ended(harness)

    run(work)


def test_a_fault_in_what_the_core_does_after_a_commit_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(harness: DriverHarness) -> None:
        monkeypatch.setattr(harness.core, "committed", fail)
        harness.send(TO_ELSEWHERE)
        with pytest.raises(EngineFailed):
            await harness.driver.durable()
        assert harness.store.events == ["commit"]
        await has_ended(harness)

    run(work)


def test_a_reader_that_fails_ends_it() -> None:
    async def work(harness: DriverHarness) -> None:
        reading = asyncio.ensure_future(harness.wait(60_000))
        await asyncio.sleep(0)
        harness.driver.on_read(1, fail)
        harness.send()
        await happens(harness.driver.broken.done)
        assert harness.store.messages() == 0  # it was received, and that is on disk
        await has_ended(harness)
        reading.cancel()

    run(work)


def test_a_timer_that_fails_ends_it() -> None:
    async def work(harness: DriverHarness) -> None:
        timers = harness.core.context.timers
        harness.driver.call(timers.start, Timer.PING_RESPONSE, None, 20, fail)
        await happens(harness.driver.broken.done)
        await has_ended(harness)

    run(work)


def test_a_timer_that_fails_in_a_call_ends_it() -> None:
    async def work(harness: DriverHarness) -> None:
        harness.core.context.timers.start(Timer.PING_RESPONSE, None, 0, fail)
        with pytest.raises(EngineFailed, match="nobody expected this"):
            harness.send()
        await has_ended(harness)

    run(work)


@pytest.mark.parametrize("kind", [Unforeseen, KeyError, AssertionError, RecursionError, MemoryError])
def test_a_call_that_fails_half_way_stores_none_of_its_turn(kind: type[Exception]) -> None:
    def half(core: Any) -> None:
        core.context.changes.put(Table.META, b"half", b"done")
        raise kind("nobody expected this")

    async def work(harness: DriverHarness) -> None:
        harness.send()
        with pytest.raises(EngineFailed, match="nobody expected this") as caught:
            harness.driver.call(half, harness.core)
        assert isinstance(caught.value.why, kind)
        assert (harness.store.row(Table.META, b"half"), harness.store.messages()) == (None, 0)
        await has_ended(harness)

    run(work)


def test_an_interrupted_call_stores_nothing_either() -> None:
    def half(core: Any) -> None:
        core.context.changes.put(Table.META, b"half", b"done")
        raise KeyboardInterrupt

    async def work(harness: DriverHarness) -> None:
        with pytest.raises(KeyboardInterrupt):
            harness.driver.call(half, harness.core)
        with pytest.raises(EngineFailed):
            await harness.driver.durable()
        assert harness.store.row(Table.META, b"half") is None

    run(work)


def test_an_event_has_nobody_to_be_refused_to() -> None:
    def refuse() -> None:
        raise InvalidValue("nobody expected this", path="x")

    async def work(harness: DriverHarness) -> None:
        with pytest.raises(InvalidValue):
            harness.driver.call(refuse)
        assert not harness.driver.broken.done()
        harness.driver.notify(refuse)
        await has_ended(harness)

    run(work)


def test_what_only_reads_harms_nobody() -> None:
    async def work(harness: DriverHarness) -> None:
        with pytest.raises(Unforeseen):
            harness.driver.read(fail)
        harness.send()
        await harness.driver.durable()
        assert harness.store.messages() == 1

    run(work)


def test_an_unreadable_message_ends_the_driver_as_store_damage() -> None:
    def damaged() -> None:
        raise StoreDamaged("the pages are torn", file="x")

    async def work(harness: DriverHarness) -> None:
        for call in (harness.driver.call, harness.driver.read):
            with pytest.raises(StoreDamaged):
                call(damaged)
        assert isinstance(harness.driver.broken.result(), StoreDamaged)
        with pytest.raises(StoreDamaged):
            await harness.driver.durable()

    run(work)


def test_a_fault_while_it_starts_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        monkeypatch.setattr(MemoryStore, "commit", fail)
        with pytest.raises(EngineFailed, match="nobody expected this"):
            DriverHarness()

    asyncio.run(start())


# -- the clock ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("now", [AFTER_2106, -1.0, 0.0, 1e18])
def test_it_does_not_start_at_a_time_that_no_packet_holds(
    now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start() -> None:
        monkeypatch.setattr(time, "time", lambda: now)
        with pytest.raises(InvalidValue, match="packets hold times to 2106-02-07") as caught:
            DriverHarness()
        assert caught.value.path == "clock"

    asyncio.run(start())


@pytest.mark.parametrize("wrong", [AFTER_2106, AFTER_2106 * 3, -5.0])
def test_a_clock_beyond_the_range_of_packets_is_ignored(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [2_000_000_000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])

    async def work(harness: DriverHarness) -> None:
        clock[0] = 2_000_000_100.0
        harness.send()
        await harness.driver.durable()
        clock[0] = wrong
        harness.send(TO_ELSEWHERE)
        await harness.driver.durable()
        assert 2_000_000_100 <= harness.core.context.utc <= 2_000_000_100 + PATIENCE_S
        assert harness.store.messages() == 2
        clock[0] = 2_000_000_200.0
        harness.send()
        assert harness.core.context.utc == 2_000_000_200

    run(work)


def test_the_last_time_that_a_packet_holds_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: AFTER_2106 - 1)

    async def work(harness: DriverHarness) -> None:
        harness.send(TO_ELSEWHERE)
        await harness.driver.durable()
        assert harness.core.context.utc == 0xFFFFFFFF
        assert harness.store.messages() == 1

    run(work)


# -- the server -----------------------------------------------------------------------------------------

SERVE = """
import asyncio, sys, time
from pathlib import Path
from msmqwire.cli import main
from msmqwire.qm.core import Core
from msmqwire.qm.runtime import limits, queues, transport
from msmqwire.service.store.sqlite import SqliteStore

what, mark = sys.argv.pop(1), Path(sys.argv.pop(1))

def breaking(original):
    def call(*args, **more):
        if mark.exists():
            raise ZeroDivisionError("nobody expected this")
        return original(*args, **more)
    return call

match what:
    case "commit":
        SqliteStore.commit = breaking(SqliteStore.commit)
    case "take":
        Core.take = breaking(Core.take)
    case "create":
        queues.create = breaking(queues.create)
    case "accept":
        transport.TcpNetwork.accepted = breaking(transport.TcpNetwork.accepted)
        initialize = limits.Limits.__init__
        limits.Limits.__init__ = lambda *args, **more: initialize(*args, **more | {"close_s": 3600.0})
    case "clock":
        original = time.time
        time.time = lambda: original() + (1 << 32) * mark.exists()
main()
"""


class Broken:
    """A server as a process in which something fails once its mark is there."""

    def __init__(self, what: str, folder: Path) -> None:
        self.mark, self.data = folder / "broken", folder / "alpha"
        arguments = ["serve", "--data", self.data, "--name", "alpha", "--listen", f"{ADDRESS}:0"]
        arguments += ["--ping", "off", "--queue", ORDERS, "--queue", f"{LEDGER};transactional"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, what, str(self.mark), *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split()[2].rpartition(":")[2])

    def ended(self) -> tuple[int, list[dict[str, Any]]]:
        """Wait for its end; return its status and the lines on standard error, which are all JSON."""
        try:
            _, errors = self.process.communicate(timeout=PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        return self.process.returncode, [json.loads(line) for line in errors.splitlines()]


@pytest.mark.parametrize("what", ["commit", "take"])
def test_a_server_that_cannot_commit_exits_70_with_the_reason(what: str, tmp_path: Path) -> None:
    server = Broken(what, tmp_path)
    with attach(server.data) as local, attach(server.data) as other:
        put(local, ORDERS, *recoverable(b"stored"))
        server.mark.touch()
        with pytest.raises(RuntimeError, match="nobody expected this"):
            put(local, ORDERS, *recoverable(b"lost"))
        status, lines = server.ended()
        with pytest.raises(msmqwire.Unreachable):
            other.call("status")
    assert status == 70
    reason = "the queue manager has ended: ZeroDivisionError('nobody expected this')"
    assert lines[-1] == {"error": f"a fault of msmqwire itself, {reason}", "path": "", "offset": None}
    (critical,) = [line for line in lines if line.get("level") == "critical"]
    assert critical["event"] == "a fault of msmqwire itself ends it"
    assert critical["traceback"].endswith("ZeroDivisionError: nobody expected this")
    assert peeked(server.data, ORDERS) == [b"stored"]


def test_a_request_that_fails_half_way_ends_the_server(tmp_path: Path) -> None:
    server = Broken("create", tmp_path)
    with attach(server.data) as local:
        server.mark.touch()
        with pytest.raises(RuntimeError, match="nobody expected this"):
            local.call("create", queue=r"private$\new")
    assert server.ended()[0] == 70


def test_a_fault_in_a_callback_of_a_connection_ends_the_server(tmp_path: Path) -> None:
    """At once: it does not wait for peers that keep their connections."""
    server = Broken("accept", tmp_path)
    with socket.create_connection((ADDRESS, server.port), PATIENCE_S) as idle:
        idle.sendall(h.establish_connection())
        assert idle.recv(1)
        server.mark.touch()
        with socket.create_connection((ADDRESS, server.port), PATIENCE_S):
            status, lines = server.ended()
    assert status == 70
    assert "nobody expected this" in lines[-1]["error"]


def test_a_server_goes_on_when_its_clock_leaps_beyond_2106(tmp_path: Path) -> None:
    server = Broken("clock", tmp_path)
    with attach(server.data) as local:
        server.mark.touch()
        for _ in range(3):
            put(local, LEDGER, message(b"1", delivery="transactional"))
            local.call("send", to=TO_ELSEWHERE, messages=[message(b"2", delivery="transactional")])
        server.process.terminate()
    status, lines = server.ended()
    assert status == 0
    errors = [line["event"] for line in lines if line["level"] == "error"]
    assert errors == ["the clock has a time that no packet can hold: ignored"]
    server = Broken("none", tmp_path)
    assert peeked(server.data, LEDGER) == [b"1"] * 3
    server.process.terminate()
    assert server.ended()[0] == 0


def test_a_server_does_not_start_after_2106(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    run = subprocess.run(
        [sys.executable, "-c", SERVE, "clock", tmp_path / "broken", "serve", "--data", tmp_path / "alpha",
         "--listen", f"{ADDRESS}:0", "--ping", "off"],
        capture_output=True, env=environment(), text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (65, "")
    (error,) = map(json.loads, run.stderr.splitlines())
    assert error["path"] == "clock"


def test_a_command_that_fails_half_way_changes_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody serves the folder."""
    with attach(data, create=True) as local:
        local.call("create", queue=ORDERS)
    with monkeypatch.context() as patch:
        patch.setattr(queues, "purge", fail)
        run_ = called("queue", "purge", ORDERS, "--data", data)
    assert run_.status == 70
    assert "nobody expected this" in json.loads(run_.err.splitlines()[-1])["error"]
    assert ORDERS in listed(data)


# -- the client -----------------------------------------------------------------------------------------


def test_an_engine_failure_fails_calls_and_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        connection = msmqwire.connect(TO_ELSEWHERE, state=tmp_path / "outbox", drain=PATIENCE_S)
        queue = await connection.__aenter__()
        sent = await queue.send(b"stored", recoverable=True)
        transferred = asyncio.ensure_future(sent.transferred())
        await asyncio.sleep(0)
        with monkeypatch.context() as patch:
            patch.setattr(EngineDriver, "_end_turn", fail)
            with pytest.raises(EngineFailed, match="nobody expected this"):
                await queue.send(b"lost", recoverable=True)
        with pytest.raises(EngineFailed, match="nobody expected this"):
            await transferred
        with pytest.raises(EngineFailed, match="nobody expected this"):
            await queue.send(b"too late")
        with pytest.raises(EngineFailed, match="nobody expected this"):
            await connection.__aexit__(None, None, None)  # at once, not after `drain`

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S / 2))
    with open_store(tmp_path / "outbox") as store:
        (packet,) = (packet for _, packet in store.rows(Table.PACKET))
        assert b"stored" in packet
