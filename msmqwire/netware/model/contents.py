"""The contents of a store, from which a queue service is rebuilt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msmqwire.netware.model.bindery import BinderyObject
from msmqwire.netware.model.files import AnyFile, Trustee, VolumeEntry
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import QueueRow


@dataclass(frozen=True, slots=True)
class Contents:
    """All rows of a store, and the sizes of the files on disk.

    Attributes:
        objects: the objects with their properties.
        next_object_id: 0 if the store is new.
        queues: their rows.
        orders: the numbers of the jobs of each queue, by its ID.
        jobs: (ID of the queue, job).
        entries: directories and files of volumes.
        trustees: assignments of rights.
        sizes: bytes of data in each file; job structures do not count. A missing file has size 0.
    """

    objects: Sequence[BinderyObject] = ()
    next_object_id: int = 0
    queues: Sequence[QueueRow] = ()
    orders: Mapping[int, Sequence[int]] = field(default_factory=dict)
    jobs: Sequence[tuple[int, Job]] = ()
    entries: Sequence[VolumeEntry] = ()
    trustees: Sequence[Trustee] = ()
    sizes: Mapping[AnyFile, int] = field(default_factory=dict)
