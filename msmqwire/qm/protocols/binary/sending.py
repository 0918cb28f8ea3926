"""Sending messages: [MS-MQQB] 3.1.7.1, 3.1.7.11, 3.1.7.12 and 3.1.7.16."""

from __future__ import annotations

from typing import Final

from msmqwire.constants import MessageClass
from msmqwire.errors import QueueError
from msmqwire.names import PublicName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import Send
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    ConnectionStatus,
    OutgoingQueueState,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.connecting import Connecting
from msmqwire.qm.protocols.binary.message_security import MessageSecurity
from msmqwire.qm.protocols.binary.outgoing_sequences import OutgoingSequences
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.session_timers import SessionTimers
from msmqwire.qm.protocols.binary.states import MESSAGES, SessionMessageEvent, SessionMessageState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, SessionTransfer, kind_of
from msmqwire.qm.protocols.binary.transfer_table import TransferTable
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.qm.rules.unreached import too_late
from msmqwire.qm.rules.waiting_messages import WaitingMessages, is_over, time_limit

PIGGY_BACK_AFTER: Final = 0.75
"""Fraction of the Session Ack Send Timer after which a message carries a SessionHeader: MQQB-3.1.7.11-02."""

_TOO_LATE: Final = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT


class SessionSending:
    """Sends the messages that wait in outgoing queues, and gives up expired ones."""

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        dispatch: Dispatch,
        identity: MessageIdentity,
        system_messages: SystemMessages,
        outcome: DeliveryOutcome,
        transfers: TransferTable,
        connecting: Connecting,
        timers: SessionTimers,
        sequences: OutgoingSequences,
        security: MessageSecurity,
    ) -> None:
        self._context, self._messages, self._dispatch = context, messages, dispatch
        self._identity, self._system_messages, self._outcome = identity, system_messages, outcome
        self._transfers, self._connecting, self._timers = transfers, connecting, timers
        self._sequences, self._security = sequences, security
        self._waiting = WaitingMessages(context, "binary", self._over)

    def available(self, queue: OutgoingQueue, position: MessagePosition) -> None:
        """Message Position Available Event: [MS-MQQB] 3.1.7.12."""
        message = position.message
        transfer = self._transfers.transfer_of(queue)
        outgoing = transfer.add(position, message.priority)  # MQQB-3.1.7.12-03
        self.watch(outgoing, message)
        if transfer.session is None or not transfer.session.is_open:
            self._connecting.ensure_session(transfer)  # MQQB-3.1.5.2-01, MQQB-3.1.7.12-02
        if transfer.session is not None:
            self.send_waiting(transfer.session)

    def watch(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """Start the expiry timer of a message, so that its time ends even if nothing can be sent."""
        self._waiting.watch(outgoing, message, time_limit(message))

    def _over(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """The expiry timer of a message has fired; it counts only if the clock, which may be set, agrees."""
        if outgoing.state is SessionMessageState.WAITING_FOR_FINAL_ACK:
            return
        if not _out_of_time(message, self._context.utc):
            self.watch(outgoing, message)
        elif not self._is_in_doubt(outgoing, message):
            self._undelivered(outgoing, message)

    def send_waiting(self, session: Session) -> None:
        """Send the messages that wait for a session as far as its window allows, the most urgent first."""
        dispatch = self._dispatch
        while session.is_open and self._has_room(session):
            next_message = session.send_order.first()
            if next_message is None:
                return
            # MQQB-3.1.7.12-04, MQQB-3.1.7.14-02
            dispatch.add(next_message.position, next_message, next_message.priority)
            if next_message.state is SessionMessageState.WAITING_TO_SEND:
                return  # it can't be sent now

    def _has_room(self, session: Session) -> bool:
        """Return whether the window allows one more message."""
        limit = self._context.settings.unacknowledged_bytes_max
        # MQQB-3.1.1.3.1-19
        return session.unacked_message_count < session.window and session.unacked_bytes < limit

    def send(self, outgoing: OutgoingMessagePosition) -> None:
        """Send User Message: [MS-MQQB] 3.1.7.1."""
        transfer = outgoing.transfer
        session = transfer.session
        if (
            outgoing.state is not SessionMessageState.WAITING_TO_SEND
            or session is None
            or not session.is_open
        ):
            return
        if transfer.queue.state is not OutgoingQueueState.CONNECTED:  # MQQB-3.1.7.1-02
            return
        if not self._has_room(session):  # MQQB-3.1.7.1-03
            return
        message = outgoing.position.message
        # MQQB-3.1.7.1-05, MQQB-3.1.7.1.2-01, MQQB-3.1.7.1.2-02
        if _out_of_time(message, self._context.utc) and not self._is_in_doubt(outgoing, message):
            self._undelivered(outgoing, message)
            return
        if self._sequences.is_used_up(transfer) and self._needs_number(outgoing, message):
            return
        self._identity.identify(message)  # MQQB-3.1.7.1.1-01
        self._address(transfer, message)
        try:
            protected = self._protected(outgoing, session, message)
        except QueueError as refused:
            self._unprotected(outgoing, message, refused)
            return
        self._send_packet(session, outgoing, message, protected)

    def _address(self, transfer: SessionTransfer, message: Message) -> None:
        """Set the queue manager of a public queue, which may not have been known before: MQMQ-2.2.19.2-03."""
        if not isinstance(message.destination, PublicName) or message.queue_manager_address.int:
            return
        if self._is_own(message) and transfer.qm_guid is not None:
            message.destination_queue_manager_identifier, message.packet = transfer.qm_guid, None

    def _is_own(self, message: Message) -> bool:
        return message.source_machine_identifier.int == self._context.queue_manager.identifier.int

    def _protected(self, outgoing: OutgoingMessagePosition, session: Session, message: Message) -> Message:
        """Return a message in the form for a session, encrypted if requested.

        A message that is passed on was protected by its sender. Raises QueueError.
        """
        if not self._is_own(message):
            return message
        return self._security.protected(message, outgoing.transfer, session)

    def _unprotected(self, outgoing: OutgoingMessagePosition, message: Message, refused: QueueError) -> None:
        """Handling Encryption Errors: [MS-MQQB] 3.1.7.1.5.1.

        A message that the destination may have is left as it is: its keys may be found again.
        """
        transfer = outgoing.transfer
        session = transfer.session
        self._transfers.record(
            transfer, ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, refused.hresult,  # MQQB-3.1.7.1.5.1-03
            session.remote_address if session else "",
        )  # fmt: skip
        if self._is_in_doubt(outgoing, message):
            if session is not None:
                self._connecting.close(session)  # and tries again later
            return
        transfer.remove(outgoing)
        self._sequences.given_up(outgoing)
        self._outcome.report(message, delivered=False, reason=refused.why)  # MQQB-3.1.7.1.5.1-01
        self._outcome.dead_letter(
            # MQQB-3.1.7.1.5.1-02
            outgoing.position,
            message,
            MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
            why=refused.why,
        )

    def _send_packet(
        self, session: Session, outgoing: OutgoingMessagePosition, message: Message, protected: Message
    ) -> None:
        """Update and send the packet: [MS-MQQB] 3.1.7.1.3 and 3.1.7.1.6. `protected` is sent."""
        context = self._context
        transfer = outgoing.transfer
        own, kind = self._is_own(message), kind_of(message)
        if kind == "Transactional" and own:
            self._number(outgoing, message)
            if protected is not message:
                self._number(outgoing, protected)
        header = None
        recoverable = message.recoverable
        session.count_sent(outgoing, recoverable=recoverable)
        key = session.number
        # With a SessionHeader an order or final acknowledgement would not be recognised: [MS-MQQB] 3.1.5.1.1.
        carries = session.unacked_received_count and not transfer.to_order_queue  # MQQB-3.1.7.11-02
        # MQQB-3.1.7.11-02
        if carries and context.timers.elapsed(Timer.SESSION_ACK_SEND, key) > PIGGY_BACK_AFTER:
            header = session.header()  # MQQB-3.1.1.6.1-01
            self._timers.start_ack_send(session)  # MQQB-3.1.7.11-04
        outgoing.state = MESSAGES[kind][outgoing.state, SessionMessageEvent.SENT]
        outgoing.transmitted = True  # MQQB-3.1.7.1.6-01, MQQB-3.1.1.3.1.2-05
        self._outcome.transmitted(message, transfer.queue, session.remote_address)
        self._waiting.moved()
        if not context.timers.active(Timer.SESSION_ACK_WAIT, key):  # MQQB-3.1.7.1.3-12, MQQB-3.1.2.4-02
            self._timers.start_ack_wait(session)
        assert session.connection is not None, "an open session has a connection"
        # MQQB-3.1.7.1.1-02, MQQB-3.1.7.1.6-01, MQQB-3.1.7.11-01
        context.effects.append(Send(session.connection, serialization.session_packet(protected, header)))
        if kind == "Transactional" and own:
            self._sequences.await_order_ack(transfer)  # MQQB-3.1.7.1.3-03, MQQB-3.1.2.6-01
        if message.tracing_requested:  # MQQB-3.1.7.1.7-01
            self._system_messages.trace(message, next_hop=session.remote_address)

    def _needs_number(self, outgoing: OutgoingMessagePosition, message: Message) -> bool:
        if kind_of(message) != "Transactional" or outgoing.tx_sequence_number:
            return False
        return self._is_own(message)

    def _number(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """Set the position of a message in its transactional sequence: [MS-MQQB] 3.1.7.1.3."""
        if not outgoing.tx_sequence_number:  # MQQB-3.1.7.1.3-01
            self._sequences.number(outgoing)
        message.transactional_message_sequence_identifier = outgoing.tx_sequence_id  # DMPR-3.1.1.12-69
        message.transaction_sequence_number = outgoing.tx_sequence_number  # DMPR-3.1.1.12-70
        message.transaction_previous_sequence_number = outgoing.tx_previous_number  # DMPR-3.1.1.12-70

    def _is_in_doubt(self, outgoing: OutgoingMessagePosition, message: Message) -> bool:
        """Return whether the destination may already have a transactional message.

        Only the destination's acknowledgement ends such a message; messages in transit count as in doubt.
        """
        # MQQB-3.1.1.1.1.7-11
        if self._context.settings.expire_in_doubt or kind_of(message) != "Transactional":
            return False
        return outgoing.transmitted or not self._is_own(message)  # MQQB-3.1.7.1.3-05

    def give_up(self, outgoing: OutgoingMessagePosition) -> None:
        """Give up a peer's message to an unreachable destination, as if its time were over.

        A transactional message is still held by its sender, who sends it again.
        """
        message = outgoing.position.message
        if kind_of(message) == "Transactional":
            outgoing.transfer.remove(outgoing)
            self._sequences.given_up(outgoing)
            self._context.refused(_TOO_LATE, message, outgoing.position.queue, why="it can't be reached")
            self._messages.discard(outgoing.position)
        else:
            self._undelivered(outgoing, message)

    def _undelivered(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """Give up a message whose time is over, and dead-letter it if requested: [MS-MQQB] 3.1.7.1.2.

        The class is the same for both times: NackReceiveTimeoutAtSender of [MS-MQDMPR] 3.1.1.12 has no number
        of its own.
        """
        asked = AcknowledgementsRequested.ACK_NEG_ARRIVAL
        utc = self._context.utc
        if _out_of_time(message, utc) and not expired(message, utc):
            asked |= AcknowledgementsRequested.ACK_NEG_RECEIVE  # by its TimeToBeReceived alone
        outgoing.transfer.remove(outgoing)
        self._sequences.given_up(outgoing)
        if message.acknowledgements_requested & asked:  # MQQB-3.1.7.1.2-03, DMPR-3.1.1.12-41
            self._system_messages.acknowledge(message, _TOO_LATE)  # MQMQ-2.2.18.1.6-08
        transfer, why = outgoing.transfer, ""
        if not outgoing.transmitted:  # else the destination may have it
            why = too_late(transfer.queue, transfer.host or str(transfer.queue.destination))
        self._outcome.report(message, delivered=False, reason=why or None)
        # MQMQ-2.2.18.1.6-08
        self._outcome.dead_letter(outgoing.position, message, _TOO_LATE, why=why)

    def purged(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """An administrator deletes a message before its destination has it: MQMQ-2.2.18.1.6-07."""
        in_doubt = self._is_in_doubt(outgoing, message)
        outgoing.transfer.remove(outgoing)
        self._sequences.given_up(outgoing)
        if not in_doubt and message.acknowledgements_requested & AcknowledgementsRequested.ACK_NEG_ARRIVAL:
            self._system_messages.acknowledge(message, MessageClass.MQMSG_CLASS_NACK_DELETED)
        self._outcome.report(message, delivered=False)


def expired(message: Message, utc: int) -> bool:
    """Return whether TimeToReachQueue has elapsed: MQQB-3.1.7.1.2-01."""
    return is_over(message, message.time_to_reach_queue, utc)  # MQMQ-2.2.19.1-23


def _out_of_time(message: Message, utc: int) -> bool:
    """Return whether it is too late to receive a message: TimeToBeReceived counts here too."""
    return is_over(message, time_limit(message), utc)
