"""Calls about the jobs of a queue by their owners and operators."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from msmqwire.errors import NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import CompletionCode, JobControlFlags, QueueStatus
from msmqwire.netware.model import times
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import Job, JobRequest
from msmqwire.netware.model.queue import JobList, JobQueue, job_file_name
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.job_life import JobLife
from msmqwire.netware.rules.open_files import OpenFiles
from msmqwire.netware.rules.queue_table import QueueTable
from msmqwire.netware.rules.refusals import no_job_rights
from msmqwire.netware.rules.roles import MEMBER, QueueRole, Roles


class Jobs:
    """The jobs of all queues. In each call an unknown queue is ERR_NO_QUEUE, an unknown job ERR_NO_Q_JOB."""

    def __init__(
        self,
        settings: Settings,
        queues: QueueTable,
        *,
        roles: Roles,
        life: JobLife,
        files: OpenFiles,
    ) -> None:
        self._settings, self._queues, self._roles, self._life = settings, queues, roles, life
        self._files = files

    def create(self, caller: Caller, queue_id: int, request: JobRequest, now: datetime) -> Job:
        """Put a job at the end of a queue, with its file open for the caller; it has to be started.

        NWCF_OPERATOR_HOLD is set for operators alone, as in a change of the entry.

        Args:
            now: the clock of the file server, UTC.

        Returns:
            The job with its position and file handle.

        Raises:
            NcpRefused: ERR_NO_Q_RIGHTS for all but users of the queue, ERR_Q_HALTED, ERR_Q_FULL, FAILURE for
                an invalid target execution time, NO_MORE_FILE_HANDLES, OUT_OF_DISK_SPACE.
        """
        queue = self._queues.found(queue_id)
        roles = self._roles.check_queue(caller, queue, QueueRole.USER)  # QMS-submit-01 and QMS-supervisor-02
        self._check_open_to_jobs(queue)
        _check_target_time(request)
        self._files.check_new(caller)
        # QMS-flags-06 and QMS-manage-02
        flags = int(request.job_control_flags | JobControlFlags.NWCF_ENTRY_OPEN)
        if not roles & QueueRole.OPERATOR:  # QMS-ext-06
            flags &= ~int(JobControlFlags.NWCF_OPERATOR_HOLD)
        number = self._life.next_number(queue)
        assert caller.effective_id is not None
        job = Job(  # QMS-jobstruct-01
            client_station=caller.connection,  # QMS-manage-02 and QMS-jobfields-20
            client_task=caller.task,
            client_id=caller.effective_id,
            target_server_id=request.target_server_id,
            target_execution_time=request.target_execution_time,
            job_entry_time=times.to_bytes(now),  # QMS-jobfields-07, QMS-jobfields-26
            job_number=number,  # QMS-jobfields-28
            job_type=request.job_type,
            job_control_flags=flags,
            job_file_name=job_file_name(queue_id, number),
            job_description=request.job_description,
            queue_record=request.queue_record,  # QMS-jobfields-39
        )
        return self._life.create(caller, queue, job)  # QMS-using-01

    def close_and_start(self, caller: Caller, queue_id: int, number: int) -> None:
        """Close the file of a job and release the job.

        Raises:
            NcpRefused: ERR_NO_Q_JOB_RIGHTS for all connections except the one that created the job, and if it
                is not open; ERR_NO_Q_RIGHTS for callers without a part in the queue.
        """
        self._life.start(*self._open_job(caller, queue_id, number))  # QMS-submit-06

    def close_and_abort(self, caller: Caller, queue_id: int, number: int) -> None:
        """Close the file of a job and remove the job; raises as `close_and_start`."""
        self._life.remove(*self._open_job(caller, queue_id, number))  # QMS-submit-07

    def remove(self, caller: Caller, queue_id: int, number: int) -> None:
        """Remove a job; a service of it is aborted.

        Raises:
            NcpRefused: ERR_NO_Q_JOB_RIGHTS for all but the owner and operators; ERR_NO_Q_RIGHTS for callers
                without a part in the queue.
        """
        queue = self._queues.found(queue_id)
        # QMS-monitor-06, QMS-qoperators-07, QMS-createq-09, QMS-monitor-01 and QMS-monitor-02
        job, _ = self._roles.check_job(caller, queue, number, QueueRole.OWNER | QueueRole.OPERATOR)
        self._life.remove(queue, job)  # QMS-monitor-18

    def read_entry(self, caller: Caller, queue_id: int, number: int) -> Job:
        """Return a job with its position.

        Raises:
            NcpRefused: ERR_NO_Q_RIGHTS for all but users, operators and servers.
        """
        queue = self._queues.found(queue_id)
        # QMS-monitor-03, QMS-monitor-05 and QMS-monitor-07
        self._roles.check_job(caller, queue, number, MEMBER)
        return queue.entry(number)

    def file_size(self, caller: Caller, queue_id: int, number: int) -> int:
        """Return the bytes in the file of a job; raises as `read_entry`."""
        queue = self._queues.found(queue_id)
        self._roles.check_job(caller, queue, number, MEMBER)
        return self._files.size(StoredJobFile(queue_id, number))  # QMS-service-05

    def numbers(self, caller: Caller, queue_id: int) -> tuple[int, ...]:
        """Return the numbers of all jobs in the order of the queue; raises as `listed`."""
        return self._listable(caller, queue_id)

    def listed(
        self, caller: Caller, queue_id: int, start: int = 1, *, types: Collection[int] | None = None
    ) -> JobList:
        """Return a part of the list of jobs in the order of the queue.

        Args:
            start: the first position to list; 0 and 0xFFFFFFFF are 1.
            types: list the jobs of these types alone, and count positions among them.

        Raises:
            NcpRefused: ERR_NO_Q_RIGHTS for all but users, operators and servers.
        """
        numbers = self._listable(caller, queue_id)
        if types is not None:
            jobs = self._queues[queue_id].jobs
            numbers = tuple(number for number in numbers if jobs[number].job_type in types)
        first = 0 if start in (0, 0xFFFFFFFF) else start - 1
        return JobList(len(numbers), numbers[first : first + self._settings.job_list_max])  # QMS-monitor-20

    def change_entry(self, caller: Caller, queue_id: int, number: int, request: JobRequest) -> None:
        """Change the fields of step 3 of a job; other fields are kept.

        The position and NWCF_OPERATOR_HOLD follow only an operator's request.

        Raises:
            NcpRefused: ERR_NO_Q_JOB_RIGHTS for all but the owner, operators and servers; ERR_NO_Q_RIGHTS for
                callers without a part in the queue; ERR_Q_IN_SERVICE; FAILURE for an invalid target execution
                time.
        """
        queue = self._queues.found(queue_id)
        # QMS-monitor-08, QMS-createq-10, QMS-qoperators-03, QMS-jobstruct-02 and QMS-monitor-01
        allowed = QueueRole.OWNER | QueueRole.OPERATOR | QueueRole.SERVER
        # QMS-monitor-02 and QMS-createq-09
        job, roles = self._roles.check_job(caller, queue, number, allowed)
        if job.in_service:  # QMS-ext-05
            raise NcpRefused(f"job {number} is in service", CompletionCode.ERR_Q_IN_SERVICE)
        _check_target_time(request)
        kept = int(JobControlFlags.NWCF_ENTRY_OPEN)  # QMS-flags-06
        if not roles & QueueRole.OPERATOR:  # QMS-ext-06
            kept |= int(JobControlFlags.NWCF_OPERATOR_HOLD)
        changed = replace(  # QMS-manage-03 and QMS-manage-04
            job,
            target_server_id=request.target_server_id,
            target_execution_time=request.target_execution_time,
            job_type=request.job_type,  # QMS-jobfields-31
            # QMS-flags-13
            job_control_flags=int(request.job_control_flags & ~kept | job.job_control_flags & kept),
            job_description=request.job_description,
            queue_record=request.queue_record,  # QMS-jobfields-39
        )
        self._life.put(queue, changed)  # QMS-manage-03 and QMS-manage-04
        if roles & QueueRole.OPERATOR and request.job_position:  # QMS-manage-05
            self._life.place(queue, number, request.job_position)

    def change_position(self, caller: Caller, queue_id: int, number: int, position: int) -> None:
        """Move a job within its queue, in service or not; beyond the end it is the last.

        Raises:
            NcpRefused: ERR_NO_Q_JOB_RIGHTS for all but operators; ERR_NO_Q_RIGHTS for callers without a part
                in the queue; FAILURE for a position below 1.
        """
        queue = self._queues.found(queue_id)
        # QMS-qoperators-04, QMS-qoperators-07, QMS-createq-09, QMS-monitor-01 and QMS-monitor-10
        self._roles.check_job(caller, queue, number, QueueRole.OPERATOR)
        if position < 1:  # QMS-monitor-19
            raise NcpRefused(f"there is no position {position}", CompletionCode.FAILURE)
        self._life.place(queue, number, position)  # QMS-monitor-19 and QMS-using-01

    def move(self, caller: Caller, queue_id: int, number: int, to_queue_id: int) -> int:
        """Move a job to the end of another queue, and return its number there.

        Raises:
            NcpRefused: ERR_NO_Q_JOB_RIGHTS and ERR_NO_Q_RIGHTS for all but operators of both queues and for a
                job that is not yet started; ERR_Q_IN_SERVICE, ERR_Q_HALTED, ERR_Q_FULL; FAILURE if both
                queues are the same.
        """
        queue, to_queue = self._queues.found(queue_id), self._queues.found(to_queue_id)
        job, _ = self._roles.check_job(caller, queue, number, QueueRole.OPERATOR)
        self._roles.check_queue(caller, to_queue, QueueRole.OPERATOR)
        if queue is to_queue:
            raise NcpRefused("the job is in this queue already", CompletionCode.FAILURE)
        if job.is_open:
            raise no_job_rights(f"job {number} has not been started")
        if job.in_service:
            raise NcpRefused(f"job {number} is in service", CompletionCode.ERR_Q_IN_SERVICE)
        self._check_open_to_jobs(to_queue)
        return self._life.move(queue, job, to_queue)

    def _listable(self, caller: Caller, queue_id: int) -> tuple[int, ...]:
        queue = self._queues.found(queue_id)
        self._roles.check_queue(caller, queue, MEMBER)  # QMS-monitor-03, QMS-monitor-05 and QMS-monitor-09
        return tuple(queue.order)

    def _open_job(self, caller: Caller, queue_id: int, number: int) -> tuple[JobQueue, Job]:
        """Return a job that this connection has created and not yet released."""
        queue = self._queues.found(queue_id)
        job, _ = self._roles.check_job(caller, queue, number, MEMBER | QueueRole.OWNER)
        # QMS-submit-11 and QMS-submit-12
        if (queue_id, number) not in self._life.open_by.get(caller.connection, ()):
            raise no_job_rights(f"job {number} is not open on this connection")
        return queue, job

    def _check_open_to_jobs(self, queue: JobQueue) -> None:
        """Check that a job can be added.

        Raises:
            NcpRefused: ERR_Q_HALTED or ERR_Q_FULL.
        """
        if queue.row.status & QueueStatus.QS_CANT_ADD_JOBS:  # QMS-monitor-21 and QMS-ext-11
            raise NcpRefused("the queue takes no jobs", CompletionCode.ERR_Q_HALTED)
        if len(queue.jobs) >= self._settings.jobs_max:  # QMS-ext-09
            raise NcpRefused(f"the queue has {counted(len(queue.jobs), 'job')}", CompletionCode.ERR_Q_FULL)


def _check_target_time(request: JobRequest) -> None:
    if not times.is_target_time(request.target_execution_time):  # QMS-jobfields-25
        raise NcpRefused(f"{request.target_execution_time.hex()} is not a time", CompletionCode.FAILURE)
