"""NWQueueJobStruct_t in its two forms, and the conversion between them.

The old form has 256 bytes: it heads job files, and servers before NetWare 3.11 send it. The newer one has
280: wider numbers, and three fields at its front. Field names are those of the chapter's Table 25.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.ncp.constants import (
    ANY_SERVER,
    JOB_DESCRIPTION_SIZE,
    JOB_TIME_SIZE,
    QUEUE_RECORD_SIZE,
)
from msmqwire.schema import Bits, Header, Part, Record, bit, flags, oem_text, raw, reserved, sub, uint
from msmqwire.schema.texts import OEM_CODE_PAGE

_SECTION: Final = "NWQueueJobStruct_t Structure"
_FILE_NAME_SIZE: Final = 14
_FIRST_CHARACTER: Final = 0x20

QUEUE_JOB_TIME: Final = Header(
    "NWQueueJobTime",
    "NWQueueJobStruct_t Fields",
    (
        uint(
            8,
            "Year",
            "0 to 99, 90 for 1990; 80 to 99 are read as the 1900s, 0 to 79 as the 2000s.",
            default=255,
        ),
        uint(8, "Month", "1 to 12.", default=255),
        uint(8, "Day", "1 to 31.", default=255),
        uint(8, "Hour", "0 to 24.", default=255),
        uint(8, "Minute", "0 to 59.", default=255),
        uint(8, "Second", "0 to 59.", default=255),
    ),
    "A time of the file server. As targetExecutionTime, six bytes of 0xFF mean the first opportunity.",
    size=JOB_TIME_SIZE,
    req=("QMS-jobfields-24",),
)

_FLAGS: Final[tuple[Bits | tuple[Bits, ...], ...]] = (
    reserved("X0 X1 X2", 0, req="QMS-flags-11"),
    bit("NWCF_SERVICE_AUTO_START", 3, "Enter the job if the connection breaks.", req="QMS-flags-01"),
    bit("NWCF_SERVICE_RESTART", 4, "Keep the job if its service fails.", req="QMS-flags-04"),
    bit("NWCF_ENTRY_OPEN", 5, "The client has not released the job yet.", req="QMS-flags-06"),
    bit("NWCF_USER_HOLD", 6, "The job is not serviced.", req="QMS-flags-07"),
    bit("NWCF_OPERATOR_HOLD", 7, "The job is not serviced.", req="QMS-flags-08"),
)


def _object(name: str, meaning: str, req: str, default: int = 0) -> Part:
    return uint(32, name, meaning, req=req, default=default, big_endian=True)


def _head(
    short: int, number: Part, handle: int, numbers: Iterable[Part], file_flags: Part
) -> tuple[Part, ...]:
    """The fields before jobDescription; `short` is the width in bits of stations and tasks."""
    position = 8 if short == 8 else 16
    return (
        *numbers,
        uint(short, "clientStation", "The station that has submitted the job.", req="QMS-jobfields-02"),
        uint(short, "clientTask", "The task of that station.", req="QMS-jobfields-03"),
        _object("clientID", "The object that has submitted the job.", "QMS-jobfields-04"),
        _object(
            "targetServerID", "The queue server asked for; 0xFFFFFFFF: any.", "QMS-jobfields-05", ANY_SERVER
        ),
        sub(
            QUEUE_JOB_TIME,
            "targetExecutionTime",
            meaning="The earliest time of service.",
            req="QMS-jobfields-06",
        ),
        sub(
            QUEUE_JOB_TIME,
            "jobEntryTime",
            meaning="When the job was placed in the queue.",
            req="QMS-jobfields-07",
        ),
        number,
        uint(
            16,
            "jobType",
            "The kind of job, defined by applications.",
            req="QMS-jobfields-09",
            big_endian=True,
        ),
        uint(position, "jobPosition", "The place in the queue; 1 is its head.", req="QMS-jobfields-10"),
        file_flags,
        oem_text(
            "jobFileName",
            _FILE_NAME_SIZE,
            "The name of the job's file.",
            req="QMS-jobfields-12",
            counted=True,
        ),
        raw("jobFileHandle", handle, "The handle of that file.", req="QMS-jobfields-13"),
        uint(
            short,
            "servicingServerStation",
            "Undefined while the job is not serviced.",
            req="QMS-jobfields-14",
        ),
        uint(
            short,
            "servicingServerTaskNumber",
            "Undefined while the job is not serviced.",
            req="QMS-jobfields-15",
        ),
        _object("servicingServerIDNumber", "The queue server that has the job; 0: none.", "QMS-jobfields-16"),
    )


_TAIL: Final = (
    oem_text(
        "jobDescription",
        JOB_DESCRIPTION_SIZE,
        "Text for people, at most 49 characters.",
        req="QMS-jobfields-17",
    ),
    raw("queueRecord", QUEUE_RECORD_SIZE, "Data of the client for the queue server.", req="QMS-jobfields-18"),
)
_OLD_HEAD: Final = _head(
    8,
    uint(16, "jobNumber", "The number of the job.", req="QMS-jobfields-08", big_endian=True),
    6,
    (),
    flags(8, "jobControlFlags", *_FLAGS, req="QMS-jobfields-11"),
)
_NEW_HEAD: Final = _head(
    32,
    uint(32, "jobNumber", "The number of the job.", req="QMS-jobfields-08"),
    4,
    (
        uint(16, "RecordInUse", "Sources disagree; written as 0."),
        uint(32, "PreviousRecord"),
        uint(32, "NextRecord", "The number of the next job in the queue; 0 for none."),
    ),
    flags(
        16,
        "jobControlFlags",
        *_FLAGS,
        reserved("X8 X9 X10 X11 X12 X13 X14 X15", 8, req="QMS-flags-11"),
        req="QMS-jobfields-11",
    ),
)

OLD_JOB: Final = Header(
    "NWQueueJobStruct_t",
    _SECTION,
    (*_OLD_HEAD, *_TAIL),
    "A job at the head of its file, and in replies of servers before NetWare 3.11.",
    size=256,
    req=("QMS-jobfields-01", "QMS-files-07"),
)
OLD_JOB_HEAD: Final = Header(
    "NWQueueJobStruct_t",
    _SECTION,
    _OLD_HEAD,
    "A job in replies to its creation and to a request for service: without description and queueRecord.",
    size=54,
    variant="Head",
)
NEW_JOB: Final = Header(
    "NWQueueJobStruct_t",
    _SECTION,
    (*_NEW_HEAD, *_TAIL),
    "A job in replies of servers since NetWare 3.11.",
    size=280,
    variant="New",
)
NEW_JOB_HEAD: Final = Header(
    "NWQueueJobStruct_t",
    _SECTION,
    _NEW_HEAD,
    "The newer form without description and queueRecord.",
    size=78,
    variant="NewHead",
)

_NEW_FORM: Final = {OLD_JOB: NEW_JOB, OLD_JOB_HEAD: NEW_JOB_HEAD}
_OLD_FORM: Final = {new: old for old, new in _NEW_FORM.items()}
_ONLY_NEW: Final = ("RecordInUse", "PreviousRecord", "NextRecord")
_HANDLE_LOW: Final = 2
"""Bytes in front of the four of the newer handle in the older one."""


def to_new(job: Record) -> Record:
    """Return an old structure, or the head of one, in the newer form.

    The last four bytes of the handle are the newer handle; the fields that only the newer form has are 0.
    Raises InvalidValue for a record that is neither.
    """
    schema, fields = _other_form(job, _NEW_FORM), dict(job)
    fields["jobFileHandle"] = job.jobFileHandle[_HANDLE_LOW:]
    fields["jobControlFlags"] = int(job.jobControlFlags)
    return schema.make(fields)  # type: ignore[no-any-return]


def to_old(job: Record) -> Record:
    """Return a newer structure, or the head of one, in the old form; RecordInUse and the like are dropped.

    The handle is that of `file_handle`, or zeros if it was zeros: no file is open. Raises InvalidValue for a
    record that is neither, and for a number that is too large for the old form: stations, tasks, positions
    and flags above 255, jobs above 65,535.
    """
    schema = _other_form(job, _OLD_FORM)
    fields = {name: value for name, value in dict(job).items() if name not in _ONLY_NEW}
    fields["jobControlFlags"] = int(job.jobControlFlags)
    if fields["jobControlFlags"] > 0xFF:
        raise InvalidValue("the old form has 8 flags", path=f"{schema.name}.jobControlFlags")
    handle = job.jobFileHandle
    fields["jobFileHandle"] = file_handle(handle) if any(handle) else bytes(_HANDLE_LOW) + handle
    return schema.make(fields)  # type: ignore[no-any-return]


def _other_form(job: Record, forms: Mapping[Header, Header]) -> Header:
    if job.schema not in forms:
        raise InvalidValue(f"not {' or '.join(form.key for form in forms)}", path=job.schema.key)
    return forms[job.schema]


def job_file_name(job: Record) -> str:
    """Return the name of a job's file from either form of its field.

    Servers send a count and the name, or the name up to a null. A first byte below 0x20 is a count; a count
    that is too large ends with the field.
    """
    name = job.jobFileName
    if isinstance(name, str):
        return name
    counts = name[0] < _FIRST_CHARACTER
    text: bytes = name[1 : 1 + name[0]] if counts else name.partition(b"\0")[0]
    return text.decode(OEM_CODE_PAGE)


def file_handle(handle: bytes) -> bytes:
    """Return the six bytes by which calls on files name a handle of four bytes: the form that clients use.

    The first two are the first two of the handle as a little-endian number, plus 1; servers ignore them.
    """
    low = int.from_bytes(handle[:2], "little")
    return ((low + 1) & 0xFFFF).to_bytes(2, "little") + handle
