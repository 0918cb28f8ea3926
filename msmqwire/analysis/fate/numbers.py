"""The second stage: observations of messages by a number, in a sequence or as a receive.

Order acknowledgements and stream receipts are about all messages of a sequence up to a number. They may
come by another connection than the messages, and so may the end of a receive.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Final

from msmqwire.analysis.fate.model import EventKind
from msmqwire.analysis.fate.observations import AboutNumber, Claim, Numbered, Observation
from msmqwire.analysis.lint.queue_managers import Place, QueueManagers, two_addresses

_Heap = list[tuple[int, int, Numbered]]
"""Messages by their number, those that are equal in their order."""

NUMBERED_MAX: Final = 1 << 20
"""Numbered messages that wait, of all groups; of more, the group that was silent longest is forgotten."""
OWNERS_MAX: Final = 16
"""Queue managers that use the same group; of more, the oldest is forgotten."""
UNRELATED_MAX: Final = 32
"""Messages to which an acknowledgement from the wrong place is noted."""

_OF_ORDER: Final = frozenset({EventKind.ORDER_ACK, EventKind.STREAM_RECEIPT})


class Group:
    """The numbered messages of one group.

    Attributes:
        size: the number that wait.
    """

    def __init__(self) -> None:
        self.size = 0
        self._waiting: OrderedDict[str, _Heap] = OrderedDict()  # heaps, by owner
        self._received: OrderedDict[int, Numbered] = OrderedDict()
        self._pushed = 0

    def add(self, numbered: Numbered) -> None:
        """Take a message of a sequence, or one that was handed out."""
        if numbered.is_received:
            self.size += numbered.number not in self._received
            self._received[numbered.number] = numbered
            return
        heap = self._waiting.setdefault(numbered.owner, [])
        self._pushed += 1
        heappush(heap, (numbered.number, self._pushed, numbered))
        self.size += 1
        if len(self._waiting) > OWNERS_MAX:
            self.size -= len(self._waiting.popitem(last=False)[1])

    def told(self, about: AboutNumber) -> Iterator[Observation]:
        """Take an event about a number; yield it for each message that it is about."""
        if about.what not in _OF_ORDER:
            numbered = self._received.pop(about.number, None)
            if numbered is not None:
                self.size -= 1
                yield Observation(numbered.key, about.where, about.what)
            return
        for owner in (about.owner, "") if about.owner else self._owners_at(about.where.dst):
            heap = self._waiting.get(owner)
            if heap:
                yield from self._acknowledged(heap, about)

    def _owners_at(self, address: str) -> list[str]:
        """Return the owners that sent from an address, where the acknowledgement goes; all if none did.

        Two queue managers that begin a sequence in the same second may give it the same identifier.
        """
        owners = list(self._waiting)
        there = [owner for owner in owners if _sent_from(self._waiting[owner], address)]
        return there or owners

    def _acknowledged(self, heap: _Heap, about: AboutNumber) -> Iterator[Observation]:
        unrelated: _Heap = []
        before = len(heap)
        while heap and heap[0][0] <= about.number and len(unrelated) < UNRELATED_MAX:
            entry = heappop(heap)
            if not _is_from_its_way(about, entry[2]):
                unrelated.append(entry)
            yield Observation(entry[2].key, about.where, about.what, sender_qm=about.sender_qm)
        for entry in unrelated:
            heappush(heap, entry)
        self.size += len(heap) - before


def _sent_from(heap: _Heap, address: str) -> bool:
    return bool(heap) and heap[0][2].where.src == address


def _is_from_its_way(about: AboutNumber, numbered: Numbered) -> bool:
    """Whether an acknowledgement comes from where the message went."""
    if about.where.src == numbered.where.dst:
        return True
    return about.sender_qm in {numbered.receiver_qm, numbered.destination_qm} - {""}


class Numbers:
    """The numbered messages of all groups."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, Group] = OrderedDict()
        self._queue_managers = QueueManagers()
        self._size = 0

    def feed(self, sighting: Numbered | AboutNumber | Claim) -> Iterable[Observation]:
        """Take the next sighting; return its observations of messages."""
        if isinstance(sighting, Claim):
            return self._claimed(sighting)
        group = self._groups.get(sighting.group)
        if isinstance(sighting, AboutNumber):
            return () if group is None else self._told(group, sighting)
        if group is None:
            group = self._groups[sighting.group] = Group()
        else:
            self._groups.move_to_end(sighting.group)
        before = group.size
        group.add(sighting)
        self._size += group.size - before
        while self._size > NUMBERED_MAX:
            _, forgotten = self._groups.popitem(last=False)
            self._size -= forgotten.size
        return ()

    def _told(self, group: Group, about: AboutNumber) -> Iterator[Observation]:
        before = group.size
        yield from group.told(about)
        self._size += group.size - before
        if not group.size:
            del self._groups[about.group]

    def _claimed(self, claim: Claim) -> Iterator[Observation]:
        """Yield that the queue manager which has sent a message is at another address, too."""
        where = claim.where
        here = Place(where.src, where.file, where.frame)
        there = self._queue_managers.add(claim.group, here)
        if there is not None:
            guid = claim.group.rpartition(" ")[2]
            yield Observation(
                claim.key, where, EventKind.SECOND_ADDRESS, detail=two_addresses(guid, here, there)
            )
