"""Commits to the store of a queue manager, compared with appending to a file and syncing it.

    python benchmarks/store.py [FOLDER] [SECONDS]

The file is the baseline: it makes the same number of bytes durable with one write and one sync, and can
neither find nor delete any of them. Commits are those of a queue 10,000 messages deep: each message that
arrives puts three rows (position and state of 40 bytes, packet of 1,300 bytes, history), and the oldest
leaves, which deletes three. FOLDER (default: the working folder) selects the disk; SECONDS (default 2) is the
duration of each line for each of the two. Store and baseline alternate at every commit, so that other load
affects both alike. Prints the rates of both, and the ratio to the baseline. Then the reads of a restart: a
million rows of 40 bytes in order, and single packets.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import open_store
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.sqlite import SqliteStore

DEPTH: Final = 10_000
ROWS: Final = 1_000_000
READS: Final = 100_000

_RNG: Final = random.Random(1801)
_MESSAGE: Final = _RNG.randbytes(40)
_PACKET: Final = _RNG.randbytes(1300)
_IDENTIFIER_PREFIX: Final = _RNG.randbytes(16)
_TIME: Final = bytes(8)

Commit = Callable[[], None]


def identifier(number: int) -> bytes:
    return _IDENTIFIER_PREFIX + number.to_bytes(4, "little")


def put(changes: Changes, number: int) -> None:
    changes.put(Table.MESSAGE, number, _MESSAGE)
    changes.put(Table.PACKET, number, _PACKET)
    changes.put(Table.HISTORY, identifier(number), _TIME)


def delete(changes: Changes, number: int) -> None:
    changes.delete(Table.MESSAGE, number)
    changes.delete(Table.PACKET, number)
    changes.delete(Table.HISTORY, identifier(number))


def row_commit(store: SqliteStore) -> Commit:
    """Return a function that commits one packet."""
    numbers = count(1 << 40)

    def commit() -> None:
        changes = Changes()
        changes.put(Table.PACKET, next(numbers), _PACKET)
        store.commit(changes)

    return commit


def queue_commit(store: SqliteStore, messages: int, numbers: Iterator[int]) -> Commit:
    """Return a function that commits the arrival of a number of messages, and the departure of the same
    number.
    """

    def commit() -> None:
        changes = Changes()
        for number in (next(numbers) for _ in range(messages)):
            put(changes, number)
            delete(changes, number - DEPTH)
        store.commit(changes)

    return commit


def append_commit(file: int, size: int) -> Commit:
    """Return a function that appends to a file and syncs it: the baseline."""
    data = bytes(size)

    def commit() -> None:
        os.write(file, data)
        os.fsync(file)

    return commit


def rates(measured: Commit, baseline: Commit, seconds: float) -> tuple[float, float]:
    """Return the commits a second of two functions that alternate."""
    rounds, elapsed = 0, [0.0, 0.0]
    while sum(elapsed) < 2 * seconds:
        for index, commit in enumerate((measured, baseline)):
            start = time.perf_counter()
            commit()
            elapsed[index] += time.perf_counter() - start
        rounds += 1
    return rounds / elapsed[0], rounds / elapsed[1]


def commits(folder: Path, seconds: float) -> None:
    numbers = count()
    file = os.open(folder / "appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    with open_store(folder / "commits.db") as store:
        initial = Changes()
        for _ in range(DEPTH):
            put(initial, next(numbers))
        store.commit(initial)
        size = len(_MESSAGE) + len(_PACKET) + len(identifier(0)) + len(_TIME)
        print(f"{'':32}{'store':>12}{'append+fsync':>14}{'ratio':>8}")
        for name, messages, commit, baseline in (
            ("rows/s, 1 row a commit", 1, row_commit(store), append_commit(file, len(_PACKET))),
            *(
                (
                    f"messages/s, {messages} a commit",
                    messages,
                    queue_commit(store, messages, numbers),
                    append_commit(file, messages * size),
                )
                for messages in (1, 64, 256)
            ),
        ):
            rate, floor = (commits * messages for commits in rates(commit, baseline, seconds))
            print(f"{name:32}{rate:12,.0f}{floor:14,.0f}{rate / floor:8.2f}", flush=True)
    os.close(file)


def reads(folder: Path) -> None:
    with open_store(folder / "reads.db") as store:
        changes = Changes()
        for number in range(ROWS):
            changes.put(Table.MESSAGE, number, _MESSAGE)
        for number in range(READS):
            changes.put(Table.PACKET, number, _PACKET)
        store.commit(changes)
        start = time.perf_counter()
        rows = sum(1 for _ in store.rows(Table.MESSAGE))
        print(f"{rows:,} rows of {len(_MESSAGE)} bytes in order: {time.perf_counter() - start:.2f} s")
        numbers = [_RNG.randrange(READS) for _ in range(READS)]
        start = time.perf_counter()
        for number in numbers:
            store.row(Table.PACKET, number)
        microseconds = (time.perf_counter() - start) / READS * 1e6
        print(f"one of {READS:,} packets: {microseconds:.1f} µs")


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    with tempfile.TemporaryDirectory(dir=folder) as name:
        commits(Path(name), seconds)
        reads(Path(name))


if __name__ == "__main__":
    main()
