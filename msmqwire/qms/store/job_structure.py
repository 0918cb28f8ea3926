"""The job structure at the head of a queue file: QMS-files-07."""

from __future__ import annotations

from typing import Final

from msmqwire.netware.job_structures import OLD_JOB, QUEUE_JOB_TIME
from msmqwire.qms.model.job import Job
from msmqwire.schema.layout import layout

SIZE: Final = len(OLD_JOB.make({}).to_bytes())
_POSITION: Final = next(
    field.offset for field in layout(OLD_JOB.make({})) if field.path.endswith(".jobPosition")
)
_BYTE: Final = 0xFF


def job_structure(job: Job) -> bytes:
    """Return the 256 bytes of a job with position 0: `at_position` gives it one.

    Of stations, tasks and flags, which are wider since NetWare 3.11, it has the low 8 bits. The handle, which
    only one connection can use, is 0.
    """
    record = OLD_JOB.make(
        {
            "clientStation": job.client_station & _BYTE,
            "clientTask": job.client_task & _BYTE,
            "clientID": job.client_id,
            "targetServerID": job.target_server_id,
            "targetExecutionTime": QUEUE_JOB_TIME.parse(job.target_execution_time),
            "jobEntryTime": QUEUE_JOB_TIME.parse(job.job_entry_time),
            "jobNumber": job.job_number,
            "jobType": job.job_type,
            "jobPosition": 0,
            "jobControlFlags": job.job_control_flags & _BYTE,
            "jobFileName": job.job_file_name,
            "servicingServerStation": job.servicing_server_station & _BYTE,
            "servicingServerTaskNumber": job.servicing_server_task_number & _BYTE,
            "servicingServerIDNumber": job.servicing_server_id_number,
            "jobDescription": job.job_description,
            "queueRecord": job.queue_record,
        }
    )
    structure: bytes = record.to_bytes()
    return structure


def at_position(structure: bytes, position: int) -> bytes:
    """Return a job structure with the place of the job in the queue; from 255 on it is 255."""
    return structure[:_POSITION] + bytes((min(position, _BYTE),)) + structure[_POSITION + 1 :]
