"""The expected effect of a restart on the rows that a server has left: QMS-flags-01 to -05."""

from __future__ import annotations

from dataclasses import replace

from msmqwire.names.printable import counted
from msmqwire.ncp.constants import JobControlFlags
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import Job
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.sim.disk import Disk
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.service.virtual.violation import Violation

_OPEN = JobControlFlags.NWCF_ENTRY_OPEN


def _after(job: Job) -> Job | None:
    """Return a job after a restart; None if it is removed."""
    flags = job.job_control_flags
    if flags & _OPEN:
        goes_on = flags & JobControlFlags.NWCF_SERVICE_AUTO_START
    elif job.servicing_server_id_number:
        goes_on = flags & JobControlFlags.NWCF_SERVICE_RESTART
    else:
        return job
    if not goes_on:
        return None
    return replace(
        job,
        job_control_flags=flags & ~int(_OPEN),
        job_file_handle=0,
        servicing_server_station=0,
        servicing_server_task_number=0,
        servicing_server_id_number=0,
    )


def check_recovery(before: Contents, service: QueueService, disk: Disk) -> None:
    """Check a service that was restored from the rows. Raises Violation."""
    stored = {(queue_id, job.job_number): job for queue_id, job in before.jobs}
    if {row.object_id for row in before.queues} != service.queue_table.keys():
        raise Violation(JobInvariant.KEPT, "a queue is lost")
    for row in before.queues:
        queue, number = service.queue_table[row.object_id], row.next_number
        after = {}
        for job_number in before.orders.get(row.object_id, ()):
            job = _after(stored.pop((row.object_id, job_number)))
            if job is not None:
                after[job_number] = job
        if [*queue.order] != [*after]:
            raise Violation(JobInvariant.FLAGS, f"after the restart there are {queue.order}, not {[*after]}")
        if (queue.row.status, queue.row.next_number) != (row.status, number):
            raise Violation(JobInvariant.TRUTHFUL, f"{queue.row} was {row}")
        for job_number, job in after.items():
            if queue.jobs[job_number] != job:
                raise Violation(JobInvariant.FLAGS, f"{queue.jobs[job_number]} should be {job}")
    if stored:
        raise Violation(JobInvariant.ORDER, f"{[*stored]} have no place in their queue")
    check_files(service, disk)


def check_files(service: QueueService, disk: Disk) -> None:
    """Check that each job has a file, no other file is there, and positions are right. Raises Violation."""
    jobs = {
        StoredJobFile(queue.id, number) for queue in service.queue_table.values() for number in queue.jobs
    }
    if jobs != disk.files.keys() - disk.undeleted:
        raise Violation(JobInvariant.FILES, f"of jobs: {jobs}, there are: {[*disk.files]}")
    if service.files.total_bytes != sum(len(disk.files[name].data) for name in jobs):
        raise Violation(
            JobInvariant.FILES, f"{counted(service.files.total_bytes, 'byte', 'are')} accounted for"
        )
    for queue in service.queue_table.values():
        places = [queue.entry(number).job_position for number in queue.order]
        if places != [*range(1, len(queue.jobs) + 1)]:
            raise Violation(JobInvariant.ORDER, f"positions {places} of {counted(len(queue.jobs), 'job')}")
