"""The data folder of a queue service, DIR of ``msmqwire netware serve --data DIR``."""

from __future__ import annotations

from msmqwire.errors import StoreMissing
from msmqwire.qm.runtime.served_folder import ServedFolder
from msmqwire.qm.store.sqlite import SqliteStore
from msmqwire.qms.store.tables import open_store
from msmqwire.qms.store.volumes import Volumes

STORE = "netware.qms"
CONTROL = "netware-control"
VOLUMES = "volumes"


class NetwareFolder(ServedFolder):
    """A folder with the store and volumes of a queue service; it may be that of a queue manager, too."""

    store_name = STORE
    control_name = CONTROL
    more_names = (VOLUMES,)

    def open_store(self, *, create: bool) -> SqliteStore:
        """Open the store exclusively. Raises the subclasses of StoreError."""
        if create:
            self.create()
        elif not (self.path / STORE).exists():
            raise StoreMissing("there is no NetWare queue service in this folder", file=str(self.path))
        return open_store(self.path / STORE, create=create)

    def open_volumes(self) -> Volumes:
        """Open the volumes, once the store is open. Raises StoreRefused."""
        return Volumes(self.path / VOLUMES)
