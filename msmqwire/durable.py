"""Durable files: synced folders, files replaced at once, and a lock that ends with its process."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    import sqlite3

LOCK_WAIT_S: Final = 0.2
"""Time for another process that holds a lock only briefly."""
UNFOLLOWED: Final = (  # not every system has each; a pipe in place of a file must not block
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
"""Flags that open a file itself, not what a link leads to."""
_NAME_KEPT: Final = 40
"""Characters of a name that are in that of its unfinished file: a whole one might become too long."""


def sync_directory(path: str | os.PathLike[str], *, follow: bool = True) -> None:
    """Make durable which files a directory has.

    Args:
        path: the directory.
        follow: whether it may be a link to one.

    Raises:
        OSError: it can't be opened or synced.
    """
    if os.name != "posix":
        return  # elsewhere a directory can't be opened, and need not be synced
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Replace a file by a new one, which is on disk then: readers find the old one or the new one, whole.

    Nobody else may be writing it.

    Args:
        path: the file.
        content: the content of the new one.
        mode: permissions of the new one, without those that the umask takes away.

    Raises:
        OSError: it can't be written; the old one is unchanged.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # left by a process that was killed; a link would be followed
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, path)
    sync_directory(path.parent)


@contextmanager
def new_content(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file for a user, which appears under its name, or replaces another one, once it is whole.

    It is written beside that, where a link leads, and is not synced. Anything but a regular file, as a device
    or a pipe, is written directly.

    Raises:
        OSError: it can't be written; `filename` is the path as it was given. The old file is unchanged.
    """
    target = os.path.realpath(path)
    direct = os.path.exists(target) and not os.path.isfile(target)
    folder, name = os.path.split(target)
    written = target if direct else os.path.join(folder, f".{name[:_NAME_KEPT]}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(written, flags if direct else flags | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with open(descriptor, "wb") as stream:
                yield stream
            if not direct:
                os.replace(written, target)
        except BaseException:
            if not direct:
                with suppress(OSError):
                    os.unlink(written)
            raise
    except OSError as exc:
        if exc.filename in (written, target, None):
            raise OSError(exc.errno, exc.strerror, os.fspath(path)) from None
        raise


def make_private(path: Path) -> None:
    """Create a file that only its owner may read, unless it is there. Raises OSError, also for a link."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | UNFOLLOWED, 0o600))


def acquire_lock(path: Path) -> sqlite3.Connection | None:
    """Take the lock on a file, which is created if missing; None if another process has it.

    It is a lock of SQLite on an empty file of its own, so that it works on any file system. It ends when
    the connection is closed, and with the process, however that ends.

    Raises:
        OSError: the file can't be created.
        sqlite3.Error: it can't be locked, or is a file of something else (SQLITE_NOTADB).
    """
    import sqlite3  # 30 ms, of which who reads captures has no use

    make_private(path)
    db = sqlite3.connect(path, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        db.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as exc:
        db.close()
        if result_code(exc) == sqlite3.SQLITE_BUSY:
            return None
        raise
    return db


def result_code(exc: sqlite3.Error) -> int | None:
    """Return the primary result code of SQLite; None for an error of the module sqlite3 itself."""
    extended: int | None = getattr(exc, "sqlite_errorcode", None)
    return None if extended is None else extended & 0xFF  # the lower byte
