"""A queue service over a folder on disk, for tests: its driver in a loop of this thread, and its files."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from msmqwire.ncp.constants import SUPERVISOR_ID, ObjectType
from msmqwire.netware.model.bindery import Q_OPERATORS, Q_SERVERS, Q_USERS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import Job, JobRequest
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.driver import ServiceDriver
from msmqwire.netware.runtime.folder import NetwareFolder
from msmqwire.netware.store import rows
from msmqwire.netware.store.tables import NEXT_OBJECT_ID, NetwareTable
from msmqwire.service.disk import DiskRoom
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.sqlite import SqliteStore

T = TypeVar("T")
ADMIN = Caller(0, object_id=SUPERVISOR_ID)
QUEUE_ID = 0x015D03
"""The ID of the first queue, that of the chapter's example."""
NOON = datetime(1996, 4, 1, 12, tzinfo=UTC)
_STRUCTURE = struct.Struct(">BBII6s6sHHBB14s6sBBI50s152s")  # Table 25 with the sizes of the wire document


class Structure(NamedTuple):
    """The job structure of 256 bytes, read apart from our schemas."""

    client_station: int
    client_task: int
    client_id: int
    target_server_id: int
    target_execution_time: bytes
    job_entry_time: bytes
    job_number: int
    job_type: int
    job_position: int
    job_control_flags: int
    job_file_name: bytes
    job_file_handle: bytes
    servicing_server_station: int
    servicing_server_task_number: int
    servicing_server_id_number: int
    job_description: bytes
    queue_record: bytes


def structures(data: bytes) -> list[Structure]:
    """Read job structures that follow each other."""
    return [Structure(*values) for values in _STRUCTURE.iter_unpack(data)]


