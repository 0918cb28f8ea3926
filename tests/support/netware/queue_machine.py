"""A queue service and an oracle side by side, with the connections of all kinds of users: a state machine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import AT_ONCE, SUPERVISOR_ID, ObjectType, TrusteeRights
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import Job, JobRequest
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService
from tests.support.netware.queue_oracle import Oracle
from tests.support.netware.queue_oracle_state import OPERATORS, SERVERS, USERS, Connection, No
from tests.support.netware.queue_rows import QueueRows

SETTINGS: Final = Settings(
    queues_max=3, jobs_max=5, servers_max=2, job_list_max=2, handles_max=3,
    file_bytes_max=100, files_bytes_max=250, files_per_origin_percent=100, files_reserve_percent=0,
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
"""The objects logged in at the connections 1, 2, ..."""
WITH_TRUSTEES: Final = "SYS:HOME"
LATER: Final = bytes((26, 3, 2, 0, 0, 0))
STOCK: Final = (
    (0, AT_ONCE), (0x40, AT_ONCE), (0x10, AT_ONCE), (0, LATER), (0, AT_ONCE), (0x80, AT_ONCE),
    (0x18, AT_ONCE), (0x10, LATER), (0x08, AT_ONCE),
)  # fmt: skip
"""The flags and times of the jobs that queues are stocked with."""
JOB_FIELDS: Final = (
    "client_station", "client_task", "client_id", "target_server_id", "target_execution_time",
    "job_entry_time", "job_number", "job_type", "job_control_flags", "job_file_name", "job_description",
    "queue_record",
)  # fmt: skip

flags = st.sampled_from((0, 0, 0, 0, 0, 0, 0x08, 0x10, 0x18, 0x40, 0x80, 0xC0)).flatmap(
    lambda bits: st.sampled_from((0, 0, 0x20, 0x0307)).map(lambda more: bits | more)
)


def fields(job: Job) -> dict[str, Any]:
    """Return the oracle's answer about a job."""
    told = {name: getattr(job, name) for name in JOB_FIELDS}
    server = (
        job.servicing_server_id_number, job.servicing_server_station, job.servicing_server_task_number,
    )  # fmt: skip
    return told | {"server": server if job.servicing_server_id_number else None}


def without_size(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "size"}


class QueueServiceScene(RuleBasedStateMachine):
    """A service, an oracle, and the rows and file sizes that the service's changes have made."""

    @initialize(last_number=st.sampled_from((1, 2, 998)), jobs=st.lists(flags, max_size=3))
    def begin(self, last_number: int, jobs: list[int]) -> None:
        self.now = START
        self.oracle = oracle = Oracle(SETTINGS)
        self.rows = QueueRows()
        self.service = QueueService.restore(self.rows.contents(), SETTINGS)
        self.files = self.queues = 0
        self.changed = False
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
        changes = self.service.take()
        self.rows.perform(changes)
        self.changed |= bool(changes)

    def log_in(self, station: int) -> None:
        """Open a connection, and log in its object."""
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
        if queue is not None and pick < len(STOCK) and all(job["server"] for job in queue.jobs):
            self.submit(1 + pick % 4, queue_id, *STOCK[pick])
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

    # calls that several rules make

    def submit(self, station: int, queue_id: int, bits: int, time: bytes = AT_ONCE) -> None:
        """Create a job and start it."""
        number = self.create_in(station, queue_id, 3, self.request(None, time, 0, bits, b"simple"))
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

    def server_call(self, station: int, pick: int, name: str, *more: Any) -> tuple[Any, Any] | None:
        caller, connection = self.both(station)
        queue_id = self.queue(pick)
        return self.call(
            lambda: getattr(self.service.servicing, name)(caller, queue_id, *more),
            lambda: getattr(self.oracle, name)(connection, queue_id, *more),
        )

    def order(self, queue_id: int) -> list[int]:
        return [job["job_number"] for job in self.oracle.queues[queue_id].jobs]

    # invariants

    @invariant()
    def the_service_is_as_the_oracle_says(self) -> None:
        self.compare(self.service, self.oracle)
        for station, connection in self.oracle.connections.items():
            assert self.callers[station].object_id == connection.object_id
            assert self.callers[station].effective_id == self.oracle.effective(connection)

    @invariant()
    def rows_rebuild_it(self) -> None:
        if not self.changed:
            return
        self.changed = False
        rebuilt = QueueService.restore(self.rows.contents(), SETTINGS)
        self.compare(rebuilt, self.oracle.restarted())

    def compare(self, service: QueueService, oracle: Oracle) -> None:
        """Compare all queues with their jobs, and the sizes of files."""
        for queue_id, told in oracle.queues.items():
            queue = service.queue_table[queue_id]
            assert queue.row.status == told.status
            assert queue.order == [job["job_number"] for job in told.jobs]
            assert {*queue.order} == queue.jobs.keys()
            for place, job in enumerate(told.jobs):
                entry = queue.entry(job["job_number"])
                assert fields(entry) == without_size(job)
                assert entry.job_position == place + 1
                assert service.files.size(StoredJobFile(queue_id, entry.job_number)) == job["size"]
            servers = {at: [server.object_id, server.status] for at, server in queue.servers.items()}
            assert servers == told.servers
            for name, members in told.members.items():
                assert service.objects[queue_id].members(name) == members
        assert {found.id for found in service.objects} == oracle.objects
        assert service.files.total_bytes == oracle.total_bytes()
