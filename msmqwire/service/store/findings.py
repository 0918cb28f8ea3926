"""The faults of a store with the names of what they concern, as a check of a folder reports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from msmqwire.service.store.changes import Changes
from msmqwire.service.store.store_check import Fault, StoreCheck

Advance = Callable[[int], None]
"""A function that is called with the number of bytes that were read."""


class Finding(NamedTuple):
    """A fault of a store.

    Attributes:
        fault: lost, damaged, outdated or structure; repaired for what a repair has made again.
        what: the kind of thing: message, queue, job, object, row, rows or file.
        name: the thing, for people; empty if its name is not known.
        why: the reason.
        queue: the queue of a message or job, or the queue itself, if known.
        identifier, label: those of a message, if they can be read.
        table, key: the row; the key of bytes in hexadecimal digits.
    """

    fault: str
    what: str
    name: str
    why: str
    queue: str | None = None
    identifier: str | None = None
    label: str | None = None
    table: str | None = None
    key: int | str | None = None


class Repair(Protocol):
    """Changes that a damaged store needs beside the loss of rows."""

    changes: Changes
    done: list[Finding]


class FolderCheck(Protocol):
    """A check of one store of a folder."""

    store: StoreCheck

    def findings(self, advance: Advance) -> Iterator[Finding]:
        """Yield all faults."""

    def repair(self) -> Repair:
        """Return the changes that the rest of the store needs, after all findings were taken."""


def of_row(fault: Fault) -> Finding:
    """Return the finding for a fault of a row, of several, or of the file."""
    table = None if fault.table is None else fault.table.value
    if table is None:
        return Finding(fault.kind, "file", "", fault.text)
    key = fault.key.hex() if isinstance(fault.key, bytes) else fault.key
    return Finding(fault.kind, "rows" if key is None else "row", "", fault.text, table=table, key=key)
