"""Checks of one NCP packet: a request, or a reply with the request that it answers. Chapter "Queue Services".

Public descriptions of NCP add numbers and limits; their ids are `QMS-ext-...`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias, get_args

from msmqwire.analysis.lint.finding import Finding, Severity
from msmqwire.analysis.lint.ncp_attacks import LENGTH, NCP
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import (
    ANY_JOB_TYPE,
    ANY_SERVER,
    JOB_LIST_MAX,
    JOB_NUMBER_MAX,
    JOBS_MAX,
    QUEUE_SERVERS_MAX,
    SEGMENT_SIZE,
    JobControlFlags,
    ObjectType,
    PropertyFlags,
)
from msmqwire.ncp.job_structures import OLD_JOB, OLD_JOB_HEAD
from msmqwire.ncp.job_times import RANGES, is_none, out_of_range
from msmqwire.ncp.ncp_packet import NcpPacket
from msmqwire.ncp.packets import NcpReply, NcpRequest
from msmqwire.ncp.readings import JobNumberForm, Readings
from msmqwire.schema import Record
from msmqwire.schema.layout import layout

Problem: TypeAlias = tuple[Check, str, str]
"""A check, the field, below the data of the call or with the name of its header, and the fault."""


def _rule(id: str, title: str, severity: Severity = "MUST") -> Check:
    return listed(id, title, "", NCP, severity)


FLAGS: Final = _rule("QMS-flags-11", "A job control flag that is not defined is set", "SHOULD")
TIME: Final = _rule("QMS-jobfields-25", "A byte of a time is out of its range")
JOB_TYPE: Final = _rule("QMS-jobfields-29", "A job has the jobType that stands for any", "SHOULD")
POSITION: Final = _rule("QMS-jobfields-32", "A job has position 0")
DESCRIPTION: Final = _rule("QMS-jobfields-38", "jobDescription is not ASCII text with a NUL at its end")
SAME_NUMBER: Final = _rule("QMS-jobfields-28", "The job that is read has another number")
FILLED: Final = _rule("QMS-jobfields-19", "A field that the application filled was changed")
IDLE: Final = _rule("QMS-jobfields-36", "A job that nobody services has a servicing server")
OPENED: Final = _rule("QMS-submit-04", "A job that was created has NWCF_ENTRY_OPEN clear")
SERVED: Final = _rule("QMS-manage-15", "A job was handed out without the ID of its queue server")
TARGET: Final = _rule("QMS-manage-07", "A job was handed out to another server than its target")
WRONG_TYPE: Final = _rule("QMS-manage-10", "A job of another type than was asked for was handed out")
BARRED: Final = {
    JobControlFlags.NWCF_ENTRY_OPEN: _rule("QMS-manage-11", "A job with NWCF_ENTRY_OPEN was handed out"),
    JobControlFlags.NWCF_USER_HOLD: _rule("QMS-manage-12", "A job with NWCF_USER_HOLD was handed out"),
    JobControlFlags.NWCF_OPERATOR_HOLD: _rule(
        "QMS-manage-13", "A job with NWCF_OPERATOR_HOLD was handed out"
    ),
}
NEW_POSITION: Final = _rule("QMS-ext-07", "A new position is not 1 to 250", "SHOULD")
LIMITS: Final = _rule(
    "QMS-ext-08", "More than 250 jobs or 25 queue servers, or a job number beyond 1 to 999", "SHOULD"
)
LISTED: Final = _rule("QMS-monitor-20", "A list has a job twice, or more jobs than the queue")
QUEUE_TYPE: Final = _rule("QMS-qobject-05", "A queue is created without its type")
PATH: Final = _rule("QMS-qdir-04", "A queue is created without a path")
LONG_PATH: Final = _rule("QMS-qdir-09", "A path has more than 127 characters")
PROPERTY_NAME: Final = _rule("QMS-qprops-02", "The name of a property of a queue is misspelled")
ITEM: Final = _rule("QMS-qdir-10", "Q_DIRECTORY is a set instead of an item")
SETS: Final = _rule("QMS-createq-06", "A property of a queue is an item instead of a set")
TRAILING: Final = listed("ATTACK-NCP-TRAILING", "Bytes follow the data of a call", "", NCP, "ATTACK")

_STRUCTURE_AT: Final = 9
"""The first byte that the length word of a request counts. Zeros after that are padding."""
_DEFINED: Final = sum(JobControlFlags)
_JOB: Final = "Job"
_LOW_HALF: Final = 0xFFFF
_QUEUE_TYPES: Final = frozenset(
    {ObjectType.NWOT_PRINT_QUEUE, ObjectType.NWOT_ARCHIVE_QUEUE, ObjectType.NWOT_JOB_QUEUE}
)
_MISPRINTS: Final = frozenset({"Q_DIRECTOR", "Q_USER", "Q_SERVER", "Q_OPERATOR"})
_SET_NAMES: Final = frozenset({"Q_SERVERS", "Q_OPERATORS", "Q_USERS"})
CREATES: Final = frozenset({"CreateQueueJobAndFile", "CreateQueueJobAndFileOld"})
SERVICES: Final = frozenset({"ServiceQueueJob", "ServiceQueueJobOld", "ServiceQueueJobByFormList"})
READS: Final = frozenset({"ReadQueueJobEntry", "ReadQueueJobEntryOld"})


def lint_ncp(packet: NcpPacket) -> list[Finding]:
    """Return the findings about a packet by itself, about a reply by the request that it answers."""
    problems = list(_problems(packet))
    return findings_of(packet, problems) if problems else []


def findings_of(packet: NcpPacket, problems: Iterable[Problem]) -> list[Finding]:
    """Return the findings of problems of a packet, in the order of its bytes."""
    offsets, at = dict[str, int](), packet.start
    for structure in _structures(packet):
        for field in layout(structure):
            offsets[field.path] = at + field.offset
        at += len(structure.to_bytes())
    prefix = "" if packet.data is None else f"{packet.data.schema.name}."
    found = []
    for check, path, why in problems:
        for full in (f"{prefix}{path}", path):
            places = [place for name, place in offsets.items() if f"{name}.".startswith(f"{full}.")]
            if places:
                found.append(check.at(full, places[0], why))
                break
        else:
            found.append(check.at(path, at, why))  # after the data
    return sorted(found, key=lambda finding: finding.offset)


def _structures(packet: NcpPacket) -> list[Record]:
    """Return the structures of a packet after its preamble, in their order."""
    inner = packet.packet
    if isinstance(inner, Record):
        return [inner]
    subfunction = inner.subfunction if isinstance(inner, NcpRequest) else None
    return [part for part in (inner.header, subfunction, inner.data) if part is not None]


def _problems(packet: NcpPacket) -> Iterator[Problem]:
    inner, data = packet.packet, packet.data
    if isinstance(inner, Record):
        if any(inner.TrailingData):
            yield TRAILING, "NcpWatchdog.TrailingData", counted(len(inner.TrailingData), "byte")
        return
    trailing = inner.trailing
    if isinstance(inner, NcpRequest) and inner.subfunction is not None:
        announced, there = inner.subfunction.StructureLength, len(inner.to_bytes()) - _STRUCTURE_AT
        padding = trailing[max(0, len(trailing) - max(0, there - announced)) :]
        if there - announced != len(padding) or any(padding):
            yield (
                LENGTH,
                "NcpSubfunctionHeader.StructureLength",
                f"{announced}, but {counted(there, 'byte', 'follow')}",
            )
        trailing = trailing[: len(trailing) - len(padding)]
    if inner.call is None:
        return
    if (any(trailing) and not packet.is_busy) if isinstance(inner, NcpReply) else trailing:
        yield TRAILING, "TrailingData", counted(len(trailing), "byte")
    if data is None:
        return
    name, job = inner.call.name, data.get(_JOB)
    if job is not None:
        yield from _job(job, inner.readings, filled=isinstance(inner, NcpReply))
    if isinstance(inner, NcpRequest):
        if name in _REQUESTS:
            yield from _REQUESTS[name](data)
        if data.get("PropertyName") is not None:
            yield from _property(data)
        return
    if name in _REPLIES:
        yield from _REPLIES[name](data, inner.readings)
    asked = None if packet.request is None else packet.request.data
    if job is not None and asked is not None:
        if name in CREATES:
            yield from _created(job, asked)
        elif name in SERVICES:
            yield from _served(job, asked)
        elif name in READS:
            yield from _read(job, asked)


def swapped(value: int, size: int) -> int:
    """Return a number of `size` bytes in the other byte order."""
    return int.from_bytes(value.to_bytes(size, "little"), "big")


def other_number(value: int, readings: Readings) -> tuple[int, JobNumberForm] | None:
    """Return a JobNumber of four bytes that can't be one in a form in which it can; None if there is none."""
    if 1 <= value <= JOB_NUMBER_MAX:
        return None
    little = _reform(value, readings.job_number)
    for form in get_args(JobNumberForm):
        if 1 <= _reform(little, form) <= JOB_NUMBER_MAX:
            return _reform(little, form), form
    return None


