"""Owners and modes: whether somebody else may have written a file, or may read it.

Trusted are root and the user of this process. A group is one user's alone if it has that user's number, as
most systems give each user such a group. Only systems of Unix have these modes: elsewhere nothing is checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import BinaryIO, Final

from msmqwire.durable import UNFOLLOWED, replace_file
from msmqwire.errors import InvalidValue, StoreRefused
from msmqwire.names.printable import counted

HAS_MODES: Final = os.name == "posix"
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OF_ROOT: Final = stat.S_IRGRP
"""What a file of root may allow: its group is the one that root has chosen to read it."""
_KINDS: Final = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a folder"),
)
_SECRET_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Trusted:
    """Users whose files are as good as our own.

    Attributes:
        owners: their numbers.
        group: a further group that may write: that of a folder of root that the group may write to anyway.
    """

    owners: frozenset[int]
    group: int | None = None

    def may_write(self, status: os.stat_result) -> bool:
        """Whether only they can write a file, by its mode."""
        own_group = status.st_gid in self.owners or status.st_gid == self.group
        return not status.st_mode & (stat.S_IWOTH if own_group else WRITABLE_BY_OTHERS)


def trusted(*more: int, group: int | None = None) -> Trusted:
    """Return root, the user of this process, and further users; `group` as in `Trusted`."""
    return Trusted(frozenset({0, os.geteuid(), *more}), group)


def owner_fault(status: os.stat_result, users: Trusted) -> str:
    """Return why a file is not ours; empty if it is."""
    if status.st_uid in users.owners:
        return ""
    return (
        f"it belongs to another user, of number {status.st_uid}: move it away, "
        f"or, if it may be trusted, let chown give it to {os.geteuid()}"
    )


def kind_fault(status: os.stat_result) -> str:
    """Return why an entry is no plain file; empty if it is one."""
    if stat.S_ISREG(status.st_mode):
        return ""
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "a device")
    return f"it is {kind}, not a plain file: move it away"


def mode_fault(path: Path, status: os.stat_result, users: Trusted) -> str:
    """Return why the mode of an entry is not safe, with the remedy; empty if only `users` can write it."""
    if users.may_write(status):
        return ""
    mode = stat.S_IMODE(status.st_mode)
    return f"it has the mode {mode:04o}: other users may write it; use chmod go-w {quote(str(path))}"


def file_fault(path: Path, status: os.stat_result, users: Trusted) -> str:
    """Return why a file may not be used, with the remedy; empty for a plain file that only `users` can write.

    `status` is of the file itself, not of what a link leads to.
    """
    if fault := owner_fault(status, users) or kind_fault(status):
        return fault
    if fault := mode_fault(path, status, users):
        return fault
    if status.st_nlink > 1:
        return (
            f"it has {counted(status.st_nlink, 'name')}, hard links: move it away, or put a copy in its place"
        )
    return ""


def folder_users(status: os.stat_result) -> Trusted:
    """Return who may have written the files of a folder.

    Root may let a group write into a folder of its own, as volumes of containers are handed out: the files
    there are no safer than the folder.
    """
    shared = status.st_mode & stat.S_IWGRP and status.st_uid == 0 != os.geteuid()
    return trusted(group=status.st_gid if shared else None)


def folder_fault(status: os.stat_result, users: Trusted) -> str:
    """Return why files of ours can't be in a folder; empty if only `users` can put files there."""
    if status.st_uid not in users.owners:
        return f"the folder belongs to another user, of number {status.st_uid}"
    return "" if users.may_write(status) else "other users may write into the folder"


def entry_faults(folder: Path, users: Trusted, *, sockets: str = "") -> Iterator[tuple[Path, str]]:
    """Yield the entries of a folder that may not be there, and why: all but plain files that only `users` can
    write, their folders, and their sockets with this ending.

    All entries are looked at, whatever their names: SQLite and others find files by names of their own.
    """
    for name in sorted(os.listdir(folder)):
        path = folder / name
        status = status_of(path)
        if status is None:
            continue
        is_socket = stat.S_ISSOCK(status.st_mode) and sockets and name.endswith(sockets)
        if stat.S_ISDIR(status.st_mode) or is_socket:
            fault = owner_fault(status, users)
        else:
            fault = file_fault(path, status, users)
        if fault:
            yield path, fault


def tree_fault(folder: Path, users: Trusted) -> tuple[Path, str] | None:
    """Return the first of a folder and all that is in it, at any depth, that may not be there, and why.

    Everything is of `users`, and for nobody else to write; links are left to those who follow none.
    """
    found = (Path(parent, name) for parent, inner, names in os.walk(folder) for name in (*inner, *names))
    for path in chain((folder,), found):
        status = status_of(path)
        if status is None:
            continue
        fault = owner_fault(status, users)
        if not (fault or stat.S_ISLNK(status.st_mode)):
            fault = mode_fault(path, status, users)
        if fault:
            return path, fault
    return None


