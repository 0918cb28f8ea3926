"""The data folder of a queue service, DIR of ``msmqwire netware serve --data DIR``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmqwire import ownership
from msmqwire.errors import StoreMissing, StoreRefused
from msmqwire.netware.store.tables import open_store
from msmqwire.netware.store.volumes import Volumes
from msmqwire.service.folder import ServedFolder
from msmqwire.service.store.sqlite import SqliteStore

STORE = "netware.qms"
CONTROL = "netware-control"
VOLUMES = "volumes"
_WITHOUT_EFFECT: Final = frozenset({"object_list", "object_show", "queue_list", "queue_show"})


class NetwareFolder(ServedFolder):
    """A folder with the store and volumes of a queue service; a queue manager may use the same folder."""

    store_name = STORE
    control_name = CONTROL

    @classmethod
    def changes(cls, op: str, request: Mapping[str, Any]) -> bool:
        return op not in _WITHOUT_EFFECT

    def open_store(self, *, create: bool) -> SqliteStore:
        """Open the store exclusively. Raises the subclasses of StoreError."""
        if create:
            self.create()
        elif not (self.path / STORE).exists():
            raise StoreMissing("there is no NetWare queue service in this folder", file=str(self.path))
        else:
            self.secure()
        return open_store(self.path / STORE, create=create)

    def open_volumes(self) -> Volumes:
        """Open the volumes, once the store is open. Raises StoreRefused."""
        path = self.path / VOLUMES
        if ownership.HAS_MODES:
            users = ownership.folder_users(self.path.stat())
            if found := ownership.tree_fault(path, users):
                file, why = found
                raise StoreRefused(why, file=str(file))
        return Volumes(path)
