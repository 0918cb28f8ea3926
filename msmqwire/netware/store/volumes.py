"""The volumes of a file server as folders of the host, such as ``volumes/SYS``, with their files.

Paths come from clients. `volume_path` admits only names without ``..`` and separators, none of which may be a
link on the host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msmqwire.durable import sync_directory
from msmqwire.errors import InvalidValue, NcpRefused, StoreError, StoreRefused
from msmqwire.netware.model import names
from msmqwire.netware.model.changes import (
    Change,
    CopyJobFile,
    CreateJobFile,
    CreateVolumeFile,
    DeleteJob,
    DeleteJobFile,
    DeleteQueue,
    MakeQueueDirectory,
    MakeVolumeDirectory,
    PutJob,
    PutOrder,
    RemoveQueueDirectory,
    SyncJobFile,
)
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import AnyFile, StoredJobFile, VolumeFile
from msmqwire.netware.store import disk
from msmqwire.netware.store.queue_files import QueueFiles, Servers

SYS: Final = "SYS"


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state of the disk after a restart.

    Attributes:
        sizes: bytes of data in each file.
        missing: the queue files that jobs have lost.
        settled: paths of queue directories that no longer exist.
        failures: the refusals of the system, retried at the next start.
    """

    sizes: Mapping[AnyFile, int]
    missing: Sequence[StoredJobFile]
    settled: Sequence[str]
    failures: Sequence[StoreError]


@dataclass(slots=True)
class Followed:
    """The outcome of the changes that come after the rows.

    Attributes:
        settled: paths of queue directories that were removed.
        failures: the refusals of the system, retried later.
    """

    settled: list[str] = field(default_factory=list)
    failures: list[StoreError] = field(default_factory=list)


