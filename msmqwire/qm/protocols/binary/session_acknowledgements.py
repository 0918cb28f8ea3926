"""SessionHeaders from the peer, which count received and saved messages: [MS-MQQB] 3.1.5.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.qm.protocols.binary.outgoing_sequences import OutgoingSequences
from msmqwire.qm.protocols.binary.sending import SessionSending
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.session_timers import SessionTimers
from msmqwire.qm.protocols.binary.states import MESSAGES, SessionMessageEvent, SessionMessageState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.schema import Record

UNSAVED_MAX: Final = 1_024
"""Limit of messages received and not saved by a peer. An honest peer acknowledges every 32 saved ones."""


class SessionAcknowledgements:
    """Applies session acknowledgements to the messages in flight.

    Args:
        timers, sending, sequences, outcome: parts of the engine.
        close: closes a session whose counts disagree, or whose peer saves nothing.
    """

    def __init__(
        self,
        timers: SessionTimers,
        sending: SessionSending,
        sequences: OutgoingSequences,
        outcome: DeliveryOutcome,
        close: Callable[[Session], None],
    ) -> None:
        self._timers, self._sending, self._sequences = timers, sending, sequences
        self._outcome, self._close = outcome, close

    def received(self, session: Session, header: Record) -> None:
        """Take a SessionHeader, and send the messages that the window now allows: [MS-MQQB] 3.1.5.5."""
        session.received_window_size = header.WindowSize  # MQQB-3.1.5.5-04, MQMQ-2.2.20.4-15
        for outgoing in session.acknowledge(header.AckSequenceNumber):  # MQQB-3.1.5.5-03
            self._acknowledged(outgoing)
        for outgoing in session.saved(header.RecoverableMsgAckSeqNumber, header.RecoverableMsgAckFlags):
            self._saved(outgoing)
        if len(session.unsaved) > UNSAVED_MAX + session.unacked_message_count:
            self._close(session)
            return
        if (
            header.UserMsgSequenceNumber != session.message_received_count  # MQMQ-2.2.20.4-11
            or header.RecoverableMsgSeqNumber != session.recoverable_message_received_count
        ):
            self._close(session)  # MQQB-3.1.5.5.5-01
            return
        if session.awaits_acks:  # MQQB-3.1.5.5.5-02
            self._timers.start_ack_wait(session)
        self._sending.send_waiting(session)  # MQQB-3.1.5.5.1-03

    def _acknowledged(self, outgoing: OutgoingMessagePosition) -> None:
        """AckSequenceNumber covers a message: [MS-MQQB] 3.1.5.5.1 and 3.1.5.5.2."""
        outgoing.received_session_ack = True  # MQQB-3.1.5.5.1-01
        outgoing.transfer.ended_unacknowledged = 0
        # Not RecoverableSequenceNumber: it is 0 for every 65,536th recoverable message too.
        # MQQB-3.1.5.5.2-01
        # MQQB-3.1.1.6.1-03
        if outgoing.state is SessionMessageState.WAITING_FOR_SESSION_ACK and not outgoing.recoverable:
            outgoing.transfer.remove(outgoing)
            self._outcome.delivered(outgoing.position)

    def _saved(self, outgoing: OutgoingMessagePosition) -> None:
        """The peer has saved a recoverable message: [MS-MQQB] 3.1.5.5.3."""
        outgoing.session = None
        if outgoing.state is not SessionMessageState.WAITING_FOR_SESSION_ACK:
            return
        # MQQB-3.1.1.6.1-05, MQQB-3.1.1.6.2-08, MQQB-3.1.1.3.1.2-06
        if not outgoing.tx_sequence_number:  # MQQB-3.1.5.5.3-01, MQQB-3.1.5.5.3-04, MQQB-3.1.5.5.5-03
            outgoing.transfer.remove(outgoing)
            self._outcome.delivered(outgoing.position)
            return
        outgoing.state = MESSAGES["Transactional"][outgoing.state, SessionMessageEvent.SESSION_ACK]
        if outgoing.received_order_ack:  # MQQB-3.1.5.5.3-03
            self._sequences.arrived(outgoing)
