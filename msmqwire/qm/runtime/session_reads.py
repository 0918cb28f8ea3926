"""Single reads of local clients: they wait, can be cancelled, have cursors and lookup identifiers.

A read corresponds to R_StartReceive of [MS-MQRR] 3.1.4.7 for remote clients, and has the same options.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue, ManagerStopped, QueueError
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import Cursor, OpenQueueDescriptor, Transaction
from msmqwire.qm.model.enumerations import INFINITE, MessageSeekAction, PositionState, QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.read_results import PENDING, ReadOutcome
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.control_frames import answer_of
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.held_messages import HeldMessages
from msmqwire.qm.runtime.message_json import number
from msmqwire.qm.runtime.reasons import reason
from msmqwire.qm.runtime.session_transactions import SessionTransactions, check_transactional

CURSORS_MAX: Final = 1000
"""Limit of open cursors of one session."""
WAIT_MAX_MS: Final = INFINITE - 1
RECEIVE: Final = "receive"
_PEEK: Final = "peek"
_PEEK_NEXT: Final = "peek_next"
_ACTIONS: Final = (RECEIVE, _PEEK, _PEEK_NEXT)
_SEEKS: Final = {
    "current": MessageSeekAction.SEEK_CURRENT,
    "next": MessageSeekAction.SEEK_NEXT,
    "previous": MessageSeekAction.SEEK_PREVIOUS,
}
_NOTHING_CAME: Final = (HResult.MQ_ERROR_OPERATION_CANCELLED, HResult.MQ_ERROR_IO_TIMEOUT)
_UINT64_MAX: Final = (1 << 64) - 1
_TAG_MAX: Final = (1 << 53) - 1

Request = Mapping[str, Any]
Answer = dict[str, Any]


class SessionReads:
    """The reads and cursors of one session.

    Attributes:
        may_wait: whether reads may wait for a message.
    """

    def __init__(
        self,
        driver: EngineDriver,
        held: HeldMessages,
        transactions: SessionTransactions,
        opened: Callable[[Request, QueueAccessType], OpenQueueDescriptor],
    ) -> None:
        """`opened` returns the open queue of a request."""
        self._driver, self._core = driver, driver.core
        self._held, self._transactions, self._opened = held, transactions, opened
        self._cursors: dict[int, Cursor] = {}
        self._tagged: dict[int, tuple[OpenQueueDescriptor, int]] = {}  # waiting reads by tag
        self._receiving = 0
        self.may_wait = True

    # -- requests -----------------------------------------------------------------------------------------

    async def read(self, request: Request) -> Answer:
        """Receive a message, which is ended later, or peek at one."""
        action, tag = queues.text(request, "action"), request.get("tag")
        if action not in _ACTIONS:
            raise InvalidValue(f"{action!r:.100} is none of {', '.join(_ACTIONS)}", path="action")
        if tag is not None and number(tag, "tag", _TAG_MAX) in self._tagged:
            raise InvalidValue(f"a read with the tag {tag} is already waiting", path="tag")
        if action != RECEIVE:
            _, read, durable = await self._perform(request, action, tag)
            assert read.message is not None, "it was read"
            if not durable:
                await self._driver.durable()
            return _answer_of(request, 0, read.message)
        self._driver.drain.check()
        if self._held.room() <= self._receiving:
            why = "too many messages are received and not ended, or waited for"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        self._receiving += 1
        try:
            descriptor, read, durable = await self._perform(request, action, tag)
        finally:
            self._receiving -= 1
        assert read.message is not None and read.position is not None, "it was received"  # noqa: PT018
        receipt = self._held.hold(descriptor, read.position, self._transactions.of(request))
        if not durable:
            await self._held.durable(self._driver, [receipt])
        return _answer_of(request, receipt, read.message)

    async def cancel(self, request: Request) -> Answer:
        """End a waiting read, by its tag, with MQ_ERROR_OPERATION_CANCELLED; return whether it was
        waiting.
        """
        tag = number(request.get("tag"), "tag", _TAG_MAX)
        descriptor, waiting = self._tagged.pop(tag, (None, 0))
        reader = None if descriptor is None else descriptor.waiting.get(waiting)
        if reader is not None:
            stop = self._core.messages.waiting_reads.stop
            self._driver.call(stop, reader, HResult.MQ_ERROR_OPERATION_CANCELLED)
        return {"cancelled": reader is not None}

    async def open_cursor(self, request: Request) -> Answer:
        """Open a cursor at the beginning of a queue."""
        if len(self._cursors) >= CURSORS_MAX:
            why = f"{CURSORS_MAX} cursors are open"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        cursor = self._driver.call(self._open_cursor, request)
        self._cursors[cursor.handle] = cursor
        return {"cursor": cursor.handle}

    def _open_cursor(self, request: Request) -> Cursor:
        cursor = self._core.queues.open_cursor(self._opened(request, QueueAccessType.RECEIVE_ACCESS))
        assert cursor is not None, "its queue has just been opened"
        return cursor

    async def close_cursor(self, request: Request) -> Answer:
        """Close a cursor. Its reads that wait end with MQ_ERROR_OPERATION_CANCELLED."""
        cursor = self._cursor(request)
        self._driver.call(self._core.queues.close_cursor, cursor)
        del self._cursors[cursor.handle]
        return {"cursor": cursor.handle}

    def _cursor(self, request: Request) -> Cursor:
        handle = number(request.get("cursor"), "cursor", _TAG_MAX, 1)
        cursor = self._cursors.get(handle)
        if cursor is None:
            raise QueueError(f"no cursor {handle} is open", HResult.MQ_ERROR_INVALID_HANDLE)
        return cursor

    # -- reading ------------------------------------------------------------------------------------------

    async def _perform(
        self, request: Request, action: str, tag: int | None
    ) -> tuple[OpenQueueDescriptor, ReadCompleted, bool]:
        """Read a message; return also whether it is durable, so that no wait is needed.

        Raises QueueError with the status if there is none.
        """
        durable = self._driver.settled
        descriptor, begin = self._driver.defer_commit(self._chosen, request, action)
        read = await self.wait(begin, descriptor, tag, self._transactions.of(request))
        if read.status != MQ_OK:
            name = queues.text(request, "queue")
            if read.status in _NOTHING_CAME and request.get("wait_ms", 0) != 0 and not self.may_wait:
                code = HResult.MQ_ERROR_OPERATION_CANCELLED
                raise ManagerStopped(reason(code, name), code)
            raise QueueError(reason(read.status, name), read.status)
        return descriptor, read, durable or has_waited(read)

    def _chosen(self, request: Request, action: str) -> tuple[OpenQueueDescriptor, Callable[[], ReadOutcome]]:
        """Return the open queue of a read, and the function that begins it. Raises InvalidValue."""
        messages, transaction = self._core.messages, self._transactions.of(request)
        receives = action == RECEIVE
        by_cursor, by_lookup = request.get("cursor") is not None, request.get("seek") is not None
        wait = self._wait(request)
        cursor = self._cursor(request) if by_cursor else None
        access = QueueAccessType.RECEIVE_ACCESS if receives else QueueAccessType.PEEK_ACCESS
        descriptor = self._opened(request, access) if cursor is None else cursor.descriptor
        if transaction is not None:
            name = queues.text(request, "queue")
            if not receives:  # MQRR-3.1.4.13-34
                why = f"{name}: nothing is peeked at in a transaction"
                raise QueueError(why, HResult.MQ_ERROR_TRANSACTION_USAGE)
            check_transactional(descriptor.queue, name)
        if action == _PEEK_NEXT:
            if cursor is None or by_lookup:
                raise InvalidValue("only a cursor has a next message", path="action")
            return descriptor, partial(messages.peek_next, descriptor, cursor, timeout=wait)
        if by_lookup:
            if by_cursor or wait:
                other = "cursor" if by_cursor else "wait_ms"
                raise InvalidValue("not together with a lookup identifier", path=other)
            identifier = number(request.get("lookup_identifier"), "lookup_identifier", _UINT64_MAX)
            return descriptor, partial(
                messages.read_by_lookup_identifier, descriptor, identifier, self._seek(request),
                peek=not receives, transaction=transaction, two_phase=transaction is None,
            )  # fmt: skip
        if not receives:
            return descriptor, partial(messages.peek, descriptor, timeout=wait, cursor=cursor)
        return descriptor, partial(
            messages.dequeue, descriptor, timeout=wait, cursor=cursor, transaction=transaction,
            two_phase=transaction is None,
        )  # fmt: skip

    @staticmethod
    def _seek(request: Request) -> MessageSeekAction:
        name = queues.text(request, "seek")
        if name not in _SEEKS:
            raise InvalidValue(f"{name!r:.100} is none of {', '.join(_SEEKS)}", path="seek")
        return _SEEKS[name]

    def _wait(self, request: Request) -> int:
        if request.get("wait_ms", 0) is None:
            return INFINITE if self.may_wait else 0
        wait = number(request.get("wait_ms", 0), "wait_ms", WAIT_MAX_MS)
        return wait if self.may_wait else 0

    async def wait(
        self,
        begin: Callable[[], ReadOutcome],
        descriptor: OpenQueueDescriptor,
        tag: int | None = None,
        transaction: Transaction | None = None,
    ) -> ReadCompleted:
        """Begin a read, which changes nothing in the store, and wait for its end.

        If the wait is cancelled, end the read and return its message to the queue. `tag` identifies it to
        `cancel`; `transaction` is the one that it receives in.
        """
        driver = self._driver
        read = driver.defer_commit(begin)
        if read.status != PENDING:
            return ReadCompleted(0, read.status, read.message, read.position)
        future: asyncio.Future[ReadCompleted] = asyncio.get_running_loop().create_future()
        driver.on_read(read.request, partial(self._completed, future, descriptor, transaction))
        if tag is not None:
            self._tagged[tag] = descriptor, read.request
        try:
            return await future
        except asyncio.CancelledError:
            reader = descriptor.waiting.get(read.request)
            if reader is not None:
                driver.notify(
                    self._core.messages.waiting_reads.stop, reader, HResult.MQ_ERROR_OPERATION_CANCELLED
                )
            elif future.done() and not future.cancelled():  # completed in the turn in which the client left
                self._completed(future, descriptor, transaction, future.result())
            raise
        finally:
            if tag is not None:
                self._tagged.pop(tag, None)

    def _completed(
        self,
        future: asyncio.Future[ReadCompleted],
        descriptor: OpenQueueDescriptor,
        transaction: Transaction | None,
        completed: ReadCompleted,
    ) -> None:
        if not future.done():
            future.set_result(completed)
            return
        position, messages = completed.position, self._core.messages
        if position is None:
            return
        if transaction is not None:  # its commit would delete a message that nobody has
            self._driver.notify(self._core.transactions.give_back, transaction, position)
        elif position.state is PositionState.LOCKED and not position.transaction:
            self._driver.notify(lambda: messages.dequeue_end(descriptor, position, delete=False))


def has_waited(read: ReadCompleted) -> bool:
    """Whether a read has waited for its message. It is durable then: the driver reports it after that."""
    return bool(read.request)


def _answer_of(request: Request, receipt: int, message: Message) -> Answer:
    answer = answer_of(request, [(receipt, message)])
    messages = answer.pop("messages", None)
    return answer if messages is None else {"message": messages[0]}
