"""The data folder of a queue manager: its store, and the address of its server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.errors import StoreMissing
from msmqwire.qm.runtime.served_folder import ServedFolder

if TYPE_CHECKING:
    from msmqwire.qm.store.sqlite import SqliteStore

STORE: Final = "queues.msmq"
CONTROL: Final = "control"
KEYS: Final = "keys.json"
DIRECTORY: Final = "directory.msmq"
TOKEN_FILE: Final = "console-token"


class DataFolder(ServedFolder):
    """The data folder, DIR of ``msmqwire serve --data DIR``."""

    store_name = STORE
    control_name = CONTROL
    more_names = (KEYS, KEYS + ".new", DIRECTORY, TOKEN_FILE, TOKEN_FILE + ".new")

    def prepare(self, *, create: bool) -> None:
        """Create the folder, or see that it has a store. Raises StoreMissing and StoreRefused."""
        if create:
            self.create()
        elif not (self.path / STORE).exists():
            raise StoreMissing("there is no queue manager in this folder", file=str(self.path))

    def open_store(self, *, create: bool) -> SqliteStore:
        """Open the store exclusively. Raises the subclasses of StoreError."""
        self.prepare(create=create)
        from msmqwire.qm.store.sqlite import SqliteStore

        return SqliteStore(self.path / STORE, create=create)