class DrivenFolder:
    """A folder with one print queue, "PRINTQ", whose user is ALICE, operator OLGA and server PS1.

    Attributes:
        directory: of the queue, on disk.
        driver: of the service.
    """

    def __init__(
        self, data: Path, store: Store | None = None, settings: Settings | None = None, min_free: int = 0
    ) -> None:
        """Begin; `min_free` is the low-water mark of the disk in bytes."""
        self.data, self._settings, self._min_free = data, settings, min_free
        self._folder = NetwareFolder(data)
        self._loop = asyncio.new_event_loop()
        self._given = store
        self._connections = 0
        self.directory = data / "volumes" / "SYS" / "SYSTEM" / "015D03"
        self.users: dict[str, int] = {}
        self._open(create=True)
        first = Changes()
        first.put(NetwareTable.META, NEXT_OBJECT_ID, rows.write_number(QUEUE_ID))
        self.store.commit(first)
        self._start()
        self.queue_id = self.do(
            lambda s: s.queues.create(ADMIN, "PRINTQ", ObjectType.NWOT_PRINT_QUEUE, "SYS:\\SYSTEM")
        )
        for name, type_, set_name in (
            ("ALICE", ObjectType.NWOT_USER, Q_USERS),
            ("OLGA", ObjectType.NWOT_USER, Q_OPERATORS),
            ("PS1", ObjectType.NWOT_PRINT_SERVER, Q_SERVERS),
        ):
            self.users[name] = self.do(
                lambda s, name=name, type_=type_: s.bindery.create_object(ADMIN, name, type_).id
            )
            self.do(
                lambda s, name=name, set_name=set_name: s.properties.add_member(
                    ADMIN, self.queue_id, set_name, self.users[name]
                )
            )

    def _open(self, *, create: bool) -> None:
        self._folder.create()
        self.store: Store = self._given or self._folder.open_store(create=create)

    def _start(self) -> None:
        self.driver = self.await_(self._new_driver())

    async def _new_driver(self) -> ServiceDriver:
        room = None
        if self._min_free:
            assert isinstance(self.store, SqliteStore)
            room = DiskRoom(self.store, self._min_free)
        driver = ServiceDriver(self.store, self._folder.open_volumes(), settings=self._settings, room=room)
        await driver.start()
        return driver

    def await_(self, work: Any) -> Any:
        """Run a coroutine in the loop of the driver."""
        return self._loop.run_until_complete(work)

    def do(self, operation: Callable[[QueueService], T]) -> T:
        """Run an operation on the service."""
        result: T = self.await_(self.driver.run(operation))
        return result

    def together(self, *operations: Callable[[QueueService], Any]) -> list[Any]:
        """Run operations at the same time; a failure takes the place of its result."""

        async def all_() -> list[Any]:
            running = (self.driver.run(operation) for operation in operations)
            return await asyncio.gather(*running, return_exceptions=True)

        result: list[Any] = self.await_(all_())
        return result

    def connect(self, name: str) -> Caller:
        """A new connection on which an object is logged in."""
        self._connections += 1
        return Caller(self._connections, task=self._connections + 100, object_id=self.users[name])

    def open_job(self, caller: Caller, **values: Any) -> Job:
        """A job that has been created and not yet started."""
        return self.do(lambda s: s.jobs.create(caller, self.queue_id, JobRequest(**values), NOON))

    def write(self, caller: Caller, job: Job, data: bytes, offset: int = 0) -> None:
        """Write to the file of an open job."""
        access = self.do(lambda s: s.files.write(caller, job.job_file_handle, offset, len(data)))
        self.await_(self.driver.write_file(access.file, access.offset, data))

    def read(self, caller: Caller, job: Job, offset: int = 0, count: int = 0xFFFF) -> bytes:
        """Read from the file of a job in service."""
        access = self.do(lambda s: s.files.read(caller, job.job_file_handle, offset, count))
        data: bytes = self.await_(self.driver.read_file(access.file, access.offset, access.count))
        return data

    def start(self, caller: Caller, job: Job) -> None:
        """Start an open job."""
        self.do(lambda s: s.jobs.close_and_start(caller, self.queue_id, job.job_number))

    def job(self, data: bytes = b"", **values: Any) -> int:
        """The number of a job of ALICE's that has been started."""
        alice = self.connect("ALICE")
        job = self.open_job(alice, **values)
        if data:
            self.write(alice, job, data)
        self.start(alice, job)
        return job.job_number

    def server(self) -> Caller:
        """A connection of PS1, attached to the queue."""
        caller = self.connect("PS1")
        self.do(lambda s: s.servicing.attach(caller, self.queue_id))
        return caller

    def take_job(self, server: Caller) -> Job:
        """The job that a server gets for service."""
        return self.do(lambda s: s.servicing.service(server, self.queue_id, now=NOON))

    def files(self) -> list[str]:
        """The names of the files in the queue directory."""
        return sorted(path.name for path in self.directory.iterdir())

    def system_file(self) -> list[Structure]:
        """The jobs that Q$5D03.SYS has."""
        return structures((self.directory / "Q$5D03.SYS").read_bytes())

    def check_shown(self) -> None:
        """Check that the files show exactly the jobs of the service, in their order."""
        queue = self.do(lambda s: s.queue_table[self.queue_id])
        shown = self.system_file()
        assert [job.job_number for job in shown] == queue.order
        assert [job.job_position for job in shown] == list(range(1, len(queue.order) + 1))
        for structure in shown:
            job = queue.jobs[structure.job_number]
            assert structure.job_control_flags == job.job_control_flags & 0xFF
            assert structure.servicing_server_id_number == job.servicing_server_id_number
            head = (self.directory / job.job_file_name).read_bytes()[:256]
            assert structures(head) == [structure]
        names = [queue.jobs[number].job_file_name for number in queue.order]
        assert self.files() == sorted(["Q$5D03.SRV", "Q$5D03.SYS", *names])

    def restart(self) -> None:
        """End the service in good order and start it again."""
        self.stop()
        self._open(create=False)
        self._start()

    def stop(self) -> None:
        """End the service in good order."""
        self.await_(self.driver.close())
        if self._given is None:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.close()
