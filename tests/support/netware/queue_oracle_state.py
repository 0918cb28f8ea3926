"""The state of an oracle of the queue service: identities, queues and jobs, and the ends of jobs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from msmqwire.netware.model.settings import Settings

if TYPE_CHECKING:
    from typing import Self

AUTO_START, RESTART, OPEN, USER_HOLD, OPERATOR_HOLD = 0x08, 0x10, 0x20, 0x40, 0x80
CANT_ADD, CANT_ATTACH, CANT_SERVICE = 0x01, 0x02, 0x04
ANY_SERVER, ANY_TYPE, AT_ONCE = 0xFFFFFFFF, 0xFFFF, b"\xff" * 6
SUPERVISOR_ID = 1

DISK_FULL, BAD_LENGTH, NO_HANDLES, NO_CREATE, BAD_HANDLE, NO_WRITE = 0x01, 0x7E, 0x81, 0x84, 0x88, 0x94
OUT_OF_MEMORY, NO_QUEUE, NO_SERVER, NO_RIGHTS, FULL = 0x96, 0xD1, 0xD2, 0xD3, 0xD4
NO_JOB, NO_JOB_RIGHTS, IN_SERVICE, NOT_SERVER, HALTED, MAX_SERVERS = 0xD5, 0xD6, 0xD7, 0xD9, 0xDA, 0xDB
MEMBER_EXISTS, NO_MEMBER, OBJECT_EXISTS, NO_CREATE_OBJECT, NO_WRITE_PROPERTY = 0xE9, 0xEA, 0xEE, 0xF5, 0xF8
NO_DELETE_OBJECT, NO_OBJECT, FAILURE = 0xF4, 0xFC, 0xFF

USERS, OPERATORS, SERVERS = "Q_USERS", "Q_OPERATORS", "Q_SERVERS"
Entry = dict[str, Any]


class No(Exception):
    """A call is refused. `codes`: those of all the reasons."""

    def __init__(self, codes: set[int]) -> None:
        super().__init__(sorted(map(hex, codes)))
        self.codes = codes


@contextmanager
def reasons() -> Iterator[set[int]]:
    """Collect the codes of reasons for a refusal; raise `No` at the end if there are any."""
    codes: set[int] = set()
    yield codes
    if codes:
        raise No(codes)


@dataclass
class Connection:
    """A service connection: the object logged in, the job whose client's rights it has taken."""

    number: int
    object_id: int | None = None
    assumed: tuple[int, int] | None = None
    task: int = 0
    handles: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    """(queue, job, may write) by handle."""


@dataclass
class OracleQueue:
    """A queue: its three sets, its status, its jobs in their order, and the attached servers."""

    members: dict[str, set[int]]
    status: int = 0
    jobs: list[Entry] = field(default_factory=list)
    servers: dict[int, list[Any]] = field(default_factory=dict)
    """[object, status record] by connection."""
    last_number: int = 0


def time_of(value: bytes) -> datetime | None:
    """The time of six bytes; None if they are none."""
    year, month, day, hour, minute, second = value
    if year > 99 or not 1 <= month <= 12 or not 1 <= day <= 31 or hour > 24 or minute > 59 or second > 59:
        return None
    begin = datetime(year + (1900 if year >= 80 else 2000), month, 1, tzinfo=UTC)
    return begin + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)


