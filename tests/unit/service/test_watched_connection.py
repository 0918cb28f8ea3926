"""A connection whose peer has its time for each step: a clock that jumps says when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from msmqwire.service.virtual.loop import VirtualLoop
from msmqwire.service.watched_connection import QUIET_S, Wait, WatchedConnection

SECONDS = {Wait.BEGIN: 1.0, Wait.REST: 2.0, Wait.REQUEST: 100.0, Wait.READ: 3.0}


class Transport(asyncio.Transport):
    """A transport whose peer reads what it is told to read."""

    def __init__(self) -> None:
        super().__init__()
        self.unread = 0
        self.calls: list[str] = []

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 1024) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, data: Any) -> None:
        self.unread += len(data)

    def is_closing(self) -> bool:
        return "abort" in self.calls

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def abort(self) -> None:
        self.calls.append("abort")


class Watched(WatchedConnection):
    """A connection that waits for what a test says."""

    def __init__(self) -> None:
        super().__init__("TEST")
        self.wait: tuple[Wait, int] | None = (Wait.BEGIN, 0)
        self.over: list[tuple[Wait, float]] = []

    def waits(self, wait: Wait | None, number: int = 0) -> None:
        self.wait = None if wait is None else (wait, number)
        self._watch()

    def sends(self, size: int) -> None:
        assert self._transport is not None
        self._write(self._transport, bytes(size))

    def _begin(self, transport: asyncio.Transport) -> bool:
        self._watch()
        return True

    def _awaited(self) -> tuple[Wait, int] | None:
        return (Wait.READ, self._taken) if self._paused else self.wait

    def _seconds_for(self, wait: Wait) -> float:
        return SECONDS[wait]

    def _let_read(self) -> None:
        self._set_reading(not self._paused)

    def _is_over(self, wait: Wait) -> None:
        self.over.append((wait, asyncio.get_running_loop().time()))
        self.abort()


def virtually(work: Coroutine[Any, Any, None]) -> None:
    """Run in a loop whose clock jumps."""
    VirtualLoop().run_until_complete(work)


def connected() -> tuple[Watched, Transport]:
    transport, connection = Transport(), Watched()
    connection.connection_made(transport)
    return connection, transport


@pytest.mark.parametrize(("wait", "steps", "begins"), [(Wait.REST, 1, 0.9), (Wait.REQUEST, 2, 2.4)])
def test_a_step_is_timed_from_its_start_not_from_the_last_byte(wait: Wait, steps: int, begins: float) -> None:
    async def run() -> None:
        connection, transport = connected()
        await asyncio.sleep(0.9)
        connection.waits(wait, 1)
        for _ in range(3):
            await asyncio.sleep(0.5)
            connection.waits(wait, 1)
        connection.waits(wait, steps)
        await asyncio.sleep(1000)
        assert connection.over == [(wait, pytest.approx(begins + SECONDS[wait]))]
        assert transport.calls == ["abort"]

    virtually(run())


def test_no_timer_runs_during_a_request_or_after_the_end() -> None:
    async def run() -> None:
        connection, _ = connected()
        connection.waits(None)
        await asyncio.sleep(1000)
        connection.waits(Wait.REST)
        connection._cancel_timer()
        connection._is_ending = True
        connection.waits(Wait.REQUEST)
        await asyncio.sleep(1000)
        assert connection.over == []

    virtually(run())


def test_a_slow_reader_stays_connected_and_a_stopped_one_ends() -> None:
    async def run() -> None:
        connection, transport = connected()
        connection.sends(1000)
        connection.pause_writing()
        assert transport.calls == ["pause"]
        for _ in range(5):
            await asyncio.sleep(2.9)
            transport.unread -= 1
            await asyncio.sleep(0.1)
        now = asyncio.get_running_loop().time()
        assert connection.over == []
        await asyncio.sleep(1000)
        assert connection.over == [(Wait.READ, pytest.approx(now + 3, abs=0.2))]
        assert transport.calls == ["pause", "abort"]

    virtually(run())


def test_reading_is_paused_and_resumed_once_until_the_end() -> None:
    async def run() -> None:
        connection, transport = connected()
        for reads in (True, False, False, True, True):
            connection._set_reading(reads)
        assert transport.calls == ["pause", "resume"]
        connection.abort()
        connection._set_reading(False)
        assert transport.calls == ["pause", "resume", "abort"]

    virtually(run())


def test_a_connection_is_quiet_some_time_after_its_last_byte() -> None:
    async def run() -> None:
        connection, _ = connected()
        await asyncio.sleep(QUIET_S)
        assert connection._is_quiet
        connection.sends(1)
        assert not connection._is_quiet
        await asyncio.sleep(QUIET_S / 2)
        connection._used()
        await asyncio.sleep(QUIET_S * 0.9)
        assert not connection._is_quiet
        await asyncio.sleep(QUIET_S * 0.2)
        assert connection._is_quiet

    virtually(run())


def test_a_connection_that_is_gone_has_no_timer() -> None:
    async def run() -> None:
        connection, _ = connected()
        connection.connection_lost(None)
        await asyncio.sleep(1000)
        assert connection.over == []
        assert connection.gone.done()

    virtually(run())
