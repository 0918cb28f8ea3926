"""The lock on a store: only one process at a time has it open, and it is taken before the file is read."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from msmqwire.durable import acquire_lock, result_code
from msmqwire.errors import StoreForeign, StoreInUse, StoreRefused

_SUFFIX: Final = ".lock"


class StoreLock:
    """The lock of this process on a store; it ends with the process, in any case.

    On the store itself it would shut out the connections that read while another one commits.

    Args:
        path: the file of the store, which need not exist; its folder must. Symbolic links are followed.

    Raises:
        StoreInUse: another process has the store open, or is about to open it.
        StoreForeign: the lock file belongs to another program.
        StoreRefused: the system refuses it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        store = Path(os.path.realpath(path))
        file = store.with_name(store.name + _SUFFIX)
        try:
            lock = acquire_lock(file)
        except sqlite3.Error as exc:
            if result_code(exc) == sqlite3.SQLITE_NOTADB:
                reason = "the lock file belongs to another program; move it away"
                raise StoreForeign(reason, file=str(file)) from exc
            raise StoreRefused(str(exc), file=str(store)) from exc
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(store)) from exc
        if lock is None:
            reason = "another process has the store open; end it, or give this one a store of its own"
            raise StoreInUse(reason, file=str(store))
        self._lock = lock

    def close(self) -> None:
        """Give the lock up. A second call does nothing."""
        self._lock.close()
