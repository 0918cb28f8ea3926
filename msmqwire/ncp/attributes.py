"""Attributes of an NCP packet: its calls, objects and jobs, by the names of columns.

A reply has its own values, and otherwise those of its request. In a request to create a job, fields that QMS
fills have no meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final

from msmqwire.ncp.job_structures import job_file_name
from msmqwire.ncp.job_times import moment
from msmqwire.ncp.ncp_packet import NcpPacket
from msmqwire.ncp.packets import NcpReply, NcpRequest
from msmqwire.schema.record import class_of, first_of, paths_in
from msmqwire.schema.texts import OEM_CODE_PAGE

_CREATES: Final = frozenset({"CreateQueueJobAndFile", "CreateQueueJobAndFileOld"})
_BY_QMS: Final = frozenset(
    {"job_number", "job_position", "job_entry_time", "client_id", "servicing_server_id", "job_file_name"}
)


def attribute(name: str, packet: NcpPacket) -> Any:
    """Return the value in a packet; None if it has none."""
    getter = attributes(packet).get(name)
    return None if getter is None else getter(packet)


def attributes(packet: NcpPacket) -> Mapping[str, Callable[[NcpPacket], Any]]:
    """Return the attributes of packets like this one, by name, each with its function, which returns None for
    a packet without it.

    All packets of one kind share one object.
    """
    asked = None if packet.request is None else packet.request.data
    creates = packet.call is not None and packet.call.name in _CREATES
    return _attributes(class_of(packet.packet), class_of(packet.data), class_of(asked), creates)


@cache
def _attributes(
    packet: type, data: type, asked: type, creates: bool
) -> Mapping[str, Callable[[NcpPacket], Any]]:
    """Return the attributes of packets with data of these classes, in answer to a request with such data."""
    found = dict(_OF_REPLY if packet is NcpReply else _OF_REQUEST if packet is NcpRequest else {})
    for name, (convert, *paths) in _OF_DATA.items():
        places = []
        if not (hidden := creates and name in _BY_QMS) or packet is NcpReply:
            places = paths_in(data, paths, "packet.data.")
        if not hidden:
            places += paths_in(asked, paths, "request.data.")
        if places:
            found[name] = first_of(places, convert)
    return found


def _text(value: str | bytes) -> str:
    """Return text that ends at the first null."""
    return value if isinstance(value, str) else value.partition(b"\0")[0].decode(OEM_CODE_PAGE)


_OF_REQUEST: Final[dict[str, Callable[[NcpPacket], Any]]] = {
    "call": lambda packet: None if packet.call is None else packet.call.name,
    "ncp_connection": attrgetter("packet.connection"),
    "ncp_sequence": lambda packet: int(packet.packet.header.SequenceNumber),
}
_OF_REPLY: Final = _OF_REQUEST | {
    "completion_code": lambda packet: int(packet.packet.header.CompletionCode),
    "completion": attrgetter("completion"),
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
