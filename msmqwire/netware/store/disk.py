"""Files and directories of the host: no link is followed, and durable data are synced."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msmqwire.durable import UNFOLLOWED
from msmqwire.errors import StoreRefused
from msmqwire.netware.store.dos_attributes import hide

_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_OBSTACLES: Final = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENXIO, errno.EINVAL)


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Raise StoreRefused for an OSError in the block."""
    try:
        yield
    except OSError as exc:
        raise StoreRefused(exc.strerror or str(exc), file=str(path)) from exc


def is_full(exc: OSError) -> bool:
    """Return whether an error means that there is no room."""
    return exc.errno in _NO_ROOM


def is_obstructed(exc: OSError) -> bool:
    """Return whether an error means that a link, or anything but a file, is in the place of a file."""
    return exc.errno in _OBSTACLES


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Open a plain file for the block. Raises OSError, also for a link or anything but a file."""
    descriptor = os.open(path, flags | UNFOLLOWED, _MODE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        yield descriptor
    finally:
        os.close(descriptor)


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of the data. Raises OSError."""
    os.lseek(descriptor, offset, os.SEEK_SET)
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def read_at(descriptor: int, offset: int, count: int) -> bytes:
    """Read a number of bytes, fewer only at the end of the file. Raises OSError."""
    os.lseek(descriptor, offset, os.SEEK_SET)
    parts: list[bytes] = []
    while count and (part := os.read(descriptor, count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def sync(descriptor: int) -> None:
    """Sync a file. Raises OSError."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync alone does not reach the disk on this system
    else:
        os.fsync(descriptor)


def is_directory(path: Path) -> bool:
    """Return whether there is a directory, not a link to one. Raises OSError."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def make_directory(path: Path) -> bool:
    """Make a directory unless it is there; return whether it was made. Raises OSError."""
    if is_directory(path):
        return False
    path.mkdir(mode=_DIRECTORY_MODE)
    return True


def replace_hidden(path: Path, data: bytes) -> None:
    """Replace the content of a hidden file atomically: readers find the old or the new one. Raises
    OSError.
    """
    new = path.with_name(path.name + ".new")
    try:
        with opened(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
            write_at(descriptor, data, 0)
        hide(new)
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
