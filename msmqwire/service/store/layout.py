"""The tables of a store in a file, their version, and the migrations from older versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    import sqlite3

Migration = Callable[["sqlite3.Connection"], None]
"""A function that migrates the tables and their rows from one version to the next, inside a transaction of
the caller: it neither begins nor ends one, so it must not use `executescript`.
"""


Schema = set[tuple[str, str]]
"""Names, and the statements that create what has them."""

_CHECKSUM: Final = ", sum INTEGER"


class Layout(NamedTuple):
    """The schema of a store.

    Attributes:
        tables: for each table the statement that creates it. A file must have exactly these, and `COUNTS`.
        application_id: the number in the header of the file that identifies its application.
        content: a description of such a file, for people.
        migrations: the first goes from version 1 to 2, the second from 2 to 3, and so on. After the last one
            the tables must be exactly as if created by the statements.
        bulky: tables of large rows, which a start does not read.
    """

    tables: dict[StoreTable, str]
    application_id: int
    content: str
    migrations: tuple[Migration, ...] = ()
    bulky: frozenset[StoreTable] = frozenset()

    @property
    def version(self) -> int:
        return 1 + len(self.migrations)

    @property
    def schema(self) -> Schema:
        """The tables of a file of this version."""
        return {(table.value, sql) for table, sql in self.tables.items()} | {(CountTable.COUNT.value, COUNTS)}

    @property
    def schemas(self) -> Schema:
        """The tables of files of all versions."""
        return self.schema | {(name, without_checksums(sql)) for name, sql in self.schema}


def schema_of(db: sqlite3.Connection) -> Schema:
    """Return the tables of a file, and what else its schema has. Raises sqlite3.Error."""
    columns = "ifnull(CAST(name AS TEXT), ''), CAST(sql AS TEXT)"  # in a damaged file they may be numbers
    found = db.execute(f"SELECT {columns} FROM sqlite_master WHERE sql IS NOT NULL")
    return {(name.decode(errors="replace"), sql.decode(errors="replace")) for name, sql in found}


def statement(table: StoreTable, *, integer_keys: Collection[StoreTable] = ()) -> str:
    """Return the statement that creates a table."""
    # Names are quoted because transaction is a keyword. WITHOUT ROWID makes keys of bytes the key of the
    # B-tree itself, not of a separate index: measured a tenth cheaper.
    if table in integer_keys:
        key, end = "INTEGER PRIMARY KEY", ""
    else:
        key, end = "BLOB PRIMARY KEY", " WITHOUT ROWID"
    return f'CREATE TABLE "{table.value}" (key {key}, content BLOB NOT NULL{_CHECKSUM}){end}'


def without_checksums(sql: str) -> str:
    """Return the statement that created a table in the versions before checksums."""
    return sql.replace(_CHECKSUM, "")


class CountTable(StoreTable):
    """The table of the counts of rows, which every store has."""

    COUNT = "row_count"  # by name of the table


COUNTS: Final = statement(CountTable.COUNT)


def add_checksums(db: sqlite3.Connection, tables: Iterable[StoreTable]) -> None:
    """Migrate tables of a version before checksums: their rows get one when they are next written."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (CountTable.COUNT.value,)).fetchone():
        return  # the version is damaged
    for table in tables:
        db.execute(f'ALTER TABLE "{table.value}" ADD COLUMN sum INTEGER')
    db.execute(COUNTS)
