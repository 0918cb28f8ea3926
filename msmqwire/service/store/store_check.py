"""A check of a whole store, which goes on after damage and reports each fault. It only reads.

A store that another process serves is read as of the last commit before the check.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from msmqwire.durable import acquire_lock, result_code
from msmqwire.errors import StoreMissing, StoreNewer, StoreRefused
from msmqwire.names.printable import counted
from msmqwire.ownership import check_siblings
from msmqwire.service.store.around_damage import all_rows
from msmqwire.service.store.changes import Key
from msmqwire.service.store.file_check import check_header, unreadable
from msmqwire.service.store.layout import CountTable, Layout, schema_of
from msmqwire.service.store.log_check import lost_transactions
from msmqwire.service.store.row_counts import RowCount, WrongRows, check_row, load_count
from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    from typing import Self

_STRUCTURE_FAULTS_MAX: Final = 100
_WAIT_S: Final = 5.0
_HEADER_SIZE: Final = 100
_PAGES: Final = slice(28, 32)

Observe = Callable[[StoreTable, Key, bytes], None]
"""A function that is called with each row that is right."""
StoredRow = tuple[Key, bytes, int | None]
"""The key, the content and the checksum of a row; a row of an earlier version has none."""


class Fault(NamedTuple):
    """A fault of a store.

    Attributes:
        kind: lost, damaged, outdated, or structure for damage of the file that may concern any row.
        text: the fault, for people.
        table: the table; None for the file.
        key: the key of its row; None for several rows.
        rows: the number of rows.
    """

    kind: str
    text: str
    table: StoreTable | None = None
    key: Key | None = None
    rows: int = 1


class StoreCheck:
    """Reads all of a store.

    Attributes:
        served: whether another process has the store open.
        version: that of the store.
        rows: the number of rows that were read.
        unsummed: those without a checksum, which an earlier version has written.
        path, layout: as they were given, links resolved.
        tables: the names of its tables.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        """Open the file.

        Raises StoreMissing, StoreForeign, StoreNewer, StoreRefused, and StoreDamaged for a file of which
        nothing can be read.
        """
        self.path, self.layout = Path(os.path.realpath(path)), layout
        self._log = self.path.with_name(self.path.name + "-wal")
        self._had_log = self._log.exists()
        self.rows = self.unsummed = 0
        self._unsummed: set[StoreTable] = set()  # tables of which some rows may have no checksum
        if not self.path.exists():
            raise StoreMissing("there is no such store", file=str(path))
        check_siblings(self.path)
        try:
            with ExitStack() as stack:
                lock = acquire_lock(self.path.with_name(self.path.name + ".lock"))
                if lock is not None:
                    stack.enter_context(closing(lock))
                self.served = lock is None
                check_header(self.path, layout, writable=False, error=unreadable)
                uri = f"file://{quote(self.path.as_posix())}?mode=ro"
                self._db = sqlite3.connect(uri, uri=True, timeout=_WAIT_S, isolation_level=None)
                stack.enter_context(closing(self._db))
                self._db.text_factory = bytes
                self._db.execute("PRAGMA cell_size_check = ON")
                self._db.execute("PRAGMA trusted_schema = OFF")
                self._db.execute("PRAGMA ignore_check_constraints = ON")  # no store has them
                self._db.execute("PRAGMA writable_schema = ON")  # otherwise a file that is cut off is refused
                self._db.execute("BEGIN")
                (self.version,) = self._db.execute("PRAGMA user_version").fetchone()
                self._schema = schema_of(self._db)
                self.tables = {name for name, _ in self._schema}
                self._plain = set(filter(self._is_plain, (*layout.tables, CountTable.COUNT)))
                self._open = stack.pop_all()
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            if isinstance(exc, sqlite3.Error) and result_code(exc) not in _DAMAGED:
                raise StoreRefused(str(exc), file=str(path)) from exc
            raise unreadable(self.path, str(exc)) from exc
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(path)) from exc
        if self.version > layout.version:
            self.close()
            reason = f"the store has version {self.version}, this msmqwire reads {layout.version}"
            raise StoreNewer(f"{reason}; use the later msmqwire", file=str(path))

    def close(self) -> None:
        """Close the file; take away the empty log that SQLite has made for reading."""
        self.end_reading()
        if not (self.served or self._had_log):
            with suppress(OSError):
                if self._log.stat().st_size == 0:
                    self._log.unlink()
                    self.path.with_name(self.path.name + "-shm").unlink()
        self._open.close()

    def end_reading(self) -> None:
        """Read nothing more; the lock that keeps servers out is held until the file is closed."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def faults(self, observe: Observe) -> Iterator[Fault]:
        """Yield all faults; `observe` sees the rows that are right, table by table."""
        yield from self._file_faults()
        yield from self._schema_faults()
        for table in self.layout.tables:
            if table.value in self.tables:
                yield from self._table_faults(table, observe)
            elif self.version == self.layout.version:
                yield Fault("lost", f"the table {table.value} is lost", table)

    def whole_rows(self, table: StoreTable) -> Iterator[StoredRow]:
        """Yield the rows of a table that can be read and are right; `faults` has been taken to its end."""
        if table.value in self.tables:
            for key, content, checksum in self._all_rows(table):
                with suppress(WrongRows):
                    yield key, self._checked(table, key, content, checksum), checksum

    def _all_rows(self, table: StoreTable) -> Iterator[tuple[Any, Any, Any]]:
        if table not in self._plain:
            return iter(())
        columns = "key, content, sum" if self.has_checksums else "key, content, NULL"
        of_bytes = "BLOB PRIMARY KEY" in self.layout.tables[table]
        return all_rows(self._db, table.value, columns, of_bytes=of_bytes)

    def _is_plain(self, table: StoreTable) -> bool:
        """Whether a table has stored columns only. SQLite would run the statement of a view, which need not
        end, and compute a generated column.
        """
        with suppress(sqlite3.Error):
            columns = self._db.execute(f'PRAGMA table_xinfo("{table.value}")').fetchall()
            return any(key for *_, key, _ in columns) and not any(hidden for *_, hidden in columns)
        return False

    def _checked(self, table: StoreTable, key: Any, content: object, checksum: object) -> bytes:
        """Return the content of a row. Raises WrongRows."""
        if not isinstance(key, (int, bytes)):
            raise WrongRows(f"a row of the table {table.value} has no key")
        return check_row(table, key, content, checksum, unsummed=table in self._unsummed)

    def row(self, table: StoreTable, key: Key) -> bytes | None:
        """Return the content of a row, right or not; None if it can't be read."""
        if table not in self._plain:
            return None
        with suppress(sqlite3.Error):
            found = self._db.execute(f'SELECT content FROM "{table.value}" WHERE key = ?', (key,)).fetchone()
            if found is not None and isinstance(found[0], bytes):
                return found[0]
        return None

    def _file_faults(self) -> Iterator[Fault]:
        if not self.served:  # else the log grows meanwhile
            lost = lost_transactions(self._log, self._page_size)
            if lost:
                text = f"a part of the log (-wal) is overwritten, before {counted(lost, 'commit')} or more"
                yield Fault("structure", text, rows=lost)
            if self._is_cut_off:
                yield Fault("structure", "the file is cut off")
        if any(_computes(sql) for _, sql in self._schema):
            return  # SQLite would compute as well; the schema is reported
        try:
            for (line,) in self._db.execute(f"PRAGMA quick_check({_STRUCTURE_FAULTS_MAX})"):
                text = line.decode(errors="replace")
                if text != "ok":
                    yield Fault("structure", " ".join(text.split()))
        except sqlite3.Error as exc:
            yield Fault("structure", str(exc))

    @property
    def _is_cut_off(self) -> bool:
        """Whether the file is shorter than it says, while no log has the rest."""
        if self._log.exists() and self._log.stat().st_size:
            return False
        with self.path.open("rb") as file:
            pages = int.from_bytes(file.read(_HEADER_SIZE)[_PAGES], "big")
        return self.path.stat().st_size < pages * self._page_size

    def _schema_faults(self) -> Iterator[Fault]:
        if self.version < 1:
            yield Fault("structure", "the store has no version")
        ours = self.layout.schema if self.version == self.layout.version else self.layout.schemas
        for name in sorted({name for name, _ in self._schema - ours}):
            yield Fault("structure", f"the table {name} is not as it should be")

    @property
    def _page_size(self) -> int:
        (size,) = self._db.execute("PRAGMA page_size").fetchone()
        return int(size)

    @property
    def has_checksums(self) -> bool:
        """Whether rows have checksums: those of earlier versions have none."""
        return CountTable.COUNT.value in self.tables or self.version == self.layout.version

    def _table_faults(self, table: StoreTable, observe: Observe) -> Iterator[Fault]:
        expected = None
        if self.has_checksums:
            try:
                if CountTable.COUNT not in self._plain:
                    raise WrongRows(f"the count of the rows of the table {table.value} is lost")
                expected = load_count(self._db, table.value)
            except (WrongRows, sqlite3.Error) as exc:
                yield Fault("damaged", str(exc), CountTable.COUNT, table.value.encode())
        unsummed = expected is None or expected.unsummed > 0
        if unsummed:
            self._unsummed.add(table)
        rows = summed = total = wrong = 0
        for key, content, checksum in self._all_rows(table):
            rows += 1
            if isinstance(checksum, int):
                summed, total = summed + 1, total + checksum
            try:
                whole = self._checked(table, key, content, checksum)
            except WrongRows as exc:
                wrong += 1
                yield Fault("damaged", str(exc), table, key)
            else:
                observe(table, key, whole)
        self.rows, self.unsummed = self.rows + rows, self.unsummed + rows - summed
        if expected is not None:
            yield from _count_faults(table, RowCount(rows, rows - summed, total), expected, wrong)


def _computes(sql: str) -> bool:
    """Whether a statement of a schema may have an expression, or be of a virtual table; none of ours does."""
    return sql.count("(") > 1 or "virtual" in sql.lower()


def _count_faults(table: StoreTable, found: RowCount, expected: RowCount, wrong: int) -> Iterator[Fault]:
    lost = expected.rows - found.rows
    if lost > 0:
        text = f"the table {table.value} has lost {lost:,} of {counted(expected.rows, 'row')}"
        yield Fault("lost", text, table, rows=lost)
    elif lost < 0:
        text = f"the table {table.value} has {counted(found.rows, 'row')}, and {expected.rows:,} were written"
        yield Fault("outdated", text, table, rows=-lost)
    elif found != expected and not wrong:
        text = f"the table {table.value} has rows older than the last that were written"
        yield Fault("outdated", text, table)


_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