def check_siblings(path: Path) -> None:
    """Refuse a file if somebody else may have written it, its folder, or one of its own files.

    Its own files have its name with a suffix, as the logs and journals of SQLite, which takes them for its
    own. Raises StoreRefused.
    """
    if not HAS_MODES:
        return
    try:
        found = _sibling_fault(path)
    except OSError as exc:
        raise StoreRefused(exc.strerror or str(exc), file=str(path)) from None
    if found:
        file, why = found
        raise StoreRefused(why, file=str(file))


def _sibling_fault(path: Path) -> tuple[Path, str] | None:
    status = path.parent.stat()
    users = folder_users(status)
    if fault := folder_fault(status, users):
        return path.parent, fault
    for name in sorted(os.listdir(path.parent)):
        if name == path.name or name.startswith((f"{path.name}-", f"{path.name}.")):
            entry = path.with_name(name)
            entry_status = status_of(entry)
            if entry_status is not None and (fault := file_fault(entry, entry_status, users)):
                return entry, fault
    return None


def status_of(path: Path) -> os.stat_result | None:
    """Return the status of a file itself, not of what a link leads to; None if it is gone."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def movers(path: Path) -> Iterator[Path]:
    """Yield the folders above a path in which another user can put something else in its place."""
    if not HAS_MODES:
        return
    users = trusted()
    for parent in path.resolve().parents:
        status = parent.stat()
        is_shared = status.st_mode & stat.S_ISVTX  # there each may move only what is theirs
        if status.st_uid not in users.owners or not (is_shared or users.may_write(status)):
            yield parent


def read_own(path: Path, size_max: int, users: Trusted | None) -> bytes:
    """Return the content of a plain file, without following a link or waiting for a pipe.

    `users` may have written it; None is anybody. Raises OSError, and InvalidValue for a file that somebody
    else may have written, anything but a plain file, and a larger one.
    """
    with _plain(path, str(path)) as stream:
        if users is not None and (fault := file_fault(path, os.fstat(stream.fileno()), users)):
            raise InvalidValue(fault)
        return _content(stream, path, size_max, str(path))


def read_secret(file: Path, size_max: int, path: str = "", *, follow: bool = True) -> bytes:
    """Return the content of a file with a secret, which nobody else may read: see `secret_fault`.

    Args:
        file: the file.
        size_max: its largest size in bytes.
        path: the path of the error.
        follow: whether it may be a link to one, or a pipe that the reader waits for.

    Raises OSError if it can't be read, and InvalidValue for a file that is too large, or that other users may
    read or write.
    """
    with file.open("rb") if follow else _plain(file, path) as stream:
        if fault := secret_fault(file, os.fstat(stream.fileno())):
            raise InvalidValue(f"{_named(file, path)} {fault}", path=path)
        return _content(stream, file, size_max, path)


def secret_fault(file: Path, status: os.stat_result) -> str:
    """Return why a file can hold no secret, with the remedy; empty if it can.

    Only its owner may use it. One of root may be readable for its group too: so root gives it to a service
    that runs as another user. `status` is of what a link leads to.
    """
    if not HAS_MODES or not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
        return ""  # a terminal
    allowed = _OF_ROOT if status.st_uid == 0 != os.geteuid() else 0
    if not status.st_mode & _OTHERS & ~allowed:
        return ""
    mode = stat.S_IMODE(status.st_mode)
    return f"has the mode {mode:04o}: other users may use it; use chmod 600 {quote(str(file))}"


def write_secret(file: Path, content: bytes) -> None:
    """Replace a file by a new one that only its owner can access, and sync it. Raises OSError.

    No other process may write it meanwhile.
    """
    replace_file(file, content, mode=_SECRET_MODE)


@contextmanager
def _plain(file: Path, path: str) -> Iterator[BinaryIO]:
    """Open a plain file, without following a link or waiting for a pipe.

    Raises OSError, and InvalidValue with this path for anything else.
    """
    where = "" if path == str(file) else f"{file}: "
    link = status_of(file)  # for a clear error, and for systems that would follow it
    if link is not None and stat.S_ISLNK(link.st_mode):
        raise InvalidValue(f"{where}{kind_fault(link)}", path=path)
    with open(file, "rb", opener=_unfollowed) as stream:
        if fault := kind_fault(os.fstat(stream.fileno())):
            raise InvalidValue(f"{where}{fault}", path=path)
        yield stream


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | UNFOLLOWED)


def _content(stream: BinaryIO, file: Path, size_max: int, path: str) -> bytes:
    """Return what a file has. Raises InvalidValue for more than `size_max` bytes."""
    size = os.fstat(stream.fileno()).st_size
    content = stream.read(min(size, size_max) + 1)  # it takes as much memory as it may read
    if size < len(content) <= size_max:  # a pipe, or a file that grows
        content += stream.read(size_max + 1 - len(content))
    if len(content) > size_max:
        raise InvalidValue(f"{_named(file, path)} has more than {counted(size_max, 'byte')}", path=path)
    return content


def _named(file: Path, path: str) -> str:
    """Return how an error with this path names a file."""
    return "it" if path == str(file) else str(file)
