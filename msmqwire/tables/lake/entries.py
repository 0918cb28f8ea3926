"""The entries of a lake: of the user that writes it or of root, plain files and folders, no links."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from msmqwire import ownership
from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake.manifest import HIDDEN

PARTITION: Final = "date="
"""How the names of the folders with data begin."""


def check_entries(folder: Path) -> None:
    """Refuse a lake with an entry that another user has put there, or that leads elsewhere.

    Its owner chooses the modes, but for the right of everybody to write, which is taken away where the file
    system has modes. Raises LakeDamaged, and OSError.
    """
    if ownership.HAS_MODES:
        _check(folder)
        _check_inside(folder)


def check_hidden(folder: Path) -> None:
    """Do the same for what is opened before the lake is locked."""
    if ownership.HAS_MODES:
        hidden = folder / HIDDEN
        for path in (folder, hidden, *sorted(hidden.iterdir())):
            _check(path)


def _check(path: Path) -> bool:
    """Check one entry; return whether it is a folder."""
    status = ownership.status_of(path)
    if status is None:
        return False
    is_folder = stat.S_ISDIR(status.st_mode)
    fault = ownership.owner_fault(status, ownership.trusted())
    if fault := fault or ("" if is_folder else ownership.kind_fault(status)):
        raise LakeDamaged(fault, file=str(path))
    if status.st_mode & stat.S_IWOTH and status.st_uid == os.geteuid():
        with suppress(OSError):
            path.chmod(stat.S_IMODE(status.st_mode) & ~stat.S_IWOTH)
    return is_folder


def _check_inside(folder: Path, *, is_top: bool = True) -> None:
    """Check the entries of a folder, and all that is in folders of the lake."""
    for name in sorted(os.listdir(folder)):
        is_ours = not is_top or name == HIDDEN or name.startswith(PARTITION)
        if _check(folder / name) and is_ours:
            _check_inside(folder / name, is_top=False)


def check_files(folder: Path, paths: Collection[str]) -> None:
    """Refuse files of a lake that lead elsewhere, or that a reader would wait for. Raises LakeDamaged."""
    for path in paths:
        status = ownership.status_of(Path(path))
        if status is not None and (fault := ownership.kind_fault(status)):
            raise LakeDamaged(fault, file=path)
    folders = {str(folder / HIDDEN), *map(os.path.dirname, paths)}
    for inner in sorted(folders | set(map(os.path.dirname, folders))):
        if os.path.islink(inner):  # that of the lake itself is known by its real path
            raise LakeDamaged("it is a link, in place of a folder of the lake: move it away", file=inner)
