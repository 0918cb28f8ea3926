"""A store without a disk, for queue managers of express messages only and for simulations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.layout import Layout
from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    from typing import Self


class MemoryStore:
    """A `Store` that ends with the process. Its rows can be copied at any time, also after `close`."""

    def __init__(self, layout: Layout) -> None:
        """Begin without rows; `layout` has the tables and their version."""
        self._layout = layout
        self._tables: dict[StoreTable, dict[Key, bytes]] = defaultdict(dict)
        self._lock = Lock()
        self._closed = False

    @property
    def version(self) -> int:
        return self._layout.version

    def copy(self) -> MemoryStore:
        """Return an independent, open store with the present rows: the state after a restart."""
        copy = MemoryStore(self._layout)
        with self._lock:
            copy._tables.update({table: rows.copy() for table, rows in self._tables.items()})
        return copy

    def commit(self, changes: Changes) -> None:
        with self._lock:
            self._check_open()
            for table, rows in changes.rows.items():
                stored = self._tables[table]
                for key, row in rows.items():
                    if row is None:
                        stored.pop(key, None)
                    else:
                        stored[key] = row

    def rows(self, table: StoreTable) -> Iterator[tuple[Key, bytes]]:
        with self._lock:
            self._check_open()
            rows = sorted(self._tables[table].items())
        yield from rows

    def row(self, table: StoreTable, key: Key) -> bytes | None:
        with self._lock:
            self._check_open()
            return self._tables[table].get(key)

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the store is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
