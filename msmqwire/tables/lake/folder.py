"""The folder of a lake, and how it changes: by commits that happen as a whole, whenever the writer is killed.

Files are staged under ``_lake``, by names that no reader of Parquet files takes. A commit replaces the
manifest: from then on the lake has the new files and not those that they replace. The next steps (replaced
files are removed, then the new ones get their names) are pending in the manifest, and the next process that
opens the folder completes them. So readers of the manifest see all or nothing of a commit, and those that
list the folder never see a row twice.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from msmqwire.durable import acquire_lock, replace_file
from msmqwire.errors import LakeDamaged, LakeInUse, LakeMismatch, LakeMissing
from msmqwire.tables.lake.entries import PARTITION, check_entries, check_hidden
from msmqwire.tables.lake.manifest import HIDDEN, NAME, STAGING, Manifest, Pending, lake_folder, load
from msmqwire.tables.lake.open_folder import OpenFolder, names_by_folder, opened_folder

LOCK: Final = "lock"
_MODE: Final = 0o664
_INNER: Final = ("kind=", "queue=")
_RUN_NAME: Final = re.compile("[0-9a-f]{32}")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[LakeFolder]:
    """Open a folder for writing; it is created if missing, and leftovers of an earlier writer are cleaned up.

    Raises:
        LakeInUse: another process has it open.
        LakeMismatch: the folder has other files, and no lake.
        LakeDamaged: the manifest is broken, or the folder has links, or entries of other users.
        UnsupportedStore: the folder is a URL.
        OSError: it can't be written.
    """
    folder = lake_folder(path)
    hidden = folder / HIDDEN
    if not os.path.lexists(hidden) and folder.exists() and any(folder.iterdir()):
        raise LakeMismatch("the folder has files, and is not a lake: name another one", file=str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    with opened_folder(folder) as root, root.inside(STAGING, make=True):
        check_hidden(folder)
    try:
        lock = acquire_lock(hidden / LOCK)
    except sqlite3.Error as exc:
        raise OSError(None, f"the lake can't be locked: {exc}", str(hidden / LOCK)) from exc
    if lock is None:
        raise LakeInUse("another process is writing the lake", file=str(folder))
    with closing(lock):
        check_entries(folder)
        lake = LakeFolder(folder)
        lake.recover()
        try:
            yield lake
        finally:
            lake.clean_up()


class LakeFolder:
    """A folder that this process alone writes.

    Attributes:
        path: the folder.
        manifest: the manifest of the lake; None before the first commit.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.manifest: Manifest | None = load(path)
        except LakeMissing:
            self.manifest = None

    def begin(self) -> str:
        """Return a new folder for staged files, below that of the lake."""
        run = f"{STAGING}/{secrets.token_hex(16)}"
        with opened_folder(self.path) as root, root.inside(run, make=True):
            return run

    def commit(self, manifest: Manifest) -> None:
        """Make this the lake: all of it once the manifest is written, nothing before.

        Args:
            manifest: with the moves of the staged files and the removals as pending.

        Raises:
            OSError: it can't be written. If it was after the commit, the next writer completes it.
        """
        self._write(manifest)
        self.recover()

    def recover(self) -> None:
        """Complete the last commit."""
        if self.manifest is None or self.manifest.pending is None:
            return
        pending = self.manifest.pending
        self._remove(pending.removals)
        self._move(pending)
        self._write(replace(self.manifest, pending=None))

    def _write(self, manifest: Manifest) -> None:
        replace_file(self.path / HIDDEN / NAME, manifest.dump(), mode=_MODE)
        self.manifest = manifest

    def _remove(self, files: Iterable[str]) -> None:
        """Remove files for good: a reader must not find them beside those that replace them."""
        with opened_folder(self.path) as root:
            for path, names in names_by_folder(files).items():
                with suppress(FileNotFoundError), root.inside(path) as folder:
                    for name in names:
                        folder.unlink(name)
                    folder.sync()

    def _move(self, pending: Pending) -> None:
        """Give staged files their names; those that are gone have theirs."""
        staged_of = {name: staged for staged, name in pending.moves}
        with opened_folder(self.path) as root:
            for path, names in names_by_folder(staged_of).items():
                with root.inside(path, make=True) as folder:
                    for name in names:
                        if not folder.has(name):
                            self._rename(root, staged_of[f"{path}/{name}"], folder, name)
                    folder.sync()

    def _rename(self, root: OpenFolder, staged: str, folder: OpenFolder, name: str) -> None:
        path, _, staged_name = staged.rpartition("/")
        with root.inside(path) as run:
            run.rename(staged_name, folder, name)

    def clean_up(self) -> None:
        """Remove staged files that no commit needs, and empty partitions.

        Files that a task still writes, and no process waits for, are left to the next writer.
        """
        if self.manifest is not None and self.manifest.pending is not None:
            return
        with opened_folder(self.path) as root:
            with root.inside(STAGING) as staging:
                for name in staging.names():
                    if _RUN_NAME.fullmatch(name):
                        staging.remove_tree(name)
            for name in root.names():
                if name.startswith(PARTITION):
                    _remove_empty(root, name)


def _remove_empty(root: OpenFolder, name: str) -> None:
    """Remove the folder of a date if it is empty, and empty ones in it; links are left alone."""
    with suppress(OSError, LakeDamaged):
        with root.inside(name) as folder:
            for inner in folder.names():
                if inner.startswith(_INNER):
                    with suppress(OSError):
                        folder.rmdir(inner)
        root.rmdir(name)
