"""Rows that are lost, changed, moved or outdated are damage, which is reported and never passed over."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msmqwire.errors import StoreDamaged, StoreError
from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import LAYOUT, open_store
from msmqwire.service.store import sqlite
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.row_sums import row_sum
from msmqwire.service.store.sqlite import SqliteStore
from tests.support.qm.damages import DAMAGES, HOSTILE_SCHEMAS, damaged, with_schema
from tests.support.qm.stores import after, change, everything, filled, refused, step, to_version

CHANGES = {
    "content": ("UPDATE message SET content = x'00' WHERE key = 25", "row 25 of the table message is not"),
    "key": ("UPDATE message SET key = 99 WHERE key = 25", "row 99 of the table message is not"),
    "long key": (f"UPDATE message SET key = {25 + (1 << 32)} WHERE key = 25", "of the table message is not"),
    "name": ("UPDATE meta SET key = x'6c61' WHERE key = x'6c617374'", "row b'la' of the table meta is not"),
    "table": ("INSERT INTO queue SELECT * FROM message WHERE key = 25", "row 25 of the table queue is not"),
    "checksum": ("UPDATE packet SET sum = sum + 1 WHERE key = 25", "row 25 of the table packet is not"),
    "no checksum": ("UPDATE packet SET sum = NULL WHERE key = 25", "row 25 of the table packet is not"),
    "text checksum": ("UPDATE packet SET sum = 'x' WHERE key = 25", "row 25 of the table packet is not"),
    "no bytes": ("UPDATE packet SET content = 7 WHERE key = 25", "row 25 of the table packet has no bytes"),
    "lost": ("DELETE FROM message WHERE key = 25", "the table message has lost 1 of 10 rows"),
    "last": ("DELETE FROM meta", "the table meta has lost 1 of 1 row"),
    "many": ("DELETE FROM packet WHERE key > 22", "the table packet has lost 8 of 10 rows"),
    "count": ("DELETE FROM row_count WHERE key = CAST('queue' AS BLOB)", "rows of the table queue is lost"),
    "count content": ("UPDATE row_count SET content = x'00'", "the table meta is not the one that was"),
    "count bytes": ("UPDATE row_count SET content = 5", "the table meta is not the one that was"),
    "counts": ("DELETE FROM row_count", "the count of the rows of the table meta is lost"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with the steps 1 to 30 in it: 10 messages, 21 to 30."""
    filled(tmp_path / "store.db")
    return tmp_path / "store.db"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any file is too large for a check of all rows when it is opened."""
    monkeypatch.setattr(sqlite, "CHECKED_SIZE", 0)
    monkeypatch.setattr(sqlite, "CHECKED_ROWS", -1)


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_row_is_reported_when_the_store_is_opened(path: Path, name: str) -> None:
    sql, reason = CHANGES[name]
    change(path, sql)
    why = refused(path, StoreDamaged).why
    assert reason in why
    assert f"`msmqwire check {path.parent}` names what is lost; put back a copy" in why


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", [name for name in CHANGES if "count" not in name])
def test_a_changed_row_is_reported_when_the_rows_are_read(path: Path, name: str) -> None:
    sql, reason = CHANGES[name]
    change(path, sql)
    with open_store(path) as store:
        if "checksum" not in name:  # the row itself is right
            with pytest.raises(StoreDamaged, match=reason.split("'")[-1]):
                everything(store)
        with pytest.raises(StoreDamaged):
            store.check()


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("name", HOSTILE_SCHEMAS)
def test_nothing_in_the_schema_is_run_when_a_store_is_opened(path: Path, name: str, version: int) -> None:
    with_schema(path, *HOSTILE_SCHEMAS[name])
    change(path, f"PRAGMA user_version = {version}")
    refused(path, StoreDamaged)


@pytest.mark.usefixtures("large")
def test_a_changed_row_alone_is_refused_when_it_is_read(path: Path) -> None:
    change(path, "UPDATE packet SET content = x'00' WHERE key = 25")
    with open_store(path) as store:
        for key in range(21, 31):  # some are read ahead
            if key == 25:
                with pytest.raises(StoreDamaged, match="row 25 of the table packet is not the one"):
                    store.row(Table.PACKET, key)
            else:
                assert store.row(Table.PACKET, key) == key.to_bytes(4, "big") * 325
        assert list(store.rows(Table.MESSAGE)) == after(30)[Table.MESSAGE]


@pytest.mark.usefixtures("large")
def test_bulky_tables_of_large_files_are_left_to_their_reader(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECKED_ROWS", 1000)
    change(path, "DELETE FROM packet WHERE key = 25")
    open_store(path).close()
    change(path, "DELETE FROM history")
    assert "the table history has lost 10 of 10 rows" in refused(path, StoreDamaged).why


def test_a_row_of_an_earlier_commit_is_reported(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        (old,) = db.execute("SELECT sum FROM meta").fetchone()
    with open_store(path) as store:
        store.commit(step(31))
    change(path, f"UPDATE meta SET content = CAST('30' AS BLOB), sum = {old}")
    assert "the table meta has rows older than the last" in refused(path, StoreDamaged).why


def test_a_count_of_an_earlier_commit_is_reported(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        old = db.execute("SELECT * FROM row_count WHERE key = CAST('meta' AS BLOB)").fetchone()
    with open_store(path) as store:
        store.commit(step(31))
    with closing(sqlite3.connect(path)) as db:
        db.execute("REPLACE INTO row_count VALUES (?, ?, ?)", old)
        db.commit()
    assert "the table meta has rows older" in refused(path, StoreDamaged).why


@pytest.mark.usefixtures("large")
def test_more_deleted_rows_than_counted_refuse_the_commit(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        for key in range(1000, 1030):
            row = (key, b"x", row_sum(Table.MESSAGE, key, b"x"))
            db.execute("INSERT INTO message VALUES (?, ?, ?)", row)
        db.commit()
    changes = Changes()
    for key in range(1000, 1030):
        changes.delete(Table.MESSAGE, key)
    with open_store(path) as store, pytest.raises(StoreDamaged, match="had more rows than were written"):
        store.commit(changes)


@pytest.mark.parametrize("keys", [range(3), range(200)], ids=["few", "many"])
def test_rows_written_again_and_deleted_twice_are_counted_once(path: Path, keys: range) -> None:
    with open_store(path) as store:
        for row in (b"first", b"second", b"second", None, None, b"third"):
            changes = Changes()
            for key in keys:
                changes.rows.setdefault(Table.QUEUE, {})[key] = row
                changes.rows.setdefault(Table.INCOMING, {})[b"%d" % key] = row
            store.commit(changes)
            store.check()
    with open_store(path) as store:
        assert list(store.rows(Table.QUEUE)) == [(key, b"third") for key in keys]


# Earlier versions.


def test_rows_of_earlier_versions_get_checksums_when_written(path: Path) -> None:
    to_version(path, 4)
    open_store(path).close()
    change(path, "UPDATE message SET content = x'00' WHERE key = 25")  # nothing shows that
    with open_store(path) as store:
        store.commit(step(31))  # 21 goes
        again = Changes()
        again.put(Table.MESSAGE, 26, b"again")
        store.commit(again)
        assert [key for key, _ in store.rows(Table.MESSAGE)] == list(range(22, 32))
        store.check()
    with closing(sqlite3.connect(path)) as db:
        summed = db.execute("SELECT key FROM message WHERE sum IS NOT NULL").fetchall()
    assert summed == [(26,), (31,)]
    change(path, "UPDATE message SET content = x'00' WHERE key = 26")
    assert "row 26 of the table message is not the one" in refused(path, StoreDamaged).why


def test_lost_rows_of_earlier_versions_are_reported_after_that(path: Path) -> None:
    to_version(path, 4)
    open_store(path).close()
    change(path, "DELETE FROM message WHERE key = 25")
    assert "the table message has lost 1 of 10 rows" in refused(path, StoreDamaged).why


def test_a_checksum_that_is_lost_after_that_is_reported(path: Path) -> None:
    to_version(path, 4)
    with open_store(path) as store:
        store.commit(step(31))
    change(path, "UPDATE message SET sum = NULL WHERE key = 31")
    assert "the table message has rows older" in refused(path, StoreDamaged).why


def test_a_damaged_store_is_not_migrated(path: Path) -> None:
    change(path, "DELETE FROM message WHERE key = 25")
    later = LAYOUT._replace(migrations=(*LAYOUT.migrations, lambda db: None))
    with pytest.raises(StoreDamaged, match="has lost 1 of 10 rows"):
        SqliteStore(path, later)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (LAYOUT.version,)


# Damage of any kind.


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[bytes, bytes]]:
    """A file, and the same one before its last steps."""
    path = tmp_path_factory.mktemp("files") / "store.db"
    filled(path)
    older = path.read_bytes()
    with open_store(path) as store:
        store.commit(step(31))
    return path.read_bytes(), older


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_reported_or_harmless(path: Path, files: tuple[bytes, bytes], kind: str) -> None:
    rng, intact = random.Random(f"{kind} 40"), files[0]
    for _ in range(8):
        path.write_bytes(damaged(kind, *files, rng))
        try:
            with open_store(path) as store:
                assert everything(store) == after(31)
        except StoreError:
            assert path.read_bytes() != intact
