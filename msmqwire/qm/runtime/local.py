"""Local access to the queues of a folder: through its server, or directly in its store if none runs."""

from __future__ import annotations

import os

from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.service.control.client import Local, attach_to

DISK_S = 10.0
"""Seconds that a disk may refuse commits before a request fails."""


def attach(path: str | os.PathLike[str], *, create: bool = False) -> Local:
    """Open the queues of a folder: through its server, or in its store if none runs.

    Args:
        path: the folder.
        create: create a queue manager, with the name of this computer, if the folder has none.

    Raises the subclasses of StoreError: StoreMissing if the folder has no queue manager, StoreInUse if
    another process has its store open without serving it; InvalidValue for unusable keys in it.
    """
    folder = DataFolder(path)
    return attach_to(folder, lambda: in_store(folder, create=create))


def in_store(folder: DataFolder, *, create: bool) -> Local:
    """Open the store of a folder. Raises as `attach` does."""
    folder.prepare(create=create)
    from msmqwire.qm.runtime.in_store import InStore  # imports a whole queue manager; a server has its own

    return InStore(folder, create=create)
