"""Sending messages: [MS-MQQB] 3.1.7.1, 3.1.7.11, 3.1.7.12 and 3.1.7.16."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from msmqwire.constants import MessageClass
from msmqwire.qm.model.effects import Send
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import INFINITE, AcknowledgementsRequested, OutgoingQueueState
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import MESSAGES, MessageEvent, MessageState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition
from msmqwire.qm.rules import serialization

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine

PIGGY_BACK_AFTER: Final = 0.75
"""The part of the Session Ack Send Timer after which a message carries a SessionHeader: MQQB-3.1.7.11-02."""
_MOVES_MIN: Final = 16
_ARRIVED: Final = (MessageState.DONE, MessageState.WAITING_FOR_FINAL_ACK)


def kind_of(message: Message) -> str:
    """Which of the message diagrams holds: a key of `states.MESSAGES`."""
    if message.transactional or message.transaction_identifier is not None:
        return "Transactional"
    return "Recoverable" if message.recoverable else "Express"


class Sending:
    """The sending half of the engine."""

    def __init__(self, engine: BinaryEngine) -> None:
        self._engine, self._context = engine, engine.context
        self._expiring: list[tuple[int, int, OutgoingMessagePosition]] = []  # by the time since the start
        self._moves = 0

    def available(self, queue: OutgoingQueue, position: MessagePosition) -> None:
        """Message Position Available Event: [MS-MQQB] 3.1.7.12."""
        message = position.message
        transfer = self._engine.transfer_of(queue)
        outgoing = transfer.add(position, message.priority)
        self.watch(outgoing, message)
        if transfer.session is None or not transfer.session.is_open:
            self._engine.connecting.ensure_session(transfer)
        if transfer.session is not None:
            self.send_waiting(transfer.session)

    def watch(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """Find a message whose TimeToReachQueue is over even while nothing can be sent."""
        if message.time_to_reach_queue == INFINITE:
            return
        context = self._context
        left = (message.sent_time or context.utc) + message.time_to_reach_queue - context.utc
        due = context.now + (left + 1) * 1000
        self._forget_done()
        heapq.heappush(self._expiring, (due, outgoing.position.number, outgoing))
        if self._expiring[0][2] is outgoing:
            self._await_expiry()

    def _forget_done(self) -> None:
        """What is done long before its time must not stay in memory until then: that may be days away.

        Called whenever a message comes or is sent, so that little is left when all have gone.
        """
        expiring = self._expiring
        self._moves += 1
        if self._moves > max(len(expiring) // 2, _MOVES_MIN):
            self._moves = 0
            expiring[:] = [entry for entry in expiring if entry[2].state is not MessageState.DONE]
            heapq.heapify(expiring)

    def _await_expiry(self) -> None:
        expiring = self._expiring
        while expiring and expiring[0][2].state is MessageState.DONE:
            heapq.heappop(expiring)
        if expiring:
            delay = expiring[0][0] - self._context.now
            self._context.timers.start(Timer.TIME_TO_REACH_QUEUE, None, delay, self._expire)

    def _expire(self) -> None:
        expiring = self._expiring
        while expiring and expiring[0][0] <= self._context.now:
            outgoing = heapq.heappop(expiring)[2]
            if outgoing.state not in _ARRIVED:
                message = outgoing.position.message
                if not expired(message, self._context.utc):
                    self.watch(outgoing, message)  # the clock was set
                elif not self._is_in_doubt(outgoing, message):
                    self.undelivered(outgoing, message, MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT)
        self._await_expiry()

    def send_waiting(self, session: Session) -> None:
        """Send what waits for a session, as far as its window allows, the most urgent first."""
        dispatch = self._engine.dispatch
        while session.is_open and self._has_room(session):
            found = None
            for transfer in session.transfers:
                if transfer.queue.state is not OutgoingQueueState.CONNECTED:
                    continue
                outgoing = transfer.next_waiting()
                if outgoing is not None and (found is None or _urgency(outgoing) > _urgency(found)):
                    found = outgoing
            if found is None:
                return
            dispatch.add(found.position, found, found.priority)
            if found.state is MessageState.WAITING_TO_SEND:
                return  # it can't be sent now

    def _has_room(self, session: Session) -> bool:
        """Whether the window has room for one more message."""
        limit = self._context.settings.unacknowledged_bytes_max
        return session.unacked_message_count < session.window and session.unacked_bytes < limit

    def send(self, outgoing: OutgoingMessagePosition) -> None:
        """Send User Message: [MS-MQQB] 3.1.7.1."""
        transfer = outgoing.transfer
        session = transfer.session
        if outgoing.state is not MessageState.WAITING_TO_SEND or session is None or not session.is_open:
            return
        if transfer.queue.state is not OutgoingQueueState.CONNECTED:  # MQQB-3.1.7.1-02
            return
        if not self._has_room(session):  # MQQB-3.1.7.1-03
            return
        message = outgoing.position.message
        if expired(message, self._context.utc) and not self._is_in_doubt(outgoing, message):
            self.undelivered(outgoing, message, MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT)
            return
        self._engine.identify(message)
        if not self._engine.protect(outgoing, message):
            return
        self._send_packet(session, outgoing, message)

    def _send_packet(self, session: Session, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """Updating and sending the packet: [MS-MQQB] 3.1.7.1.3 and 3.1.7.1.6."""
        context = self._context
        transfer = outgoing.transfer
        own = message.source_machine_identifier == context.queue_manager.identifier
        kind = kind_of(message)
        if kind == "Transactional" and own:
            self._number(outgoing, message)
        header = None
        recoverable = message.recoverable
        session.count_sent(outgoing, recoverable=recoverable)
        key = session.number
        # An order or final acknowledgement with a SessionHeader would not be known as one: MQQB-3.1.5.1.1-04.
        carries = session.unacked_received_count and not transfer.to_order_queue
        if carries and context.timers.elapsed(Timer.SESSION_ACK_SEND, key) > PIGGY_BACK_AFTER:
            header = session.header()
            self._engine.session_timers.start_ack_send(session)
        outgoing.state = MESSAGES[kind][outgoing.state, MessageEvent.SENT]
        outgoing.transmitted = True
        self._forget_done()
        if not context.timers.active(Timer.SESSION_ACK_WAIT, key):
            self._engine.session_timers.start_ack_wait(session)
        assert session.connection is not None, "an open session has a connection"
        context.effects.append(Send(session.connection, serialization.session_packet(message, header)))
        if kind == "Transactional" and own:
            self._engine.sequences.await_order_ack(transfer)
        if message.tracing_requested:
            self._engine.acknowledging.trace(message, next_hop=session.remote_address)

    def _number(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """The place of a message in the transactional sequence: MQQB-3.1.7.1.3-01 to -04."""
        if not outgoing.tx_sequence_number:
            self._engine.sequences.number(outgoing)
        message.transactional_message_sequence_identifier = outgoing.tx_sequence_id
        message.transaction_sequence_number = outgoing.tx_sequence_number
        message.transaction_previous_sequence_number = outgoing.tx_previous_number

    def _is_in_doubt(self, outgoing: OutgoingMessagePosition, message: Message) -> bool:
        """Whether the destination of a transactional message may have it: only its word ends such a message.

        That holds for all that pass through here on their way as well.
        """
        if self._context.settings.expire_in_doubt or kind_of(message) != "Transactional":
            return False
        own = message.source_machine_identifier == self._context.queue_manager.identifier
        return outgoing.transmitted or not own

    def undelivered(self, outgoing: OutgoingMessagePosition, message: Message, message_class: int) -> None:
        """A message that is not sent any more, dead-lettered if that was asked for: [MS-MQQB] 3.1.7.1.2."""
        engine = self._engine
        outgoing.transfer.remove(outgoing)
        engine.sequences.given_up(outgoing)
        if message.acknowledgements_requested & AcknowledgementsRequested.ACK_NEG_ARRIVAL:
            engine.acknowledging.administration(message, message_class)
        engine.ending.tell_sent(message, delivered=False)
        engine.ending.dead_letter(outgoing, message)


def expired(message: Message, utc: int) -> bool:
    """Whether TimeToReachQueue is over: MQQB-3.1.7.1.2-01."""
    limit = message.time_to_reach_queue
    return limit != INFINITE and utc - message.sent_time > limit


def _urgency(outgoing: OutgoingMessagePosition) -> tuple[int, int]:
    return outgoing.transfer.queue.base_priority + outgoing.priority, -outgoing.position.number
