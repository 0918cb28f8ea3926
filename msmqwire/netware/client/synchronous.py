"""The client of NetWare queues without ``await``: each call waits in an event loop on a separate thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from msmqwire.ncp.constants import ANY_JOB_TYPE
from msmqwire.ncp.type_names import QUEUE_TYPES
from msmqwire.netware.client.file_server import FileServer, NamedObject
from msmqwire.netware.client.job import JobEntry
from msmqwire.netware.client.queue import Queue
from msmqwire.netware.client.servicing import ServicedJob
from msmqwire.netware.client.submitting import OpenJob
from msmqwire.service.loop_thread import SyncConnection

T = TypeVar("T")
P = ParamSpec("P")


def _waiting(
    method: Callable[Concatenate[Queue, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncQueue, P], T]:
    """Return a method of a queue as one that blocks."""

    @wraps(method)
    def call(self: SyncQueue, /, *args: P.args, **options: P.kwargs) -> T:
        return self._sync.run(method(self._queue, *args, **options))

    return call


class SyncFileServer:
    """A file server: `FileServer` without ``await``. Any thread may use it."""

    def __init__(self, sync: SyncConnection, server: FileServer) -> None:
        self._sync, self._server = sync, server

    @property
    def own(self) -> NamedObject:
        """The object that the client is logged in as."""
        return self._server.own

    def object_named(self, name: str, type: str | int = "user") -> NamedObject:
        """See `FileServer.object_named`."""
        return self._sync.run(self._server.object_named(name, type))

    def object_of_id(self, object_id: int) -> NamedObject:
        """See `FileServer.object_of_id`."""
        return self._sync.run(self._server.object_of_id(object_id))

    def queues(self, types: Iterable[str | int] = tuple(QUEUE_TYPES)) -> list[SyncQueue]:
        """See `FileServer.queues`."""
        return [SyncQueue(self._sync, queue) for queue in self._sync.run(self._server.queues(types))]

    def queue(self, name: str, type: str | int = "print") -> SyncQueue:
        """See `FileServer.queue`."""
        return SyncQueue(self._sync, self._sync.run(self._server.queue(name, type)))


class SyncQueue:
    """A queue: `Queue` without ``await``.

    Attributes:
        name, type, id: name, type and ID of its bindery object.
    """

    def __init__(self, sync: SyncConnection, queue: Queue) -> None:
        self._sync, self._queue = sync, queue
        self.name, self.type, self.id = queue.name, queue.type, queue.id

    def __repr__(self) -> str:
        return repr(self._queue)

    status = _waiting(Queue.status)
    set_status = _waiting(Queue.set_status)
    server_status = _waiting(Queue.server_status)
    numbers = _waiting(Queue.numbers)
    job = _waiting(Queue.job)
    file_size = _waiting(Queue.file_size)
    submit = _waiting(Queue.submit)
    remove = _waiting(Queue.remove)
    hold = _waiting(Queue.hold)
    release = _waiting(Queue.release)
    set_position = _waiting(Queue.set_position)
    change = _waiting(Queue.change)
    attach = _waiting(Queue.attach)
    detach = _waiting(Queue.detach)
    set_server_status = _waiting(Queue.set_server_status)

    def jobs(self) -> Iterator[JobEntry]:
        """See `Queue.jobs`."""
        return _each(self._sync, self._queue.jobs())

    def move(self, number: int, to: SyncQueue) -> int:
        """See `Queue.move`."""
        return self._sync.run(self._queue.move(number, to._queue))

    @contextmanager
    def new_job(self, **options: Any) -> Iterator[SyncOpenJob]:
        """See `Queue.new_job`."""
        with self._sync.entered(self._queue.new_job(**options)) as job:
            yield SyncOpenJob(self._sync, job)

    @contextmanager
    def service(self, job_type: int = ANY_JOB_TYPE, *, wait: float = 0.0) -> Iterator[SyncServicedJob]:
        """See `Queue.service`."""
        with self._sync.entered(self._queue.service(job_type, wait=wait)) as job:
            yield SyncServicedJob(self._sync, job)


class SyncOpenJob:
    """A job that is not released yet: `OpenJob` without ``await``."""

    def __init__(self, sync: SyncConnection, job: OpenJob) -> None:
        self._sync, self._job = sync, job
        self.entry, self.number = job.entry, job.number

    @property
    def size(self) -> int:
        """Bytes in its file."""
        return self._job.size

    def write(self, data: bytes) -> None:
        """See `OpenJob.write`."""
        self._sync.run(self._job.write(data))


class SyncServicedJob:
    """A job that this queue server has: `ServicedJob` without ``await``."""

    def __init__(self, sync: SyncConnection, job: ServicedJob) -> None:
        self._sync, self._job = sync, job
        self.entry, self.number, self.size = job.entry, job.number, job.size

    def blocks(self) -> Iterator[bytes]:
        """See `ServicedJob.blocks`."""
        return _each(self._sync, self._job.blocks())

    def read(self) -> bytes:
        """See `ServicedJob.read`."""
        return self._sync.run(self._job.read())

    def client_rights(self) -> AbstractContextManager[None]:
        """See `ServicedJob.client_rights`."""
        return self._sync.entered(self._job.client_rights())


def _each(sync: SyncConnection, items: AsyncIterator[T]) -> Iterator[T]:
    async def following() -> tuple[T, ...]:
        async for item in items:
            return (item,)
        return ()

    while found := sync.run(following()):
        yield found[0]
