"""The calls of queue servers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msmqwire.netware.model.job import Job
from msmqwire.netware.protocol.calls import NO_DATA, CallContext, Fields, Operation
from msmqwire.netware.protocol.jobs import forms, job_head, old_job_head


def _attach(call: CallContext) -> Fields:
    call.service.servicing.attach(call.caller, call.data.QueueID)
    return NO_DATA


def _detach(call: CallContext) -> Fields:
    call.service.servicing.detach(call.caller, call.data.QueueID)
    return NO_DATA


def _taken(call: CallContext, types: Collection[int]) -> Job:
    return call.service.servicing.service(call.caller, call.data.QueueID, types, now=call.now)


def _finish(call: CallContext) -> Fields:
    """Finish the service of a job. There is no accounting: the charge is ignored."""
    call.service.servicing.finish(call.caller, call.data.QueueID, call.data.JobNumber)
    return NO_DATA


def _abort(call: CallContext) -> Fields:
    call.service.servicing.abort(call.caller, call.data.QueueID, call.data.JobNumber)
    return NO_DATA


def _change_rights(call: CallContext) -> Fields:
    call.service.servicing.change_to_client_rights(call.caller, call.data.QueueID, call.data.JobNumber)
    return NO_DATA


def _restore_rights(call: CallContext) -> Fields:
    call.service.servicing.restore_server_rights(call.caller)
    return NO_DATA


def _read_status(call: CallContext) -> Fields:
    data, servicing = call.data, call.service.servicing
    record = servicing.read_server_status(call.caller, data.QueueID, data.ServerID, data.ServerStation)
    return {"ServerStatusRecord": record}


def _set_status(call: CallContext) -> Fields:
    call.service.servicing.set_server_status(call.caller, call.data.QueueID, call.data.ServerStatusRecord)
    return NO_DATA


OPERATIONS: Final[Mapping[str, Operation]] = {
    "AttachQueueServerToQueue": _attach,
    "DetachQueueServerFromQueue": _detach,
    "ServiceQueueJobOld": lambda call: old_job_head(call, _taken(call, (call.data.ServiceType,))),
    "ServiceQueueJob": lambda call: job_head(call, _taken(call, (call.data.ServiceType,))),
    "ServiceQueueJobByFormList": lambda call: job_head(call, _taken(call, forms(call))),
    "FinishServicingQueueJobOld": _finish,
    "FinishServicingQueueJob": _finish,
    "AbortServicingQueueJobOld": _abort,
    "AbortServicingQueueJob": _abort,
    "ChangeToClientRightsOld": _change_rights,
    "ChangeToClientRights": _change_rights,
    "RestoreQueueServerRights": _restore_rights,
    "ReadQueueServerCurrentStatusOld": _read_status,
    "ReadQueueServerCurrentStatus": _read_status,
    "SetQueueServerCurrentStatus": _set_status,
}
