"""Positions of messages in a queue: [MS-MQDMPR] 3.1.1.2 and 3.1.1.11."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from msmqwire.errors import StoreDamaged
from msmqwire.qm.model.enumerations import MoveReason, PositionState
from msmqwire.qm.model.message import Message

if TYPE_CHECKING:
    from msmqwire.qm.model.elements import Queue

_AVAILABLE: Final = PositionState.AVAILABLE
PRIORITY_SHIFT: Final = 56
"""The high byte of a LookupIdentifier orders priorities: DMPR-3.1.7.1.9-06."""


class MoveHistory(NamedTuple):
    """The history of a message in this queue manager: SubqueueHeader, [MS-MQRR] 2.2.5.3.

    Attributes:
        abort_count: times that it returned to its queue since its last move, by a reader, an aborted
            transaction, or the end of either.
        move_count: times that it was moved to another queue, except by the system.
        last_move_time: milliseconds since 1970-01-01, modulo 2^32; 0 if it was never moved.
        deliveries: times that a program has received it in its present queue and has not ended it: it gave
            it back, or the program, its transaction or the queue manager ended meanwhile. Messages that were
            only pushed ahead do not count.
        reason: why the queue manager moved it to its present queue.
    """

    abort_count: int = 0
    move_count: int = 0
    last_move_time: int = 0
    deliveries: int = 0
    reason: MoveReason = MoveReason.NONE

    def aborted(self) -> MoveHistory:
        """Return the history after one more failed attempt to read or move the message."""
        return self._replace(abort_count=min(self.abort_count + 1, _COUNT_MAX))

    def delivered(self) -> MoveHistory:
        """Return the history after one more delivery without an end."""
        return self._replace(deliveries=min(self.deliveries + 1, _COUNT_MAX))

    def moved(self, utc: int) -> MoveHistory:
        """Return the history after a move, at `utc` seconds since 1970-01-01."""
        # 0 means that a message was never moved.
        time = 1000 * utc & _COUNT_MAX or 1
        return MoveHistory(0, min(self.move_count + 1, _COUNT_MAX), time)


_COUNT_MAX: Final = 0xFFFFFFFF
NO_HISTORY: Final = MoveHistory()
"""The history of a message that was neither moved nor returned to its queue."""


class MessagePosition:
    """The position of a message in a queue: [MS-MQDMPR] 3.1.1.11.

    The reserved entries Start and End of a list are positions of state Deleted, without a message.

    Attributes:
        queue: the queue that contains it.
        number: unique in the queue manager, increasing, and never reused.
        lookup_identifier: orders the positions of a queue.
        state: what may be done with the message.
        next, previous: the neighbours in the list.
        size: bytes of headers and body that count towards quotas.
        stored: whether the store contains it, or will with the changes of this step.
        counted: whether `Queue.total_bytes` includes `size`.
        recoverable: whether it must survive a restart.
        transaction: whether it is part of a transaction.
        expired: whether it has expired while it was locked.
        silent: whether its sender asked for no report of its outcome; known once its message was in memory.
        listed: whether it is in its list.
        origin: the origin of its message, which it is counted for.
        charged_bytes: bytes that the origin is charged with for a message in memory; 0 for a recoverable one.
        pins: the number of cursors at it: while there are any, it stays linked when it is removed.
        history: the counts of its moves and returns.
    """

    __slots__ = (
        "_load",
        "_message",
        "charged_bytes",
        "counted",
        "expired",
        "history",
        "listed",
        "lookup_identifier",
        "next",
        "number",
        "origin",
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
        self.queue, self.number, self.lookup_identifier = queue, number, lookup_identifier  # DMPR-3.1.1.11-09
        self.size = size
        self.state = _AVAILABLE  # DMPR-3.1.1.11-02
        self.next: MessagePosition = self
        self.previous: MessagePosition = self
        self.pins = 0
        self.history = NO_HISTORY
        self.counted = self.expired = self.listed = self.recoverable = False
        self.stored = self.transaction = self.silent = False
        self.origin = ""
        self.charged_bytes = 0
        self._message: Message | None = None
        self._load: Callable[[MessagePosition], Message] | None = None

    @property
    def message(self) -> Message:  # DMPR-3.1.1.11-05
        """MessageReference; read from the store if it is not in memory.

        Raises StoreDamaged if it can't be read.
        """
        message = self._message
        if message is None:
            if self._load is None:
                raise StoreDamaged(f"message {self.number} was set aside", file="the store")
            message = self._load(self)
            self.silent = not message.outcome_requested
        return message

    def keep_in_memory(self, message: Message) -> None:
        """Keep the message in memory."""
        self._message, self.origin, self.silent = message, message.origin, not message.outcome_requested

    def remember(self, history: MoveHistory) -> None:
        """Set the history, which readers of the message see as well."""
        self.history = history
        if self._message is not None:
            self._message.deliveries, self._message.move_reason = history.deliveries, history.reason

    def keep_in_store(self, load: Callable[[MessagePosition], Message]) -> None:
        """Keep the message in the store only, where `load` reads it for each use."""
        self._message, self._load = None, load

    def set_aside(self) -> None:
        """Keep a message that can't be read away from all readers."""
        self._load, self.state, self.silent = None, PositionState.LOCKED, True

    @property
    def is_set_aside(self) -> bool:
        """Whether the message can't be read."""
        return self._message is None and self._load is None

    @property
    def in_memory(self) -> bool:
        """Whether the message is in memory."""
        return self._message is not None

    def __repr__(self) -> str:
        return f"<MessagePosition {self.number} {self.state.name}>"


