"""A queue: its durable part, the order of its jobs, and the queue servers that are attached."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from msmqwire.ncp.constants import SERVER_STATUS_SIZE
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import Job


@dataclass(frozen=True, slots=True)
class QueueRow:
    """The stored part of a queue besides its object, its jobs and their order.

    Attributes:
        object_id: the ID of the queue's bindery object.
        directory: the path of the queue directory in the form of `volume_path`. Q_DIRECTORY has it as it was
            given; writing Q_DIRECTORY does not move the directory.
        status: bits of `QueueStatus`.
        next_number: the first candidate for the number of the next job.
    """

    object_id: int
    directory: str
    status: int = 0
    next_number: int = 1


@dataclass(slots=True)
class AttachedServer:
    """A queue server attached to a queue.

    Attributes:
        caller: its connection.
        object_id: the object that it was logged in as.
        status: its 64-byte record, which the service does not interpret.
    """

    caller: Caller
    object_id: int
    status: bytes = bytes(SERVER_STATUS_SIZE)


@dataclass(slots=True)
class JobQueue:
    """A queue in memory.

    Attributes:
        row: the durable part.
        order: the numbers of the jobs, the head first.
        jobs: the jobs by number.
        servers: the attached queue servers by connection; gone after a restart.
    """

    row: QueueRow
    order: list[int] = field(default_factory=list)
    jobs: dict[int, Job] = field(default_factory=dict)
    servers: dict[int, AttachedServer] = field(default_factory=dict)

    @property
    def id(self) -> int:
        """The ID of the queue's object."""
        return self.row.object_id

    def entry(self, number: int) -> Job:
        """A job for readers, with its position."""
        return replace(self.jobs[number], job_position=self.order.index(number) + 1)  # QMS-jobfields-20, -32


_EXTENSION_DIGITS: Final = 3  # QMS-files-05 and QMS-files-10
_DIRECTORY_DIGITS: Final = 6  # QMS-qdir-07 and QMS-qdir-11


def queue_file_stem(queue_id: int) -> str:
    """The name without extension of all files of a queue."""
    last_four_digits = queue_id & 0xFFFF  # QMS-files-01 and QMS-files-10
    return f"Q${last_four_digits:04X}"


def job_file_name(queue_id: int, job_number: int) -> str:
    """The name of the queue file of a job."""
    return f"{queue_file_stem(queue_id)}.{job_number:0{_EXTENSION_DIGITS}}"


def queue_directory(path: str, queue_id: int) -> str:
    r"""The path of a queue directory, ``SYS:\SYSTEM\015D03``, below the given one."""
    # QMS-qdir-08 and QMS-qdir-11
    separator = "" if path.endswith((":", "\\", "/")) else "\\"
    return f"{path}{separator}{queue_id:0{_DIRECTORY_DIGITS}X}"


@dataclass(frozen=True, slots=True)
class QueueStatusReport:
    """The answer of Read Queue Current Status.

    Attributes:
        status: bits of `QueueStatus`.
        jobs: the number of jobs in the queue.
        servers: (object ID, station) of the attached servers.
    """

    queue_id: int
    status: int
    jobs: int
    servers: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class JobList:
    """The answer of a job list.

    Attributes:
        total: the number of jobs to list from the first position on.
        numbers: the numbers in this part of the list, in the order of the queue.
    """

    total: int
    numbers: tuple[int, ...]
