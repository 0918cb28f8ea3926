"""The calls about whole queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.job_fields import old_station
from msmqwire.netware.model.queue import QueueStatusReport
from msmqwire.netware.protocol.calls import NO_DATA, CallContext, Fields, Operation


def complete_path(call: CallContext) -> str:
    """Return the path of a request. There are no directory handles to begin from."""
    if call.data.DirectoryHandle:
        raise NcpRefused(
            f"no directory has the handle {call.data.DirectoryHandle}", CompletionCode.BAD_DIRECTORY_HANDLE
        )
    return str(call.data.Path)


def _create(call: CallContext) -> Fields:
    data = call.data
    queue_id = call.service.queues.create(call.caller, data.QueueName, data.QueueType, complete_path(call))
    return {"QueueID": queue_id}


def _destroy(call: CallContext) -> Fields:
    call.service.queues.destroy(call.caller, call.data.QueueID)
    return NO_DATA


def _report(call: CallContext) -> QueueStatusReport:
    return call.service.queues.read_status(call.caller, call.data.QueueID)


def _read_status(call: CallContext) -> Fields:
    report = _report(call)
    return {
        "QueueID": report.queue_id,
        "QueueStatus": report.status,
        "JobCount": report.jobs,
        "ServerIDs": [{"ServerID": object_id} for object_id, _ in report.servers],
        "ServerStations": [{"ServerStation": station} for _, station in report.servers],
    }


def _read_status_old(call: CallContext) -> Fields:
    report = _report(call)
    return {
        "QueueID": report.queue_id,
        "QueueStatus": report.status,
        "JobCount": min(report.jobs, 0xFF),
        "ServerIDs": [{"ServerID": object_id} for object_id, _ in report.servers],
        "ServerStations": [{"ServerStation": old_station(station)} for _, station in report.servers],
    }


def _set_status(call: CallContext) -> Fields:
    call.service.queues.set_status(call.caller, call.data.QueueID, int(call.data.QueueStatus))
    return NO_DATA


OPERATIONS: Final[Mapping[str, Operation]] = {
    "CreateQueue": _create,
    "DestroyQueue": _destroy,
    "ReadQueueCurrentStatusOld": _read_status_old,
    "ReadQueueCurrentStatus": _read_status,
    "SetQueueCurrentStatusOld": _set_status,
    "SetQueueCurrentStatus": _set_status,
}
