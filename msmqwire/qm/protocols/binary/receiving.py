"""Receiving messages: [MS-MQQB] 3.1.5.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from msmqwire.constants import MQ_OK, MessageClass, hresult_name
from msmqwire.errors import MalformedPacket
from msmqwire.names import DirectName, FormatName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    EnqueueStatus,
    QueueAccessType,
    QueueType,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.refusals import DISK, MALFORMED, QUOTA
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.message_security import MessageSecurity
from msmqwire.qm.protocols.binary.order_acknowledgements import OrderAcknowledgements
from msmqwire.qm.protocols.binary.outgoing_sequences import OutgoingSequences
from msmqwire.qm.protocols.binary.places import SessionPlaces
from msmqwire.qm.protocols.binary.sending import expired
from msmqwire.qm.protocols.binary.session import ACK_FLAGS, Session
from msmqwire.qm.protocols.binary.session_timers import SessionTimers
from msmqwire.qm.protocols.binary.transfer_table import TransferTable
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.history import History
from msmqwire.qm.rules.incoming_sequences import IncomingSequences
from msmqwire.qm.rules.lookup import ORDER_QUEUE_NUMBER
from msmqwire.qm.rules.memory_pool import EXPRESS_BYTES, Kind
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.relaying import Relaying
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.qm.security.work_limits import TooMuchWork
from msmqwire.schema import Record

HOPS_MAX: Final = 0x1D
"""UserHeader.Flags.RC: MQQB-3.1.5.8.2-18."""
_MANAGER_QUOTA_EXCEEDED: Final = EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED
_QUEUE_QUOTA_EXCEEDED: Final = EnqueueStatus.QUEUE_QUOTA_EXCEEDED
_NEGATIVE: Final = int(AcknowledgementsRequested.ACK_NEG_ARRIVAL)
_POSITIVE: Final = int(AcknowledgementsRequested.ACK_POS_ARRIVAL)


class _Refusal(NamedTuple):
    """The refusal of a message: its class, further details, and the kind of trouble."""

    message_class: int
    why: str = ""
    kind: str = "refused"


class SessionReceiving:
    """Checks incoming messages, and puts them into their queues.

    Args:
        history, incoming, relaying, system_messages: parts of the core. places, transfers, timers, outgoing,
            order_acks, security: parts of the engine.
        close: closes a session.
        acknowledged: takes the SessionHeader that a message carries.
    """

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        queues: Queues,
        *,
        history: History,
        incoming: IncomingSequences,
        relaying: Relaying,
        system_messages: SystemMessages,
        places: SessionPlaces,
        transfers: TransferTable,
        timers: SessionTimers,
        outgoing: OutgoingSequences,
        order_acks: OrderAcknowledgements,
        security: MessageSecurity,
        close: Callable[[Session], None],
        acknowledged: Callable[[Session, Record], None],
    ) -> None:
        self._context, self._messages, self._queues = context, messages, queues
        self._history, self._incoming, self._relaying = history, incoming, relaying
        self._system_messages, self._pool = system_messages, messages.pool
        self._places, self._transfers, self._timers = places, transfers, timers
        self._outgoing, self._order_acks, self._security = outgoing, order_acks, security
        self._close, self._acknowledged = close, acknowledged

    def user_message(self, session: Session, packet: Record, data: bytes) -> None:
        """Take a UserMessage packet from an open session."""
        try:
            message = serialization.deserialize(packet, data)  # MQQB-3.1.5.8.8-01
        except MalformedPacket as exc:
            self.unreadable(session, str(exc))
            return
        self._message(session, message, packet.SessionHeader, packet)  # MQQB-3.1.5.8.8-01

    def unreadable(self, session: Session, why: str) -> None:
        """Close a session because of a malformed packet: [MS-MQQB] 3.1.5.1.2 and 3.1.5.1.3."""
        if session.is_open:  # before the handshake no message can be lost
            self._context.refused(MALFORMED, why=f"{why:.400}", peer=session.remote_address, kind="malformed")
        self._close(session)  # MQQB-3.1.5.1.2-02, MQQB-3.1.5.1.3-01

    def without_properties(self, session: Session, message: Message, header: Record | None) -> None:
        """Refuse a message that claims to have no MessagePropertiesHeader: MQMQ-2.2.19.2-34.

        It is unreadable, but its sender has counted it: it is counted here as well, so that the messages
        around it keep their numbers. The acknowledgements that it asks for would be in the missing header. A
        transactional message takes its position in the sequence, which could not continue otherwise, and is
        answered by a FinalAck.
        """
        self._message(session, message, header, None, MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED)

    def _message(
        self,
        session: Session,
        message: Message,
        header: Record | None,
        packet: Record | None,
        refusal: int | None = None,
    ) -> None:
        """Take a message, or refuse it with the class given, and then take the SessionHeader that it carries.

        `packet` is its packet, for the signature; it may be changed.
        """
        message.came_from(session.remote_address, session.origin)
        if message.destination is None or _lacks_sequence_number(message):
            why = "no destination" if message.destination is None else "no number in its sequence"
            self._context.refused(MALFORMED, message, why=why, kind="malformed")
            self._close(session)  # MQQB-3.1.5.1.3-01
            return
        local = self._is_local(message)  # MQQB-3.1.5.8-02
        manager = self._context.queue_manager
        if manager.draining:  # as for the next
            self._close(session)
            return
        if not local and manager.throttled:  # MQQB-3.1.5.8.2-01: it is not saved
            # Later messages would be counted one too low, and acknowledged in place of this one.
            self._context.refused(DISK, message)
            self._close(session)
            return
        self.count(session, recoverable=message.recoverable)  # MQQB-3.1.1.5-09, MQQB-3.1.5.8.1-04
        if isinstance(message.destination, DirectName):
            session.direct_format_session = True  # MQQB-3.1.5.8.2-03, MQQB-3.1.1.3.1-31
        if message.transactional:
            self._transactional(session, message, packet, local=local, refusal=refusal)
        elif refusal is not None:
            self._context.refused(refusal, message, self._queue_of(message))
        # MQQB-3.1.1.1.1.4-02, MQQB-3.1.1.1.1.6-02
        elif not self._history.known(message):  # MQQB-3.1.5.8.1-01, MQQB-3.1.5.8.1-02
            self._once(session, message, packet, local=local)
        if header is not None and session.is_open:
            # MQQB-3.1.5.5-02
            self._acknowledged(session, header)  # MQQB-3.1.5.8.4-01, MQQB-3.1.5.8.4-02, MQQB-2.2.6-04
        if session.is_open:
            self._timers.acknowledge_at_window(session)

    def count(self, session: Session, *, recoverable: bool) -> None:
        """Count a message: [MS-MQQB] 3.1.5.8.2 and 3.1.5.8.7.

        Duplicates and refused messages count too: their sender has counted them as well.
        """
        if recoverable and session.recoverable_unacked >= ACK_FLAGS:  # MQQB-3.1.5.8.7-01
            self._timers.send_session_ack(session)
        session.count_received()  # MQQB-3.1.5.8.1-04, MQQB-3.1.5.8.2-02
        session.session_active = True  # MQQB-3.1.5.8.2-08
        timers, key, settings = self._context.timers, session.number, self._context.settings
        if session.unacked_received_count == 1 and settings.ack_delay_ms < session.ack_wait_timeout // 2:
            self._timers.start_ack_send(session, settings.ack_delay_ms)
        elif not timers.active(Timer.SESSION_ACK_SEND, key):  # MQQB-3.1.5.8.2-07
            self._timers.start_ack_send(session)  # MQQB-3.1.2.5-01
        if recoverable and session.count_recoverable_received():
            limit = settings.recoverable_ack_delay_ms
            # MQQB-3.1.5.8.7-05
            # MQQB-3.1.2.5-02, MQQB-2.2.2.1-01
            self._timers.start_ack_send(session, min(session.recoverable_ack_send_timeout, limit))

    def _is_local(self, message: Message) -> bool:
        """Return whether a message is for this queue manager.

        This includes a message for a queue here that names another queue manager: otherwise it would be
        stored unchecked.
        """
        address, name = message.destination_queue_manager_identifier.int, message.destination
        # MQQB-3.1.5.8.5-01
        if not address or address == self._context.queue_manager.identifier.int:  # MQQB-3.1.5.8.2-16
            return True
        return name is not None and self._queues.lookup.is_local_name(name)

    # -- messages that are not transactional ----------------------------------------------------------

    def _once(self, session: Session, message: Message, packet: Record | None, *, local: bool) -> None:
        if self._take(session, message, packet, local=local):
            self._history.add(message)  # MQQB-3.1.5.8.2-04

    def _take(
        self,
        session: Session,
        message: Message,
        packet: Record | None,
        *,
        local: bool,
        refusal: int | None = None,
    ) -> bool:
        """Enqueue or refuse a message; return False if its sender has to send it again."""
        queue, judged = None, None if refusal is None else _Refusal(refusal)
        try:
            if judged is None:
                judged, queue = self._judge(message, packet, local=local)  # MQQB-3.1.5.8-03
        except TooMuchWork:
            why = "messages from this origin take too much work for now"
            self._context.refused(QUOTA, message, self._queue_of(message), why=why, kind="message security")
            self._close(session)
            return False
        if judged is not None:
            refusal, why, kind = judged
            self._context.refused(refusal, message, self._queue_of(message), why=why, kind=kind)
        if not local and (message.soap_envelope or message.soap_compound_message):
            # Headers from HTTP are shown to readers here, and not sent on.
            message.packet = None  # MQMQ-2.2.19.2-39
            message.soap_envelope, message.soap_compound_message = "", b""
        if refusal is None:  # MQQB-3.1.5.8.8-02, MQQB-3.1.5.8.2-14
            assert queue is not None, "a message that is not refused has a queue"
            # MQQB-3.1.1.1.1.4-06, MQQB-3.1.1.1.1.6-06
            status = self._messages.enqueue(queue, message)  # MQQB-3.1.5.8.8-02
            if status is _MANAGER_QUOTA_EXCEEDED:  # MQQB-3.1.5.8.8-06
                self._close(session)
                return False
            if status is _QUEUE_QUOTA_EXCEEDED:  # MQQB-3.1.5.8.8-03 to -05
                # DMPR-3.1.1.12-09, MQQB-3.1.5.8.8-03, MQQB-3.1.5.8.8-04
                refusal = MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA
                deadletter = self._context.queue_manager.system_deadletter_queue
                # MQQB-3.1.5.8.8-05
                if message.negative_journaling_requested and not message.transactional and deadletter:
                    self._messages.journal(message, deadletter)
        if refusal is not None:
            if self._is_full(message) and _is_answered(message):
                # MQQB-3.1.5.8.8-06: otherwise the number of acknowledgements would have no limit
                self._close(session)
                return False
            self._refuse(session, message, refusal)
            return True
        assert queue is not None, "a message that is not refused has a queue"
        if message.tracing_requested:  # MQQB-3.1.5.8.9-01
            self._system_messages.trace(message)
        if not local:
            if message.transactional and isinstance(queue, OutgoingQueue):  # MQQB-3.1.5.8.8-09
                self._outgoing.report(self._transfers.transfer_of(queue))
        # MQQB-3.1.1.1.1.4-06, MQQB-3.1.1.1.1.6-06, MQQB-3.1.5.8.10-02, MQMQ-2.2.19.3-02
        elif _asks_for(message, _POSITIVE) and queue.queue_type is not QueueType.SYSTEM:
            # MQQB-3.1.5.8.10-01 and -02, DMPR-3.1.1.12-08
            self._system_messages.acknowledge(message, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)
        return True

    def _is_full(self, message: Message) -> bool:
        """Return whether the quota or the share of its origin is exhausted, or the disk refuses more.

        Answers to an express message are express messages as well, and there may be no memory for them.
        """
        manager = self._context.queue_manager
        if manager.throttled or manager.total_bytes >= manager.queue_manager_quota:
            return True
        if not self._messages.quotas.has_share(message.origin, len(message.body)):
            return True
        size = EXPRESS_BYTES + len(message.body)
        return not (message.recoverable or self._pool.fits(Kind.EXPRESS, message.origin, size))

    def _refuse(self, session: Session, message: Message, message_class: int) -> None:
        if _asks_for(message, _NEGATIVE):  # MQMQ-2.2.19.3-04
            self._system_messages.acknowledge(message, message_class)  # MQMQ-2.2.19.3-04
        if message.transactional:
            # MQQB-3.1.5.8.2-10, MQQB-3.1.5.8.2-12, MQQB-3.1.5.8.2-19
            self._order_acks.send_final_ack(message, message_class, session)  # MQQB-2.2.5-02

    def _queue_of(self, message: Message) -> Queue | None:
        """Return the queue here that a message is for."""
        if message.destination is None or not self._is_local(message):
            return None
        return self._queues.lookup.addressed(message.destination)

    def _judge(
        self, message: Message, packet: Record | None, *, local: bool
    ) -> tuple[_Refusal | None, Queue | None]:
        """Return why a message is refused or None, and the queue.

        General Processing, Security and Expiration of [MS-MQQB] 3.1.5.8.
        """
        if not local:
            message.hop_count += 1  # MQQB-3.1.5.8.2-17
            if message.hop_count > HOPS_MAX:
                # DMPR-3.1.1.12-09
                return _Refusal(MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED), None  # MQQB-3.1.5.8.2-18
        queue = None
        if local:  # MQQB-3.1.5.8-02, MQQB-3.1.5.8.3-01
            assert message.destination is not None, "a received message has a destination"
            queue = self._queues.lookup.addressed(message.destination)  # MQQB-3.1.5.8.5-01
            # MQQB-3.1.1.1.1.4-05, MQQB-3.1.1.1.1.6-05
            if queue is None or message.destination.is_read_only:  # MQQB-3.1.5.8.2-09, DMPR-3.1.1.12-09
                return _Refusal(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q), None
            if not self._accepts_name(message.destination):
                why = "the name belongs to another computer, and accept_other_names is false"
                return _Refusal(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why), None
            if queue.private_queue_number == ORDER_QUEUE_NUMBER:  # only for OrderAcks and FinalAcks
                return _Refusal(MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED), None
            # MQQB-3.1.1.1.1.8-06
            if message.transactional and not queue.transactional:  # MQQB-3.1.5.8.2-11, DMPR-3.1.1.12-11
                return _Refusal(MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q), None
            # MQQB-3.1.1.1.1.4-05, MQQB-3.1.1.1.1.6-05
            if queue.transactional and not message.transactional:  # MQQB-3.1.5.8.2-13, DMPR-3.1.1.12-11
                return _Refusal(MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG), None
            refusal = self._security.judge(message, queue, packet)  # MQQB-3.1.5.8.3-01
            # MQQB-3.1.1.1.1.4-01, MQQB-3.1.1.1.1.6-01, MQQB-3.1.1.1.1.8-01
            if refusal is not None:
                return _Refusal(refusal), None
        passes = message.transactional and not local and not self._context.settings.expire_in_doubt
        # MQQB-3.1.1.1.1.4-03, MQQB-3.1.1.1.1.6-03, MQQB-3.1.1.1.1.8-04, MQMQ-2.2.19.1-23
        if expired(message, self._context.utc) and not passes:  # MQQB-3.1.5.8-04
            return _Refusal(MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT), None  # DMPR-3.1.1.12-09
        if queue is None:  # MQQB-3.1.1.1.1.4-04, MQQB-3.1.1.1.1.6-04, MQQB-3.1.1.1.1.8-05
            return self._outgoing_queue(message)
        return None, queue

    def _outgoing_queue(self, message: Message) -> tuple[_Refusal | None, Queue | None]:
        """Return the outgoing queue of a message that is to be forwarded, or why it is refused."""
        assert message.destination is not None, "a received message has a destination"
        # For its sender the queue is not available, wherever it may be: MQMSG_CLASS_NACK_BAD_DST_Q.
        if not self._relaying.allows(message.destination):
            why = "messages from this origin are not forwarded by this computer"
            return _Refusal(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why, "relay refused"), None
        if not self._places.may_send_to(message.destination, message.origin):
            why = "there is no memory for one more destination"
            return _Refusal(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why), None
        status, descriptor = self._queues.open(  # MQQB-3.1.5.8.5-02
            message.destination, QueueAccessType.SEND_ACCESS, asked_by=message.origin
        )
        if status != MQ_OK or descriptor is None or descriptor.queue is None:  # MQQB-3.1.5.8.5-02
            return _Refusal(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, hresult_name(status)), None
        queue = descriptor.queue
        self._queues.close(descriptor)
        return None, queue

    def _accepts_name(self, name: FormatName) -> bool:
        """Whether the name in a message's address is accepted as a name of this computer.

        An address is not checked: it may be that of a gateway. Windows does the same.
        """
        if self._context.settings.accept_other_names:
            return True
        if not isinstance(name, DirectName) or name.protocol != "OS":
            return True
        computer = self._context.queue_manager.computer_name.lower()
        in_a_domain = name.host.lower().startswith(f"{computer}.")
        return in_a_domain or self._queues.lookup.is_local(name.host)

    # -- transactional messages -----------------------------------------------------------------------

    def _transactional(
        self,
        session: Session,
        message: Message,
        packet: Record | None,
        *,
        local: bool,
        refusal: int | None,
    ) -> None:
        """Transactional Message Processing: [MS-MQQB] 3.1.5.8.6.

        The sequence advances past a message whatever its outcome, so that it is never judged a second time
        with a different result.
        """
        # MQQB-3.1.5.8.6-01
        if not local:  # MQQB-3.1.1.6.2-01: only the final destination checks the sequence
            # MQQB-3.1.1.5-10, MQQB-3.1.1.3.1-35
            self._take(session, message, packet, local=False, refusal=refusal)
            return
        info = self._incoming.incoming(message)
        # MQQB-3.1.1.6.2-03
        # MQQB-3.1.1.1.1.8-02
        if not self._incoming.follows(info, message):  # MQQB-3.1.5.8.6-03, MQQB-3.1.5.8.6-05
            self._incoming.refused(info)
            self._order_acks.due(session, info)
            return
        self._order_acks.remember_route(info.sender_identifier, session)  # a reader may receive it at once
        if not self._take(session, message, packet, local=True, refusal=refusal):
            return
        queue = self._queues.lookup.addressed(info.format_name)
        if queue is not None:
            info.queue = queue
            # DMPR-3.1.1.2-27, DMPR-3.1.1.5-01
            queue.incoming[info.key] = info  # MQQB-3.1.1-01, MQQB-3.1.1.2-01
        self._incoming.accepted(info, message)  # MQQB-3.1.1.1.1.8-07
        self._order_acks.due(session, info)


def _lacks_sequence_number(message: Message) -> bool:
    """Return whether a transactional message has the invalid number 0: MQMQ-2.2.20.5-13."""
    return message.transactional and not message.transaction_sequence_number


def _asks_for(message: Message, acknowledgements: int) -> bool:
    """Return whether a message asks for any of these acknowledgements."""
    return int(message.acknowledgements_requested) & acknowledgements != 0  # operators on flags are slow


def _is_answered(message: Message) -> bool:
    """Return whether the sender is notified if a message is refused."""
    return message.transactional or _asks_for(message, _NEGATIVE)
