"""The calls of users and operators about jobs. The old and the newer ones differ in their structures only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.ncp.job_structures import OLD_JOB
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.job_fields import job_request, new_head, old_head, tail
from msmqwire.netware.protocol.calls import NO_DATA, CallContext, Fields, Operation

_OLD_FLAGS: Final = 0xFF


def job_head(call: CallContext, job: Job) -> Fields:
    """Return the head of a job in the newer form."""
    return {"Job": new_head(job, _following(call, job))}


def _following(call: CallContext, job: Job) -> int:
    """Return the number of the next job in the queue; 0 for none."""
    order = call.service.queue_table.found(call.data.QueueID).order
    return order[job.job_position] if job.job_position < len(order) else 0


def old_job_head(_call: CallContext, job: Job) -> Fields:
    """Return the head of a job in the old form."""
    return {"Job": old_head(job)}


def _created(call: CallContext) -> Job:
    return call.service.jobs.create(call.caller, call.data.QueueID, job_request(call.data.Job), call.now)


def _read(call: CallContext) -> Fields:
    job = _entry(call)
    return {"Job": new_head(job, _following(call, job)) | tail(job)}


def _read_old(call: CallContext) -> Fields:
    job = _entry(call)
    return {"Job": old_head(job) | tail(job)}


def _entry(call: CallContext) -> Job:
    return call.service.jobs.read_entry(call.caller, call.data.QueueID, call.data.JobNumber)


def _start(call: CallContext) -> Fields:
    call.service.jobs.close_and_start(call.caller, call.data.QueueID, call.data.JobNumber)
    return NO_DATA


def _remove(call: CallContext) -> Fields:
    call.service.jobs.remove(call.caller, call.data.QueueID, call.data.JobNumber)
    return NO_DATA


def _change(call: CallContext) -> Fields:
    structure, queue_id = call.data.Job, call.data.get("QueueID")
    if queue_id is None:
        raise NcpRefused("the request names no queue", CompletionCode.BAD_LENGTH)
    number, more_flags = structure.jobNumber, 0
    if structure.schema is OLD_JOB:
        queue = call.service.queue_table.get(queue_id)
        stored = None if queue is None else queue.jobs.get(number)
        more_flags = 0 if stored is None else stored.job_control_flags & ~_OLD_FLAGS
    request = job_request(structure, more_flags=more_flags)
    call.service.jobs.change_entry(call.caller, queue_id, number, request)
    return NO_DATA


def _change_position(call: CallContext) -> Fields:
    data = call.data
    call.service.jobs.change_position(call.caller, data.QueueID, data.JobNumber, data.NewPosition)
    return NO_DATA


def _change_priority(call: CallContext) -> Fields:
    data = call.data
    call.service.jobs.change_position(call.caller, data.QueueID, data.JobNumber, data.Priority)
    return NO_DATA


def _list_old(call: CallContext) -> Fields:
    numbers = call.service.jobs.numbers(call.caller, call.data.QueueID)
    return {"JobNumbers": [{"JobNumber": number} for number in numbers]}


def _list(call: CallContext) -> Fields:
    return _listed(call, None)


def _list_forms(call: CallContext) -> Fields:
    return _listed(call, forms(call))


def _listed(call: CallContext, types: Collection[int] | None) -> Fields:
    found = call.service.jobs.listed(call.caller, call.data.QueueID, call.data.StartPosition, types=types)
    return {"TotalJobs": found.total, "JobNumbers": [{"JobNumber": number} for number in found.numbers]}


def forms(call: CallContext) -> frozenset[int]:
    """Return the job types that a request lists."""
    return frozenset(entry.Form for entry in call.data.Forms)


def _file_size(call: CallContext) -> Fields:
    queue_id, number = call.data.QueueID, call.data.JobNumber
    size = call.service.jobs.file_size(call.caller, queue_id, number)
    return {"QueueID": queue_id, "JobNumber": number, "FileSize": size}


def _move(call: CallContext) -> Fields:
    data = call.data
    number = call.service.jobs.move(call.caller, data.QueueID, data.JobNumber, data.DestinationQueueID)
    return {"JobNumber": number}


OPERATIONS: Final[Mapping[str, Operation]] = {
    "CreateQueueJobAndFileOld": lambda call: old_job_head(call, _created(call)),
    "CreateQueueJobAndFile": lambda call: job_head(call, _created(call)),
    "CloseFileAndStartQueueJobOld": _start,
    "CloseFileAndStartQueueJob": _start,
    "RemoveJobFromQueueOld": _remove,
    "RemoveJobFromQueue": _remove,
    "GetQueueJobListOld": _list_old,
    "GetQueueJobList": _list,
    "GetQueueJobsFromFormList": _list_forms,
    "ReadQueueJobEntryOld": _read_old,
    "ReadQueueJobEntry": _read,
    "ChangeQueueJobEntryOld": _change,
    "ChangeQueueJobEntry": _change,
    "ChangeQueueJobPosition": _change_position,
    "ChangeJobPriority": _change_priority,
    "GetQueueJobFileSizeOld": _file_size,
    "GetQueueJobFileSize": _file_size,
    "MoveQueueJobFromSrcQToDstQ": _move,
}
