"""The driver of a queue service: operations in order, durable before they are answered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from msmqwire.errors import InvalidValue, MsmqError, NcpRefused, StoreError, StoreRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.files import AnyFile, StoredJobFile
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.job_changes import JobChanges
from msmqwire.netware.runtime.job_store import JobStore
from msmqwire.netware.store.disk import is_full
from msmqwire.netware.store.queue_files import Servers
from msmqwire.netware.store.volumes import Volumes
from msmqwire.service.disk import Room
from msmqwire.service.driver import Driver
from msmqwire.service.event_loop import Handle
from msmqwire.service.rebuilding import Rebuilding
from msmqwire.service.store import Store

T = TypeVar("T")
_FILE_THREADS: Final = 4
RETRY_S: Final = 0.25
"""Seconds after which failed changes of files are retried."""
ROOM_S: Final = 0.25
"""Seconds between two checks of the room on the disk: files grow between commits."""


class ServiceGuest:
    """A queue service as the guest of a driver. It has no timer, and no effects: calls return results."""

    deadline = None
    arrivals = 0

    def __init__(self, service: QueueService) -> None:
        self.service = service
        self.refreshes = False
        self._servers: dict[int, Servers] = {}

    def at(self, now_ms: int, utc: int) -> None:
        """Calls that need the time get it as an argument."""

    def take(self) -> tuple[JobChanges, list[object]]:
        """See `Guest.take`."""
        refreshes, self.refreshes = self.refreshes, False
        return JobChanges(self.service.take(), self._changed_servers(), refreshes), []

    def _changed_servers(self) -> dict[int, Servers]:
        """Return the attached servers of the queues where they have changed since the last time."""
        before = self._servers
        now: dict[int, Servers] = {
            queue.id: tuple((server.object_id, connection) for connection, server in queue.servers.items())
            for queue in self.service.queue_table.values()
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

    @property
    def attached(self) -> dict[int, Servers]:
        """The attached servers when last taken."""
        return self._servers

    def committed(self) -> None:
        """The service does not depend on it."""

    def throttle(self, *, on: bool) -> None:
        """Stop or resume the creation and growth of files."""
        self.service.files.has_room = not on

    def acknowledge_received(self) -> None:
        """Each call has its answer."""

    def stop(self) -> None:
        """Do nothing: jobs and files of clients are given up as their connections end."""


class RoomDriver(Driver[ServiceGuest]):
    """A driver that reports what the disk can hold: the shares of files depend on it."""

    def _look_at_room(self, *, tidy: bool = False) -> None:
        super()._look_at_room(tidy=tidy)
        if self.room is not None:
            self.guest.service.files.space.disk_has(self.room.spare)


class ServiceDriver:
    """Runs one queue service over a store and volumes, in the running event loop.

    An operation is answered, or refused, when all that happened before it is durable: its answer may depend
    on that. It is made durable in a thread, since files are synced one by one; and if the disk refuses, or
    msmqwire has a fault, all waiting operations are refused and the service is made anew: see `Driver` for
    both.
    """

    def __init__(
        self,
        store: Store,
        volumes: Volumes,
        *,
        settings: Settings | None = None,
        room: Room | None = None,
    ) -> None:
        """Drive a service; `room` is the room on its disk, without which no file is created or grows."""
        self._volumes, self._room = volumes, room
        self._writer = ThreadPoolExecutor(1, "qms-store")
        self._files = ThreadPoolExecutor(_FILE_THREADS, "qms-files")
        self._store = JobStore(store, volumes, settings, room)
        nothing = ServiceGuest(QueueService(settings))
        self._driver = RoomDriver(nothing, self._store, writer=self._writer)
        self._driver.flush_by(self._look_at_files)
        self._driver.poll_s = ROOM_S
        self._rebuilding = Rebuilding(self._driver, self._restored, self._writer)
        self._retry: Handle | None = None
        self._closed = False

    def _restored(self) -> ServiceGuest:
        return ServiceGuest(self._store.restored())

    @property
    def commits(self) -> int:
        """The number of transactions so far."""
        return self._store.transactions

    @property
    def refused(self) -> bool:
        """Whether the disk has refused the last changes."""
        return self._driver.refused

    @property
    def on_restart(self) -> Callable[[], None] | None:
        """Called when the service was made anew: its connections are gone."""
        return self._rebuilding.on_restart

    @on_restart.setter
    def on_restart(self, action: Callable[[], None]) -> None:
        self._rebuilding.on_restart = action

    async def start(self) -> None:
        """Restore the service. Raises the subclasses of StoreError, and InvalidValue for the settings."""
        await self._rebuilding.ready()
        self._driver.watch(self._room)

    async def close(self) -> None:
        """Make all changes durable, and end; operations are refused from now on. A second call does
        nothing.
        """
        if self._closed:
            return
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
        await self._rebuilding.close()
        await self._driver.idle()
        if self._driver.has_guest:
            attached = dict.fromkeys(self._driver.guest.attached, ())
            await self._driver.loop.run_in_executor(self._writer, self._volumes.follow, (), attached)
        self._driver.abandon()
        self._writer.shutdown()
        self._files.shutdown()

    async def run(self, operation: Callable[[QueueService], T]) -> T:
        """Call an operation with the service, and return its result once everything that it depends on is
        durable.

        Raises NcpRefused and InvalidValue of the operation, which has changed nothing then; StoreError, and
        nothing of it remains; EngineFailed after any other exception in it; Unreachable after `close`.
        """
        guest = await self._rebuilding.ready()
        try:
            result = self._driver.call(operation, guest.service)
        except (NcpRefused, InvalidValue):
            await self._driver.durable()
            raise
        self._driver.part()
        await self._driver.durable()
        return result

    def _look_at_files(self) -> None:
        """Retry failed work on files later."""
        if self._store.is_stale and self._retry is None and not self._closed:
            self._retry = self._driver.loop.call_later(RETRY_S, self._refresh)

    def _refresh(self) -> None:
        self._retry = None
        if self._driver.has_guest:
            self._driver.notify(setattr, self._driver.guest, "refreshes", True)

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
        """Write to a file that `OpenFiles.write` has named; the size that it has counted is corrected.

        The bytes last once the job is started. Raises NcpRefused if the file has been deleted meanwhile or
        the disk is full, and StoreError.
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
        """Pass the size of a file on disk to the service."""
        try:
            size = await self._in_files(self._volumes.size, file)
        except StoreError:
            size = 0
        if self._exists(file):
            self._driver.guest.service.files.set_size(file, size)

    def _error(self, file: AnyFile, exc: OSError) -> MsmqError:
        """Return the exception for an error of the system."""
        if isinstance(exc, FileNotFoundError) and not self._exists(file):
            return NcpRefused("the file has been deleted", CompletionCode.INVALID_FILE_HANDLE)
        if is_full(exc):
            return NcpRefused("the disk is full", CompletionCode.OUT_OF_DISK_SPACE)
        failure = StoreRefused(exc.strerror or str(exc), file=repr(file))
        self._store.log_once("a file can't be read or written", failure)
        return failure

    def _exists(self, file: AnyFile) -> bool:
        """Whether the service knows a file."""
        if not self._driver.has_guest:
            return False
        service = self._driver.guest.service
        if isinstance(file, StoredJobFile):
            queue = service.queue_table.get(file.queue_id)
            return queue is not None and file.job_number in queue.jobs
        return service.volumes.entry(file.path) is not None

    async def _in_files(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._driver.loop.run_in_executor(self._files, function, *arguments)
