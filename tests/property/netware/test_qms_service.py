"""The queue service against an oracle: users, operators and servers call what they may and what they may not.

Everything is compared after each step: the answer, the queues, the bytes of files, and the service that is
rebuilt from the rows made so far.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from msmqwire.ncp.constants import ANY_JOB_TYPE, AT_ONCE, ObjectType
from msmqwire.netware.model.files import FileAccess, StoredJobFile
from tests.support.netware.queue_machine import (
    NAMES,
    STATIONS,
    WITH_TRUSTEES,
    QueueServiceScene,
    fields,
    flags,
    without_size,
)  # fmt: skip
from tests.support.netware.queue_oracle_state import OPERATORS, SERVERS, USERS

STEPS: Final = 70

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


class QueueServiceMachine(QueueServiceScene):
    """The calls, each with right and wrong arguments."""

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
            assert done[0] == FileAccess(StoredJobFile(queue_id, number), offset, count)
            self.rows.written(done[0])
            self.changed = True

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
            assert done[0] == FileAccess(StoredJobFile(queue_id, number), offset, done[1])

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
        if taken and number < 10:
            number, having = taken[number % len(taken)]
            others = [at for at in self.oracle.queues[queue_id].servers if at != having]
            station = others[0] if others and pick % 3 == 0 else having
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


QueueServiceMachine.TestCase.settings = hypothesis_settings(stateful_step_count=STEPS)


@pytest.mark.requirement("QMS-monitor-16", "QMS-bindery-01", "QMS-bindery-03")
class TestQueueService(QueueServiceMachine.TestCase):  # type: ignore[name-defined,misc]
    pass
