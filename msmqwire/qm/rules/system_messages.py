"""Messages of the queue manager about other messages: administration acknowledgements and reports.

[MS-MQQB] 3.1.5.8.9, 3.1.7.1.7, 3.1.7.2 and 3.1.7.15; they are the same for all protocols.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from msmqwire.constants import MessageClass, hresult_name
from msmqwire.errors import InvalidValue
from msmqwire.names import FormatName, PublicName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import INFINITE, AcknowledgementsRequested, QueueAccessType, QueueType
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queue_states import is_http
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.reflection_limits import ReflectionLimits

INSECURE: Final = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
        MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
        MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
        MessageClass.MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    }
)
"""Classes not sent while SendInsecureNacks is false: MQQB-3.1.7.15-03."""
_WITHOUT_BODY: Final = (MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
_RECEIVE_FAILED: Final = AcknowledgementsRequested.ACK_NEG_RECEIVE
_RECEIVED: Final = AcknowledgementsRequested.ACK_POS_RECEIVE
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # MQQB-3.1.5.8.9-04
_MONTHS: Final = (  # MQQB-3.1.5.8.9-04
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


class SystemMessages:
    """Builds the messages of the system and sends them like any other.

    Args:
        may_send_to: whether an outgoing queue may be opened for a message of an origin; asked before each
            send.
        reflection_limits: limits messages that don't go back to the origin.

    Attributes:
        when_due_by_http: called with a message and a class, in place of an acknowledgement, if its
            administration queue is reached by HTTP, where a receipt has its place.
    """

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        queues: Queues,
        identity: MessageIdentity,
        may_send_to: Callable[[FormatName, str], bool],
        reflection_limits: ReflectionLimits,
    ) -> None:
        self._context, self._messages, self._queues = context, messages, queues
        self._identity, self._may_send_to, self._reflection_limits = identity, may_send_to, reflection_limits
        self.when_due_by_http: Callable[[Message, int], None] | None = None

    def acknowledge(self, message: Message, message_class: int) -> None:
        """Send Administration Acknowledgment: [MS-MQQB] 3.1.7.15."""
        if message.administration is None:  # MQQB-3.1.7.15-02, MQQB-3.1.7.15-05, MQQB-4.1.7-08
            return
        if is_http(message.administration):
            if self.when_due_by_http is not None:
                self.when_due_by_http(message, message_class)
            return
        # MQQB-3.1.7.15-03, MQQB-5.1-04
        if message_class in INSECURE and not self._context.settings.send_insecure_nacks:
            return
        encrypted = message.encrypted or message.privacy_level
        # MQQB-3.1.7.15-18
        body = message.body if message_class not in _WITHOUT_BODY and not encrypted else b""
        self.send(
            message.administration,  # MQQB-3.1.7.15-05, MQQB-3.1.7.15-01
            Message(
                body=body,
                message_class=message_class,  # MQQB-3.1.7.15-04, MQQB-3.1.5.11-01
                correlation_identifier=bytes(message.identifier),  # MQMQ-2.2.19.3-11, MQQB-3.1.7.15-11
                response=message.destination,  # MQQB-3.1.7.15-12
                label=message.label,
                body_type=message.body_type,
                delivery_guarantee=message.delivery_guarantee,  # MQQB-3.1.7.2.1-04, MQQB-3.1.7.15-16
                time_to_reach_queue=INFINITE,  # MQQB-3.1.7.15-17
            ),
            origin=message.origin,
        )

    def arrived_locally(self, message: Message) -> None:
        """A message to a queue of this queue manager arrived without a transfer.

        It is acknowledged and journaled as transferred messages are by [MS-MQQB] 3.1.5.8.10 and 3.1.5.5.4.
        """
        journal = self._context.queue_manager.system_journal_queue
        if message.acknowledgements_requested & AcknowledgementsRequested.ACK_POS_ARRIVAL:
            self.acknowledge(message, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)
        if message.positive_journaling_requested and journal is not None:
            self._messages.journal(message, journal)

    def removed(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """A message has left its destination queue: [MS-MQQB] 3.1.7.2.1 and 3.1.7.2.2."""
        if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM or position.silent:
            return
        # MQQB-3.1.1.1.1.4-07 and -08, MQQB-3.1.1.1.1.6-07 and -08
        received = reason == MessageClass.MQMSG_CLASS_ACK_RECEIVE  # MQMQ-2.2.19.3-03, MQMQ-2.2.19.3-05
        message = position.message
        # MQQB-3.1.7.2.1-01, MQQB-3.1.7.2.1-02, MQMQ-2.2.19.3-03, MQMQ-2.2.19.3-05
        if message.acknowledgements_requested & (_RECEIVED if received else _RECEIVE_FAILED):
            self.acknowledge(message, reason)  # MQQB-3.1.7.2.1-03

    def trace(self, message: Message, next_hop: str | None = None) -> None:
        """Report that a message has arrived, or leaves for the next hop: 3.1.5.8.9 and 3.1.7.1.7."""
        if message.tracing_queue_identifier == NULL_GUID or message.destination is None:  # MQQB-3.1.5.8.9-01
            return
        if not self._context.settings.report_messages:  # MQMQ-2.2.20.8-06
            return
        number = f"{message.identifier.uniquifier:08X}"
        hops = f"{message.hop_count:02X}"
        when = datetime.fromtimestamp(self._context.utc, UTC)
        clock = f"{when:%I:%M:%S} {'AM' if when.hour < 12 else 'PM'}"  # MQQB-3.1.5.8.9-04
        date = f"{_DAYS[when.weekday()]},{_MONTHS[when.month - 1]} {when:%d} {when:%y}"  # MQQB-3.1.5.8.9-04
        start = str(message.tracing_queue_identifier)[:4].upper()  # MQQB-3.1.5.8.9-03, MQQB-3.1.7.1.7-02
        source = str(message.source_machine_identifier).upper()
        # MQQB-3.1.5.8.9-03, MQQB-3.1.7.1.7-02
        label = f"{start}:{number}:{hops} received by {source} at {clock} {date}"
        lines = [
            f"<MESSAGE ID>{number}</MESSAGE ID>",  # MQQB-3.1.5.8.9-05, MQQB-3.1.7.1.7-03
            f"<TARGET QUEUE>{message.destination.canonical}</TARGET QUEUE>",
        ]
        if next_hop is not None:
            # MQQB-3.1.7.1.7-03
            lines += [f"<NEXT HOP>{next_hop}</NEXT HOP>", f"<HOP COUNT>{hops} </HOP COUNT>"]
        report = Message(
            body="".join(f"{line}\r\n" for line in lines).encode("utf-16-le"),
            # DMPR-3.1.1.12-07
            message_class=MessageClass.MQMSG_CLASS_REPORT,  # MQQB-3.1.5.8.9-02, MQQB-3.1.7.1.7-01
            label=label,
        )
        # DMPR-3.1.1.12-07, MQQB-3.1.5.8.9-02
        self.send(PublicName(message.tracing_queue_identifier), report, origin=message.origin)

    def send(self, name: FormatName, message: Message, *, origin: str) -> None:
        """Open Queue and Enqueue Message To An Open Queue; a queue that can't be opened gets nothing.

        `origin` is the origin of the message that is reported on.
        """
        if not self._queues.lookup.is_local_name(name):
            if not self._reflection_limits.may_send(name, origin, message):
                return
            if not self._may_send_to(name, origin):
                return
        # MQQB-3.1.7.15-19
        status, descriptor = self._queues.open(name, QueueAccessType.SEND_ACCESS, asked_by=origin)
        message.origin = origin
        message.destination = name  # MQQB-3.1.7.15-01, MQQB-3.1.7.15-05
        if descriptor is None:  # MQQB-3.1.5.8.9-07, MQQB-3.1.7.15-19
            why = f"the queue for a report on a message: {hresult_name(status)}"
            self._context.refused(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, message, why=why)
            return
        self._identity.stamp(message)
        try:
            self._enqueue(descriptor, message)  # MQQB-3.1.5.8.9-06, MQQB-3.1.7.15-19
        except InvalidValue as exc:
            self._context.trouble("system message", f"a message to {name!s:.200} can't be built: {exc}")
        self._queues.close(descriptor)

    def _enqueue(self, descriptor: OpenQueueDescriptor, message: Message) -> None:
        """Enqueue a message, without its body if it is too large with it: a packet with the body may just
        fit.
        """
        try:
            self._messages.enqueue_to_open_queue(descriptor, message, ignore_quota=True)
        except InvalidValue:
            if not message.body:
                raise
            message.body = b""
            self._messages.enqueue_to_open_queue(descriptor, message, ignore_quota=True)
