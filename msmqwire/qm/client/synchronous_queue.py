"""Queues for programs without asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msmqwire.errors import InvalidValue, ReadTimeout
from msmqwire.qm.client.pushed_messages import Messages
from msmqwire.qm.client.queue import Cursor, Queue
from msmqwire.qm.client.reading import Seek
from msmqwire.qm.client.received_message import ReceivedMessage
from msmqwire.qm.client.sent import Sent
from msmqwire.qm.client.synchronous import SyncSent
from msmqwire.qm.client.transactional import Transactional
from msmqwire.service.loop_thread import SyncConnection

if TYPE_CHECKING:
    from typing import Unpack

    from msmqwire.qm.client.properties import Properties


class SyncTransactional:
    """A transaction, whose messages are sent, received and moved when its block is left."""

    def __init__(self, connection: SyncConnection, transactional: Transactional) -> None:
        self._connection, self.transactional = connection, transactional

    def send(self, body: bytes | str = b"", **properties: Unpack[Properties]) -> SyncSent:
        """Add a message. Raises as `SyncQueue.send` does."""
        return SyncSent(
            self._connection, self._connection.run(_call_in_loop(self.transactional.send, body, properties))
        )


async def _call_in_loop(send: Callable[..., Sent], body: bytes | str, properties: Properties) -> Sent:
    return send(body, **properties)


class SyncQueue:
    """A queue: `msmqwire.qm.client.queue.Queue` without ``await``, for any number of threads.

    Attributes:
        format_name: its format name.
    """

    def __init__(self, connection: SyncConnection, queue: Queue) -> None:
        self._connection, self._queue = connection, queue
        self.format_name = queue.format_name

    def __repr__(self) -> str:
        return f"<SyncQueue {self.format_name}>"

    def send(
        self,
        body: bytes | str = b"",
        *,
        transactional: bool = False,
        transaction: SyncTransactional | None = None,
        **properties: Unpack[Properties],
    ) -> SyncSent:
        """Send a message. See `Queue.send`."""
        inner = _inner(transaction)
        work = self._queue.send(body, transactional=transactional, transaction=inner, **properties)
        return SyncSent(self._connection, self._connection.run(work))

    @contextmanager
    def transaction(self) -> Iterator[SyncTransactional]:
        """Begin a transaction: its operations are done together or, after an exception inside the block, not
        at all.
        """
        with self._connection.entered(self._queue.transaction()) as transactional:
            yield SyncTransactional(self._connection, transactional)

    def receive(
        self, timeout: float | None = None, *, transaction: SyncTransactional | None = None
    ) -> ReceivedMessage:
        """Take the first message out of the queue. See `Queue.receive`."""
        return self._connection.run(self._queue.receive(timeout, transaction=_inner(transaction)))

    def peek(self, timeout: float | None = None) -> ReceivedMessage:
        """Return the first message and leave it in the queue. See `Queue.peek`."""
        return self._connection.run(self._queue.peek(timeout))

    def receive_by_lookup(
        self, lookup_identifier: int, seek: Seek = "current", *, transaction: SyncTransactional | None = None
    ) -> ReceivedMessage:
        """Take the message with a lookup identifier, or a neighbour. See `Queue.receive_by_lookup`."""
        work = self._queue.receive_by_lookup(lookup_identifier, seek, transaction=_inner(transaction))
        return self._connection.run(work)

    def peek_by_lookup(self, lookup_identifier: int, seek: Seek = "current") -> ReceivedMessage:
        """Return the message with a lookup identifier, or a neighbour. See `Queue.peek_by_lookup`."""
        return self._connection.run(self._queue.peek_by_lookup(lookup_identifier, seek))

    @contextmanager
    def receiving(self, timeout: float | None = None) -> Iterator[ReceivedMessage]:
        """Receive a message and delete it when the block is left. See `Queue.receiving`."""
        with self._connection.entered(self._queue.receiving(timeout)) as message:
            yield message

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Receive messages as they come, without end; each as `receive` does."""
        while True:
            yield self.receive()

    @contextmanager
    def messages(self, window: int = 100, *, timeout: float | None = None) -> Iterator[SyncMessages]:
        """Have messages pushed as they arrive, with ``with`` and ``for``. See `Queue.messages`."""
        with self._connection.entered(self._queue.messages(window, timeout=timeout)) as messages:
            yield SyncMessages(self._connection, messages)

    @contextmanager
    def cursor(self) -> Iterator[SyncCursor]:
        """Open a cursor before the first message, to look at messages one by one."""
        with self._connection.entered(self._queue.cursor()) as cursor:
            yield SyncCursor(self._connection, cursor)

    def purge(self) -> None:
        """Delete all readable messages."""
        self._connection.run(self._queue.purge())

    def move(
        self, message: ReceivedMessage | int, to: str, *, transaction: SyncTransactional | None = None
    ) -> None:
        """Move a message to a subqueue or back. See `Queue.move`."""
        self._connection.run(self._queue.move(message, to, transaction=_inner(transaction)))

    def close(self) -> None:
        """Stop reading the queue, for all threads. See `Queue.close`."""
        self._connection.run(self._queue.close())


class SyncMessages:
    """Messages of a queue as they come: `msmqwire.qm.client.pushed_messages.Messages` without ``await``.

    Only one thread at a time may take them.
    """

    def __init__(self, connection: SyncConnection, messages: Messages) -> None:
        self._connection, self._messages = connection, messages

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return self

    def __next__(self) -> ReceivedMessage:
        message = self._messages.ready()
        if message is None:
            message = self._connection.run(self._messages.following())
        if message is None:
            raise StopIteration
        return message

    def durable(self) -> None:
        """Mark the present message as done, and wait until it and all before it are deleted durably."""
        self._connection.run(self._messages.durable())


class SyncCursor:
    """A place in a queue where a reader continues: `msmqwire.qm.client.queue.Cursor` without ``await``."""

    def __init__(self, connection: SyncConnection, cursor: Cursor) -> None:
        self._connection, self._cursor = connection, cursor

    def peek(self, timeout: float | None = None) -> ReceivedMessage:
        """Return the message at its place. See `Cursor.peek`."""
        return self._connection.run(self._cursor.peek(timeout))

    def peek_next(self, timeout: float | None = None) -> ReceivedMessage:
        """Go on to the next message, and return it. See `Cursor.peek_next`."""
        return self._connection.run(self._cursor.peek_next(timeout))

    def receive(
        self, timeout: float | None = None, *, transaction: SyncTransactional | None = None
    ) -> ReceivedMessage:
        """Take the message at its place out of the queue, and go on. See `Cursor.receive`."""
        return self._connection.run(self._cursor.receive(timeout, transaction=_inner(transaction)))

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while True:
            try:
                yield self._connection.run(self._cursor.following())
            except ReadTimeout:
                return


def _inner(transaction: SyncTransactional | None) -> Transactional | None:
    if transaction is not None and not isinstance(transaction, SyncTransactional):
        raise InvalidValue(f"{transaction!r:.100} is not a transaction", path="transaction")
    return None if transaction is None else transaction.transactional
