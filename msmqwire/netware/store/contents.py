"""Reading all rows of a store."""

from __future__ import annotations

from collections.abc import Iterator

from msmqwire.netware.model.contents import Contents
from msmqwire.netware.store import rows
from msmqwire.netware.store.tables import NEXT_OBJECT_ID, NetwareTable, queue_of
from msmqwire.service.store import Store


def read_contents(store: Store) -> Contents:
    """Return the contents of a store, without the sizes of files.

    Raises KeyError, TypeError and ValueError for malformed rows, and StoreError.
    """
    next_id = store.row(NetwareTable.META, NEXT_OBJECT_ID)
    return Contents(
        objects=[rows.read_object(key, row) for key, row in _by_number(store, NetwareTable.OBJECT)],
        next_object_id=0 if next_id is None else rows.read_number(next_id),
        queues=[rows.read_queue(key, row) for key, row in _by_number(store, NetwareTable.QUEUE)],
        orders={key: rows.read_order(row) for key, row in _by_number(store, NetwareTable.ORDER)},
        jobs=[(queue_of(key), rows.read_job(row)) for key, row in _by_number(store, NetwareTable.JOB)],
        entries=[rows.read_entry(key, row) for key, row in _by_name(store, NetwareTable.ENTRY)],
        trustees=[rows.read_trustee(row) for _, row in _by_name(store, NetwareTable.TRUSTEE)],
    )


def unsettled_directories(store: Store) -> list[str]:
    """Return the paths of queue directories that were being made or removed."""
    return [key.decode() for key, _ in _by_name(store, NetwareTable.UNSETTLED)]


def _by_number(store: Store, table: NetwareTable) -> Iterator[tuple[int, bytes]]:
    for key, row in store.rows(table):
        if not isinstance(key, int):
            raise TypeError(f"a key of {table.value} that is not a number")
        yield key, row


def _by_name(store: Store, table: NetwareTable) -> Iterator[tuple[bytes, bytes]]:
    for key, row in store.rows(table):
        if not isinstance(key, bytes):
            raise TypeError(f"a key of {table.value} that is not a name")
        yield key, row
