"""The place of a driver's commits: in its turn, while the event loop stands still, or in a thread.

    python benchmarks/commit_place.py [--seconds S] [--rounds N]

Rows alone, as of a queue manager, and rows with files that are synced one by one, as of a queue service: how
many changes a second become durable, one by one and 64 at a time, and the longest time that the loop stands
still. Both places alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import open_store
from msmqwire.service.driver import Driver
from msmqwire.service.store.changes import Changes

ROW: Final = bytes(1000)
FILES: Final = 4
"""Files that are synced before a transaction of a queue service: data of a job, its head, two lists."""


class Rows:
    """A guest that only changes rows."""

    deadline = None
    arrivals = 0

    def __init__(self) -> None:
        self.changes = Changes()
        self.number = 0

    def change(self) -> None:
        """Put one row."""
        self.number += 1
        self.changes.put(Table.MESSAGE, self.number, ROW)

    def at(self, now_ms: int, utc: int) -> None:
        """No timers."""

    def take(self) -> tuple[Changes, list[Any]]:
        taken, self.changes = self.changes, Changes()
        return taken, []

    def committed(self) -> None:
        """Nothing depends on it."""

    def throttle(self, *, on: bool) -> None:
        """Nothing is refused."""

    def acknowledge_received(self) -> None:
        """Nothing has been received."""

    def stop(self) -> None:
        """Nothing is open."""


class WithFiles:
    """A store that syncs files before each commit."""

    def __init__(self, store: Any, folder: Path) -> None:
        self._store = store
        self._files = [os.open(folder / f"{number}", os.O_RDWR | os.O_CREAT) for number in range(FILES)]

    def commit(self, changes: Changes) -> None:
        for file in self._files:
            os.pwrite(file, ROW, 0)
            os.fsync(file)
        self._store.commit(changes)


async def _measure(store: Any, *, in_thread: bool, under_way: int, seconds: float) -> tuple[float, float]:
    """Return changes a second, and the longest time that the loop stood still, in milliseconds."""
    writer = ThreadPoolExecutor(1) if in_thread else None
    driver = Driver(Rows(), store, writer=writer)
    guest, end = driver.guest, time.perf_counter() + seconds
    done, longest = 0, 0.0

    async def change() -> None:
        nonlocal done
        while time.perf_counter() < end:
            driver.call(guest.change)
            await driver.durable()
            done += 1

    async def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while time.perf_counter() < end:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    await asyncio.gather(tick(), *(change() for _ in range(under_way)))
    driver.abandon()
    if writer is not None:
        writer.shutdown()
    return done / seconds, longest * 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (1)")
    parser.add_argument("--rounds", type=int, default=7, help="of alternating runs (7)")
    options = parser.parse_args()
    print(f"{'':<34}{'in the turn':>22}{'in a thread':>22}   ratio")
    for kind in ("rows", "rows and files"):
        for under_way in (1, 64):
            rates: dict[bool, list[float]] = {False: [], True: []}
            stalls: dict[bool, list[float]] = {False: [], True: []}
            for number in range(2 * options.rounds):
                in_thread = bool(number % 2)
                with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
                    folder = Path(name)
                    with open_store(folder / "store") as rows:
                        store = rows if kind == "rows" else WithFiles(rows, folder)
                        rate, stall = asyncio.run(
                            _measure(store, in_thread=in_thread, under_way=under_way, seconds=options.seconds)
                        )
                rates[in_thread].append(rate)
                stalls[in_thread].append(stall)
            turn, thread = (statistics.median(rates[place]) for place in (False, True))
            still = [statistics.median(stalls[place]) for place in (False, True)]
            turn_shown = f"{turn:>12,.0f}/s {still[0]:>5.1f} ms"
            thread_shown = f"{thread:>13,.0f}/s {still[1]:>5.1f} ms"
            print(f"{f'{kind}, {under_way} at a time':<34}{turn_shown}{thread_shown}   {turn / thread:.2f}")


if __name__ == "__main__":
    main()
