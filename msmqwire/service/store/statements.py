"""The statements of SQL on a table of a store."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from msmqwire.service.store.table import StoreTable

KEYS_AT_ONCE: Final = 64
"""Keys whose checksums are read by one statement."""


class Statements(NamedTuple):
    """The operations on a table. Rows are read with their keys, in the order of these."""

    put: str
    delete: str
    row: str
    rows: str
    some: str
    summed_rows: str
    held: str
    held_one: str
    all_held: str


@cache
def statements(table: StoreTable) -> Statements:
    """Return the statements on a table."""
    name = f'"{table.value}"'
    return Statements(
        put=f"REPLACE INTO {name} VALUES (?, ?, ?)",
        delete=f"DELETE FROM {name} WHERE key = ?",
        row=f"SELECT content, sum FROM {name} WHERE key = ?",
        rows=f"SELECT key, content FROM {name} ORDER BY key",
        some=f"SELECT key, content, sum FROM {name} WHERE key BETWEEN ? AND ? ORDER BY key",
        summed_rows=f"SELECT key, content, sum FROM {name} ORDER BY key",
        # damaged sums don't fail to add up: total is a float
        held=f"SELECT count(*), count(sum), CAST(total(sum) AS INTEGER) FROM {name}"
        f" WHERE key IN ({', '.join('?' * KEYS_AT_ONCE)})",
        held_one=f"SELECT sum FROM {name} WHERE key = ?",
        all_held=f"SELECT count(*), count(sum), ifnull(sum(sum), 0) FROM {name}",
    )
