"""The store of a queue manager, side by side with a plain file that is appended to and synced.

    python benchmarks/store.py [FOLDER] [SECONDS]

The plain file is the floor: it makes as many bytes durable with one write and one sync, and can neither
find nor delete any of them. Commits are those of a queue 10,000 messages deep: each message that comes in
puts three rows (place and state of 40 bytes, packet of 1,300 bytes, history), and the oldest goes, which
deletes three. FOLDER (default: the present one) says which disk is measured; SECONDS (default 2) how long
each line takes on each side. Store and floor take turns at every commit, so that what else the machine does
hits both; prints what both do in a second, and the ratio to the floor. Then what a restart reads: a million
rows of 40 bytes in order, and packets one by one.
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

from msmqwire.qm.model.changes import Changes, Table
from msmqwire.qm.store.sqlite import SqliteStore

DEPTH: Final = 10_000
ROWS: Final = 1_000_000
READS: Final = 100_000

_CHANCE: Final = random.Random(1801)
_MESSAGE: Final = _CHANCE.randbytes(40)
_PACKET: Final = _CHANCE.randbytes(1300)
_LINEAGE: Final = _CHANCE.randbytes(16)
_TIME: Final = bytes(8)

Commit = Callable[[], None]


def identifier(number: int) -> bytes:
    return _LINEAGE + number.to_bytes(4, "little")


def put(changes: Changes, number: int) -> None:
    changes.put(Table.MESSAGE, number, _MESSAGE)
    changes.put(Table.PACKET, number, _PACKET)
    changes.put(Table.HISTORY, identifier(number), _TIME)


def delete(changes: Changes, number: int) -> None:
    changes.delete(Table.MESSAGE, number)
    changes.delete(Table.PACKET, number)
    changes.delete(Table.HISTORY, identifier(number))


def one_row(store: SqliteStore) -> Commit:
    """A commit of one packet."""
    numbers = count(1 << 40)

    def commit() -> None:
        changes = Changes()
        changes.put(Table.PACKET, next(numbers), _PACKET)
        store.commit(changes)

    return commit


def queue(store: SqliteStore, messages: int, numbers: Iterator[int]) -> Commit:
    """A commit of so many messages that come in, and as many that go."""

    def commit() -> None:
        changes = Changes()
        for number in (next(numbers) for _ in range(messages)):
            put(changes, number)
            delete(changes, number - DEPTH)
        store.commit(changes)

    return commit


def appended(file: int, size: int) -> Commit:
    """The floor."""
    data = bytes(size)

    def commit() -> None:
        os.write(file, data)
        os.fsync(file)

    return commit


def rates(ours: Commit, theirs: Commit, seconds: float) -> tuple[float, float]:
    """Commits a second of two that take turns."""
    done, taken = 0, [0.0, 0.0]
    while sum(taken) < 2 * seconds:
        for side, commit in enumerate((ours, theirs)):
            start = time.perf_counter()
            commit()
            taken[side] += time.perf_counter() - start
        done += 1
    return done / taken[0], done / taken[1]


def commits(folder: Path, seconds: float) -> None:
    numbers = count()
    plain = os.open(folder / "plain", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    with SqliteStore(folder / "commits.db") as store:
        filled = Changes()
        for _ in range(DEPTH):
            put(filled, next(numbers))
        store.commit(filled)
        size = len(_MESSAGE) + len(_PACKET) + len(identifier(0)) + len(_TIME)
        print(f"{'':32}{'store':>12}{'append+fsync':>14}{'ratio':>8}")
        for name, messages, kept, floor in (
            ("rows/s, 1 row a commit", 1, one_row(store), appended(plain, len(_PACKET))),
            *(
                (
                    f"messages/s, {messages} a commit",
                    messages,
                    queue(store, messages, numbers),
                    appended(plain, messages * size),
                )
                for messages in (1, 64, 256)
            ),
        ):
            ours, theirs = (commits * messages for commits in rates(kept, floor, seconds))
            print(f"{name:32}{ours:12,.0f}{theirs:14,.0f}{ours / theirs:8.2f}", flush=True)
    os.close(plain)


def reads(folder: Path) -> None:
    with SqliteStore(folder / "reads.db") as store:
        changes = Changes()
        for number in range(ROWS):
            changes.put(Table.MESSAGE, number, _MESSAGE)
        for number in range(READS):
            changes.put(Table.PACKET, number, _PACKET)
        store.commit(changes)
        start = time.perf_counter()
        found = sum(1 for _ in store.rows(Table.MESSAGE))
        print(f"{found:,} rows of {len(_MESSAGE)} bytes in order: {time.perf_counter() - start:.2f} s")
        numbers = [_CHANCE.randrange(READS) for _ in range(READS)]
        start = time.perf_counter()
        for number in numbers:
            store.row(Table.PACKET, number)
        microseconds = (time.perf_counter() - start) / READS * 1e6
        print(f"one of {READS:,} packets: {microseconds:.1f} µs")


def main() -> None:
    place = sys.argv[1] if len(sys.argv) > 1 else "."
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    with tempfile.TemporaryDirectory(dir=place) as name:
        commits(Path(name), seconds)
        reads(Path(name))


if __name__ == "__main__":
    main()
