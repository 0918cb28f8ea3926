"""Changes of the persistent data model, as rows of tables: collected by the rules, committed by a store.

A step of the rules changes rows; its effects may be carried out once these are durable. Rows are bytes;
their format is known only to the module that writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.qm.model.store_table import StoreTable

Key = int | bytes


class Table(StoreTable):
    """The tables of a queue manager's store."""

    META = "meta"  # by name (bytes): counters and settings
    QUEUE = "queue"  # by number: attributes of queues, outgoing ones too
    MESSAGE = "message"  # by number: the position and state of a recoverable message
    PACKET = "packet"  # by number of the message: its packet
    TRANSACTION = "transaction"  # by Identifier
    OUTGOING = "outgoing"  # by number of the message: the state of its transfer
    SEQUENCE = "sequence"  # by number of the outgoing queue: its transactional sequence
    FORMER_STREAM = "former_stream"  # by stream of SRMP: the outgoing queue whose messages it once numbered
    INCOMING = "incoming"  # by sender and destination: the last transactional message accepted
    HISTORY = "history"  # by message identifier: when a recoverable message was received


INTEGER_KEYS: Final = frozenset({Table.QUEUE, Table.MESSAGE, Table.PACKET, Table.OUTGOING, Table.SEQUENCE})
"""The tables whose keys are integers."""


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

    def __iter__(self) -> Iterator[tuple[StoreTable, Key, bytes | None]]:
        for table, rows in self.rows.items():
            for key, row in rows.items():
                yield table, key, row
