"""The changes of rows that a service asks for, as changes of a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msmqwire.netware.model.changes import (
    Change,
    DeleteJob,
    DeleteObject,
    DeleteQueue,
    DeleteTrustee,
    MakeQueueDirectory,
    PutJob,
    PutNextObjectId,
    PutObject,
    PutOrder,
    PutQueue,
    PutTrustee,
    PutVolumeEntry,
    RemoveQueueDirectory,
)
from msmqwire.netware.store import rows
from msmqwire.netware.store.tables import NEXT_OBJECT_ID, NetwareTable, job_key, trustee_key
from msmqwire.service.store.changes import Changes


class RowChanges:
    """Tracks the jobs with rows, for the deletion of a queue."""

    def __init__(self, jobs: Iterable[tuple[int, int]] = ()) -> None:
        """Begin with the (queue ID, job number) of the jobs that have a row."""
        self._jobs: dict[int, set[int]] = defaultdict(set)
        for queue_id, number in jobs:
            self._jobs[queue_id].add(number)

    def of(self, changes: Iterable[Change]) -> Changes:
        """Return the row changes to commit for these changes; changes of files have none.

        Only a directory that is being removed has a row meanwhile, which `settled` deletes later.
        """
        result = Changes()
        for change in changes:
            self._add(change, result)
        return result

    def _add(self, change: Change, result: Changes) -> None:
        match change:
            case PutObject(found):
                result.put(NetwareTable.OBJECT, found.id, rows.write_object(found))
            case DeleteObject(object_id):
                result.delete(NetwareTable.OBJECT, object_id)
            case PutNextObjectId(object_id):
                result.put(NetwareTable.META, NEXT_OBJECT_ID, rows.write_number(object_id))
            case PutQueue(row):
                result.put(NetwareTable.QUEUE, row.object_id, rows.write_queue(row))
            case DeleteQueue(queue_id):
                result.delete(NetwareTable.QUEUE, queue_id)
                result.delete(NetwareTable.ORDER, queue_id)
                for number in self._jobs.pop(queue_id, ()):
                    result.delete(NetwareTable.JOB, job_key(queue_id, number))
            case PutJob(queue_id, job):
                self._jobs[queue_id].add(job.job_number)
                result.put(NetwareTable.JOB, job_key(queue_id, job.job_number), rows.write_job(job))
            case DeleteJob(queue_id, number):
                self._jobs[queue_id].discard(number)
                result.delete(NetwareTable.JOB, job_key(queue_id, number))
            case PutOrder(queue_id, numbers):
                result.put(NetwareTable.ORDER, queue_id, rows.write_order(numbers))
            case PutVolumeEntry(entry):
                result.put(NetwareTable.ENTRY, entry.path.encode(), rows.write_entry(entry))
            case PutTrustee(trustee):
                key = trustee_key(trustee.path, trustee.object_id)
                result.put(NetwareTable.TRUSTEE, key, rows.write_trustee(trustee))
            case DeleteTrustee(path, object_id):
                result.delete(NetwareTable.TRUSTEE, trustee_key(path, object_id))
            case RemoveQueueDirectory(queue_id, path):
                result.put(NetwareTable.UNSETTLED, path.encode(), rows.write_number(queue_id))
            case MakeQueueDirectory(_, path):
                result.delete(NetwareTable.UNSETTLED, path.encode())


def unsettled(changes: Iterable[Change]) -> Changes:
    """Return the changes to commit before queue directories are made: each must have its row."""
    result = Changes()
    for change in changes:
        if isinstance(change, MakeQueueDirectory):
            result.put(NetwareTable.UNSETTLED, change.path.encode(), rows.write_number(change.queue_id))
    return result


def settled(paths: Iterable[str]) -> Changes:
    """Return the changes to commit some time after queue directories were removed."""
    result = Changes()
    for path in paths:
        result.delete(NetwareTable.UNSETTLED, path.encode())
    return result
