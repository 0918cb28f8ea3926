"""The entries of a lake: of the user that writes it or of root, plain files and folders, no links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msmqwire import ownership
from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake.open_folder import NO_FOLDER

PARTITION: Final = "date="
"""How the names of the folders with data begin."""
LOG: Final = "_delta_log"
_HIDDEN: Final = (LOG, "_msmqwire", "_lake")
"""The folders of everything but data, the last one of lakes of earlier versions."""


def check_entries(folder: Path, *, mend: bool = True) -> None:
    """Refuse a lake with an entry that another user has put there, or that leads elsewhere.

    Its owner chooses the modes, but for the right of everybody to write, which is taken away where the file
    system has modes, unless nothing is to be mended. Raises LakeDamaged, and OSError.
    """
    if ownership.HAS_MODES:
        _check(folder, mend=mend)
        _check_inside(folder, mend=mend)


def _check(path: Path, *, mend: bool) -> bool:
    """Check one entry; return whether it is a folder."""
    status = ownership.status_of(path)
    if status is None:
        return False
    is_folder = stat.S_ISDIR(status.st_mode)
    fault = ownership.owner_fault(status, ownership.trusted())
    if fault := fault or ("" if is_folder else ownership.kind_fault(status)):
        raise LakeDamaged(fault, file=str(path))
    if mend and status.st_mode & stat.S_IWOTH and status.st_uid == os.geteuid():
        with suppress(OSError):
            path.chmod(stat.S_IMODE(status.st_mode) & ~stat.S_IWOTH)
    return is_folder


def _check_inside(folder: Path, *, mend: bool, is_top: bool = True) -> None:
    """Check the entries of a folder, and all that is in folders of the lake."""
    for name in sorted(os.listdir(folder)):
        is_ours = not is_top or name in _HIDDEN or name.startswith(PARTITION)
        if _check(folder / name, mend=mend):
            if folder.name == LOG and not is_top:
                _check_is_file(folder / name)
            if is_ours:
                _check_inside(folder / name, mend=mend, is_top=False)
        elif is_top and is_ours and os.path.lexists(folder / name):
            raise LakeDamaged(NO_FOLDER, file=str(folder / name))


def _check_is_file(path: Path) -> None:
    """Refuse a folder in the log that has the name of a commit or a checkpoint."""
    if "." in path.name:
        raise LakeDamaged("it is a folder, in place of a file of the log: move it away", file=str(path))


def check_files(folder: Path, paths: Iterable[str]) -> None:
    """Refuse files of a lake that are missing, that lead elsewhere, or that a reader would wait for.

    Args:
        folder: the folder.
        paths: the paths of the files below it.

    Raises:
        LakeDamaged: one is not as it should be.
    """
    log = folder / LOG
    files = [str(folder / path) for path in paths]
    for path in files:
        if not _check_plain(path):
            raise LakeDamaged("the log of the lake names it, and it is missing", file=path)
    folders = {str(log), *map(os.path.dirname, files)} - {str(folder)}
    for inner in sorted(folders | (set(map(os.path.dirname, folders)) - {str(folder)})):
        status = ownership.status_of(Path(inner))  # that of the lake itself is known by its real path
        if status is not None and not stat.S_ISDIR(status.st_mode):
            raise LakeDamaged(NO_FOLDER, file=inner)
    if log.is_dir():
        for entry in os.scandir(log):
            if entry.is_dir(follow_symlinks=False):
                _check_is_file(Path(entry.path))
            else:
                _check_plain(entry.path)  # of writers, which come and go


def _check_plain(path: str) -> bool:
    """Check a file; return whether there is one."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if fault := ownership.kind_fault(status):
        raise LakeDamaged(fault, file=path)
    return True
