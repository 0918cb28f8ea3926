"""The data folder of a queue manager: its store, and the address of its server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msmqwire.crypto.key_files import KEYS_NAME
from msmqwire.errors import StoreMissing
from msmqwire.qm.store import open_store
from msmqwire.service.folder import ServedFolder

if TYPE_CHECKING:
    from msmqwire.service.store.sqlite import SqliteStore
    from msmqwire.service.store.store_lock import StoreLock

STORE: Final = "queues.msmq"
CONTROL: Final = "control"
KEYS: Final = KEYS_NAME
DIRECTORY: Final = "directory.msmq"
TOKEN_FILE: Final = "console-token"
_WITHOUT_EFFECT: Final = frozenset(
    {
        "status", "list", "queues", "activity", "show", "report", "peek", "read", "cancel", "open_cursor",
        "close_cursor", "subscribe", "begin", "abort", "refresh_keys", "keep_peer_keys", "health", "drain",
        "definitions_export", "options_kept",
        "policy_list", "policy_show",
    }
)  # fmt: skip
"""Requests that can be repeated, or leave no trace of a lost connection: `read` only locks messages."""


class DataFolder(ServedFolder):
    """The data folder, DIR of ``msmqwire serve --data DIR``."""

    store_name = STORE
    control_name = CONTROL

    @classmethod
    def changes(cls, op: str, request: Mapping[str, Any]) -> bool:
        match op:
            case "receive" | "end":
                return bool(request.get("done"))
            case "send" | "move":
                return request.get("transaction") is None
            case "create":
                return not request.get("missing")  # else it can be repeated
        return op not in _WITHOUT_EFFECT

    def prepare(self, *, create: bool) -> None:
        """Create the folder, or check that it has a store; and secure it.

        Raises StoreMissing and StoreRefused.
        """
        if create:
            self.create()
        elif not (self.path / STORE).exists():
            raise StoreMissing("there is no queue manager in this folder", file=str(self.path))
        else:
            self.secure()

    def open_store(self, *, create: bool) -> SqliteStore:
        """Open the store exclusively. Raises the subclasses of StoreError."""
        self.prepare(create=create)
        return open_store(self.path / STORE, create=create)

    def lock_store(self) -> StoreLock:
        """Take the store for this process before it is opened, with `open_locked`; the folder is made.

        Raises the subclasses of StoreError.
        """
        from msmqwire.service.store.store_lock import StoreLock

        self.prepare(create=True)
        return StoreLock(self.path / STORE)

    def open_locked(self, lock: StoreLock) -> SqliteStore:
        """Open the store for which this process has the lock. Raises the subclasses of StoreError."""
        return open_store(self.path / STORE, create=True, lock=lock)
