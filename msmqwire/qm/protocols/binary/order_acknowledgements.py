"""Order and final acknowledgements of transactional messages: [MS-MQQB] 3.1.5.8.6, 3.1.6.9 and 3.1.7.17."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Final
from uuid import UUID

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidName
from msmqwire.headers.acknowledgements import ACK_LABEL, ORDER_QUEUE_IDENTIFIER, ORDER_QUEUE_NAME
from msmqwire.names import DirectName, FormatName, PrivateName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, OutgoingQueue
from msmqwire.qm.model.enumerations import INFINITE, DeliveryGuarantee, QueueType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.places import SessionPlaces
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.transfer_table import TransferTable
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.memory_pool import Kind
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.origin_keys import OriginKeys
from msmqwire.qm.rules.queue_fields import NAMES_CACHED
from msmqwire.qm.rules.queues import Queues, outgoing_bytes
from msmqwire.qm.rules.reflection_limits import ReflectionLimits

_AT_ONCE: Final = 16
"""One in 16 queues of an origin is forgotten in one go, since finding the origin takes time."""

_Key = tuple[UUID, FormatName, str]
"""A sender, the place for its acknowledgements, and the origin that they are bound to."""


class OrderAcknowledgements:
    """Builds order and final acknowledgements and sends them like other messages."""

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        queues: Queues,
        identity: MessageIdentity,
        reflection_limits: ReflectionLimits,
        places: SessionPlaces,
        transfers: TransferTable,
    ) -> None:
        self._context, self._messages, self._queues = context, messages, queues
        self._identity, self._reflection_limits, self._memory = identity, reflection_limits, messages.pool
        self._places, self._transfers = places, transfers
        self._order_queues: dict[_Key, OutgoingQueue] = {}
        self._of_origins: OriginKeys[_Key] = OriginKeys()
        # the place of the last acknowledgement to a sender, by the origin that they are bound to
        self._last: dict[tuple[UUID, str], OutgoingQueue] = {}

    def restore(self) -> None:
        """Take over the stored queues for acknowledgements; the newest one of a sender counts."""
        for queue in self._context.queue_manager.queues.values():
            if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is not None:
                assert queue.destination is not None, "an outgoing queue has a destination"
                bound_to = self._bound_to(queue.asked_by or "")
                self._remember((queue.acknowledged_peer, queue.destination, bound_to), queue)

    def _bound_to(self, origin: str) -> str:
        return origin if self._context.settings.bind_senders else ""

    def _remember(self, key: _Key, queue: OutgoingQueue) -> None:
        self._order_queues[key] = queue
        self._of_origins.add(queue.asked_by or "", key)
        self._last[key[0], key[2]] = queue

    def _forget(self, key: _Key) -> OutgoingQueue:
        queue = self._order_queues.pop(key)
        self._of_origins.remove(queue.asked_by or "", key)
        return queue

    def due(self, session: Session, info: IncomingTransactionalTransferInfo) -> None:
        """Start the Order Ack Send Timer for a sequence: MQQB-3.1.5.8.6-02."""
        if not info.sequence_number or not session.is_open:
            return
        session.order_acks_due[info] = None
        context = self._context
        # MQQB-3.1.2.7-02, MQQB-3.1.1.3.1-34, MQQB-3.1.3.2-13
        late = context.utc - session.last_order_ack_send_time >= context.settings.maximum_order_ack_delay_s
        if context.timers.active(Timer.ORDER_ACK_SEND, session.number) and late:  # MQQB-3.1.1.6.2-04
            return
        context.timers.start(
            # MQQB-3.1.2.7-01 and -03, MQQB-3.1.1.6.2-05, MQQB-3.1.3.2-11, MQQB-3.1.1.3.1-32
            Timer.ORDER_ACK_SEND, session.number, context.settings.order_ack_timeout_ms,
            lambda: self.send_due(session),
        )  # fmt: skip

    def send_due(self, session: Session) -> None:
        """Order Ack Send Timer Event: [MS-MQQB] 3.1.6.9."""
        due, session.order_acks_due = session.order_acks_due, {}
        if session.is_open:  # MQQB-3.1.6.9-01
            for info in due:
                self._send_order_ack(info, session)
            session.last_order_ack_send_time = self._context.utc  # MQQB-3.1.6.9-02, MQQB-3.1.1.3.1-33

    def _send_order_ack(self, info: IncomingTransactionalTransferInfo, session: Session) -> None:
        """Send Transactional Acknowledgment of class ORDER_ACK: [MS-MQQB] 3.1.7.17."""
        body = serialization.order_ack_body(
            info.sequence_identifier,  # MQQB-3.1.1.5-08, MQQB-3.1.1.6.2-06
            info.sequence_number,
            info.sequence_number - 1,  # MQQB-3.1.7.17-04
        )
        sender = info.sender_identifier
        origin = session.origin
        # MQQB-3.1.1.6.2-02, MQQB-3.1.1.7.3-01, MQMQ-2.2.18.1.6-21
        self._send(MessageClass.MQMSG_CLASS_ORDER_ACK, body, sender, session, origin)

    def send_final_ack(self, message: Message, message_class: int, session: Session | None) -> None:
        """Send Transactional Acknowledgment of another class: [MS-MQQB] 3.1.7.17."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "only transactional messages have a FinalAck"
        body = serialization.final_ack_body(
            sequence,  # MQQB-2.2.5.1-02
            message.transaction_sequence_number,  # MQQB-2.2.5.1-03
            message.transaction_previous_sequence_number,  # MQQB-3.1.7.17-05 and -06, MQQB-2.2.5.1-04
            message.source_machine_identifier,  # MQQB-2.2.5.1-05
            message.identifier.uniquifier,  # MQQB-2.2.5.1-06
        )
        # MQQB-2.2.5-11
        self._send(message_class, body, message.source_machine_identifier, session, message.origin)

    def removed(self, message: Message, reason: int) -> None:
        """Send the final acknowledgement of a message that left its queue: [MS-MQQB] 3.1.7.2.1, 3.1.7.2.2."""
        requested = (
            message.positive_journaling_requested
            or message.negative_journaling_requested
            or message.final_ack_required  # DMPR-3.1.1.12-72
        )
        own = message.source_machine_identifier == self._context.queue_manager.identifier
        if message.transactional and requested and not own:  # MQQB-3.1.7.2.2-01, MQQB-2.2.5-02
            # MQQB-3.1.1.7.3-01
            self.send_final_ack(message, reason, None)  # MQQB-3.1.7.2.2-02, MQQB-3.1.1.1.1.8-08 and -09

    def remember_route(self, sender: UUID, session: Session) -> None:
        """Messages of a sender arrive over a session: its acknowledgements can go back there."""
        if (sender, self._bound_to(session.origin)) not in self._last:
            self._order_queue(sender, _order_queue_name(sender, session), session.origin)

    def _send(
        self, message_class: int, body: bytes, sender: UUID, session: Session | None, origin: str
    ) -> None:
        """Send to the sender over the session its message came by, or along the route used before."""
        message = Message(
            body=body,
            message_class=message_class,  # MQQB-3.1.7.17-01, MQQB-3.1.7.17-02
            label=ACK_LABEL,  # MQQB-3.1.7.17-03
            priority=0,
            delivery_guarantee=DeliveryGuarantee.RECOVERABLE,  # MQQB-3.1.7.17-03
            time_to_reach_queue=INFINITE,
            origin=origin,
        )
        queue = self._last.get((sender, self._bound_to(origin))) if session is None else None
        if queue is None:
            queue = self._order_queue(sender, _order_queue_name(sender, session), origin)
        if queue is None or not self._may_send(queue, origin, message):  # MQQB-3.1.7.17-09
            return
        message.destination = queue.destination
        self._identity.stamp(message)
        self._messages.enqueue(queue, message, ignore_quota=True)  # MQQB-3.1.7.17-09

    def _may_send(self, queue: OutgoingQueue, origin: str, message: Message) -> bool:
        """Return whether an acknowledgement may go to a queue because of a message of an origin."""
        if not origin:
            return True
        transfer = self._transfers.transfer_of(queue)
        assert queue.destination is not None, "an outgoing queue has a destination"
        if not self._places.goes_back(transfer, origin) and not self._reflection_limits.spend(
            queue.destination, origin, message
        ):
            return False
        return transfer.session is not None or self._places.may_reach(transfer.peer, origin)

    def _order_queue(self, sender: UUID, name: FormatName, origin: str) -> OutgoingQueue | None:
        """Return the outgoing queue for acknowledgements to a sender, even if its address is one of ours.

        None if there is no memory for one more.
        """
        key = sender, name, self._bound_to(origin)
        if key in self._order_queues:
            queue = self._forget(key)
        else:
            if not self._has_room(origin, outgoing_bytes(name)):
                return None
            queue = OutgoingQueue(
                self._context.new_guid(), label=name.canonical, destination=name, acknowledged_peer=sender,
                asked_by=origin,
            )  # fmt: skip
            queue.queue_type = QueueType.SYSTEM
            self._queues.add(queue)
        self._remember(key, queue)
        return queue

    def _has_room(self, origin: str, size: int) -> bool:
        """Return whether there is room for one more queue; queues of silent senders are forgotten if needed.

        The origin with the most queues loses the ones that have been idle longest.
        """
        if self._fits(origin, size):
            return True
        crowding = self._memory.crowding(Kind.ROUTES, origin, size)
        keys = self._of_origins.of(crowding)
        idle = (key for key in keys if not self._order_queues[key].active)
        for key in list(islice(idle, max(1, len(keys) // _AT_ONCE))):
            queue = self._forget(key)
            if self._last.get((key[0], key[2])) is queue:
                del self._last[key[0], key[2]]
            self._transfers.forget(queue)
        if self._fits(origin, size):
            return True
        self._context.trouble("memory", f"no more acknowledgements to the senders of messages from {origin}")
        return False

    def _fits(self, origin: str, size: int) -> bool:
        few = len(self._order_queues) < self._context.settings.incoming_sequences_max
        return few and self._memory.fits(Kind.ROUTES, origin, size)


def _order_queue_name(sender: UUID, session: Session | None) -> FormatName:
    """Return the order queue of a sender: by address if it is the peer of a session of direct names.

    After routing the peer is not the sender, which is then named by its own Identifier: MQQB-3.1.7.17-07 and
    -08.
    """
    name: FormatName | None = None
    # MQQB-3.1.7.17-07
    if session is not None and session.direct_format_session and session.remote_guid == sender:
        name = _order_queue_at(session.remote_address)
    return name or PrivateName(sender, ORDER_QUEUE_IDENTIFIER)  # MQQB-3.1.7.17-08


@lru_cache(maxsize=NAMES_CACHED)
def _order_queue_at(address: str) -> FormatName | None:
    """Return the order queue at an address; None for an address that no direct name can have."""
    try:
        return DirectName("TCP", address, ORDER_QUEUE_NAME, private=True)
    except InvalidName:
        return None
