"""The check of a queue service's store: faults with the names of queues, jobs and objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msmqwire.netware.model.bindery import BinderyObject
from msmqwire.netware.store import rows
from msmqwire.netware.store.tables import LAYOUT, NetwareTable, job_key, queue_of
from msmqwire.service.store.changes import Key
from msmqwire.service.store.findings import Advance, Finding, Repair, of_row
from msmqwire.service.store.store_check import Fault, StoreCheck
from msmqwire.service.store.table import StoreTable

_NUMBER: Final = (1 << 16) - 1


class QueueServiceCheck:
    """A check of the store of a queue service.

    Attributes:
        store: the check of its rows.
        objects: the objects of the bindery by ID.
        queues: the IDs of the queues.
        orders: the numbers of the jobs of queues, in order.
    """

    def __init__(self, path: Path) -> None:
        """Open the store. Raises as `StoreCheck` does."""
        self.store = StoreCheck(path, LAYOUT)
        self.objects: dict[int, BinderyObject] = {}
        self.queues: set[int] = set()
        self.orders: dict[int, tuple[int, ...]] = {}
        self._jobs: set[int] = set()
        self._unreadable: list[Fault] = []
        self._advance: Advance = lambda size: None

    def findings(self, advance: Advance) -> Iterator[Finding]:
        """Yield all faults."""
        self._advance = advance
        lost: list[Fault] = []
        named: set[Key] = set()
        for fault in self.store.faults(self._observe):
            if fault.kind == "lost" and fault.table in (NetwareTable.JOB, NetwareTable.QUEUE):
                lost.append(fault)
            else:
                if fault.table is NetwareTable.JOB and fault.key is not None:
                    named.add(fault.key)
                yield self._named(fault)
        yield from map(self._named, self._unreadable)
        ordered = {job_key(queue, number) for queue, numbers in self.orders.items() for number in numbers}
        jobs = sorted(ordered - self._jobs - named)
        for key in jobs:
            yield self._named(Fault("lost", "it is lost", NetwareTable.JOB, key))
        queues = sorted({queue_of(key) for key in ordered | self._jobs} - self.queues)
        for queue in queues:
            why = "it is lost, and its jobs are without a queue"
            yield self._named(Fault("lost", why, NetwareTable.QUEUE, queue))
        found = {NetwareTable.JOB: len(jobs), NetwareTable.QUEUE: len(queues)}
        yield from (self._named(fault) for fault in lost if fault.rows > found[NetwareTable(fault.table)])

    def jobs_of_queues(self) -> dict[int, set[int]]:
        """Return the numbers of the jobs that are whole, by the IDs of their queues, lost ones too."""
        found: dict[int, set[int]] = {}
        for key in self._jobs:
            found.setdefault(queue_of(key), set()).add(key & _NUMBER)
        return found

    def repair(self) -> Repair:
        """Return the changes that the rest of the store needs, after all findings were taken."""
        from msmqwire.netware.store.repair import StoreRepair  # it needs this module

        return StoreRepair(self)

    def unreadable_rows(self) -> list[tuple[StoreTable, Key]]:
        """Return the rows that are those that were written, and can't be read all the same."""
        return [
            (fault.table, fault.key) for fault in self._unreadable if fault.table and fault.key is not None
        ]

    def _observe(self, table: StoreTable, key: Key, content: bytes) -> None:
        self._advance(len(content))
        try:
            if isinstance(key, int):
                self._note(table, key, content)
        except (ValueError, KeyError, TypeError) as exc:
            self._unreadable.append(Fault("damaged", f"it can't be read: {exc!r}", table, key))

    def _note(self, table: StoreTable, key: int, content: bytes) -> None:
        match table:
            case NetwareTable.OBJECT:
                self.objects[key] = rows.read_object(key, content)
            case NetwareTable.QUEUE:
                rows.read_queue(key, content)
                self.queues.add(key)
            case NetwareTable.JOB:
                rows.read_job(content)
                self._jobs.add(key)
            case NetwareTable.ORDER:
                self.orders[key] = rows.read_order(content)

    def _named(self, fault: Fault) -> Finding:
        finding, key = of_row(fault), fault.key
        if not isinstance(key, int):
            return finding
        match fault.table:
            case NetwareTable.JOB:
                queue = self._name(queue_of(key))
                return finding._replace(what="job", name=f"job {key & _NUMBER} of {queue}", queue=queue)
            case NetwareTable.QUEUE | NetwareTable.ORDER:
                queue = self._name(key)
                part = ", the order of its jobs" if fault.table is NetwareTable.ORDER else ""
                return finding._replace(what="queue", name=f"queue {queue}{part}", queue=queue)
            case NetwareTable.OBJECT:
                return finding._replace(what="object", name=f"object {key:08X}")
        return finding

    def _name(self, queue: int) -> str:
        return self.objects[queue].name if queue in self.objects else f"{queue:08X}"
