"""Stores: where the changed rows of a queue manager become durable.

`Store` is what a queue manager asks for; `memory` keeps the rows in this process, `sqlite` on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from msmqwire.qm.model.changes import Changes, Key, Table

if TYPE_CHECKING:
    from typing import Self


class Store(Protocol):
    """Rows of tables that survive the end of the process: [MS-MQDMPR] 3.1.1, Persistent.

    Any thread may call any method; commits of several threads follow each other. After `close` every method
    but `close` raises ValueError, as those of a closed file do. All else that goes wrong is a `StoreError`.
    """

    @property
    def version(self) -> int:
        """The version of the tables and of what is in their rows."""

    def commit(self, changes: Changes) -> None:
        """Makes the changes durable, all of them or none: they are when this returns.

        After `StoreRefused` the same changes, with later ones on top, may be tried again.
        """

    def rows(self, table: Table) -> Iterator[tuple[Key, bytes]]:
        """All rows in the order of their keys, as they are when the first one is taken."""

    def row(self, table: Table, key: Key) -> bytes | None:
        """One row; None if there is none. It does not wait for a commit that is under way."""

    def close(self) -> None:
        """Ends the use of the store; a second time does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
