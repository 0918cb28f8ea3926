"""The tables of a queue service's store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msmqwire.service.store.layout import Layout, add_checksums, statement
from msmqwire.service.store.sqlite import SqliteStore
from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    import sqlite3


class NetwareTable(StoreTable):
    """The tables. Their rows are written and read by `msmqwire.netware.store.rows`."""

    META = "meta"  # by name (bytes): counters
    OBJECT = "object"  # by ID: a bindery object with its properties
    QUEUE = "queue"  # by ID
    JOB = "job"  # by `job_key`
    ORDER = "job_order"  # by ID of the queue: the numbers of its jobs, in order
    ENTRY = "volume_entry"  # by path: a directory or file of a volume, outside the queue directories
    TRUSTEE = "trustee"  # by `trustee_key`: rights in a directory
    UNSETTLED = "unsettled"  # by path: a queue directory that is being made or removed


def _with_checksums(db: sqlite3.Connection) -> None:
    """Version 2: rows have checksums, and are counted."""
    add_checksums(db, NetwareTable)


LAYOUT: Final = Layout(
    {
        table: statement(
            table,
            integer_keys=(NetwareTable.OBJECT, NetwareTable.QUEUE, NetwareTable.JOB, NetwareTable.ORDER),
        )
        for table in NetwareTable
    },
    application_id=0x4E57514D,  # NWQM in ASCII
    content="a NetWare queue service",
    migrations=(_with_checksums,),
)
"""The present layout."""

NEXT_OBJECT_ID: Final = b"next object id"
"""The key in META of the next object's ID."""
_NUMBER_BITS: Final = 16


def job_key(queue_id: int, job_number: int) -> int:
    """Return the key of a job."""
    return queue_id << _NUMBER_BITS | job_number


def queue_of(key: int) -> int:
    """Return the ID of the queue from the key of a job."""
    return key >> _NUMBER_BITS


def trustee_key(path: str, object_id: int) -> bytes:
    """Return the key of a trustee."""
    return path.encode() + b"\0" + object_id.to_bytes(4, "big")


def open_store(path: str | os.PathLike[str], *, create: bool) -> SqliteStore:
    """Open the store of a queue service. Raises the subclasses of StoreError."""
    return SqliteStore(path, LAYOUT, create=create)
