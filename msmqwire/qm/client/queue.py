"""A queue, local or remote, for programs that use asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.errors import EndUnknown, InvalidValue, MsmqError, QueueError, ReadTimeout
from msmqwire.qm.client.finishing import finish
from msmqwire.qm.client.pushed_messages import Messages, OneByOne
from msmqwire.qm.client.reading import (
    LOOKUP_PEEKS,
    LOOKUP_RECEIVES,
    Read,
    Reading,
    Seek,
    new_request,
)
from msmqwire.qm.client.received_message import ReceivedMessage
from msmqwire.qm.client.sending import Sending, Unit
from msmqwire.qm.client.sent import Sent
from msmqwire.qm.client.transactional import Transactional
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.remote_read.constants import Action
from msmqwire.service.control.server import WINDOW_MAX

if TYPE_CHECKING:
    from typing import Unpack

    from msmqwire.qm.client.properties import Properties

_TIMEOUT_MAX_S: Final = (INFINITE - 1) // 1000


class Queue:
    """A queue, of this computer or another.

    `QueueManager.queue` and `QueueManager.create_queue` return queues of this computer, entering
    `msmqwire.connect` gives one of another. Any number of tasks may use it at a time.

    A refusal by the queue manager raises QueueError with the code (`hresult`) and its name (`name`). A lost
    queue manager raises Unreachable, or OutcomeUnknown if it may have carried out the request; once it is
    back, calls succeed again. Timeouts are in seconds, to the millisecond; a timeout that is negative, not a
    number or above 4,294,967 raises InvalidValue. None waits without limit, 0 not at all.

    Attributes:
        format_name: its format name.
    """

    def __init__(self, sending: Sending, reading: Callable[[], Reading] | None = None) -> None:
        """`reading` makes the reader of the queue on first use; it is None for a queue that only takes
        messages.
        """
        self._sending, self._new_reading = sending, reading
        self._reading_or_none: Reading | None = None
        self.format_name = sending.format_name
        self._giving_back: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<Queue {self.format_name}>"

    # -- sending ------------------------------------------------------------------------------------------

    async def send(
        self,
        body: bytes | str = b"",
        *,
        transactional: bool = False,
        transaction: Transactional | None = None,
        **properties: Unpack[Properties],
    ) -> Sent:
        """Send a message: store it, and return an object that follows its delivery.

        Args:
            body: bytes, or a text, which is sent as UTF-16 with the body type VT_BSTR.
            transactional: whether it arrives exactly once and in order; the queue must be transactional.
            transaction: a transaction of this queue or of another one of the same queue manager. The message
                is sent when its block is left, together with everything else in it.
            properties: see `Properties`.

        Raises:
            InvalidValue, InvalidName: a property is wrong; its name is the path.
            QueueError: the message is refused, as MQ_ERROR_QUEUE_NOT_FOUND, or MQ_ERROR_TRANSACTION_USAGE
                if only one of message and queue is transactional.
            OutcomeUnknown: the queue manager was lost meanwhile, and may have the message.
            TransactionAborted: the queue manager was lost since the transaction was begun.
        """
        if not isinstance(transactional, bool):
            raise InvalidValue(f"{transactional!r:.100} is neither true nor false", path="transactional")
        if transaction is not None:
            return self._sending.add(_unit(transaction), body, properties)
        if not transactional:
            return await self._sending.send(body, properties)
        async with self.transaction() as own:
            return own.send(body, **properties)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transactional]:
        """Begin a transaction: its operations are done together or, after an exception inside, not at all.

        Messages sent in it leave in order. Messages received in it return to their queue if it is aborted.
        Leaving the block raises TransactionAborted if the queue manager was lost before the commit, and
        OutcomeUnknown if it was lost during the commit.
        """
        unit = await self._sending.begin()
        transactional = Transactional(self._sending, unit)
        try:
            yield transactional
        except BaseException:
            transactional.ended = True
            await unit.abort()
            raise
        transactional.ended = True
        await unit.commit()

    # -- reading ------------------------------------------------------------------------------------------

    async def receive(
        self, timeout: float | None = None, *, transaction: Transactional | None = None
    ) -> ReceivedMessage:
        """Take the first message out of the queue.

        It is deleted before it is returned or, in a transaction, at the commit. If the task is cancelled
        while it waits, no message is taken; a cancellation that comes when one has been taken is delivered at
        the next ``await`` of the task. `receiving` deletes a message after it was processed.

        Args:
            timeout: seconds to wait for a message; None for no limit.
            transaction: a transaction of this queue or of another one of the same queue manager.

        Raises:
            ReadTimeout: no message has come in time.
            QueueError: with the code; MQ_ERROR_TRANSACTION_USAGE for a transaction and a queue that is not
                transactional.
            EndUnknown: the queue manager was lost before it confirmed the deletion of the message, the
                exception's attribute `message`.
            TransactionAborted: the queue manager was lost since the transaction was begun.
        """
        action = Action.MQ_ACTION_RECEIVE
        return await self.take(Read(action, _milliseconds(timeout), transaction=_identifier(transaction)))

    async def peek(self, timeout: float | None = None) -> ReceivedMessage:
        """Return the first message and leave it in the queue.

        Args:
            timeout: seconds to wait for a message; None for no limit.

        Raises:
            ReadTimeout: no message has come in time.
            QueueError: with the code, as MQ_ERROR_QUEUE_NOT_FOUND.
        """
        return (await self.start(Read(Action.MQ_ACTION_PEEK_CURRENT, _milliseconds(timeout))))[1]

    async def receive_by_lookup(
        self, lookup_identifier: int, seek: Seek = "current", *, transaction: Transactional | None = None
    ) -> ReceivedMessage:
        """Take the message with a lookup identifier, or the one before or after it, without waiting.

        Args:
            lookup_identifier: `ReceivedMessage.lookup_identifier`, which holds for one queue.
            seek: ``current`` for that message, ``next`` and ``previous`` for its neighbours.
            transaction: a transaction of this queue or of another one of the same queue manager.

        Raises:
            QueueError: MQ_ERROR_MESSAGE_NOT_FOUND if there is no such message.
            EndUnknown, TransactionAborted: see `receive`.
        """
        return await self.take(_by_lookup(LOOKUP_RECEIVES, lookup_identifier, seek, transaction))

    async def peek_by_lookup(self, lookup_identifier: int, seek: Seek = "current") -> ReceivedMessage:
        """Return the message with a lookup identifier, or a neighbour. See `receive_by_lookup`."""
        return (await self.start(_by_lookup(LOOKUP_PEEKS, lookup_identifier, seek, None)))[1]

    @asynccontextmanager
    async def receiving(self, timeout: float | None = None) -> AsyncIterator[ReceivedMessage]:
        """Receive a message and delete it when the block is left.

        An exception inside the block returns it to its place in the queue, as does the end of the program or
        of its connection. No other reader gets it meanwhile.

        Args:
            timeout: seconds to wait for a message; None for no limit.

        Raises:
            ReadTimeout: no message has come in time; the block is not entered.
            QueueError: with the code; at the end of the block MQ_ERROR_INVALID_HANDLE if the queue was closed
                meanwhile, and the message is back in it.
            Unreachable: at the end of the block, the queue manager was lost: the message is back in its
                queue.
            EndUnknown: the queue manager was lost while the message was deleted.
        """
        request, message = await self.start(Read(Action.MQ_ACTION_RECEIVE, _milliseconds(timeout)))
        try:
            yield message
        except BaseException:
            with suppress(MsmqError):  # also when the queue manager is gone, which returns it itself
                await finish(self._reading.end(request, acknowledge=False))
            raise
        await finish(self._reading.end(request, acknowledge=True))

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Receive messages as they come, without end; each as `receive` does."""
        while True:
            yield await self.receive()

    @asynccontextmanager
    async def messages(self, window: int = 100, *, timeout: float | None = None) -> AsyncIterator[Messages]:
        """Have messages pushed as they arrive, with ``async with`` and ``async for``.

        This is the fastest way to receive: it takes no request for each message and no wait for each
        deletion. Asking for the next message marks the one before as done; leaving the block marks the last
        one. Messages done are deleted, but their deletion is not awaited one by one. So if the program or the
        queue manager is killed, messages may come again: the message in work, and messages done in the last
        tenth of a second, or since the event loop was held up. Leaving the block waits until all messages
        done are deleted durably, as `Messages.durable` does at any time: they never come again.

        Messages pushed and not yet taken are locked for other readers, and return to their places in the
        queue when the block is left or the program ends. An exception that leaves the block returns the last
        message as well. If the queue manager is lost meanwhile, messages done before may come again: the
        exception is raised, and the loss is not reported.

        Args:
            window: the number of messages that may be pushed and not deleted yet, 1 to 1,000. With 1 each is
                deleted before the next one comes.
            timeout: seconds without a message after which the iteration ends; None for no limit.

        The messages of a queue of another computer come one by one: [MS-MQRR] has no push, and each message
        is deleted before the request for the next one.

        Raises as `receive` does, except for ReadTimeout. Iterating raises QueueError when the queue is
        deleted, MQ_ERROR_QUEUE_DELETED or MQ_ERROR_QUEUE_NOT_AVAILABLE; ManagerStopped when the queue manager
        stops, and Unreachable when it is lost: enter another block once it is back.
        """
        _check_window(window)
        read = Read(Action.MQ_ACTION_RECEIVE, _milliseconds(timeout))
        # Otherwise nothing could end it.
        messages: Messages | None = await finish(self._reading.subscribe(window, timeout))
        if messages is None:
            messages = OneByOne(self._reading, lambda: self.start(read))
        try:
            yield messages
        except BaseException:
            with suppress(MsmqError):  # also when the queue manager is gone, which returns them itself
                await finish(messages.leave(done=False))
            raise
        await finish(messages.leave(done=True))

    @asynccontextmanager
    async def cursor(self) -> AsyncIterator[Cursor]:
        """Open a cursor before the first message, to look at messages one by one.

        Leaving the block closes it. Raises QueueError with the code, as MQ_ERROR_QUEUE_NOT_FOUND.
        """
        reading = self._reading
        handle = await finish(reading.open_cursor())  # otherwise nothing could close it
        try:
            yield Cursor(self, handle)
        finally:
            with suppress(MsmqError):  # its queue is deleted, or the queue manager gone, and so is the cursor
                await finish(reading.close_cursor(handle))

    # -- managing -----------------------------------------------------------------------------------------

    async def purge(self) -> None:
        """Delete all readable messages; messages that a reader holds go when their receive ends.

        Raises:
            QueueError: with the code, as MQ_ERROR_ACCESS_DENIED of another computer.
            OutcomeUnknown: the queue manager was lost meanwhile, and may have deleted them.
        """
        await self._reading.purge()

    async def move(
        self, message: ReceivedMessage | int, to: str, *, transaction: Transactional | None = None
    ) -> None:
        r"""Move a message to a subqueue of this queue, or from one to the queue or another subqueue.

        Args:
            message: a message that was peeked at, or its lookup identifier, which the move changes.
            to: the name of the other queue, ``private$\orders;poison``; a subqueue is created if it is
                missing.
            transaction: the message is moved when it is committed.

        Raises:
            QueueError: MQ_ERROR_MESSAGE_NOT_FOUND if the message is not there or a reader has received it;
                another code if `to` is not part of this queue. A queue of `connect` raises InvalidValue then.
            OutcomeUnknown: the queue manager was lost meanwhile, and may have moved it.
        """
        identifier = message.lookup_identifier if isinstance(message, ReceivedMessage) else message
        await self._reading.move(_lookup_identifier(identifier), to, _identifier(transaction))

    async def close(self) -> None:
        """Stop reading the queue. Leaving its manager or connection does the same for all queues.

        Reads that wait end with MQ_ERROR_OPERATION_CANCELLED. Messages in a block of `receiving` are given
        back at once: leaving that raises QueueError, MQ_ERROR_INVALID_HANDLE.
        """
        await finish(self._reading.close())

    # -- single reads -------------------------------------------------------------------------------------

    @property
    def _reading(self) -> Reading:
        if self._reading_or_none is None:
            if self._new_reading is None:
                code = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
                raise QueueError(f"{self.format_name}: a queue with such a name can be sent to only", code)
            self._reading_or_none = self._new_reading()
        return self._reading_or_none

    async def take(self, read: Read) -> ReceivedMessage:
        """Receive a message and end it."""
        request, message = await self.start(read)
        try:
            await finish(self._reading.end(request, acknowledge=True))
        except EndUnknown as exc:
            exc.message = message
            raise
        return message

    async def start(self, read: Read) -> tuple[int, ReceivedMessage]:
        """Read a message; return its request number, by which a received message is ended.

        If the task is cancelled, the read is cancelled too, and a message that has come is returned to the
        queue.
        """
        reading, request = self._reading, new_request()
        started = asyncio.ensure_future(reading.start(request, read))
        try:
            return request, await asyncio.shield(started)
        except asyncio.CancelledError:
            giving_back = asyncio.ensure_future(_withdraw(reading, request, read, started))
            self._giving_back.add(giving_back)
            giving_back.add_done_callback(self._giving_back.discard)
            raise
        except QueueError as exc:
            if exc.hresult == HResult.MQ_ERROR_IO_TIMEOUT:
                raise ReadTimeout(exc.why) from None
            raise


