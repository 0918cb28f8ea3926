"""Rows of a file that are read one after the other are read many at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import open_store
from msmqwire.service.store import read_ahead, sqlite
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.sqlite import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with open_store(tmp_path / "store.db") as store:
        yield store


@pytest.fixture
def statements(store: SqliteStore) -> list[str]:
    """The statements that read rows from now on."""
    told: list[str] = []
    store._reader.set_trace_callback(told.append)
    return told


def put(store: SqliteStore, rows: dict[int, bytes | None], table: Table = Table.PACKET) -> None:
    changes = Changes()
    for key, row in rows.items():
        if row is None:
            changes.delete(table, key)
        else:
            changes.put(table, key, row)
    store.commit(changes)


def test_rows_one_after_the_other_take_few_statements(store: SqliteStore, statements: list[str]) -> None:
    rows = {key: b"%d" % key for key in range(1, 400, 3)}
    put(store, rows)
    put(store, rows, Table.MESSAGE)
    for key, row in rows.items():
        assert (store.row(Table.PACKET, key), store.row(Table.MESSAGE, key)) == (row, row)
    assert len(statements) == 2 * (1 + 6)  # the first row alone, then 22 of 64 keys at a time


def test_rows_far_from_each_other_and_backward_are_read_alone(
    store: SqliteStore, statements: list[str]
) -> None:
    put(store, {key: b"%d" % key for key in range(1, 400)})
    for key in (*range(1, 400, 17), 300, 299, 5, 5):
        assert store.row(Table.PACKET, key) == b"%d" % key
    assert len(statements) == 24 + 4
    assert not any("ORDER" in statement for statement in statements)


def test_what_was_read_ahead_is_read_again_when_it_has_changed(store: SqliteStore) -> None:
    put(store, dict.fromkeys(range(10), b"old"))
    assert [store.row(Table.PACKET, key) for key in (1, 2)] == [b"old"] * 2
    put(store, {4: b"new", 5: None, 20: b"new"})
    put(store, {6: b"other"}, Table.MESSAGE)
    assert [store.row(Table.PACKET, key) for key in (3, 4, 5, 6, 20)] == [
        b"old",
        b"new",
        None,
        b"old",
        b"new",
    ]


def test_a_row_is_kept_until_it_is_asked_for_once(store: SqliteStore, statements: list[str]) -> None:
    put(store, dict.fromkeys(range(10), b"x"))
    for _ in range(3):
        for key in (1, 2, 3):
            assert store.row(Table.PACKET, key) == b"x"
    assert sum("ORDER" in statement for statement in statements) >= 1
    assert len(store._ahead._rows[Table.PACKET]) < read_ahead.ROWS


def test_no_more_is_read_ahead_than_a_few_large_rows(store: SqliteStore, statements: list[str]) -> None:
    put(store, {key: bytes(100_000) for key in range(10)})
    for key in range(10):
        assert store.row(Table.PACKET, key) == bytes(100_000)
        kept = store._ahead._rows.get(Table.PACKET, {})
        assert sum(len(row) for row, _ in kept.values()) < 300_000
    assert len(statements) == 1 + 3


def test_a_row_without_bytes_is_refused_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECKED_SIZE", 0)
    path = tmp_path / "store.db"
    with open_store(path) as store:
        put(store, dict.fromkeys(range(1, 5), b"x"))
    with sqlite3.connect(path) as db:
        db.execute('UPDATE "packet" SET content = 7 WHERE key = 3')
    db.close()
    with open_store(path) as store:
        assert [store.row(Table.PACKET, key) for key in (1, 2)] == [b"x"] * 2
        with pytest.raises(Exception, match="has no bytes"):
            store.row(Table.PACKET, 3)
        assert store.row(Table.PACKET, 4) == b"x"
