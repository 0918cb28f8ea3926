"""Changes that a damaged store of a queue manager needs, beside the loss of rows, before it can be opened.

A message without one of its two rows is deleted. A queue that is lost is made again, if messages that are
whole are in it or other queues belong to it: under the name that its messages were sent to, with the
properties of a new queue. Counters are set beyond all that may have been used.
"""

from __future__ import annotations

from struct import error as StructError
from typing import Final
from uuid import UUID, uuid4

from msmqwire.names import DirectName
from msmqwire.names.printable import counted
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager, short_name
from msmqwire.qm.model.enumerations import INFINITE, QueueType
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import recovery, serialization, stored_rows
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.message_identity import MESSAGE_ID_ORDINAL
from msmqwire.qm.runtime.folder import LISTENING, QUOTA, default_name, own_addresses
from msmqwire.qm.runtime.store_names import QueueManagerCheck
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.findings import Finding

_SYSTEM_QUEUES: Final = {1: "JOURNAL", 2: "DEADLETTER", 3: "DEADXACT"}
"""By their numbers: a new queue manager makes these first."""
_LEAP: Final = 1 << 24
"""Added to a counter whose row is lost."""
_ORDINALS: Final = 1 << 32


class StoreRepair:
    """The changes for one store.

    Attributes:
        changes: those of rows.
        done: what they do, for people; lost rows are not among it.
    """

    def __init__(self, check: QueueManagerCheck) -> None:
        """Find the changes, after all findings of the check were taken."""
        self._check = check
        self.changes = Changes()
        self.done: list[Finding] = []
        manager = QueueManager(NULL_GUID)
        if recovery.IDENTIFIER in check.meta:
            manager.identifier = UUID(bytes=check.meta[recovery.IDENTIFIER])
        self._manager = manager
        if stored_rows.QUEUE_MANAGER in check.meta:
            stored_rows.read_queue_manager(manager, check.meta[stored_rows.QUEUE_MANAGER])
        if not manager.computer_name:
            self._name_computer()
        listening = check.meta.get(LISTENING, b"").decode()
        self._lookup = Lookup(manager, own_addresses(listening))
        for number, queue in sorted(check.queues.items()):
            self._relate(number, queue)
            if check.parents[number] == (None, None):
                self._lookup.add(queue)
        self._delete_rows()
        for number in sorted(check.missing_queues()):
            self._make(number)
        self._make_journals()
        for number in check.sequences - check.queues.keys():  # a later queue may get the number
            self.changes.delete(Table.SEQUENCE, number)
        self._advance_counters()

    def _name_computer(self) -> None:
        """Find the name of the computer, which is lost, in those of its queues."""
        names = (queue.pathname.partition("\\")[0] for queue in self._check.queues.values())
        name, manager = next(filter(None, names), ""), self._manager
        manager.computer_name = manager.qualified_computer_name = name or default_name()
        if name:
            manager.queue_manager_quota = QUOTA
            stored_rows.put_queue_manager(self.changes, manager)

    def _relate(self, number: int, queue: Queue) -> None:
        """Connect a queue to that whose journal or subqueue it is."""
        parents, queues = self._check.parents, self._check.queues
        if (journal_of := parents[number][0]) in queues:
            queue.owner_queue, queues[journal_of].journal = queues[journal_of], queue
        elif (subqueue_of := parents[number][1]) in queues:
            queue.owner_queue = queues[subqueue_of]

    def _delete_rows(self) -> None:
        for table, key in self._check.unreadable_rows():
            self.changes.delete(table, key)
        messages, packets = (set(self._check.numbers[table]) for table in (Table.MESSAGE, Table.PACKET))
        deleted = {key for table, key in self._check.unreadable_rows() if table is Table.MESSAGE}
        for number in messages ^ packets | deleted:
            assert isinstance(number, int), "it is the number of a message"
            for table in (Table.MESSAGE, Table.PACKET, Table.OUTGOING):
                self.changes.delete(table, number)

    def _make(self, number: int) -> None:
        """Make a lost queue again."""
        check, manager, lookup = self._check, self._manager, self._lookup
        message = self._message_in(number)
        queue = Queue(uuid4(), number=number, quota=INFINITE, security=access.default_security(None))
        owner = check.queues.get(number - 1)
        if number in _SYSTEM_QUEUES:
            queue.pathname = f"{manager.computer_name}\\system$;{_SYSTEM_QUEUES[number]}"
            queue.queue_type, queue.transactional = QueueType.SYSTEM, number == max(_SYSTEM_QUEUES)
        elif owner is not None and self._lacks_journal(owner):
            _be_journal(queue, owner)
        else:
            queue.pathname = queue.qualified_pathname = self._pathname(number, message)
            queue.private_queue_number = lookup.unused_private_number()
            queue.transactional = message is not None and (
                message.transactional or message.transaction_identifier is not None
            )
        check.queues[number] = queue
        for other, (journal_of, subqueue_of) in check.parents.items():
            if journal_of == number:
                queue.journal = check.queues[other]
            if number in (journal_of, subqueue_of):
                check.queues[other].owner_queue = queue
        lookup.add(queue)
        held = counted(check.held[number], "message")
        self._put(queue, f"it is made again with {held}, and with the properties of a new queue")

    def _lacks_journal(self, queue: Queue) -> bool:
        plain = queue.queue_type is not QueueType.SYSTEM and not isinstance(queue, OutgoingQueue)
        return plain and queue.owner_queue is None and queue.journal is None

    def _pathname(self, number: int, message: Message | None) -> str:
        """Return the name that a lost queue had, as far as its messages or its subqueues have it."""
        host = self._manager.computer_name
        names = [
            self._check.queues[other].pathname.partition(";")[0]
            for other, of in self._check.parents.items()
            if number in of
        ]
        to = None if message is None else message.destination
        is_plain = isinstance(to, DirectName) and to.private and not (to.journal or to.subqueue)
        if isinstance(to, DirectName) and is_plain and self._lookup.is_local_name(to):
            names.append(f"{host}\\private$\\{to.queue}")
        for at in range(1 + len(names)):
            name = names[at] if at < len(names) else f"{host}\\private$\\recovered-{number}"
            if self._lookup.path(name) is None:
                return name
        return f"{host}\\private$\\recovered-{number}-{uuid4()}"

    def _message_in(self, number: int) -> Message | None:
        held = self._check.one_of.get(number)
        packet = None if held is None else self._check.store.row(Table.PACKET, held)
        try:
            return None if packet is None else serialization.from_stored(packet, self._manager.identifier)
        except (ValueError, StructError):
            return None

    def _make_journals(self) -> None:
        """Make the lost journals of queues, which every queue has."""
        queues = self._check.queues
        number = max([*queues, *self._check.held], default=0)
        for queue in list(queues.values()):
            if self._lacks_journal(queue) and queue.private_queue_number > 0:
                number += 1
                journal = Queue(uuid4(), number=number)
                _be_journal(journal, queue)
                self._put(journal, "it is made again, empty")

    def _put(self, queue: Queue, why: str) -> None:
        stored_rows.put_queue(self.changes, queue)
        name = short_name(queue)
        self.done.append(
            Finding(
                "repaired", "queue", f"queue {name}", why, name, table=Table.QUEUE.value, key=queue.number
            )
        )

    def _advance_counters(self) -> None:
        """Use no number again that a message or a peer may know."""
        meta, leap = self._check.meta, _LEAP if self._check.lost_counters else 0
        number = int.from_bytes(meta.get(stored_rows.SEQUENTIAL_ID, b""), "little")
        highest = max([number, *(numbers[-1] for numbers in self._sorted_numbers())])
        if highest + leap > number:
            stored_rows.put_sequential_id(self.changes, highest + leap)
        if leap:
            ordinal = int.from_bytes(meta.get(MESSAGE_ID_ORDINAL, b""), "little")
            for held in self._check.numbers[Table.MESSAGE]:
                ordinal = max(ordinal, self._own_ordinal(held))
            ordinal = (ordinal + leap) % (_ORDINALS - 1)
            self.changes.put(Table.META, MESSAGE_ID_ORDINAL, ordinal.to_bytes(8, "little"))

    def _sorted_numbers(self) -> list[list[int]]:
        return [sorted(numbers) for numbers in self._check.numbers.values() if numbers]

    def _own_ordinal(self, number: int) -> int:
        packet = self._check.store.row(Table.PACKET, number)
        try:
            message = None if packet is None else serialization.from_stored(packet, NULL_GUID)
        except (ValueError, StructError):
            return 0
        if message is None or message.identifier is None:
            return 0
        own = message.identifier.lineage == self._manager.identifier
        return message.identifier.uniquifier if own else 0


def _be_journal(journal: Queue, queue: Queue) -> None:
    """Make a queue the journal of another one."""
    journal.pathname, journal.quota = queue.pathname, queue.journal_quota
    journal.queue_type, journal.security = QueueType.SYSTEM, queue.security
    journal.transactional = queue.transactional
    journal.owner_queue, queue.journal = queue, journal
