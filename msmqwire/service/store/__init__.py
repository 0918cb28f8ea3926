"""Stores, in which the changed rows of a service become durable.

`Store` is the interface; `memory` keeps the rows in this process, `sqlite` on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.table import StoreTable

if TYPE_CHECKING:
    from typing import Self


class Store(Protocol):
    """Rows of tables that survive the end of the process: [MS-MQDMPR] 3.1.1, Persistent.

    Any thread may call any method; commits of several threads are serialised. After `close` every method
    except `close` raises ValueError, as methods of a closed file do. All other failures are a `StoreError`.
    """

    @property
    def version(self) -> int:
        """The version of the tables and of the content of their rows."""

    def commit(self, changes: Changes) -> None:
        """Make the changes durable, all of them or none, before returning.

        After `StoreRefused` the same changes, with later ones added, may be retried.
        """

    def rows(self, table: StoreTable) -> Iterator[tuple[Key, bytes]]:
        """Yield all rows in the order of their keys, as of the moment when the first one is taken."""

    def row(self, table: StoreTable, key: Key) -> bytes | None:
        """Return a row; None if there is no such key. This does not wait for a commit under way."""

    def close(self) -> None:
        """Close the store; closing it again does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
