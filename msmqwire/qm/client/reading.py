"""The interface of a queue that programs read, local or remote.

It has the shape of [MS-MQRR] 3.2.4, so that local and remote queues are read by the same rules: reads have
request numbers of the caller, a received message is ended by a second request, and waiting reads can be
cancelled.
"""

from __future__ import annotations

from itertools import count
from typing import Final, Literal, NamedTuple, Protocol
from uuid import UUID

from msmqwire.qm.client.pushed_messages import Messages
from msmqwire.qm.client.received_message import ReceivedMessage
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.remote_read.constants import Action

Seek = Literal["current", "next", "previous"]
"""The message that a lookup identifier selects: its own, or a neighbour."""


LOOKUP_PEEKS: Final[dict[Seek, Action]] = {
    "current": Action.MQ_LOOKUP_PEEK_CURRENT,
    "next": Action.MQ_LOOKUP_PEEK_NEXT,
    "previous": Action.MQ_LOOKUP_PEEK_PREV,
}
LOOKUP_RECEIVES: Final[dict[Seek, Action]] = {
    "current": Action.MQ_LOOKUP_RECEIVE_CURRENT,
    "next": Action.MQ_LOOKUP_RECEIVE_NEXT,
    "previous": Action.MQ_LOOKUP_RECEIVE_PREV,
}


class Read(NamedTuple):
    """A read: the parameters of R_StartReceive and R_StartTransactionalReceive.

    Attributes:
        action: the message to read.
        timeout_ms: the longest wait for it; 0 with a lookup identifier.
        cursor: the handle of a cursor, or 0.
        lookup_identifier: the lookup identifier, or 0.
        transaction: the transaction of the receive, or None.
    """

    action: Action
    timeout_ms: int = INFINITE
    cursor: int = 0
    lookup_identifier: int = 0
    transaction: UUID | None = None


class Reading(Protocol):
    """An open queue that can be read. Many reads may be under way at a time.

    All methods raise QueueError with the code of the queue manager, and Unreachable if it is gone. The
    request of a method may have been carried out if its task is cancelled: only `Queue` calls them, and
    handles that.
    """

    async def start(self, request: int, read: Read) -> ReceivedMessage:
        """Read a message: R_StartReceive, R_StartTransactionalReceive.

        A received message is locked until `end` is called with the same request number, which no other read
        may have between `start` and `end`; peeking ends with the answer. A read without a message in time
        fails with MQ_ERROR_IO_TIMEOUT, a cancelled read with MQ_ERROR_OPERATION_CANCELLED.

        Raises MalformedPacket as well, for an unreadable message, which has been returned to the queue.
        """

    async def end(self, request: int, *, acknowledge: bool) -> None:
        """Delete a message that was received, or give it back: R_EndReceive, R_EndTransactionalReceive.

        A message received in a transaction is deleted at the commit.
        """

    async def cancel(self, request: int) -> None:
        """End a read that waits: R_CancelReceive. Any other read is left as it is."""

    async def subscribe(self, window: int, timeout: float | None) -> Messages | None:
        """Have messages pushed; return None if the queue manager can't push: they are then read one by one.

        `timeout` is the seconds without a message after which the iteration ends, None for no limit.
        """

    async def open_cursor(self) -> int:
        """Open a cursor before the first message, and return its handle: R_CreateCursor."""

    async def close_cursor(self, cursor: int) -> None:
        """Close a cursor: R_CloseCursor. Its reads that wait end with MQ_ERROR_OPERATION_CANCELLED."""

    async def purge(self) -> None:
        """Delete the messages that can be read: R_PurgeQueue."""

    async def move(self, lookup_identifier: int, to: str, transaction: UUID | None) -> None:
        """Move a message to a subqueue or back: R_OpenQueueForMove, R_MoveMessage.

        `to` is a queue as users name it.
        """

    async def close(self) -> None:
        """Close the queue: R_CloseQueue.

        Reads that wait end with MQ_ERROR_OPERATION_CANCELLED, messages that were received and not ended
        return to it, and ending them fails with MQ_ERROR_INVALID_HANDLE.
        """


_REQUESTS: Final = count(1)


def new_request() -> int:
    """Return a request number of 32 bits that no other read under way has."""
    return next(_REQUESTS) & 0xFFFFFFFF
