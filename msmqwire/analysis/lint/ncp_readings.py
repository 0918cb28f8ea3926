"""The byte orders and sizes of a sender of NCP where public descriptions disagree, as its values show.

A job or queue that a server has named, and that a later packet means, a number that can be one in one order
only, or the size of a structure. None of it is a fault: each finding says that the values of this sender are
to be read otherwise than they are, and is given once a connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.lint.ncp import Problem, other_number, swapped
from msmqwire.analysis.lint.ncp_attacks import NCP
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.names.printable import counted
from msmqwire.ncp.calls import Call
from msmqwire.ncp.constants import ANY_JOB_TYPE, JOBS_MAX
from msmqwire.ncp.job_structures import job_file_name
from msmqwire.ncp.ncp_packet import NcpPacket
from msmqwire.ncp.packets import NcpReply, NcpRequest
from msmqwire.ncp.queue_calls import MOVED, NEW_POSITION, SERVICE
from msmqwire.ncp.readings import PLACES, Readings
from msmqwire.schema import Record

KNOWN_MAX: Final = 256
"""Queues and jobs of a connection that are remembered, each; of more, the oldest are forgotten."""


def _check(name: str, title: str) -> Check:
    return listed(f"READING-{name}", title, "", NCP, "NOTE")


_OPTIONS: Final = {
    option: _check(option.upper().replace("_", "-"), f"The sender has the bytes of {field} in another order")
    for option, field in (
        ("queue_id", "QueueID"), ("job_number", "JobNumber"), ("position_job_number", "a short JobNumber"),
        ("service_type", "ServiceType"), ("charge", "Charge"), ("start_position", "StartPosition"),
        ("server_station", "ServerStation"), ("destination_queue_id", "DestinationQueueID"),
    )
}  # fmt: skip
"""The columns, by the name of an option of `msmqwire.ncp.readings.Reading`."""
FILE_NAME: Final = _check("JOB-FILE-NAME", "The sender ends JobFileName with a NUL and does not count it")
SIZES: Final = {
    "ReadQueueCurrentStatusOld": _check(
        "STATUS-SLOTS", "The sender has room for 25 queue servers in a status"
    ),
    "ChangeQueueJobEntryOld": _check("NO-QUEUE-ID", "The sender leaves out QueueID in a change"),
    "FinishServicingQueueJobOld": _check("SHORT-CHARGE", "The sender has a Charge of two bytes"),
    "ChangeQueueJobEntry": _check("OLD-STRUCTURE", "The sender changes a job by the old structure"),
    "SetQueueCurrentStatus": _check("SHORT-STATUS", "The sender has a status of one byte"),
}
"""The fact that a request or reply of the other size shows, by call."""

_SMALL: Final = 1 << 16
_LARGE: Final = 1 << 24
_PRINTABLE: Final = 0x20


class NcpReadings:
    """The facts that the packets of a connection have shown so far."""

    __slots__ = ("_jobs", "_queues", "_told")

    def __init__(self) -> None:
        self._queues: dict[int, None] = {}
        self._jobs: dict[int, None] = {}
        self._told: set[str] = set()

    @property
    def count(self) -> int:
        """The number of queues and jobs that are remembered."""
        return len(self._queues) + len(self._jobs)

    def discard(self) -> None:
        """Forget them."""
        self._queues.clear()
        self._jobs.clear()

    def packet(self, packet: NcpPacket) -> Iterator[Problem]:
        """Yield the facts that a packet shows and no packet before it has shown."""
        inner, data = packet.packet, packet.data
        if data is None or isinstance(inner, Record) or inner.call is None:
            return
        found = self._size(inner.call, data)
        found += (
            self._request(inner, data) if isinstance(inner, NcpRequest) else self._reply(inner, packet, data)
        )
        for problem in found:
            if problem[0].id not in self._told:
                self._told.add(problem[0].id)
                yield problem

    @staticmethod
    def _size(call: Call, data: Record) -> list[Problem]:
        if data.schema not in (*call.others, *call.other_replies):
            return []
        return [(SIZES[call.name], next(iter(data)), f"{counted(len(data.to_bytes()), 'byte')} of data")]

    def _request(self, request: NcpRequest, data: Record) -> Iterator[Problem]:
        readings = request.readings
        for field, option in (("QueueID", "queue_id"), ("DestinationQueueID", "destination_queue_id")):
            value = data.get(field)
            if value is not None and value not in self._queues and swapped(value, 4) in self._queues:
                text = f"{swapped(value, 4):#010x} is a queue, {value:#010x} is not known"
                yield _other_order(option, readings, field, text)
        yield from self._number(request, data)
        for field, option in (("Charge", "charge"), ("ServerStation", "server_station")):
            value = data.get(field, 0)
            is_disputed = (data.schema, field) in PLACES[option]
            if is_disputed and value >= _LARGE and swapped(value, 4) < _SMALL:
                yield _other_order(option, readings, field, f"{swapped(value, 4)} rather than {value}")
        value = data.get("StartPosition", 0)
        if value > JOBS_MAX and 0 < swapped(value, 4) <= JOBS_MAX:
            text = f"{swapped(value, 4)} rather than {value}"
            yield _other_order("start_position", readings, "StartPosition", text)

    def _number(self, request: NcpRequest, data: Record) -> Iterator[Problem]:
        value = data.get("JobNumber")
        if value is None or value in self._jobs:
            return
        if data.schema is NEW_POSITION:
            option, size = "position_job_number", 2
        elif (data.schema, "JobNumber") in PLACES["job_number"]:
            option, size = "job_number", 4
        else:
            return  # nobody disputes it
        if swapped(value, size) in self._jobs:
            text = f"{swapped(value, size)} is a job, {value} is not known"
            yield _other_order(option, request.readings, "JobNumber", text)

    def _reply(self, reply: NcpReply, packet: NcpPacket, data: Record) -> Iterator[Problem]:
        assert reply.call is not None
        name, job = reply.call.name, data.get("Job")
        if name == "CreateQueue":
            self._know(self._queues, data.QueueID)
        elif name in ("GetBinderyObjectID", "ScanBinderyObject"):
            self._know(self._queues, data.ObjectID)
        numbers = [
            (f"JobNumbers[{i}].JobNumber", of.JobNumber) for i, of in enumerate(data.get("JobNumbers", ()))
        ]
        if data.schema is MOVED:
            numbers.append(("JobNumber", data.JobNumber))
        if job is not None:
            numbers.append(("Job.jobNumber", job.jobNumber))
            field = job.jobFileName
            if isinstance(field, bytes) and field[0] >= _PRINTABLE:
                yield FILE_NAME, "Job.jobFileName", job_file_name(job)
        for path, number in numbers:
            other = None if name.endswith("Old") else other_number(number, reply.readings)
            if other is not None:
                text = f"{other[0]} rather than {number}: --reading job_number={other[1]}"
                yield _OPTIONS["job_number"], path, text
            self._know(self._jobs, number)
        yield from self._type(reply, packet, job)

    @staticmethod
    def _type(reply: NcpReply, packet: NcpPacket, job: Record | None) -> Iterator[Problem]:
        asked = None if packet.request is None else packet.request.data
        if asked is None or job is None or asked.schema is not SERVICE:
            return
        wanted = asked.ServiceType
        if wanted not in (job.jobType, ANY_JOB_TYPE) and swapped(wanted, 2) == job.jobType:
            text = f"{wanted:#06x} was asked for, and a job of type {job.jobType:#06x} handed out"
            yield _other_order("service_type", reply.readings, "Job.jobType", text)

    @staticmethod
    def _know(known: dict[int, None], value: int) -> None:
        known.pop(value, None)
        known[value] = None
        if len(known) > KNOWN_MAX:
            del known[next(iter(known))]


def _other_order(option: str, readings: Readings, path: str, why: str) -> Problem:
    """Return the problem that a field is in the other byte order."""
    other = "little" if getattr(readings, option) == "big" else "big"
    return _OPTIONS[option], path, f"{why}: --reading {option}={other}"
