"""A job of a queue: the fields of NWQueueJobStruct_t above the wire."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import (
    ANY_SERVER,
    AT_ONCE,
    JOB_DESCRIPTION_SIZE,
    JOB_TIME_SIZE,
    QUEUE_RECORD_SIZE,
    JobControlFlags,
)
from msmqwire.netware.model import times

_HOLDS: Final = JobControlFlags.NWCF_USER_HOLD | JobControlFlags.NWCF_OPERATOR_HOLD


class JobState(Enum):
    """The state of a job, which follows from its fields alone: QMS-flags-12."""

    OPEN = "open"
    IN_SERVICE = "in service"
    HELD = "held"
    WAITING = "waiting"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """The fields that a client gives when it creates or changes a job.

    Attributes:
        target_server_id: the queue server that is to service the job, or ANY_SERVER.
        target_execution_time: six bytes, the earliest time for the service, or AT_ONCE.
        job_type: a number of the application.
        job_control_flags: 16 bits, `JobControlFlags` and undefined ones.
        job_description: 50 bytes, text with a NUL at its end.
        queue_record: 152 bytes of the application.
        job_position: the place in the queue that an operator's change asks for; 0 for no change.
    """

    target_server_id: int = ANY_SERVER
    target_execution_time: bytes = AT_ONCE
    job_type: int = 0
    job_control_flags: int = 0
    job_description: bytes = bytes(JOB_DESCRIPTION_SIZE)
    queue_record: bytes = bytes(QUEUE_RECORD_SIZE)
    job_position: int = 0

    def __post_init__(self) -> None:
        for name, size in (
            ("target_execution_time", JOB_TIME_SIZE),
            ("job_description", JOB_DESCRIPTION_SIZE),
            ("queue_record", QUEUE_RECORD_SIZE),
        ):
            if len(getattr(self, name)) != size:
                raise InvalidValue(f"{counted(len(getattr(self, name)), 'byte')}, not {size}", path=name)
        for name, bits in (
            ("target_server_id", 32),
            ("job_type", 16),
            ("job_control_flags", 16),
            ("job_position", 16),
        ):
            if not 0 <= getattr(self, name) < 1 << bits:
                raise InvalidValue(f"{getattr(self, name)} is not of {bits} bits", path=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An entry of a queue. The names are the chapter's.

    Attributes:
        client_station: the connection that created the job; only that connection can start it.
        client_task: the task of that connection.
        client_id: the owner.
        job_entry_time: six bytes, from the clock of the file server.
        job_number: fixed for the entry.
        job_position: from 1. It follows from the order of the queue and is filled in for readers: 0 in a
            stored job.
        job_file_name: of the queue file in the queue directory.
        job_file_handle: the handle for the connection that has the file open; 0 for none.
        servicing_server_id_number: the queue server that has the job; 0 for none, and then station and task
            mean nothing.
    """

    client_station: int
    client_task: int
    client_id: int
    target_server_id: int
    target_execution_time: bytes
    job_entry_time: bytes
    job_number: int
    job_type: int
    job_position: int = 0
    job_control_flags: int
    job_file_name: str
    job_file_handle: int = 0
    servicing_server_station: int = 0
    servicing_server_task_number: int = 0
    servicing_server_id_number: int = 0
    job_description: bytes
    queue_record: bytes

    @property
    def is_open(self) -> bool:
        """Whether the client has not released the job."""
        return bool(self.job_control_flags & JobControlFlags.NWCF_ENTRY_OPEN)

    @property
    def in_service(self) -> bool:
        """Whether a queue server has the job."""
        return self.servicing_server_id_number != 0  # QMS-jobfields-37

    def state(self, now: datetime) -> JobState:
        """The state of the job at this time, UTC."""
        if self.is_open:  # QMS-manage-11
            return JobState.OPEN
        if self.in_service:
            return JobState.IN_SERVICE
        # QMS-flags-07, QMS-flags-08, QMS-flags-09, QMS-manage-12 and QMS-manage-13
        if self.job_control_flags & _HOLDS:
            return JobState.HELD
        # QMS-jobfields-22, QMS-jobfields-23 and QMS-manage-08
        if self.target_execution_time != AT_ONCE and times.from_bytes(self.target_execution_time) > now:
            return JobState.WAITING
        return JobState.READY

    def with_flags(self, *, on: int = 0, off: int = 0) -> Job:
        """Return the job with bits of jobControlFlags set and cleared."""
        off = int(off)  # ~ of an IntFlag would lose bits without a name
        return replace(self, job_control_flags=int((self.job_control_flags | on) & ~off))

    def idle(self) -> Job:
        """Return the job without a queue server."""
        return replace(
            self,
            job_file_handle=0,
            servicing_server_station=0,
            servicing_server_task_number=0,
            servicing_server_id_number=0,  # QMS-jobfields-36
        )
