"""The entries of a lake: of the user that writes it or of root, plain files and folders, no links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
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
        _check(_entries(folder))


def check_hidden(folder: Path) -> None:
    """Do the same for what is opened before the lake is locked."""
    if ownership.HAS_MODES:
        hidden = folder / HIDDEN
        _check([folder, hidden, *sorted(hidden.iterdir())])


def _check(paths: Iterable[Path]) -> None:
    users = ownership.trusted()
    for path in paths:
        status = ownership.status_of(path)
        if status is None:
            continue
        is_folder = stat.S_ISDIR(status.st_mode)
        fault = ownership.owner_fault(status, users) or ("" if is_folder else ownership.kind_fault(status))
        if fault:
            raise LakeDamaged(fault, file=str(path))
        if status.st_mode & stat.S_IWOTH and status.st_uid == os.geteuid():
            with suppress(OSError):
                path.chmod(stat.S_IMODE(status.st_mode) & ~stat.S_IWOTH)


def check_files(folder: Path, paths: Iterable[str]) -> None:
    """Refuse files of a lake that lead elsewhere, or that a reader would wait for. Raises LakeDamaged."""
    folders = {folder / HIDDEN}
    for path in map(Path, paths):
        status = ownership.status_of(path)
        if status is not None and (fault := ownership.kind_fault(status)):
            raise LakeDamaged(fault, file=str(path))
        folders |= {path.parent, path.parent.parent}
    for inner in sorted(folders):
        if inner.is_symlink():  # that of the lake itself is known by its real path
            raise LakeDamaged("it is a link, in place of a folder of the lake: move it away", file=str(inner))


def _entries(folder: Path, *, is_top: bool = True) -> Iterator[Path]:
    """Yield a folder and its entries, and all that is in folders of the lake, without following links."""
    yield folder
    for name in sorted(os.listdir(folder)):
        path = folder / name
        is_ours = not is_top or name == HIDDEN or name.startswith(PARTITION)
        if is_ours and path.is_dir() and not path.is_symlink():
            yield from _entries(path, is_top=False)
        else:
            yield path
