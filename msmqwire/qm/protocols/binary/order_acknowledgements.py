"""Order and final acknowledgements of transactional messages: [MS-MQQB] 3.1.5.8.6, 3.1.6.9 and 3.1.7.17."""

from __future__ import annotations

from itertools import islice
from uuid import UUID

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidName
from msmqwire.headers.acknowledgements import ACK_LABEL, ORDER_QUEUE_IDENTIFIER, ORDER_QUEUE_NAME
from msmqwire.names import DirectName, FormatName, PrivateName
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, OutgoingQueue
from msmqwire.qm.model.enumerations import INFINITE, DeliveryGuarantee, QueueType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.session_table import SessionTable
from msmqwire.qm.protocols.binary.transfer_table import TransferTable
from msmqwire.qm.protocols.interface import CoreServices
from msmqwire.qm.rules import serialization


class OrderAcknowledgements:
    """Builds order and final acknowledgements and sends them like other messages."""

    def __init__(self, services: CoreServices, sessions: SessionTable, transfers: TransferTable) -> None:
        self._context, self._messages, self._queues = services.context, services.messages, services.queues
        self._identity, self._sessions, self._transfers = services.identity, sessions, transfers
        self._order_queues: dict[tuple[UUID, FormatName], OutgoingQueue] = {}  # least recently used first
        self._last: dict[UUID, OutgoingQueue] = {}  # by sender: where its last acknowledgement went

    def restore(self) -> None:
        """Take over the stored queues for acknowledgements; the newest one of a sender is its last."""
        for queue in self._context.queue_manager.queues.values():
            if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is not None:
                assert queue.destination is not None, "an outgoing queue has a destination"
                self._order_queues[queue.acknowledged_peer, queue.destination] = queue
                self._last[queue.acknowledged_peer] = queue

    def due(self, session: Session, info: IncomingTransactionalTransferInfo) -> None:
        """Start the Order Ack Send Timer for a sequence: MQQB-3.1.5.8.6-02."""
        if not info.sequence_number or not session.is_open:
            return
        session.order_acks_due[info] = None
        context = self._context
        late = context.utc - session.last_order_ack_send_time >= context.settings.maximum_order_ack_delay_s
        if context.timers.active(Timer.ORDER_ACK_SEND, session.number) and late:
            return
        context.timers.start(
            Timer.ORDER_ACK_SEND, session.number, context.settings.order_ack_timeout_ms,
            lambda: self.send_due(session),
        )  # fmt: skip

    def send_due(self, session: Session) -> None:
        """Order Ack Send Timer Event: [MS-MQQB] 3.1.6.9."""
        due, session.order_acks_due = session.order_acks_due, {}
        if session.is_open:
            for info in due:
                self._send_order_ack(info, session)
            session.last_order_ack_send_time = self._context.utc

    def _send_order_ack(self, info: IncomingTransactionalTransferInfo, session: Session) -> None:
        """Send Transactional Acknowledgment of class ORDER_ACK: [MS-MQQB] 3.1.7.17."""
        body = serialization.order_ack_body(
            info.sequence_identifier, info.sequence_number, info.sequence_number - 1
        )
        self._send(MessageClass.MQMSG_CLASS_ORDER_ACK, body, info.sender_identifier, session)

    def send_final_ack(self, message: Message, message_class: int, session: Session | None) -> None:
        """Send Transactional Acknowledgment of another class: [MS-MQQB] 3.1.7.17."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "only transactional messages have a FinalAck"
        body = serialization.final_ack_body(
            sequence,
            message.transaction_sequence_number,
            message.transaction_previous_sequence_number,
            message.source_machine_identifier,
            message.identifier.uniquifier,
        )
        self._send(message_class, body, message.source_machine_identifier, session)

    def removed(self, message: Message, reason: int) -> None:
        """Send the final acknowledgement of a message that left its queue: [MS-MQQB] 3.1.7.2.1, 3.1.7.2.2."""
        requested = (
            message.positive_journaling_requested
            or message.negative_journaling_requested
            or message.final_ack_required
        )
        own = message.source_machine_identifier == self._context.queue_manager.identifier
        if message.transactional and requested and not own:
            self.send_final_ack(message, reason, None)

    def remember_route(self, sender: UUID, session: Session) -> None:
        """Messages of a sender arrive over a session: its acknowledgements can go back there."""
        if sender not in self._last:
            self._order_queue(sender, _order_queue_name(sender, session))

    def _send(self, message_class: int, body: bytes, sender: UUID, session: Session | None) -> None:
        """Send to the sender over the session its message came by, or along the route used before."""
        queue = self._last.get(sender) if session is None else None
        if queue is None:
            name = _order_queue_name(sender, session)
            known = self._order_queues.get((sender, name))
            used = known is not None and known.number in self._transfers.transfers
            if not used and not self._sessions.may_send_to(name, sender):
                return
            queue = self._order_queue(sender, name)
        message = Message(
            body=body,
            message_class=message_class,
            label=ACK_LABEL,
            priority=0,
            delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
            time_to_reach_queue=INFINITE,
            destination=queue.destination,
        )
        self._identity.stamp(message)
        self._messages.enqueue(queue, message, ignore_quota=True)

    def _order_queue(self, sender: UUID, name: FormatName) -> OutgoingQueue:
        """Return the outgoing queue for acknowledgements to a sender, even if its address is one of ours."""
        queue = self._order_queues.pop((sender, name), None)
        if queue is None:
            self._evict()
            queue = OutgoingQueue(
                self._context.new_guid(), label=name.canonical, destination=name, acknowledged_peer=sender
            )
            queue.queue_type = QueueType.SYSTEM
            self._queues.add(queue)
        self._order_queues[sender, name] = queue
        self._last[sender] = queue
        return queue

    def _evict(self) -> None:
        """Forget the queues of the senders silent for longest, if there are too many."""
        excess = len(self._order_queues) + 1 - self._context.settings.incoming_sequences_max
        idle = ((key, queue) for key, queue in self._order_queues.items() if not queue.active)
        for (sender, name), queue in list(islice(idle, max(0, excess))):  # mostly among the first
            del self._order_queues[sender, name]
            if self._last.get(sender) is queue:
                del self._last[sender]
            self._transfers.forget(queue)


def _order_queue_name(sender: UUID, session: Session | None) -> FormatName:
    """Return the order queue of a sender: by address if it is the other side of a session of direct names.

    After routing the other side of the session is not the sender, so that it is named by its own Identifier:
    MQQB-3.1.7.17-07 and -08.
    """
    if session is not None and session.direct_format_session and session.remote_guid == sender:
        try:
            return DirectName("TCP", session.remote_address, ORDER_QUEUE_NAME, private=True)
        except InvalidName:
            pass  # an address that no direct name can have
    return PrivateName(sender, ORDER_QUEUE_IDENTIFIER)
