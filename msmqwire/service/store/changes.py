"""Changes of a service's durable state, as rows of tables: collected by its rules, committed by a store.

A step of the rules changes rows; its effects may be carried out once these are durable. Rows are bytes;
their format is known only to the module that writes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msmqwire.service.store.table import StoreTable

Key = int | bytes


class Changes:
    """Changed rows, with the last change of each; None for a deleted row."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[StoreTable, dict[Key, bytes | None]] = {}

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def put(self, table: StoreTable, key: Key, row: bytes) -> None:
        """Insert or replace a row."""
        rows = self.rows.get(table)
        if rows is None:
            self.rows[table] = rows = {}
        rows[key] = row

    def delete(self, table: StoreTable, key: Key) -> None:
        """Delete a row, if it exists."""
        rows = self.rows.get(table)
        if rows is None:
            self.rows[table] = rows = {}
        rows[key] = None

    def add(self, later: Changes) -> None:
        """Apply the changes of a later step on top."""
        for table, rows in later.rows.items():
            self.rows.setdefault(table, {}).update(rows)

    def joins(self, later: Changes) -> bool:
        """Return True: rows of all steps can be committed together."""
        return True

    def __iter__(self) -> Iterator[tuple[StoreTable, Key, bytes | None]]:
        for table, rows in self.rows.items():
            for key, row in rows.items():
                yield table, key, row
