"""The store in a file: what the operating system refuses, the lock, the write-ahead log, versions."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import (
    StoreDamaged,
    StoreForeign,
    StoreInUse,
    StoreNewer,
    StoreRefused,
)
from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import LAYOUT, open_store
from msmqwire.service.store import sqlite
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.sqlite import PAGE_SIZE, SqliteStore
from tests.support.paths import ROOT
from tests.support.qm.stores import LATER, after, everything, filled, refused, step, to_version

posix = pytest.mark.skipif(os.name != "posix", reason="needs limits and users of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with the steps 1 to 30 in it."""
    filled(tmp_path / "store.db")
    return tmp_path / "store.db"


class ObservedRows(dict[Any, bytes | None]):
    """Rows with a callback that runs when the store iterates over them."""

    def __init__(self, rows: dict[Any, bytes | None], callback: Callable[[], None]) -> None:
        super().__init__(rows)
        self.callback = callback

    def items(self) -> Any:
        self.callback()
        return super().items()


def test_a_commit_under_way_is_neither_seen_nor_waited_for(path: Path) -> None:
    with open_store(path) as store:
        unchanged: list[bool] = []

        def read() -> None:
            unchanged.append(everything(store) == after(30) and store.row(Table.META, b"last") == b"30")

        changes = step(31)
        *_, last = changes.rows
        changes.rows[last] = ObservedRows(changes.rows[last], read)
        store.commit(changes)
        assert unchanged
        assert all(unchanged)
        assert everything(store) == after(31)


# What the operating system refuses.


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run the block as an unprivileged user, to whom permissions apply."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@posix
def test_a_read_only_folder(path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.joinpath("store.db").write_bytes(path.read_bytes())
        folder.joinpath("store.db").chmod(0o644)  # whatever the umask is
        folder.chmod(0o555)
        try:
            with unprivileged():
                refused(folder / "store.db", StoreRefused)
                refused(folder / "other.db", StoreRefused)
        finally:
            folder.chmod(0o755)
        assert [other.name for other in folder.iterdir()] == ["store.db"]


@posix
def test_a_read_only_file(path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "store.db")
        file.write_bytes(path.read_bytes())
        file.chmod(0o444)
        if not os.geteuid():
            os.chown(name, 65534, 65534)
        with unprivileged():
            refused(file, StoreRefused)


def test_a_folder_in_place_of_the_file_and_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused):
        open_store(tmp_path)
    with pytest.raises(StoreRefused):
        open_store(tmp_path / "none" / "store.db")


@posix
def test_a_deleted_file_is_not_created_again(path: Path) -> None:
    with open_store(path) as store:
        path.unlink()
        with pytest.raises(StoreRefused):
            next(store.rows(Table.MESSAGE))
        assert not path.exists()


@contextmanager
def pages_run_out(store: SqliteStore) -> Iterator[None]:
    (limit,) = store._writer.execute("PRAGMA max_page_count").fetchone()
    store._writer.execute("PRAGMA max_page_count = 1")  # means the present number
    try:
        yield
    finally:
        store._writer.execute(f"PRAGMA max_page_count = {limit}")


@contextmanager
def files_may_not_grow(store: SqliteStore) -> Iterator[None]:
    import resource

    log = store.path.with_name(store.path.name + "-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 9000, hard))  # the first pages still fit
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "full",
    [pytest.param(pages_run_out, id="pages"), pytest.param(files_may_not_grow, id="limit", marks=posix)],
)
def test_a_refused_commit_can_be_retried_on_a_freed_disk(
    path: Path, full: Callable[[SqliteStore], Any]
) -> None:
    with open_store(path) as store:
        store.commit(step(31))
        pending = step(32)
        for number in range(100):
            pending.put(Table.OUTGOING, number, bytes(1000))
        with full(store):
            for _ in range(3):
                with pytest.raises(StoreRefused) as caught:
                    store.commit(pending)
                assert str(path) in str(caught.value)
                assert everything(store) == after(31)
                assert store.row(Table.META, b"last") == b"31"
        pending.add(step(33))
        store.commit(pending)
        expected = {**after(33), Table.OUTGOING: [(number, bytes(1000)) for number in range(100)]}
        assert everything(store) == expected
    with open_store(path) as store:
        assert everything(store) == expected


@posix
def test_killed_on_a_full_disk(path: Path) -> None:
    """Neither the file nor its log has anything of a refused commit."""
    with open_store(path) as store:
        store.commit(step(31))
        with files_may_not_grow(store), pytest.raises(StoreRefused):
            store.commit(step(32))
        copy = path.with_name("copy.db")
        for suffix in ("", "-wal"):
            copy.with_name("copy.db" + suffix).write_bytes(path.with_name("store.db" + suffix).read_bytes())
    with open_store(copy) as store:
        assert everything(store) == after(31)


def test_invalid_rows_leave_nothing_behind(path: Path) -> None:
    """A mistake of the caller is raised as it is, and the next commit succeeds."""
    with open_store(path) as store:
        for key, row in ((2**63, b""), (1, object()), ("name", b"")):
            invalid = step(31)
            invalid.put(Table.SEQUENCE, key, row)  # type: ignore[arg-type]
            with pytest.raises((OverflowError, TypeError, sqlite3.Error)):
                store.commit(invalid)
            assert everything(store) == after(30)
        store.commit(step(31))
        assert everything(store) == after(31)


