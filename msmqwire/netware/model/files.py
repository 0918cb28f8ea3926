"""Files that connections have open, and the directories and files of volumes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredJobFile:
    """The queue file of a job. Offset 0 is the first byte of job data, after the job structure on disk."""

    queue_id: int
    job_number: int


@dataclass(frozen=True, slots=True)
class VolumeFile:
    r"""A file outside the queue directories, by its path in the form ``SYS:DIR\FILE`` of `volume_path`."""

    path: str


AnyFile = StoredJobFile | VolumeFile


@dataclass(frozen=True, slots=True)
class FileAccess:
    """Permission to read or write bytes of a file."""

    file: AnyFile
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class VolumeEntry:
    """A directory or file of a volume.

    Attributes:
        path: in the form of `volume_path`.
        owner_id: the object that created it.
    """

    path: str
    owner_id: int
    is_directory: bool


@dataclass(frozen=True, slots=True)
class Trustee:
    """An assignment of rights to an object.

    Attributes:
        path: of the directory, in the form of `volume_path`.
        rights: bits of `TrusteeRights`, for it and everything below without a separate assignment.
    """

    path: str
    object_id: int
    rights: int
