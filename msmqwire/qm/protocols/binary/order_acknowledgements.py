"""Messages that the system sends: administration, order and final acknowledgements, and reports.

[MS-MQQB] 3.1.5.8.9, 3.1.7.1.7, 3.1.7.2, 3.1.7.15 and 3.1.7.17.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.constants import MQ_OK, MessageClass
from msmqwire.errors import InvalidName
from msmqwire.headers.acknowledgements import ACK_LABEL, ORDER_QUEUE_IDENTIFIER, ORDER_QUEUE_NAME
from msmqwire.names import DirectName, FormatName, PrivateName, PublicName
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, OutgoingQueue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    DeliveryGuarantee,
    QueueAccessType,
    QueueType,
)
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.rules import serialization

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine
    from msmqwire.qm.protocols.binary.session import Session

INSECURE: Final = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
        MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
        MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
        MessageClass.MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    }
)
"""Classes that are not sent while SendInsecureNacks is false: MQQB-3.1.7.15-03."""
_WITHOUT_BODY: Final = (MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
_RECEIVE_FAILED: Final = AcknowledgementsRequested.ACK_NEG_RECEIVE
_RECEIVED: Final = AcknowledgementsRequested.ACK_POS_RECEIVE
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


class Acknowledging:
    """Makes the messages of the system and sends them like any other."""

    def __init__(self, engine: BinaryEngine) -> None:
        self._engine, self._context = engine, engine.context
        self._queues: dict[tuple[UUID, FormatName], OutgoingQueue] = {}
        self._last: dict[UUID, OutgoingQueue] = {}  # by sender: where its last acknowledgement went

    def restore(self) -> None:
        """The stored queues for order and final acknowledgements; the newest of a sender is its last."""
        for queue in self._context.queue_manager.queues.values():
            if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is not None:
                assert queue.destination is not None, "an outgoing queue has a destination"
                self._queues[queue.acknowledged_peer, queue.destination] = queue
                self._last[queue.acknowledged_peer] = queue

    # -- administration acknowledgements --------------------------------------------------------------

    def administration(self, message: Message, message_class: int) -> None:
        """Send Administration Acknowledgment: [MS-MQQB] 3.1.7.15."""
        if message.administration is None:
            return
        if message_class in INSECURE and not self._context.settings.send_insecure_nacks:
            return
        body = message.body if message_class not in _WITHOUT_BODY and not message.privacy_level else b""
        self._send(
            message.administration,
            Message(
                body=body,
                message_class=message_class,
                correlation_identifier=bytes(message.identifier),
                response=message.destination,
                label=message.label,
                body_type=message.body_type,
                delivery_guarantee=message.delivery_guarantee,
                time_to_reach_queue=INFINITE,
            ),
        )

    def arrived(self, message: Message) -> None:
        """A message of this queue manager arrived without a session: as [MS-MQQB] 3.1.5.8.10, 3.1.5.5.4."""
        journal = self._context.queue_manager.system_journal_queue
        if message.acknowledgements_requested & AcknowledgementsRequested.ACK_POS_ARRIVAL:
            self.administration(message, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)
        if message.positive_journaling_requested and journal is not None:
            self._engine.messages.journal(message, journal)

    def removed(self, message: Message, reason: int) -> None:
        """A message has left its destination queue: [MS-MQQB] 3.1.7.2.1 and 3.1.7.2.2."""
        wished = message.acknowledgements_requested
        received = reason == MessageClass.MQMSG_CLASS_ACK_RECEIVE
        if wished & (_RECEIVED if received else _RECEIVE_FAILED):
            self.administration(message, reason)
        wanted = (
            message.positive_journaling_requested
            or message.negative_journaling_requested
            or message.final_ack_required
        )
        own = message.source_machine_identifier == self._context.queue_manager.identifier
        if message.transactional and wanted and not own:
            self.final(message, reason, None)

    # -- order and final acknowledgements -------------------------------------------------------------

    def order(self, info: IncomingTransactionalTransferInfo, session: Session) -> None:
        """Send Transactional Acknowledgment of class ORDER_ACK: [MS-MQQB] 3.1.7.17."""
        body = serialization.order_ack_body(
            info.sequence_identifier, info.sequence_number, info.sequence_number - 1
        )
        self._transactional(MessageClass.MQMSG_CLASS_ORDER_ACK, body, info.sender_identifier, session)

    def know(self, sender: UUID, session: Session) -> None:
        """Messages of a sender come over a session: its acknowledgements can go back there."""
        if sender not in self._last:
            self._queue(sender, _order_queue(sender, session))

    def final(self, message: Message, message_class: int, session: Session | None) -> None:
        """Send Transactional Acknowledgment of the other classes: [MS-MQQB] 3.1.7.17."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "only transactional messages have a FinalAck"
        body = serialization.final_ack_body(
            sequence,
            message.transaction_sequence_number,
            message.transaction_previous_sequence_number,
            message.source_machine_identifier,
            message.identifier.uniquifier,
        )
        self._transactional(message_class, body, message.source_machine_identifier, session)

    def _transactional(self, message_class: int, body: bytes, sender: UUID, session: Session | None) -> None:
        """To the sender, by the session that its message came over, or as it was reached before."""
        queue = self._last.get(sender) if session is None else None
        if queue is None:
            name = _order_queue(sender, session)
            known = self._queues.get((sender, name))
            used = known is not None and known.number in self._engine.transfers
            if not used and self._engine.connecting.refuses(name, sender):
                return
            queue = self._queue(sender, name)
        message = Message(
            body=body,
            message_class=message_class,
            label=ACK_LABEL,
            priority=0,
            delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
            time_to_reach_queue=INFINITE,
            destination=queue.destination,
        )
        self._engine.stamp(message)
        self._engine.messages.enqueue(queue, message, must=True)

    def _queue(self, sender: UUID, name: FormatName) -> OutgoingQueue:
        """The outgoing queue for acknowledgements to a sender, also where its address is one of ours."""
        queue = self._queues.pop((sender, name), None)
        if queue is None:
            self._make_room()
            queue = OutgoingQueue(
                self._context.new_guid(), label=name.canonical, destination=name, acknowledged_peer=sender
            )
            queue.queue_type = QueueType.SYSTEM
            self._engine.queues.add(queue)
        self._queues[sender, name] = queue  # the one not used longest stands first
        self._last[sender] = queue
        return queue

    def _make_room(self) -> None:
        """Forget queues to senders of whom nothing was heard longest, where there are too many."""
        excess = len(self._queues) + 1 - self._context.settings.incoming_sequences_max
        idle = ((key, queue) for key, queue in self._queues.items() if not queue.active)
        for (sender, name), queue in list(islice(idle, max(0, excess))):  # the first ones mostly are
            del self._queues[sender, name]
            if self._last.get(sender) is queue:
                del self._last[sender]
            self._engine.forget(queue)

    # -- reports ---------------------------------------------------------------------------------------

    def trace(self, message: Message, next_hop: str | None = None) -> None:
        """A report that a message has come, or leaves for the next hop: 3.1.5.8.9 and 3.1.7.1.7."""
        if message.tracing_queue_identifier == NULL_GUID or message.destination is None:
            return
        number = f"{message.identifier.uniquifier:08X}"
        hops = f"{message.hop_count:02X}"
        when = datetime.fromtimestamp(self._context.utc, UTC)
        clock = f"{when:%I:%M:%S} {'AM' if when.hour < 12 else 'PM'}"
        date = f"{_DAYS[when.weekday()]},{_MONTHS[when.month - 1]} {when:%d} {when:%y}"
        start = str(message.tracing_queue_identifier)[:4].upper()
        source = str(message.source_machine_identifier).upper()
        label = f"{start}:{number}:{hops} received by {source} at {clock} {date}"
        lines = [
            f"<MESSAGE ID>{number}</MESSAGE ID>",
            f"<TARGET QUEUE>{message.destination.canonical}</TARGET QUEUE>",
        ]
        if next_hop is not None:
            lines += [f"<NEXT HOP>{next_hop}</NEXT HOP>", f"<HOP COUNT>{hops} </HOP COUNT>"]
        report = Message(
            body="".join(f"{line}\r\n" for line in lines).encode("utf-16-le"),
            message_class=MessageClass.MQMSG_CLASS_REPORT,
            label=label,
        )
        self._send(PublicName(message.tracing_queue_identifier), report)

    def _send(self, name: FormatName, message: Message) -> None:
        """Open Queue and Enqueue Message To An Open Queue; a queue that can't be opened gets nothing."""
        engine = self._engine
        if engine.connecting.refuses(name):
            return
        status, descriptor = engine.queues.open(name, QueueAccessType.SEND_ACCESS)
        if status != MQ_OK or descriptor is None:
            return
        message.destination = name
        engine.stamp(message)
        engine.messages.enqueue_to_open_queue(descriptor, message, must=True)
        engine.queues.close(descriptor)


def _order_queue(sender: UUID, session: Session | None) -> FormatName:
    """The order queue of a sender: by address if its messages come over the session itself, by direct names.

    After routing the other side of the session is not the sender, so that it is named by its own Identifier:
    MQQB-3.1.7.17-07 and -08.
    """
    if session is not None and session.direct_format_session and session.remote_guid == sender:
        try:
            return DirectName("TCP", session.remote_address, ORDER_QUEUE_NAME, private=True)
        except InvalidName:
            pass  # an address that no direct name can have
    return PrivateName(sender, ORDER_QUEUE_IDENTIFIER)
