"""Damage of a file of pages, as disks, file systems and copies do it.

python -m tests.support.qm.damages CASES    damages a store in so many ways, and counts the outcomes
"""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from msmqwire.errors import StoreError
from msmqwire.qm.store import open_store
from msmqwire.service.store.sqlite import PAGE_SIZE

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
_VIEW = f"AS {_ENDLESS} SELECT i AS key, x'00' AS content, 1 AS sum FROM n"
_HUGE = "content BLOB NOT NULL AS (zeroblob(900000000))"
HOSTILE_SCHEMAS: Final = {
    "view": ("message", f"CREATE VIEW message {_VIEW}"),
    "view of counts": ("row_count", f"CREATE VIEW row_count {_VIEW}"),
    "view under another name": ("other", f"CREATE VIEW message {_VIEW}"),
    "column": (
        "message",
        f'CREATE TABLE "message" (key INTEGER PRIMARY KEY, a, b, {_HUGE}, sum INTEGER AS (1))',
    ),
    "column of another table": ("other", f"CREATE TABLE other (key BLOB PRIMARY KEY, {_HUGE}) WITHOUT ROWID"),
}
"""What SQLite would run for a reader of such a store: the name in its schema, and the statement."""

DAMAGES: Final = ("bit", "byte", "bytes", "zeros", "page of noise", "swapped", "copied", "older", "cut")


def damaged(kind: str, intact: bytes, older: bytes, rng: random.Random) -> bytes:
    """Return a file with one damage; `older` is the same file at an earlier time."""
    data, pages = bytearray(intact), len(intact) // PAGE_SIZE
    at = rng.randrange(len(data))
    start, other = (rng.randrange(pages) * PAGE_SIZE for _ in range(2))
    page, end = data[start : start + PAGE_SIZE], start + PAGE_SIZE
    match kind:
        case "bit":
            data[at] ^= 1 << rng.randrange(8)
        case "byte":
            data[at] = rng.randrange(256)
        case "bytes":
            size = min(rng.randrange(1, 600), len(data) - at)
            data[at : at + size] = rng.choice((bytes(size), rng.randbytes(size)))
        case "zeros":
            data[start:end] = bytes(PAGE_SIZE)
        case "page of noise":
            data[start:end] = rng.randbytes(PAGE_SIZE)
        case "swapped":
            data[start:end], data[other : other + PAGE_SIZE] = data[other : other + PAGE_SIZE], page
        case "copied":
            data[other : other + PAGE_SIZE] = page
        case "older":
            data[start:end] = older[start:end].ljust(PAGE_SIZE, b"\0")
        case "cut":
            del data[at:]
    return bytes(data)


def whole_rows(damage: Path, intact: Path, keys: Iterable[int], *tables: str) -> set[int]:
    """Return the keys of which the rows of all these tables are as they were, and are found by their keys."""

    def row(db: sqlite3.Connection, table: str, key: int) -> object:
        try:
            return db.execute(f"SELECT content, sum FROM {table} WHERE key = {key}").fetchall()
        except sqlite3.Error:
            return None

    with closing(sqlite3.connect(damage)) as one, closing(sqlite3.connect(intact)) as other:
        one.execute("PRAGMA writable_schema = ON")
        return {key for key in keys if all(row(one, name, key) == row(other, name, key) for name in tables)}


def with_schema(path: Path, name: str, statement: str) -> None:
    """Put a statement into the schema of a closed store, in place of that of a table if there is one."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        found = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        kind = "view" if statement.startswith("CREATE VIEW") else "table"
        page = 0 if kind == "view" else found[0] if found else 2
        db.execute("DELETE FROM sqlite_master WHERE name = ?", (name,))
        rows = db.execute("SELECT * FROM sqlite_master").fetchall()
        db.execute("DELETE FROM sqlite_master")
        rows.insert(0, (kind, name, name, page, statement))  # the first one of a name is taken
        db.executemany("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", rows)
        db.commit()


def main(cases: int) -> None:
    from tests.support.qm.stores import after, everything, filled, step

    rng, outcomes = random.Random(40), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        filled(path)
        older = path.read_bytes()
        with open_store(path) as store:
            store.commit(step(31))
        intact = path.read_bytes()
        for number in range(cases):
            kind = DAMAGES[number % len(DAMAGES)]
            path.write_bytes(data := damaged(kind, intact, older, rng))
            try:
                with open_store(path) as store:
                    whole = everything(store) == after(31)
                outcome = "unchanged" if data == intact else "harmless" if whole else "silent"
            except StoreError as exc:
                outcome = type(exc).__name__
            outcomes[outcome] += 1
            if outcome == "silent":
                print(number, kind)
    print(dict(outcomes))


if __name__ == "__main__":
    main(int(sys.argv[1]))
