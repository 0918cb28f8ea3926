"""A driver that commits in a thread: what is durable when, while the guest goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from msmqwire.errors import StoreRefused
from msmqwire.qm.model.tables import Table
from msmqwire.service import driver as module
from msmqwire.service.driver import Driver
from msmqwire.service.store.changes import Changes
from tests.support.running import PATIENCE_S


class Rows:
    """A guest that only changes rows.

    `told` has the number of rows taken each time it is told that all are durable.
    """

    deadline = None
    arrivals = 0

    def __init__(self) -> None:
        self.changes = Changes()
        self.effects: list[str] = []
        self.taken = 0
        self.told: list[int] = []

    def put(self, key: bytes) -> None:
        self.changes.put(Table.HISTORY, key, b"")
        self.effects.append(key.decode())

    def at(self, now_ms: int, utc: int) -> None:
        pass

    def take(self) -> tuple[Changes, list[Any]]:
        taken = self.changes, self.effects
        self.taken += len(self.changes)
        self.changes, self.effects = Changes(), []
        return taken

    def committed(self) -> None:
        self.told.append(self.taken)

    def throttle(self, *, on: bool) -> None:
        pass

    def acknowledge_received(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Gate:
    """A committer that waits to be let through, and may refuse once."""

    def __init__(self) -> None:
        self.open, self.refuses = threading.Event(), False
        self.commits: list[list[bytes]] = []

    def commit(self, changes: Changes) -> None:
        assert self.open.wait(PATIENCE_S)
        if self.refuses:
            self.refuses = False
            raise StoreRefused("the disk is full", file="x")
        self.commits.append([bytes(key) for _, key, _ in changes if isinstance(key, bytes)])


def run(work: Callable[[Driver[Rows], Gate, list[str]], Coroutine[Any, Any, None]]) -> None:
    async def start() -> None:
        gate, performed = Gate(), list[str]()
        with ThreadPoolExecutor(1) as writer:
            driver = Driver(Rows(), gate, writer=writer)
            driver.perform_by(str, performed.append)
            await asyncio.wait_for(work(driver, gate, performed), PATIENCE_S)
            driver.abandon()

    asyncio.run(start())


async def being_written(driver: Driver[Rows]) -> None:
    while driver.under_way is None:
        await asyncio.sleep(0)


def test_calls_during_a_commit_are_durable_with_the_next_one() -> None:
    async def work(driver: Driver[Rows], gate: Gate, performed: list[str]) -> None:
        driver.call(driver.guest.put, b"a")
        first = asyncio.ensure_future(driver.durable())
        await being_written(driver)
        driver.call(driver.guest.put, b"b")
        second = asyncio.ensure_future(driver.durable())
        settled: list[list[str]] = []
        driver.when_settled(lambda: settled.append(list(performed)))
        await asyncio.sleep(0)
        assert (gate.commits, performed, first.done(), second.done()) == ([], [], False, False)
        gate.open.set()
        await first
        assert gate.commits[0] == [b"a"]
        await second
        assert gate.commits == [[b"a"], [b"b"]]
        await asyncio.sleep(0)
        assert (performed, settled) == (["a", "b"], [["a", "b"]])

    run(work)


def test_what_is_refused_is_retried_before_what_has_come_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def work(driver: Driver[Rows], gate: Gate, performed: list[str]) -> None:
        gate.refuses = True
        driver.call(driver.guest.put, b"a")
        await being_written(driver)
        driver.call(driver.guest.put, b"b")
        gate.open.set()
        await driver.durable()
        assert gate.commits == [[b"a"], [b"b"]]
        assert performed == ["a", "b"]
        assert not driver.refused
        assert driver.guest.told == [2]  # "b" was taken before "a" was durable

    run(work)
