"""Messages that are not received in time: the Time To Be Received Timer, [MS-MQDMPR] 3.1.2.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmqwire.constants import MessageClass
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import INFINITE, PositionState, QueueType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer

if TYPE_CHECKING:
    from msmqwire.qm.rules.messages import MessageEvents


class Expiry:
    """The ends of messages that are not received in time."""

    def __init__(self, context: Context, messages: MessageEvents) -> None:
        self._context, self._messages = context, messages

    def start(self, position: MessagePosition, message: Message) -> None:
        """Start the Time To Be Received Timer: [MS-MQDMPR] 3.1.2.4.

        Its queue may limit the time that its sender has given, from its arrival on.
        """
        queue, utc = position.queue, self._context.utc
        if not expires_in(queue):
            return
        times = [message.expires] if message.expires else []
        if message.time_to_be_received != INFINITE:
            sent_time = message.sent_time or utc  # MQMQ-2.2.19.2-05, DMPR-3.1.1.12-47
            times.append(sent_time + message.time_to_be_received)  # DMPR-3.1.1.12-47, -49
        if queue.time_to_live != INFINITE:
            times.append(utc + queue.time_to_live)
        if times:
            message.expires = min(times)
            self.expire_at(position, message.expires)  # MQMQ-2.2.19.2-05

    def expire_at(self, position: MessagePosition, time: int) -> None:
        """Set the expiry time of a message, in seconds since 1970-01-01 UTC."""
        # DMPR-3.1.2.4-03
        self._context.timers.start(
            Timer.TIME_TO_BE_RECEIVED, position.number, (time - self._context.utc) * 1000,  # DMPR-3.1.2.4-02
            lambda: self.expired(position),  # DMPR-3.1.2.4-03
        )  # fmt: skip

    def expired(self, position: MessagePosition) -> None:
        """Time To Be Received Timer Expired: [MS-MQDMPR] 3.1.7.2.7."""
        reason = MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT  # DMPR-3.1.1.12-12
        if position.state is PositionState.AVAILABLE:
            # DMPR-3.1.7.2.7-01, DMPR-3.1.1.12-12, MQMQ-2.2.19.2-05
            self._messages.position_deleted(position.queue, position, reason)
            return
        position.expired = True  # deleted when its reader or its transaction releases it
        identifier = position.message.transaction_identifier
        transaction = self._context.queue_manager.transactions.get(identifier) if identifier else None
        if transaction is not None and position.state is PositionState.LOCKED:
            self._messages.lock(position, transaction, reason)  # DMPR-3.1.7.2.7-02


def expires_in(queue: Queue) -> bool:
    """Whether TimeToBeReceived applies to the messages of a queue: DMPR-3.1.2.4-01."""
    return queue.queue_type is not QueueType.SYSTEM and not isinstance(queue, OutgoingQueue)
