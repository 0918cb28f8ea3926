"""A store in a file of SQLite: one table for each `Table`, one transaction for each commit.

Beside the file are, while it is open, its write-ahead log (``-wal``) and the index of that (``-shm``), and an
empty file (``.lock``) on which the process that has the store open holds a lock. The file and its log belong
together: after a crash the latest commits are in the log alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from types import TracebackType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msmqwire.errors import (
    StoreDamaged,
    StoreForeign,
    StoreInUse,
    StoreMissing,
    StoreNewer,
    StoreRefused,
)
from msmqwire.qm.model.changes import Changes, Key, Table
from msmqwire.qm.store.layout import APPLICATION_ID, LAYOUT, Layout

if TYPE_CHECKING:
    from typing import Self

# Measured with benchmarks/store.py. Whole pages go into the log: with larger ones a commit of one message is
# a fifth dearer, one of many up to a tenth cheaper. Several rows in one statement win nothing.
PAGE_SIZE: Final = 4096
CACHE_KIB: Final = 16 << 10
CHECKPOINT_PAGES: Final = 4000
"""Pages in the log after which a commit moves them into the file, 16 MB."""
LOG_SIZE_KEPT: Final = 64 << 20
"""Bytes that the log keeps on disk when it begins anew. Below that, it has room to write on a full disk."""
LOCK_WAIT_S: Final = 0.2
"""Two that open the store at once may stand in each other's way for a moment."""
BUSY_WAIT_S: Final = 1.0
"""For another program that looks into the file."""
ROWS_AT_A_TIME: Final = 64

_MAGIC: Final = b"SQLite format 3\0"
_APPLICATION_ID_AT: Final = 68
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

_PUT: Final = {table: f'REPLACE INTO "{table.value}" VALUES (?, ?)' for table in Table}
_DELETE: Final = {table: f'DELETE FROM "{table.value}" WHERE key = ?' for table in Table}
_ROW: Final = {table: f'SELECT content FROM "{table.value}" WHERE key = ?' for table in Table}
_ROWS: Final = {table: f'SELECT key, content FROM "{table.value}" ORDER BY key' for table in Table}


