"""What a packet of NCP says of calls, objects and jobs, by the names of columns.

A reply has what it returns, and of the rest what its request has asked for. In a request to create a job,
fields that QMS fills mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msmqwire.netware.job_structures import job_file_name
from msmqwire.netware.job_times import moment
from msmqwire.netware.ncp_packet import NcpPacket
from msmqwire.netware.packets import NcpReply
from msmqwire.schema import Record
from msmqwire.schema.texts import OEM_CODE_PAGE

_CREATES: Final = frozenset({"CreateQueueJobAndFile", "CreateQueueJobAndFileOld"})
_BY_QMS: Final = frozenset(
    {"job_number", "job_position", "job_entry_time", "client_id", "servicing_server_id", "job_file_name"}
)


def attribute(name: str, packet: NcpPacket) -> Any:
    """Return what a packet says; None if it does not tell."""
    if name in _OF_PACKET:
        return _OF_PACKET[name](packet)
    convert, *paths = _OF_DATA.get(name, (None,))
    hidden = name in _BY_QMS and packet.call is not None and packet.call.name in _CREATES
    value = None if hidden and not _is_reply(packet) else _value(packet.data, paths)
    if value is None and packet.request is not None and not hidden:
        value = _value(packet.request.data, paths)
    return value if value is None or convert is None else convert(value)


def _is_reply(packet: NcpPacket) -> bool:
    return isinstance(packet.packet, NcpReply)


def _value(data: Record | None, paths: list[str]) -> Any:
    if data is None:
        return None
    for path in paths:
        value: Any = data
        for step in path.split("."):
            value = None if value is None else value.get(step)
        if value is not None:
            return value
    return None


def _completion(packet: NcpPacket) -> int | None:
    return int(packet.packet.header.CompletionCode) if isinstance(packet.packet, NcpReply) else None


def _header(packet: NcpPacket) -> Record | None:
    return None if isinstance(packet.packet, Record) else packet.packet.header


def _sequence(packet: NcpPacket) -> int | None:
    header = _header(packet)
    return None if header is None else int(header.SequenceNumber)


def _connection(packet: NcpPacket) -> int | None:
    return None if isinstance(packet.packet, Record) else packet.packet.connection


def _text(value: str | bytes) -> str:
    """Return text that ends at the first null."""
    return value if isinstance(value, str) else value.partition(b"\0")[0].decode(OEM_CODE_PAGE)


_OF_PACKET: Final[dict[str, Callable[[NcpPacket], Any]]] = {
    "call": lambda packet: None if packet.call is None else packet.call.name,
    "ncp_connection": _connection,
    "ncp_sequence": _sequence,
    "completion_code": _completion,
    "completion": lambda packet: packet.completion,
}
_OF_DATA: Final[dict[str, tuple[Any, ...]]] = {
    "object_id": (None, "ObjectID"),
    "object_type": (None, "ObjectType", "QueueType"),
    "object_name": (_text, "ObjectName", "QueueName"),
    "property_name": (_text, "PropertyName"),
    "member_name": (_text, "MemberName"),
    "queue_id": (None, "QueueID"),
    "queue_status": (int, "QueueStatus"),
    "job_count": (None, "TotalJobs", "JobCount"),
    "job_number": (None, "Job.jobNumber", "JobNumber"),
    "job_type": (None, "Job.jobType", "ServiceType"),
    "job_position": (None, "Job.jobPosition", "NewPosition", "Priority"),
    "job_flags": (int, "Job.jobControlFlags"),
    "client_id": (None, "Job.clientID"),
    "target_server_id": (None, "Job.targetServerID"),
    "target_execution_time": (moment, "Job.targetExecutionTime"),
    "job_entry_time": (moment, "Job.jobEntryTime"),
    "servicing_server_id": (None, "Job.servicingServerIDNumber"),
    "job_file_name": (job_file_name, "Job"),
    "job_file_size": (None, "FileSize"),
    "job_description": (_text, "Job.jobDescription"),
    "queue_record": (None, "Job.queueRecord"),
}
