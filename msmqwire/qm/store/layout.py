"""The tables of a store in a file, their version, and the migrations from older versions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from msmqwire.qm.model.changes import INTEGER_KEYS, Table
from msmqwire.qm.model.store_table import StoreTable

if TYPE_CHECKING:
    import sqlite3

APPLICATION_ID: Final = 0x4D534D51
"""The application id of a queue manager's store: MSMQ in ASCII."""

Migration = Callable[["sqlite3.Connection"], None]
"""Takes the tables and their rows from one version to the next, inside a transaction of the caller: it
neither begins nor ends one, so it must not use `executescript`."""


class Layout(NamedTuple):
    """The schema of a store.

    Attributes:
        tables: for each name the statement that creates the table. A file must have these and no others.
        migrations: the first goes from version 1 to 2, the second from 2 to 3, and so on. After the last the
            tables have to be as if created by the statements, to the letter.
        application_id: the number in the header of the file that says whose it is.
        content: what such a file holds, for people.
    """

    tables: dict[str, str]
    migrations: tuple[Migration, ...] = ()
    application_id: int = APPLICATION_ID
    content: str = "messages"

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


def _with_origins(db: sqlite3.Connection) -> None:
    """Version 2: rows of messages and incoming sequences may end in an origin, and those of outgoing queues
    say who asked for them. Rows of version 1 are read as they are; its msmqwire could not read these.
    """


def _with_histories(db: sqlite3.Connection) -> None:
    """Version 3: rows of messages that were moved or given back say how often. Those of version 2 are read as
    they are; its msmqwire could not read these.
    """


def _with_former_streams(db: sqlite3.Connection) -> None:
    """Version 4: former streams are stored, those that begin here and those that end here."""
    columns = "(key BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID"
    db.execute(f'CREATE TABLE IF NOT EXISTS "former_stream" {columns}')  # the version may be damaged


LAYOUT: Final = Layout(
    {table.value: statement(table, integer_keys=INTEGER_KEYS) for table in Table},
    (_with_origins, _with_histories, _with_former_streams),
)
"""The present layout."""
