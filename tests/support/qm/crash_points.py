"""A queue manager killed at each of its writes in turn; run as a program, for it forks.

    python -m tests.support.qm.crash_points FOLDER FIRST STEP

A write is a statement of the store, or a system call on a file of the folder. The queue manager is killed at
the write FIRST, then again from the start at FIRST + STEP, and so on until it ends by itself; after each a
new one starts over the remaining files, and its queues are compared with the earlier answers. Prints one JSON
object: the number of writes, and the kills followed by a fault.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.runtime.server import Server
from tests.support.running import LEDGER, ORDERS, bodies, message, options, recoverable

OTHER = r"private$\other"
Life = Callable[[Path, Callable[[str], None]], Coroutine[Any, Any, None]]
"""The work in a folder, reported as it is answered."""
Judge = Callable[[Path, set[str]], str]
"""The faults in the folder after these answers; empty if there are none."""
_EVENTS = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
    "sqlite3.connect",
}


class Killer:
    """Kills this process at its n-th write from now on."""

    def __init__(self, folder: Path, at: int) -> None:
        self._folder, self._at, self.writes = str(folder), at, 0
        for name in ("fsync", "posix_fallocate"):
            setattr(os, name, self._counting(getattr(os, name)))
        connect = sqlite3.connect

        def traced(*args: Any, **more: Any) -> sqlite3.Connection:
            connection = connect(*args, **more)
            connection.set_trace_callback(self._count)
            return connection

        sqlite3.connect = traced  # type: ignore[assignment]
        sys.addaudithook(self._audit)

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self._count()
            return function(*args)

        return call

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EVENTS and any(self._folder in str(argument) for argument in arguments):
            self._count()

    def _count(self, *_: object) -> None:
        self.writes += 1
        if self.writes == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


async def live(data: Path, told: Callable[[str], None]) -> None:
    """The life of a queue manager; `told` is called with each answer."""
    server = Server(options(data, ORDERS, f"{LEDGER};transactional", ping=None, min_free=1 << 20))
    await server.start()
    told("started")
    assert server.driver is not None
    session = LocalSession(server.driver)

    async def send(queue: str, *messages: dict[str, Any]) -> None:
        await session.run({"op": "send", "to": rf"DIRECT=OS:alpha\{queue}", "messages": list(messages)})

    await send(ORDERS, *recoverable(b"1", b"2"))
    told("1 2 stored")
    received = (await session.run({"op": "receive", "queue": ORDERS}))["messages"]
    await session.run({"op": "end", "done": [received[0]["receipt"]]})
    told("1 received")
    await send(LEDGER, *(message(body, delivery="transactional") for body in (b"3", b"4")))
    told("3 4 stored")
    await session.run({"op": "create", "queue": OTHER, "label": "kept"})
    told("created")
    await session.run({"op": "move", "queue": ORDERS, "to": f"{ORDERS};later", "count": 1})
    told("2 moved")
    await server.stop()
    told("stopped")


def wrong(data: Path, told: set[str]) -> str:
    """The differences from the answers; empty if all is well."""
    with attach(data, create=True) as local:

        def found(queue: str) -> list[bytes]:
            return bodies(local.call("peek", queue=queue, count=10)["messages"])

        queues = {status["queue"]: status for status in local.call("list")["queues"]}
        if ORDERS not in queues:
            return "the queue is gone" if "started" in told else ""
        orders = found(ORDERS)
        if "later" in queues[ORDERS]["subqueues"]:
            orders += found(f"{ORDERS};later")
        if orders not in ([], [b"2"], [b"1", b"2"]) or ("1 2 stored" in told and b"2" not in orders):
            return f"orders: {orders}"
        if "1 received" in told and b"1" in orders:
            return "a message is there that was received"
        ledger = found(LEDGER) if LEDGER in queues else []
        if ledger not in ([], [b"3", b"4"]) or ("3 4 stored" in told and not ledger):
            return f"ledger: {ledger}"
        if "created" in told and queues.get(OTHER, {}).get("label") != "kept":
            return "the queue that was created is gone"
        if "2 moved" in told and queues[ORDERS]["subqueues"] != {"later": 1}:
            return f"moved: {queues[ORDERS]['subqueues']}"
    return ""


def forked(work: Callable[[int], None]) -> tuple[int, str]:
    """Run `work`, which is given a descriptor, in another process; return its status and output."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reading)
            work(writing)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def killed(live: Life, data: Path, at: int, pipe: int) -> None:
    killer = Killer(data, at)

    def told(text: str) -> None:
        os.write(pipe, f"{text}\n".encode())

    asyncio.run(live(data, told))
    told(str(killer.writes))


def judged(wrong: Judge, data: Path, told: set[str], pipe: int) -> None:
    os.write(pipe, wrong(data, told).encode())


def main(folder: Path, first: int, step: int, live: Life = live, wrong: Judge = wrong) -> dict[str, object]:
    """Kill a life at each point in turn, and check the remaining files; return the report."""
    problems: dict[int, str] = {}
    kills, at, status = 0, first, -signal.SIGKILL
    while status == -signal.SIGKILL:
        data = folder / "alpha"
        shutil.rmtree(data, ignore_errors=True)
        status, told = forked(partial(killed, live, data, at))
        after, text = forked(partial(judged, wrong, data, set(told.splitlines())))
        if after or text:
            problems[at] = text or f"status {after}"
        kills += status == -signal.SIGKILL
        at += step
    return {"status": status, "kills": kills, "writes": told.splitlines()[-1], "wrong": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
