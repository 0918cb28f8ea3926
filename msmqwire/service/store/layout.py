"""The tables of a store in a file, their version, and the migrations from older versions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    import sqlite3

Migration = Callable[["sqlite3.Connection"], None]
"""A function that migrates the tables and their rows from one version to the next, inside a transaction of
the caller: it neither begins nor ends one, so it must not use `executescript`.
"""


class Layout(NamedTuple):
    """The schema of a store.

    Attributes:
        tables: for each name the statement that creates the table. A file must have exactly these.
        application_id: the number in the header of the file that identifies its application.
        content: a description of such a file, for people.
        migrations: the first goes from version 1 to 2, the second from 2 to 3, and so on. After the last one
            the tables must be exactly as if created by the statements.
    """

    tables: dict[str, str]
    application_id: int
    content: str
    migrations: tuple[Migration, ...] = ()

    @property
    def version(self) -> int:
        return 1 + len(self.migrations)


def statement(table: StoreTable, *, integer_keys: Collection[StoreTable]) -> str:
    """Return the statement that creates a table."""
    # Names are quoted because transaction is a keyword. WITHOUT ROWID makes keys of bytes the key of the
    # B-tree itself, not of a separate index: measured a tenth cheaper.
    if table in integer_keys:
        return f'CREATE TABLE "{table.value}" (key INTEGER PRIMARY KEY, content BLOB NOT NULL)'
    return f'CREATE TABLE "{table.value}" (key BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID'
