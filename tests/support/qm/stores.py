"""Helpers of the tests of stores: commits as a queue makes them, a store's contents, a later layout.

Run as a program, this module is the process that gets killed:

    python -m tests.support.qm.stores commit FILE     commits step by step, and prints the number of each
    python -m tests.support.qm.stores create FOLDER   creates one store after another
    python -m tests.support.qm.stores migrate FILE    migrates the store to `LATER`, slowly
    python -m tests.support.qm.stores hold FILE       opens the store, prints that and waits
    python -m tests.support.qm.stores open FILE       opens the store and prints the outcome
"""

from __future__ import annotations

import itertools
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import MsmqError, StoreError
from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import AFTER_CHECKSUMS, LAYOUT, open_store
from msmqwire.service.store import Store, sqlite
from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.sqlite import SqliteStore
from msmqwire.service.store.table import StoreTable

Rows = dict[Table, list[tuple[Key, bytes]]]
DEPTH = 10
"""Messages in the queue that `step` fills and empties."""


def identifier(number: int) -> bytes:
    return b"\x5a" * 16 + number.to_bytes(4, "little")


def step(number: int) -> Changes:
    """The changes when a message arrives and the tenth before it leaves: four tables, one counter."""
    changes = Changes()
    changes.put(Table.META, b"last", b"%d" % number)
    changes.put(Table.MESSAGE, number, b"%d" % number * 8)
    changes.put(Table.PACKET, number, number.to_bytes(4, "big") * 325)
    changes.put(Table.HISTORY, identifier(number), b"%d" % number)
    if number > DEPTH:
        changes.delete(Table.MESSAGE, number - DEPTH)
        changes.delete(Table.PACKET, number - DEPTH)
        changes.delete(Table.HISTORY, identifier(number - DEPTH))
    return changes


def after(number: int) -> Rows:
    """The contents of a store after the steps 1 to `number`."""
    merged = Changes()
    for earlier in range(max(1, number - 2 * DEPTH), number + 1):
        merged.add(step(earlier))
    return {
        table: sorted((key, row) for key, row in merged.rows.get(table, {}).items() if row is not None)
        for table in Table
    }


def last_step(store: Store) -> int:
    return int(store.row(Table.META, b"last") or 0)


def everything(store: Store) -> Rows:
    return {table: list(store.rows(table)) for table in Table}


def _marked(db: sqlite3.Connection) -> None:
    """Mark each message in a separate statement, as a migration does that reads the rows it rewrites."""
    for (key,) in db.execute("SELECT key FROM message ORDER BY key DESC").fetchall():
        change = "UPDATE message SET content = CAST(content || x'6d' AS BLOB), sum = NULL WHERE key = ?"
        db.execute(change, (key,))


def _noted(db: sqlite3.Connection) -> None:
    db.execute(LATER.tables[LaterTable.NOTE])
    db.execute("INSERT INTO note SELECT key, content, NULL FROM message")


class LaterTable(StoreTable):
    """The tables that later versions add."""

    NOTE = "note"


NOTE = "CREATE TABLE note (key INTEGER PRIMARY KEY, content BLOB NOT NULL, sum INTEGER)"
LATER = LAYOUT._replace(
    tables={**LAYOUT.tables, LaterTable.NOTE: NOTE}, migrations=(*LAYOUT.migrations, _marked, _noted)
)
"""Two versions later: messages are marked, and then copied into a table of their own."""


def filled(path: Path) -> None:
    """Create a store with the steps 1 to 30."""
    with open_store(path) as store:
        for number in range(1, 31):
            store.commit(step(number))


def change(path: Path, *sql: str) -> None:
    """Change a closed store by SQL, without its checksums."""
    with closing(sqlite3.connect(path)) as db:
        for statement in sql:
            db.execute(statement)
        db.commit()


def to_version(path: Path, version: int) -> None:
    """Make a closed store one of an earlier version, before checksums."""
    with closing(sqlite3.connect(path)) as db:
        for table in Table:
            if table in AFTER_CHECKSUMS:
                db.execute(f'DROP TABLE "{table.value}"')
            else:
                db.execute(f'ALTER TABLE "{table.value}" DROP COLUMN sum')
        db.execute("DROP TABLE row_count")
        if version < 4:
            db.execute("DROP TABLE former_stream")
        db.execute(f"PRAGMA user_version = {version}")


def refused(path: Path, kind: type[StoreError], **options: Any) -> StoreError:
    """Return the error of opening a file; the file stays unchanged and unlocked."""
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(MsmqError) as caught:
            open_store(path, **options)
        assert type(caught.value) is kind
        assert (path.read_bytes() if path.exists() else None) == before
    assert isinstance(caught.value, kind)
    assert str(path) in str(caught.value)
    assert caught.value.file == str(path)
    return caught.value


def main(command: str, path: str) -> None:
    sqlite.CHECKPOINT_PAGES = 20  # type: ignore[misc]  # so that many kills hit one
    match command:
        case "commit":
            with open_store(path) as store:
                for number in itertools.count(last_step(store) + 1):
                    store.commit(step(number))
                    print(number, flush=True)
        case "create":
            for number in itertools.count():
                open_store(Path(path, f"{number}.db")).close()
                print(number, flush=True)
        case "migrate":
            print("ready", flush=True)
            SqliteStore(path, LATER).close()
        case "hold":
            with open_store(path):
                print("ready", flush=True)
                time.sleep(600)  # until it is killed
        case "open":
            try:
                open_store(path).close()
            except StoreError as exc:
                print(type(exc).__name__, exc)
            else:
                print("opened")


if __name__ == "__main__":
    main(*sys.argv[1:])