class Volumes:
    """The files of a queue service. All methods raise StoreRefused; any thread may read and write files."""

    def __init__(self, folder: Path) -> None:
        """Use the volumes in a folder, which is made if it is missing."""
        self._folder = folder
        self._queues: dict[int, QueueFiles] = {}
        with disk.reporting(folder):
            self._make_directories(folder / SYS)

    def host_path(self, path: str) -> Path:
        r"""Return the path of the host for ``SYS:DIR\FILE``.

        Raises InvalidValue for an invalid path, StoreRefused if a parent is not a directory.
        """
        try:
            volume, _, rest = names.volume_path(path).partition(":")
        except NcpRefused as exc:
            raise InvalidValue(exc.why) from None
        result = self._folder / volume
        parts = rest.split("\\") if rest else []
        for part in parts:
            with disk.reporting(result):
                if not disk.is_directory(result) and os.path.lexists(result):
                    raise StoreRefused("not a directory", file=str(result))
            result = result / part
        return result

    def _make_directories(self, path: Path) -> None:
        """Make a directory and its missing parents durably. Raises OSError."""
        if path != self._folder:
            self._make_directories(path.parent)
        if disk.make_directory(path):
            sync_directory(path.parent, follow=False)

    # -- before and after the rows ------------------------------------------------------------------------

    def prepare(self, changes: Iterable[Change], *, recovering: bool = False) -> None:
        """Make directories and files, and sync those that must be durable before the rows.

        While `recovering` a missing file is not synced: its loss is known.
        """
        unsynced: set[Path] = set()
        for change in changes:
            match change:
                case MakeQueueDirectory(queue_id, path):
                    self._make_queue(queue_id, self.host_path(path))
                case CreateJobFile(queue_id, number):
                    queue = self._queues[queue_id]
                    with disk.reporting(queue.file(number)):
                        queue.create(number)
                    unsynced.add(queue.path)
                case CopyJobFile(queue_id, number, _, to_id, to_number):
                    source, target = self._queues[queue_id], self._queues[to_id]
                    with disk.reporting(target.file(to_number)), suppress(FileNotFoundError):
                        source.copy(number, target, to_number)  # a lost file stays lost
                    unsynced.add(target.path)
                case SyncJobFile(queue_id, number):
                    queue = self._queues[queue_id]
                    with disk.reporting(queue.file(number)):
                        try:
                            queue.sync(number)
                        except FileNotFoundError:
                            if not recovering:
                                raise
                case MakeVolumeDirectory(path):
                    host_path = self.host_path(path)
                    with disk.reporting(host_path):
                        self._make_directories(host_path)
                case CreateVolumeFile(path):
                    host_path = self.host_path(path)
                    if self._create_file(host_path):
                        unsynced.add(host_path.parent)
        for directory in unsynced:
            with disk.reporting(directory):
                sync_directory(directory, follow=False)

    def _create_file(self, path: Path) -> bool:
        """Create an empty file; return False if its place is taken by anything but a file.

        That is not a failure of the disk, which would end all connections: the file counts as lost.
        """
        with disk.reporting(path):
            try:
                self._make_directories(path.parent)
                with disk.opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
                    return True
            except OSError as exc:
                if not disk.is_obstructed(exc):
                    raise
                return False

    def _make_queue(self, queue_id: int, path: Path) -> None:
        with disk.reporting(path):
            self._make_directories(path)
            if any(path.iterdir()):
                raise StoreRefused("there are files in the directory of a new queue", file=str(path))
            queue = QueueFiles(queue_id, path)
            queue.make_system_files()
            sync_directory(path, follow=False)
        self._queues[queue_id] = queue

    def follow(self, changes: Iterable[Change], servers: Mapping[int, Servers]) -> Followed:
        """Delete files, and write the jobs and the attached servers into the remaining ones.

        The rows are durable already, so a failure is returned and not raised.
        """
        followed = Followed()
        for change in changes:
            self._follow_reporting(change, followed)
        for queue_id, attached in servers.items():
            if queue_id in self._queues:
                self._queues[queue_id].put_servers(attached)
        for queue in [queue for queue in self._queues.values() if queue.stale]:
            try:
                with disk.reporting(queue.path):
                    queue.refresh()
            except StoreError as exc:
                followed.failures.append(exc)
        return followed

    def _follow_reporting(self, change: Change, followed: Followed) -> None:
        try:
            with disk.reporting(self._folder):
                self._follow(change, followed)
        except StoreError as exc:
            followed.failures.append(exc)

    def _follow(self, change: Change, followed: Followed) -> None:
        match change:
            case PutJob(queue_id, job):
                self._queues[queue_id].put_job(job)
            case DeleteJob(queue_id, number):
                self._queues[queue_id].delete_job(number)
            case PutOrder(queue_id, numbers):
                self._queues[queue_id].put_order(numbers)
            case DeleteJobFile(queue_id, number):
                queue = self._queues[queue_id]
                with disk.reporting(queue.file(number)):
                    queue.delete(number)
            case DeleteQueue(queue_id):
                self._queues.pop(queue_id)
            case RemoveQueueDirectory(queue_id, path):
                host_path = self.host_path(path)
                with disk.reporting(host_path):
                    QueueFiles(queue_id, host_path).remove()
                followed.settled.append(path)

    # -- a restart ----------------------------------------------------------------------------------------

    def recover(self, contents: Contents, unsettled: Iterable[str]) -> Recovered:
        """Remove files and directories without a row, and find those of the rows."""
        sizes: dict[AnyFile, int] = {}
        missing: list[StoredJobFile] = []
        directories = {queue.directory for queue in contents.queues}
        followed = Followed()
        for path in unsettled:
            if path not in directories:
                self._follow_reporting(RemoveQueueDirectory(0, path), followed)
        numbers: dict[int, set[int]] = {queue.object_id: set() for queue in contents.queues}
        for queue_id, job in contents.jobs:
            numbers[queue_id].add(job.job_number)
        self._queues = {}
        for row in contents.queues:
            queue_id, directory = row.object_id, self.host_path(row.directory)
            self._queues[queue_id] = queue = QueueFiles(queue_id, directory)
            with disk.reporting(directory):
                self._make_directories(directory)
                found = queue.recover(numbers[queue_id])
            sizes |= {StoredJobFile(queue_id, number): size for number, size in found.sizes.items()}
            missing += [StoredJobFile(queue_id, number) for number in found.missing]
            queue.put_order(contents.orders.get(queue_id, ()))
        for queue_id, job in contents.jobs:
            self._queues[queue_id].put_job(job)
        for entry in contents.entries:
            if not entry.is_directory:
                file = VolumeFile(entry.path)
                with suppress(StoreRefused):  # lost on disk, which reading reports
                    sizes[file] = self.size(file)
        return Recovered(sizes, missing, followed.settled, followed.failures)

    # -- files --------------------------------------------------------------------------------------------

    def read(self, file: AnyFile, offset: int, count: int) -> bytes:
        """Read from a file, less than `count` bytes only at its end. Raises OSError as well."""
        if isinstance(file, StoredJobFile):
            return self._queue(file).read(file.job_number, offset, count)
        with disk.opened(self.host_path(file.path), os.O_RDONLY) as descriptor:
            return disk.read_at(descriptor, offset, count)

    def write(self, file: AnyFile, offset: int, data: bytes) -> None:
        """Write to a file that exists. Raises OSError as well."""
        if isinstance(file, StoredJobFile):
            self._queue(file).write(file.job_number, offset, data)
            return
        with disk.opened(self.host_path(file.path), os.O_WRONLY) as descriptor:
            disk.write_at(descriptor, data, offset)

    def size(self, file: AnyFile) -> int:
        """Return the bytes of data in a file."""
        if isinstance(file, StoredJobFile):
            queue = self._queue(file)
            with disk.reporting(queue.file(file.job_number)):
                return queue.size(file.job_number)
        path = self.host_path(file.path)
        with disk.reporting(path):
            return path.lstat().st_size

    def _queue(self, file: StoredJobFile) -> QueueFiles:
        queue = self._queues.get(file.queue_id)
        if queue is None:
            raise FileNotFoundError(f"there is no queue {file.queue_id:08X}")
        return queue