def _reform(value: int, form: JobNumberForm) -> int:
    """Return a little-endian JobNumber in another form; and the reverse."""
    if form == "high-low":
        return value & ~_LOW_HALF | swapped(value & _LOW_HALF, 2)
    return swapped(value, 4) if form == "big" else value


def is_number(value: int, readings: Readings | None) -> bool:
    """Return whether a job may have this number; with a readings, in whatever order its four bytes are."""
    return 1 <= value <= JOB_NUMBER_MAX or (
        readings is not None and other_number(value, readings) is not None
    )


# -- jobs ---------------------------------------------------------------------------------------------------


def _job(job: Record, readings: Readings, *, filled: bool) -> Iterator[Problem]:
    """Judge a structure; `filled` if it is one of QMS, which has filled its part."""
    flags = int(job.jobControlFlags)
    if undefined := flags & ~_DEFINED:
        yield FLAGS, f"{_JOB}.jobControlFlags", f"{undefined:#x} set"
    yield from _time(job, "targetExecutionTime", may_be_none=True)
    if job.jobType == ANY_JOB_TYPE:
        yield JOB_TYPE, f"{_JOB}.jobType", "0xffff"
    description = job.get("jobDescription")
    if isinstance(description, bytes) and b"\0" not in description:
        yield DESCRIPTION, f"{_JOB}.jobDescription", "no NUL in 50 bytes"
    elif description is not None and not _text(description).isascii():
        yield DESCRIPTION, f"{_JOB}.jobDescription", "characters that are not ASCII"
    if not filled:
        return
    yield from _time(job, "jobEntryTime", may_be_none=False)
    if not job.jobPosition:
        yield POSITION, f"{_JOB}.jobPosition", "0"
    elif job.jobPosition > JOBS_MAX:
        yield LIMITS, f"{_JOB}.jobPosition", f"{job.jobPosition} is above {JOBS_MAX}"
    if not is_number(job.jobNumber, None if job.schema in (OLD_JOB, OLD_JOB_HEAD) else readings):
        yield LIMITS, f"{_JOB}.jobNumber", f"{job.jobNumber} is not in 1..{JOB_NUMBER_MAX}"
    if flags & JobControlFlags.NWCF_ENTRY_OPEN and job.servicingServerIDNumber:
        text = f"{job.servicingServerIDNumber:#010x} with NWCF_ENTRY_OPEN"
        yield IDLE, f"{_JOB}.servicingServerIDNumber", text


