"""The store of a queue service's changes: rows in a store, and files around each transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from logging import WARNING

from msmqwire.errors import StoreError, StoreRefused
from msmqwire.ncp.constants import JobControlFlags
from msmqwire.netware.model.changes import Change, PutJob
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.job_changes import JobChanges
from msmqwire.netware.store.contents import read_contents, unsettled_directories
from msmqwire.netware.store.row_changes import RowChanges, settled, unsettled
from msmqwire.netware.store.volumes import Volumes
from msmqwire.service.disk import Room
from msmqwire.service.logs import log
from msmqwire.service.restoring import restoring
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes


class JobStore:
    """A `Committer` over a store and volumes; only the writer of the driver calls it.

    Attributes:
        transactions: the number so far.
        is_stale: whether files differ from the rows.
    """

    def __init__(self, store: Store, volumes: Volumes, settings: Settings | None, room: Room | None) -> None:
        self._store, self._volumes, self._settings, self._room = store, volumes, settings, room
        self.transactions = 0
        self.is_stale = False
        self._rows = RowChanges()
        self._settled: list[str] = []
        self._logged: set[object] = set()  # failures already logged: clients could repeat them forever

    def commit(self, changes: JobChanges) -> None:
        """Perform changes: first files on disk, then the rows, then deletions of files."""
        self._perform(changes, recovering=False)

    def _perform(self, changes: JobChanges, *, recovering: bool) -> None:
        announced = unsettled(changes.changes)
        if announced:
            self._store_rows(announced)
        self._volumes.prepare(changes.changes, recovering=recovering)
        rows = Changes()
        rows.add(settled(self._settled))
        rows.add(self._rows.of(changes.changes))
        if rows:
            self._store_rows(rows)
            self.transactions += 1
        self._settled = []
        followed = self._volumes.follow(changes.changes, changes.servers)
        self._settled += followed.settled
        self.is_stale = bool(followed.failures)
        for failure in followed.failures:
            self.log_once("a file can't be changed; tried again later", failure)

    def _store_rows(self, rows: Changes) -> None:
        """Commit, with the reserve if the disk refuses: it may be a deletion that makes room."""
        try:
            self._store.commit(rows)
        except StoreRefused:
            if self._room is None or not self._room.release():
                raise
            self._store.commit(rows)

    def log_once(self, what: str, failure: StoreError) -> None:
        """Log a failure, unless it has been logged since the last start."""
        if str(failure) not in self._logged:
            self._logged.add(str(failure))
            log.log(WARNING, what, extra={"error": str(failure)})

    def restored(self) -> QueueService:
        """Return the service in store and volumes, with the changes of a restart made durable."""
        with restoring(self._store):
            contents = read_contents(self._store)
            found = self._volumes.recover(contents, unsettled_directories(self._store))
            jobs, lost = _without_lost(contents.jobs, found.missing)
            service = QueueService.restore(replace(contents, jobs=jobs, sizes=found.sizes), self._settings)
        self._logged.clear()
        for failure in found.failures:
            self.log_once("a directory can't be removed; tried again later", failure)
        self._rows = RowChanges((queue_id, job.job_number) for queue_id, job in jobs)
        self._settled = list(found.settled)
        self._perform(JobChanges([*lost, *service.take()]), recovering=True)
        return service


def _without_lost(
    jobs: Iterable[tuple[int, Job]], missing: Collection[StoredJobFile]
) -> tuple[list[tuple[int, Job]], list[Change]]:
    """Hold the jobs whose files are lost for an operator, and return all jobs and the changes.

    A queue server would mistake a lost file for an empty one, and finish the job. Reading a lost file fails.
    """
    lost = set(missing)
    kept: list[tuple[int, Job]] = []
    changes: list[Change] = []
    for queue_id, job in jobs:
        if StoredJobFile(queue_id, job.job_number) in lost:
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
