"""Jobs of clients: from the structures of replies, to the structures of requests, and to JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.ncp.constants import ANY_SERVER, AT_ONCE, JOB_DESCRIPTION_SIZE, JobControlFlags
from msmqwire.ncp.job_structures import QUEUE_JOB_TIME, job_file_name
from msmqwire.netware.model import times
from msmqwire.netware.model.job import Job, JobRequest, JobState
from msmqwire.schema import Record

_CODE_PAGE: Final = "cp437"
_JOB: Final = "NWQueueJobStruct_t"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEntry(Job):
    """A job at the time it was read, with the chapter's fields.

    Attributes:
        current_state: its state at that time. Whether a job waits for its time is judged by the clock of this
            computer, in UTC.
    """

    current_state: JobState

    @property
    def description(self) -> str:
        """The text of jobDescription."""
        return text_of(self.job_description)

    @property
    def execution_time(self) -> datetime | None:
        """The time of targetExecutionTime, by the file server's clock; None for as soon as possible."""
        return None if self.target_execution_time == AT_ONCE else times.from_bytes(self.target_execution_time)

    @property
    def entry_time(self) -> datetime | None:
        """The time of jobEntryTime, by the file server's clock; None if the server has given none."""
        return times.from_bytes(self.job_entry_time) if times.is_time(self.job_entry_time) else None

    @property
    def flags(self) -> list[str]:
        """The names of the defined flags that are set."""
        return [flag.name for flag in JobControlFlags if flag.name and self.job_control_flags & flag]

    def to_json(self) -> dict[str, Any]:
        """Return the fields in the form that commands print; fields without a present meaning are None."""
        serviced = self.in_service
        return {
            "job": self.job_number,
            "job_position": self.job_position,
            "state": self.current_state.value,
            "job_type": self.job_type,
            "job_description": self.description,
            "job_control_flags": self.flags,
            "target_server_id": None
            if self.target_server_id == ANY_SERVER
            else id_text(self.target_server_id),
            "target_execution_time": time_text(self.execution_time),
            "job_entry_time": time_text(self.entry_time),
            "client_station": self.client_station,
            "client_task": self.client_task,
            "client_id": id_text(self.client_id),
            "job_file_name": self.job_file_name,
            # QMS-jobfields-35
            "servicing_server_station": self.servicing_server_station if serviced else None,
            "servicing_server_task_number": self.servicing_server_task_number if serviced else None,
            "servicing_server_id_number": id_text(self.servicing_server_id_number) if serviced else None,
            "queue_record": self.queue_record.hex(),
        }


def entry_of(record: Record, now: datetime | None = None) -> JobEntry:
    """Return the job in a structure of the newer form, or in its head.

    Args:
        record: the structure; with a head, description and queueRecord are empty.
        now: the time in UTC; by default that of this computer.

    Raises:
        MalformedPacket: targetExecutionTime is not a time.
    """
    target = record.targetExecutionTime.to_bytes()
    if not times.is_target_time(target):
        raise MalformedPacket(f"{target.hex()} is not a time", path=f"{_JOB}.targetExecutionTime")
    fields: dict[str, Any] = {
        "client_station": record.clientStation,
        "client_task": record.clientTask,
        "client_id": record.clientID,
        "target_server_id": record.targetServerID,
        "target_execution_time": target,
        "job_entry_time": record.jobEntryTime.to_bytes(),
        "job_number": record.jobNumber,
        "job_type": record.jobType,
        "job_position": record.jobPosition,
        "job_control_flags": int(record.jobControlFlags),
        "job_file_name": job_file_name(record).partition("\0")[0],
        "job_file_handle": int.from_bytes(record.jobFileHandle, "little"),
        "servicing_server_station": record.servicingServerStation,
        "servicing_server_task_number": record.servicingServerTaskNumber,
        "servicing_server_id_number": record.servicingServerIDNumber,
        "job_description": _padded(record.get("jobDescription", ""), JOB_DESCRIPTION_SIZE),
        "queue_record": record.get("queueRecord", b""),  # QMS-submit-03 and QMS-monitor-15
    }
    return JobEntry(**fields, current_state=Job(**fields).state(now or datetime.now(UTC)))


def request_fields(request: JobRequest, number: int = 0) -> dict[str, Any]:
    """Return the fields of the newer structure for a job that is created, or changed by its number."""
    return {  # QMS-jobstruct-01, QMS-manage-01 and QMS-jobfields-19
        "targetServerID": request.target_server_id,
        "targetExecutionTime": QUEUE_JOB_TIME.read(request.target_execution_time)[0],
        "jobNumber": number,
        "jobType": request.job_type,
        "jobPosition": request.job_position,
        "jobControlFlags": request.job_control_flags,
        "jobDescription": request.job_description,
        "queueRecord": request.queue_record,  # QMS-submit-03
    }


def description_bytes(text: str) -> bytes:
    """Return jobDescription with a text. Raises InvalidValue if it is too long."""
    try:
        data = text.encode(_CODE_PAGE)
    except UnicodeEncodeError as exc:
        why = f"{text[exc.start]!r} is not in code page 437"
        raise InvalidValue(why, path="description") from None
    if len(data) >= JOB_DESCRIPTION_SIZE or b"\0" in data:
        why = f"at most {JOB_DESCRIPTION_SIZE - 1} characters, none of them a null"
        raise InvalidValue(why, path="description")
    return data.ljust(JOB_DESCRIPTION_SIZE, b"\0")


def text_of(data: bytes) -> str:
    """Return the text of a field that a null ends: QMS-jobfields-38."""
    return data.partition(b"\0")[0].decode(_CODE_PAGE)


def time_text(time: datetime | None) -> str | None:
    """Return a time of the file server's clock in the form of ISO 8601, without a zone."""
    return None if time is None else time.replace(tzinfo=None).isoformat()


def id_text(number: int) -> str:
    """Return the ID of an object as eight hexadecimal digits."""
    return f"{number:08X}"


def _padded(text: str | bytes, size: int) -> bytes:
    return text if isinstance(text, bytes) else text.encode(_CODE_PAGE).ljust(size, b"\0")
