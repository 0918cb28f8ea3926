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
from msmqwire.ownership import sibling_fault
from msmqwire.service.store.changes import Key
from msmqwire.service.store.file_check import check_header, damaged
from msmqwire.service.store.layout import CountTable, Layout
from msmqwire.service.store.log_check import lost_transactions
from msmqwire.service.store.row_counts import RowCount, WrongRows, check_row, load_count
from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    from typing import Self

_STRUCTURE_FAULTS_MAX: Final = 100
_WAIT_S: Final = 5.0

Observe = Callable[[StoreTable, Key, bytes], None]
"""A function that is called with each row that is right."""


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
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        """Open the file.

        Raises StoreMissing, StoreForeign, StoreNewer, StoreRefused, and StoreDamaged for a file of which
        nothing can be read.
        """
        self._path, self._layout = Path(os.path.realpath(path)), layout
        self._log = self._path.with_name(self._path.name + "-wal")
        self._had_log = self._log.exists()
        self.rows = self.unsummed = 0
        if not self._path.exists():
            raise StoreMissing("there is no such store", file=str(path))
        if (fault := sibling_fault(self._path)) is not None:
            raise StoreRefused(fault[1], file=str(fault[0]))
        try:
            with ExitStack() as stack:
                lock = acquire_lock(self._path.with_name(self._path.name + ".lock"))
                if lock is not None:
                    stack.enter_context(closing(lock))
                self.served = lock is None
                check_header(self._path, layout, writable=False)
                uri = f"file://{quote(self._path.as_posix())}?mode=ro"
                self._db = sqlite3.connect(uri, uri=True, timeout=_WAIT_S, isolation_level=None)
                stack.enter_context(closing(self._db))
                self._db.text_factory = bytes
                self._db.execute("PRAGMA cell_size_check = ON")
                self._db.execute("BEGIN")
                (self.version,) = self._db.execute("PRAGMA user_version").fetchone()
                self._tables = {
                    name.decode(errors="replace")
                    for (name,) in self._db.execute("SELECT name FROM sqlite_master")
                }
                self._open = stack.pop_all()
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            if isinstance(exc, sqlite3.Error) and result_code(exc) not in _DAMAGED:
                raise StoreRefused(str(exc), file=str(path)) from exc
            raise damaged(self._path, str(exc)) from exc
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(path)) from exc
        if self.version > layout.version:
            self.close()
            reason = f"the store has version {self.version}, this msmqwire reads {layout.version}"
            raise StoreNewer(f"{reason}; use the later msmqwire", file=str(path))

    def close(self) -> None:
        """Close the file; take away the empty log that SQLite has made for reading."""
        self._db.close()
        if not (self.served or self._had_log):
            with suppress(OSError):
                if self._log.stat().st_size == 0:
                    self._log.unlink()
                    self._path.with_name(self._path.name + "-shm").unlink()
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def faults(self, observe: Observe) -> Iterator[Fault]:
        """Yield all faults; `observe` sees the rows that are right, table by table."""
        yield from self._file_faults()
        for table in self._layout.tables:
            if table.value in self._tables:
                yield from self._table_faults(table, observe)
            elif self.version == self._layout.version:
                yield Fault("lost", f"the table {table.value} is lost", table)

    def row(self, table: StoreTable, key: Key) -> bytes | None:
        """Return the content of a row, right or not; None if it can't be read."""
        with suppress(sqlite3.Error):
            found = self._db.execute(f'SELECT content FROM "{table.value}" WHERE key = ?', (key,)).fetchone()
            if found is not None and isinstance(found[0], bytes):
                return found[0]
        return None

    def _file_faults(self) -> Iterator[Fault]:
        if not self.served:  # else the log grows meanwhile
            lost = lost_transactions(self._log, self._page_size)
            if lost:
                text = f"a part of the log (-wal) is overwritten, before {lost:,} commits or more"
                yield Fault("structure", text, rows=lost)
        try:
            for (line,) in self._db.execute(f"PRAGMA quick_check({_STRUCTURE_FAULTS_MAX})"):
                text = line.decode(errors="replace")
                if text != "ok":
                    yield Fault("structure", " ".join(text.split()))
        except sqlite3.Error as exc:
            yield Fault("structure", str(exc))

    @property
    def _page_size(self) -> int:
        (size,) = self._db.execute("PRAGMA page_size").fetchone()
        return int(size)

    @property
    def has_checksums(self) -> bool:
        """Whether rows have checksums: those of earlier versions have none."""
        return CountTable.COUNT.value in self._tables or self.version == self._layout.version

    def _table_faults(self, table: StoreTable, observe: Observe) -> Iterator[Fault]:
        expected = None
        if self.has_checksums:
            try:
                expected = load_count(self._db, table.value)
            except (WrongRows, sqlite3.Error) as exc:
                yield Fault("damaged", str(exc), CountTable.COUNT, table.value.encode())
        columns = "key, content, sum" if self.has_checksums else "key, content, NULL"
        unsummed = expected is None or expected.unsummed > 0
        rows = summed = total = wrong = 0
        for key, content, checksum in self._all_rows(table, columns):
            rows += 1
            if isinstance(checksum, int):
                summed, total = summed + 1, total + checksum
            try:
                observe(table, key, check_row(table, key, content, checksum, unsummed=unsummed))
            except WrongRows as exc:
                wrong += 1
                yield Fault("damaged", str(exc), table, key)
        self.rows, self.unsummed = self.rows + rows, self.unsummed + rows - summed
        if expected is not None:
            yield from _count_faults(table, RowCount(rows, rows - summed, total), expected, wrong)

    def _all_rows(self, table: StoreTable, columns: str) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the rows of a table in order; after damage those from the other end that can be read."""
        last, damage = None, False
        try:
            for row in self._db.execute(f'SELECT {columns} FROM "{table.value}" ORDER BY key'):
                last = row[0]
                yield row
        except sqlite3.Error:
            damage = True
        if not damage:
            return
        try:
            for row in self._db.execute(f'SELECT {columns} FROM "{table.value}" ORDER BY key DESC'):
                if last is not None and row[0] <= last:
                    return
                yield row
        except (sqlite3.Error, TypeError):
            return


def _count_faults(table: StoreTable, found: RowCount, expected: RowCount, wrong: int) -> Iterator[Fault]:
    lost = expected.rows - found.rows
    if lost > 0:
        text = f"the table {table.value} has lost {lost:,} of {expected.rows:,} rows"
        yield Fault("lost", text, table, rows=lost)
    elif lost < 0:
        text = f"the table {table.value} has {found.rows:,} rows, and {expected.rows:,} were written"
        yield Fault("outdated", text, table, rows=-lost)
    elif found != expected and not wrong:
        text = f"the table {table.value} has rows older than the last that were written"
        yield Fault("outdated", text, table)


_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
