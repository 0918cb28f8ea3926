"""Changes of operations that are to become durable: a transaction, and work on files around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from msmqwire.netware.model.changes import (
    Change,
    CopyJobFile,
    CreateJobFile,
    CreateVolumeFile,
    DeleteJobFile,
    MakeQueueDirectory,
    MakeVolumeDirectory,
    RemoveQueueDirectory,
)
from msmqwire.netware.store.queue_files import Servers

_Place = tuple[int, int] | str


@dataclass(slots=True)
class JobChanges:
    """Changes that are performed together.

    Attributes:
        changes: in the order in which they happened.
        servers: the attached queue servers of the queues where they have changed.
        refreshes: whether failed changes of files are to be retried.
    """

    changes: list[Change] = field(default_factory=list)
    servers: dict[int, Servers] = field(default_factory=dict)
    refreshes: bool = False

    def __bool__(self) -> bool:
        return bool(self.changes or self.servers or self.refreshes)

    def joins(self, later: JobChanges) -> bool:
        """Return whether later changes can be performed together with these.

        A file that is deleted is deleted after the rows are durable, so no file of the same name can be made
        before.
        """
        deleted = {place for change in self.changes for place in _deleted(change)}
        return deleted.isdisjoint(place for change in later.changes for place in _made(change))

    def add(self, later: JobChanges) -> None:
        """Add later changes."""
        self.changes += later.changes
        self.servers |= later.servers
        self.refreshes |= later.refreshes


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
