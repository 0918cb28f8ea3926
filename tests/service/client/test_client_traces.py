"""The client leaves nothing behind: no threads, files, tasks or memory; and programs end."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import Unreachable
from tests.support.patience import limit
from tests.support.running import InThread, Process, bodies, environment, until
from tests.support.sending import ORDERS, connect, messages, run

NAME = rf"DIRECT=TCP:127.0.0.35\{ORDERS}"


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def use(server: InThread, number: int, state: Path) -> None:
    """Use a client in each way."""
    with connect(server, state=state if number % 2 else None) as client:
        client.send(b"x", recoverable=True, acknowledge="full_reach_queue").arrived()
    with suppress(Unreachable), msmqwire.connect(NAME, port=1, drain=0) as client:
        client.send(b"x")
    with suppress(Unreachable), msmqwire.connect(r"DIRECT=OS:nowhere.invalid\x", drain=0) as client:
        client.send(b"x")

    async def send() -> None:
        before = asyncio.all_tasks()
        async with connect(server) as client:
            await (await client.send(b"x")).transferred()
        assert asyncio.all_tasks() == before

    run(send())


def test_no_threads_files_or_warnings_are_left(server: InThread, tmp_path: Path) -> None:
    state = tmp_path / "state"
    use(server, 1, state)
    gc.collect()
    threads, files = set(threading.enumerate()), open_files()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(4):
            use(server, number, state)
            gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert set(threading.enumerate()) == threads
    until(lambda: open_files() <= files, "the server has closed its ends")


def test_what_was_sent_is_not_kept_in_memory(alpha: Process) -> None:
    async def send() -> int:
        async with connect(alpha) as client:

            async def send_and_measure(count: int) -> int:
                for number in range(count):
                    last = await client.send(b"x" * 1000, acknowledge="nack_receive", recoverable=True)
                    if number % 100 == 99:  # or tables have room for all at once, and keep it
                        await last.transferred()
                del last
                await asyncio.sleep(limit(1))  # the last acknowledgements may be still to come
                gc.collect()
                return tracemalloc.get_traced_memory()[0]

            before = await send_and_measure(300)
            return await send_and_measure(count) - before

    # Messages that are done leave those watched for expiry a hundred at a time: about 2 KiB each.
    count = 5000
    most = count * 100
    tracemalloc.start()
    try:
        assert run(send()) < most
    finally:
        tracemalloc.stop()
    assert len(messages(alpha)) == 1000, "as many as one answer holds"


@pytest.mark.parametrize(
    "exit_statement", ["return", "sys.exit(3)", "raise KeyboardInterrupt", "os._exit(4)"]
)
def test_a_program_that_ends_inside_ends(server: InThread, exit_statement: str) -> None:
    name = rf"DIRECT=TCP:{server.address}\{ORDERS}"
    program = f"""
import logging, os, sys, msmqwire
logging.getLogger("asyncio").setLevel("ERROR")  # callbacks are slow on a busy machine
def main():
    with msmqwire.connect({name!r}, port={server.port}) as client:
        client.send(b"x").transferred()
        {exit_statement}
main()
"""
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        env=environment(), capture_output=True, timeout=limit(120), check=False,
    )  # fmt: skip
    statuses = {"return": 0, "sys.exit(3)": 3, "os._exit(4)": 4}
    assert run.returncode == statuses.get(exit_statement, -2 if os.name != "nt" else 1), run.stderr
    assert (run.stderr == b"") == (exit_statement != "raise KeyboardInterrupt"), run.stderr
    assert bodies(messages(server)) == [b"x"]


def test_importing_msmqwire_is_light() -> None:
    program = """
import sys, msmqwire
heavy = {"asyncio", "sqlite3", "ssl", "numpy", "pyarrow", "numba", "lxml", "rich", "click", "aiohttp"}
print(sorted(heavy & set(sys.modules)))
msmqwire.connect
print(sorted(heavy - {"asyncio", "sqlite3", "ssl"} & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=limit(120),
    )
    light, connecting = run.stdout.splitlines()
    assert light == "[]"
    assert connecting in ("['lxml']", "[]")