class OracleState:
    """A bindery, queues and connections."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.objects: set[int] = {SUPERVISOR_ID}
        self.users_and_groups: set[int] = {SUPERVISOR_ID}
        self.everyone: int | None = None
        self.groups: dict[int, set[int]] = {}
        """The groups of an object."""
        self.equals: dict[int, set[int]] = {}
        self.create_rights: set[int] = set()
        """The trustees of the one directory that has any."""
        self.queues: dict[int, OracleQueue] = {}
        self.connections: dict[int, Connection] = {}

    # identities

    def counts_as(self, object_id: int | None) -> set[int]:
        """An object, its groups and its security equivalents: one step."""
        if object_id is None or object_id not in self.objects:
            return set()
        everyone = set() if self.everyone is None else {self.everyone}
        return {object_id} | self.groups.get(object_id, set()) | self.equals.get(object_id, set()) | everyone

    def effective(self, connection: Connection) -> int | None:
        """The object whose rights a connection has."""
        if connection.assumed is None:
            return connection.object_id
        queue_id, number = connection.assumed
        return int(self.job(queue_id, number)["client_id"])

    def roles(self, connection: Connection, queue_id: int) -> set[str]:
        """The sets of a queue that admit a connection."""
        return {
            name
            for name, members in self.queues[queue_id].members.items()
            if members & self.counts_as(self.effective(connection))
        }

    def is_supervisor(self, connection: Connection) -> bool:
        """Whether a connection is supervisor equivalent."""
        return SUPERVISOR_ID in self.counts_as(self.effective(connection))

    def job(self, queue_id: int, number: int) -> Entry:
        """A job that exists."""
        return next(job for job in self.queues[queue_id].jobs if job["job_number"] == number)

    def exists(self, queue_id: int, number: int) -> bool:
        """Whether there is such a job."""
        return any(job["job_number"] == number for job in self.queues[queue_id].jobs)

    def _queue(self, queue_id: int) -> OracleQueue:
        if queue_id not in self.queues:
            raise No({NO_QUEUE})
        return self.queues[queue_id]

    def _check_queue(self, codes: set[int], connection: Connection, queue_id: int, *allowed: str) -> None:
        if not self.roles(connection, queue_id) & set(allowed):
            codes.add(NO_RIGHTS)

    def _check_job(
        self, codes: set[int], connection: Connection, queue_id: int, number: int, *allowed: str
    ) -> Entry | None:
        """Table 27 for one job; "owner" is the object in clientID."""
        roles = self.roles(connection, queue_id)
        if not self.exists(queue_id, number):
            codes |= {NO_JOB} if roles else {NO_JOB, NO_RIGHTS}
            return None
        job = self.job(queue_id, number)
        is_owner = self.effective(connection) == job["client_id"] and job["client_id"] in self.objects
        if not (roles | ({"owner"} if is_owner else set())) & set(allowed):
            codes |= {NO_JOB_RIGHTS} if roles else {NO_JOB_RIGHTS, NO_RIGHTS}
        return job

    # how jobs end

    def _close_file(self, queue_id: int, job: Entry) -> None:
        """Its handles are dead, and rights that were taken for it end."""
        this = queue_id, job["job_number"]
        for connection in self.connections.values():
            connection.handles = {
                handle: opened for handle, opened in connection.handles.items() if opened[:2] != this
            }
            if connection.assumed == this:
                connection.assumed = None

    def _gone(self, queue_id: int, job: Entry | None) -> None:
        assert job is not None
        self._close_file(queue_id, job)
        self.queues[queue_id].jobs.remove(job)

    def _start(self, queue_id: int, job: Entry) -> None:
        self._close_file(queue_id, job)
        job["job_control_flags"] &= ~OPEN

    def _fail(self, queue_id: int, job: Entry) -> None:
        """The service of a job has failed."""
        if job["job_control_flags"] & RESTART:
            self._close_file(queue_id, job)
            job["server"] = None
        else:
            self._gone(queue_id, job)

    def connection_lost(self, connection: Connection) -> None:
        """A connection is broken, or its object logs out."""
        for queue_id, queue in self.queues.items():
            for job in list(queue.jobs):
                if job["job_control_flags"] & OPEN and job["client_station"] == connection.number:
                    if job["job_control_flags"] & AUTO_START:
                        self._start(queue_id, job)
                    else:
                        self._gone(queue_id, job)
                elif job["server"] is not None and job["server"][1] == connection.number:
                    self._fail(queue_id, job)
            queue.servers.pop(connection.number, None)
        connection.object_id, connection.assumed, connection.handles = None, None, {}

    def restarted(self) -> Self:
        """The state after the file server has been down; it shares the bindery with this one."""
        after = copy.copy(self)
        after.connections = {at: replace(connection) for at, connection in self.connections.items()}
        after.queues = {
            queue_id: replace(queue, jobs=[job.copy() for job in queue.jobs], servers=queue.servers.copy())
            for queue_id, queue in self.queues.items()
        }
        for connection in after.connections.values():
            after.connection_lost(connection)
        return after
