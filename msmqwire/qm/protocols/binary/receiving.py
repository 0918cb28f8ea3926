"""Receiving messages: [MS-MQQB] 3.1.5.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.constants import MQ_OK, MessageClass
from msmqwire.errors import MalformedPacket
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    EnqueueStatus,
    QueueAccessType,
    QueueType,
)
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.sending import expired
from msmqwire.qm.protocols.binary.session import ACK_FLAGS, Session
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.lookup import ORDER_QUEUE_NUMBER
from msmqwire.schema import Record

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine

HOPS_MAX: Final = 0x1D
"""UserHeader.Flags.RC: MQQB-3.1.5.8.2-18."""
_NEGATIVE = AcknowledgementsRequested.ACK_NEG_ARRIVAL
_POSITIVE = AcknowledgementsRequested.ACK_POS_ARRIVAL


class Receiving:
    """The receiving half of the engine."""

    def __init__(self, engine: BinaryEngine) -> None:
        self._engine, self._context = engine, engine.context

    def user_message(self, session: Session, packet: Record, data: bytes) -> None:
        """A UserMessage packet has come over an open session."""
        try:
            message = serialization.deserialize(packet, data)
        except MalformedPacket:
            message = None
        if message is None or message.destination is None or _has_no_place(message):
            self._engine.close(session)  # MQQB-3.1.5.1.3-01
            return
        engine = self._engine
        local = self._is_local(message)
        manager = self._context.queue_manager
        if not local and manager.throttled:  # MQQB-3.1.5.8.2-01: it can't be saved
            # What follows would be counted one too low, and acknowledged in place of this one.
            engine.close(session)
            return
        self.count(session, recoverable=message.recoverable)
        if packet.UserHeader.Flags.DQ == 7:
            session.direct_format_session = True
        header = packet.SessionHeader
        if message.transactional:
            self._transactional(session, message, local=local)
        elif not engine.history.known(message):
            self._once(session, message, local=local)
        if header is not None and session.is_open:
            engine.session_header(session, header)
        if session.is_open:
            engine.session_timers.acknowledge_at_window(session)

    def count(self, session: Session, *, recoverable: bool) -> None:
        """A message has come: MQQB-3.1.5.8.2-02, -07, -08 and [MS-MQQB] 3.1.5.8.7.

        Every one counts, also a duplicate or one that is refused: its sender has counted it as well.
        """
        engine = self._engine
        if recoverable and session.recoverable_unacked >= ACK_FLAGS:
            engine.session_timers.send_session_ack(session)
        session.count_received()
        session.session_active = True
        timers, key, settings = self._context.timers, session.number, self._context.settings
        if session.unacked_received_count == 1 and settings.ack_delay_ms < session.ack_wait_timeout // 2:
            engine.session_timers.start_ack_send(session, settings.ack_delay_ms)
        elif not timers.active(Timer.SESSION_ACK_SEND, key):
            engine.session_timers.start_ack_send(session)
        if recoverable and session.count_recoverable_received():
            limit = settings.recoverable_ack_delay_ms
            engine.session_timers.start_ack_send(session, min(session.recoverable_ack_send_timeout, limit))

    def _is_local(self, message: Message) -> bool:
        """Whether a message is for this queue manager: MQQB-3.1.5.8.5-01."""
        address = message.destination_queue_manager_identifier
        return address in (NULL_GUID, self._context.queue_manager.identifier)

    # -- messages that are not transactional ----------------------------------------------------------

    def _once(self, session: Session, message: Message, *, local: bool) -> None:
        if self._take(session, message, local=local):
            self._engine.history.add(message)

    def _take(self, session: Session, message: Message, *, local: bool) -> bool:
        """Put a message where it belongs, or refuse it; False for one that is to be sent again."""
        engine = self._engine
        refusal, queue = self._judge(message, local=local)
        if refusal is None:
            assert queue is not None, "a message that is not refused has a queue"
            status = engine.messages.enqueue(queue, message)
            if status is EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED:  # MQQB-3.1.5.8.8-06
                engine.close(session)
                return False
            if status is EnqueueStatus.QUEUE_QUOTA_EXCEEDED:  # MQQB-3.1.5.8.8-03 to -05
                refusal = MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA
                deadletter = self._context.queue_manager.system_deadletter_queue
                if message.negative_journaling_requested and not message.transactional and deadletter:
                    engine.messages.journal(message, deadletter)
        if refusal is not None:
            if self._is_full() and _is_answered(message):  # MQQB-3.1.5.8.8-06: or answers would have no limit
                engine.close(session)
                return False
            self._refuse(session, message, refusal)
            return True
        assert queue is not None, "a message that is not refused has a queue"
        if message.tracing_requested:  # MQQB-3.1.5.8.9-01
            engine.acknowledging.trace(message)
        if not local:
            if message.transactional and isinstance(queue, OutgoingQueue):  # MQQB-3.1.5.8.8-09
                engine.sequences.report(engine.transfer_of(queue))
        elif message.acknowledgements_requested & _POSITIVE and queue.queue_type is not QueueType.SYSTEM:
            # MQQB-3.1.5.8.10-01 and -02
            engine.acknowledging.administration(message, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)
        return True

    def _is_full(self) -> bool:
        """Whether the quota of the queue manager is used up, or its disk refuses more."""
        manager = self._context.queue_manager
        return manager.throttled or manager.total_bytes >= manager.queue_manager_quota

    def _refuse(self, session: Session, message: Message, message_class: int) -> None:
        acknowledging = self._engine.acknowledging
        if message.acknowledgements_requested & _NEGATIVE:
            acknowledging.administration(message, message_class)
        if message.transactional:
            acknowledging.final(message, message_class, session)

    def _judge(self, message: Message, *, local: bool) -> tuple[int | None, Queue | None]:
        """The class of refusal or None, and the queue: General Processing, Security and Expiration."""
        engine = self._engine
        if not local:
            message.hop_count += 1
            if message.hop_count > HOPS_MAX:
                return MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED, None
        queue = None
        if local:
            assert message.destination is not None, "a received message has a destination"
            queue = engine.queues.lookup.addressed(message.destination)
            if queue is None or message.destination.is_read_only:
                return MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, None
            if queue.private_queue_number == ORDER_QUEUE_NUMBER:  # of OrderAcks and FinalAcks only
                return MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED, None
            if message.transactional and not queue.transactional:
                return MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q, None
            if queue.transactional and not message.transactional:
                return MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG, None
            refusal = engine.security.judge(message, queue)
            if refusal is not None:
                return refusal, None
        passes = message.transactional and not local and not self._context.settings.expire_in_doubt
        if expired(message, self._context.utc) and not passes:  # MQQB-3.1.5.8-04
            return MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT, None
        if queue is None:
            assert message.destination is not None, "a received message has a destination"
            if engine.connecting.refuses(message.destination, message.destination_queue_manager_identifier):
                return MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, None
            status, descriptor = engine.queues.open(message.destination, QueueAccessType.SEND_ACCESS)
            if status != MQ_OK or descriptor is None or descriptor.queue is None:
                return MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, None
            queue = descriptor.queue
            engine.queues.close(descriptor)
        return None, queue

    # -- transactional messages -----------------------------------------------------------------------

    def _transactional(self, session: Session, message: Message, *, local: bool) -> None:
        """Transactional Message Processing: [MS-MQQB] 3.1.5.8.6.

        Whatever becomes of a message that follows, its place in the sequence is taken by it, so that it is
        never judged a second time with another result.
        """
        if not local:  # MQQB-3.1.1.6.2-01: only the final destination looks at the sequence
            self._take(session, message, local=False)
            return
        engine = self._engine
        sequences = engine.sequences
        info = sequences.incoming(message)
        if not sequences.follows(info, message):
            sequences.refused(info)
            self._order_ack_due(session, info)
            return
        engine.acknowledging.know(info.sender_identifier, session)  # a reader may take it at once
        if not self._take(session, message, local=True):
            return
        queue = engine.queues.lookup.addressed(info.format_name)
        if queue is not None:
            info.queue = queue
            queue.incoming[info.sender_identifier, info.format_name.canonical] = info
        sequences.accepted(info, message)
        self._order_ack_due(session, info)

    def _order_ack_due(self, session: Session, info: IncomingTransactionalTransferInfo) -> None:
        """MQQB-3.1.5.8.6-02."""
        if not info.sequence_number or not session.is_open:
            return
        session.order_acks_due[info] = None
        context, engine = self._context, self._engine
        late = context.utc - session.last_order_ack_send_time >= context.settings.maximum_order_ack_delay_s
        if context.timers.active(Timer.ORDER_ACK_SEND, session.number) and late:
            return
        context.timers.start(
            Timer.ORDER_ACK_SEND, session.number, context.settings.order_ack_timeout_ms,
            lambda: engine.order_ack_send_expired(session),
        )  # fmt: skip


def _has_no_place(message: Message) -> bool:
    """Whether a transactional message has the number 0, which is not valid: MQMQ-2.2.20.5-13."""
    return message.transactional and not message.transaction_sequence_number


def _is_answered(message: Message) -> bool:
    """Whether its sender is told when a message is refused."""
    return message.transactional or bool(message.acknowledgements_requested & _NEGATIVE)
