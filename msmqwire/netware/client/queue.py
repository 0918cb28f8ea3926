"""A queue of a file server, for its users, operators and queue servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket, NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import (
    ANY_JOB_TYPE,
    ANY_SERVER,
    AT_ONCE,
    QUEUE_RECORD_SIZE,
    SERVER_STATUS_SIZE,
    CompletionCode,
    JobControlFlags,
    QueueStatus,
)
from msmqwire.ncp.type_names import QUEUE_TYPES, type_word
from msmqwire.netware.client.connection import NcpConnection
from msmqwire.netware.client.job import JobEntry, description_bytes, entry_of, id_text, request_fields
from msmqwire.netware.client.servicing import ServicedJob, serviced_job
from msmqwire.netware.client.submitting import OpenJob, open_job
from msmqwire.netware.model import times
from msmqwire.netware.model.job import JobRequest

LISTED_MAX: Final = 8190
"""Limit of jobs in a list from a server; with NetWare's own tools a queue has at most 250."""
_NO_TYPE: Final = 0  # QMS-jobfields-30
_POSITION_MAX: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class QueueReport:
    """The status of a queue.

    Attributes:
        status: the services that its operators have stopped.
        jobs: the number of jobs in the queue.
        servers: object ID and station of the attached queue servers.
    """

    status: QueueStatus
    jobs: int
    servers: tuple[tuple[int, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the status in the form that commands print."""
        return {
            "queue_status": [flag.name for flag in QueueStatus if self.status & flag],
            "jobs": self.jobs,
            "servers": [{"id": id_text(server), "station": station} for server, station in self.servers],
        }


class Queue:
    """A queue. All calls raise NcpRefused, MalformedPacket and Unreachable.

    Attributes:
        name, type, id: name, type and ID of its bindery object.
    """

    def __init__(
        self, connection: NcpConnection, name: str, type_: int, id_: int, own_id: int, attached: set[int]
    ) -> None:
        """`own_id` is the object that the client is logged in as, `attached` the queues it is attached to."""
        self._connection, self._own_id, self._attached = connection, own_id, attached
        self.name, self.type, self.id = name, type_, id_

    def __repr__(self) -> str:
        return f"<Queue {self.name} {type_word(self.type, QUEUE_TYPES)} {id_text(self.id)}>"

    # -- the queue ----------------------------------------------------------------------------------------

    async def status(self) -> QueueReport:
        """Return the status of the queue, for its users, operators and queue servers."""
        reply = await self._connection.call("ReadQueueCurrentStatus", QueueID=self.id)
        stations = (station.ServerStation for station in reply.ServerStations)
        servers = zip((server.ServerID for server in reply.ServerIDs), stations, strict=True)
        defined = QueueStatus(int(reply.QueueStatus) & sum(QueueStatus))
        return QueueReport(defined, reply.JobCount, tuple(servers))

    async def set_status(self, status: QueueStatus) -> None:
        """Stop the services in `status`, and resume the others; for operators."""
        await self._connection.call("SetQueueCurrentStatus", QueueID=self.id, QueueStatus=int(status))

    async def server_status(self, server_id: int, station: int) -> bytes:
        """Return the 64 bytes of status that an attached queue server has set, for users and operators."""
        reply = await self._connection.call(
            "ReadQueueServerCurrentStatus", QueueID=self.id, ServerID=server_id, ServerStation=station
        )
        return bytes(reply.ServerStatusRecord)

    # -- jobs ---------------------------------------------------------------------------------------------

    async def numbers(self) -> list[int]:
        """Return the numbers of all jobs in the order of the queue.

        A long list takes several requests; jobs that come and go meanwhile may be missing.
        """
        numbers: dict[int, None] = {}
        listed, total = 0, 1
        while listed < total:
            reply = await self._connection.call("GetQueueJobList", QueueID=self.id, StartPosition=listed + 1)
            if not reply.JobNumbers:
                break
            listed, total = listed + len(reply.JobNumbers), reply.TotalJobs
            if listed > LISTED_MAX:
                raise MalformedPacket(f"a list of more than {LISTED_MAX:,} jobs", path="NcpJobList.TotalJobs")
            numbers.update((item.JobNumber, None) for item in reply.JobNumbers)
        return list(numbers)

    async def job(self, number: int) -> JobEntry:
        """Return a job. Raises NcpRefused ERR_NO_Q_JOB if there is none of this number."""
        reply = await self._connection.call("ReadQueueJobEntry", QueueID=self.id, JobNumber=number)
        return entry_of(reply.Job)

    async def file_size(self, number: int) -> int:
        """Return the number of bytes that the client of a job has written."""
        reply = await self._connection.call("GetQueueJobFileSize", QueueID=self.id, JobNumber=number)
        return int(reply.FileSize)

    async def jobs(self) -> AsyncIterator[JobEntry]:
        """Return the jobs in the order of the queue, without jobs that leave it meanwhile."""
        for number in await self.numbers():
            try:
                entry = await self.job(number)
            except NcpRefused as exc:
                if exc.code != CompletionCode.ERR_NO_Q_JOB:
                    raise
            else:
                yield entry

    def new_job(
        self,
        *,
        description: str = "",
        job_type: int = _NO_TYPE,
        hold: bool = False,
        auto_start: bool = False,
        restart: bool = False,
        target_server_id: int = ANY_SERVER,
        at: datetime | None = None,
        queue_record: bytes = b"",
    ) -> AbstractAsyncContextManager[OpenJob]:
        """Create a job whose file is written in an ``async with`` block.

        It is started when the block ends, and removed if an exception leaves the block.

        Args:
            description: at most 49 characters of code page 437.
            job_type: 0 to 65,534, the type that queue servers ask for.
            hold: it is not serviced until it is released.
            auto_start: it is started if the connection breaks before that; otherwise it is removed.
            restart: it stays in the queue if its service fails; otherwise it is removed.
            target_server_id: the queue server that may service it.
            at: the earliest time of its service; a time without a zone is by the file server's clock.
            queue_record: at most 152 bytes for the queue server.

        Raises InvalidValue.
        """
        flags = (
            JobControlFlags.NWCF_USER_HOLD * hold
            | JobControlFlags.NWCF_SERVICE_AUTO_START * auto_start
            | JobControlFlags.NWCF_SERVICE_RESTART * restart
        )
        request = JobRequest(
            target_server_id=target_server_id,
            target_execution_time=_time_bytes(at),
            job_type=_checked_type(job_type),
            job_control_flags=flags,
            job_description=description_bytes(description),
            queue_record=_record_bytes(queue_record),  # QMS-submit-03
        )
        return open_job(self._connection, self.id, request)

    async def submit(self, data: bytes | Iterable[bytes] = b"", /, **options: Any) -> OpenJob:
        """Submit a job with these bytes, or the parts of them; for `options` see `new_job`.

        It is started when this returns, and removed if an error is raised. After Unreachable it is unknown
        whether the lost server has started it.
        """
        async with self.new_job(**options) as job:
            for part in (data,) if isinstance(data, bytes) else data:
                await job.write(part)
        return job

    # -- control ------------------------------------------------------------------------------------------

    async def remove(self, number: int) -> None:
        """Remove a job; for its owner and operators. A service of it is aborted."""
        await self._connection.call("RemoveJobFromQueue", QueueID=self.id, JobNumber=number)

    async def hold(self, number: int, *, by_operator: bool | None = None) -> JobEntry:
        """Hold a job: it advances in the queue and is not serviced. Return the changed job.

        Args:
            by_operator: whether the operator's hold is set; otherwise the user's. By default it is the
                user's if the client is the owner of the job.
        """
        entry = await self.job(number)
        flags = entry.job_control_flags | self._hold(entry, by_operator)
        return await self._changed(entry, job_control_flags=flags)

    async def release(self, number: int, *, by_operator: bool | None = None) -> JobEntry:
        """Clear the hold that `hold` sets. A job with the other hold remains held."""
        entry = await self.job(number)
        flags = entry.job_control_flags & ~self._hold(entry, by_operator)
        return await self._changed(entry, job_control_flags=flags)

    async def set_position(self, number: int, position: int) -> None:
        """Give a job another place in the queue; for operators. 1 is the head, beyond the end is last."""
        if not 1 <= position <= _POSITION_MAX:
            raise InvalidValue(f"{position} is not a position: the head is 1", path="position")
        await self._connection.call("ChangeJobPriority", QueueID=self.id, JobNumber=number, Priority=position)

    async def move(self, number: int, to: Queue) -> int:
        """Move a job to another queue, for operators of both; return its number there."""
        reply = await self._connection.call(
            "MoveQueueJobFromSrcQToDstQ", QueueID=self.id, JobNumber=number, DestinationQueueID=to.id
        )
        return int(reply.JobNumber)

    async def change(self, number: int, /, **changes: Any) -> JobEntry:
        """Change a job that is not in service, for its owner, operators and queue servers.

        Args:
            changes: arguments of `new_job`; other fields are kept. Two clients that change a job at the same
                time may undo each other's changes: the protocol replaces all fields.

        Returns the changed job.
        """
        entry = await self.job(number)
        fields: dict[str, Any] = {}
        flags = entry.job_control_flags
        for name, value in changes.items():
            if name in _FLAGS:
                flags = flags | _FLAGS[name] if value else flags & ~_FLAGS[name]
            elif name in _CHANGES:
                field, converted = _CHANGES[name]
                fields[field] = converted(value)
            else:
                raise InvalidValue("not a field that can be changed", path=name)
        return await self._changed(entry, job_control_flags=flags, **fields)

    def _hold(self, entry: JobEntry, by_operator: bool | None) -> int:
        if by_operator is None:
            by_operator = entry.client_id != self._own_id
        return JobControlFlags.NWCF_OPERATOR_HOLD if by_operator else JobControlFlags.NWCF_USER_HOLD

    async def _changed(self, entry: JobEntry, **fields: Any) -> JobEntry:
        request = replace(
            JobRequest(
                target_server_id=entry.target_server_id,
                target_execution_time=entry.target_execution_time,
                job_type=entry.job_type,
                job_control_flags=entry.job_control_flags,
                job_description=entry.job_description,
                queue_record=entry.queue_record,
                job_position=entry.job_position,
            ),
            **fields,
        )
        job = request_fields(request, entry.job_number)  # QMS-jobfields-27
        await self._connection.call("ChangeQueueJobEntry", QueueID=self.id, Job=job)
        return await self.job(entry.job_number)

    # -- service ------------------------------------------------------------------------------------------

    async def attach(self) -> None:
        """Attach the client to the queue as a queue server; for members of Q_SERVERS. Does nothing if it is
        attached.
        """
        if self.id not in self._attached:
            await self._connection.call("AttachQueueServerToQueue", QueueID=self.id)  # QMS-using-01
            self._attached.add(self.id)

    async def detach(self) -> None:
        """Detach the client; it gets no more jobs. Does nothing if it is not attached."""
        if self.id in self._attached:
            self._attached.remove(self.id)
            await self._connection.call("DetachQueueServerFromQueue", QueueID=self.id)

    async def set_server_status(self, record: bytes) -> None:
        """Set the status of an attached queue server: at most 64 bytes that users and operators can read."""
        if len(record) > SERVER_STATUS_SIZE:
            raise InvalidValue(
                f"{counted(len(record), 'byte')}, at most {SERVER_STATUS_SIZE:,}", path="record"
            )
        await self._connection.call(
            "SetQueueServerCurrentStatus",
            QueueID=self.id,
            ServerStatusRecord=record.ljust(SERVER_STATUS_SIZE, b"\0"),
        )

    @asynccontextmanager
    async def service(self, job_type: int = ANY_JOB_TYPE, *, wait: float = 0.0) -> AsyncIterator[ServicedJob]:
        """Take the first job that this queue server may have, for an ``async with`` block.

        The job is finished when the block ends, and aborted if an exception leaves the block. The queue
        server is attached if it was not, and remains so.

        Args:
            job_type: the type of the job, or 0xFFFF for any.
            wait: seconds to wait for a job.

        Raises NcpRefused, with ERR_NO_Q_JOB if none has come, MalformedPacket and Unreachable.
        """
        await self.attach()
        async with serviced_job(self._connection, self.id, job_type, wait) as job:
            yield job


def _time_bytes(at: datetime | None) -> bytes:
    """Return targetExecutionTime. Raises InvalidValue."""
    if at is None:
        return AT_ONCE
    return times.to_bytes(at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def _checked_type(job_type: int) -> int:
    """Raises InvalidValue for -1, which a request for service takes as any type: QMS-jobfields-29."""
    if not 0 <= job_type < ANY_JOB_TYPE:
        raise InvalidValue(f"{job_type} is not in 0..{ANY_JOB_TYPE - 1}", path="job_type")
    return job_type


def _record_bytes(record: bytes) -> bytes:
    if len(record) > QUEUE_RECORD_SIZE:
        raise InvalidValue(
            f"{counted(len(record), 'byte')}, at most {QUEUE_RECORD_SIZE:,}", path="queue_record"
        )
    return record.ljust(QUEUE_RECORD_SIZE, b"\0")


_FLAGS: Final = {
    "hold": JobControlFlags.NWCF_USER_HOLD,
    "auto_start": JobControlFlags.NWCF_SERVICE_AUTO_START,
    "restart": JobControlFlags.NWCF_SERVICE_RESTART,
}
_CHANGES: Final[dict[str, tuple[str, Any]]] = {
    "description": ("job_description", description_bytes),
    "job_type": ("job_type", _checked_type),
    "target_server_id": ("target_server_id", int),
    "at": ("target_execution_time", _time_bytes),
    "queue_record": ("queue_record", _record_bytes),
}
