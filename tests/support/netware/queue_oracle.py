"""A second implementation of each call of the chapter on queue services, without the rules.

It is slow and keeps everything in plain dictionaries. A call either raises `No` with the codes of all reasons
for the refusal, of which a service may return any one, or changes the oracle and returns the reply.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from msmqwire.netware.model.job import JobRequest
from tests.support.netware.queue_oracle_state import (
    ANY_SERVER,
    ANY_TYPE,
    AT_ONCE,
    BAD_HANDLE,
    BAD_LENGTH,
    CANT_ADD,
    CANT_ATTACH,
    CANT_SERVICE,
    DISK_FULL,
    FAILURE,
    FULL,
    HALTED,
    IN_SERVICE,
    MAX_SERVERS,
    MEMBER_EXISTS,
    NO_CREATE,
    NO_CREATE_OBJECT,
    NO_DELETE_OBJECT,
    NO_HANDLES,
    NO_JOB,
    NO_JOB_RIGHTS,
    NO_MEMBER,
    NO_OBJECT,
    NO_RIGHTS,
    NO_SERVER,
    NO_WRITE,
    NO_WRITE_PROPERTY,
    NOT_SERVER,
    OBJECT_EXISTS,
    OPEN,
    OPERATOR_HOLD,
    OPERATORS,
    OUT_OF_MEMORY,
    SERVERS,
    USER_HOLD,
    USERS,
    Connection,
    Entry,
    No,
    OracleQueue,
    OracleState,
    reasons,
    time_of,
)


class Oracle(OracleState):
    """The calls."""

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
        """NWDeleteObject: jobs and connections of the object stay, but it has no rights any more."""
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
        allowed = 0xFFFF if OPERATORS in self.roles(connection, queue_id) else 0xFFFF & ~OPERATOR_HOLD
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
            "job_control_flags": (request.job_control_flags | OPEN) & allowed,
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
        """The open job whose file this connection alone has: QMS-submit-11.

        It still needs a role at the queue (QMS-bindery-03): a deleted object has none.
        """
        self._queue(queue_id)
        job: Entry | None = None
        with reasons() as codes:
            job = self._check_job(codes, connection, queue_id, number, "owner", USERS, OPERATORS, SERVERS)
            if job is not None and not (
                job["job_control_flags"] & OPEN and job["client_station"] == connection.number
            ):
                codes.add(NO_JOB_RIGHTS)
        assert job is not None
        return job

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
        """Read bytes of a job's file: the number available."""
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
