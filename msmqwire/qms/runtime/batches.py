"""What operations have changed and is to become durable: collected to batches, each one transaction."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterable
from dataclasses import dataclass, field

from msmqwire.errors import StoreError
from msmqwire.qms.model.changes import (
    Change,
    CopyJobFile,
    CreateJobFile,
    CreateVolumeFile,
    DeleteJobFile,
    MakeQueueDirectory,
    MakeVolumeDirectory,
    RemoveQueueDirectory,
)
from msmqwire.qms.store.queue_files import Servers

_Place = tuple[int, int] | str


@dataclass(slots=True)
class Batch:
    """Changes that are performed together.

    Attributes:
        done: the failure, or None once the changes are durable; it is never an exception or cancelled.
        changes: in the order in which they happened.
        servers: the attached queue servers of the queues where they have changed.
    """

    done: Future[StoreError | None]
    changes: list[Change] = field(default_factory=list)
    servers: dict[int, Servers] = field(default_factory=dict)
    _deleted: set[_Place] = field(default_factory=set)

    def takes(self, changes: Iterable[Change]) -> bool:
        """Return whether these changes can follow in this batch.

        A file that the batch deletes is deleted after its rows are durable, so none of the same name can be
        made before.
        """
        return self._deleted.isdisjoint(place for change in changes for place in _made(change))

    def add(self, changes: Iterable[Change]) -> None:
        """Add the changes of one more operation."""
        for change in changes:
            self.changes.append(change)
            self._deleted.update(_deleted(change))

    async def durable(self) -> None:
        """Wait until the changes are durable. Raises StoreError."""
        failure = await _uncancelled(self.done)
        if failure is not None:
            raise type(failure)(failure.why, file=failure.file)  # each waiter gets a traceback of its own


async def _uncancelled(done: Future[StoreError | None]) -> StoreError | None:
    """Wait for a future that others wait for as well: the end of one waiter must not cancel it."""
    waiter: Future[None] = done.get_loop().create_future()

    def wake(_: Future[StoreError | None]) -> None:
        if not waiter.done():
            waiter.set_result(None)

    done.add_done_callback(wake)
    try:
        await waiter
    finally:
        done.remove_done_callback(wake)
    return done.result()


def _made(change: Change) -> tuple[_Place, ...]:
    match change:
        case CreateJobFile(queue_id, number) | CopyJobFile(to_queue_id=queue_id, to_job_number=number):
            return ((queue_id, number),)
        case MakeQueueDirectory(path=path) | MakeVolumeDirectory(path) | CreateVolumeFile(path):
            return (path,)
    return ()


def _deleted(change: Change) -> tuple[_Place, ...]:
    match change:
        case DeleteJobFile(queue_id, number):
            return ((queue_id, number),)
        case RemoveQueueDirectory(path=path):
            return (path,)
    return ()
