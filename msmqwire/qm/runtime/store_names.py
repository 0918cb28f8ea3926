"""The check of a queue manager's store: faults with the names of queues and messages."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from struct import error as StructError
from typing import Final

from msmqwire.names.printable import counted
from msmqwire.qm.model.elements import short_name
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import serialization, stored_rows
from msmqwire.qm.store import LAYOUT
from msmqwire.service.store.changes import Key
from msmqwire.service.store.findings import Advance, Finding, of_row
from msmqwire.service.store.store_check import Fault, StoreCheck
from msmqwire.service.store.table import StoreTable

_OF_MESSAGES: Final = frozenset({Table.MESSAGE, Table.PACKET, Table.OUTGOING})
_LOST_PART: Final = {Table.MESSAGE: "its place in a queue is lost", Table.PACKET: "its content is lost"}


class QueueManagerCheck:
    """A check of the store of a queue manager."""

    def __init__(self, path: Path) -> None:
        """Open the store. Raises as `StoreCheck` does."""
        self.store = StoreCheck(path, LAYOUT)
        self._queues: dict[int, str] = {}
        self._held = Counter[int]()  # messages by number of the queue
        self._one_of: dict[int, int] = {}  # one of them
        self._numbers = {Table.MESSAGE: array("q"), Table.PACKET: array("q")}
        self._unreadable: list[Fault] = []
        self._advance: Advance = lambda size: None

    def findings(self, advance: Advance) -> Iterator[Finding]:
        """Yield all faults."""
        self._advance = advance
        lost: list[Fault] = []
        named: set[tuple[StoreTable, Key]] = set()
        for fault in self.store.faults(self._observe):
            if fault.kind == "lost" and fault.table in self._numbers:
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
        if table in self._numbers and isinstance(key, int):
            self._numbers[Table(table.value)].append(key)
        try:
            if table is Table.MESSAGE:
                queue = stored_rows.read_position(content).queue
                self._held[queue] += 1
                if queue not in self._one_of and isinstance(key, int):
                    self._one_of[queue] = key
            elif table is Table.QUEUE and isinstance(key, int):
                self._queues[key] = short_name(stored_rows.read_queue(key, content)[0])
        except (ValueError, KeyError, TypeError, AttributeError, StructError) as exc:
            self._unreadable.append(Fault("damaged", f"it can't be read: {exc!r}", table, key))

    def _halves(self) -> Iterator[Fault]:
        """Yield the lost rows of messages of which one of two rows is left."""
        messages, packets = self._numbers[Table.MESSAGE], self._numbers[Table.PACKET]
        if messages == packets:
            return
        for table, there, here in ((Table.PACKET, messages, packets), (Table.MESSAGE, packets, messages)):
            for number in sorted(set(there) - set(here)):
                yield Fault("lost", _LOST_PART[table], table, number)

    def _lost_queues(self) -> Iterator[Finding]:
        for number, messages in sorted(self._held.items()):
            if number not in self._queues:
                why = f"it is lost or damaged, and {counted(messages, 'message')} in it are without a queue"
                name = f"queue {number}{self._destination(self._one_of[number])}"
                yield Finding("lost", "queue", name, why, table=Table.QUEUE.value, key=number)

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
        if number in self._queues:
            return self._queues[number]
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