def test_a_lock_of_another_program_is_awaited_then_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_WAIT_S", 0.05)
    with open_store(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreRefused, match="locked"):
            store.commit(step(31))
        assert everything(store) == after(30)
        shell.execute("ROLLBACK")
        store.commit(step(31))
        assert everything(store) == after(31)


# The lock.


def child_process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.qm.stores", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)


def test_one_process_at_a_time_and_the_lock_ends_with_it(path: Path) -> None:
    with child_process("hold", path) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
            assert "another process" in refused(path, StoreInUse).why
        finally:
            holder.kill()
    with open_store(path) as store:
        assert everything(store) == after(30)
        with child_process("open", path) as other:
            assert other.communicate()[0].startswith("StoreInUse ")
        store.commit(step(31))
    with child_process("open", path) as other:
        assert other.communicate()[0] == "opened\n"


def test_one_object_at_a_time_under_any_name(path: Path) -> None:
    alias = path.with_name("alias.db")
    alias.symlink_to(path)
    with open_store(path) as store:
        for name in (path, alias, path.parent / ".." / path.parent.name / path.name):
            with pytest.raises(StoreInUse):
                open_store(name)
        store.commit(step(31))
    with open_store(alias) as store:
        assert store.path == path.resolve()
        assert everything(store) == after(31)


def test_concurrent_opens(tmp_path: Path) -> None:
    """One of them gets the store, also while it is being created."""
    for number in range(10):
        path, results = tmp_path / f"{number}.db", []
        barrier = threading.Barrier(3)

        def open_it(
            path: Path = path, results: list[object] = results, barrier: threading.Barrier = barrier
        ) -> None:
            barrier.wait()
            try:
                results.append(open_store(path))
            except StoreInUse as exc:
                results.append(exc)

        threads = [threading.Thread(target=open_it) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stores = [store for store in results if isinstance(store, SqliteStore)]
        assert (len(stores), len(results)) == (1, 3)
        stores[0].close()


def test_a_lock_file_of_something_else_is_left_alone(path: Path) -> None:
    lock = path.with_name("store.db.lock")
    lock.write_bytes(b"1234\n" * 300)
    with pytest.raises(StoreForeign, match=r"store\.db\.lock"):
        open_store(path)
    assert lock.read_bytes() == b"1234\n" * 300


# The log.


def test_the_log_does_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 50)
    monkeypatch.setattr(sqlite, "LOG_SIZE_LIMIT", 100 * PAGE_SIZE)
    path, done = tmp_path / "store.db", threading.Event()
    log = path.with_name("store.db-wal")
    with open_store(path) as store:

        def read() -> None:
            while not done.is_set():
                store.row(Table.META, b"last")

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for number in range(1, 600):
                store.commit(step(number))
                assert log.stat().st_size < 1000 * PAGE_SIZE
        finally:
            done.set()
            reader.join()
        large = Changes()
        large.put(Table.PACKET, 1 << 40, bytes(1000 * PAGE_SIZE))
        store.commit(large)
        assert log.stat().st_size > 1000 * PAGE_SIZE
        for number in range(600, 660):
            store.commit(step(number))
        assert log.stat().st_size <= 100 * PAGE_SIZE


def test_an_abandoned_iteration_holds_nothing(path: Path) -> None:
    with open_store(path) as store:
        rows = store.rows(Table.MESSAGE)
        next(rows)
        del rows
        assert not store._open_cursors
        unfinished = store.rows(Table.MESSAGE)
        next(unfinished)
    assert not path.with_name("store.db-wal").exists()


# Versions.


def test_a_store_of_a_later_version_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {LAYOUT.version + 1}")
    assert "later" in refused(path, StoreNewer).why


def test_migration_to_a_later_version(path: Path) -> None:
    with SqliteStore(path, LATER) as store:
        assert store.version == LAYOUT.version + 2
        marked = [(key, row + b"m") for key, row in after(30)[Table.MESSAGE]]
        assert everything(store) == {**after(30), Table.MESSAGE: marked}
        noted = store._reader.execute("SELECT key, content FROM note").fetchall()
        assert noted == marked, "one step after the other"
    with SqliteStore(path, LATER) as store:
        assert list(store.rows(Table.MESSAGE)) == marked  # marked once
    refused(path, StoreNewer)


def test_a_new_store_needs_no_migration(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "new.db", LATER) as store:
        store.commit(step(1))
        assert everything(store) == after(1)


def fail(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM message")
    raise RuntimeError("the migration fails")


def drop_table(db: sqlite3.Connection) -> None:
    db.execute("DROP TABLE message")


@pytest.mark.parametrize("last, error", [(fail, RuntimeError), (drop_table, StoreDamaged)])
def test_a_failed_migration_leaves_the_old_version(
    path: Path, last: Callable[[sqlite3.Connection], None], error: type[Exception]
) -> None:
    with pytest.raises(error):
        SqliteStore(path, LATER._replace(migrations=(*LATER.migrations, last)))
    with open_store(path) as store:
        assert everything(store) == after(30)


@pytest.mark.parametrize("version", [1, 4])
def test_a_store_of_an_earlier_version_is_read_as_it_is(path: Path, version: int) -> None:
    to_version(path, version)
    with open_store(path) as store:
        assert (store.version, everything(store)) == (LAYOUT.version, after(30))
        changes = step(31)
        changes.put(Table.FORMER_STREAM, bytes(8), bytes(4))
        store.commit(changes)
        assert list(store.rows(Table.FORMER_STREAM)) == [(bytes(8), bytes(4))]
    with open_store(path) as store:
        assert everything(store) == {**after(31), Table.FORMER_STREAM: [(bytes(8), bytes(4))]}
