"""Jobs from and to NWQueueJobStruct_t, in both forms."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.ncp.constants import JOB_DESCRIPTION_SIZE
from msmqwire.ncp.job_structures import file_handle
from msmqwire.netware.model.job import Job, JobRequest
from msmqwire.schema import Record

_HANDLE_SIZE: Final = 4
_BYTE_MAX: Final = 0xFF


def job_request(structure: Record, *, more_flags: int = 0) -> JobRequest:
    """Return the request of a client in a structure of either form.

    Args:
        more_flags: bits of jobControlFlags without room in the old form.
    """
    description = structure.jobDescription
    if isinstance(description, str):
        description = description.encode("cp437").ljust(JOB_DESCRIPTION_SIZE, b"\0")
    return JobRequest(
        target_server_id=structure.targetServerID,
        target_execution_time=structure.targetExecutionTime.to_bytes(),
        job_type=structure.jobType,
        job_control_flags=int(structure.jobControlFlags) | more_flags,
        job_description=description,
        queue_record=structure.queueRecord,
        job_position=structure.jobPosition,
    )


def new_head(job: Job, next_number: int) -> dict[str, Any]:
    """Return the fields of the head of the newer form.

    Args:
        next_number: the number of the next job in the queue; 0 for none.
    """
    return {
        **_common(job),
        "NextRecord": next_number,
        "clientStation": job.client_station,
        "servicingServerStation": job.servicing_server_station,
        "jobPosition": job.job_position,
        "jobControlFlags": job.job_control_flags,
        "jobFileHandle": handle_bytes(job.job_file_handle),
    }


def old_head(job: Job) -> dict[str, Any]:
    """Return the fields of the head of the old form."""
    return {
        **_common(job),
        "clientStation": old_station(job.client_station),
        "servicingServerStation": old_station(job.servicing_server_station),
        "jobPosition": min(job.job_position, _BYTE_MAX),
        "jobControlFlags": job.job_control_flags & _BYTE_MAX,
        "jobFileHandle": six_byte_handle(job.job_file_handle) if job.job_file_handle else bytes(6),
    }


def tail(job: Job) -> dict[str, Any]:
    """Return the fields after the head of either form."""
    return {"jobDescription": job.job_description, "queueRecord": job.queue_record}


def _common(job: Job) -> dict[str, Any]:
    return {
        "clientTask": job.client_task,
        "clientID": job.client_id,
        "targetServerID": job.target_server_id,
        "targetExecutionTime": _time(job.target_execution_time),
        "jobEntryTime": _time(job.job_entry_time),
        "jobNumber": job.job_number,
        "jobType": job.job_type,
        "jobFileName": job.job_file_name,
        "servicingServerTaskNumber": job.servicing_server_task_number,
        "servicingServerIDNumber": job.servicing_server_id_number,
    }


def _time(value: bytes) -> dict[str, int]:
    return dict(zip(("Year", "Month", "Day", "Hour", "Minute", "Second"), value, strict=True))


def old_station(station: int) -> int:
    """Return a station for the old calls, which have 8 bits for it: 0, an unused station, above 255."""
    return station if station <= _BYTE_MAX else 0


def handle_bytes(handle: int) -> bytes:
    """Return the handle of an open file in the form of the newer structure."""
    return handle.to_bytes(_HANDLE_SIZE, "little")


def six_byte_handle(handle: int) -> bytes:
    """Return the handle of an open file in the form of the old structure and of calls about files."""
    return file_handle(handle_bytes(handle))


def handle_of(field: bytes) -> int:
    """Return the handle of the six bytes in a request: clients put various values before the four."""
    return int.from_bytes(field[-_HANDLE_SIZE:], "little")
