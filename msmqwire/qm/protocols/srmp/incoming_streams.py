"""Streams that end here: [MC-MQSRM] 3.1.5.1.6.3, 3.1.5.1.6.4 and 3.1.6.3."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, sequence_key
from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.srmp.deserializing import stream_of
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from msmqwire.qm.rules import transfer_rows
from msmqwire.qm.rules.incoming_sequences import FORMER_STREAMS_BYTES_MAX, IncomingSequences
from msmqwire.qm.rules.transfer_rows import STREAM_IDENTIFIER
from msmqwire.srmp.content import Content


class IncomingStreams:
    """Accepts stream messages in order, and has them acknowledged.

    Every accepted message follows the one before it, so that there is no gap in the messages without receipt,
    UnacknowledgedStreamMessages: they are the messages after `acknowledged`.

    Args:
        context: the state of the queue manager.
        sequences: the sequences of all protocols.
        send_receipt: sends the receipt for all messages up to `acknowledged`.
    """

    def __init__(
        self,
        context: Context,
        sequences: IncomingSequences,
        send_receipt: Callable[[IncomingTransactionalTransferInfo], None],
    ) -> None:
        self._context, self._sequences, self._send_receipt = context, sequences, send_receipt

    def restore(self) -> None:
        """Acknowledge the messages that were accepted before the queue manager stopped."""
        for info in self._sequences.infos.values():
            if info.is_stream and info.acknowledged < info.sequence_number:  # SRMP-3.1.1.1.6-09
                self._start(info)

    def of(self, stream: Content, message: Message) -> IncomingTransactionalTransferInfo:
        """Return the state of the stream of a sender to a destination."""
        return self._sequences.incoming(message, stream.streamId.queue_manager)  # SRMP-3.1.1.2-02

    def follows(self, info: IncomingTransactionalTransferInfo, stream: Content, message: Message) -> bool:
        """Return whether a message begins a stream or is next in it: SRMP-3.1.5.1.6.3-01 to -03."""
        if not _is_present(info, message):
            return stream.start is not None and stream.current == 1  # SRMP-2.2.5.3.4-06
        last, current = info.sequence_number, stream.current  # SRMP-3.1.1.1.6-07
        # SRMP-3.1.5.1.6.3-02 and -03, SRMP-3.1.1.2-03 and -04, SRMP-3.1.1.3.2-03
        return current == last + 1 or (stream.previous is not None and current > last >= stream.previous)

    def is_former(
        self, info: IncomingTransactionalTransferInfo, message: Message, *, duplicate: bool
    ) -> bool:
        """Return whether a message is of an earlier stream than the present one: SRMP-3.1.1.2-06.

        A late copy of its first message would stop the present stream, which would not begin again. The last
        streams are known; an earlier one is recognised by a message that is a `duplicate`, and by a lesser
        number.
        """
        sequence = message.transactional_message_sequence_identifier
        if sequence is None or _is_present(info, message):
            return False
        identifier, known = STREAM_IDENTIFIER.pack(*sequence), info.former_streams
        starts = range(0, len(known), STREAM_IDENTIFIER.size)
        is_known = any(known.startswith(identifier, start) for start in starts)
        return is_known or (duplicate and sequence < info.sequence_identifier)

    def begins(self, info: IncomingTransactionalTransferInfo, stream: Content) -> None:
        """Take over the destination of the receipts of a stream before its first message is in its queue.

        A waiting reader receives it at once, and its final stream receipt is due.
        """
        if stream.start is not None and stream.current == 1:
            info.send_receipts_to = stream.start.sendReceiptsTo  # SRMP-3.1.5.1.6.3-07, SRMP-3.1.1.1.6-10

    def refused(self, info: IncomingTransactionalTransferInfo, stream: Content, message: Message) -> None:
        """A message is not next: count it, and repeat the receipt for repeated messages.

        SRMP-3.1.6.3-08: otherwise a sender whose receipt was lost would repeat them forever.
        """
        self._sequences.refused(info)  # SRMP-3.1.5.1.6.4-04
        if _is_present(info, message) and stream.current <= info.sequence_number and not self._is_due(info):
            self._start(info)

    def accepted(self, info: IncomingTransactionalTransferInfo, stream: Content, message: Message) -> None:
        """Advance to a message, and acknowledge it after a delay: [MC-MQSRM] 3.1.5.1.6.3."""
        if not _is_present(info, message):
            info.acknowledged, info.unacknowledged_since = 0, None  # SRMP-3.1.5.1.6.3-12, SRMP-3.1.3.2-03
            if info.sequence_number:
                former = info.former_streams + STREAM_IDENTIFIER.pack(*info.sequence_identifier)
                info.former_streams = former[-FORMER_STREAMS_BYTES_MAX:]
        info.sender_identifier = message.source_machine_identifier  # SRMP-3.1.5.1.6.4-03
        self._sequences.accepted(info, message)  # SRMP-3.1.5.1.6.3-05, -06, -08
        now = self._context.now
        if info.unacknowledged_since is None:
            info.unacknowledged_since = now  # SRMP-3.1.5.1.6.3-09, SRMP-3.1.1.1.6-11
        # SRMP-3.1.5.1.6.3-11, SRMP-3.1.1.3.2-06, SRMP-3.1.1.4.2-01
        if now - info.unacknowledged_since >= self._context.settings.stream_receipt_delay_max_ms:
            self._context.timers.stop(SrmpTimer.STREAM_RECEIPT_COALESCING, info.key)
            self._acknowledge(info)
        else:
            self._start(info)

    def acknowledge_all(self) -> None:
        """Send the receipts that are due now."""
        for info in list(self._sequences.infos.values()):
            if info.is_stream and self._is_due(info):
                self._context.timers.stop(SrmpTimer.STREAM_RECEIPT_COALESCING, info.key)
                self._acknowledge(info)

    def send_receipts_to(self, message: Message) -> str:
        """Return the address for receipts of a message's stream; empty if its sender has been forgotten.

        A later stream of the same sender has it as well: SRMP-3.1.7.3.3-05.
        """
        stream = stream_of(message)
        if stream is None or message.destination is None:
            return ""
        bound_to = message.origin if self._context.settings.bind_senders else ""
        key = sequence_key(stream.queue_manager, message.destination, bound_to, stream=True)
        info = self._sequences.infos.get(key)
        return "" if info is None else info.send_receipts_to

    def _is_due(self, info: IncomingTransactionalTransferInfo) -> bool:
        return self._context.timers.active(SrmpTimer.STREAM_RECEIPT_COALESCING, info.key)

    def _start(self, info: IncomingTransactionalTransferInfo) -> None:
        delay = self._context.settings.stream_receipt_delay_ms  # SRMP-3.1.2.3-01, SRMP-3.1.5.1.6.3-10
        self._context.timers.start(  # SRMP-3.1.6.3-01, SRMP-3.1.1.4.2-01
            SrmpTimer.STREAM_RECEIPT_COALESCING, info.key, delay, lambda: self._acknowledge(info)
        )

    def _acknowledge(self, info: IncomingTransactionalTransferInfo) -> None:
        """Stream Receipt Coalescing Timer Event: [MC-MQSRM] 3.1.6.3."""
        if self._sequences.infos.get(info.key) is not info:
            return  # evicted meanwhile
        info.unacknowledged_since = None  # SRMP-3.1.6.3-07
        if info.acknowledged != info.sequence_number:  # SRMP-3.1.1.1.6-09
            # SRMP-3.1.6.3-03 and -06, SRMP-3.1.1.3.2-05, SRMP-3.1.1.1.6-08
            info.acknowledged = info.sequence_number  # SRMP-3.1.6.3-02
            transfer_rows.put_incoming(self._context, info)
        self._send_receipt(info)  # SRMP-3.1.1.3.2-01, SRMP-3.1.6.3-05


def _is_present(info: IncomingTransactionalTransferInfo, message: Message) -> bool:
    """Return whether a message belongs to the stream of the last accepted message."""
    sequence = message.transactional_message_sequence_identifier
    return info.sequence_number > 0 and sequence == info.sequence_identifier  # SRMP-3.1.1.1.6-06
