"""Transactional sequences, exactly once and in order: [MS-MQQB] 3.1.1.5, 3.1.5.6, .7, .8.6 and 3.1.6.5."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.constants import MessageClass
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, SequenceInfo
from msmqwire.qm.model.message import Message, TxSequenceId
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary import transfer_rows
from msmqwire.qm.protocols.binary.states import MESSAGES, MessageEvent, MessageState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, Transfer

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine

_TRANSACTIONAL = MESSAGES["Transactional"]


class Sequences:
    """The sequences that begin here, and those that end here."""

    def __init__(self, engine: BinaryEngine) -> None:
        self._engine, self._context = engine, engine.context
        self._by_id: dict[TxSequenceId, Transfer] = {}
        self._ordinal = 0
        self._time_stamp = 0
        self._numbered: dict[int, OutgoingMessagePosition] = {}  # by MessageID, until nothing more is awaited
        self.infos: dict[tuple[UUID, str], IncomingTransactionalTransferInfo] = {}

    # -- sequences that begin here ------------------------------------------------------------------

    def restore(self, ordinal: int) -> None:
        """Identifiers go on after those that were given before; with a time stamp later than any."""
        self._ordinal, self._time_stamp = ordinal & 0xFFFFFFFF, ordinal >> 32

    def known(self, transfer: Transfer, numbered: list[OutgoingMessagePosition]) -> None:
        """A transfer whose sequence was restored, and its messages that had numbers."""
        if transfer.sequence_id.ordinal:
            self._by_id[transfer.sequence_id] = transfer
        previous = 0  # what was acknowledged before the first one is not known any more, and 0 is before it
        for outgoing in sorted(numbered, key=lambda one: one.tx_sequence_number):
            self._numbered[outgoing.position.message.identifier.uniquifier] = outgoing
            if outgoing.state is MessageState.WAITING_FOR_FINAL_ACK:
                continue
            number, outgoing.tx_previous_number = outgoing.tx_sequence_number, previous
            transfer.numbered += 1
            transfer.ordered.append(outgoing)
            transfer.unacked_sequence.append(SequenceInfo(outgoing.tx_sequence_id, number, previous))
            previous = number
        self.report(transfer)

    def begin(self, transfer: Transfer) -> None:
        """See that a transfer has a sequence: MQQB-3.1.1.3.1-12."""
        if transfer.sequence_id.ordinal:
            return
        if not self._time_stamp:
            self._time_stamp = self._context.utc & 0xFFFFFFFF
        self._ordinal += 1
        transfer.sequence_id, transfer.next_number = TxSequenceId(self._time_stamp, self._ordinal), 1
        transfer.last_ack = SequenceInfo()
        self._by_id[transfer.sequence_id] = transfer
        last = (self._time_stamp << 32 | self._ordinal).to_bytes(8, "little")
        self._context.changes.put(Table.META, transfer_rows.TX_SEQUENCE_ORDINAL, last)

    def number(self, outgoing: OutgoingMessagePosition) -> None:
        """Give a message the next place in the sequence of its transfer: MQQB-3.1.7.1.3-01 and -02."""
        transfer = outgoing.transfer
        self.begin(transfer)
        number, sequence = transfer.next_number, transfer.sequence_id
        outgoing.tx_sequence_id, outgoing.tx_sequence_number = sequence, number
        outgoing.tx_previous_number = number - 1
        transfer.next_number = number + 1
        transfer.numbered += 1
        transfer.ordered.append(outgoing)
        self._numbered[outgoing.position.message.identifier.uniquifier] = outgoing
        transfer_rows.put_outgoing(self._context, outgoing)
        transfer_rows.put_sequence(self._context, transfer)
        transfer.unacked_sequence.append(last := SequenceInfo(sequence, number, number - 1))
        info = transfer.queue.transfer
        info.eod_no_ack_count, info.eod_last_non_ack = len(transfer.unacked_sequence), last
        info.eod_first_non_ack = transfer.unacked_sequence[0]
        info.eod_next_seq = SequenceInfo(sequence, number + 1, number)

    def _end_if_all_acknowledged(self, transfer: Transfer) -> None:
        """MQQB-3.1.5.6-09. The next message begins a new sequence, whose identifier is greater."""
        if transfer.numbered or not transfer.sequence_id.ordinal:
            return
        self._by_id.pop(transfer.sequence_id, None)
        transfer.sequence_id, transfer.next_number = TxSequenceId(), 1
        transfer.unacked_sequence.clear()
        self._context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
        self._context.changes.delete(Table.SEQUENCE, transfer.queue.number)
        self.report(transfer)

    def await_order_ack(self, transfer: Transfer) -> None:
        """Transactional Ack Wait Timer: [MS-MQQB] 3.1.2.6."""
        context, key = self._context, transfer.queue.number
        if context.timers.active(Timer.TRANSACTIONAL_ACK_WAIT, key):
            return
        interval = self._interval(transfer)
        transfer.resend_time = context.utc + interval
        context.timers.start(
            Timer.TRANSACTIONAL_ACK_WAIT, key, interval * 1000, lambda: self._send_again(transfer)
        )

    def _interval(self, transfer: Transfer) -> int:
        return self._context.settings.resend_timer_table[transfer.resend_index]

    def _send_again(self, transfer: Transfer) -> None:
        """Transactional Ack Wait Timer Event: [MS-MQQB] 3.1.6.5."""
        if not transfer.ordered:
            return
        last = len(self._context.settings.resend_timer_table) - 1
        transfer.resend_index = min(transfer.resend_index + 1, last)
        waiting = MessageState.WAITING_TO_SEND
        transfer.send_again([one for one in transfer.ordered if one.state is not waiting])
        self.await_order_ack(transfer)
        self.report(transfer)
        if transfer.session is not None:
            self._engine.sending.send_waiting(transfer.session)

    def given_up(self, outgoing: OutgoingMessagePosition) -> None:
        """A message is not sent any more: the one behind it refers to the one before it from now on."""
        if not outgoing.tx_sequence_number:
            return
        transfer, ordered = outgoing.transfer, outgoing.transfer.ordered
        transfer_rows.delete_outgoing(self._context, outgoing)
        self._numbered.pop(outgoing.position.message.identifier.uniquifier, None)
        if outgoing in ordered:
            place = ordered.index(outgoing)
            del ordered[place]
            if place < len(ordered):
                ordered[place].tx_previous_number = outgoing.tx_previous_number
        for info in transfer.unacked_sequence:
            if info.number == outgoing.tx_sequence_number:
                transfer.unacked_sequence.remove(info)
                break
        self._end_if_all_acknowledged(transfer)
        self.report(transfer)

    def order_ack(self, sequence: TxSequenceId, number: int) -> None:
        """Receiving an OrderAck: [MS-MQQB] 3.1.5.6. One of a sequence that is not current says nothing."""
        transfer = self._by_id.get(sequence)
        if transfer is None or number >= transfer.next_number:
            return
        transfer.time_of_last_ack = self._context.utc
        transfer.last_ack_count += 1
        if transfer.last_ack.sequence != sequence or transfer.last_ack.number < number:
            transfer.last_ack = SequenceInfo(sequence, number, max(number - 1, 0))
        last = transfer.last_ack.number
        while transfer.unacked_sequence and transfer.unacked_sequence[0].number <= last:
            transfer.unacked_sequence.popleft()
        transfer.resend_index = 0
        while transfer.ordered and transfer.ordered[0].tx_sequence_number <= last:
            outgoing = transfer.ordered.popleft()
            outgoing.received_order_ack = True
            if outgoing.received_session_ack or outgoing.session is None:
                self.arrived(outgoing)
        key = transfer.queue.number
        self._context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, key)
        if transfer.ordered:
            self.await_order_ack(transfer)
        self._end_if_all_acknowledged(transfer)
        self.report(transfer)

    def arrived(self, outgoing: OutgoingMessagePosition) -> None:
        """A message has both acknowledgements: MQQB-3.1.5.6-07 and -08."""
        message, transfer = outgoing.position.message, outgoing.transfer
        transfer.remove(outgoing)
        if message.negative_journaling_requested or message.positive_journaling_requested:
            outgoing.state = MessageState.WAITING_FOR_FINAL_ACK
            transfer.awaiting_final_ack[message.identifier.uniquifier] = outgoing
            transfer_rows.put_outgoing(self._context, outgoing, awaits_final_ack=True)
            self._engine.ending.tell_sent(message, delivered=True)
        else:
            transfer_rows.delete_outgoing(self._context, outgoing)
            del self._numbered[message.identifier.uniquifier]
            self._engine.ending.delivered(outgoing)
        self._end_if_all_acknowledged(transfer)

    def final_ack(self, sequence: TxSequenceId, message_id: int, message_class: int) -> None:
        """Receiving a FinalAck: [MS-MQQB] 3.1.5.7."""
        found = self._numbered.get(message_id)
        if found is None or found.tx_sequence_id != sequence:
            return
        transfer = found.transfer
        message = found.position.message
        if found.state is MessageState.WAITING_FOR_FINAL_ACK:
            found.state = _TRANSACTIONAL[found.state, MessageEvent.FINAL_ACK]
            del transfer.awaiting_final_ack[message_id], self._numbered[message_id]
            transfer_rows.delete_outgoing(self._context, found)
        else:
            transfer.remove(found)
            self.given_up(found)
            if message_class != MessageClass.MQMSG_CLASS_ACK_RECEIVE:
                self._engine.ending.tell_sent(message, delivered=False, why=message_class)
        if message_class == MessageClass.MQMSG_CLASS_ACK_RECEIVE:
            self._engine.ending.delivered(found)
        else:
            self._engine.ending.dead_letter(found, message)
        self.report(transfer)

    def taken_away(self, outgoing: OutgoingMessagePosition) -> None:
        """A message that awaits its final acknowledgement was deleted from its queue."""
        message_id = outgoing.position.message.identifier.uniquifier
        del outgoing.transfer.awaiting_final_ack[message_id], self._numbered[message_id]
        outgoing.state = MessageState.DONE
        transfer_rows.delete_outgoing(self._context, outgoing)

    def report(self, transfer: Transfer) -> None:
        """OutgoingTransferInfo: MQQB-3.1.5.6-12 to -14, MQQB-3.1.5.8.8-09 and -10."""
        info, unacked = transfer.queue.transfer, transfer.unacked_sequence
        info.eod_last_ack_time, info.eod_last_ack_count = transfer.time_of_last_ack, transfer.last_ack_count
        info.eod_last_ack = transfer.last_ack
        info.eod_no_ack_count = len(unacked)
        info.eod_first_non_ack = unacked[0] if unacked else None
        info.eod_last_non_ack = unacked[-1] if unacked else None
        info.eod_next_seq = SequenceInfo(transfer.sequence_id, transfer.next_number, transfer.next_number - 1)
        # ResendIntervalIndex counts from 1 in the texts, and so tells how often the last message was sent.
        info.eod_resend_interval, info.eod_resend_count = self._interval(transfer), transfer.resend_index + 1
        info.eod_resend_time = transfer.resend_time
        info.eod_no_read_count = len(transfer.awaiting_final_ack)

    # -- sequences that end here --------------------------------------------------------------------

    def incoming(self, message: Message) -> IncomingTransactionalTransferInfo:
        """Where the sequence of a sender to a destination stands: MQQB-3.1.5.8.8-07 and -08.

        By the name used, as each outgoing queue of the sender has a sequence of its own; also where there is
        no queue, so that a message refused for that is not accepted when it is sent again.
        """
        assert message.destination is not None, "a received message has a destination"
        key = message.source_machine_identifier, message.destination.canonical
        info = self.infos.pop(key, None)
        if info is None:
            info = IncomingTransactionalTransferInfo(None, message.destination, key[0])
            while len(self.infos) >= self._context.settings.incoming_sequences_max:
                self._forget(next(iter(self.infos)))
        self.infos[key] = info  # the one quiet longest stands first
        return info

    def _forget(self, key: tuple[UUID, str]) -> None:
        """There are too many senders: what this one sends again will not be known."""
        info = self.infos.pop(key)
        if info.queue is not None:
            info.queue.incoming.pop(key, None)
        self._context.changes.delete(Table.INCOMING, transfer_rows.incoming_key(info))

    def follows(self, info: IncomingTransactionalTransferInfo, message: Message) -> bool:
        """Whether a message is the next one of its sequence: MQQB-3.1.5.8.6-03 to -05."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "asked of transactional messages"
        previous = message.transaction_previous_sequence_number
        if sequence == info.sequence_identifier:
            return message.transaction_sequence_number > info.sequence_number >= previous
        return sequence > info.sequence_identifier and previous == 0

    def refused(self, info: IncomingTransactionalTransferInfo) -> None:
        """MQQB-3.1.5.8.6-06 and -08."""
        info.reject_count += 1
        info.last_access_time = self._context.utc
        if info.sequence_identifier.ordinal:  # MQQB-3.1.1.3.1-13
            transfer_rows.put_incoming(self._context, info)

    def accepted(self, info: IncomingTransactionalTransferInfo, message: Message) -> None:
        """MQQB-3.1.5.8.6-07 to -09."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "asked of transactional messages"
        info.reject_count, info.last_access_time = 0, self._context.utc
        info.sequence_identifier, info.sequence_number = sequence, message.transaction_sequence_number
        transfer_rows.put_incoming(self._context, info)
