"""Handles of open files.

The runtime reads and writes; these rules resolve handles to files and check permissions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.files import AnyFile, FileAccess, VolumeFile
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.file_space import KNOWN, Account, FileSpace

_HANDLE_MAX: Final = 0xFFFFFFFF
_OFFSET_MAX: Final = 0xFFFFFFFF
_Key = TypeVar("_Key", int, AnyFile)


@dataclass(frozen=True, slots=True)
class _OpenFile:
    connection: int
    task: int
    file: AnyFile
    may_read: bool
    may_write: bool
    account: Account


class OpenFiles:
    """The open files. A handle keeps the rights that it was opened with, and the account of its opener.

    Attributes:
        has_room: whether the disk has room for new files and more data; set by the runtime.
        space: the bytes of all files.
    """

    def __init__(self, settings: Settings, account_of: Callable[[Caller, AnyFile], Account]) -> None:
        self._settings, self._account_of = settings, account_of
        self.has_room, self.space = True, FileSpace(settings)
        self._open: dict[int, _OpenFile] = {}
        self._by_connection: dict[int, set[int]] = defaultdict(set)
        self._by_file: dict[AnyFile, set[int]] = defaultdict(set)
        self._last_handle = 0

    @property
    def total_bytes(self) -> int:
        """The bytes of all files."""
        return self.space.used

    def check_room(self, caller: Caller) -> None:
        """Check that the connection may open one more file.

        Raises:
            NcpRefused: NO_MORE_FILE_HANDLES.
        """
        if len(self._by_connection.get(caller.connection, ())) >= self._settings.handles_max:
            raise NcpRefused("the connection has too many files open", CompletionCode.NO_MORE_FILE_HANDLES)

    def check_new(self, caller: Caller) -> None:
        """Check that the connection may create one more file and have it open.

        Raises:
            NcpRefused: NO_MORE_FILE_HANDLES, OUT_OF_DISK_SPACE.
        """
        self.check_room(caller)
        if not self.has_room:
            raise NcpRefused("the disk is almost full", CompletionCode.OUT_OF_DISK_SPACE)

    def open(self, caller: Caller, file: AnyFile, *, may_read: bool, may_write: bool) -> int:
        """Return a new handle of the connection, once `check_room` has passed: 1 to 0xFFFFFFFF."""
        handle = self._last_handle % _HANDLE_MAX + 1
        while handle in self._open:
            handle = handle % _HANDLE_MAX + 1
        self._last_handle = handle
        account = self._account_of(caller, file) if may_write else KNOWN
        self._open[handle] = _OpenFile(caller.connection, caller.task, file, may_read, may_write, account)
        self._by_connection[caller.connection].add(handle)
        self._by_file[file].add(handle)
        return handle

    def is_open(self, file: AnyFile) -> bool:
        """Return whether any connection has the file open."""
        return bool(self._by_file.get(file))

    def read(self, caller: Caller, handle: int, offset: int, count: int) -> FileAccess:
        """Return the range to read: at most up to the end of the file.

        Raises:
            NcpRefused: INVALID_FILE_HANDLE, NO_READ_PRIVILEGES, FAILURE for an invalid offset or count.
        """
        found = self._found(caller, handle)
        if not found.may_read:  # QMS-ext-17
            raise NcpRefused("the file is not open for reading", CompletionCode.NO_READ_PRIVILEGES)
        _check_range(offset, count)
        left = max(0, self.size(found.file) - offset)
        return FileAccess(found.file, offset, min(count, left))

    def write(self, caller: Caller, handle: int, offset: int, count: int) -> FileAccess:
        """Return the range to write, and count it. If writing fails, `set_size` takes it back.

        Raises:
            NcpRefused: INVALID_FILE_HANDLE, NO_WRITE_PRIVILEGES, OUT_OF_DISK_SPACE, FAILURE for an invalid
                offset or count.
        """
        found = self._found(caller, handle)
        if not found.may_write:  # QMS-ext-17
            raise NcpRefused("the file is not open for writing", CompletionCode.NO_WRITE_PRIVILEGES)
        _check_range(offset, count)
        before = self.size(found.file)
        if count and offset + count > before:
            if not self.has_room:
                raise NcpRefused("the disk is almost full", CompletionCode.OUT_OF_DISK_SPACE)
            self.space.check(found.file, offset + count, found.account)
            self.space.add(found.file, offset + count - before, found.account)
        return FileAccess(found.file, offset, count)

    def close(self, caller: Caller, handle: int) -> AnyFile:
        """Close a file of the connection, and return it.

        Raises:
            NcpRefused: INVALID_FILE_HANDLE.
        """
        file = self._found(caller, handle).file
        self._close(handle)
        return file

    def close_file(self, file: AnyFile) -> None:
        """Close all handles of a file."""
        for handle in tuple(self._by_file.get(file, ())):
            self._close(handle)

    def close_connection(self, connection: int) -> None:
        """Close all handles of a connection."""
        for handle in tuple(self._by_connection.get(connection, ())):
            self._close(handle)

    def close_task(self, caller: Caller) -> None:
        """Close the files of volumes that the caller's task has opened; files of jobs end with their jobs."""
        for handle in tuple(self._by_connection.get(caller.connection, ())):
            found = self._open[handle]
            if found.task == caller.task and isinstance(found.file, VolumeFile):
                self._close(handle)

    def size(self, file: AnyFile) -> int:
        """Return the size of a file in bytes."""
        return self.space.size(file)

    def set_size(self, file: AnyFile, size: int) -> None:
        """Note the size of a file on disk, after a failure to write; a deleted file has none."""
        if file in self.space:
            self.space.set_size(file, size)

    def delete(self, file: AnyFile) -> None:
        """Forget a file that is deleted; its handles are dead."""
        self.close_file(file)
        self.space.delete(file)

    def _found(self, caller: Caller, handle: int) -> _OpenFile:
        found = self._open.get(handle)
        if found is None or found.connection != caller.connection:
            raise NcpRefused(f"no open file has the handle {handle}", CompletionCode.INVALID_FILE_HANDLE)
        return found

    def _close(self, handle: int) -> None:
        found = self._open.pop(handle)
        _discard(self._by_connection, found.connection, handle)
        _discard(self._by_file, found.file, handle)


def _discard(index: dict[_Key, set[int]], key: _Key, handle: int) -> None:
    index[key].discard(handle)
    if not index[key]:
        del index[key]


def _check_range(offset: int, count: int) -> None:
    if not (0 <= offset <= _OFFSET_MAX and count >= 0 and offset + count <= _OFFSET_MAX + 1):
        raise NcpRefused(f"no bytes {offset} to {offset + count}", CompletionCode.FAILURE)