class MessagePositionList:
    """The positions of a queue, in the order of their LookupIdentifier: [MS-MQDMPR] 3.1.1.2.

    Inserting, removing and finding the first available position take constant time, as long as positions are
    inserted at the end of their priority.

    Attributes:
        start: the reserved entry before the first position, where a new cursor begins.
        end: the reserved entry after the last position.
        inserted: the count of positions inserted so far, removed ones included.
    """

    __slots__ = ("_by_identifier", "_last_by_priority", "_search_start", "end", "inserted", "start")

    def __init__(self, queue: Queue) -> None:
        self.start = MessagePosition(queue, 0, -1, 0)  # DMPR-3.1.1.2-31
        self.end = MessagePosition(queue, 0, 1 << 64, 0)  # DMPR-3.1.1.2-32
        self.start.state = self.end.state = PositionState.DELETED
        self.start.next, self.end.previous = self.end, self.start
        self._by_identifier: dict[int, MessagePosition] = {}
        self._last_by_priority: dict[int, MessagePosition] = {}  # by the high byte of LookupIdentifier
        self._search_start = self.start  # no position before it is available
        self.inserted = 0

    def __len__(self) -> int:
        return len(self._by_identifier)

    def __iter__(self) -> Iterator[MessagePosition]:
        """Iterate over a snapshot of the positions, in order."""
        positions = []
        position = self.start.next
        while position is not self.end:
            if position.listed:
                positions.append(position)
            position = position.next
        return iter(positions)

    @property
    def head(self) -> MessagePosition:
        """The first position; `end` of an empty list."""
        position = self.start.next
        while not position.listed and position is not self.end:  # DMPR-3.1.1.2-29
            position = position.next
        return position

    @property
    def tail(self) -> MessagePosition:
        """The last position; `start` of an empty list."""
        position = self.end.previous
        while not position.listed and position is not self.start:  # DMPR-3.1.1.2-30
            position = position.previous
        return position

    def find(self, lookup_identifier: int) -> MessagePosition | None:
        """Return the position with a LookupIdentifier."""
        return self._by_identifier.get(lookup_identifier)

    def heads(self) -> list[MessagePosition]:
        """Return the first position of each priority; it may have been removed while cursors are at it."""
        lasts = [self._last_by_priority[priority] for priority in sorted(self._last_by_priority)]
        return [before.next for before in (self.start, *lasts[:-1])] if lasts else []

    def insert(self, position: MessagePosition) -> None:
        """Insert a position by its LookupIdentifier."""
        identifier = position.lookup_identifier
        priority = identifier >> PRIORITY_SHIFT
        before = self._last_by_priority.get(priority)
        if before is None:
            lower = [other for other in self._last_by_priority if other < priority]
            before = self._last_by_priority[max(lower)] if lower else self.start  # MQMQ-2.2.19.1-06
        while before.lookup_identifier > identifier:  # DMPR-3.1.1.2-28
            before = before.previous
        following = before.next
        if following is self.end or following.lookup_identifier >> PRIORITY_SHIFT != priority:
            self._last_by_priority[priority] = position
        position.previous, position.next = before, following  # DMPR-3.1.1.11-07 and -08
        following.previous = before.next = position
        position.listed = True
        self.inserted += 1
        self._by_identifier[identifier] = position
        if self._search_start.lookup_identifier > identifier:
            self._search_start = position

    def remove(self, position: MessagePosition) -> None:
        """Remove a position; it stays linked while cursors are at it."""
        if position.listed:
            position.listed = False
            del self._by_identifier[position.lookup_identifier]
            if not position.pins:  # DMPR-3.1.1.11-10
                self._unlink(position)

    def pin(self, position: MessagePosition) -> None:
        """Count a cursor that moved to a position."""
        position.pins += 1  # DMPR-3.1.1.11-10

    def unpin(self, position: MessagePosition) -> None:
        """Uncount a cursor that left a position; unlink a removed position without cursors."""
        position.pins -= 1
        if not (position.pins or position.listed or position is self.start or position is self.end):
            self._unlink(position)

    def _unlink(self, position: MessagePosition) -> None:
        priority = position.lookup_identifier >> PRIORITY_SHIFT
        before, following = position.previous, position.next
        if self._last_by_priority.get(priority) is position:
            if before is not self.start and before.lookup_identifier >> PRIORITY_SHIFT == priority:
                self._last_by_priority[priority] = before
            else:
                del self._last_by_priority[priority]
        before.next, following.previous = following, before
        if self._search_start is position:
            self._search_start = before

    def first_available(self) -> MessagePosition:
        """Return the first position that is available; `end` if there is none."""
        position = self._search_start
        while position.state is not _AVAILABLE and position is not self.end:
            position = position.next
        self._search_start = position if position is not self.end else self.end.previous
        return position

    def became_available(self, position: MessagePosition) -> None:
        """Note that a locked position is available again, so that searches do not begin after it."""
        if position.lookup_identifier < self._search_start.lookup_identifier:
            self._search_start = position
