"""The life of a job: entered, started, in service, back in the queue, removed. No rights are checked here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from msmqwire.ncp.constants import JOB_NUMBER_MAX, JobControlFlags
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import (
    Change,
    CopyJobFile,
    CreateJobFile,
    DeleteJob,
    DeleteJobFile,
    PutJob,
    PutOrder,
    PutQueue,
    SyncJobFile,
)
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import JobQueue, job_file_name
from msmqwire.netware.rules.client_rights import ClientRights
from msmqwire.netware.rules.open_files import OpenFiles
from msmqwire.netware.rules.queue_table import QueueTable

JobKey = tuple[int, int]


class JobLife:
    """Moves jobs from state to state, with their files, positions and rows.

    Attributes:
        open_by: (queue ID, job number) of the jobs that each connection has created and not yet started.
        served_by: the same of the jobs that each connection has in service.
    """

    def __init__(
        self, queues: QueueTable, files: OpenFiles, client_rights: ClientRights, changes: list[Change]
    ) -> None:
        self._queues, self._files, self._changes = queues, files, changes
        self._client_rights = client_rights
        self.open_by: dict[int, set[JobKey]] = defaultdict(set)
        self.served_by: dict[int, set[JobKey]] = defaultdict(set)

    def next_number(self, queue: JobQueue) -> int:
        """Return the number of the next job: numbers rise to 999 and begin again; numbers in use are left
        out.
        """
        number = queue.row.next_number
        while number in queue.jobs:  # QMS-files-06
            number = number % JOB_NUMBER_MAX + 1
        return number

    def enter(self, queue: JobQueue, job: Job) -> None:
        """Put a job with the number `next_number` at the end of a queue."""
        queue.jobs[job.job_number] = job
        queue.order.append(job.job_number)  # QMS-bindery-01 and QMS-submit-04
        # QMS-files-06 and QMS-jobfields-28
        queue.row = replace(queue.row, next_number=job.job_number % JOB_NUMBER_MAX + 1)
        self._changes += PutQueue(queue.row), PutJob(queue.id, job)
        self._order_changed(queue)

    def create(self, caller: Caller, queue: JobQueue, job: Job) -> Job:
        """Enter a new job with its file open for the caller; return it with its position and handle."""
        self._changes.append(CreateJobFile(queue.id, job.job_number, job.job_file_name))  # QMS-process-02
        handle = self._files.open(
            caller,
            StoredJobFile(queue.id, job.job_number),
            may_read=True,
            may_write=True,  # QMS-jobfields-34
        )
        self.enter(queue, replace(job, job_file_handle=handle))
        self.open_by[caller.connection].add((queue.id, job.job_number))
        return queue.entry(job.job_number)

    def start(self, queue: JobQueue, job: Job) -> None:
        """Release an open job: its file is closed and durable, NWCF_ENTRY_OPEN is clear."""
        self._close(queue, job)
        self._changes.append(SyncJobFile(queue.id, job.job_number, job.job_file_name))
        self.put(queue, job.with_flags(off=JobControlFlags.NWCF_ENTRY_OPEN).idle())  # QMS-submit-06

    def take(self, caller: Caller, queue: JobQueue, job: Job) -> Job:
        """Hand a job to a queue server with its file open; return it with its position and handle."""
        assert caller.object_id is not None
        handle = self._files.open(
            caller, StoredJobFile(queue.id, job.job_number), may_read=True, may_write=False
        )
        self.put(  # QMS-service-06, QMS-manage-15
            queue,
            replace(
                job,
                job_file_handle=handle,
                servicing_server_station=caller.connection,  # QMS-manage-15
                servicing_server_task_number=caller.task,
                servicing_server_id_number=caller.object_id,
            ),
        )
        self.served_by[caller.connection].add((queue.id, job.job_number))
        return queue.entry(job.job_number)

    def fail_service(self, queue: JobQueue, job: Job) -> None:
        """End the service of an unfinished job: NWCF_SERVICE_RESTART decides whether it stays."""
        # QMS-flags-04, QMS-flags-05, QMS-service-16 and QMS-service-17
        if not job.job_control_flags & JobControlFlags.NWCF_SERVICE_RESTART:
            self.remove(queue, job)
            return
        self._close(queue, job)
        self.put(queue, job.idle())  # QMS-ext-02

    def fail_submission(self, queue: JobQueue, job: Job) -> None:
        """End an open job whose client is gone: NWCF_SERVICE_AUTO_START decides whether it starts."""
        # QMS-flags-01, QMS-flags-02, QMS-submit-08 and QMS-submit-09
        if job.job_control_flags & JobControlFlags.NWCF_SERVICE_AUTO_START:
            self.start(queue, job)
        else:
            self.remove(queue, job)

    def remove(self, queue: JobQueue, job: Job) -> None:
        """Remove a job with its file; later ones move up."""
        self._close(queue, job)
        self._files.delete(StoredJobFile(queue.id, job.job_number))
        del queue.jobs[job.job_number]  # QMS-monitor-18
        queue.order.remove(job.job_number)  # QMS-jobfields-33 and QMS-monitor-17
        self._changes.append(DeleteJob(queue.id, job.job_number))
        self._order_changed(queue)
        self._changes.append(DeleteJobFile(queue.id, job.job_number, job.job_file_name))  # QMS-files-08

    def put(self, queue: JobQueue, job: Job) -> None:
        """Replace a job."""
        queue.jobs[job.job_number] = job
        self._changes.append(PutJob(queue.id, job))

    def place(self, queue: JobQueue, number: int, position: int) -> None:
        """Give a job a position from 1 on; beyond the end it is the last."""
        if queue.order.index(number) == min(position, len(queue.order)) - 1:
            return
        queue.order.remove(number)  # QMS-monitor-19
        queue.order.insert(position - 1, number)  # QMS-ext-07 and QMS-monitor-19
        self._order_changed(queue)

    def move(self, queue: JobQueue, job: Job, to_queue: JobQueue) -> int:
        """Move a job with its file to the end of another queue, and return its number there."""
        number = self.next_number(to_queue)
        name = job_file_name(to_queue.id, number)
        self._changes.append(
            CopyJobFile(queue.id, job.job_number, job.job_file_name, to_queue.id, number, name)
        )
        self._files.space.move(StoredJobFile(queue.id, job.job_number), StoredJobFile(to_queue.id, number))
        self.remove(queue, job)
        self.enter(to_queue, replace(job, job_number=number, job_file_name=name))
        return number

    def forget_queue(self, queue: JobQueue) -> None:
        """Forget the jobs of a queue that is destroyed: its own changes delete their rows and files."""
        for job in queue.jobs.values():
            self._close(queue, job)
            self._files.delete(StoredJobFile(queue.id, job.job_number))
        queue.jobs.clear()
        queue.order.clear()

    def connection_lost(self, connection: int) -> None:
        """End all jobs that a connection has open or in service."""
        for queue_id, number in sorted(self.open_by.pop(connection, ())):
            queue = self._queues[queue_id]
            self.fail_submission(queue, queue.jobs[number])
        for queue_id, number in sorted(self.served_by.pop(connection, ())):
            queue = self._queues[queue_id]
            self.fail_service(queue, queue.jobs[number])

    def restarted(self) -> None:
        """End all jobs that were open or in service in restored queues, whose connections are gone."""
        for queue in self._queues.values():
            for job in [queue.jobs[number] for number in queue.order]:
                if job.is_open:
                    self.fail_submission(queue, job)
                elif job.in_service:
                    self.fail_service(queue, job)

    def _close(self, queue: JobQueue, job: Job) -> None:
        """Close the file of a job for all, and forget the connections with the job open or in service."""
        key = queue.id, job.job_number
        self._files.close_file(StoredJobFile(*key))  # QMS-ext-04
        self._client_rights.end(*key)
        for jobs_by, connection in (
            (self.open_by, job.client_station),
            (self.served_by, job.servicing_server_station),
        ):
            jobs = jobs_by.get(connection)
            if jobs is not None:
                jobs.discard(key)  # QMS-flags-03
                if not jobs:
                    del jobs_by[connection]

    def _order_changed(self, queue: JobQueue) -> None:
        self._changes.append(PutOrder(queue.id, tuple(queue.order)))
