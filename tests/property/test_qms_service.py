"""The queue service against an oracle: users, operators and servers call what they may and what they may not.

Everything is compared after each step: the answer, the queues, the bytes of files, and the service that is
rebuilt from the rows made so far.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from msmqwire.errors import NcpRefused
from msmqwire.netware.constants import ANY_JOB_TYPE, AT_ONCE, SUPERVISOR_ID, ObjectType, TrusteeRights
from msmqwire.qms.model.caller import Caller
from msmqwire.qms.model.files import FileAccess, JobFile
from msmqwire.qms.model.job import Job, JobRequest
from msmqwire.qms.model.settings import Settings
from msmqwire.qms.rules.service import QueueService
from tests.support.queue_oracle import OPERATORS, SERVERS, USERS, Connection, No, Oracle
from tests.support.queue_rows import QueueRows

SETTINGS: Final = Settings(
    queues_max=3, jobs_max=5, servers_max=2, job_list_max=2, handles_max=3,
    file_bytes_max=100, files_bytes_max=250,
)  # fmt: skip
START: Final = datetime(2026, 3, 1, 12, 0, 30, 500_000, tzinfo=UTC)
NAMES: Final[dict[str, ObjectType]] = {
    "ALICE": ObjectType.NWOT_USER,  # in Q_USERS
    "BOB": ObjectType.NWOT_USER,  # in STAFF, which is in Q_USERS
    "CAROL": ObjectType.NWOT_USER,  # equivalent to ALICE
    "OPER": ObjectType.NWOT_USER,  # in Q_OPERATORS
    "ADMIN": ObjectType.NWOT_USER,  # equivalent to SUPERVISOR
    "MALLORY": ObjectType.NWOT_USER,
    "STAFF": ObjectType.NWOT_GROUP,
    "PS1": ObjectType.NWOT_PRINT_SERVER,  # in Q_SERVERS, as the next
    "PS2": ObjectType.NWOT_JOB_SERVER,
    "SUPERVISOR": ObjectType.NWOT_USER,
}
PEOPLE: Final = (ObjectType.NWOT_USER, ObjectType.NWOT_GROUP)
STATIONS: Final = (
    "ALICE", "ALICE", "BOB", "CAROL", "OPER", "PS1", "PS1", "PS2", "ADMIN", "MALLORY", "SUPERVISOR", None,
)  # fmt: skip
"""Who is logged in at the connections 1, 2, ..."""
WITH_TRUSTEES: Final = "SYS:HOME"
JOB_FIELDS: Final = (
    "client_station", "client_task", "client_id", "target_server_id", "target_execution_time",
    "job_entry_time", "job_number", "job_type", "job_control_flags", "job_file_name", "job_description",
    "queue_record",
)  # fmt: skip

stations = st.integers(1, len(STATIONS))


def mostly(*those: int) -> st.SearchStrategy[int]:
    """Stations, two of three times one of those."""
    drawn = st.tuples(st.integers(0, 2), st.sampled_from(those), stations)
    return drawn.map(lambda found: found[1 + (found[0] == 0)])


users = mostly(1, 1, 2, 3, 4)
servers = mostly(6, 6, 7, 8)
operators = mostly(5)
supervisors = mostly(9, 11)
picks = st.integers(0, 11)
"""One of what there is now; the last ones for something that does not exist."""
flags = st.sampled_from((0, 0, 0, 0, 0, 0, 0x08, 0x10, 0x18, 0x40, 0x80, 0xC0)).flatmap(
    lambda bits: st.sampled_from((0, 0, 0x20, 0x0307)).map(lambda more: bits | more)
)
types = st.sampled_from((0, 0, 7, 9))
asked_types = st.sampled_from(((ANY_JOB_TYPE,), (0,), (7,), (7, 9), ()))
times = st.sampled_from(
    (
        *(AT_ONCE,) * 8,
        bytes((26, 3, 1, 12, 1, 0)), bytes((26, 3, 1, 24, 0, 0)), bytes((99, 12, 31, 24, 59, 59)),
        bytes((26, 13, 1, 0, 0, 0)), bytes((100, 1, 1, 0, 0, 0)), bytes((26, 1, 1, 25, 0, 0)),
    )
)  # fmt: skip
target_servers = st.sampled_from((None, None, None, None, "PS1", "PS2", "MALLORY"))
texts = st.sampled_from((b"", b"a report", b"x" * 49))


def fields(job: Job) -> dict[str, Any]:
    """Return what an oracle says of a job."""
    told = {name: getattr(job, name) for name in JOB_FIELDS}
    server = (
        job.servicing_server_id_number, job.servicing_server_station, job.servicing_server_task_number,
    )  # fmt: skip
    return told | {"server": server if job.servicing_server_id_number else None}


def without_size(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "size"}


class QueueServiceMachine(RuleBasedStateMachine):
    """A service, an oracle, and the rows and file sizes that the service's changes have made."""

    @initialize(last_number=st.sampled_from((1, 2, 998)), jobs=st.lists(flags, max_size=3))
    def begin(self, last_number: int, jobs: list[int]) -> None:
        self.now = START
        self.oracle = oracle = Oracle(SETTINGS)
        self.rows = QueueRows()
        self.service = QueueService.restore(self.rows.contents(), SETTINGS)
        self.files = self.queues = 0
        admin = Caller(0, object_id=SUPERVISOR_ID)
        service = self.service
        self.ids = {"SUPERVISOR": SUPERVISOR_ID}
        for name, type_ in NAMES.items():
            if name not in self.ids:
                self.ids[name] = service.bindery.create_object(admin, name, type_).id
        ids = self.ids
        oracle.objects = set(ids.values())
        oracle.users_and_groups = {ids[name] for name, type_ in NAMES.items() if type_ in PEOPLE}
        service.properties.join_group(admin, ids["BOB"], ids["STAFF"])
        oracle.groups[ids["BOB"]] = {ids["STAFF"]}
        service.properties.make_equivalent(admin, ids["CAROL"], ids["ALICE"])
        oracle.equals[ids["CAROL"]] = {ids["ALICE"]}
        service.properties.make_equivalent(admin, ids["ADMIN"], SUPERVISOR_ID)
        oracle.equals[ids["ADMIN"]] = {SUPERVISOR_ID}
        service.volumes.create_directory(admin, WITH_TRUSTEES)
        service.volumes.set_trustee(admin, WITH_TRUSTEES, ids["ALICE"], TrusteeRights.TR_CREATE)
        oracle.create_rights = {ids["ALICE"]}
        for _ in range(2):
            queue_id = service.queues.create(admin, self.new_queue_name(), 3, "SYS:SYSTEM")
            oracle.add_queue(queue_id)
            for name, members in (
                (USERS, ("ALICE", "STAFF")),
                (OPERATORS, ("OPER",)),
                (SERVERS, ("PS1", "PS2")),
            ):
                for member in members:
                    service.properties.add_member(admin, queue_id, name, ids[member])
                    oracle.queues[queue_id].members[name].add(ids[member])
        self.perform()
        for queue_id in oracle.queues:
            self.rows.begin_numbers_at(queue_id, last_number)
            oracle.queues[queue_id].last_number = last_number - 1
        self.restart()
        for bits in jobs:
            self.submit(1, self.queue(0), bits)
        for station in (6, 8):
            self.server_call(station, 0, "attach")

    def new_queue_name(self) -> str:
        self.queues += 1
        return f"QUEUE{self.queues}"

    def perform(self) -> None:
        """Make the changes of the service durable."""
        self.rows.perform(self.service.take())

    def log_in(self, station: int) -> None:
        """Open a connection, and log in who works there."""
        caller, connection = Caller(station), Connection(station)
        self.callers[station], self.oracle.connections[station] = caller, connection
        name = STATIONS[station - 1]
        if name is not None and self.ids[name] in self.oracle.objects:
            assert self.service.login(caller, name, NAMES[name]) == self.ids[name]
            connection.object_id = self.ids[name]

    def restart(self) -> None:
        """Restore the service from its rows; all clients come back."""
        self.oracle = self.oracle.restarted()
        self.service = QueueService.restore(self.rows.contents(), SETTINGS)
        self.perform()
        again = QueueService.restore(self.rows.contents(), SETTINGS)
        assert again.take() == [], "a restart changes what the one before has left"
        self.callers: dict[int, Caller] = {}
        for station in range(1, len(STATIONS) + 1):
            self.log_in(station)

    def call(self, asked: Callable[[], Any], told: Callable[[], Any]) -> tuple[Any, Any] | None:
        """Ask the service and the oracle; return both answers, or None if both refuse."""
        try:
            expected = told()
        except No as no:
            allowed = no.codes
        else:
            answer = asked()
            self.perform()
            return answer, expected
        with pytest.raises(NcpRefused) as refusal:
            asked()
        assert refusal.value.code in allowed, refusal.value.why
        assert self.service.take() == []
        return None

    def both(self, station: int, task: int = 1) -> tuple[Caller, Connection]:
        """The caller and the connection of a station."""
        caller, connection = self.callers[station], self.oracle.connections[station]
        caller.task = connection.task = task
        return caller, connection

    def queue(self, pick: int) -> int:
        """The ID of a queue, or one that there is not."""
        ids = [*self.oracle.queues]
        return ids[pick % len(ids)] if ids and pick < 11 else 0x7FFF_0000

    def job(self, queue_id: int, pick: int) -> int:
        """The number of a job, or one that there is not."""
        queue = self.oracle.queues.get(queue_id)
        if queue is not None and not queue.jobs and pick < 9:
            self.submit(1 + pick % 4, queue_id, pick << 3 & 0x18)
        if queue is None or not queue.jobs or pick == 11:
            return (5, 0, 1000, 0xFFFF)[pick % 4]
        return int(queue.jobs[pick % len(queue.jobs)]["job_number"])

    def handle(self, station: int, pick: int, *, write: bool) -> tuple[int, int]:
        """A handle and mostly the station that has it; a job is entered if there has to be one."""
        if write and pick < 4:
            self.create_in(
                1 + pick, self.queue(pick), pick, self.request(None, AT_ONCE, 0, pick << 3, b"written")
            )
        handles = [
            (other.number, handle)
            for other in self.oracle.connections.values()
            for handle, opened in other.handles.items()
            if opened[2] == write
        ]
        if not handles or pick == 11:
            return station, 0xFFFF_FFF0
        found = handles[pick % len(handles)]
        return found if pick < 8 else (station, found[1])

    def request(
        self, for_server: str | None, time: bytes, job_type: int, bits: int, text: bytes, position: int = 0
    ) -> JobRequest:
        return JobRequest(
            target_server_id=0xFFFFFFFF if for_server is None else self.ids[for_server],
            target_execution_time=time,
            job_type=job_type,
            job_control_flags=bits,
            job_description=text.ljust(50, b"\0"),
            queue_record=(text + b"|").ljust(152, b"\xaa"),
            job_position=position,
        )

    # submitting

    @rule(
        station=users, pick=st.integers(0, 3), task=st.integers(0, 255), for_server=target_servers,
        time=times, job_type=types, bits=flags, text=texts,
    )  # fmt: skip
    def create(
        self, station: int, pick: int, task: int, for_server: str | None, time: bytes, job_type: int,
        bits: int, text: bytes,
    ) -> None:  # fmt: skip
        self.create_in(station, self.queue(pick), task, self.request(for_server, time, job_type, bits, text))

    @rule(
        station=st.sampled_from((1, 2, 3, 4)),
        bits=st.lists(flags, min_size=1, max_size=4),
        pick=st.integers(0, 3),
    )
    def submit_all(self, station: int, bits: list[int], pick: int) -> None:
        """Enter and start jobs, more than `create` does."""
        for each in bits:
            self.submit(station, self.queue(pick), each)

    def submit(self, station: int, queue_id: int, bits: int) -> None:
        number = self.create_in(station, queue_id, 3, self.request(None, AT_ONCE, 0, bits, b"simple"))
        if number is not None:
            caller, connection = self.both(station)
            self.call(
                lambda: self.service.jobs.close_and_start(caller, queue_id, number),
                lambda: self.oracle.close_and_start(connection, queue_id, number),
            )

    def create_in(self, station: int, queue_id: int, task: int, request: JobRequest) -> int | None:
        caller, connection = self.both(station, task)
        done = self.call(
            lambda: self.service.jobs.create(caller, queue_id, request, self.now),
            lambda: self.oracle.create(connection, queue_id, request, self.now),
        )
        if done is None:
            return None
        job, entry = done
        assert fields(job) == without_size(entry)
        assert job.job_position == len(self.oracle.queues[queue_id].jobs)
        self.oracle.opened(connection, job.job_file_handle, queue_id, job.job_number, write=True)
        return int(job.job_number)

    @rule(station=users, pick=picks, number=picks, abort=st.booleans())
    def close_job(self, station: int, pick: int, number: int, abort: bool) -> None:
        """Start or abort a job; mostly one of the queue's open jobs by the one who has it."""
        queue_id = self.queue(pick)
        if pick < 10:
            self.handle(station, pick, write=True)
            opened = [
                (at, name)
                for at, connection in self.oracle.connections.items()
                for opened_in, name, write in connection.handles.values()
                if write and opened_in == queue_id
            ]
            if opened:
                station, number = opened[number % len(opened)]
            else:
                number = self.job(queue_id, number)
        else:
            number = self.job(queue_id, number)
        caller, connection = self.both(station)
        jobs = self.service.jobs
        self.call(
            lambda: (jobs.close_and_abort if abort else jobs.close_and_start)(caller, queue_id, number),
            lambda: (self.oracle.close_and_abort if abort else self.oracle.close_and_start)(
                connection, queue_id, number
            ),
        )

    @rule(
        station=users, pick=picks, offset=st.sampled_from((0, 0, 10, 90)), count=st.sampled_from((1, 60, 101))
    )
    def write(self, station: int, pick: int, offset: int, count: int) -> None:
        station, handle = self.handle(station, pick, write=pick != 0)
        caller, connection = self.both(station)
        done = self.call(
            lambda: self.service.files.write(caller, handle, offset, count),
            lambda: self.oracle.write(connection, handle, offset, count),
        )
        if done is not None:
            queue_id, number, _ = connection.handles[handle]
            assert done[0] == FileAccess(JobFile(queue_id, number), offset, count)
            self.rows.written(done[0])

    @rule(station=servers, pick=picks, offset=st.sampled_from((0, 0, 50)))
    def read(self, station: int, pick: int, offset: int) -> None:
        station, handle = self.handle(station, pick, write=False)
        caller, connection = self.both(station)
        done = self.call(
            lambda: self.service.files.read(caller, handle, offset, 70),
            lambda: self.oracle.read(connection, handle, offset, 70),
        )
        if done is not None:
            queue_id, number, _ = connection.handles[handle]
            assert done[0] == FileAccess(JobFile(queue_id, number), offset, done[1])

    @rule(station=stations, pick=picks, write=st.booleans())
    def close_file(self, station: int, pick: int, write: bool) -> None:
        station, handle = self.handle(station, pick, write=write)
        caller, connection = self.both(station)
        self.call(
            lambda: self.service.files.close(caller, handle), lambda: self.oracle.close(connection, handle)
        )

    # watching and managing

    @rule(station=users, pick=picks, number=picks)
    def remove(self, station: int, pick: int, number: int) -> None:
        self.job_call(station, pick, number, "remove")

    @rule(station=stations, pick=picks, number=picks)
    def read_entry(self, station: int, pick: int, number: int) -> None:
        done = self.job_call(station, pick, number, "read_entry")
        size = self.job_call(station, pick, number, "file_size", told="read_entry")
        if done is not None:
            job, (position, entry) = done
            assert fields(job) == without_size(entry)
            assert job.job_position == position
            assert size is not None
            assert size[0] == entry["size"]

    def job_call(
        self, station: int, pick: int, number: int, name: str, *more: Any, told: str = ""
    ) -> tuple[Any, Any] | None:
        """Call something about a job by the name that service and oracle have for it."""
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        number = self.job(queue_id, number)
        part = self.service.jobs if hasattr(self.service.jobs, name) else self.service.servicing
        return self.call(
            lambda: getattr(part, name)(caller, queue_id, number, *more),
            lambda: getattr(self.oracle, told or name)(connection, queue_id, number, *more),
        )

    @rule(station=stations, pick=picks, start=st.sampled_from((0, 1, 2, 3, 6, 0xFFFFFFFF)),
          types=st.sampled_from((None, (7,), (0, 9), ())))  # fmt: skip
    def listed(self, station: int, pick: int, start: int, types: Collection[int] | None) -> None:
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        done = self.call(
            lambda: self.service.jobs.listed(caller, queue_id, start, types=types),
            lambda: self.oracle.listed(connection, queue_id, start, types),
        )
        if done is not None:
            assert (done[0].total, [*done[0].numbers]) == done[1]
            assert [*self.service.jobs.numbers(caller, queue_id)] == self.order(queue_id)

    def order(self, queue_id: int) -> list[int]:
        return [job["job_number"] for job in self.oracle.queues[queue_id].jobs]

    @rule(
        station=st.sampled_from((1, 5, 5, *range(1, len(STATIONS) + 1))), pick=picks, number=picks,
        for_server=target_servers, time=times, job_type=types, bits=flags, text=texts,
        position=st.sampled_from((0, 0, 1, 2, 9, 0xFFFF)),
    )  # fmt: skip
    def change_entry(
        self, station: int, pick: int, number: int, for_server: str | None, time: bytes, job_type: int,
        bits: int, text: bytes, position: int,
    ) -> None:  # fmt: skip
        request = self.request(for_server, time, job_type, bits, text, position)
        self.job_call(station, pick, number, "change_entry", request)

    @rule(station=operators, pick=picks, number=picks, position=st.sampled_from((0, 1, 1, 2, 3, 250, 251)))
    def change_position(self, station: int, pick: int, number: int, position: int) -> None:
        self.job_call(station, pick, number, "change_position", position)

    @rule(station=operators, pick=st.integers(0, 10), number=picks, to=st.integers(0, 11))
    def move(self, station: int, pick: int, number: int, to: int) -> None:
        done = self.job_call(station, pick, number, "move", self.queue(to))
        if done is not None:
            assert done[0] == done[1]

    @rule(station=stations, pick=picks)
    def read_status(self, station: int, pick: int) -> None:
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        done = self.call(
            lambda: self.service.queues.read_status(caller, queue_id),
            lambda: self.oracle.read_status(connection, queue_id),
        )
        if done is not None:
            report = done[0]
            assert (report.queue_id, report.status, report.jobs) == (queue_id, *done[1][:2])
            assert len(report.servers) == len(done[1][2])
            assert set(report.servers) == done[1][2]

    @rule(station=operators, pick=picks, status=st.sampled_from((0, 0, 0, 0, 0, 1, 2, 4, 0x80)))
    def set_status(self, station: int, pick: int, status: int) -> None:
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        self.call(
            lambda: self.service.queues.set_status(caller, queue_id, status),
            lambda: self.oracle.set_status(connection, queue_id, status),
        )

    # servicing

    @rule(station=servers, pick=picks)
    def attach(self, station: int, pick: int) -> None:
        self.server_call(station, pick, "attach")

    @rule(station=servers, pick=picks)
    def detach(self, station: int, pick: int) -> None:
        self.server_call(station, pick, "detach")

    @rule(station=servers, pick=picks, size=st.sampled_from((64, 64, 63)), byte=st.integers(0, 255))
    def set_server_status(self, station: int, pick: int, size: int, byte: int) -> None:
        self.server_call(station, pick, "set_server_status", bytes((byte,)) * size)

    @rule(station=stations, pick=picks, server=st.sampled_from(("PS1", "PS2")), at=st.integers(5, 9))
    def read_server_status(self, station: int, pick: int, server: str, at: int) -> None:
        done = self.server_call(station, pick, "read_server_status", self.ids[server], at)
        if done is not None:
            assert done[0] == done[1]

    def server_call(self, station: int, pick: int, name: str, *more: Any) -> tuple[Any, Any] | None:
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        return self.call(
            lambda: getattr(self.service.servicing, name)(caller, queue_id, *more),
            lambda: getattr(self.oracle, name)(connection, queue_id, *more),
        )

    @rule(
        station=servers,
        pick=picks,
        task=st.integers(0, 255),
        asked=asked_types,
        attach=st.sampled_from((True, True, True, False)),
    )
    def service_job(self, station: int, pick: int, task: int, asked: tuple[int, ...], attach: bool) -> None:
        if attach:
            self.server_call(station, pick, "attach")
        queue_id = self.queue(pick)
        self.job(queue_id, pick)
        caller, connection = self.both(station, task)
        done = self.call(
            lambda: self.service.servicing.service(caller, queue_id, asked, now=self.now),
            lambda: self.oracle.service(connection, queue_id, asked, self.now),
        )
        if done is not None:
            job, (position, entry) = done
            assert fields(job) == without_size(entry)
            assert job.job_position == position
            self.oracle.opened(connection, job.job_file_handle, queue_id, job.job_number, write=False)

    @rule(
        station=servers, pick=picks, number=picks, take=st.sampled_from((True, True, True, False)),
        name=st.sampled_from(("finish", "abort", "change_to_client_rights", "change_to_client_rights")),
    )  # fmt: skip
    def serviced(self, station: int, pick: int, number: int, take: bool, name: str) -> None:
        """End the service of a job, or take the rights of its client; mostly of one in service."""
        if take:
            self.service_job(station, pick, 2, (ANY_JOB_TYPE,), attach=True)
        queue_id = self.queue(pick)
        taken = [
            (place, job["server"][1])
            for place, job in enumerate(self.oracle.queues[queue_id].jobs)
            if job["server"] is not None
        ] if queue_id in self.oracle.queues else []  # fmt: skip
        if taken and number < 9:
            number, station = taken[number % len(taken)]
        self.job_call(station, pick, number, name)

    @rule(station=servers)
    def restore_server_rights(self, station: int) -> None:
        caller, connection = self.both(station)
        self.call(
            lambda: self.service.servicing.restore_server_rights(caller),
            lambda: self.oracle.restore_server_rights(connection),
        )

    @rule(station=servers)
    def create_file(self, station: int) -> None:
        """Whose rights are in force shows where a file may be created, and who owns it."""
        caller, connection = self.both(station)
        self.files += 1
        path = f"{WITH_TRUSTEES}\\F{self.files}"
        done = self.call(
            lambda: self.service.volumes.create_file(caller, path),
            lambda: self.oracle.create_file(connection),
        )
        entry = self.service.volumes.entry(path)
        assert (entry is None) == (done is None)
        if done is not None:
            assert entry is not None
            assert entry.owner_id == done[1]
            self.service.files.close(caller, done[0])

    # the bindery, and what happens to connections and the server

    @rule(
        station=supervisors, pick=picks, add=st.booleans(), name=st.sampled_from((USERS, OPERATORS, SERVERS)),
        member=st.sampled_from((*NAMES, "nobody")),
    )  # fmt: skip
    def change_set(self, station: int, pick: int, add: bool, name: str, member: str) -> None:
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        member_id = self.ids.get(member, 0x7FFF_0001)
        properties = self.service.properties
        self.call(
            lambda: (properties.add_member if add else properties.delete_member)(
                caller, queue_id, name, member_id
            ),
            lambda: (self.oracle.add_member if add else self.oracle.delete_member)(
                connection, queue_id, name, member_id
            ),
        )

    @rule(
        station=supervisors, who=st.sampled_from(("BOB", "CAROL", "MALLORY", "PS2")),
        change=st.sampled_from(
            ("join STAFF", "join STAFF", "equal ALICE", "equal PS1", "equal SUPERVISOR", "delete")
        ),
    )  # fmt: skip
    def change_identity(self, station: int, who: str, change: str) -> None:
        """Groups, security equivalence and the end of an object show at the next call."""
        caller, connection = self.both(station)
        object_id, properties = self.ids[who], self.service.properties
        what, _, whom = change.partition(" ")
        if what == "delete":
            self.call(
                lambda: self.service.bindery.delete_object(caller, object_id),
                lambda: self.oracle.delete_object(connection, object_id),
            )
        else:
            self.call(
                lambda: (properties.join_group if what == "join" else properties.make_equivalent)(
                    caller, object_id, self.ids[whom]
                ),
                lambda: (self.oracle.join_group if what == "join" else self.oracle.make_equivalent)(
                    connection, object_id, self.ids[whom]
                ),
            )

    @rule(station=supervisors, again=st.booleans())
    def create_queue(self, station: int, again: bool) -> None:
        caller, connection = self.both(station)
        taken = [found.name for found in self.service.objects if found.id in self.oracle.queues]
        name = taken[0] if taken and again else self.new_queue_name()
        done = self.call(
            lambda: self.service.queues.create(caller, name, ObjectType.NWOT_PRINT_QUEUE, "SYS:SYSTEM"),
            lambda: self.oracle.create_queue(connection, name_is_taken=name in taken),
        )
        if done is not None:
            self.oracle.add_queue(done[0])

    @precondition(lambda self: len(self.oracle.queues) > 1)
    @rule(station=supervisors, pick=st.integers(0, 3), sure=st.integers(0, 3))
    def destroy_queue(self, station: int, pick: int, sure: int) -> None:
        if sure:  # the others are worth more with a queue
            station = 10
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        self.call(
            lambda: self.service.queues.destroy(caller, queue_id),
            lambda: self.oracle.destroy_queue(connection, queue_id),
        )

    @rule(station=stations, logout=st.booleans())
    def lose_connection(self, station: int, logout: bool) -> None:
        caller = self.callers[station]
        if logout:
            self.service.logout(caller)
            assert caller.object_id is None
        else:
            self.service.connection_lost(caller)
        self.perform()
        self.oracle.connection_lost(self.oracle.connections[station])
        self.log_in(station)

    @rule(seconds=st.sampled_from((1, 30, 3600, 12 * 3600)))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(sure=st.integers(0, 5))
    def restart_server(self, sure: int) -> None:
        if sure == 0:
            self.restart()

    # what always holds

    @invariant()
    def the_service_is_as_the_oracle_says(self) -> None:
        self.compare(self.service, self.oracle)
        for station, connection in self.oracle.connections.items():
            assert self.callers[station].object_id == connection.object_id
            assert self.callers[station].effective_id == self.oracle.effective(connection)

    @invariant()
    def rows_rebuild_it(self) -> None:
        rebuilt = QueueService.restore(self.rows.contents(), SETTINGS)
        self.compare(rebuilt, self.oracle.restarted())

    def compare(self, service: QueueService, oracle: Oracle) -> None:
        """Compare all queues with their jobs, and what files take."""
        for queue_id, told in oracle.queues.items():
            queue = service.queue_table[queue_id]
            assert queue.row.status == told.status
            assert queue.order == [job["job_number"] for job in told.jobs]
            assert {*queue.order} == queue.jobs.keys()
            for place, job in enumerate(told.jobs):
                entry = queue.entry(job["job_number"])
                assert fields(entry) == without_size(job)
                assert entry.job_position == place + 1
                assert service.files.size(JobFile(queue_id, entry.job_number)) == job["size"]
            servers = {at: [server.object_id, server.status] for at, server in queue.servers.items()}
            assert servers == told.servers
            for name, members in told.members.items():
                assert service.objects[queue_id].members(name) == members
        assert {found.id for found in service.objects} == oracle.objects
        assert service.files.total_bytes == oracle.total_bytes()


QueueServiceMachine.TestCase.settings = hypothesis_settings(stateful_step_count=40)


@pytest.mark.requirement("QMS-monitor-16", "QMS-bindery-01", "QMS-bindery-03")
class TestQueueService(QueueServiceMachine.TestCase):  # type: ignore[name-defined,misc]
    pass
