"""The check of a queue service's store: faults with the names of queues, jobs and objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msmqwire.netware.store import rows
from msmqwire.netware.store.tables import LAYOUT, NetwareTable, job_key, queue_of
from msmqwire.service.store.changes import Key
from msmqwire.service.store.findings import Advance, Finding, of_row
from msmqwire.service.store.store_check import Fault, StoreCheck
from msmqwire.service.store.table import StoreTable

_NUMBER: Final = (1 << 16) - 1


class QueueServiceCheck:
    """A check of the store of a queue service."""

    def __init__(self, path: Path) -> None:
        """Open the store. Raises as `StoreCheck` does."""
        self.store = StoreCheck(path, LAYOUT)
        self._names: dict[int, str] = {}
        self._queues: set[int] = set()
        self._jobs: set[int] = set()
        self._ordered: set[int] = set()
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
        jobs = sorted(self._ordered - self._jobs - named)
        for key in jobs:
            yield self._named(Fault("lost", "it is lost", NetwareTable.JOB, key))
        queues = sorted({queue_of(key) for key in self._ordered | self._jobs} - self._queues)
        for queue in queues:
            why = "it is lost, and its jobs are without a queue"
            yield self._named(Fault("lost", why, NetwareTable.QUEUE, queue))
        found = {NetwareTable.JOB: len(jobs), NetwareTable.QUEUE: len(queues)}
        yield from (self._named(fault) for fault in lost if fault.rows > found[NetwareTable(fault.table)])

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
                self._names[key] = rows.read_object(key, content).name
            case NetwareTable.QUEUE:
                rows.read_queue(key, content)
                self._queues.add(key)
            case NetwareTable.JOB:
                rows.read_job(content)
                self._jobs.add(key)
            case NetwareTable.ORDER:
                self._ordered |= {job_key(key, number) for number in rows.read_order(content)}

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
        return self._names.get(queue, f"{queue:08X}")
