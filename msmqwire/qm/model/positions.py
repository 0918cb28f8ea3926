"""The places of messages in a queue: [MS-MQDMPR] 3.1.1.2 and 3.1.1.11."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.message import Message

if TYPE_CHECKING:
    from msmqwire.qm.model.elements import Queue

_AVAILABLE: Final = PositionState.AVAILABLE
PRIORITY_SHIFT: Final = 56
"""The high byte of a LookupIdentifier orders priorities: DMPR-3.1.7.1.9-06."""


class MessagePosition:
    """The place of a message in a queue: [MS-MQDMPR] 3.1.1.11.

    The reserved entries Start and End of a list are positions of state Deleted, without a message.

    Attributes:
        queue: the queue that contains it.
        number: unique in the queue manager and never used again; larger for later ones.
        lookup_identifier: orders the positions of a queue.
        state: what may be done with the message.
        next, previous: the neighbours in the list.
        size: bytes of headers and body that count for quotas.
        stored: whether a store has it, or will with the changes of this step.
        counted: whether `Queue.total_bytes` has them.
        recoverable: whether it must survive.
        transaction: whether it is one of the operations of a transaction.
        expired: whether its time has run out while it was locked.
        silent: whether nobody has to be told of its end, known once its message has been in memory.
        listed: whether it is in its list.
        pins: cursors that stand at it: while there are any, it keeps its place when it is taken out.
    """

    __slots__ = (
        "_load",
        "_message",
        "counted",
        "expired",
        "listed",
        "lookup_identifier",
        "next",
        "number",
        "pins",
        "previous",
        "queue",
        "recoverable",
        "silent",
        "size",
        "state",
        "stored",
        "transaction",
    )

    def __init__(self, queue: Queue, number: int, lookup_identifier: int, size: int) -> None:
        self.queue, self.number, self.lookup_identifier = queue, number, lookup_identifier
        self.size = size
        self.state = PositionState.AVAILABLE
        self.next: MessagePosition = self
        self.previous: MessagePosition = self
        self.pins = 0
        self.counted = self.expired = self.listed = self.recoverable = False
        self.stored = self.transaction = self.silent = False
        self._message: Message | None = None
        self._load: Callable[[MessagePosition], Message] | None = None

    @property
    def message(self) -> Message:
        """MessageReference; read from the store where it is not in memory."""
        found = self._message
        if found is None:
            assert self._load is not None, "Start and End have no message"
            found = self._load(self)
            self.silent = not found.followed
        return found

    def hold(self, message: Message) -> None:
        """Keep the message in memory."""
        self._message, self.silent = message, not message.followed

    def keep_stored(self, load: Callable[[MessagePosition], Message]) -> None:
        """Keep the message in the store only: `load` reads it, again for each use."""
        self._message, self._load = None, load

    @property
    def held(self) -> bool:
        """Whether the message is in memory."""
        return self._message is not None

    def __repr__(self) -> str:
        return f"<MessagePosition {self.number} {self.state.name}>"


class MessagePositionList:
    """The positions of a queue, in the order of their LookupIdentifier: [MS-MQDMPR] 3.1.1.2.

    Adding, removing and finding the first available one take the same time however long the list is, as long
    as positions are added at the end of their priority.

    Attributes:
        start: the reserved entry where a new cursor stands; the first position follows it.
        end: the reserved entry behind the last one.
    """

    __slots__ = ("_by_identifier", "_first", "_last_of", "end", "start")

    def __init__(self, queue: Queue) -> None:
        self.start = MessagePosition(queue, 0, -1, 0)
        self.end = MessagePosition(queue, 0, 1 << 64, 0)
        self.start.state = self.end.state = PositionState.DELETED
        self.start.next, self.end.previous = self.end, self.start
        self._by_identifier: dict[int, MessagePosition] = {}
        self._last_of: dict[int, MessagePosition] = {}  # of each high byte
        self._first = self.start  # nothing before it is available

    def __len__(self) -> int:
        return len(self._by_identifier)

    def __iter__(self) -> Iterator[MessagePosition]:
        """The positions as they are now, in order."""
        found = []
        position = self.start.next
        while position is not self.end:
            if position.listed:
                found.append(position)
            position = position.next
        return iter(found)

    @property
    def head(self) -> MessagePosition:
        """The first position; `end` when there is none."""
        position = self.start.next
        while not position.listed and position is not self.end:
            position = position.next
        return position

    @property
    def tail(self) -> MessagePosition:
        """The last position; `start` when there is none."""
        position = self.end.previous
        while not position.listed and position is not self.start:
            position = position.previous
        return position

    def find(self, lookup_identifier: int) -> MessagePosition | None:
        """The position with this LookupIdentifier."""
        return self._by_identifier.get(lookup_identifier)

    def insert(self, position: MessagePosition) -> None:
        """Put a position in its place."""
        identifier = position.lookup_identifier
        group = identifier >> PRIORITY_SHIFT
        before = self._last_of.get(group)
        if before is None:
            lower = [other for other in self._last_of if other < group]
            before = self._last_of[max(lower)] if lower else self.start
        while before.lookup_identifier > identifier:
            before = before.previous
        following = before.next
        if following is self.end or following.lookup_identifier >> PRIORITY_SHIFT != group:
            self._last_of[group] = position
        position.previous, position.next = before, following
        following.previous = before.next = position
        position.listed = True
        self._by_identifier[identifier] = position
        if self._first.lookup_identifier > identifier:
            self._first = position

    def remove(self, position: MessagePosition) -> None:
        """Take a position out."""
        if position.listed:
            position.listed = False
            del self._by_identifier[position.lookup_identifier]
            if not position.pins:
                self._unlink(position)

    def pin(self, position: MessagePosition) -> None:
        """A cursor stands at a position now."""
        position.pins += 1

    def unpin(self, position: MessagePosition) -> None:
        """A cursor does not stand at a position any more."""
        position.pins -= 1
        if not (position.pins or position.listed or position is self.start or position is self.end):
            self._unlink(position)

    def _unlink(self, position: MessagePosition) -> None:
        group = position.lookup_identifier >> PRIORITY_SHIFT
        before, following = position.previous, position.next
        if self._last_of.get(group) is position:
            if before is not self.start and before.lookup_identifier >> PRIORITY_SHIFT == group:
                self._last_of[group] = before
            else:
                del self._last_of[group]
        before.next, following.previous = following, before
        if self._first is position:
            self._first = before

    def first_available(self) -> MessagePosition:
        """The first position that is available; `end` when there is none."""
        position = self._first
        while position.state is not _AVAILABLE and position is not self.end:
            position = position.next
        self._first = position if position is not self.end else self.end.previous
        return position

    def became_available(self, position: MessagePosition) -> None:
        """A position that was locked is available again: searches must not begin behind it."""
        if position.lookup_identifier < self._first.lookup_identifier:
            self._first = position
