"""Opens the file of an embedded directory; any other file is refused and left unchanged."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msmqwire.errors import StoreDamaged, StoreError, StoreForeign, StoreInUse, StoreNewer, StoreRefused
from msmqwire.ownership import check_siblings
from msmqwire.qm.directory.stored_objects import read

APPLICATION_ID: Final = 0x4D534D44
"""The application id in the header of the file: MSMD in ASCII."""
VERSION: Final = 1

_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS object (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL,
    identifier BLOB NOT NULL,
    name TEXT NOT NULL,
    attributes TEXT NOT NULL,
    UNIQUE (type, identifier),
    UNIQUE (type, name)
);
CREATE TABLE IF NOT EXISTS distribution_list (identifier BLOB PRIMARY KEY, members TEXT NOT NULL);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""


def open_file(file: str) -> sqlite3.Connection:
    """Open the file of a directory; create it if it is missing or empty.

    Raises:
        StoreDamaged, StoreForeign, StoreNewer, StoreInUse, StoreRefused: the file can't be opened, for the
            reason that the class names.
    """
    database: sqlite3.Connection | None = None
    try:
        database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        _check(database, file)
    except sqlite3.Error as error:
        _close(database)
        raise _store_error(error, file) from error
    except StoreError:
        _close(database)
        raise
    return database


def _check(database: sqlite3.Connection, file: str) -> None:
    application, version = (
        database.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("application_id", "user_version")
    )
    if application == 0 and not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        database.executescript(_SCHEMA)
        return
    if application != APPLICATION_ID:
        raise StoreForeign("another kind of database, not a directory; give another file", file=file)
    if version > VERSION:
        raise StoreNewer(
            f"version {version} of the format, this msmqwire reads {VERSION}; use a newer one", file=file
        )
    problem = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise StoreDamaged(f"{problem}; restore a copy of the file", file=file)
    database.execute("SELECT attributes, members FROM object, distribution_list LIMIT 0")


def check_file(file: str) -> list[str]:
    """Return the faults of the file of a directory, which is only read; its rows have no checksums.

    Raises StoreRefused.
    """
    check_siblings(Path(file))
    database: sqlite3.Connection | None = None
    try:
        database = sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True, isolation_level=None)
        (application,) = database.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            return ["another kind of database, not a directory"]
        problems = [row[0] for row in database.execute("PRAGMA quick_check(100)")]
        rows = database.execute("SELECT name, type, attributes FROM object ORDER BY number")
        return [problem for problem in problems if problem != "ok"] + [
            f"the {kind} {name!r:.100} can't be read" for name, kind, row in rows if not _readable(kind, row)
        ]
    except sqlite3.Error as error:
        found = _store_error(error, file)
        if isinstance(found, StoreRefused):
            raise found from error
        return [found.why]
    finally:
        _close(database)


def _readable(kind: str, row: str) -> bool:
    try:
        read(kind, row)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return True


def _close(database: sqlite3.Connection | None) -> None:
    if database is not None:
        with suppress(sqlite3.Error):
            database.close()


def _store_error(error: sqlite3.Error, file: str) -> StoreError:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return StoreForeign("not a database; give another file", file=file)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:  # or a table is missing
            return StoreDamaged(f"{error}; restore a copy of the file", file=file)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreInUse("another process writes to it; try again", file=file)
    return StoreRefused(str(error), file=file)
