"""The known state of the queues of the peer: their messages, and the open handles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from msmqwire.remote_read.constants import Access, ShareMode
from msmqwire.rpc.handles import ContextHandle
from msmqwire.schema import Record

SETTLED_S: Final = 1.0
"""The time after its acknowledgement in which a message may still be on its way into the queue."""
PATIENT_MS: Final = 1_000
"""A read with this wait finds a message that is on its way."""


class Where(Enum):
    """The place of a message."""

    AVAILABLE = auto()
    LOCKED = auto()
    GONE = auto()
    UNSURE = auto()
    """In the queue, locked or gone: that depends on choices the specification leaves open, or on time."""


@dataclass(slots=True, eq=False)
class QueuedMessage:
    """A message that was sent to a queue of the peer.

    Attributes:
        number: its MessageID.
        packet: the packet as sent.
        where: its place. seen: whether the peer has shown it in the queue.
        acknowledged: the time of the peer's acknowledgement, by the monotonic clock; None if it has not.
        sequence: its pSequenceId, once it was seen.
        purged: whether the queue was purged while it was in it.
        left: the requirement by which it is gone.
    """

    number: int
    packet: Record
    where: Where = Where.UNSURE
    seen: bool = False
    acknowledged: float | None = None
    sequence: int | None = None
    purged: bool = False
    left: str = ""

    @property
    def settled(self) -> bool:
        """Whether it has reached the queue for certain."""
        if self.seen:
            return True
        return self.acknowledged is not None and time.monotonic() >= self.acknowledged + SETTLED_S

    def leave(self, requirement: str) -> None:
        """The message is gone, by this requirement."""
        self.where, self.left = Where.GONE, requirement


@dataclass(slots=True, eq=False)
class PeerQueue:
    """A queue of the peer.

    Attributes:
        known: whether all messages in it are known: it was purged.
        messages: the messages sent to it, in order.
    """

    known: bool = False
    messages: list[QueuedMessage] = field(default_factory=list)

    def purge(self) -> None:
        """All messages go; locked ones go once they are returned."""
        self.known = True
        for message in self.messages:
            message.purged = message.purged or message.where is not Where.GONE
            if message.where is Where.AVAILABLE:
                message.leave("MQRR-3.1.4.6-04")

    def candidates(
        self, timeout: int, after: QueuedMessage | None = None
    ) -> tuple[list[QueuedMessage], bool]:
        """Return the messages that may be the first one that is available, and whether one certainly is.

        Args:
            timeout: the time that the read waits: ms.
            after: the first one after this is looked for.
        """
        found: list[QueuedMessage] = []
        messages = self.messages
        if after is not None and after in messages:
            messages = messages[messages.index(after) + 1 :]
        for message in messages:
            if message.where is Where.UNSURE:
                found.append(message)
            elif message.where is Where.AVAILABLE:
                found.append(message)
                if message.settled or timeout >= PATIENT_MS:
                    return found, True
        return found, False


@dataclass(slots=True, eq=False)
class CursorState:
    """A cursor.

    Attributes:
        at: the message that it was last seen at.
        certain: whether that is where it is; one that was never used is at the beginning.
    """

    at: QueuedMessage | None = None
    certain: bool = True


@dataclass(slots=True, eq=False)
class OpenQueue:
    """A handle that the peer has given.

    Attributes:
        handle: the handle.
        group: the association group that it was given to.
        name: the name of the queue, in lower case.
        queue: the queue; None for an unknown one.
        access: dwAccess.
        share: dwShareMode.
        pending: by request id, the message of a receive that has not ended.
        uncertain: request ids for which the peer may have an entry, or none.
        waiting: request ids of reads that wait for a message.
        cursors: the open ones.
        move_context: pMoveContext; 0 if it has none.
        closed: whether it was closed.
    """

    handle: ContextHandle
    group: int
    name: str
    queue: PeerQueue | None
    access: int
    share: int
    pending: dict[int, QueuedMessage | None] = field(default_factory=dict)
    uncertain: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    cursors: dict[int, CursorState] = field(default_factory=dict)
    move_context: int = 0
    closed: bool = False

    @property
    def receives(self) -> bool:
        """Whether it was opened to receive."""
        return self.access == Access.RECEIVE_ACCESS and not self.move_context

    @property
    def peeks(self) -> bool:
        """Whether it was opened to peek."""
        return self.access == Access.PEEK_ACCESS and not self.move_context


class PeerState:
    """The state that the peer should have now.

    Attributes:
        queues: the queues by name in lower case.
        handles: the handles that it has given.
        denied: whether it refuses anonymous callers.
    """

    def __init__(self) -> None:
        self.queues: dict[str, PeerQueue] = {}
        self.handles: dict[ContextHandle, OpenQueue] = {}
        self.denied = False

    def messages(self) -> Iterator[QueuedMessage]:
        """Yield all messages."""
        for queue in self.queues.values():
            yield from queue.messages

    @property
    def has_messages(self) -> bool:
        """Whether a queue may have a message that can be read."""
        return any(message.where in (Where.AVAILABLE, Where.UNSURE) for message in self.messages())

    def find(self, handle: ContextHandle, group: int) -> OpenQueue | None:
        """Return the object of a handle in an association group; None for none."""
        found = self.handles.get(handle)
        return None if found is None or found.closed or found.group != group else found

    def may_open(self, name: str, access: int, share: int) -> bool:
        """Return whether a queue can be opened beside the open ones: [MS-MQDMPR] 3.1.7.1.5."""
        denies = share != ShareMode.MQ_DENY_NONE
        receives = access == Access.RECEIVE_ACCESS

        def others(test: Callable[[OpenQueue], bool]) -> bool:
            return any(
                test(other) for other in self.handles.values() if other.name == name and not other.closed
            )

        if others(lambda other: other.share != 0 and other.receives):
            return not denies and not receives
        if others(lambda other: other.share != 0 and other.peeks):
            return not receives
        if others(lambda other: other.share == 0 and other.receives):
            return not denies
        return True

    def end_group(self, group: int) -> None:
        """The last connection of an association group has gone: its handles are run down."""
        for opened in self.handles.values():
            if opened.group == group and not opened.closed:
                self.close(opened)

    def close(self, opened: OpenQueue) -> None:
        """A handle ends; what it has received may be available again, or not yet."""
        opened.closed = True
        for message in opened.pending.values():
            if message is not None and message.where is Where.LOCKED:
                message.where = Where.UNSURE
        opened.pending.clear()
        opened.waiting.clear()
        opened.cursors.clear()
