"""Malformed rows of a store: damage that SQLite can't see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msmqwire.errors import LocatedError, MsmqError, StoreDamaged
from msmqwire.service.logs import log


@contextmanager
def restoring(store: object) -> Iterator[None]:
    """Raise StoreDamaged if the rows of a store can't be read, for any reason."""
    try:
        yield
    except Exception as exc:
        if isinstance(exc, MsmqError) and not isinstance(exc, LocatedError):
            raise
        log.debug("the store can't be restored", exc_info=True)
        from msmqwire.service.store.file_check import damaged
        from msmqwire.service.store.sqlite import SqliteStore

        reason = f"its rows can't be read: {exc!r}"
        if not isinstance(store, SqliteStore):
            raise StoreDamaged(reason, file="the store") from exc
        store.check()  # it names the row, if that is not the one that was written
        raise damaged(store.path, reason) from exc
