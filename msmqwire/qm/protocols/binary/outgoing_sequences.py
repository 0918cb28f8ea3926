"""Transactional sequences that begin here: [MS-MQQB] 3.1.1.5, 3.1.5.6, 3.1.5.7 and 3.1.6.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.constants import MessageClass
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import MESSAGES, SessionMessageEvent, SessionMessageState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, SessionTransfer
from msmqwire.qm.rules import transfer_rows
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.sequence_identity import SequenceIdentity

_TRANSACTIONAL = MESSAGES["Transactional"]
_NUMBER_MAX: Final = 0xFFFFFFFF  # of TxSequenceNumber


class OutgoingSequences:
    """Numbers transactional messages and follows their acknowledgements.

    Args:
        context: the state of the queue manager.
        identity: the identity of sequences.
        outcome: disposes of delivered and refused messages.
        send_waiting: sends the messages that wait for a session; called to send messages again.
    """

    def __init__(
        self,
        context: Context,
        identity: SequenceIdentity,
        outcome: DeliveryOutcome,
        send_waiting: Callable[[Session], None],
    ) -> None:
        self._context, self._identity = context, identity
        self._outcome, self._send_waiting = outcome, send_waiting
        self._by_id: dict[TxSequenceId, SessionTransfer] = {}
        self._numbered: dict[
            int, OutgoingMessagePosition
        ] = {}  # by MessageID, until no acknowledgement is awaited

    def restore_transfer(self, transfer: SessionTransfer, numbered: list[OutgoingMessagePosition]) -> None:
        """Take over a restored transfer and its messages that had numbers."""
        if transfer.sequence_id.ordinal:
            self._by_id[transfer.sequence_id] = transfer
        previous = 0  # earlier messages were acknowledged, and are not stored; 0 precedes all
        for outgoing in sorted(numbered, key=lambda message: message.tx_sequence_number):
            self._numbered[outgoing.position.message.identifier.uniquifier] = outgoing
            if outgoing.state is SessionMessageState.WAITING_FOR_FINAL_ACK:
                continue
            number, outgoing.tx_previous_number = outgoing.tx_sequence_number, previous
            transfer.numbered += 1
            transfer.ordered.append(outgoing)
            transfer.unacked_sequence.append(SequenceInfo(outgoing.tx_sequence_id, number, previous))
            previous = number
        self.report(transfer)

    def begin(self, transfer: SessionTransfer) -> None:
        """Start a sequence unless the transfer has one."""
        if transfer.sequence_id.ordinal:
            return
        # MQQB-3.1.1.3.1-12, MQQB-3.1.1.3.1-14, MQQB-3.1.1.5-06
        transfer.sequence_id, transfer.next_number = self._identity.next(), 1
        transfer.last_ack = SequenceInfo()
        self._by_id[transfer.sequence_id] = transfer

    def is_used_up(self, transfer: SessionTransfer) -> bool:
        """Return whether a sequence has no number left: it must be acknowledged before another one begins."""
        return transfer.next_number >= _NUMBER_MAX

    def number(self, outgoing: OutgoingMessagePosition) -> None:
        """Assign the next number in the sequence of its transfer: [MS-MQQB] 3.1.7.1.3."""
        transfer = outgoing.transfer
        self.begin(transfer)
        number, sequence = transfer.next_number, transfer.sequence_id
        # MQQB-3.1.1.3.1.2-04, MQQB-3.1.1.5-03, MQMQ-2.2.5-02
        outgoing.tx_sequence_id, outgoing.tx_sequence_number = sequence, number  # MQQB-3.1.1.5-01
        outgoing.tx_previous_number = number - 1  # MQQB-3.1.7.1.3-01, MQMQ-2.2.5-02
        transfer.next_number = number + 1  # MQQB-3.1.7.1.3-02
        transfer.numbered += 1
        transfer.ordered.append(outgoing)
        self._numbered[outgoing.position.message.identifier.uniquifier] = outgoing
        transfer_rows.put_outgoing(self._context, outgoing)  # MQQB-3.1.1.3.2-01
        transfer_rows.put_sequence(self._context, transfer.queue.number, sequence, transfer.next_number)
        # MQQB-3.1.1.5-05, MQQB-3.1.1.3.1.1-07
        transfer.unacked_sequence.append(last := SequenceInfo(sequence, number, number - 1))
        info = transfer.queue.transfer
        # DMPR-3.1.1.4-06 and -08
        info.eod_no_ack_count, info.eod_last_non_ack = len(transfer.unacked_sequence), last
        info.eod_first_non_ack = transfer.unacked_sequence[0]  # DMPR-3.1.1.4-02
        info.eod_next_seq = SequenceInfo(sequence, number + 1, number)  # DMPR-3.1.1.4-07

    def _end_if_all_acknowledged(self, transfer: SessionTransfer) -> None:
        """End the sequence: the next message begins a new one, with a greater identifier."""
        if transfer.numbered or not transfer.sequence_id.ordinal:  # MQQB-3.1.1.5-02, MQQB-3.1.5.6-09
            return
        self._by_id.pop(transfer.sequence_id, None)
        was_used_up = self.is_used_up(transfer)
        transfer.sequence_id = TxSequenceId()  # MQQB-3.1.1.5-07
        transfer.next_number = 1
        transfer.unacked_sequence.clear()
        self._context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
        self._context.changes.delete(Table.SEQUENCE, transfer.queue.number)
        self.report(transfer)
        if was_used_up and transfer.session is not None:
            self._send_waiting(transfer.session)

    def await_order_ack(self, transfer: SessionTransfer) -> None:
        """Start the Transactional Ack Wait Timer: [MS-MQQB] 3.1.2.6."""
        context, key = self._context, transfer.queue.number
        if context.timers.active(Timer.TRANSACTIONAL_ACK_WAIT, key):
            return
        interval = self._interval(transfer)
        transfer.resend_time = context.utc + interval  # MQQB-3.1.2.6-03, MQQB-3.1.1.3.1.1-06
        context.timers.start(
            # MQQB-3.1.2.6-01 and -02, MQQB-3.1.1.3.1.1-04
            Timer.TRANSACTIONAL_ACK_WAIT,
            key,
            interval * 1000,
            lambda: self._resend(transfer),
        )

    def _interval(self, transfer: SessionTransfer) -> int:
        return self._context.settings.resend_timer_table[transfer.resend_index]  # MQQB-3.1.1.3-12

    def _reset_interval_if_done(self, transfer: SessionTransfer) -> None:
        """Return to the shortest interval once there is nothing to resend: MQQB-3.1.5.6-06."""
        if not transfer.unacked_sequence:
            transfer.resend_index = 0

    def _resend(self, transfer: SessionTransfer) -> None:
        """Transactional Ack Wait Timer Event: [MS-MQQB] 3.1.6.5.

        The interval grows with consecutive timeouts, not with acknowledgements: MQQB-3.1.5.6-03.
        """
        if not transfer.ordered:
            return
        last = len(self._context.settings.resend_timer_table) - 1
        transfer.resend_index = min(transfer.resend_index + 1, last)  # MQQB-3.1.1.3.1.1-03
        transfer.send_again(  # MQQB-3.1.1.1.1.1-09, MQQB-3.1.1.1.1.2-08, MQQB-3.1.1.6-02, MQQB-3.1.6.5-02
            [
                message
                for message in transfer.ordered
                if message.state is not SessionMessageState.WAITING_TO_SEND  # MQQB-3.1.6.5-01
            ]
        )
        self.await_order_ack(transfer)
        self.report(transfer)
        if transfer.session is not None:
            self._send_waiting(transfer.session)

    def resend(self, transfer: SessionTransfer) -> None:
        """Let the Transactional Ack Wait Timer fire now."""
        self._context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
        self._resend(transfer)

    def given_up(self, outgoing: OutgoingMessagePosition) -> None:
        """Drop a message from its sequence: its successor now refers to its predecessor."""
        if not outgoing.tx_sequence_number:
            return
        transfer, ordered = outgoing.transfer, outgoing.transfer.ordered
        transfer_rows.delete_outgoing(self._context, outgoing)
        self._numbered.pop(outgoing.position.message.identifier.uniquifier, None)
        if outgoing in ordered:
            index = ordered.index(outgoing)
            del ordered[index]
            if index < len(ordered):
                # MQQB-3.1.1.5-04
                ordered[index].tx_previous_number = outgoing.tx_previous_number  # MQQB-3.1.7.1.3-04
        for info in transfer.unacked_sequence:
            if info.number == outgoing.tx_sequence_number:
                transfer.unacked_sequence.remove(info)
                break
        self._reset_interval_if_done(transfer)
        self._end_if_all_acknowledged(transfer)
        self.report(transfer)

    def order_ack(self, sequence: TxSequenceId, number: int) -> None:
        """Receiving an OrderAck: [MS-MQQB] 3.1.5.6. It is ignored if the sequence has ended."""
        transfer = self._by_id.get(sequence)
        if transfer is None or number >= transfer.next_number:  # MQQB-3.1.5.6-11
            return
        transfer.time_of_last_ack = self._context.utc  # MQQB-3.1.5.6-02, MQQB-3.1.1.3.1.1-01
        transfer.last_ack_count += 1  # MQQB-3.1.1.3.1.1-02
        # MQQB-3.1.5.6-04
        if transfer.last_ack.sequence != sequence or transfer.last_ack.number < number:
            # MQQB-3.1.1.3.1.1-05, MQQB-3.1.5.6-04
            transfer.last_ack = SequenceInfo(sequence, number, max(number - 1, 0))
        last = transfer.last_ack.number
        unacked = len(transfer.unacked_sequence)
        while transfer.unacked_sequence and transfer.unacked_sequence[0].number <= last:  # MQQB-3.1.5.6-05
            transfer.unacked_sequence.popleft()
        tells_more = len(transfer.unacked_sequence) < unacked
        self._reset_interval_if_done(transfer)
        while transfer.ordered and transfer.ordered[0].tx_sequence_number <= last:  # MQQB-3.1.1.6.2-07
            outgoing = transfer.ordered.popleft()
            outgoing.received_order_ack = True  # MQQB-3.1.1.3.1.2-05
            if outgoing.received_session_ack or outgoing.session is None:  # MQQB-3.1.5.6-07
                self.arrived(outgoing)  # MQQB-3.1.1.6.2-07, MQQB-2.2.4-12
        if tells_more:  # otherwise the receiver repeats itself until the resent messages arrive
            self._context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
            if transfer.ordered:
                self.await_order_ack(transfer)
        self._end_if_all_acknowledged(transfer)
        self.report(transfer)

    def arrived(self, outgoing: OutgoingMessagePosition) -> None:
        """A message has its session and order acknowledgements."""
        message, transfer = outgoing.position.message, outgoing.transfer
        transfer.remove(outgoing)
        # MQQB-3.1.1.6.2-09, MQQB-3.1.1.1.1.7-07, MQQB-3.1.5.6-08
        asks_for_final_ack = message.negative_journaling_requested or message.positive_journaling_requested
        if asks_for_final_ack:
            outgoing.state = SessionMessageState.WAITING_FOR_FINAL_ACK  # MQQB-3.1.1.6.2-09
            # MQQB-3.1.5.6-08
            transfer.awaiting_final_ack[message.identifier.uniquifier] = outgoing  # MQQB-3.1.1.3.1-30
            transfer_rows.put_outgoing(self._context, outgoing, awaits_final_ack=True)
            self._outcome.report(message, delivered=True)
        else:
            transfer_rows.delete_outgoing(self._context, outgoing)
            del self._numbered[message.identifier.uniquifier]
            self._outcome.delivered(outgoing.position)
        self._end_if_all_acknowledged(transfer)

    def final_ack(self, sequence: TxSequenceId, message_id: int, message_class: int) -> None:
        """Receiving a FinalAck: [MS-MQQB] 3.1.5.7."""
        outgoing = self._numbered.get(message_id)  # MQQB-3.1.5.7-02
        if outgoing is None or outgoing.tx_sequence_id != sequence:  # MQQB-3.1.5.7-02
            return
        transfer = outgoing.transfer
        message = outgoing.position.message
        if outgoing.state is SessionMessageState.WAITING_FOR_FINAL_ACK:
            outgoing.state = _TRANSACTIONAL[outgoing.state, SessionMessageEvent.FINAL_ACK]
            del transfer.awaiting_final_ack[message_id], self._numbered[message_id]
            transfer_rows.delete_outgoing(self._context, outgoing)
        else:
            transfer.remove(outgoing)
            self.given_up(outgoing)
            if message_class != MessageClass.MQMSG_CLASS_ACK_RECEIVE:
                self._outcome.report(message, delivered=False, reason=message_class)
        if message_class == MessageClass.MQMSG_CLASS_ACK_RECEIVE:  # MQQB-3.1.5.7-03, MQQB-3.1.1.1.1.7-14
            self._outcome.delivered(outgoing.position)
        else:
            self._outcome.dead_letter(outgoing.position, message, message_class)  # MQQB-3.1.5.7-04
        self.report(transfer)

    def removed(self, outgoing: OutgoingMessagePosition) -> None:
        """A message was deleted from its queue while it awaited its final acknowledgement."""
        message_id = outgoing.position.message.identifier.uniquifier
        del outgoing.transfer.awaiting_final_ack[message_id], self._numbered[message_id]
        outgoing.state = SessionMessageState.DONE
        transfer_rows.delete_outgoing(self._context, outgoing)

    def report(self, transfer: SessionTransfer) -> None:
        """Update OutgoingTransferInfo: [MS-MQQB] 3.1.5.6 and 3.1.5.8.8."""
        info, unacked = transfer.queue.transfer, transfer.unacked_sequence
        # MQQB-3.1.5.6-12, DMPR-3.1.1.4-04 and -05
        info.eod_last_ack_time, info.eod_last_ack_count = transfer.time_of_last_ack, transfer.last_ack_count
        # MQQB-3.1.5.6-12, MQQB-3.1.1-01, MQQB-3.1.1.2-01
        info.eod_last_ack = transfer.last_ack  # MQQB-3.1.5.6-12, DMPR-3.1.1.4-03
        # MQQB-3.1.5.6-13, DMPR-3.1.1.4-08
        info.eod_no_ack_count = len(unacked)  # MQQB-3.1.5.6-13, MQQB-3.1.1.2-01
        # DMPR-3.1.1.4-02
        info.eod_first_non_ack = unacked[0] if unacked else None  # MQQB-3.1.5.6-13, MQQB-3.1.5.8.8-09
        info.eod_last_non_ack = unacked[-1] if unacked else None  # MQQB-3.1.5.6-13, DMPR-3.1.1.4-06
        # MQQB-3.1.5.8.8-10, DMPR-3.1.1.4-07
        info.eod_next_seq = SequenceInfo(transfer.sequence_id, transfer.next_number, transfer.next_number - 1)
        # ResendIntervalIndex counts from 1 in the text, as does the number of times the last message was
        # sent.
        # MQQB-3.1.5.6-14, DMPR-3.1.1.4-10 and -11
        info.eod_resend_interval, info.eod_resend_count = self._interval(transfer), transfer.resend_index + 1
        info.eod_resend_time = transfer.resend_time  # MQQB-3.1.5.6-14, DMPR-3.1.1.4-12
        info.eod_no_read_count = len(transfer.awaiting_final_ack)  # MQQB-3.1.5.6-14, DMPR-3.1.1.4-09
