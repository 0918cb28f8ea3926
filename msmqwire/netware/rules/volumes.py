"""Directories and files of volumes, outside the queue directories, under the rights of their trustees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode, TrusteeRights
from msmqwire.netware.model import names
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import Change, CreateVolumeFile, MakeVolumeDirectory, PutVolumeEntry
from msmqwire.netware.model.files import Trustee, VolumeEntry, VolumeFile
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.open_files import OpenFiles
from msmqwire.netware.rules.queue_table import QueueTable
from msmqwire.netware.rules.trustees import ALL_RIGHTS, Trustees

VOLUMES: Final = ("SYS",)
"""The volumes that have numbers, from 0 on."""


class VolumeSpace(NamedTuple):
    """The size of a volume in bytes, and in directories and files outside the queues."""

    name: str
    total_bytes: int
    free_bytes: int
    entries: int
    free_entries: int


class VolumeRules:
    """The directories and files. While a queue server has a client's rights, the client's rights decide
    here.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        objects: Objects,
        queues: QueueTable,
        trustees: Trustees,
        files: OpenFiles,
        changes: list[Change],
    ) -> None:
        self._settings, self._objects, self._trustees = settings, objects, trustees
        self._queues, self._files, self._changes = queues, files, changes
        self._entries: dict[str, VolumeEntry] = {}

    def restore(self, entries: Iterable[VolumeEntry]) -> None:
        """Take the rows of a store."""
        self._entries.update((entry.path, entry) for entry in entries)

    def entry(self, path: str) -> VolumeEntry | None:
        """Return the directory or file of a path, with its owner, or None."""
        return self._entries.get(names.volume_path(path))

    def number(self, name: str) -> int:
        """Return the number of a volume.

        Raises:
            NcpRefused: NO_SUCH_VOLUME for all but SYS: other volumes have no numbers.
        """
        name = name.removesuffix(":").upper()
        if name not in VOLUMES:
            raise NcpRefused(f"no volume {name!r} has a number", CompletionCode.NO_SUCH_VOLUME)
        return VOLUMES.index(name)

    def space(self, number: int) -> VolumeSpace:
        """Return the size of a volume: all volumes have room together, and SYS has it.

        Raises:
            NcpRefused: NO_SUCH_VOLUME.
        """
        if number >= len(VOLUMES):
            raise NcpRefused(f"there is no volume {number}", CompletionCode.NO_SUCH_VOLUME)
        settings, files = self._settings, self._files
        free = settings.files_bytes_max - files.total_bytes if files.has_room else 0
        entries = settings.volume_entries_max
        return VolumeSpace(
            VOLUMES[number],
            settings.files_bytes_max,
            max(0, free),
            entries,
            max(0, entries - len(self._entries)),
        )

    def effective_rights(self, caller: Caller, path: str) -> TrusteeRights:
        """Return the rights of a caller in a directory.

        Raises:
            NcpRefused: INVALID_PATH.
        """
        return self._trustees.effective_rights(caller.effective_id, self._directory(path))

    def set_trustee(self, caller: Caller, path: str, object_id: int, rights: int) -> None:
        """Give an object rights in a directory and below; 0 takes away the rights inherited from above.

        Raises:
            NcpRefused: INVALID_PATH, NO_SUCH_OBJECT, NO_CREATE_DELETE_PRIVILEGES without the right
                TR_ACCESS_CTRL, FAILURE for invalid rights, SERVER_OUT_OF_MEMORY.
        """
        path = self._directory(path)
        self._check(caller, path, TrusteeRights.TR_ACCESS_CTRL, CompletionCode.NO_CREATE_DELETE_PRIVILEGES)
        if not 0 <= rights <= ALL_RIGHTS:
            raise NcpRefused(f"{rights:#x} are not rights", CompletionCode.FAILURE)
        self._trustees.put(Trustee(path, self._objects[object_id].id, rights))  # QMS-createqs-07

    def create_directory(self, caller: Caller, path: str) -> None:
        """Create a directory, whose owner is the caller.

        Raises:
            NcpRefused: INVALID_PATH, NO_CREATE_PRIVILEGES without the right TR_CREATE above it,
                NO_CREATE_DELETE_PRIVILEGES if it exists, DIRECTORY_FULL.
        """
        path = self._create(caller, path, is_directory=True)  # QMS-createqs-07
        self._changes.append(MakeVolumeDirectory(path))

    def create_file(self, caller: Caller, path: str) -> int:
        """Create an empty file, whose owner is the caller, and return its handle for reading and writing.

        Raises:
            NcpRefused: as `create_directory`; NO_MORE_FILE_HANDLES, OUT_OF_DISK_SPACE.
        """
        self._files.check_new(caller)
        path = self._create(caller, path, is_directory=False)
        self._changes.append(CreateVolumeFile(path))
        return self._files.open(caller, VolumeFile(path), may_read=True, may_write=True)

    def open_file(self, caller: Caller, path: str, *, may_read: bool, may_write: bool) -> int:
        """Open a file and return its handle.

        Raises:
            NcpRefused: INVALID_PATH, FAILURE if there is no such file, NO_READ_PRIVILEGES or
                NO_WRITE_PRIVILEGES without the right TR_READ or TR_WRITE; NO_MORE_FILE_HANDLES.
        """
        path = names.volume_path(path)
        above = names.parent(path)
        if may_read:
            self._check(caller, above, TrusteeRights.TR_READ, CompletionCode.NO_READ_PRIVILEGES)
        if may_write:
            self._check(caller, above, TrusteeRights.TR_WRITE, CompletionCode.NO_WRITE_PRIVILEGES)
        entry = self._entries.get(path)
        if entry is None or entry.is_directory or not (may_read or may_write):
            raise NcpRefused(f"no file {path} to open", CompletionCode.FAILURE)
        self._files.check_room(caller)
        return self._files.open(caller, VolumeFile(path), may_read=may_read, may_write=may_write)

    def _create(self, caller: Caller, path: str, *, is_directory: bool) -> str:
        path = names.volume_path(path)
        if self._queues.has_directory(path):
            raise NcpRefused(f"{path} belongs to a queue", CompletionCode.INVALID_PATH)
        above = self._directory(names.parent(path))
        self._check(caller, above, TrusteeRights.TR_CREATE, CompletionCode.NO_CREATE_PRIVILEGES)
        if path in self._entries or path == above:
            raise NcpRefused(f"there is {path} already", CompletionCode.NO_CREATE_DELETE_PRIVILEGES)
        self._check_limit(1)
        self._put(caller, path, is_directory=is_directory)
        return path

    def missing_above(self, path: str) -> list[str]:
        """Return the directories above a path of `volume_path` that have to be made, outermost first.

        Raises:
            NcpRefused: INVALID_PATH if one of them is a file, DIRECTORY_FULL.
        """
        missing: list[str] = []
        while (above := names.parent(path)) != names.parent(above):
            entry = self._entries.get(above)
            if entry is None:
                missing.insert(0, above)
            elif not entry.is_directory:
                raise NcpRefused(f"{above} is a file", CompletionCode.INVALID_PATH)
            path = above
        self._check_limit(len(missing))
        return missing

    def add_directories(self, caller: Caller, paths: Iterable[str]) -> None:
        """Enter directories of `missing_above`, which are made with their content."""
        for path in paths:
            self._put(caller, path, is_directory=True)

    def _check_limit(self, more: int) -> None:
        if len(self._entries) + more > self._settings.volume_entries_max:
            raise NcpRefused("no more directories and files", CompletionCode.DIRECTORY_FULL)

    def _put(self, caller: Caller, path: str, *, is_directory: bool) -> None:
        owner = caller.effective_id  # QMS-service-12
        assert owner is not None
        self._entries[path] = entry = VolumeEntry(path, owner, is_directory)
        self._changes.append(PutVolumeEntry(entry))

    def _directory(self, path: str) -> str:
        """Return the canonical path of an existing directory; the roots of volumes always exist."""
        path = names.volume_path(path)
        entry = self._entries.get(path)
        if path != names.parent(path) and (entry is None or not entry.is_directory):
            raise NcpRefused(f"there is no directory {path}", CompletionCode.INVALID_PATH)
        return path

    def _check(self, caller: Caller, path: str, right: TrusteeRights, code: CompletionCode) -> None:
        if not self._trustees.effective_rights(caller.effective_id, path) & right:  # QMS-service-12
            raise NcpRefused(f"no right {right.name} in {path}", code)