async def _withdraw(
    reading: Reading, request: int, read: Read, started: asyncio.Future[ReceivedMessage]
) -> None:
    """Cancel a read that no task waits for any more; return its message to the queue if one has come."""
    with suppress(MsmqError):  # also when the queue manager is gone, which returns it itself
        if not started.done():
            with suppress(MsmqError):  # the read ends in the same way
                await reading.cancel(request)
        await started
        if read.action.receives:
            await reading.end(request, acknowledge=False)


class Cursor:
    """A place in a queue from which a reader continues. Only one read of it may be under way at a time.

    `Queue.cursor` opens it, before the first message. Iterating over it gives the messages that are in the
    queue, one by one, and leaves them there; it ends after the last one, and iterating again gives the
    messages that have come since. Timeouts are in seconds; None waits without limit.

    Once its block was left, or its queue manager was lost, a cursor raises QueueError,
    MQ_ERROR_INVALID_HANDLE.
    """

    def __init__(self, queue: Queue, handle: int) -> None:
        self._queue, self._handle = queue, handle
        self._at_message = False

    async def peek(self, timeout: float | None = None) -> ReceivedMessage:
        """Return the message at its place, at first the first message.

        Raises ReadTimeout if no message is there in time; QueueError, MQ_ERROR_MESSAGE_ALREADY_RECEIVED if
        another reader has received the message.
        """
        return await self._peek(Action.MQ_ACTION_PEEK_CURRENT, timeout)

    async def peek_next(self, timeout: float | None = None) -> ReceivedMessage:
        """Go on to the next message, and return it.

        Raises ReadTimeout if none comes in time; QueueError, MQ_ERROR_ILLEGAL_CURSOR_ACTION if no message has
        been peeked at, or the cursor has received the message at its place: continue with `peek` then.
        """
        return await self._peek(Action.MQ_ACTION_PEEK_NEXT, timeout)

    async def receive(
        self, timeout: float | None = None, *, transaction: Transactional | None = None
    ) -> ReceivedMessage:
        """Take the message at its place out of the queue, and go on to the next one. See `Queue.receive`.

        Raises QueueError, MQ_ERROR_MESSAGE_ALREADY_RECEIVED if another reader has received it, and
        MQ_ERROR_MESSAGE_NOT_FOUND with the timeout 0 if there is none.
        """
        self._at_message = False
        action = Action.MQ_ACTION_RECEIVE
        read = Read(action, _milliseconds(timeout), self._handle, transaction=_identifier(transaction))
        return await self._queue.take(read)

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        while True:
            try:
                yield await self.following()
            except ReadTimeout:
                return

    async def following(self) -> ReceivedMessage:
        """Return the message that iteration gives next. Raises ReadTimeout if there is none."""
        return await (self.peek_next(0) if self._at_message else self.peek(0))

    async def _peek(self, action: Action, timeout: float | None) -> ReceivedMessage:
        self._at_message = False
        _, message = await self._queue.start(Read(action, _milliseconds(timeout), self._handle))
        self._at_message = True
        return message


