"""What the chapter on queue services says about each call, written down a second time, without the rules.

It is slow and keeps everything in plain dictionaries. A call either raises `No` with the codes of all the
reasons for which it is refused, of which a service may give any one, or changes the oracle and returns what
the caller is told.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from msmqwire.qms.model.job import JobRequest
from msmqwire.qms.model.settings import Settings

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


class Oracle:
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

    # who somebody is

    def counts_as(self, object_id: int | None) -> set[int]:
        """An object, its groups and those that it is security equivalent to: one step."""
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
        if self.effective(connection) == job["client_id"] and job["client_id"] in self.objects:
            roles.add("owner")
        if not roles & set(allowed):
            codes |= {NO_JOB_RIGHTS} if roles else {NO_JOB_RIGHTS, NO_RIGHTS}
        return job

    # the bindery

    def create_queue(self, connection: Connection, *, name_is_taken: bool) -> None:
        """NWCreateQueue; `add_queue` follows when the ID is known."""
        with reasons() as codes:
            if not self.is_supervisor(connection):
                codes.add(NO_CREATE_OBJECT)
            if name_is_taken:
                codes.add(OBJECT_EXISTS)
            if len(self.queues) >= self.settings.queues_max:
                codes.add(OUT_OF_MEMORY)

    def add_queue(self, queue_id: int) -> None:
        """A new queue, with empty sets."""
        assert queue_id not in self.objects
        self.objects.add(queue_id)
        self.queues[queue_id] = OracleQueue({USERS: set(), OPERATORS: set(), SERVERS: set()})

    def destroy_queue(self, connection: Connection, queue_id: int) -> None:
        """NWDestroyQueue."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            if not self.is_supervisor(connection):
                codes.add(NO_RIGHTS)
        for job in list(queue.jobs):
            self._gone(queue_id, job)
        self.objects.discard(queue_id)
        del self.queues[queue_id]

    def add_member(self, connection: Connection, queue_id: int, name: str, member: int) -> None:
        """NWAddObjectToSet on a property of a queue."""
        if queue_id not in self.queues:
            raise No({NO_OBJECT})
        members = self.queues[queue_id].members[name]
        with reasons() as codes:
            if not self.is_supervisor(connection):
                codes.add(NO_WRITE_PROPERTY)
            if member not in self.objects or (name == OPERATORS and member not in self.users_and_groups):
                codes.add(NO_OBJECT)
            if member in members:
                codes.add(MEMBER_EXISTS)
        members.add(member)

    def delete_member(self, connection: Connection, queue_id: int, name: str, member: int) -> None:
        """NWDeleteObjectFromSet on a property of a queue."""
        if queue_id not in self.queues:
            raise No({NO_OBJECT})
        members = self.queues[queue_id].members[name]
        with reasons() as codes:
            if not self.is_supervisor(connection):
                codes.add(NO_WRITE_PROPERTY)
            if member not in members:
                codes.add(NO_MEMBER)
        members.discard(member)

    def join_group(self, connection: Connection, object_id: int, group_id: int) -> None:
        """Make an object a member of a group."""
        self._identify(connection, self.groups.setdefault(object_id, set()), object_id, group_id)

    def make_equivalent(self, connection: Connection, object_id: int, to_id: int) -> None:
        """Make an object security equivalent to another."""
        self._identify(connection, self.equals.setdefault(object_id, set()), object_id, to_id)

    def _identify(self, connection: Connection, more: set[int], object_id: int, to_id: int) -> None:
        with reasons() as codes:
            if not self.is_supervisor(connection):
                codes.add(NO_WRITE_PROPERTY)
            if not {object_id, to_id} <= self.objects:
                codes.add(NO_OBJECT)
            if to_id in more:
                codes.add(MEMBER_EXISTS)
        more.add(to_id)

    def delete_object(self, connection: Connection, object_id: int) -> None:
        """NWDeleteObject: jobs and connections of the object stay, but it is nobody any more."""
        with reasons() as codes:
            if not self.is_supervisor(connection):
                codes.add(NO_DELETE_OBJECT)
            if object_id not in self.objects:
                codes.add(NO_OBJECT)
        self.objects.discard(object_id)
        self.create_rights.discard(object_id)
        memberships = (*self.groups.values(), *self.equals.values())
        for members in (
            *memberships,
            *(names for queue in self.queues.values() for names in queue.members.values()),
        ):
            members.discard(object_id)

    def create_file(self, connection: Connection) -> int | None:
        """Create a file in the directory that has trustees; its owner."""
        with reasons() as codes:
            if not self.is_supervisor(connection) and not (
                self.create_rights & self.counts_as(self.effective(connection))
            ):
                codes.add(NO_CREATE)
            self._check_handles(codes, connection)
        return self.effective(connection)

    def _check_handles(self, codes: set[int], connection: Connection) -> None:
        if len(connection.handles) >= self.settings.handles_max:
            codes.add(NO_HANDLES)

    # the queue

    def read_status(self, connection: Connection, queue_id: int) -> tuple[int, int, set[tuple[int, int]]]:
        """NWReadQueueCurrentStatus: status, jobs, (object, station) of servers."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            self._check_queue(codes, connection, queue_id, USERS, OPERATORS, SERVERS)
        return queue.status, len(queue.jobs), {(record[0], at) for at, record in queue.servers.items()}

    def set_status(self, connection: Connection, queue_id: int, status: int) -> None:
        """NWSetQueueCurrentStatus."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            self._check_queue(codes, connection, queue_id, OPERATORS)
        queue.status = status

    def listed(
        self, connection: Connection, queue_id: int, start: int, types: Collection[int] | None
    ) -> tuple[int, list[int]]:
        """NWGetQueueJobList and the list by forms: how many there are, and a part of them."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            self._check_queue(codes, connection, queue_id, USERS, OPERATORS, SERVERS)
        found = [job["job_number"] for job in queue.jobs if types is None or job["job_type"] in types]
        first = 1 if start in (0, 0xFFFFFFFF) else start
        return len(found), found[first - 1 : first - 1 + self.settings.job_list_max]

    # jobs

    def _next_number(self, queue_id: int) -> int:
        number = self.queues[queue_id].last_number
        while True:
            number = number % 999 + 1
            if not self.exists(queue_id, number):
                return int(number)

    def _check_room(self, codes: set[int], queue: OracleQueue) -> None:
        if queue.status & CANT_ADD:
            codes.add(HALTED)
        if len(queue.jobs) >= self.settings.jobs_max:
            codes.add(FULL)

    def create(self, connection: Connection, queue_id: int, request: JobRequest, now: datetime) -> Entry:
        """NWCreateQueueFile; `opened` follows when the handle is known."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            self._check_queue(codes, connection, queue_id, USERS)
            self._check_room(codes, queue)
            self._check_handles(codes, connection)
            self._check_time(codes, request)
        number = queue.last_number = self._next_number(queue_id)
        year, month, day, hour, minute, second, *_ = now.utctimetuple()
        job: Entry = {
            "client_station": connection.number,
            "client_task": connection.task,
            "client_id": self.effective(connection),
            "target_server_id": request.target_server_id,
            "target_execution_time": request.target_execution_time,
            "job_entry_time": bytes((year % 100, month, day, hour, minute, second)),
            "job_number": number,
            "job_type": request.job_type,
            "job_control_flags": request.job_control_flags | OPEN,
            "job_file_name": f"Q${queue_id & 0xFFFF:04X}.{number:03}",
            "job_description": request.job_description,
            "queue_record": request.queue_record,
            "server": None,
            "size": 0,
        }
        queue.jobs.append(job)
        return job

    def opened(self, connection: Connection, handle: int, queue_id: int, number: int, *, write: bool) -> None:
        """The file of a job has been opened."""
        assert all(handle not in other.handles for other in self.connections.values())
        connection.handles[handle] = queue_id, number, write

    @staticmethod
    def _check_time(codes: set[int], request: JobRequest) -> None:
        if request.target_execution_time != AT_ONCE and time_of(request.target_execution_time) is None:
            codes.add(FAILURE)

    def _creator(self, connection: Connection, queue_id: int, number: int) -> Entry:
        """The open job whose file this connection alone has: QMS-submit-11."""
        self._queue(queue_id)
        if self.exists(queue_id, number):
            job = self.job(queue_id, number)
            if job["job_control_flags"] & OPEN and job["client_station"] == connection.number:
                return job
        with reasons() as codes:
            self._check_job(codes, connection, queue_id, number)
        raise AssertionError("nobody else may")

    def close_and_start(self, connection: Connection, queue_id: int, number: int) -> None:
        """NWCloseFileAndStartQueueJob."""
        self._start(queue_id, self._creator(connection, queue_id, number))

    def close_and_abort(self, connection: Connection, queue_id: int, number: int) -> None:
        """NWCloseFileAndAbortQueueJob."""
        self._gone(queue_id, self._creator(connection, queue_id, number))

    def remove(self, connection: Connection, queue_id: int, number: int) -> None:
        """NWRemoveJobFromQueue."""
        self._queue(queue_id)
        with reasons() as codes:
            job = self._check_job(codes, connection, queue_id, number, "owner", OPERATORS)
        self._gone(queue_id, job)

    def read_entry(self, connection: Connection, queue_id: int, number: int) -> tuple[int, Entry]:
        """NWReadQueueJobEntry and NWGetQueueJobSize: the position and the job."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            job = self._check_job(codes, connection, queue_id, number, USERS, OPERATORS, SERVERS)
        assert job is not None
        return queue.jobs.index(job) + 1, job

    def change_entry(self, connection: Connection, queue_id: int, number: int, request: JobRequest) -> None:
        """NWChangeQueueJobEntry."""
        self._queue(queue_id)
        with reasons() as codes:
            job = self._check_job(codes, connection, queue_id, number, "owner", OPERATORS, SERVERS)
            if job is not None and job["server"] is not None:
                codes.add(IN_SERVICE)
            self._check_time(codes, request)
        assert job is not None
        is_operator = OPERATORS in self.roles(connection, queue_id)
        stored = OPEN if is_operator else OPEN | OPERATOR_HOLD
        job["job_control_flags"] = job["job_control_flags"] & stored | request.job_control_flags & ~stored
        for name in (
            "target_server_id", "target_execution_time", "job_type", "job_description", "queue_record",
        ):  # fmt: skip
            job[name] = getattr(request, name)
        if is_operator and request.job_position:
            self._place(queue_id, job, request.job_position)

    def change_position(self, connection: Connection, queue_id: int, number: int, position: int) -> None:
        """NWChangeQueueJobPosition."""
        self._queue(queue_id)
        with reasons() as codes:
            job = self._check_job(codes, connection, queue_id, number, OPERATORS)
            if position < 1:
                codes.add(FAILURE)
        assert job is not None
        self._place(queue_id, job, position)

    def _place(self, queue_id: int, job: Entry, position: int) -> None:
        jobs = self.queues[queue_id].jobs
        jobs.remove(job)
        jobs.insert(position - 1, job)

    def move(self, connection: Connection, queue_id: int, number: int, to_id: int) -> int:
        """Move a job to another queue: its number there."""
        self._queue(queue_id)
        to = self._queue(to_id)
        with reasons() as codes:
            job = self._check_job(codes, connection, queue_id, number, OPERATORS)
            self._check_queue(codes, connection, to_id, OPERATORS)
            if job is not None and job["server"] is not None:
                codes.add(IN_SERVICE)
            if job is not None and job["job_control_flags"] & OPEN:
                codes.add(NO_JOB_RIGHTS)
            self._check_room(codes, to)
            if queue_id == to_id:
                codes.add(FAILURE)
        assert job is not None
        self.queues[queue_id].jobs.remove(job)
        new = to.last_number = self._next_number(to_id)
        to.jobs.append({**job, "job_number": new, "job_file_name": f"Q${to_id & 0xFFFF:04X}.{new:03}"})
        return new

    # the files of jobs

    def _handle(self, connection: Connection, handle: int) -> tuple[Entry, bool]:
        if handle not in connection.handles:
            raise No({BAD_HANDLE})
        queue_id, number, may_write = connection.handles[handle]
        return self.job(queue_id, number), may_write

    def write(self, connection: Connection, handle: int, offset: int, count: int) -> None:
        """Write bytes to a job's file."""
        job, may_write = self._handle(connection, handle)
        size = max(job["size"], offset + count)
        with reasons() as codes:
            if not may_write:
                codes.add(NO_WRITE)
            grown = self.total_bytes() - job["size"] + size
            if size > self.settings.file_bytes_max or grown > self.settings.files_bytes_max:
                codes.add(DISK_FULL)
        job["size"] = size

    def read(self, connection: Connection, handle: int, offset: int, count: int) -> int:
        """Read bytes of a job's file: how many there are."""
        job, _ = self._handle(connection, handle)
        return max(0, min(count, int(job["size"]) - offset))

    def close(self, connection: Connection, handle: int) -> None:
        """Close a file; the job stays as it is."""
        self._handle(connection, handle)
        del connection.handles[handle]

    def total_bytes(self) -> int:
        """The bytes of all files."""
        return sum(job["size"] for queue in self.queues.values() for job in queue.jobs)

    # servicing

    def _own_role(self, connection: Connection, queue_id: int) -> bool:
        """Whether Q_SERVERS admits the server itself, whatever rights it has taken."""
        return bool(self.queues[queue_id].members[SERVERS] & self.counts_as(connection.object_id))

    def attach(self, connection: Connection, queue_id: int) -> None:
        """NWAttachQueueServerToQueue."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            if not self._own_role(connection, queue_id):
                codes.add(NO_RIGHTS)
            if connection.number not in queue.servers:
                if queue.status & CANT_ATTACH:
                    codes.add(HALTED)
                if len(queue.servers) >= self.settings.servers_max:
                    codes.add(MAX_SERVERS)
        queue.servers.setdefault(connection.number, [connection.object_id, bytes(64)])

    def detach(self, connection: Connection, queue_id: int) -> None:
        """NWDetachQueueServerFromQueue."""
        queue = self._queue(queue_id)
        if connection.number not in queue.servers:
            raise No({NOT_SERVER})
        for job in list(queue.jobs):
            if job["server"] is not None and job["server"][1] == connection.number:
                self._fail(queue_id, job)
        del queue.servers[connection.number]

    def service(
        self, connection: Connection, queue_id: int, types: Collection[int], now: datetime
    ) -> tuple[int, Entry]:
        """NWServiceQueueJob: the position and the job; `opened` follows when the handle is known."""
        queue = self._queue(queue_id)
        fitting = [job for job in queue.jobs if self._fits(job, connection, types, now)]
        with reasons() as codes:
            if connection.number not in queue.servers or not self._own_role(connection, queue_id):
                codes.add(NOT_SERVER)
            if queue.status & CANT_SERVICE:
                codes.add(HALTED)
            if not fitting:
                codes.add(NO_JOB)
            self._check_handles(codes, connection)
        fitting[0]["server"] = connection.object_id, connection.number, connection.task
        return queue.jobs.index(fitting[0]) + 1, fitting[0]

    @staticmethod
    def _fits(job: Entry, connection: Connection, types: Collection[int], now: datetime) -> bool:
        """Step 4 of the chapter."""
        begin = job["target_execution_time"]
        at = None if begin == AT_ONCE else time_of(begin)
        return (
            job["target_server_id"] in (ANY_SERVER, connection.object_id)
            and (at is None or at <= now)
            and job["server"] is None
            and (ANY_TYPE in types or job["job_type"] in types)
            and not job["job_control_flags"] & (OPERATOR_HOLD | USER_HOLD | OPEN)
        )

    def _taken(self, connection: Connection, queue_id: int, number: int) -> Entry:
        """The job that this server has."""
        queue = self._queue(queue_id)
        job: Entry | None = None
        with reasons() as codes:
            if connection.number not in queue.servers:
                codes.add(NOT_SERVER)
            if not self.exists(queue_id, number):
                codes.add(NO_JOB)
            else:
                job = self.job(queue_id, number)
                if job["server"] is None or job["server"][1] != connection.number:
                    codes.add(NO_JOB_RIGHTS)
        assert job is not None
        return job

    def finish(self, connection: Connection, queue_id: int, number: int) -> None:
        """NWFinishServicingQueueJob."""
        self._gone(queue_id, self._taken(connection, queue_id, number))

    def abort(self, connection: Connection, queue_id: int, number: int) -> None:
        """NWAbortServicingQueueJob."""
        self._fail(queue_id, self._taken(connection, queue_id, number))

    def change_to_client_rights(self, connection: Connection, queue_id: int, number: int) -> None:
        """NWChangeToClientRights."""
        job = self._taken(connection, queue_id, number)
        if job["client_id"] not in self.objects:
            raise No({NO_OBJECT})
        connection.assumed = queue_id, number

    def restore_server_rights(self, connection: Connection) -> None:
        """NWRestoreQueueServerRights."""
        if not any(connection.number in queue.servers for queue in self.queues.values()):
            raise No({NOT_SERVER})
        connection.assumed = None

    def read_server_status(
        self, connection: Connection, queue_id: int, server_id: int, station: int
    ) -> bytes:
        """NWReadQueueServerCurrentStatus."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            self._check_queue(codes, connection, queue_id, USERS, OPERATORS)
            if queue.servers.get(station, [None])[0] != server_id:
                codes.add(NO_SERVER)
        return bytes(queue.servers[station][1])

    def set_server_status(self, connection: Connection, queue_id: int, record: bytes) -> None:
        """NWSetQueueServerCurrentStatus."""
        queue = self._queue(queue_id)
        with reasons() as codes:
            if connection.number not in queue.servers:
                codes.add(NOT_SERVER)
            if len(record) != 64:
                codes.add(BAD_LENGTH)
        queue.servers[connection.number][1] = record

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

    def restarted(self) -> Oracle:
        """What it is after the file server has been down; it shares the bindery with this one."""
        after = copy.copy(self)
        after.connections = {at: replace(connection) for at, connection in self.connections.items()}
        after.queues = {
            queue_id: replace(queue, jobs=[job.copy() for job in queue.jobs], servers=queue.servers.copy())
            for queue_id, queue in self.queues.items()
        }
        for connection in after.connections.values():
            after.connection_lost(connection)
        return after
