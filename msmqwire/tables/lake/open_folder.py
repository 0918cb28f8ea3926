"""Folders that are reached without following a link: one inside a lake must not lead its writer out of it.

Each step goes from an open folder to an entry of it by its name, so that nobody can put a link in between.
Systems other than Unix have no such calls: there a link is looked for before each step.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msmqwire.durable import UNFOLLOWED
from msmqwire.errors import LakeDamaged

NO_FOLDER: Final = "it is a link, or a file, in place of a folder of the lake: move it away"
_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
_BY_DESCRIPTOR: Final = {os.open, os.mkdir, os.unlink, os.rmdir, os.rename} <= os.supports_dir_fd
_MODE, _FILE_MODE = 0o775, 0o664
"""Of new folders and files, less what the umask takes away: never for everybody to write."""


class OpenFolder:
    """An open folder.

    Attributes:
        path: where it was when it was opened.
    """

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path, self._descriptor = path, descriptor

    def _at(self, name: str) -> tuple[str | Path, dict[str, Any]]:
        """Return the name of an entry for the functions of `os`, and their further arguments."""
        if self._descriptor is None:
            return self.path / name, {}
        return name, {"dir_fd": self._descriptor}

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Let errors have the whole path of an entry."""
        try:
            yield
        except OSError as exc:
            raise OSError(exc.errno, exc.strerror, str(self.path / name)) from None

    @contextmanager
    def inside(self, path: str, *, make: bool = False) -> Iterator[OpenFolder]:
        """Open a folder by its path below this one, with ``/``; missing ones are made durably with `make`.

        Raises FileNotFoundError for a missing one, LakeDamaged for a link, or a file, in its place.
        """
        first, _, rest = path.partition("/")
        if make:
            self._make(first)
        with _opened(self.path / first, *self._at(first)) as folder:
            if not rest:
                yield folder
                return
            with folder.inside(rest, make=make) as last:
                yield last

    def _make(self, name: str) -> None:
        entry, more = self._at(name)
        try:
            with self._naming(name):
                os.mkdir(entry, _MODE, **more)
        except FileExistsError:
            return
        self.sync()

    def create(self, name: str) -> int:
        """Create a file, which must be missing; return its descriptor, for writing."""
        entry, more = self._at(name)
        with self._naming(name):
            return os.open(entry, os.O_WRONLY | os.O_CREAT | os.O_EXCL | UNFOLLOWED, _FILE_MODE, **more)

    def sync_file(self, name: str) -> None:
        """Make the content of a file durable; a missing one is no error."""
        entry, more = self._at(name)
        with suppress(FileNotFoundError), self._naming(name):
            descriptor = os.open(entry, os.O_RDWR | UNFOLLOWED, **more)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def has(self, name: str) -> bool:
        """Return whether there is an entry of this name, of any kind."""
        return name in self.names()

    def names(self) -> list[str]:
        """Return the names of the entries."""
        return os.listdir(self.path if self._descriptor is None else self._descriptor)

    def plain_files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the names of plain files with their status; links are none."""
        for name in self.names():
            entry, more = self._at(name)
            with suppress(FileNotFoundError):
                status = os.stat(entry, follow_symlinks=False, **more)
                if stat.S_ISREG(status.st_mode):
                    yield name, status

    def unlink(self, name: str) -> None:
        """Remove a file, or a link itself; a missing one is no error."""
        entry, more = self._at(name)
        with suppress(FileNotFoundError), self._naming(name):
            os.unlink(entry, **more)

    def rename(self, name: str, to: OpenFolder, new: str) -> None:
        """Move an entry to another folder."""
        (source, one), (target, other) = self._at(name), to._at(new)
        at = {"src_dir_fd": one["dir_fd"], "dst_dir_fd": other["dir_fd"]} if one else {}
        with self._naming(name):
            os.rename(source, target, **at)

    def rmdir(self, name: str) -> None:
        """Remove an empty folder."""
        entry, more = self._at(name)
        with self._naming(name):
            os.rmdir(entry, **more)

    def remove_if_empty(self, name: str) -> None:
        """Remove a folder, unless there is something in it."""
        try:
            self.rmdir(name)
        except OSError as exc:
            if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise

    def sync(self) -> None:
        """Make durable which entries there are."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)


@contextmanager
def opened_folder(path: Path) -> Iterator[OpenFolder]:
    """Open a folder by its real path. Raises as `OpenFolder.inside` does."""
    with _opened(path, path, {}) as folder:
        yield folder


def names_by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of files by their folders, both of paths with ``/``."""
    result: dict[str, list[str]] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        result.setdefault(folder, []).append(name)
    return result


@contextmanager
def _opened(path: Path, entry: str | Path, more: dict[str, Any]) -> Iterator[OpenFolder]:
    if not _BY_DESCRIPTOR:
        if path.is_symlink() or os.path.realpath(path) != str(path):  # a junction of Windows is no link
            raise _led_away(path)
        if not path.is_dir():
            raise FileNotFoundError(None, "there is no such folder", str(path))
        yield OpenFolder(path, None)
        return
    try:
        descriptor = os.open(entry, _FLAGS, **more)
    except OSError as exc:
        if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
            raise _led_away(path) from None
        raise OSError(exc.errno, exc.strerror, str(path)) from None
    try:
        yield OpenFolder(path, descriptor)
    finally:
        os.close(descriptor)


def _led_away(path: Path) -> LakeDamaged:
    return LakeDamaged(NO_FOLDER, file=str(path))