def _text(description: str | bytes) -> bytes | str:
    return description if isinstance(description, str) else description.partition(b"\0")[0]


def _time(job: Record, name: str, *, may_be_none: bool) -> Iterator[Problem]:
    time = job[name]
    for part in [] if may_be_none and is_none(time) else out_of_range(time):
        least, most = RANGES[part]
        yield TIME, f"{_JOB}.{name}.{part}", f"{time[part]} is not in {least}..{most}"


def _created(job: Record, asked: Record) -> Iterator[Problem]:
    if not job.jobControlFlags.NWCF_ENTRY_OPEN:
        yield OPENED, f"{_JOB}.jobControlFlags", "NWCF_ENTRY_OPEN is clear"
        if job.servicingServerIDNumber:
            yield IDLE, f"{_JOB}.servicingServerIDNumber", f"{job.servicingServerIDNumber:#010x}"
    for name in ("jobType", "targetServerID", "targetExecutionTime"):
        given = asked[_JOB][name]
        if job[name] != given:
            text = (
                "another time" if isinstance(given, Record) else f"{job[name]:#x}, and {given:#x} was given"
            )
            yield FILLED, f"{_JOB}.{name}", text


def _served(job: Record, asked: Record) -> Iterator[Problem]:
    if not job.servicingServerIDNumber:
        yield SERVED, f"{_JOB}.servicingServerIDNumber", "0"
    elif job.targetServerID not in (ANY_SERVER, job.servicingServerIDNumber):
        text = f"{job.targetServerID:#010x}, but {job.servicingServerIDNumber:#010x} has the job"
        yield TARGET, f"{_JOB}.targetServerID", text
    for flag, check in BARRED.items():
        if int(job.jobControlFlags) & flag:
            yield check, f"{_JOB}.jobControlFlags", f"{flag.name} is set"
    wanted = [form.Form for form in asked.get("Forms") or ()] or [asked.get("ServiceType")]
    in_other_order = len(wanted) == 1 and wanted[0] is not None and swapped(wanted[0], 2) == job.jobType
    if not in_other_order and not {job.jobType, ANY_JOB_TYPE, None}.intersection(wanted):
        text = f"{job.jobType}, and {', '.join(map(str, wanted[:8]))} was asked for"
        yield WRONG_TYPE, f"{_JOB}.jobType", text


