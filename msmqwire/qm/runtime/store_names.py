"""The check of a queue manager's store: faults with the names of queues and messages."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from struct import error as StructError
from typing import Final

from msmqwire.names.printable import counted
from msmqwire.qm.model.elements import Queue, short_name
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import serialization, stored_rows
from msmqwire.qm.store import LAYOUT
from msmqwire.service.store.changes import Key
from msmqwire.service.store.findings import Advance, Finding, Repair, of_row
from msmqwire.service.store.store_check import Fault, StoreCheck
from msmqwire.service.store.table import StoreTable

_COUNT_OF_META: Final = Table.META.value.encode()
_OF_MESSAGES: Final = frozenset({Table.MESSAGE, Table.PACKET, Table.OUTGOING})
_LOST_PART: Final = {Table.MESSAGE: "its place in a queue is lost", Table.PACKET: "its content is lost"}


class QueueManagerCheck:
    """A check of the store of a queue manager.

    Attributes:
        store: the check of its rows.
        meta: the rows of `Table.META`.
        queues: the queues by number.
        parents: for each the number of the queue whose journal it is, and of that whose subqueue it is.
        sequences: the numbers of the queues that have a sequence.
        held: the number of messages of each queue, and of lost ones.
        one_of: one of its messages.
        numbers: the numbers of the messages in the tables that have a row for each.
    """

    def __init__(self, path: Path) -> None:
        """Open the store. Raises as `StoreCheck` does."""
        self.store = StoreCheck(path, LAYOUT)
        self.meta: dict[bytes, bytes] = {}
        self.queues: dict[int, Queue] = {}
        self.parents: dict[int, tuple[int | None, int | None]] = {}
        self.sequences: set[int] = set()
        self.held = Counter[int]()
        self.one_of: dict[int, int] = {}
        self.numbers = {Table.MESSAGE: array("q"), Table.PACKET: array("q")}
        self._unreadable: list[Fault] = []
        self._lost_counters = False
        self._advance: Advance = lambda size: None

    def findings(self, advance: Advance) -> Iterator[Finding]:
        """Yield all faults."""
        self._advance = advance
        lost: list[Fault] = []
        named: set[tuple[StoreTable, Key]] = set()
        for fault in self.store.faults(self._observe):
            if fault.table is Table.META or fault.key == _COUNT_OF_META:
                self._lost_counters = True
            if fault.kind == "lost" and fault.table in self.numbers:
                lost.append(fault)
            else:
                if fault.table is not None and fault.key is not None:
                    named.add((fault.table, fault.key))
                yield self._named(fault)
        yield from map(self._named, self._unreadable)
        found = Counter[StoreTable]()
        for fault in self._halves():
            assert fault.table is not None and fault.key is not None, "it is a row"  # noqa: PT018
            if (fault.table, fault.key) not in named:
                found[fault.table] += 1
                yield self._named(fault)
        for fault in lost:
            assert fault.table is not None, "it is a table"
            if fault.rows > found[fault.table]:
                yield self._named(fault)
        yield from self._lost_queues()

    def _observe(self, table: StoreTable, key: Key, content: bytes) -> None:
        self._advance(len(content))
        if table in self.numbers and isinstance(key, int):
            self.numbers[Table(table.value)].append(key)
        try:
            if table is Table.MESSAGE:
                queue = stored_rows.read_position(content).queue
                self.held[queue] += 1
                if queue not in self.one_of and isinstance(key, int):
                    self.one_of[queue] = key
            elif table is Table.QUEUE and isinstance(key, int):
                self.queues[key], *parents = stored_rows.read_queue(key, content)
                self.parents[key] = (parents[0], parents[1])
            elif table is Table.SEQUENCE and isinstance(key, int):
                self.sequences.add(key)
            elif table is Table.META and isinstance(key, bytes):
                self.meta[key] = content
        except (ValueError, KeyError, TypeError, AttributeError, StructError) as exc:
            self._unreadable.append(Fault("damaged", f"it can't be read: {exc!r}", table, key))

    def _halves(self) -> Iterator[Fault]:
        """Yield the lost rows of messages of which one of two rows is left."""
        messages, packets = self.numbers[Table.MESSAGE], self.numbers[Table.PACKET]
        if messages == packets:
            return
        for table, there, here in ((Table.PACKET, messages, packets), (Table.MESSAGE, packets, messages)):
            for number in sorted(set(there) - set(here)):
                yield Fault("lost", _LOST_PART[table], table, number)

    def _lost_queues(self) -> Iterator[Finding]:
        for number in sorted(self.missing_queues()):
            why, name = "it is lost or damaged, and other queues belong to it", f"queue {number}"
            if messages := self.held[number]:
                why = f"it is lost or damaged, and {counted(messages, 'message')} in it are without a queue"
                name += self._destination(self.one_of[number])
            yield Finding("lost", "queue", name, why, table=Table.QUEUE.value, key=number)

    def missing_queues(self) -> set[int]:
        """Return the numbers of lost queues that messages are in, or whose journal or subqueue is there."""
        named = {number for parents in self.parents.values() for number in parents if number is not None}
        return (named | {number for number, held in self.held.items() if held}) - self.queues.keys()

    def repair(self) -> Repair:
        """Return the changes that the rest of the store needs, after all findings were taken."""
        from msmqwire.qm.runtime.store_repair import StoreRepair  # it needs this module

        return StoreRepair(self)

    def unreadable_rows(self) -> list[tuple[StoreTable, Key]]:
        """Return the rows that are those that were written, and can't be read all the same."""
        return [
            (fault.table, fault.key) for fault in self._unreadable if fault.table and fault.key is not None
        ]

    @property
    def lost_counters(self) -> bool:
        """Whether a counter may be lost, or be older than the last that was written."""
        return self._lost_counters

    def _named(self, fault: Fault) -> Finding:
        key = fault.key
        if isinstance(key, int) and fault.table in _OF_MESSAGES:
            return self._message(fault, key)
        finding = of_row(fault)
        if isinstance(key, int) and fault.table in (Table.QUEUE, Table.SEQUENCE):
            queue = self._queue(key)
            name = f"queue {queue or key}" + (", its sequence" if fault.table is Table.SEQUENCE else "")
            return finding._replace(what="queue", name=name, queue=queue)
        return finding

    def _queue(self, number: int) -> str | None:
        if number in self.queues:
            return short_name(self.queues[number])
        row = self.store.row(Table.QUEUE, number)
        try:
            return None if row is None else short_name(stored_rows.read_queue(number, row)[0])
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _destination(self, number: int) -> str:
        """Return where a message was sent to, in words; empty if that can't be read."""
        packet = self.store.row(Table.PACKET, number)
        try:
            sent_to = None if packet is None else serialization.from_stored(packet, NULL_GUID).destination
        except (ValueError, StructError):
            return ""
        return f", whose messages were sent to {sent_to}" if sent_to is not None else ""

    def _message(self, fault: Fault, number: int) -> Finding:
        """Return the finding for a fault of a message, with what is left of its names."""
        queue = identifier = label = None
        row, packet = self.store.row(Table.MESSAGE, number), self.store.row(Table.PACKET, number)
        try:
            if row is not None:
                queue = self._queue(stored_rows.read_position(row).queue)
            if packet is not None:
                message = serialization.from_stored(packet, NULL_GUID)
                label = message.label
                found = message.identifier
                identifier = None if found is None else f"{found.lineage}\\{found.uniquifier}"
        except (ValueError, StructError):
            pass  # the names that were found
        name = f"message {number}{f' of {queue}' if queue else ''}"
        name += f", {identifier}" if identifier else ""
        name += f", labelled {label!r}" if label else ""
        finding = of_row(fault)
        return finding._replace(what="message", name=name, queue=queue, identifier=identifier, label=label)
