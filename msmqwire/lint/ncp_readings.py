"""Which byte order or size a sender of NCP uses where public descriptions disagree, as its values tell.

A job or queue that a server has named, and that a later packet means, a number that can be one in one order
only, or the size of a structure. None of it is a fault: each finding says that the values of this sender are
to be read otherwise than they are, and is given once a connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.lint.ncp import CREATES, READS, SERVICES, Problem, other_number, swapped
from msmqwire.lint.registry import NCP, Check, listed
from msmqwire.netware.constants import ANY_JOB_TYPE, JOBS_MAX
from msmqwire.netware.ncp_packet import NcpPacket
from msmqwire.netware.packets import NcpReply, NcpRequest
from msmqwire.schema import Record

KNOWN_MAX: Final = 256
"""Queues and jobs of a connection that are remembered, each; of more, the oldest are forgotten."""


def _reading(name: str, title: str) -> Check:
    return listed(f"READING-{name}", title, "", NCP, "SHOULD")


QUEUE_ID: Final = _reading("QUEUE-ID", "The sender has the bytes of QueueID in the other order")
JOB_NUMBER: Final = _reading("JOB-NUMBER", "The sender has the bytes of JobNumber in another order")
OLD_JOB_NUMBER: Final = _reading("OLD-JOB-NUMBER", "The sender has the bytes of a short JobNumber reversed")
SERVICE_TYPE: Final = _reading("SERVICE-TYPE", "The sender has the bytes of ServiceType in the other order")
CHARGE: Final = _reading("CHARGE", "The sender has the bytes of Charge in the other order")
START: Final = _reading("START-POSITION", "The sender has the bytes of StartPosition in the other order")
STATION: Final = _reading("SERVER-STATION", "The sender has the bytes of ServerStation in the other order")
FILE_NAME: Final = _reading("JOB-FILE-NAME", "The sender ends JobFileName with a NUL and does not count it")
SIZES: Final = {
    "ChangeQueueJobEntryOld": _reading("NO-QUEUE-ID", "The sender leaves out QueueID in a change"),
    "FinishServicingQueueJobOld": _reading("SHORT-CHARGE", "The sender has a Charge of two bytes"),
    "ChangeQueueJobEntry": _reading("OLD-STRUCTURE", "The sender changes a job by the old structure"),
    "SetQueueCurrentStatus": _reading("SHORT-STATUS", "The sender has a status of one byte"),
}
"""By call: what a request of the other size shows."""

_SMALL: Final = 1 << 16
_LARGE: Final = 1 << 24
_PRINTABLE: Final = 0x20


def other_type(wanted: int, found: int) -> bool:
    """Return whether a ServiceType is the type of a job in the other byte order only."""
    return wanted not in (found, ANY_JOB_TYPE) and swapped(wanted, 2) == found


class NcpReadings:
    """What the packets of a connection have told so far."""

    __slots__ = ("_jobs", "_queues", "_told")

    def __init__(self) -> None:
        self._queues: dict[int, None] = {}
        self._jobs: dict[int, None] = {}
        self._told: set[str] = set()

    @property
    def count(self) -> int:
        """How many queues and jobs are remembered."""
        return len(self._queues) + len(self._jobs)

    def discard(self) -> None:
        """Forget them."""
        self._queues.clear()
        self._jobs.clear()

    def packet(self, packet: NcpPacket) -> Iterator[Problem]:
        """Yield what a packet tells that no packet before it has told."""
        inner, data = packet.packet, packet.data
        if data is None or isinstance(inner, Record) or inner.call is None:
            return
        if isinstance(inner, NcpRequest):
            found = self._request(inner, data)
        else:
            found = self._reply(inner, packet, data)
        for problem in found:
            if problem[0].id not in self._told:
                self._told.add(problem[0].id)
                yield problem

    def _request(self, request: NcpRequest, data: Record) -> Iterator[Problem]:
        assert request.call is not None
        name = request.call.name
        if data.schema in request.call.others and name in SIZES:
            size = len(data.to_bytes())
            yield SIZES[name], next(iter(data)), f"{size} bytes of data, by the other description"
        for field in ("QueueID", "DestinationQueueID"):
            value = data.get(field)
            if value is not None and value not in self._queues and swapped(value, 4) in self._queues:
                yield QUEUE_ID, field, f"{swapped(value, 4):#010x} is a queue, {value:#010x} is not known"
        yield from self._numbers(name, data)
        for field, check, least in (("Charge", CHARGE, _SMALL), ("ServerStation", STATION, _SMALL)):
            value = data.get(field)
            if value is not None and value >= _LARGE and swapped(value, 4) < least:
                yield check, field, f"{swapped(value, 4)}, not {value}"
        value = data.get("StartPosition", 0)
        if value > JOBS_MAX and 0 < swapped(value, 4) <= JOBS_MAX:
            yield START, "StartPosition", f"{swapped(value, 4)}, not {value}"

    def _numbers(self, name: str, data: Record) -> Iterator[Problem]:
        value = data.get("JobNumber")
        if value is None or value in self._jobs:
            return
        is_short = value < _SMALL and data.schema.part("JobNumber").bits == 16
        if is_short:
            if swapped(value, 2) in self._jobs:
                yield OLD_JOB_NUMBER, "JobNumber", f"{swapped(value, 2)} is a job, {value} is not known"
            return
        if swapped(value, 4) in self._jobs:
            yield JOB_NUMBER, "JobNumber", f"{swapped(value, 4)} is a job, {value} is not known"

    def _reply(self, reply: NcpReply, packet: NcpPacket, data: Record) -> Iterator[Problem]:
        assert reply.call is not None
        name, job = reply.call.name, data.get("Job")
        if name == "CreateQueue":
            self._know(self._queues, data.QueueID)
        elif name in ("GetBinderyObjectID", "ScanBinderyObject"):
            self._know(self._queues, data.ObjectID)
        numbers = [("JobNumber", data.get("JobNumber"))] if name == "MoveQueueJobFromSrcQToDstQ" else []
        listed_jobs = data.get("JobNumbers") or ()
        numbers += [(f"JobNumbers[{i}].JobNumber", found.JobNumber) for i, found in enumerate(listed_jobs)]
        if job is not None and name in CREATES | READS | SERVICES:
            numbers.append(("Job.jobNumber", job.jobNumber))
            raw = job.jobFileName
            if isinstance(raw, bytes) and raw[0] >= _PRINTABLE:
                yield FILE_NAME, "Job.jobFileName", f"{raw.partition(bytes(1))[0]!r}"
        for path, number in numbers:
            if not name.endswith("Old") and (other := other_number(number)) is not None:
                yield JOB_NUMBER, path, f"{other[0]}, not {number}: {other[1]}"
            self._know(self._jobs, number)
        asked = None if packet.request is None else packet.request.data
        wanted = None if asked is None else asked.get("ServiceType")
        if job is not None and wanted is not None and other_type(wanted, job.jobType):
            text = f"{wanted:#06x} was asked for, and a job of type {job.jobType:#06x} handed out"
            yield SERVICE_TYPE, "Job.jobType", text

    @staticmethod
    def _know(known: dict[int, None], value: int) -> None:
        known.pop(value, None)
        known[value] = None
        if len(known) > KNOWN_MAX:
            del known[next(iter(known))]
