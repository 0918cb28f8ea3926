"""Streams that begin here: [MC-MQSRM] 3.1.7.2.3, 3.1.5.1.8, 3.1.5.1.9, 3.1.6.2 and 3.1.7.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.message import NO_SEQUENCE, TxSequenceId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp import former_stream_rows
from msmqwire.qm.protocols.srmp.states import SrmpMessageEvent, SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from msmqwire.qm.protocols.srmp.transfer import OutgoingMessage, SrmpTransfer
from msmqwire.qm.rules import transfer_rows
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.sequence_identity import SequenceIdentity
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from msmqwire.srmp.kinds import POSITIVE

_NUMBER_MAX: Final = 0xFFFFFFFE
"""The greatest number in a stream: the one after it still fits into 32 bits."""


class OutgoingStreams:
    """Numbers stream messages and follows their receipts.

    Args:
        context: the state of the queue manager.
        identity: the identity of sequences.
        outcome: disposes of messages that are delivered or given up.
        send_waiting: sends the messages that wait for a transfer; called to send messages again.
    """

    def __init__(
        self,
        context: Context,
        identity: SequenceIdentity,
        outcome: DeliveryOutcome,
        send_waiting: Callable[[SrmpTransfer], None],
    ) -> None:
        self._context, self._identity = context, identity
        self._outcome, self._send_waiting = outcome, send_waiting
        self._by_id: dict[TxSequenceId, SrmpTransfer] = {}
        self._former: dict[TxSequenceId, SrmpTransfer] = {}  # whose messages were renumbered
        self._renumbered: dict[tuple[int, int], OutgoingMessage] = {}  # by queue and MessageIdOrdinal

    def restore(
        self, transfer: SrmpTransfer, numbered: list[OutgoingMessage], former: list[TxSequenceId]
    ) -> None:
        """Take over a restored transfer and its messages that have numbers: SRMP-3.1.3.2-01.

        Any of them may have had another number in one of its `former` streams.

        Messages before the first of them are not stored. They were acknowledged or given up, and the receiver
        has accepted the first message of the stream, since a stream without it begins anew.
        """
        if transfer.stream_id != NO_SEQUENCE:
            self._by_id[transfer.stream_id] = transfer
        for stream in former:
            self._former[stream] = transfer
            transfer.former.add(stream)
        previous = 0
        for outgoing in sorted(numbered, key=lambda message: message.turn):
            number = outgoing.tx_sequence_number
            if outgoing.state is SrmpMessageState.WAIT_FOR_FINAL_RECEIPT:
                transfer.awaiting_final[outgoing.tx_sequence_id, number] = outgoing
                self._by_id.setdefault(outgoing.tx_sequence_id, transfer)
            else:
                outgoing.previous_number = previous or min(number - 1, 1)
                transfer.unacknowledged.append(outgoing)
                previous = number
            if former:
                self._remember_renumbered(outgoing)
        self.report(transfer)

    # -- numbering ----------------------------------------------------------------------------------

    def can_number(self, transfer: SrmpTransfer) -> bool:
        """Return whether the stream has a number left; else it must be acknowledged before another begins."""
        return transfer.next_number <= _NUMBER_MAX

    def number(self, outgoing: OutgoingMessage) -> None:
        """Assign the next number to a message that is sent for the first time: 3.1.7.2.3."""
        transfer = outgoing.transfer
        if transfer.stream_id == NO_SEQUENCE:
            self._begin(transfer)
        number = transfer.next_number
        # SRMP-3.1.7.2.3-06 and -11
        outgoing.tx_sequence_id, outgoing.tx_sequence_number = transfer.stream_id, number
        last = transfer.unacknowledged[-1].tx_sequence_number if transfer.unacknowledged else 0
        # The numbers in between were given up, and the receiver must not wait for them: SRMP-3.1.7.2.3-09.
        # SRMP-3.1.7.2.3-05, SRMP-2.2.5.3.3-02, SRMP-3.1.1.2-04
        outgoing.previous_number = max(last, transfer.last_acknowledged, min(number - 1, 1))
        transfer.next_number = number + 1  # SRMP-3.1.1.2-01, SRMP-3.1.1.1.6-03
        transfer.unacknowledged.append(outgoing)  # SRMP-3.1.7.2.3-12
        transfer_rows.put_outgoing(self._context, outgoing)  # SRMP-3.1.1.1.1-01
        transfer_rows.put_sequence(  # SRMP-3.1.1.1.1-01, SRMP-3.1.1.1.6-04
            self._context, transfer.queue.number, transfer.stream_id, transfer.next_number
        )
        self.report(transfer)

    def _begin(self, transfer: SrmpTransfer) -> None:
        """Create a Stream: SRMP-3.1.7.2.3-03, -15 and -18."""
        # SRMP-3.1.1.1.6-02, SRMP-3.1.7.2.3-04, SRMP-3.1.1.1.5-01, SRMP-3.1.1.1.5-09, SRMP-3.1.1.1.6-12
        transfer.stream_id, transfer.next_number = self._identity.next(), 1  # SRMP-2.2.5.3.2-02
        transfer.last_acknowledged = transfer.acknowledgements = 0  # SRMP-3.1.7.2.3-15
        self._by_id[transfer.stream_id] = transfer  # SRMP-3.1.1.1.6-01

    def _end_if_done(self, transfer: SrmpTransfer) -> None:
        """Stream Element Removed: [MC-MQSRM] 3.1.7.6. The next message begins a new stream."""
        if transfer.unacknowledged:  # SRMP-3.1.7.6-01
            return
        self._context.timers.stop(SrmpTimer.STREAM_RECEIPT_WAIT, transfer.queue.number)
        if transfer.stream_id == NO_SEQUENCE or transfer.awaiting_final:  # SRMP-3.1.7.6-01
            return
        used_up = not self.can_number(transfer)
        self._end(transfer)
        for stream in transfer.former:
            del self._former[stream]
            former_stream_rows.delete_former_stream(self._context, stream)
        transfer.former.clear()
        if used_up:
            self._send_waiting(transfer)

    def _end(self, transfer: SrmpTransfer) -> None:
        self._by_id.pop(transfer.stream_id, None)
        transfer.stream_id, transfer.next_number = NO_SEQUENCE, 1  # SRMP-3.1.7.6-02, SRMP-3.1.1.2-05
        self._context.changes.delete(Table.SEQUENCE, transfer.queue.number)

    # -- the Stream Receipt Wait Timer ------------------------------------------------------------------

    def await_receipt(self, transfer: SrmpTransfer) -> None:
        """Start the Stream Receipt Wait Timer unless it runs: SRMP-3.1.7.2.3-20, SRMP-3.1.7.4-01."""
        context, key = self._context, transfer.queue.number
        if transfer.is_held or context.timers.active(SrmpTimer.STREAM_RECEIPT_WAIT, key):
            return
        interval = self._interval(transfer)
        transfer.resend_at = context.utc + interval  # SRMP-3.1.6.2-03
        context.timers.start(
            # SRMP-3.1.2.2-01, SRMP-3.1.6.2-02
            SrmpTimer.STREAM_RECEIPT_WAIT,
            key,
            interval * 1000,
            lambda: self._resend(transfer),
        )
        self.report(transfer)

    def stop_waiting(self, transfer: SrmpTransfer) -> None:
        """Stop the Stream Receipt Wait Timer: sending does not succeed for now."""
        self._context.timers.stop(SrmpTimer.STREAM_RECEIPT_WAIT, transfer.queue.number)

    def _interval(self, transfer: SrmpTransfer) -> int:
        return self._context.settings.resend_timer_table[transfer.resend_index]  # SRMP-3.1.1.1.5-06

    def _resend(self, transfer: SrmpTransfer) -> None:
        """Stream Receipt Wait Timer Event: [MC-MQSRM] 3.1.6.2.

        The interval grows with consecutive timeouts, not with receipts: SRMP-3.1.5.1.8.2-07.
        """
        last = len(self._context.settings.resend_timer_table) - 1
        transfer.resend_index = min(transfer.resend_index + 1, last)  # SRMP-3.1.1.1.5-06, SRMP-3.1.1.1.6-05
        for outgoing in transfer.unacknowledged:
            if outgoing.state is SrmpMessageState.WAIT_FOR_STREAM_RECEIPT:  # SRMP-3.1.1.3-01
                outgoing.step(SrmpMessageEvent.STREAM_RECEIPT_WAIT_TIMER)
                transfer.wait(outgoing)  # SRMP-3.1.1.3-01
        if transfer.unacknowledged:
            self.await_receipt(transfer)
            self._send_waiting(transfer)

    def resend(self, transfer: SrmpTransfer) -> None:
        """Let the Stream Receipt Wait Timer fire now."""
        self.stop_waiting(transfer)
        self._resend(transfer)
        self.report(transfer)

    # -- receipts ---------------------------------------------------------------------------------------

    def find(self, stream: StreamIdentifier) -> SrmpTransfer | None:
        """Return the transfer of a stream that a receipt names; None if the stream is not from here."""
        # SRMP-3.1.5.1.8.1-01, SRMP-3.1.5.1.9.1-01
        if stream.queue_manager != self._context.queue_manager.identifier:
            return None
        return self._by_id.get(_ordinal(stream))  # SRMP-3.1.5.1.8.1-01, SRMP-3.1.5.1.9.1-01

    def received(self, stream: StreamIdentifier, last_ordinal: int) -> None:
        """Process a stream receipt: [MC-MQSRM] 3.1.5.1.8. It is ignored if the stream has ended."""
        transfer = self.find(stream)
        # SRMP-3.1.5.1.8.1-02
        if transfer is None or transfer.stream_id != _ordinal(stream) or last_ordinal >= transfer.next_number:
            return
        transfer.acknowledged_at = self._context.utc
        transfer.acknowledgements += 1  # SRMP-3.1.5.1.8.2-03
        transfer.last_acknowledged = max(transfer.last_acknowledged, last_ordinal)  # SRMP-3.1.5.1.8.2-02
        marked = False
        # SRMP-3.1.5.1.8.1-03
        while transfer.unacknowledged and transfer.unacknowledged[0].tx_sequence_number <= last_ordinal:
            self._acknowledged(transfer.unacknowledged.popleft())
            marked = True
        if marked:  # otherwise the receiver repeats itself until the resent messages arrive
            transfer.resend_index = 0
            self.stop_waiting(transfer)
            if transfer.unacknowledged:
                self.await_receipt(transfer)
        self._end_if_done(transfer)  # SRMP-3.1.5.1.8.3-02
        self.report(transfer)

    def _acknowledged(self, outgoing: OutgoingMessage) -> None:
        """A message is in its queue: SRMP-3.1.5.1.8.3-01 and -03."""
        message, transfer = outgoing.position.message, outgoing.transfer
        if message.negative_journaling_requested:  # SRMP-3.1.7.2.3-13
            outgoing.step(SrmpMessageEvent.STREAM_RECEIPT_FINAL_AWAITED)
            # SRMP-3.1.5.1.8.3-03
            transfer.awaiting_final[outgoing.tx_sequence_id, outgoing.tx_sequence_number] = outgoing
            transfer_rows.put_outgoing(self._context, outgoing, awaits_final_ack=True)
            self._outcome.report(message, delivered=True)
        else:
            outgoing.step(SrmpMessageEvent.STREAM_RECEIPT)
            self._leave(outgoing)  # SRMP-3.1.1.3.2-07, SRMP-2.2.5.6-04, SRMP-3.1.5.1.8.3-01
            # SRMP-2.2.5.6-04, SRMP-3.1.1.3-01
            self._outcome.delivered(outgoing.position)  # SRMP-3.1.5.1.8.4-01

    def _leave(self, outgoing: OutgoingMessage) -> None:
        self._forget_renumbered(outgoing)
        outgoing.transfer.remove(outgoing)
        transfer_rows.delete_outgoing(self._context, outgoing)

    def _remember_renumbered(self, outgoing: OutgoingMessage) -> None:
        self._renumbered[_key(outgoing)] = outgoing
        outgoing.renumbered = True

    def _forget_renumbered(self, outgoing: OutgoingMessage) -> None:
        if outgoing.renumbered:
            self._renumbered.pop(_key(outgoing), None)

    def final(
        self,
        stream: StreamIdentifier,
        number: int,
        identifier: MessageIdentifier,
        decision: str,
        reason: int,
    ) -> None:
        """Process a final stream receipt for one message: [MC-MQSRM] 3.1.5.1.9.

        `identifier` is the message's: a receiver that has accepted it in a former stream does not know its
        present number.
        """
        numbered = self._numbered(stream, number)
        outgoing = numbered or self._renumbered_as(stream, identifier)
        if outgoing is None:  # SRMP-3.1.5.1.9.1-03
            return
        transfer, message = outgoing.transfer, outgoing.position.message
        # SRMP-3.1.5.1.9.1-04
        early = self._remove(outgoing, arrived=numbered is not None)  # before the stream receipt
        outgoing.step(SrmpMessageEvent.FINAL_RECEIPT)
        self._leave(outgoing)
        if decision == POSITIVE:
            self._outcome.delivered(outgoing.position)  # SRMP-3.1.5.1.9.1-04
        else:
            if early:
                self._outcome.report(message, delivered=False, reason=reason)
            # SRMP-3.1.5.1.9.3-01, SRMP-3.1.5.2.1.2-01, SRMP-3.1.5.1.9.1-04, SRMP-3.1.1.1.2.4-10
            self._outcome.dead_letter(outgoing.position, message, reason)
        self._end_if_done(transfer)  # SRMP-3.1.5.1.9.1-05
        self.report(transfer)
        self._send_waiting(transfer)

    def _numbered(self, stream: StreamIdentifier, number: int) -> OutgoingMessage | None:
        """Return the message with a number in a stream."""
        transfer = self.find(stream)
        if transfer is None:
            return None
        key = _ordinal(stream), number
        waiting = (
            outgoing
            for outgoing in transfer.unacknowledged
            if (outgoing.tx_sequence_id, outgoing.tx_sequence_number) == key
        )
        return transfer.awaiting_final.get(key) or next(waiting, None)  # SRMP-3.1.5.1.9.1-02

    def _renumbered_as(
        self, stream: StreamIdentifier, identifier: MessageIdentifier
    ) -> OutgoingMessage | None:
        """Return the message with an identifier if it had another number in a former stream."""
        own = self._context.queue_manager.identifier
        transfer = self._former.get(_ordinal(stream))
        if transfer is None or stream.queue_manager != own or identifier.lineage != own:
            return None
        return self._renumbered.get((transfer.queue.number, identifier.uniquifier))

    def _remove(self, outgoing: OutgoingMessage, *, arrived: bool) -> bool:
        """Remove a message that is not sent any more; return whether its stream receipt was awaited.

        Unless it has arrived with its present number, its successors now follow its predecessor. If the
        receiver may not have accepted the first message of a stream, no message marks the beginning of the
        stream any more: the rest begin a new one, SRMP-3.1.7.2.3-10. Messages that it has accepted
        nevertheless are recognised by their identifiers.
        """
        transfer = outgoing.transfer
        key = outgoing.tx_sequence_id, outgoing.tx_sequence_number
        self._forget_renumbered(outgoing)
        if transfer.awaiting_final.pop(key, None) is not None or outgoing not in transfer.unacknowledged:
            return False
        index = transfer.unacknowledged.index(outgoing)
        del transfer.unacknowledged[index]
        if arrived:
            return True
        if not outgoing.previous_number:
            self._renumber(transfer)
        elif index < len(transfer.unacknowledged):
            # SRMP-2.2.5.3.3-02
            transfer.unacknowledged[index].previous_number = outgoing.previous_number  # SRMP-3.1.7.2.3-07
        return True

    # -- messages that are given up ---------------------------------------------------------------------

    def given_up(self, outgoing: OutgoingMessage) -> None:
        """A message is not sent any more."""
        transfer = outgoing.transfer
        if not outgoing.tx_sequence_number:
            return
        transfer_rows.delete_outgoing(self._context, outgoing)
        self._remove(outgoing, arrived=False)
        self._end_if_done(transfer)  # SRMP-3.1.7.2.1-04
        self.report(transfer)

    def _renumber(self, transfer: SrmpTransfer) -> None:
        """Begin a new stream with the messages that are left."""
        left = list(transfer.unacknowledged)
        transfer.unacknowledged.clear()
        if left:
            self._former[transfer.stream_id] = transfer
            transfer.former.add(transfer.stream_id)
            former_stream_rows.put_former_stream(self._context, transfer.stream_id, transfer.queue.number)
            self._end(transfer)
            self.stop_waiting(transfer)
        for outgoing in left:
            self.number(outgoing)
            self._remember_renumbered(outgoing)
            if outgoing.state is SrmpMessageState.WAIT_FOR_STREAM_RECEIPT:
                outgoing.step(SrmpMessageEvent.STREAM_RECEIPT_WAIT_TIMER)
            if outgoing.state is SrmpMessageState.WAIT_FOR_RESPONSE:
                outgoing.request = 0  # the response will be about a message of the former stream
            elif outgoing.state is SrmpMessageState.PREPARE_TO_SEND:
                transfer.wait(outgoing)

    def report(self, transfer: SrmpTransfer) -> None:
        """Update OutgoingTransferInfo: SRMP-3.1.5.1.8.2-01 to -08, SRMP-3.1.7.2.3-16 to -19."""
        info, unacknowledged = transfer.queue.transfer, transfer.unacknowledged  # SRMP-3.1.7.2.3-14
        stream, last = transfer.stream_id, transfer.next_number - 1
        info.eod_last_ack_time, info.eod_last_ack_count = transfer.acknowledged_at, transfer.acknowledgements
        info.eod_last_ack = SequenceInfo(stream, transfer.last_acknowledged)  # SRMP-3.1.7.2.3-18
        # SRMP-3.1.5.1.8.2-05 and -06
        info.eod_first_non_ack = _sequence_info(unacknowledged[0]) if unacknowledged else None
        info.eod_last_non_ack = _sequence_info(unacknowledged[-1]) if unacknowledged else None
        info.eod_next_seq = SequenceInfo(stream, last + 1, last)  # SRMP-3.1.7.2.3-17
        # SRMP-3.1.5.1.8.2-04, SRMP-3.1.5.1.9.2-01, SRMP-3.1.7.2.3-19
        info.eod_no_ack_count, info.eod_no_read_count = len(unacknowledged), len(transfer.awaiting_final)
        # eod_resend_count is the number of times that the last message was sent.
        # SRMP-3.1.5.1.8.2-08
        info.eod_resend_interval, info.eod_resend_count = self._interval(transfer), transfer.resend_index + 1
        info.eod_resend_time = transfer.resend_at


def _sequence_info(outgoing: OutgoingMessage) -> SequenceInfo:
    return SequenceInfo(outgoing.tx_sequence_id, outgoing.tx_sequence_number, outgoing.previous_number)


def _ordinal(stream: StreamIdentifier) -> TxSequenceId:
    return TxSequenceId(stream.time_stamp, stream.ordinal)


def _key(outgoing: OutgoingMessage) -> tuple[int, int]:
    """Return the identity of a message here: copies for several destinations share an identifier."""
    return outgoing.transfer.queue.number, outgoing.position.message.identifier.uniquifier