def _read(job: Record, asked: Record) -> Iterator[Problem]:
    if job.jobNumber != asked.JobNumber:
        yield SAME_NUMBER, f"{_JOB}.jobNumber", f"{job.jobNumber}, and {asked.JobNumber} was asked for"


# -- other data ---------------------------------------------------------------------------------------------


def _new_position(data: Record) -> Iterator[Problem]:
    name = "NewPosition" if data.get("NewPosition") is not None else "Priority"
    if not 1 <= data[name] <= JOBS_MAX:
        yield NEW_POSITION, name, f"{data[name]} is not in 1..{JOBS_MAX}"


def _create_queue(data: Record) -> Iterator[Problem]:
    if data.QueueType in (0, ObjectType.NWOT_WILD):
        yield QUEUE_TYPE, "QueueType", f"{data.QueueType:#06x}"
    if not data.PathLength and not data.DirectoryHandle:
        yield PATH, "PathLength", "neither a path nor a handle of a directory"
    elif data.PathLength >= SEGMENT_SIZE:
        yield LONG_PATH, "PathLength", counted(data.PathLength, "character")


def _property(data: Record) -> Iterator[Problem]:
    if data.ObjectType not in _QUEUE_TYPES:
        return
    name = str(data.PropertyName).upper()
    if name in _MISPRINTS:
        yield PROPERTY_NAME, "PropertyName", name
    flags = data.get("PropertyFlags")
    if flags is None:
        return
    if name == "Q_DIRECTORY" and flags & PropertyFlags.BF_SET:
        yield ITEM, "PropertyFlags", f"{flags:#04x}, a set"
    elif name in _SET_NAMES and not flags & PropertyFlags.BF_SET:
        yield SETS, "PropertyFlags", f"{flags:#04x}, an item"


def _status(data: Record, _: Readings) -> Iterator[Problem]:
    if data.JobCount > JOBS_MAX:
        yield LIMITS, "JobCount", f"{data.JobCount} is above {JOBS_MAX}"
    if data.ServerCount > QUEUE_SERVERS_MAX:
        yield LIMITS, "ServerCount", f"{data.ServerCount} is above {QUEUE_SERVERS_MAX}"


def _list(data: Record, readings: Readings) -> Iterator[Problem]:
    total = data.get("TotalJobs")
    numbers = [job.JobNumber for job in data.JobNumbers]
    if (data.JobCount if total is None else total) > JOBS_MAX:
        name = "JobCount" if total is None else "TotalJobs"
        yield LIMITS, name, f"{data[name]} is above {JOBS_MAX}"
    if total is not None and data.JobCount > JOB_LIST_MAX:
        yield LIMITS, "JobCount", f"{data.JobCount} is above {JOB_LIST_MAX}"
    if total is not None and data.JobCount > total:
        yield LISTED, "JobCount", f"{data.JobCount} of {counted(total, 'job')}"
    seen: set[int] = set()
    for i, number in enumerate(numbers):
        if number in seen:
            yield LISTED, f"JobNumbers[{i}].JobNumber", f"{number} twice"
            break
        seen.add(number)
    for i, number in enumerate(numbers):
        if not is_number(number, None if total is None else readings):
            yield LIMITS, f"JobNumbers[{i}].JobNumber", f"{number} is not in 1..{JOB_NUMBER_MAX}"
            break


_REQUESTS: Final[dict[str, Callable[[Record], Iterator[Problem]]]] = {
    "CreateQueue": _create_queue,
    "ChangeQueueJobPosition": _new_position,
    "ChangeJobPriority": _new_position,
}
_REPLIES: Final[dict[str, Callable[[Record, Readings], Iterator[Problem]]]] = {
    "ReadQueueCurrentStatus": _status,
    "ReadQueueCurrentStatusOld": _status,
    "GetQueueJobList": _list,
    "GetQueueJobListOld": _list,
    "GetQueueJobsFromFormList": _list,
}
