"""The order of NCP calls in a connection, checked by its replies about jobs and queue servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from msmqwire.analysis.lint.finding import Finding, Severity
from msmqwire.analysis.lint.ncp import CREATES, SERVICES, Problem, findings_of, lint_ncp
from msmqwire.analysis.lint.ncp_attacks import NCP
from msmqwire.analysis.lint.ncp_readings import NcpReadings
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.ncp.ncp_packet import NcpPacket
from msmqwire.ncp.packets import NcpReply, NcpRequest

JOBS_FOLLOWED_MAX: Final = 256
"""Jobs of a connection that are followed; one with more is no longer judged by them."""

_COST: Final = 128  # bytes, about, that a job or a queue takes


def _rule(id: str, title: str, severity: Severity = "MUST") -> Check:
    return listed(id, title, "", NCP, severity)


FOREIGN_START: Final = _rule("QMS-submit-11", "Another client than the submitting one starts a job")
TWICE_STARTED: Final = _rule("QMS-submit-12", "A job is started that is not open")
NOT_ATTACHED: Final = _rule("QMS-service-07", "A job was handed out to a queue server that is not attached")
TWICE_SERVED: Final = _rule("QMS-manage-09", "A job in service was handed out again")
FOREIGN_END: Final = _rule("QMS-ext-03", "Another server than the servicing one finishes a job", "SHOULD")
CHANGED: Final = _rule("QMS-ext-05", "A job in service was changed", "SHOULD")
NO_JOB: Final = _rule("QMS-ext-16", "A server takes a client's rights without a job in service", "SHOULD")
SEQUENCE: Final = listed(
    "ATTACK-NCP-SEQUENCE", "Another request has a sequence number that was used", "", NCP, "ATTACK"
)

Job: TypeAlias = tuple[int, bool, int]
"""A job: its queue, whether its number is that of the newer calls, and the number."""

_COMPLETION: Final = "NcpReplyHeader.CompletionCode"
_STARTS: Final = frozenset({"CloseFileAndStartQueueJob", "CloseFileAndStartQueueJobOld"})
_ENDS: Final = frozenset(
    {"FinishServicingQueueJob", "FinishServicingQueueJobOld", "AbortServicingQueueJob",
     "AbortServicingQueueJobOld"}
)  # fmt: skip
_REMOVES: Final = frozenset({"RemoveJobFromQueue", "RemoveJobFromQueueOld"})
_RIGHTS: Final = frozenset({"ChangeToClientRights", "ChangeToClientRightsOld"})
_CHANGES: Final = frozenset({"ChangeQueueJobEntry", "ChangeQueueJobEntryOld"})


class NcpLint:
    """Judges the packets of a connection, fed in order: each by itself, and by those before it."""

    __slots__ = ("_attached", "_open", "_readings", "_served", "_started", "_whole")

    def __init__(self) -> None:
        self._whole = True  # so far all was captured
        self._open: dict[Job, None] = {}
        self._started: dict[Job, None] = {}
        self._served: dict[Job, None] = {}
        self._attached: dict[int, None] = {}
        self._readings = NcpReadings()

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory that it takes."""
        jobs = len(self._open) + len(self._started) + len(self._served)
        return _COST * (self._readings.count + jobs + len(self._attached))

    def discard(self) -> None:
        """Free that memory."""
        self.gap()
        self._readings.discard()

    def gap(self) -> None:
        """Report that packets are missing."""
        self._whole = False
        for table in (self._open, self._started, self._served, self._attached):
            table.clear()

    def packet(self, packet: NcpPacket) -> list[Finding]:
        """Return the findings about the next packet."""
        found = lint_ncp(packet)
        problems = list(self._readings.packet(packet))
        inner = packet.packet
        if isinstance(inner, NcpRequest) and packet.is_reused:
            number = inner.header.SequenceNumber
            problems.append((SEQUENCE, "NcpRequestHeader.SequenceNumber", f"{number} with other bytes"))
        elif isinstance(inner, NcpReply) and not (packet.is_busy or packet.is_repeated):
            problems += self._answered(packet, inner)
        if problems:
            found += findings_of(packet, problems)
        return sorted(found, key=lambda finding: finding.offset)

    def _answered(self, packet: NcpPacket, reply: NcpReply) -> Iterator[Problem]:
        """Judge a call that has been carried out, and take note of it."""
        if reply.call is None or reply.header.CompletionCode:
            return
        name = reply.call.name
        asked = None if packet.request is None else packet.request.data
        queue = None if asked is None else asked.get("QueueID")
        if asked is None or queue is None:
            if name == "Logout":
                self._attached.clear()
            return
        is_new = not name.endswith("Old")
        if name == "AttachQueueServerToQueue":
            self._note(self._attached, queue)
        elif name == "DetachQueueServerFromQueue":
            self._attached.pop(queue, None)
        elif name in CREATES and packet.data is not None:
            self._note(self._open, (queue, is_new, packet.data.Job.jobNumber))
            self._started.pop((queue, is_new, packet.data.Job.jobNumber), None)
        elif name in SERVICES and packet.data is not None:
            yield from self._service(queue, (queue, is_new, packet.data.Job.jobNumber))
        elif name in _CHANGES:
            job = queue, is_new, asked.Job.jobNumber
            if job in self._served:
                yield CHANGED, _COMPLETION, f"job {job[2]}, which this queue server has, was changed"
        elif asked.get("JobNumber") is not None:
            yield from self._end(name, (queue, is_new, asked.JobNumber))

    def _service(self, queue: int, job: Job) -> Iterator[Problem]:
        if self._whole and queue not in self._attached:
            yield NOT_ATTACHED, "Job", f"queue {queue:#010x}"
        if job in self._served:
            yield TWICE_SERVED, "Job.jobNumber", f"{job[2]}, which this queue server has already"
        self._note(self._served, job)

    def _end(self, name: str, job: Job) -> Iterator[Problem]:
        if name in _STARTS:
            if job in self._started:
                yield TWICE_STARTED, _COMPLETION, f"job {job[2]} was started before"
            elif self._whole and job not in self._open:
                yield FOREIGN_START, _COMPLETION, f"job {job[2]} was not created in this connection"
            self._open.pop(job, None)
            self._note(self._started, job)
        elif name in _ENDS:
            if self._whole and job not in self._served:
                yield FOREIGN_END, _COMPLETION, f"job {job[2]} was not handed out in this connection"
            self._served.pop(job, None)
        elif name in _REMOVES:
            for table in (self._open, self._started, self._served):
                table.pop(job, None)
        elif name in _RIGHTS and self._whole and job not in self._served:
            yield NO_JOB, _COMPLETION, f"job {job[2]} was not handed out in this connection"

    def _note(self, table: dict[Any, None], key: Any) -> None:
        table[key] = None
        if len(table) > JOBS_FOLLOWED_MAX:
            self._whole = False
            del table[next(iter(table))]
