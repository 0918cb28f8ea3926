"""A queue service with a store of plain dictionaries, for tests of its rules.

Each call's changes are performed as in a runtime, and `check` compares the stored state with the service's
state in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import SUPERVISOR_ID, CompletionCode, ObjectType
from msmqwire.netware.model.bindery import Q_OPERATORS, Q_SERVERS, Q_USERS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import (
    FIRST,
    LAST,
    Change,
    CopyJobFile,
    CreateJobFile,
    CreateVolumeFile,
    DeleteJob,
    DeleteJobFile,
    DeleteObject,
    DeleteQueue,
    DeleteTrustee,
    MakeQueueDirectory,
    MakeVolumeDirectory,
    PutJob,
    PutNextObjectId,
    PutObject,
    PutOrder,
    PutQueue,
    PutTrustee,
    PutVolumeEntry,
    RemoveQueueDirectory,
    SyncJobFile,
)
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import FileAccess, StoredJobFile
from msmqwire.netware.model.job import Job, JobRequest
from msmqwire.netware.model.queue import JobQueue
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService

AUTO_START, RESTART, OPEN, USER_HOLD, OPERATOR_HOLD = 0x08, 0x10, 0x20, 0x40, 0x80
"""Bits of jobControlFlags by the numbers of the wire."""

QUEUE_ID = 0x015D03
"""The ID of the first queue, that of the chapter's example."""

NOON = datetime(1996, 4, 1, 12, tzinfo=UTC)


def frozen(value: Any, seen: dict[int, int] | None = None) -> Any:
    """All that an object holds, however deep, as tuples that can be compared."""
    seen = {} if seen is None else seen
    if value is None or isinstance(value, int | str | bytes | Enum | datetime):
        return value
    if id(value) in seen:
        return "seen", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, dict):
        attributes = frozen(vars(value), seen) if hasattr(value, "__dict__") else ()
        return tuple((frozen(key), frozen(item, seen)) for key, item in value.items()), attributes
    if isinstance(value, set | frozenset):
        return tuple(sorted(value, key=repr))
    if isinstance(value, list | tuple):
        return tuple(frozen(item, seen) for item in value)
    if is_dataclass(value):
        return tuple(frozen(getattr(value, field.name), seen) for field in fields(value))
    if type(value).__module__.startswith("msmqwire.netware"):
        return frozen(vars(value), seen)
    return repr(type(value))


