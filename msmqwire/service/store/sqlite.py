"""A store in a SQLite file: one table for each `Table`, one transaction for each commit.

While it is open, the folder also has its write-ahead log (``-wal``), the index of the log (``-shm``) and an
empty file (``.lock``), on which the process with the open store holds a lock. The file and its log belong
together: after a crash the latest commits are in the log only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from types import TracebackType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msmqwire.durable import make_private, result_code, sync_directory
from msmqwire.errors import (
    StoreDamaged,
    StoreMissing,
    StoreNewer,
    StoreRefused,
)
from msmqwire.names.printable import counted
from msmqwire.ownership import check_siblings
from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.file_check import check_header, damaged
from msmqwire.service.store.layout import COUNTS, Layout, Schema, schema_of
from msmqwire.service.store.log_check import lost_transactions
from msmqwire.service.store.read_ahead import ReadAhead
from msmqwire.service.store.row_counts import (
    Audit,
    RowCount,
    WrongRows,
    check_counted,
    check_row,
    check_table,
    load_counts,
    recount,
    store_counts,
    write_rows,
)
from msmqwire.service.store.statements import statements
from msmqwire.service.store.store_lock import StoreLock
from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    from typing import Self

# Measured with benchmarks/store.py. The log holds whole pages: with larger ones a commit of one message costs
# a fifth more, one of many messages up to a tenth less. Several rows in one statement gain nothing.
PAGE_SIZE: Final = 4096
CACHE_KIB: Final = 16 << 10
CHECKPOINT_PAGES: Final = 4000
"""Pages in the log after which a commit runs a checkpoint, 16 MB."""
LOG_SIZE_LIMIT: Final = 64 << 20
"""Bytes that the log keeps on disk when it restarts after a checkpoint: it can use them on a full disk."""
BUSY_WAIT_S: Final = 1.0
"""The wait for another program that reads the file."""
FETCH_SIZE: Final = 64
CHECKED_SIZE: Final = 32 << 20
"""Bytes of a file up to which all rows are checked when it is opened."""
CHECKED_ROWS: Final = 1000
"""Rows up to which a table is checked when a larger file is opened, unless they are large themselves."""

_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_REFUSED: Final = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}

_NO_ROOM: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_LOG_PAGES_MIN: Final = 16


class SqliteStore:
    """A `Store` in a file. Only one process at a time can have it open, and only once.

    Opening checks the header, the size and the tables of the file, in a small file each row and in others
    those of short tables, and migrates an older version. Any row is checked when it is read, and with `rows`
    whether all are there.

    Attributes:
        rows_read: the number of rows that `rows` has read so far, of all tables.

    Args:
        path: the file. Symbolic links are followed.
        layout: its tables.
        create: whether to create the file if it is missing; its folder must exist.
        lock: the lock on it, if it has been taken before; it ends with the store, also with a failed opening.

    Raises:
        StoreDamaged, StoreForeign, StoreInUse, StoreMissing, StoreNewer, StoreRefused: the file can't be
            opened, for the reason that the class names.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        layout: Layout,
        *,
        create: bool = True,
        lock: StoreLock | None = None,
    ) -> None:
        self._path = Path(os.path.realpath(path))
        self._layout = layout
        self._writing = Lock()
        self._reading = RLock()  # reentrant: garbage collection may end `rows` anywhere
        self._open_cursors: set[sqlite3.Cursor] = set()
        self._ahead = ReadAhead()
        self._counts: dict[str, RowCount] = {}
        self._closed = False
        self.rows_read = 0
        if not (create or self._path.exists()):
            raise StoreMissing("there is no such store", file=str(self._path))
        try:
            check_siblings(self._path)
            with ExitStack() as stack:
                self._lock = stack.enter_context(closing(lock or StoreLock(self._path)))
                if not self._path.exists():
                    self._create()
                check_header(self._path, layout)
                self._check_log()
                self._writer = stack.enter_context(closing(self._connect()))
                self._prepare(self._writer)
                self._reader = stack.enter_context(closing(self._connect()))
                self._reader.execute("PRAGMA query_only = ON")
                stack.pop_all()
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc
        except WrongRows as exc:
            raise self._damaged(str(exc)) from exc
        except UnicodeDecodeError as exc:  # the module sqlite3 can't even pass on SQLite's message
            raise self._damaged("its tables are overwritten") from exc
        except OSError as exc:
            raise self._refused(exc.strerror or str(exc)) from exc

    @property
    def path(self) -> Path:
        """The file, with symbolic links resolved."""
        return self._path

    @property
    def version(self) -> int:
        return self._layout.version

    def commit(self, changes: Changes) -> None:
        with self._writing:
            self._check_open()
            if not changes:
                return
            try:
                self._write(changes)
            except sqlite3.Error as exc:
                if result_code(exc) not in _NO_ROOM:
                    raise self._translate(exc) from exc
            else:
                return
            self._shorten_log()  # it may hold many versions of a page
            try:
                self._write(changes)
            except sqlite3.Error as exc:
                raise self._translate(exc) from exc

    def _write(self, changes: Changes) -> None:
        """Write the changes, and the new counts. Raises StoreDamaged and sqlite3.Error."""
        try:
            with _transaction(self._writer) as db:
                counts = {
                    table.value: write_rows(db, table, rows, self._counts[table.value])
                    for table, rows in changes.rows.items()
                }
                store_counts(db, counts)
        except WrongRows as exc:
            raise self._damaged(str(exc)) from exc
        with self._reading:
            self._counts |= counts
            self._ahead.forget(changes)

    # Room on the disk.

    def limit_log(self, size: int) -> None:
        """Move the content of the log into the file before it has about this many bytes."""
        pages = max(_LOG_PAGES_MIN, min(CHECKPOINT_PAGES, size // PAGE_SIZE))
        with self._writing:
            self._check_open()
            self._writer.execute(f"PRAGMA wal_autocheckpoint = {pages}")

    def shorten_log(self) -> None:
        """Move the content of the log into the file as far as the disk allows, and free its room."""
        with self._writing:
            self._check_open()
            self._shorten_log()

    def _shorten_log(self) -> None:
        with suppress(sqlite3.Error):  # then it stays as it is
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def reusable(self) -> int:
        """Return the bytes of the pages inside the file that are free for new rows."""
        with self._writing:
            self._check_open()
            try:
                (pages,) = self._writer.execute("PRAGMA freelist_count").fetchone()
            except sqlite3.Error as exc:
                raise self._translate(exc) from exc
        return int(pages) * PAGE_SIZE

    def rows(self, table: StoreTable) -> Iterator[tuple[Key, bytes]]:
        size = FETCH_SIZE if table in self._layout.bulky else 4 * FETCH_SIZE  # of large rows fewer at once
        # A separate connection gives the iteration a snapshot, which `row` must not have.
        try:
            with self._reading:
                self._check_open()
                db = self._connect()
                cursor = db.cursor()
                self._open_cursors.add(cursor)
            try:
                with self._reading:
                    self._check_open()
                    cursor.execute("BEGIN")
                    audit = Audit(db, table)
                    batch = cursor.execute(audit.statement).fetchmany(size)
                while batch:
                    yield from audit.rows(batch)
                    self.rows_read += len(batch)
                    with self._reading:
                        self._check_open()
                        batch = cursor.fetchmany(size)
                with self._reading:
                    self._check_open()
                    audit.end()
            finally:
                with self._reading:
                    self._close_cursor(cursor)
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc
        except WrongRows as exc:
            raise self._damaged(str(exc)) from exc

    @property
    def rows_to_restore(self) -> int:
        """The number of rows of the tables that a start reads: of all but the bulky ones."""
        bulky = {table.value for table in self._layout.bulky}
        return sum(count.rows for table, count in self._counts.items() if table not in bulky)

    def _close_cursor(self, cursor: sqlite3.Cursor) -> None:
        if cursor in self._open_cursors:
            self._open_cursors.remove(cursor)
            cursor.close()
            cursor.connection.close()

    def row(self, table: StoreTable, key: Key) -> bytes | None:
        with self._reading:
            self._check_open()
            try:
                found = statements(table)
                result = self._ahead.row(self._reader, table, key, (found.row, found.some))
                if result is None:
                    return None
                unsummed = self._counts[table.value].unsummed > 0
                return check_row(table, key, *result, unsummed=unsummed)
            except sqlite3.Error as exc:
                raise self._translate(exc) from exc
            except WrongRows as exc:
                raise self._damaged(str(exc)) from exc

    def check(self) -> None:
        """Check all rows of all tables, as of now. Raises the subclasses of StoreError."""
        try:
            with self._reading:
                self._check_open()
                with _transaction(self._reader, "BEGIN") as db:
                    for table, count in self._present_counts(db):
                        check_table(db, table, count)
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc
        except WrongRows as exc:
            raise self._damaged(str(exc)) from exc

    def _present_counts(self, db: sqlite3.Connection) -> list[tuple[StoreTable, RowCount]]:
        counts = load_counts(db, self._layout.tables)
        return [(table, counts[table.value]) for table in self._layout.tables]

    def close(self) -> None:
        with self._writing, self._reading:
            if self._closed:
                return
            self._closed = True
            for cursor in list(self._open_cursors):
                self._close_cursor(cursor)
            self._reader.close()
            self._writer.close()  # the last connection: closing it runs a checkpoint
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the store is closed")

    # Opening.

    def _create(self) -> None:
        """Create the file atomically: it gets its name when it has all tables and is on disk."""
        if self._sibling("-wal").exists():
            raise self._damaged("the file is gone but its log (-wal) is there; put the file back")
        new = self._sibling(".new")
        statements = (*self._layout.tables.values(), COUNTS)
        with new_file(new, self._layout.application_id, self._layout.version, statements) as db:
            store_counts(db, {table.value: RowCount() for table in self._layout.tables})
        os.replace(new, self._path)
        sync_directory(self._path.parent)

    def _check_log(self) -> None:
        """Refuse a log that lacks durable transactions: SQLite would cut it short, and later overwrite it."""
        if lost := lost_transactions(self._sibling("-wal"), PAGE_SIZE):
            raise self._damaged(
                f"a part of the log (-wal) is overwritten, before {counted(lost, 'commit')} or more"
            )

    def _connect(self) -> sqlite3.Connection:
        path = self._path.as_posix()
        uri = f"file://{'' if path.startswith('/') else '/'}{quote(path)}?mode=rw"  # never creates the file
        db = sqlite3.connect(
            uri, uri=True, timeout=BUSY_WAIT_S, isolation_level=None, check_same_thread=False
        )
        db.text_factory = bytes  # only a damaged row has text, which may not even be UTF-8
        try:
            _configure(db)
        except sqlite3.Error as exc:
            db.close()
            if result_code(exc) == sqlite3.SQLITE_ERROR:  # an unknown number in the header
                raise self._damaged(str(exc)) from exc
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Check version, size and tables; set up the log and migrate older versions."""
        (version,) = db.execute("PRAGMA user_version").fetchone()  # this also recovers the log after a crash
        if version > self.version:
            reason = (
                f"the store has version {version}, this msmqwire reads {self.version}; use the later msmqwire"
            )
            raise StoreNewer(reason, file=str(self._path))
        if version < 1:
            raise self._damaged("the store has no version")
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != b"wal":
            raise self._refused("this file system can't hold a write-ahead log")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        db.execute(f"PRAGMA journal_size_limit = {LOG_SIZE_LIMIT}")
        self._check_size(db)
        # One transaction for all migrations: a store whose process is killed meanwhile keeps its old version.
        with _transaction(db):
            if version < self.version:
                self._migrate(db, version)
            self._check_tables(db)
        self._counts = load_counts(db, self._layout.tables)
        self._check_rows(db)

    def _migrate(self, db: sqlite3.Connection, version: int) -> None:
        # The statements that follow would run a view or a trigger, which no version has made.
        self._refuse_tables(schema_of(db) - self._layout.schemas)
        check_counted(db, self._layout.tables)
        for migration in self._layout.migrations[version - 1 :]:
            migration(db)
        db.execute(f"PRAGMA user_version = {self.version}")
        self._check_tables(db)
        store_counts(db, {table.value: recount(db, table) for table in self._layout.tables})

    def _check_rows(self, db: sqlite3.Connection) -> None:
        """Check the rows of a small file, and of short tables of another one; a start reads most others."""
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        small = pages * PAGE_SIZE <= CHECKED_SIZE
        for table in self._layout.tables:
            count = self._counts[table.value]
            if small or (count.rows <= CHECKED_ROWS and table not in self._layout.bulky):
                check_table(db, table, count)

    def _check_size(self, db: sqlite3.Connection) -> None:
        try:
            busy, logged, checkpointed = db.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        except sqlite3.OperationalError:
            return  # on a full disk the log stays as it is, and the store can be read
        if busy or logged != checkpointed:
            return  # as above, or another program is reading: the file is not complete without its log
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        (page_size,) = db.execute("PRAGMA page_size").fetchone()
        if self._path.stat().st_size < pages * page_size:
            raise self._damaged("the file is cut off")

    def _check_tables(self, db: sqlite3.Connection) -> None:
        self._refuse_tables(schema_of(db) ^ self._layout.schema)

    def _refuse_tables(self, wrong: Schema) -> None:
        if names := sorted({name for name, _ in wrong}):
            raise self._damaged(f"these tables are not as they should be: {', '.join(names)}")

    # Errors.

    def _translate(self, exc: sqlite3.Error) -> Exception:
        """Return the `StoreError` that an error means; the error itself if the caller made a mistake."""
        code = result_code(exc)
        if code in _DAMAGED:
            return self._damaged(str(exc))
        if code == sqlite3.SQLITE_FULL:
            return self._refused("the disk is full; make room, nothing is lost")
        if code in _REFUSED:
            return self._refused(f"{exc} ({exc.sqlite_errorname})")
        return exc

    def _damaged(self, reason: str) -> StoreDamaged:
        return damaged(self._path, reason)

    def _refused(self, reason: str) -> StoreRefused:
        return StoreRefused(reason, file=str(self._path))

    def _sibling(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


def _configure(db: sqlite3.Connection) -> None:
    """Apply the settings that every connection has and that write nothing into the file."""
    for setting in (
        "synchronous = FULL",  # a commit is on disk when it returns
        "fullfsync = ON",  # on macOS, where fsync alone does not suffice
        "checkpoint_fullfsync = ON",
        f"cache_size = -{CACHE_KIB}",
        "secure_delete = OFF",  # some builds overwrite deleted rows with zeros: more pages to write
        "cell_size_check = ON",  # detects a damaged page when it is read; too cheap to measure
        "trusted_schema = OFF",
    ):
        db.execute(f"PRAGMA {setting}")


@contextmanager
def new_file(
    path: Path, application_id: int, version: int, statements: Iterable[str]
) -> Iterator[sqlite3.Connection]:
    """Create a file with tables; they are on disk, with the rows that the block writes, when it ends.

    A file of this name that was left by a process that was killed is replaced: the caller has the lock.
    """
    path.unlink(missing_ok=True)
    make_private(path)  # SQLite gives its log the same permissions
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        _configure(db)
        with _transaction(db):
            db.execute(f"PRAGMA application_id = {application_id}")
            db.execute(f"PRAGMA user_version = {version}")
            for statement in statements:
                db.execute(statement)
            yield db


@contextmanager
def _transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
    """Run the block as a transaction."""
    if db.in_transaction:  # an earlier transaction that failed and could not be rolled back
        db.execute("ROLLBACK")
    try:
        db.execute(begin)
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        raise
