"""The files of one queue directory: the two system files and the queue files of jobs.

``Q$nnnn.SYS`` has the structures of the jobs in the order of the queue, 256 bytes each. ``Q$nnnn.SRV`` has
the attached queue servers: for each its object ID and its station, four bytes each, most significant first.
``Q$nnnn.001`` and so on have the structure of a job and after it the job's data.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import job_file_name, queue_file_stem
from msmqwire.netware.store import disk
from msmqwire.netware.store.job_structure import SIZE, at_position, job_structure

SYS: Final = ".SYS"
SRV: Final = ".SRV"
Servers = Sequence[tuple[int, int]]
"""(object ID, station) of the queue servers attached to a queue."""
_SERVER: Final = Struct(">II")
_CHUNK: Final = 1 << 20


class Found(NamedTuple):
    """The queue files after a restart.

    Attributes:
        sizes: bytes of data by job number.
        missing: the numbers of the jobs without a file.
    """

    sizes: Mapping[int, int]
    missing: Sequence[int]


class QueueFiles:
    """The directory of a queue. Its methods raise OSError; offsets are those of job data.

    Attributes:
        path: the path of the directory.
        stale: whether the files still differ from the present jobs and servers.
    """

    def __init__(self, queue_id: int, path: Path) -> None:
        self.path, self.stale = path, True
        self._queue_id = queue_id
        self._stem = queue_file_stem(queue_id)
        self._jobs: dict[int, Job] = {}
        self._order: Sequence[int] = ()
        self._servers: Servers = ()
        self._heads: dict[int, tuple[Job, bytes]] = {}  # the beginning of the queue files
        self._system: dict[str, bytes] = {}  # and the content of the system files

    def file(self, job_number: int) -> Path:
        """Return the queue file of a job."""
        return self.path / job_file_name(self._queue_id, job_number)

    def _system_file(self, extension: str) -> Path:
        return self.path / (self._stem + extension)  # QMS-files-02 and QMS-files-03

    # -- the directory ------------------------------------------------------------------------------------

    def make_system_files(self) -> None:
        """Create the system files, without jobs and servers, in a new directory."""
        for extension in (SYS, SRV):
            self._show(extension, b"")

    def recover(self, jobs: Collection[int]) -> Found:
        """Remove the queue files without a job, and return those of the jobs."""
        disk.make_directory(self.path)
        sizes: dict[int, int] = {}
        for entry in self.path.iterdir():
            if not entry.name.startswith(f"{self._stem}."):
                continue
            status = entry.lstat()
            number = _number(entry.suffix)
            if number in jobs and stat.S_ISREG(status.st_mode) and entry == self.file(number):
                sizes[number] = max(0, status.st_size - SIZE)
            elif entry.suffix not in (SYS, SRV) and not stat.S_ISDIR(status.st_mode):
                entry.unlink()
        return Found(sizes, sorted(set(jobs) - sizes.keys()))

    def remove(self) -> None:
        """Remove the directory with all files in it; a missing one is not an error."""
        if not disk.is_directory(self.path):
            return
        for entry in self.path.iterdir():
            entry.unlink()
        self.path.rmdir()

    # -- queue files --------------------------------------------------------------------------------------

    def create(self, job_number: int) -> None:
        """Create the file of a new job without data."""
        with disk.opened(self.file(job_number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            disk.write_at(file, bytes(SIZE), 0)

    def copy(self, job_number: int, other: QueueFiles, other_number: int) -> None:
        """Give a file durably to a job of another queue; it must be deleted here before it is changed there.

        It then has both names; without hard links in the file system it is copied, which takes long for a
        large file.
        """
        source, target = self.file(job_number), other.file(other_number)
        try:
            target.unlink(missing_ok=True)
            os.link(source, target, follow_symlinks=False)
        except (OSError, NotImplementedError):
            self._copy(source, target)
        else:
            other.sync(other_number)

    def _copy(self, source_path: Path, target_path: Path) -> None:
        with (
            disk.opened(source_path, os.O_RDONLY) as source,
            disk.opened(target_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as target,
        ):
            offset = 0
            while part := disk.read_at(source, offset, _CHUNK):
                disk.write_at(target, part, offset)
                offset += len(part)
            disk.sync(target)

    def sync(self, job_number: int) -> None:
        """Make the data of a job durable."""
        with disk.opened(self.file(job_number), os.O_RDWR) as file:
            disk.sync(file)

    def delete(self, job_number: int) -> None:
        """Delete the file of a job; a missing one is not an error."""
        self.file(job_number).unlink(missing_ok=True)

    def read(self, job_number: int, offset: int, count: int) -> bytes:
        """Read data of a job, less only at its end."""
        with disk.opened(self.file(job_number), os.O_RDONLY) as file:
            return disk.read_at(file, SIZE + offset, count)  # QMS-files-09 and QMS-service-09

    def write(self, job_number: int, offset: int, data: bytes) -> None:
        """Write data of a job."""
        with disk.opened(self.file(job_number), os.O_WRONLY) as file:
            disk.write_at(file, data, SIZE + offset)  # QMS-files-07, QMS-files-09 and QMS-submit-05

    def size(self, job_number: int) -> int:
        """Return the bytes of data that a job has."""
        return max(0, self.file(job_number).lstat().st_size - SIZE)

    # -- content of the files ----------------------------------------------------------------------------

    def put_job(self, job: Job) -> None:
        """Note a new or changed job."""
        self._jobs[job.job_number] = job
        self.stale = True

    def delete_job(self, job_number: int) -> None:
        """Note that a job is gone."""
        self._jobs.pop(job_number, None)
        self._heads.pop(job_number, None)
        self.stale = True

    def put_order(self, job_numbers: Sequence[int]) -> None:
        """Note the order of the jobs."""
        self._order = job_numbers
        self.stale = True

    def put_servers(self, servers: Servers) -> None:
        """Note the attached queue servers."""
        self._servers = servers
        self.stale = True

    def refresh(self) -> None:
        """Write the jobs and servers as noted into the files where they differ."""
        structures = [self._structure(number, place) for place, number in enumerate(self._order, 1)]
        self._show(SYS, b"".join(structures))
        self._show(SRV, b"".join(_SERVER.pack(*server) for server in self._servers))
        self.stale = False

    def _show(self, extension: str, content: bytes) -> None:
        """Give a system file its content, unless it has it: replacing a file is as slow as syncing it."""
        if self._system.get(extension) != content:
            disk.replace_hidden(self._system_file(extension), content)  # QMS-files-04
            self._system[extension] = content

    def _structure(self, number: int, position: int) -> bytes:
        """Return the structure of a job, which heads its file now."""
        job = self._jobs[number]
        known = self._heads.get(number)
        built = known[1] if known is not None and known[0] is job else job_structure(job)
        structure = at_position(built, position)
        if known is None or known[1] != structure:
            try:
                with disk.opened(self.file(number), os.O_WRONLY) as file:
                    disk.write_at(file, structure, 0)  # QMS-files-07
            except FileNotFoundError:
                pass  # lost on disk, which reading reports; the system file still has the job
            self._heads[number] = job, structure
        return structure


def _number(extension: str) -> int:
    """Return the number in the extension of a queue file, or 0."""
    digits = extension[1:]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