class SqliteStore:
    """A `Store` in a file. One process at a time has it open, and opens it once.

    Opening looks at the header, the size and the tables of the file, and brings an older version up to date;
    damage inside a table shows when its rows are read or written.

    Args:
        path: the file. Links are followed.
        create: make it if it is not there; the folder must be.
        layout: another one than the present, to try a migration.

    Raises:
        StoreDamaged, StoreForeign, StoreInUse, StoreMissing, StoreNewer, StoreRefused: see
            there.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True, layout: Layout = LAYOUT) -> None:
        self._path = Path(os.path.realpath(path))
        self._layout = layout
        self._writing = Lock()
        self._reading = RLock()  # garbage collection may end `rows` inside anything
        self._iterating: set[sqlite3.Cursor] = set()
        self._closed = False
        if not (create or self._path.exists()):
            raise StoreMissing("there is no such store", file=str(self._path))
        try:
            with ExitStack() as stack:
                self._lock = stack.enter_context(closing(self._locked()))
                if not self._path.exists():
                    self._create()
                self._check_header()
                self._writer = stack.enter_context(closing(self._connected()))
                self._prepare(self._writer)
                self._reader = stack.enter_context(closing(self._connected()))
                self._reader.execute("PRAGMA query_only = ON")
                stack.pop_all()
        except sqlite3.Error as exc:
            raise self._meaning(exc) from exc
        except OSError as exc:
            raise self._refused(exc.strerror or str(exc)) from exc

    @property
    def path(self) -> Path:
        """The file, links followed."""
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
                with _transaction(self._writer) as db:
                    for table, rows in changes.rows.items():
                        if put := [(key, row) for key, row in rows.items() if row is not None]:
                            db.executemany(_PUT[table], put)
                        if gone := [(key,) for key, row in rows.items() if row is None]:
                            db.executemany(_DELETE[table], gone)
            except sqlite3.Error as exc:
                raise self._meaning(exc) from exc

    def rows(self, table: Table) -> Iterator[tuple[Key, bytes]]:
        # On a connection of its own, for as long as it reads, it sees one state: `row` must not.
        try:
            with self._reading:
                self._check_open()
                db = self._connected()
                cursor = db.cursor()
                self._iterating.add(cursor)
            try:
                with self._reading:
                    self._check_open()
                    some = cursor.execute(_ROWS[table]).fetchmany(ROWS_AT_A_TIME)
                while some:
                    if not all(type(content) is bytes for _, content in some):
                        raise self._damaged(f"a row of the table {table.value} has no bytes")
                    yield from some
                    with self._reading:
                        self._check_open()
                        some = cursor.fetchmany(ROWS_AT_A_TIME)
            finally:
                with self._reading:
                    self._end(cursor)
        except sqlite3.Error as exc:
            raise self._meaning(exc) from exc

    def _end(self, cursor: sqlite3.Cursor) -> None:
        if cursor in self._iterating:
            self._iterating.remove(cursor)
            cursor.close()
            cursor.connection.close()

    def row(self, table: Table, key: Key) -> bytes | None:
        with self._reading:
            self._check_open()
            try:
                found = self._reader.execute(_ROW[table], (key,)).fetchone()
            except sqlite3.Error as exc:
                raise self._meaning(exc) from exc
        if found is None:
            return None
        (content,) = found
        if type(content) is not bytes:
            raise self._damaged(f"a row of the table {table.value} has no bytes")
        return content

    def close(self) -> None:
        with self._writing, self._reading:
            if self._closed:
                return
            self._closed = True
            for cursor in list(self._iterating):
                self._end(cursor)
            self._reader.close()
            self._writer.close()  # the last one: it moves the log into the file
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

    def _locked(self) -> sqlite3.Connection:
        """The lock that keeps other processes out, gone with the process however it ends.

        It is one of SQLite on a file beside the store, so it works wherever the store does. On the store
        itself it would shut out the connections that read while another one commits.
        """
        path = self._beside(".lock")
        _for_the_owner(path)
        db = sqlite3.connect(path, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False)
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as exc:
            db.close()
            match _code(exc):
                case sqlite3.SQLITE_BUSY:
                    why = "another process has the store open; end it, or give this one a store of its own"
                    raise StoreInUse(why, file=str(self._path)) from exc
                case sqlite3.SQLITE_NOTADB:
                    why = "the place of the lock is taken by a file of something else; move that away"
                    raise StoreForeign(why, file=str(path)) from exc
                case _:
                    raise
        return db

    def _create(self) -> None:
        """Makes a file that has all tables, or none: it gets its name when it is complete and on disk."""
        if self._beside("-wal").exists():
            raise self._damaged("the file is gone but its log (-wal) is there; put the file back")
        new = self._beside(".new")
        new.unlink(missing_ok=True)  # ours alone, under the lock: left by a process that was killed
        _for_the_owner(new)
        with closing(sqlite3.connect(new, isolation_level=None)) as db:
            db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            _settle(db)
            with _transaction(db):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {self._layout.version}")
                for statement in self._layout.tables.values():
                    db.execute(statement)
        os.replace(new, self._path)
        if os.name == "posix":  # elsewhere a folder can't be opened, and needs not
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _check_header(self) -> None:
        """Looks at the first bytes before SQLite does, which might write into a file that is not ours."""
        with self._path.open("r+b") as file:  # SQLite says nothing when a file can only be read
            head = file.read(100)
        ours = head[_APPLICATION_ID_AT:][:4] == APPLICATION_ID.to_bytes(4, "big")
        if not head:
            raise self._damaged("the file is empty")
        if not head.startswith(_MAGIC):
            if ours:
                raise self._damaged("the beginning of the file is overwritten")
            why = "this is no store of messages, or its beginning is overwritten; name another file"
            raise StoreForeign(why, file=str(self._path))
        if len(head) < 100:
            raise self._damaged("the file is cut off")
        if not ours:
            why = "this is the database of another program; name another file"
            raise StoreForeign(why, file=str(self._path))

    def _connected(self) -> sqlite3.Connection:
        path = self._path.as_posix()
        uri = f"file://{'' if path.startswith('/') else '/'}{quote(path)}?mode=rw"  # never makes the file
        db = sqlite3.connect(
            uri, uri=True, timeout=BUSY_WAIT_S, isolation_level=None, check_same_thread=False
        )
        db.text_factory = bytes  # texts are only where a row is damaged, and then perhaps no texts either
        try:
            _settle(db)
        except sqlite3.Error as exc:
            db.close()
            if _code(exc) == sqlite3.SQLITE_ERROR:  # a number in the header that is none of SQLite's
                raise self._damaged(str(exc)) from exc
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Version, log, migrations, size and tables."""
        (found,) = db.execute("PRAGMA user_version").fetchone()  # now the log of a crash is read, too
        if found > self.version:
            why = f"the store has version {found}, this msmqwire knows {self.version}; use the later msmqwire"
            raise StoreNewer(why, file=str(self._path))
        if found < 1:
            raise self._damaged("the store has no version")
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != b"wal":
            raise self._refused("this file system can't hold a write-ahead log")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        db.execute(f"PRAGMA journal_size_limit = {LOG_SIZE_KEPT}")
        self._check_size(db)
        with _transaction(db):  # one for all steps: killed on the way, the store is still the old one
            for migration in self._layout.migrations[found - 1 :]:
                migration(db)
            if found < self.version:
                db.execute(f"PRAGMA user_version = {self.version}")
            self._check_tables(db)

    def _check_size(self, db: sqlite3.Connection) -> None:
        try:
            busy, logged, moved = db.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        except sqlite3.OperationalError:
            return  # on a full disk the log stays as it is, and the store can be read
        if busy or logged != moved:
            return  # as above, or another program is reading: the file is not complete without its log
        ((pages,), (page_size,)) = (
            db.execute(f"PRAGMA {what}").fetchone() for what in ("page_count", "page_size")
        )
        if self._path.stat().st_size < pages * page_size:
            raise self._damaged("the file is cut off")

    def _check_tables(self, db: sqlite3.Connection) -> None:
        found = {
            (name.decode(errors="replace"), sql.decode(errors="replace"))
            for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        }
        if wrong := sorted({name for name, _ in found ^ set(self._layout.tables.items())}):
            raise self._damaged(f"these tables are not as they should be: {', '.join(wrong)}")

    # Errors.

    def _meaning(self, exc: sqlite3.Error) -> Exception:
        """What an error of SQLite means; itself if it can only come from a mistake in this package."""
        code = _code(exc)
        if code in _DAMAGED:
            return self._damaged(str(exc))
        if code == sqlite3.SQLITE_FULL:
            return self._refused("the disk is full; make room, nothing is lost")
        if code in _REFUSED:
            return self._refused(f"{exc} ({exc.sqlite_errorname})")
        return exc

    def _damaged(self, why: str) -> StoreDamaged:
        advice = "put back a copy, or save what is left with `.recover` of the sqlite3 shell"
        return StoreDamaged(f"{why}; {advice}", file=str(self._path))

    def _refused(self, why: str) -> StoreRefused:
        return StoreRefused(why, file=str(self._path))

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


def _for_the_owner(path: Path) -> None:
    """Makes a file, if it is missing, that nobody else may read: SQLite gives its log the same rights."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _code(exc: sqlite3.Error) -> int | None:
    """The result code of SQLite; None if the error is one of the module sqlite3 itself."""
    extended: int | None = getattr(exc, "sqlite_errorcode", None)
    return None if extended is None else extended & 0xFF  # the lower byte


def _settle(db: sqlite3.Connection) -> None:
    """What holds for every connection and writes nothing into the file."""
    for setting in (
        "synchronous = FULL",  # a commit is on disk when it returns
        "fullfsync = ON",  # on macOS, where fsync alone does not do that
        "checkpoint_fullfsync = ON",
        f"cache_size = -{CACHE_KIB}",
        "secure_delete = OFF",  # some builds fill deleted rows with zeros: more pages to write
        "cell_size_check = ON",  # finds a damaged page when it is read; too cheap to measure
        "trusted_schema = OFF",
    ):
        db.execute(f"PRAGMA {setting}")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All or nothing of what is done inside."""
    if db.in_transaction:  # one that failed and then could not be rolled back either
        db.execute("ROLLBACK")
    try:
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        raise
