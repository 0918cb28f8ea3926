"""The durable changes of a call: collected by the rules, performed by the runtime before it answers.

The runtime makes directories and files and syncs them first (`FIRST`), then writes all rows in one
transaction, then deletes files and directories (`LAST`). A crash between the steps leaves at most files
that no row names. The changes of several calls can be performed together, unless a later one makes a file or
directory that an earlier one deletes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmqwire.netware.model.bindery import BinderyObject
from msmqwire.netware.model.files import Trustee, VolumeEntry
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import QueueRow


@dataclass(frozen=True, slots=True)
class PutObject:
    """Insert or replace an object with all its properties."""

    object: BinderyObject


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete an object."""

    object_id: int


@dataclass(frozen=True, slots=True)
class PutNextObjectId:
    """The ID of the next object: no ID is used twice."""

    object_id: int


@dataclass(frozen=True, slots=True)
class PutQueue:
    """Insert or replace the row of a queue."""

    row: QueueRow


@dataclass(frozen=True, slots=True)
class DeleteQueue:
    """Delete a queue with its order and all its jobs."""

    queue_id: int


@dataclass(frozen=True, slots=True)
class PutJob:
    """Insert or replace a job."""

    queue_id: int
    job: Job


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a job."""

    queue_id: int
    job_number: int


@dataclass(frozen=True, slots=True)
class PutOrder:
    """The numbers of all jobs of a queue, in order."""

    queue_id: int
    job_numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PutVolumeEntry:
    """Insert a directory or file of a volume."""

    entry: VolumeEntry


@dataclass(frozen=True, slots=True)
class PutTrustee:
    """Insert or replace an assignment of rights."""

    trustee: Trustee


@dataclass(frozen=True, slots=True)
class DeleteTrustee:
    """Delete an assignment of rights."""

    path: str
    object_id: int


@dataclass(frozen=True, slots=True)
class MakeQueueDirectory:
    """Make the directory of a queue and its missing parents, with its two system files.

    Attributes:
        path: in the form of `volume_path`, as in all changes.
    """

    queue_id: int
    path: str


@dataclass(frozen=True, slots=True)
class RemoveQueueDirectory:
    """Remove the directory of a queue with all files in it."""

    queue_id: int
    path: str


@dataclass(frozen=True, slots=True)
class CreateJobFile:
    """Create the queue file of a job, with the job structure alone, in place of one left by a crash."""

    queue_id: int
    job_number: int
    name: str


@dataclass(frozen=True, slots=True)
class CopyJobFile:
    """Copy the queue file of a job to another queue, durably; the first is deleted afterwards."""

    queue_id: int
    job_number: int
    name: str
    to_queue_id: int
    to_job_number: int
    to_name: str


@dataclass(frozen=True, slots=True)
class SyncJobFile:
    """Make the queue file durable: the job counts as submitted from now on."""

    queue_id: int
    job_number: int
    name: str


@dataclass(frozen=True, slots=True)
class DeleteJobFile:
    """Delete the queue file of a job."""

    queue_id: int
    job_number: int
    name: str


@dataclass(frozen=True, slots=True)
class MakeVolumeDirectory:
    """Make a directory of a volume."""

    path: str


@dataclass(frozen=True, slots=True)
class CreateVolumeFile:
    """Create an empty file of a volume."""

    path: str


RowChange = (
    PutObject
    | DeleteObject
    | PutNextObjectId
    | PutQueue
    | DeleteQueue
    | PutJob
    | DeleteJob
    | PutOrder
    | PutVolumeEntry
    | PutTrustee
    | DeleteTrustee
)
FileChange = (
    MakeQueueDirectory
    | RemoveQueueDirectory
    | CreateJobFile
    | CopyJobFile
    | SyncJobFile
    | DeleteJobFile
    | MakeVolumeDirectory
    | CreateVolumeFile
)
Change = RowChange | FileChange

FIRST: Final = (
    MakeQueueDirectory,
    CreateJobFile,
    CopyJobFile,
    SyncJobFile,
    MakeVolumeDirectory,
    CreateVolumeFile,
)
"""The changes of files that come before the rows."""
LAST: Final = (DeleteJobFile, RemoveQueueDirectory)
"""The changes of files that come after the rows."""