# -- arguments ------------------------------------------------------------------------------------------


def _milliseconds(timeout: float | None) -> int:
    if timeout is None:
        return INFINITE
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 <= timeout <= _TIMEOUT_MAX_S:
        raise InvalidValue(f"{timeout!r:.100} is not 0 to {_TIMEOUT_MAX_S} seconds", path="timeout")
    return round(timeout * 1000)


def _check_window(window: object) -> None:
    if isinstance(window, bool) or not isinstance(window, int) or not 0 < window <= WINDOW_MAX:
        raise InvalidValue(f"{window!r:.100} is not 1 to {WINDOW_MAX} messages", path="window")


def _lookup_identifier(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 64:
        raise InvalidValue(f"{value!r:.100} is not a lookup identifier", path="lookup_identifier")
    return value


def _by_lookup(
    actions: dict[Seek, Action], identifier: int, seek: Seek, transaction: Transactional | None
) -> Read:
    if seek not in actions:
        raise InvalidValue(f"{seek!r:.100} is none of {', '.join(actions)}", path="seek")
    return Read(
        actions[seek],
        timeout_ms=0,
        lookup_identifier=_lookup_identifier(identifier),
        transaction=_identifier(transaction),
    )


def _unit(transaction: Transactional) -> Unit:
    if not isinstance(transaction, Transactional):
        raise InvalidValue(f"{transaction!r:.100} is not a transaction", path="transaction")
    return transaction.unit


def _identifier(transaction: Transactional | None) -> UUID | None:
    return None if transaction is None else _unit(transaction).identifier
