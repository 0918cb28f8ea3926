"""The store of a queue manager: its tables, their version, and the migrations from older versions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msmqwire.qm.model.tables import INTEGER_KEYS, Table
from msmqwire.service.store.layout import Layout, add_checksums, statement
from msmqwire.service.store.memory import MemoryStore

if TYPE_CHECKING:
    import sqlite3

    from msmqwire.service.store.sqlite import SqliteStore
    from msmqwire.service.store.store_lock import StoreLock

APPLICATION_ID: Final = 0x4D534D51
"""The application id of a queue manager's store: MSMQ in ASCII."""


def _with_origins(db: sqlite3.Connection) -> None:
    """Version 2: rows of messages and incoming sequences may end in an origin, and rows of outgoing queues
    name the asking origin.

    Rows of version 1 are read unchanged; its msmqwire could not read the new ones.
    """


def _with_histories(db: sqlite3.Connection) -> None:
    """Version 3: rows of messages that were moved or returned have the counts.

    Rows of version 2 are read unchanged; its msmqwire could not read the new ones.
    """


def _with_former_streams(db: sqlite3.Connection) -> None:
    """Version 4: former streams are stored, both outgoing and incoming ones."""
    columns = "(key BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID"
    db.execute(f'CREATE TABLE IF NOT EXISTS "former_stream" {columns}')  # the version may be damaged


def _with_checksums(db: sqlite3.Connection) -> None:
    """Version 5: rows have checksums, and are counted."""
    add_checksums(db, [table for table in Table if table not in AFTER_CHECKSUMS])


def _with_deliveries(db: sqlite3.Connection) -> None:
    """Version 6: rows of messages that programs gave back, or that were moved by a rule, say so.

    Rows of version 5 are read unchanged; its msmqwire could not read the new ones.
    """


def _with_idempotency(db: sqlite3.Connection) -> None:
    """Version 7: idempotency keys are stored."""
    _create(db, Table.IDEMPOTENCY)


def _with_policies(db: sqlite3.Connection) -> None:
    """Version 8: policies are stored, and queues name the properties that were set on them."""
    _create(db, Table.POLICY)


def _with_tokens(db: sqlite3.Connection) -> None:
    """Version 9: tokens of the API are stored."""
    _create(db, Table.TOKEN)


def _create(db: sqlite3.Connection, table: Table) -> None:
    """Create a table, unless it is there: the version may be damaged."""
    sql = statement(table, integer_keys=INTEGER_KEYS)
    db.execute(sql.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1))


AFTER_CHECKSUMS: Final = frozenset({Table.IDEMPOTENCY, Table.POLICY, Table.TOKEN})
"""The tables that have come after the checksums."""


LAYOUT: Final = Layout(
    {table: statement(table, integer_keys=INTEGER_KEYS) for table in Table},
    APPLICATION_ID,
    "messages",
    (
        _with_origins,
        _with_histories,
        _with_former_streams,
        _with_checksums,
        _with_deliveries,
        _with_idempotency,
        _with_policies,
        _with_tokens,
    ),
    bulky=frozenset({Table.PACKET}),
)
"""The present layout."""


def open_store(
    path: str | os.PathLike[str], *, create: bool = True, lock: StoreLock | None = None
) -> SqliteStore:
    """Open the store of a queue manager, with its lock if that was taken before. Raises the subclasses of
    StoreError.
    """
    from msmqwire.service.store.sqlite import SqliteStore  # a client has no folder

    return SqliteStore(path, LAYOUT, create=create, lock=lock)


def memory_store() -> MemoryStore:
    """Return a store without a disk, for express messages only and for tests."""
    return MemoryStore(LAYOUT)
