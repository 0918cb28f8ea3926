"""Messages that a session moves: between queues as they are, or sent again as new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msmqwire.constants import HResult, MessageClass
from msmqwire.errors import QueueError
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, short_name
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AuthenticationLevel,
    EnqueueStatus,
    QueueAccessType,
    QueueType,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.quotas import over_quota
from msmqwire.qm.rules.unreadable import readable
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.available import available
from msmqwire.qm.runtime.deliveries import TRANSACTIONAL
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.qm.runtime.message_json import (
    SENDABLE,
    flag,
    identifier_from,
    identifier_text,
    message_json,
    name_text,
    not_transactional,
    number,
)
from msmqwire.qm.runtime.reasons import check_sent
from msmqwire.qm.runtime.session_transactions import SessionTransactions, check_transactional
from msmqwire.service.control.server import BATCH_MAX

Request = Mapping[str, Any]
Answer = dict[str, Any]


class SessionMoves:
    """The moves of one session."""

    def __init__(
        self,
        driver: EngineDriver,
        transactions: SessionTransactions,
        descriptor_of: Callable[[Request, QueueAccessType], OpenQueueDescriptor],
        send: Callable[[Request], Answer],
    ) -> None:
        """`descriptor_of` opens the queue of a request, `send` sends messages in the running turn."""
        self._driver, self._core, self._transactions = driver, driver.core, transactions
        self._descriptor, self._send_messages = descriptor_of, send

    async def move(self, request: Request) -> Answer:
        """Move messages between a queue and its subqueues, in a transaction at its commit."""
        moved = self._driver.call(self._move_messages, request, count_of(request))
        await self._driver.durable()
        return {"moved": moved}

    def _move_messages(self, request: Request, count: int) -> list[str]:
        core = self._core
        descriptor = self._descriptor(request, QueueAccessType.RECEIVE_ACCESS)
        target = queues.move_target(core, descriptor, queues.text(request, "to"))
        transaction = self._transactions.of(request)
        if transaction is not None:
            check_transactional(descriptor.queue, queues.text(request, "queue"))
        moved: list[str] = []
        for position in self._to_move(descriptor, request):
            if len(moved) >= count:
                break
            moved.append(identifier_text(position.message.identifier))
            core.messages.move(position, target, transaction)
        return moved

    def _to_move(self, descriptor: OpenQueueDescriptor, request: Request) -> Iterator[MessagePosition]:
        """Yield the messages that a request means: one by its lookup identifier, or those available.

        Raises QueueError if none has the lookup identifier, or another reader has that message.
        """
        if request.get("lookup_identifier") is not None:
            assert descriptor.queue is not None, "it has just been opened"
            yield queues.available_position(descriptor.queue, request)
            return
        identifier = None
        if request.get("identifier") is not None:
            identifier = identifier_from(queues.text(request, "identifier"))
        for position in available(descriptor.queue, None):
            message = None if identifier is None else readable(self._core.context, position)
            if identifier is None or (message is not None and message.identifier == identifier):
                yield position

    async def resend(self, request: Request) -> Answer:
        """Send a message of a queue again, to another queue, and delete it: both or neither are durable."""
        answer = self._driver.call(self._resend_message, request)
        await self._driver.durable()
        return answer

    def _resend_message(self, request: Request) -> Answer:
        descriptor = self._descriptor(request, QueueAccessType.RECEIVE_ACCESS)
        source = descriptor.queue
        assert source is not None, "it has just been opened"
        position = queues.available_position(source, request)
        name = queue_name(queues.text(request, "to"), self._core.queue_manager.computer_name)
        target = self._core.queues.lookup.find(name)
        queues.check_resend(source, target, position.message, request)
        entry = {name: value for name, value in message_json(position.message).items() if name in SENDABLE}
        if target is not None:
            entry["delivery"] = TRANSACTIONAL if target.transactional else not_transactional(entry)
        sent = self._send_messages({"to": str(name), "messages": [entry]})
        self._core.messages.position_deleted(source, position, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
        return sent

    async def put_back(self, request: Request) -> Answer:
        """Put a message back into the queue that it was meant for, or into the queue ``to``.

        Within this computer it moves as it is: identifier, signature and properties stay, and its deliveries
        begin at 0; a time limit that is over is dropped. To another computer, or to a queue of the other kind
        (transactional or not), it is sent again as a new message, as `resend` does; unless the request wants
        it ``whole``. Both are durable, or neither.
        """
        answer = self._driver.call(self._put_message_back, request)
        await self._driver.durable()
        return answer

    def _put_message_back(self, request: Request) -> Answer:
        whole = flag(request.get("whole", False), "whole")
        source = self._descriptor(request, QueueAccessType.RECEIVE_ACCESS).queue
        assert source is not None, "it has just been opened"
        position = queues.available_position(source, request)
        to = self._way_back(source, position.message, request)
        name = queue_name(to, self._core.queue_manager.computer_name)
        target = self._core.queues.lookup.find(name)
        queues.check_resend(source, target, position.message, {**request, "to": to})
        why = _not_whole(position.message, target)
        if target is None or why:
            if whole:
                raise QueueError(f"{to}: {why}", HResult.MQ_ERROR_INVALID_PARAMETER)
            return {**self._resend_message({**request, "to": to}), "to": to, "kept": False}
        identifier = identifier_text(position.message.identifier)
        self._move_as_it_is(position, target, to)
        return {"sent": [identifier], "to": short_name(target), "kept": True}

    @staticmethod
    def _way_back(source: Queue, message: Message, request: Request) -> str:
        """Return the name of the queue that a message is put back into."""
        if request.get("to") is not None:
            return queues.text(request, "to")
        main = source.owner_queue
        if main is not None and source is not main.journal:
            return short_name(main)
        meant = name_text(message.destination)
        if meant is None:
            why = "the message names no queue that it was sent to: say to which"
            raise QueueError(why, HResult.MQ_ERROR_INVALID_PARAMETER)
        return meant

    def _move_as_it_is(self, position: MessagePosition, target: Queue, to: str) -> None:
        """Move a message to a queue of this computer. Raises QueueError if that is full."""
        messages, size = self._core.messages, position.size
        makes_room = messages.when_full
        if over_quota(target, size) and not (makes_room is not None and makes_room(target, size)):
            check_sent(EnqueueStatus.QUEUE_QUOTA_EXCEEDED, to)
        if not position.listed:  # it was dropped to make room
            raise queues.refusal(self._core, HResult.MQ_ERROR_MESSAGE_NOT_FOUND, to)
        message, utc = position.message, self._core.context.utc
        if message.expires and message.expires <= utc:
            message.expires = 0
        if message.time_to_be_received != INFINITE and message.sent_time + message.time_to_be_received <= utc:
            message.time_to_be_received = INFINITE
        messages.transfer(position, target)


def _not_whole(message: Message, target: Queue | None) -> str:
    """Return why a message can't be moved into a queue as it is; empty if it can."""
    if target is None or isinstance(target, OutgoingQueue):
        return "messages move as they are within this computer only; requeue sends a new one"
    if target.queue_type is QueueType.SYSTEM:
        return "the queue manager alone puts messages there"
    if (message.transactional or message.transaction_identifier is not None) != target.transactional:
        kind = "transactional messages only" if target.transactional else "no transactional messages"
        return f"the queue takes {kind}; requeue sends a new one"
    if target.authentication and message.authentication_level is AuthenticationLevel.NONE:
        return "the queue takes messages with a proved signature only"
    return ""


def count_of(request: Request) -> int:
    """Return the number of messages that a request wants. Raises InvalidValue."""
    return number(request.get("count", 1), "count", BATCH_MAX, 1)
