"""The disk of the simulated server: rows are durable once committed, files once synced."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import TYPE_CHECKING

from msmqwire.errors import StoreRefused
from msmqwire.netware.model.changes import (
    Change,
    CopyJobFile,
    CreateJobFile,
    CreateVolumeFile,
    DeleteJobFile,
    MakeQueueDirectory,
    RemoveQueueDirectory,
    SyncJobFile,
)
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import AnyFile, StoredJobFile
from msmqwire.netware.store.queue_files import Servers
from msmqwire.netware.store.tables import LAYOUT
from msmqwire.netware.store.volumes import Followed, Recovered, Volumes
from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.memory import MemoryStore
from msmqwire.service.store.table import StoreTable
from msmqwire.service.virtual.loop import Killed

if TYPE_CHECKING:
    from typing import Self


@dataclass(slots=True)
class File:
    """A file.

    Attributes:
        data: the content for readers.
        synced: the bytes that certainly survive a crash.
    """

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    def sync(self) -> None:
        """Make the data durable."""
        self.synced = bytes(self.data)


Names = dict[AnyFile, File]


class Disk:
    """The data that outlives the server: its rows and files.

    Attributes:
        rows: the committed rows.
        files: the files for the server.
        directories: the queue directories, by path.
        undeleted: files whose deletion the disk has refused: they stay until a restart.
    """

    def __init__(self) -> None:
        self.rows = MemoryStore(LAYOUT)
        self.files: Names = {}
        self.directories: dict[str, int] = {}
        self.undeleted: set[AnyFile] = set()
        self._durable: Names = {}

    def sync_names(self) -> None:
        """Make the existence of files durable."""
        self._durable = self.files.copy()

    def crash(self, chance: random.Random) -> None:
        """Lose unsynced changes: a file, its deletion or its data, wholly, in part, or not at all."""
        left: Names = {}
        for name in sorted(self.files.keys() | self._durable.keys(), key=repr):
            kept = chance.choice((self.files, self._durable)).get(name)
            if kept is not None:
                left[name] = kept
        for file in left.values():
            if file.data != file.synced:
                file.data[:] = _torn(bytes(file.data), file.synced, chance)
                file.sync()
        self.files, self._durable = left, left.copy()


def _torn(data: bytes, synced: bytes, chance: random.Random) -> bytes:
    cut = chance.randrange(len(data) + 1)
    return chance.choice((data, synced, data[:cut], data[:cut] + bytes(len(data) - cut)))


class Effect(Enum):
    """Kinds of changes of the disk."""

    MAKE = auto()
    SYNC = auto()
    COMMIT = auto()
    DELETE = auto()


class Power:
    """Whether the server that uses the disk is alive, and the fate of its next effects.

    Attributes:
        is_on: whether it is alive.
        kill_in: the number of further effects before it is killed; None for never.
        kill_after: it is killed after the next effect of this kind; None for never.
        refuse_in: the number of further effects before one that the disk refuses; None for never.
    """

    def __init__(self, killed: Callable[[], None], refused: Callable[[], None]) -> None:
        """`killed` is called when the server is killed, `refused` when the disk refuses."""
        self._killed, self._refused = killed, refused
        self.is_on = True
        self.kill_in: int | None = None
        self.kill_after: Effect | None = None
        self.refuse_in: int | None = None

    def kill(self) -> None:
        """Kill the server."""
        if self.is_on:
            self.is_on = False
            self._killed()

    def effect(self, kind: Effect) -> None:
        """Note a change of the disk. Raises Killed, and StoreRefused."""
        self.check()
        if self.kill_in is not None:
            self.kill_in -= 1
            if self.kill_in < 0:
                self.kill()
                raise Killed
        if self.refuse_in is not None:
            self.refuse_in -= 1
            if self.refuse_in < 0:
                self.refuse_in = None
                self._refused()
                raise StoreRefused("the disk refuses", file="the disk")
        if kind is self.kill_after:
            self.kill_after, self.kill_in = None, 0
            asyncio.get_running_loop().call_soon(self.kill)

    def check(self) -> None:
        """Raise Killed if the server is dead."""
        if not self.is_on:
            raise Killed


class SimulatedStore:
    """A `Store` on the disk, for one life of the server."""

    def __init__(self, disk: Disk, power: Power) -> None:
        self._rows, self._power = disk.rows, power

    @property
    def version(self) -> int:
        return self._rows.version

    def commit(self, changes: Changes) -> None:
        self._power.effect(Effect.COMMIT)
        self._rows.commit(changes)

    def rows(self, table: StoreTable) -> Iterator[tuple[Key, bytes]]:
        self._power.check()
        return self._rows.rows(table)

    def row(self, table: StoreTable, key: Key) -> bytes | None:
        self._power.check()
        return self._rows.row(table, key)

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SimulatedVolumes(Volumes):
    """The volumes on the disk, for one life of the server. System files and job structures are left out."""

    def __init__(self, disk: Disk, power: Power) -> None:
        self._disk, self._power = disk, power

    def prepare(self, changes: Iterable[Change], *, recovering: bool = False) -> None:
        """Make files and sync them before the rows, as `Volumes.prepare` does."""
        made = False
        files = self._disk.files
        for change in changes:
            match change:
                case MakeQueueDirectory(queue_id, path):
                    self._power.effect(Effect.MAKE)
                    if any(self._in(queue_id)):
                        raise StoreRefused("there are files in the directory of a new queue", file=path)
                    self._disk.directories[path] = queue_id
                case CreateJobFile(queue_id, number):
                    self._power.effect(Effect.MAKE)
                    files[StoredJobFile(queue_id, number)] = File()
                    made = True
                case CopyJobFile(queue_id, number, _, to_id, to_number):
                    self._power.effect(Effect.MAKE)
                    source = files[StoredJobFile(queue_id, number)]
                    files[StoredJobFile(to_id, to_number)] = target = File(bytearray(source.data))
                    self._power.effect(Effect.SYNC)
                    target.sync()
                    made = True
                case SyncJobFile(queue_id, number):
                    self._power.effect(Effect.SYNC)
                    file = files.get(StoredJobFile(queue_id, number))
                    if file is not None:
                        file.sync()
                    elif not recovering:
                        raise StoreRefused("a file is gone", file=repr(change))
                case CreateVolumeFile():
                    raise NotImplementedError("files outside the queues are not simulated")
        if made:
            self._power.effect(Effect.SYNC)
            self._disk.sync_names()

    def _in(self, queue_id: int) -> list[AnyFile]:
        return [
            name for name in self._disk.files if isinstance(name, StoredJobFile) and name.queue_id == queue_id
        ]

    def follow(self, changes: Iterable[Change], servers: Mapping[int, Servers]) -> Followed:
        """Delete files, as `Volumes.follow` does."""
        followed = Followed()
        for change in changes:
            try:
                match change:
                    case DeleteJobFile(queue_id, number):
                        self._power.effect(Effect.DELETE)
                        self._disk.files.pop(StoredJobFile(queue_id, number), None)
                    case RemoveQueueDirectory(queue_id, path):
                        self._power.effect(Effect.DELETE)
                        self._remove(path)
                        followed.settled.append(path)
            except StoreRefused as exc:
                followed.failures.append(exc)
                if isinstance(change, DeleteJobFile):
                    self._disk.undeleted.add(StoredJobFile(change.queue_id, change.job_number))
        return followed

    def _remove(self, path: str) -> None:
        queue_id = self._disk.directories.pop(path, None)
        if queue_id is not None:
            for name in self._in(queue_id):
                del self._disk.files[name]

    def recover(self, contents: Contents, unsettled: Iterable[str]) -> Recovered:
        """Remove files and directories without a row, and check the others."""
        settled = []
        paths = {queue.directory for queue in contents.queues}
        for path in unsettled:
            if path not in paths:
                self._power.effect(Effect.DELETE)
                self._remove(path)
                settled.append(path)
        wanted = {StoredJobFile(queue_id, job.job_number) for queue_id, job in contents.jobs}
        for name in sorted(self._disk.files.keys() - wanted, key=repr):
            self._power.effect(Effect.DELETE)
            del self._disk.files[name]
        self._disk.undeleted.clear()
        sizes: dict[AnyFile, int] = {name: len(file.data) for name, file in self._disk.files.items()}
        missing = sorted(wanted - sizes.keys(), key=repr)
        return Recovered(sizes, missing, settled, [])

    def read(self, file: AnyFile, offset: int, count: int) -> bytes:
        """Read from a file. Raises FileNotFoundError."""
        return bytes(self._found(file).data[offset : offset + count])

    def write(self, file: AnyFile, offset: int, data: bytes) -> None:
        """Write to a file. Raises FileNotFoundError."""
        held = self._found(file).data
        held.extend(bytes(max(0, offset - len(held))))
        held[offset : offset + len(data)] = data

    def size(self, file: AnyFile) -> int:
        """Return the size of a file. Raises StoreRefused."""
        try:
            return len(self._found(file).data)
        except FileNotFoundError as exc:
            raise StoreRefused("the file is gone", file=repr(file)) from exc

    def _found(self, file: AnyFile) -> File:
        self._power.check()
        if file not in self._disk.files:
            raise FileNotFoundError(repr(file))
        return self._disk.files[file]
