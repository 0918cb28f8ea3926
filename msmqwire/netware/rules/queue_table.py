"""All queues by ID."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.netware.model import names
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import JobQueue, QueueRow
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.refusals import no_queue


class QueueTable(dict[int, JobQueue]):
    """The queues, with their jobs and servers.

    Attributes:
        directories: the queue directories, which hold nothing else.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directories: Final = set[str]()

    def add(self, queue: JobQueue) -> None:
        """Insert a queue."""
        self[queue.id] = queue
        self.directories.add(queue.row.directory)

    def remove(self, queue: JobQueue) -> None:
        """Delete a queue."""
        del self[queue.id]
        self.directories.discard(queue.row.directory)

    def has_directory(self, path: str) -> bool:
        """Return whether a path of `volume_path` is a queue directory, or in one."""
        while path not in self.directories:
            above = names.parent(path)
            if above == path:
                return False
            path = above
        return True

    def found(self, queue_id: int) -> JobQueue:
        """Return a queue.

        Raises:
            NcpRefused: ERR_NO_QUEUE.
        """
        queue = self.get(queue_id)
        if queue is None:
            raise no_queue(queue_id)
        return queue

    def restore(
        self,
        rows: Iterable[QueueRow],
        orders: Mapping[int, Sequence[int]],
        jobs: Iterable[tuple[int, Job]],
        objects: Objects,
    ) -> None:
        """Take the rows of a store.

        Raises:
            InvalidValue: the rows contradict each other.
        """
        for row in rows:
            self.add(JobQueue(row, list(orders.get(row.object_id, ()))))
        for queue_id, job in jobs:
            if queue_id not in self:
                raise InvalidValue(f"a job of the queue {queue_id:08X}, which does not exist")
            self[queue_id].jobs[job.job_number] = job
        for queue in self.values():
            if sorted(queue.order) != sorted(queue.jobs):
                raise InvalidValue(f"the order of the queue {queue.id:08X} is not that of its jobs")
            if queue.id not in objects:
                raise InvalidValue(f"the queue {queue.id:08X} has no object")
