"""The rows of a queue service and the sizes of its files, as its changes have made them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msmqwire.netware.model import changes
from msmqwire.netware.model.bindery import BinderyObject
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import AnyFile, FileAccess, StoredJobFile, Trustee, VolumeEntry, VolumeFile
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import QueueRow


class QueueRows:
    """Tables in memory. A change of a missing row is an error."""

    def __init__(self) -> None:
        self.objects: dict[int, BinderyObject] = {}
        self.next_object_id = 0
        self.queues: dict[int, QueueRow] = {}
        self.orders: dict[int, tuple[int, ...]] = {}
        self.jobs: dict[tuple[int, int], Job] = {}
        self.entries: dict[str, VolumeEntry] = {}
        self.trustees: dict[tuple[str, int], Trustee] = {}
        self.sizes: dict[AnyFile, int] = {}
        self.directories: set[int] = set()

    def begin_numbers_at(self, queue_id: int, number: int) -> None:
        """Let the next job of a queue have this number."""
        self.queues[queue_id] = replace(self.queues[queue_id], next_number=number)

    def written(self, access: FileAccess) -> None:
        """Bytes have been written to a file."""
        self.sizes[access.file] = max(self.sizes[access.file], access.offset + access.count)

    def contents(self) -> Contents:
        """Return the contents that a service is restored from."""
        return Contents(
            objects=[*self.objects.values()],
            next_object_id=self.next_object_id,
            queues=[*self.queues.values()],
            orders=self.orders,
            jobs=[(queue_id, job) for (queue_id, _), job in self.jobs.items()],
            entries=[*self.entries.values()],
            trustees=[*self.trustees.values()],
            sizes=self.sizes,
        )

    def perform(self, made: Iterable[changes.Change]) -> None:
        """Perform changes as a runtime does: files first, then rows, then deletions."""
        listed = [*made]
        for change in listed:
            if isinstance(change, changes.FIRST):
                self._make(change)
        for change in listed:
            if not isinstance(change, changes.FIRST + changes.LAST):
                self._write(change)
        for change in listed:
            match change:
                case changes.DeleteJobFile(queue_id, number):
                    del self.sizes[StoredJobFile(queue_id, number)]
                case changes.RemoveQueueDirectory(queue_id):
                    self.directories.remove(queue_id)
                    self.sizes = {
                        file: size
                        for file, size in self.sizes.items()
                        if not (isinstance(file, StoredJobFile) and file.queue_id == queue_id)
                    }
        files = {(file.queue_id, file.job_number) for file in self.sizes if isinstance(file, StoredJobFile)}
        assert files == self.jobs.keys(), "each job has a file, and no other file is left"
        assert self.directories == self.queues.keys()

    def _make(self, change: changes.Change) -> None:
        match change:
            case changes.MakeQueueDirectory(queue_id):
                assert queue_id not in self.directories
                self.directories.add(queue_id)
            case changes.CreateJobFile(queue_id, number):
                assert queue_id in self.directories
                self.sizes[StoredJobFile(queue_id, number)] = 0
            case changes.CopyJobFile(queue_id, number, _, to_queue_id, to_number):
                self.sizes[StoredJobFile(to_queue_id, to_number)] = self.sizes[
                    StoredJobFile(queue_id, number)
                ]
            case changes.SyncJobFile(queue_id, number):
                assert StoredJobFile(queue_id, number) in self.sizes
            case changes.CreateVolumeFile(path):
                self.sizes[VolumeFile(path)] = 0

    def _write(self, change: changes.Change) -> None:
        match change:
            case changes.PutObject(row):
                self.objects[row.id] = row
            case changes.DeleteObject(object_id):
                del self.objects[object_id]
            case changes.PutNextObjectId(object_id):
                self.next_object_id = object_id
            case changes.PutQueue(queue):
                self.queues[queue.object_id] = queue
            case changes.DeleteQueue(queue_id):
                del self.queues[queue_id]
                self.orders.pop(queue_id, None)
                self.jobs = {key: job for key, job in self.jobs.items() if key[0] != queue_id}
            case changes.PutJob(queue_id, job):
                self.jobs[queue_id, job.job_number] = job
            case changes.DeleteJob(queue_id, number):
                del self.jobs[queue_id, number]
            case changes.PutOrder(queue_id, numbers):
                self.orders[queue_id] = numbers
            case changes.PutVolumeEntry(entry):
                self.entries[entry.path] = entry
            case changes.PutTrustee(trustee):
                self.trustees[trustee.path, trustee.object_id] = trustee
            case changes.DeleteTrustee(path, object_id):
                del self.trustees[path, object_id]
