"""The driver of a queue service on asyncio: operations in order, durable before they are answered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from msmqwire.errors import (
    EngineFailed,
    InvalidValue,
    MsmqError,
    NcpRefused,
    StoreError,
    StoreRefused,
    Unreachable,
)
from msmqwire.netware.constants import CompletionCode, JobControlFlags
from msmqwire.qms.model.changes import Change, PutJob
from msmqwire.qms.model.files import AnyFile, JobFile
from msmqwire.qms.model.job import Job
from msmqwire.qms.model.settings import Settings
from msmqwire.qms.rules.service import QueueService
from msmqwire.qms.runtime.batches import Batch
from msmqwire.qms.store.contents import read_contents, unsettled_directories
from msmqwire.qms.store.disk import is_full
from msmqwire.qms.store.queue_files import Servers
from msmqwire.qms.store.row_changes import RowChanges, settled, unsettled
from msmqwire.qms.store.volumes import Volumes
from msmqwire.service.disk import DiskRoom
from msmqwire.service.logs import log
from msmqwire.service.restoring import restoring
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes

T = TypeVar("T")
_FILE_THREADS: Final = 4
RETRY_S: Final = 0.25
"""Seconds after which files that could not be changed are tried again."""
ROOM_S: Final = 0.25
"""Seconds between two looks at the room on the disk."""


class ServiceDriver:
    """Runs one queue service over a store and volumes, in the running event loop.

    The changes of all operations that wait become one transaction with one sync, in a thread. An operation
    is answered, or refused, when all that happened before it is durable: its answer may rest on that.

    If the disk refuses, all operations that wait fail; nothing of them remains. The service is then built
    anew from the store, as after a restart: its connections are gone, which `on_restart` is told.

    Attributes:
        on_restart: called after the service was built anew while the driver ran.
        commits: how many transactions there were.
        refused: whether the disk has refused the last batch.
    """

    def __init__(
        self,
        store: Store,
        volumes: Volumes,
        *,
        settings: Settings | None = None,
        room: DiskRoom | None = None,
    ) -> None:
        """Drive a service; `room` is the room on its disk, without which no file is created or grows."""
        self._store, self._volumes, self._settings, self._room = store, volumes, settings, room
        self.on_restart: Callable[[], None] | None = None
        self.commits = 0
        self.refused = False
        self._service: QueueService | None = None
        self._rows = RowChanges()
        self._batches: deque[Batch] = deque()
        self._on_disk: Batch | None = None  # the batch that is being performed, which takes nothing more
        self._performing: asyncio.Task[None] | None = None
        self._restoring: asyncio.Task[StoreError | None] | None = None
        self._started = False
        self._servers: dict[int, Servers] = {}
        self._settled: list[str] = []
        self._told: set[object] = set()  # what has failed and been logged: clients could repeat it for ever
        self._closed = False
        self._watching: asyncio.Task[None] | None = None
        self._is_stale = False  # whether files do not show what the rows say
        self._retry: asyncio.TimerHandle | None = None
        self._writer = ThreadPoolExecutor(1, "qms-store")
        self._files = ThreadPoolExecutor(_FILE_THREADS, "qms-files")

    async def start(self) -> None:
        """Restore the service. Raises the subclasses of StoreError, and InvalidValue for the settings."""
        await self._ready()
        if self._room is not None:
            self._watching = asyncio.ensure_future(self._watch(self._room))

    async def close(self) -> None:
        """Make durable what has happened, and end; operations are refused from now on. Again: do nothing."""
        if self._closed:
            return
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        if self._retry is not None:
            self._retry.cancel()
        for task in (self._restoring, self._performing):
            if task is not None:
                await asyncio.wait((task,))
        if self._service is not None:
            await self._in_writer(self._volumes.follow, (), dict.fromkeys(self._servers, ()))
        self._writer.shutdown()
        self._files.shutdown()

    # -- operations ---------------------------------------------------------------------------------------

    async def run(self, operation: Callable[[QueueService], T]) -> T:
        """Call an operation with the service, and return its result once all that it rests on is durable.

        Raises NcpRefused and InvalidValue of the operation, which has changed nothing then; StoreError, and
        nothing of it remains; EngineFailed after any other exception in it; Unreachable after `close`.
        """
        service = await self._ready()
        service.files.has_room = self._room is None or not self._room.low
        try:
            result = operation(service)
        except (NcpRefused, InvalidValue):
            await self._durable(service)
            raise
        except Exception as exc:
            log.critical("a fault of msmqwire itself: the queue service starts anew", exc_info=exc)
            self._service = None
            raise EngineFailed(exc) from exc
        await self._durable(service)
        return result

    async def _durable(self, service: QueueService) -> None:
        changes, servers = service.take(), self._changed_servers(service)
        if changes or servers:
            last = self._batches[-1] if self._batches else None
            if last is self._on_disk or last is None or not last.takes(changes):
                self._batches.append(Batch(asyncio.get_running_loop().create_future()))
            batch = self._batches[-1]
            batch.add(changes)
            batch.servers |= servers
            if self._performing is None:
                self._performing = asyncio.ensure_future(self._perform_all())
        if self._batches:
            await self._batches[-1].durable()

    def _changed_servers(self, service: QueueService) -> dict[int, Servers]:
        """Return the attached servers of the queues where they are others than at the last time."""
        before = self._servers
        now: dict[int, Servers] = {
            queue.id: tuple((server.object_id, connection) for connection, server in queue.servers.items())
            for queue in service.queue_table.values()
            if queue.servers
        }
        self._servers = now
        if now == before:
            return {}
        return {
            queue_id: now.get(queue_id, ())
            for queue_id in before.keys() | now.keys()
            if before.get(queue_id) != now.get(queue_id)
        }

    # -- making durable -----------------------------------------------------------------------------------

    async def _perform_all(self) -> None:
        """Perform all batches in order; after a failure none of the later ones is worth anything."""
        await asyncio.sleep(0)  # the operations of this turn make one batch
        try:
            while self._batches:
                self._on_disk = batch = self._batches[0]
                await self._in_writer(self._perform, batch.changes, batch.servers)
                self._batches.popleft()
                batch.done.set_result(None)
        except Exception as exc:
            self._service = None
            failure = self._failure(exc)
            while self._batches:
                self._batches.popleft().done.set_result(failure)
        finally:
            self._performing = self._on_disk = None
        if self._is_stale and self._retry is None and not self._closed:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._refresh)

    def _refresh(self) -> None:
        """Perform nothing, so that stale files are tried again."""
        self._retry = None
        if self._performing is None and self._service is not None:
            self._batches.append(Batch(asyncio.get_running_loop().create_future()))
            self._performing = asyncio.ensure_future(self._perform_all())

    def _failure(self, exc: Exception) -> StoreError:
        """Log what a batch or a restart has failed by, and return it as waiters get it."""
        if not isinstance(exc, StoreError):
            log.critical("a fault of msmqwire itself: operations fail", exc_info=exc)
            return StoreRefused(f"a fault of msmqwire itself: {exc!r}", file="the store")
        if not self.refused:
            log.error("the disk refuses: operations fail", extra={"error": str(exc)})
        self.refused = True
        return exc

    def _perform(
        self, changes: list[Change], servers: dict[int, Servers], *, recovering: bool = False
    ) -> None:
        """Perform a batch: what comes first on disk, then the rows, then what comes last. In a thread."""
        announced = unsettled(changes)
        if announced:
            self._commit(announced)
        self._volumes.prepare(changes, recovering=recovering)
        rows = Changes()
        rows.add(settled(self._settled))
        rows.add(self._rows.of(changes))
        if rows:
            self._commit(rows)
            self.commits += 1
        self._settled = []
        followed = self._volumes.follow(changes, servers)
        self._settled += followed.settled
        self._is_stale = bool(followed.failures)
        for failure in followed.failures:
            self._tell_once("a file can't be changed; tried again later", failure)
        if self.refused:
            self.refused = False
            log.warning("the disk takes changes again")

    def _commit(self, rows: Changes) -> None:
        """Commit, with the reserve if the disk refuses: it may be a deletion that makes room. In a thread."""
        try:
            self._store.commit(rows)
        except StoreRefused:
            if self._room is None or not self._room.release():
                raise
            self._store.commit(rows)

    async def _watch(self, room: DiskRoom) -> None:
        """Look at the room on the disk all the time: others write to it as well."""
        while True:
            try:
                await self._in_writer(partial(room.look, tidy=True))
            except StoreError as exc:
                self._tell_once("the room on the disk is unknown", exc)
            await asyncio.sleep(ROOM_S)

    def _tell_once(self, what: str, failure: StoreError) -> None:
        if str(failure) not in self._told:
            self._told.add(str(failure))
            log.warning(what, extra={"error": str(failure)})

    async def _in_writer(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writer, function, *arguments)

    # -- the restart --------------------------------------------------------------------------------------

    async def _ready(self) -> QueueService:
        """Return the service, built anew if there is none. Raises StoreError."""
        while not self._closed:
            if self._service is not None:
                return self._service
            if self._restoring is None:
                self._restoring = asyncio.ensure_future(self._restore())
            restoring = self._restoring
            await asyncio.wait((restoring,))  # which does not cancel it for the others that wait
            failure = restoring.result()
            if failure is not None:
                raise type(failure)(failure.why, file=failure.file)
        raise Unreachable("the queue service has ended")

    async def _restore(self) -> StoreError | None:
        """Build the service from the store; return why it can't be."""
        try:
            if self._performing is not None:
                await asyncio.wait((self._performing,))
            self._service = await self._in_writer(self._recover)
        except Exception as exc:
            return self._failure(exc)
        finally:
            self._restoring = None
        self._servers = {}
        if self._started and self.on_restart is not None:
            self.on_restart()
        self._started = True
        return None

    def _recover(self) -> QueueService:
        """Restore what store and volumes have, and make durable what a restart changes. In a thread."""
        with restoring(self._store):
            contents = read_contents(self._store)
            found = self._volumes.recover(contents, unsettled_directories(self._store))
            jobs, lost = _without_lost(contents.jobs, found.missing)
            service = QueueService.restore(replace(contents, jobs=jobs, sizes=found.sizes), self._settings)
        self._told.clear()
        for failure in found.failures:
            self._tell_once("a directory can't be removed; tried again later", failure)
        self._rows = RowChanges((queue_id, job.job_number) for queue_id, job in jobs)
        self._settled = list(found.settled)
        self._perform([*lost, *service.take()], {}, recovering=True)
        return service

    # -- files --------------------------------------------------------------------------------------------

    async def read_file(self, file: AnyFile, offset: int, count: int) -> bytes:
        """Read from a file that `OpenFiles.read` has named: less than `count` bytes only at its end.

        Raises NcpRefused if the file has been deleted meanwhile, and StoreError.
        """
        try:
            return await self._in_files(self._volumes.read, file, offset, count)
        except OSError as exc:
            raise self._error(file, exc) from exc

    async def write_file(self, file: AnyFile, offset: int, data: bytes) -> None:
        """Write to a file that `OpenFiles.write` has named; the size that it has counted is put right.

        What is written lasts once the job is started. Raises NcpRefused if the file has been deleted
        meanwhile or the disk is full, and StoreError.
        """
        try:
            await self._in_files(self._volumes.write, file, offset, data)
        except StoreError:
            await self._measure(file)
            raise
        except OSError as exc:
            await self._measure(file)
            raise self._error(file, exc) from exc

    async def _measure(self, file: AnyFile) -> None:
        """Let the service have the size that a file has on disk."""
        try:
            size = await self._in_files(self._volumes.size, file)
        except StoreError:
            size = 0
        if self._service is not None and self._exists(file):
            self._service.files.set_size(file, size)

    def _error(self, file: AnyFile, exc: OSError) -> MsmqError:
        """Return what is to be raised for an error of the system."""
        if isinstance(exc, FileNotFoundError) and not self._exists(file):
            return NcpRefused("the file has been deleted", CompletionCode.INVALID_FILE_HANDLE)
        if is_full(exc):
            return NcpRefused("the disk is full", CompletionCode.OUT_OF_DISK_SPACE)
        failure = StoreRefused(exc.strerror or str(exc), file=repr(file))
        self._tell_once("a file can't be read or written", failure)
        return failure

    def _exists(self, file: AnyFile) -> bool:
        """Whether the service knows a file."""
        if self._service is None:
            return False
        if isinstance(file, JobFile):
            queue = self._service.queue_table.get(file.queue_id)
            return queue is not None and file.job_number in queue.jobs
        return self._service.volumes.entry(file.path) is not None

    async def _in_files(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._files, function, *arguments)


def _without_lost(
    jobs: Iterable[tuple[int, Job]], missing: Collection[JobFile]
) -> tuple[list[tuple[int, Job]], list[Change]]:
    """Hold the jobs whose files are lost for an operator, and return all jobs and what has changed.

    A queue server would take a lost file for an empty one, and finish the job. Reading a lost file fails.
    """
    lost = set(missing)
    kept: list[tuple[int, Job]] = []
    changes: list[Change] = []
    for queue_id, job in jobs:
        if JobFile(queue_id, job.job_number) in lost:
            held = job.with_flags(on=JobControlFlags.NWCF_OPERATOR_HOLD)
            log.error(
                "the file of a job is lost: the job is held",
                extra={"queue": f"{queue_id:08X}", "job": job.job_number},
            )
            changes.append(PutJob(queue_id, held))
            kept.append((queue_id, held))
        else:
            kept.append((queue_id, job))
    return kept, changes
