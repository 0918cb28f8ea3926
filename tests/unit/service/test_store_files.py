"""Files that are not an intact store are refused, and left unchanged."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from msmqwire.errors import StoreDamaged, StoreError, StoreForeign, StoreMissing, StoreNewer, StoreRefused
from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import APPLICATION_ID, LAYOUT, open_store
from msmqwire.service.store import sqlite
from msmqwire.service.store.sqlite import PAGE_SIZE
from tests.support.qm.stores import after, everything, filled, refused, step


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with the steps 1 to 30 in it."""
    filled(tmp_path / "store.db")
    return tmp_path / "store.db"


def test_a_closed_store_is_one_file_beside_its_lock(path: Path) -> None:
    assert {other.name for other in path.parent.iterdir()} == {"store.db", "store.db.lock"}
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (LAYOUT.version,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_returns_from_a_commit_was_synced(path: Path) -> None:
    with open_store(path) as store:
        for db in (store._writer, store._reader):
            assert db.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.parametrize("size", [0, 1, 16, 71, 72, 99, 100, 1000, PAGE_SIZE, 5 * PAGE_SIZE, -PAGE_SIZE, -1])
def test_a_cut_file_is_refused(path: Path, size: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:size])
    kind = StoreForeign if 0 < size < 16 else StoreDamaged  # too short to recognise
    assert "copy" in refused(path, kind).why or kind is StoreForeign


@pytest.mark.parametrize(
    "at, size, kind",
    [
        pytest.param(0, 16, StoreDamaged, id="magic"),
        pytest.param(0, 100, StoreForeign, id="header"),
        pytest.param(0, PAGE_SIZE, StoreForeign, id="first page"),
        pytest.param(16, 8, StoreDamaged, id="sizes"),
        pytest.param(28, 4, StoreDamaged, id="page count"),
        pytest.param(40, 8, StoreDamaged, id="schema format"),
        pytest.param(60, 4, StoreDamaged, id="version"),
        pytest.param(100, 300, StoreDamaged, id="tree of the schema"),
        pytest.param(PAGE_SIZE - 300, 300, StoreDamaged, id="statements of the schema"),
    ],
)
def test_an_overwritten_header_is_refused(path: Path, at: int, size: int, kind: type[StoreError]) -> None:
    data = bytearray(path.read_bytes())
    for filling in (b"\xa5", b"\0"):
        if at in (28, 40) and filling == b"\0":
            continue  # SQLite ignores a zero here, as files of old writers have one
        data[at : at + size] = filling * size
        path.write_bytes(data)
        refused(path, kind)


def test_any_corrupt_byte_of_the_first_page(path: Path) -> None:
    """The file is refused, or its rows are unaffected."""
    intact, rng = path.read_bytes(), random.Random(1801)
    for at in [*range(112), *rng.sample(range(112, PAGE_SIZE), 30)]:
        data = bytearray(intact)
        data[at] = rng.choice([byte for byte in (0, 1, 2, 0x7F, 0xFF) if byte != intact[at]])
        path.write_bytes(data)
        with suppress(StoreDamaged, StoreForeign, StoreNewer, StoreRefused), open_store(path) as store:
            assert everything(store) == after(30)
            store.commit(step(31))
            assert everything(store) == after(31)


def test_an_overwritten_page_is_detected_when_it_is_read(path: Path) -> None:
    intact, rng = path.read_bytes(), random.Random(1801)
    assert len(intact) > 10 * PAGE_SIZE
    for at in range(0, len(intact), PAGE_SIZE):
        for filling in (rng.randbytes(PAGE_SIZE), bytes(PAGE_SIZE)):
            data = intact[:at] + filling + intact[at + PAGE_SIZE :]
            path.write_bytes(data)
            try:
                with open_store(path) as store:
                    assert everything(store) == after(30), "the damage was not detected"
                    assert at // PAGE_SIZE + 1 in free_pages(intact)
            except (StoreDamaged, StoreForeign):
                pass
            assert path.read_bytes() == data


def free_pages(data: bytes) -> set[int]:
    """Return the pages of the freelist: its trunks and their leaves."""
    number = lambda at: int.from_bytes(data[at : at + 4], "big")  # noqa: E731
    pages, trunk = set(), number(32)
    while trunk:
        at = (trunk - 1) * PAGE_SIZE
        pages |= {trunk, *(number(at + 8 + 4 * leaf) for leaf in range(number(at + 4)))}
        trunk = number(at)
    return pages


def test_a_damaged_table_is_reported_by_reads_and_commits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECKED_SIZE", 0)
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'packet'").fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * PAGE_SIZE : page * PAGE_SIZE] = b"\xa5" * PAGE_SIZE
    path.write_bytes(data)
    with open_store(path) as store:
        with pytest.raises(StoreDamaged):
            store.row(Table.PACKET, 30)
        with pytest.raises(StoreDamaged):
            store.commit(step(31))
        assert list(store.rows(Table.MESSAGE)) == after(30)[Table.MESSAGE]


def test_a_row_without_bytes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "CHECKED_SIZE", 0)
    with closing(sqlite3.connect(path)) as db:
        for key, content in ((1, 5), (2, 1.5)):
            db.execute("INSERT INTO packet VALUES (?, ?, NULL)", (key, content))
        db.commit()
    with open_store(path) as store:
        for key in (1, 2):
            with pytest.raises(StoreDamaged):
                store.row(Table.PACKET, key)
        with pytest.raises(StoreDamaged):
            next(store.rows(Table.PACKET))


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE history",
        "CREATE TABLE more (key INTEGER PRIMARY KEY)",
        "CREATE INDEX more ON message (content)",
        "ALTER TABLE queue ADD COLUMN more",
        "CREATE TRIGGER more AFTER INSERT ON message BEGIN DELETE FROM packet; END",
    ],
)
def test_other_tables_than_ours_are_refused(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
    assert "tables" in refused(path, StoreDamaged).why


@pytest.mark.parametrize("content", [b"x", b"PK\x03\x04" + bytes(500), b"[queues]\n" * 100, bytes(8192)])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    assert "name another file" in refused(path, StoreForeign).why


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA user_version = 1")
        for statement in LAYOUT.tables.values():
            db.execute(statement)
        db.commit()
    assert "another program" in refused(path, StoreForeign).why


def test_a_log_without_its_file_is_not_treated_as_a_new_store(path: Path) -> None:
    with open_store(path) as store:
        store.commit(step(31))
        data, log = path.read_bytes(), path.with_name("store.db-wal").read_bytes()
    path.unlink()
    path.with_name("store.db-wal").write_bytes(log)
    assert "log" in refused(path, StoreDamaged).why
    path.write_bytes(data)
    with open_store(path) as store:
        assert everything(store) == after(31)


def test_a_missing_store_is_not_created_unless_asked_for(tmp_path: Path) -> None:
    refused(tmp_path / "store.db", StoreMissing, create=False)
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_new_file_is_replaced(tmp_path: Path) -> None:
    tmp_path.joinpath("store.db.new").write_bytes(b"SQLite format 3\0")
    with open_store(tmp_path / "store.db") as store:
        store.commit(step(1))
        assert everything(store) == after(1)
    assert not tmp_path.joinpath("store.db.new").exists()


@pytest.mark.parametrize("name", ["a b.db", "50%20#?&.db", "Ümlaut ☃.db", "store"])
def test_names_of_files(tmp_path: Path, name: str) -> None:
    with open_store(str(tmp_path / name)) as store:
        store.commit(step(1))
    assert tmp_path.joinpath(name).is_file()
    with open_store(tmp_path / name, create=False) as store:
        assert everything(store) == after(1)
