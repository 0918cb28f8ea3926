"""Limits of a queue service."""

from __future__ import annotations

from dataclasses import dataclass

from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import JOB_LIST_MAX, JOB_NUMBER_MAX, JOBS_MAX, QUEUE_SERVERS_MAX


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits on the data that callers can make the service keep.

    Attributes:
        objects_max: objects in the bindery.
        properties_max: properties of an object.
        members_max: members of a set.
        segments_max: segments of an item, 128 bytes each.
        queues_max: queues.
        jobs_max: jobs in a queue.
        servers_max: queue servers attached to a queue.
        job_list_max: job numbers in an answer of the newer list calls.
        file_bytes_max: bytes in one file.
        files_bytes_max: bytes in all files together.
        files_per_origin_percent, files_reserve_percent: parts of `files_bytes_max`, or of the bytes that the
            disk can hold if those are less: the limit of an object and of an address that are not known, and
            the reserve that they leave to known ones. Those that have little, up to a sixty-fourth, leave
            half of it.
        handles_max: open files of a connection.
        volume_entries_max: directories and files of volumes outside the queues.
        trustees_max: trustees of a directory.
    """

    objects_max: int = 10_000
    properties_max: int = 64
    members_max: int = 10_000
    segments_max: int = 64
    queues_max: int = 1_000
    jobs_max: int = JOBS_MAX
    servers_max: int = QUEUE_SERVERS_MAX
    job_list_max: int = JOB_LIST_MAX
    file_bytes_max: int = 256 << 20
    files_bytes_max: int = 4 << 30
    files_per_origin_percent: int = 25
    files_reserve_percent: int = 25
    handles_max: int = 256
    volume_entries_max: int = 10_000
    trustees_max: int = 1_000

    def __post_init__(self) -> None:
        if not 0 <= self.jobs_max < JOB_NUMBER_MAX:
            raise InvalidValue(
                f"{counted(self.jobs_max, 'job')} in a queue: there are {JOB_NUMBER_MAX} numbers"
            )