class Store:
    """The rows of a store, and the directories and files of a disk."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        self.next_object_id = 0
        self.queues: dict[int, Any] = {}
        self.jobs: dict[tuple[int, int], Job] = {}
        self.orders: dict[int, tuple[int, ...]] = {}
        self.entries: dict[str, Any] = {}
        self.trustees: dict[tuple[str, int], Any] = {}
        self.directories: dict[int, str] = {}
        self.files: dict[StoredJobFile, tuple[str, bytearray]] = {}
        self.synced: set[StoredJobFile] = set()

    def perform(self, changes: list[Change]) -> None:
        """Perform changes in the order that a runtime owes them."""
        for change in [change for change in changes if isinstance(change, FIRST)]:
            self._make(change)
        for change in [change for change in changes if not isinstance(change, (*FIRST, *LAST))]:
            self._write(change)
        for change in [change for change in changes if isinstance(change, LAST)]:
            self._delete(change)

    def contents(self) -> Contents:
        """The contents that a service is restored from."""
        return Contents(
            objects=list(self.objects.values()),
            next_object_id=self.next_object_id,
            queues=list(self.queues.values()),
            orders=self.orders,
            jobs=[(queue_id, job) for (queue_id, _), job in self.jobs.items()],
            entries=list(self.entries.values()),
            trustees=list(self.trustees.values()),
            sizes={file: len(data) for file, (_, data) in self.files.items()},
        )

    def _make(self, change: Change) -> None:
        match change:
            case MakeQueueDirectory(queue_id, path):
                assert path not in self.directories.values()
                self.directories[queue_id] = path
            case CreateJobFile(queue_id, number, name):
                assert queue_id in self.directories
                assert StoredJobFile(queue_id, number) not in self.files
                self.files[StoredJobFile(queue_id, number)] = name, bytearray()
            case CopyJobFile(queue_id, number, name, to_queue_id, to_number, to_name):
                found, data = self.files[StoredJobFile(queue_id, number)]
                assert found == name
                self.files[StoredJobFile(to_queue_id, to_number)] = to_name, bytearray(data)
                self.synced.add(StoredJobFile(to_queue_id, to_number))
            case SyncJobFile(queue_id, number, name):
                assert self.files[StoredJobFile(queue_id, number)][0] == name
                self.synced.add(StoredJobFile(queue_id, number))
            case MakeVolumeDirectory() | CreateVolumeFile():
                pass
            case _:
                raise AssertionError(change)

    def _write(self, change: Change) -> None:
        match change:
            case PutObject(put):
                self.objects[put.id] = put
            case DeleteObject(object_id):
                del self.objects[object_id]
            case PutNextObjectId(object_id):
                self.next_object_id = object_id
            case PutQueue(row):
                self.queues[row.object_id] = row
            case DeleteQueue(queue_id):
                del self.queues[queue_id], self.orders[queue_id]
                self.jobs = {key: job for key, job in self.jobs.items() if key[0] != queue_id}
            case PutJob(queue_id, job):
                self.jobs[queue_id, job.job_number] = job
            case DeleteJob(queue_id, number):
                del self.jobs[queue_id, number]
            case PutOrder(queue_id, numbers):
                self.orders[queue_id] = numbers
            case PutVolumeEntry(entry):
                self.entries[entry.path] = entry
            case PutTrustee(trustee):
                self.trustees[trustee.path, trustee.object_id] = trustee
            case DeleteTrustee(path, object_id):
                del self.trustees[path, object_id]
            case _:
                raise AssertionError(change)

    def _delete(self, change: Change) -> None:
        match change:
            case DeleteJobFile(queue_id, number, name):
                assert self.files.pop(StoredJobFile(queue_id, number))[0] == name
                self.synced.discard(StoredJobFile(queue_id, number))
            case RemoveQueueDirectory(queue_id, path):
                assert self.directories.pop(queue_id) == path
                self.files = {file: data for file, data in self.files.items() if file.queue_id != queue_id}
                self.synced = {file for file in self.synced if file.queue_id != queue_id}
            case _:
                raise AssertionError(change)


class QueueServiceHarness:
    """A file server with one print queue, "PRINTQ", with empty sets.

    Attributes:
        now: the clock of the file server.
        supervisor: a connection logged in as SUPERVISOR.
        queue_id: of the queue.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store()
        self.now = NOON
        self._connections = 0
        self.service = QueueService.restore(Contents(next_object_id=QUEUE_ID), self.settings)
        self.perform()
        self.supervisor = self.login("SUPERVISOR")
        self.queue_id = self.queue("PRINTQ")
        self.perform()

    def perform(self) -> list[Change]:
        """Perform the changes of the last calls, and return them."""
        changes = self.service.take()
        self.store.perform(changes)
        return changes

    def restart(self) -> list[Change]:
        """Restore the service from its store; return the changes of that."""
        self.service = QueueService.restore(self.store.contents(), self.settings)
        return self.perform()

    def check(self) -> None:
        """Check that the store agrees with memory, and that the queues are in order."""
        self.perform()
        service, store = self.service, self.store
        assert {found.id: found for found in service.objects} == store.objects
        queues = service.queue_table
        assert {queue_id: queue.row for queue_id, queue in queues.items()} == store.queues
        assert {queue_id: tuple(queue.order) for queue_id, queue in queues.items()} == store.orders
        jobs = {(queue.id, number): job for queue in queues.values() for number, job in queue.jobs.items()}
        assert jobs == store.jobs
        assert {StoredJobFile(*key): job.job_file_name for key, job in jobs.items()} == {
            file: name for file, (name, _) in store.files.items()
        }
        assert {StoredJobFile(*key) for key, job in jobs.items() if not job.is_open} == store.synced
        assert service.files.total_bytes >= sum(len(data) for _, data in store.files.values())
        for queue in queues.values():
            assert sorted(queue.order) == sorted(queue.jobs)
            positions = [queue.entry(number).job_position for number in queue.order]
            assert positions == list(range(1, len(queue.jobs) + 1))

    @contextmanager
    def refused(self, code: CompletionCode) -> Iterator[None]:
        """Check that the block is refused with this code and changes nothing."""
        self.perform()
        before = frozen(self.service)
        with pytest.raises(NcpRefused) as caught:
            yield
        assert caught.value.code is code, caught.value.why
        assert self.service.take() == []
        assert frozen(self.service) == before

    def connect(self, object_id: int | None = None) -> Caller:
        """A new connection, with an object logged in."""
        self._connections += 1
        return Caller(self._connections, task=self._connections + 100, object_id=object_id)

    def login(self, name: str, type_: int = ObjectType.NWOT_USER) -> Caller:
        """A new connection that an object has logged in on."""
        caller = self.connect()
        self.service.login(caller, name, type_)
        return caller

    def object(self, name: str, type_: int = ObjectType.NWOT_USER) -> int:
        """The ID of a new object."""
        return self.service.bindery.create_object(self.admin, name, type_).id

    @property
    def admin(self) -> Caller:
        """A caller with the rights of SUPERVISOR, after a restart too."""
        return Caller(0, object_id=SUPERVISOR_ID)

    def queue(self, name: str, path: str = "SYS:\\SYSTEM") -> int:
        """The ID of a new queue."""
        return self.service.queues.create(self.admin, name, ObjectType.NWOT_PRINT_QUEUE, path)

    def admit(self, property_name: str, object_id: int, queue_id: int | None = None) -> None:
        """Add an object to a set of a queue."""
        self.service.properties.add_member(self.admin, queue_id or self.queue_id, property_name, object_id)

    def user(self, name: str = "ALICE") -> Caller:
        """A new user of the queue, logged in."""
        return self._member(Q_USERS, name, ObjectType.NWOT_USER)

    def known(self, caller: Caller) -> Caller:
        """The caller, as one that has logged in with a password: it has no share of the files."""
        caller.has_proved = True
        return caller

    def user_and_operator(self, name: str = "OSCAR") -> Caller:
        """A new user of the queue who is an operator too, logged in: its jobs may have any hold."""
        caller = self.user(name)
        assert caller.object_id is not None
        self.admit(Q_OPERATORS, caller.object_id)
        return caller

    def operator(self, name: str = "OLGA") -> Caller:
        """A new operator of the queue, logged in."""
        return self._member(Q_OPERATORS, name, ObjectType.NWOT_USER)

    def server(self, name: str = "PS1", *, attach: bool = True) -> Caller:
        """A new queue server of the queue, logged in."""
        caller = self._member(Q_SERVERS, name, ObjectType.NWOT_PRINT_SERVER)
        if attach:
            self.service.servicing.attach(caller, self.queue_id)
        return caller

    def _member(self, property_name: str, name: str, type_: int) -> Caller:
        self.admit(property_name, self.object(name, type_))
        return self.login(name, type_)

    def open_job(self, user: Caller, **values: Any) -> Job:
        """A job that the user has created and not yet started."""
        return self.service.jobs.create(user, self.queue_id, JobRequest(**values), self.now)

    def job(self, user: Caller, data: bytes = b"", **values: Any) -> int:
        """The number of a job that the user has started."""
        job = self.open_job(user, **values)
        if data:
            self.write(user, job.job_file_handle, data)
        self.service.jobs.close_and_start(user, self.queue_id, job.job_number)
        return job.job_number

    def write(self, caller: Caller, handle: int, data: bytes, offset: int = 0) -> None:
        """Write to an open job file."""
        self.perform()
        access = self.service.files.write(caller, handle, offset, len(data))
        assert isinstance(access.file, StoredJobFile)
        content = self.store.files[access.file][1]
        content.extend(bytes(max(0, offset + len(data) - len(content))))
        content[offset : offset + len(data)] = data

    def read(self, caller: Caller, handle: int, offset: int = 0, count: int = 0xFFFF) -> bytes:
        """Read an open job file."""
        self.perform()
        access: FileAccess = self.service.files.read(caller, handle, offset, count)
        assert isinstance(access.file, StoredJobFile)
        return bytes(self.store.files[access.file][1][access.offset : access.offset + access.count])

    def take_job(self, server: Caller, **values: Any) -> Job:
        """A job that a server gets for service."""
        return self.service.servicing.service(server, self.queue_id, now=self.now, **values)

    def entry(self, number: int) -> Job:
        """A job of the queue as readers get it."""
        return self.queue_now.entry(number)

    @property
    def queue_now(self) -> JobQueue:
        """The queue as it is now."""
        return self.service.queue_table[self.queue_id]

    @property
    def order(self) -> list[int]:
        """The numbers of the jobs in their order."""
        return self.queue_now.order

    def pass_time(self, seconds: float) -> None:
        """Move the clock."""
        self.now += timedelta(seconds=seconds)
