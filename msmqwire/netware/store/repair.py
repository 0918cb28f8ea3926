"""Changes that a damaged store of a queue service needs, beside the loss of rows, before it can be opened.

A queue that is lost is made again from its object, and its object from its ID, so that its jobs are found.
The order of a queue gets the jobs that it lacks at its end.
"""

from __future__ import annotations

from typing import Final

from msmqwire.errors import MsmqError
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import SEGMENT_SIZE, ObjectType
from msmqwire.netware.model import names
from msmqwire.netware.model.bindery import (
    ANY_READ_SUPER_WRITE,
    LOGGED_READ_SUPER_WRITE,
    Q_DIRECTORY,
    Q_OPERATORS,
    Q_SERVERS,
    Q_USERS,
    SUPER_READ_SUPER_WRITE,
    BinderyObject,
    Property,
)
from msmqwire.netware.model.queue import QueueRow, queue_directory
from msmqwire.netware.store import rows
from msmqwire.netware.store.names import QueueServiceCheck
from msmqwire.netware.store.tables import NetwareTable
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.findings import Finding

_PATH: Final = "SYS:SYSTEM"
"""The place of the directory of a queue whose object is lost."""


class StoreRepair:
    """The changes for one store.

    Attributes:
        changes: those of rows.
        done: what they do, for people; lost rows are not among it.
    """

    def __init__(self, check: QueueServiceCheck) -> None:
        """Find the changes, after all findings of the check were taken."""
        self._check = check
        self.changes = Changes()
        self.done: list[Finding] = []
        for table, key in check.unreadable_rows():
            self.changes.delete(table, key)
        jobs = check.jobs_of_queues()
        with_directory = {key for key, found in check.objects.items() if Q_DIRECTORY in found.properties}
        for queue in sorted(check.queues | jobs.keys() | with_directory):
            if queue not in check.objects:
                self._make_object(queue)
            if queue not in check.queues:
                self._make_queue(queue, jobs.get(queue, set()))
            self._order(queue, jobs.get(queue, set()))
        for queue in check.orders.keys() - check.queues - jobs.keys() - with_directory:
            self.changes.delete(NetwareTable.ORDER, queue)

    def _make_object(self, queue: int) -> None:
        name = f"RECOVERED_{queue:X}"
        value = queue_directory(_PATH, queue).encode("ascii").ljust(SEGMENT_SIZE, b"\0")
        held = [Property(Q_DIRECTORY, False, SUPER_READ_SUPER_WRITE, segments=(value,))]
        held += [Property(part, True, ANY_READ_SUPER_WRITE) for part in (Q_USERS, Q_SERVERS, Q_OPERATORS)]
        made = BinderyObject(
            queue, name, ObjectType.NWOT_PRINT_QUEUE, LOGGED_READ_SUPER_WRITE, False,
            {part.name: part for part in held},
        )  # fmt: skip
        self._check.objects[queue] = made
        self.changes.put(NetwareTable.OBJECT, queue, rows.write_object(made))
        self._note(queue, "its object is made again, with a new name")

    def _make_queue(self, queue: int, jobs: set[int]) -> None:
        found = QueueRow(queue, self._directory(queue), next_number=max(jobs, default=0) + 1)
        self.changes.put(NetwareTable.QUEUE, queue, rows.write_queue(found))
        self._note(queue, f"it is made again with {counted(len(jobs), 'job')}")

    def _directory(self, queue: int) -> str:
        held = self._check.objects[queue].properties.get(Q_DIRECTORY)
        try:
            segments = b"".join(held.segments if held is not None else ())
            return names.volume_path(segments.rstrip(b"\0").decode("ascii"))
        except (MsmqError, ValueError):
            return names.volume_path(queue_directory(_PATH, queue))

    def _order(self, queue: int, jobs: set[int]) -> None:
        before = self._check.orders.get(queue, ())
        order = [number for number in dict.fromkeys(before) if number in jobs]
        order += sorted(jobs - set(order))
        if queue not in self._check.orders or order != list(before):
            self.changes.put(NetwareTable.ORDER, queue, rows.write_order(order))

    def _note(self, queue: int, why: str) -> None:
        name = self._check.objects[queue].name
        self.done.append(
            Finding(
                "repaired", "queue", f"queue {name}", why, name, table=NetwareTable.QUEUE.value, key=queue
            )
        )
