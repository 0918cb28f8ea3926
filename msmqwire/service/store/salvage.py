"""A new file in place of a damaged store, with the rows that are whole, beside a copy of the damaged one.

The rows are copied one by one: a file with a damaged page can't be relied on, wherever it is written to. The
new file takes the place of the old one at once; a process that is killed before leaves that as it was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from shutil import copyfileobj
from typing import Final

from msmqwire.durable import UNFOLLOWED, sync_directory
from msmqwire.errors import StoreInUse, StoreRefused
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.findings import Advance
from msmqwire.service.store.layout import COUNTS, without_checksums
from msmqwire.service.store.row_counts import recount, store_counts, write_rows
from msmqwire.service.store.sqlite import new_file
from msmqwire.service.store.store_check import StoreCheck

_LOG: Final = "-wal"
_OF_SQLITE: Final = (_LOG, "-shm", "-journal")


def refuse_served(check: StoreCheck) -> None:
    """Raise StoreInUse if another process has the store open."""
    if check.served:
        raise StoreInUse("a server has the store open; stop it first", file=str(check.path))


def keep_copy(path: Path) -> Path:
    """Copy a store and its log beside it, for its owner alone; return the path of the copy.

    Raises StoreRefused: the copy can't be made, and nothing of it is left.
    """
    for number in count(1):
        copy = path.with_name(f"{path.name}.damaged-{number}")
        if not any(os.path.lexists(f"{copy}{suffix}") for suffix in ("", *_OF_SQLITE)):
            break
    made: list[Path] = []
    try:
        for suffix in ("", _LOG):
            source = path.with_name(path.name + suffix)
            if suffix and not (source.exists() and source.stat().st_size):
                continue
            target = copy.with_name(copy.name + suffix)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | UNFOLLOWED, 0o600)
            made.append(target)
            with open(descriptor, "wb") as to, source.open("rb") as of:
                copyfileobj(of, to, 1 << 20)
                to.flush()
                os.fsync(to.fileno())
        sync_directory(path.parent)
    except OSError as exc:
        for target in made:
            target.unlink(missing_ok=True)
        reason = f"no copy of the store can be kept: {exc.strerror or exc}"
        raise StoreRefused(reason, file=exc.filename or str(copy)) from exc
    return copy


def replace_by_whole(check: StoreCheck, repairs: Changes, advance: Advance) -> int:
    """Put a new file in the place of a store, with its rows that are whole; return their number.

    Args:
        check: the check of the store, whose faults have been taken to the end. It can't be read after this.
        repairs: changes of rows that refer to lost ones.
        advance: as of a check.

    Raises StoreRefused: the new file can't be written, and the old one is unchanged.
    """
    new = check.path.with_name(f"{check.path.name}.new")
    try:
        rows = _write(check, new, repairs, advance)
        check.end_reading()
        _end_log(check.path)
        os.replace(new, check.path)
        sync_directory(check.path.parent)
    except (OSError, sqlite3.Error) as exc:
        new.unlink(missing_ok=True)
        reason = (exc.strerror if isinstance(exc, OSError) else None) or str(exc)
        raise StoreRefused(reason, file=str(new)) from exc
    return rows


def _write(check: StoreCheck, new: Path, repairs: Changes, advance: Advance) -> int:
    layout = check.layout
    version = layout.version if check.has_checksums else max(check.version, 1)
    statements: Iterable[str] = (*layout.tables.values(), COUNTS)
    tables = list(layout.tables)
    if not check.has_checksums:  # the start after this migrates it, as it would have done
        tables = [table for table in tables if table.value in check.tables]
        statements = [without_checksums(layout.tables[table]) for table in tables]
    values = "?, ?, ?" if check.has_checksums else "?, ?"
    with new_file(new, layout.application_id, version, statements) as db:
        for table in tables:
            insert = f'INSERT OR IGNORE INTO "{table.value}" VALUES ({values})'  # pages may be there twice
            for row in check.whole_rows(table):
                db.execute(insert, row if check.has_checksums else row[:2])
                advance(len(row[1]))
        for table, rows in repairs.rows.items():
            if table not in tables:
                continue
            if check.has_checksums:
                write_rows(db, table, rows, recount(db, table))
                continue
            for key, content in rows.items():
                db.execute(f'DELETE FROM "{table.value}" WHERE key = ?', (key,))
                if content is not None:
                    db.execute(f'INSERT INTO "{table.value}" VALUES (?, ?)', (key, content))
        if check.has_checksums:
            store_counts(db, {table.value: recount(db, table) for table in tables})
        return sum(db.execute(f'SELECT count(*) FROM "{table.value}"').fetchone()[0] for table in tables)


def _end_log(path: Path) -> None:
    """Take away the log of a store whose rows have been copied: SQLite would take it for the new one's.

    What it has is moved into the old file: nothing more is lost if the process is killed now.
    """
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    for suffix in _OF_SQLITE:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
