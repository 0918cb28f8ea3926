"""Rows read before their request, for keys that are read in sequence."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.table import StoreTable

ROWS: Final = 64
"""Limit of keys read ahead at once."""
BYTES: Final = 256 << 10
"""Bytes after which no further row is read ahead."""
_NEAR: Final = 16
"""The greatest distance of two keys that count as neighbours: other queues have numbers between them."""

_KEY_MAX: Final = (1 << 63) - 1


class ReadAhead:
    """Reads rows by their keys, for a connection that sees each commit.

    Receiving reads a queue in the order of its keys, thousands of them; one statement for many rows takes a
    third of the time. Unused rows that were read ahead are forgotten when other rows are read, and when they
    change.
    """

    def __init__(self) -> None:
        self._last: dict[StoreTable, int] = {}
        self._rows: dict[StoreTable, dict[int, tuple[Any, Any]]] = {}

    def row(
        self, db: sqlite3.Connection, table: StoreTable, key: Key, statements: tuple[str, str]
    ) -> tuple[Any, Any] | None:
        """Return the content and checksum of a row; None if there is no such key. Raises sqlite3.Error.

        `statements` select the row of a key, and the keys and rows from one key to another, in order.
        """
        if not isinstance(key, int):
            found: tuple[Any, Any] | None = db.execute(statements[0], (key,)).fetchone()
            return found
        rows = self._rows.get(table)
        if rows and key in rows:
            self._last[table] = key
            return rows.pop(key)
        last = self._last.get(table, key)
        self._last[table] = key
        if not 0 < key - last <= _NEAR:
            found = db.execute(statements[0], (key,)).fetchone()
            return found
        return self._ahead(db, table, key, statements[1])

    def _ahead(
        self, db: sqlite3.Connection, table: StoreTable, key: int, statement: str
    ) -> tuple[Any, Any] | None:
        rows: dict[int, tuple[Any, Any]] = {}
        size = 0
        cursor = db.execute(statement, (key, min(key + ROWS - 1, _KEY_MAX)))
        try:
            for number, content, checksum in cursor:
                rows[number] = content, checksum
                size += len(content) if isinstance(content, bytes) else 0  # the caller rejects other types
                if size >= BYTES:
                    break
        except sqlite3.DatabaseError:
            if key not in rows:  # a damaged page further on concerns other rows
                raise
        finally:
            cursor.close()  # otherwise it would hold its snapshot
        self._rows[table] = rows
        return rows.pop(key, None)

    def forget(self, changes: Changes) -> None:
        """Forget the rows that were changed."""
        for table, changed in changes.rows.items():
            rows = self._rows.get(table)
            if rows:
                for key in changed:
                    if isinstance(key, int):
                        rows.pop(key, None)
