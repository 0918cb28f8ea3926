"""Durable counts of the rows of each table, and the sums of their checksums.

They are in a table of their own, written by the commit that changes the rows: rows that are lost with a page,
or are older than the last that were written, no longer agree with them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

from msmqwire.names.printable import counted
from msmqwire.service.store.changes import Key
from msmqwire.service.store.layout import CountTable
from msmqwire.service.store.row_sums import row_sum, sum_of_rows
from msmqwire.service.store.statements import KEYS_AT_ONCE, statements
from msmqwire.service.store.table import StoreTable

_FORMAT: Final = Struct("<QQQ")
_KEY_SHOWN: Final = 80


class RowCount(NamedTuple):
    """The count of the rows of a table.

    Attributes:
        rows: all of them.
        unsummed: those without a checksum, which an earlier version of msmqwire has written.
        total: the sum of the checksums of the others.
    """

    rows: int = 0
    unsummed: int = 0
    total: int = 0

    def plus(self, rows: int, unsummed: int, total: int) -> RowCount:
        """Return the count after a change."""
        return RowCount(self.rows + rows, self.unsummed + unsummed, self.total + total)


class WrongRows(Exception):
    """Rows are not those that were written. The text says which."""


def load_counts(db: sqlite3.Connection, tables: Iterable[StoreTable]) -> dict[str, RowCount]:
    """Return the counts of tables by their names. Raises WrongRows and sqlite3.Error."""
    return {table.value: load_count(db, table.value) for table in tables}


def load_count(db: sqlite3.Connection, table: str) -> RowCount:
    """Return the count of a table. Raises WrongRows and sqlite3.Error."""
    found = db.execute(statements(CountTable.COUNT).row, (table.encode(),)).fetchone()
    if found is None:
        raise WrongRows(f"the count of the rows of the table {table} is lost")
    content, checksum = found
    try:
        if row_sum(CountTable.COUNT, table.encode(), content) == checksum:
            return RowCount._make(_FORMAT.unpack(content))
    except (TypeError, StructError):
        pass  # it is reported below
    raise WrongRows(f"the count of the rows of the table {table} is not the one that was written")


def store_counts(db: sqlite3.Connection, counts: Mapping[str, RowCount]) -> None:
    """Write the counts of tables. Raises WrongRows and sqlite3.Error."""
    rows = []
    for table, count in counts.items():
        key = table.encode()
        try:
            content = _FORMAT.pack(*count)
        except StructError:  # below zero: rows that are not counted were deleted
            raise WrongRows(f"the table {table} had more rows than were written") from None
        rows.append((key, content, row_sum(CountTable.COUNT, key, content)))
    db.executemany(statements(CountTable.COUNT).put, rows)


def recount(db: sqlite3.Connection, table: StoreTable) -> RowCount:
    """Count the rows of a table as they are."""
    rows, summed, total = db.execute(statements(table).all_held).fetchone()
    return RowCount(rows, rows - summed, total)


def write_rows(
    db: sqlite3.Connection, table: StoreTable, rows: Mapping[Key, bytes | None], before: RowCount
) -> RowCount:
    """Put and delete rows of a table; return its count after that. Raises sqlite3.Error."""
    # The module sqlite3 looks for an adapter of each bytes object, but not of a bytearray.
    changed = [
        (key, bytearray(row), row_sum(table, key, row)) for key, row in rows.items() if row is not None
    ]
    deleted = [(key,) for key, row in rows.items() if row is None]
    held, summed, total = _held(db, table, list(rows))
    if changed:
        db.executemany(statements(table).put, changed)
    if deleted:
        db.executemany(statements(table).delete, deleted)
    added = sum([checksum for _, _, checksum in changed])
    return before.plus(len(changed) - held, summed - held, added - total)


def _held(db: sqlite3.Connection, table: StoreTable, keys: Sequence[Key]) -> tuple[int, int, int]:
    """Return how many of the keys have rows, how many of these a checksum, and the sum of the checksums."""
    rows = summed = total = 0
    if len(keys) < KEYS_AT_ONCE // 8:
        for key in keys:
            for (checksum,) in db.execute(statements(table).held_one, (key,)):
                rows += 1
                if isinstance(checksum, int):
                    summed, total = summed + 1, total + checksum
        return rows, summed, total
    for at in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[at : at + KEYS_AT_ONCE]
        padding = (None,) * (KEYS_AT_ONCE - len(some))  # no row has it
        found = db.execute(statements(table).held, (*some, *padding)).fetchone()
        rows, summed, total = rows + found[0], summed + found[1], total + found[2]
    return rows, summed, total


def check_row(table: StoreTable, key: Key, content: object, checksum: object, *, unsummed: bool) -> bytes:
    """Return the content of a row. Raises WrongRows.

    `unsummed` says whether there are rows without a checksum.
    """
    if not isinstance(content, bytes):
        raise WrongRows(f"{row_name(table, key)} has no bytes")
    if checksum is None and unsummed:
        return content
    if row_sum(table, key, content) != checksum:
        raise WrongRows(f"{row_name(table, key)} is not the one that was written")
    return content


def row_name(table: StoreTable, key: object) -> str:
    """Return the name of a row, for people."""
    shown = key if isinstance(key, int) else repr(key)[:_KEY_SHOWN]
    return f"row {shown} of the table {table.value}"


class Audit:
    """The rows of a table, compared with their count while they are read in order."""

    def __init__(self, db: sqlite3.Connection, table: StoreTable) -> None:
        """Begin with the count in the present transaction. Raises WrongRows and sqlite3.Error."""
        self._db, self._table = db, table
        self._expected = load_count(db, table.value)
        self._rows = self._total = 0
        self._last: Any = None

    def rows(self, batch: list[Any]) -> list[tuple[Key, bytes]]:
        """Return the rows of a batch that `statement` has read, which has their checksums or not.

        Raises WrongRows for a row that has no bytes, or not those of its checksum.
        """
        rows = batch
        if self._expected.unsummed:
            rows = [(key, check_row(self._table, key, row, has, unsummed=True)) for key, row, has in batch]
            self._total += sum(has for _, _, has in batch if has is not None)
        else:
            try:
                self._total += sum_of_rows(self._table, rows)
            except TypeError:
                check_table(self._db, self._table, self._expected)
                raise
        self._rows += len(rows)
        keys = [row[0] for row in rows]
        if keys != sorted(keys) or (self._last is not None and keys and keys[0] <= self._last):
            raise wrong_order(self._table)
        self._last = keys[-1] if keys else self._last
        return rows

    @property
    def statement(self) -> str:
        """The statement that reads the rows."""
        found = statements(self._table)
        return found.summed_rows if self._expected.unsummed else found.rows

    def end(self) -> None:
        """Raise WrongRows unless the rows were all that were written."""
        if (self._rows, self._total) != (self._expected.rows, self._expected.total):
            check_table(self._db, self._table, self._expected)


def wrong_order(table: StoreTable) -> WrongRows:
    """Return the error of swapped pages: each row is whole, and is not found by its key."""
    return WrongRows(f"the table {table.value} has rows in the wrong order")


def check_table(db: sqlite3.Connection, table: StoreTable, expected: RowCount) -> None:
    """Read all rows of a table. Raises WrongRows for the first fault, and sqlite3.Error."""
    rows = summed = total = 0
    with closing(db.execute(statements(table).summed_rows)) as cursor:
        last: Any = None
        for key, content, checksum in cursor:
            check_row(table, key, content, checksum, unsummed=expected.unsummed > 0)
            if last is not None and key <= last:
                raise wrong_order(table)
            last = key
            rows += 1
            if checksum is not None:
                summed, total = summed + 1, total + checksum
    compare(table, RowCount(rows, rows - summed, total), expected)


def check_counted(db: sqlite3.Connection, tables: Iterable[StoreTable]) -> None:
    """Check the tables that have counts, before they are migrated. Raises as `check_table` does."""
    known = "SELECT count(*) FROM sqlite_master WHERE name = ?"
    if not db.execute(known, (CountTable.COUNT.value,)).fetchone()[0]:
        return  # a version before checksums
    for table in tables:
        if db.execute(known, (table.value,)).fetchone()[0]:
            check_table(db, table, load_count(db, table.value))


def compare(table: StoreTable, found: RowCount, expected: RowCount) -> None:
    """Raise WrongRows if the counts of a table differ."""
    lost, name = expected.rows - found.rows, f"the table {table.value}"
    if lost > 0:
        raise WrongRows(f"{name} has lost {lost:,} of {counted(expected.rows, 'row')}")
    if lost < 0:
        raise WrongRows(f"{name} has {counted(found.rows, 'row')}, and {expected.rows:,} were written")
    if found != expected:
        raise WrongRows(f"{name} has rows older than the last that were written")
