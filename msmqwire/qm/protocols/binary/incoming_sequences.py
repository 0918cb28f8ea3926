"""Transactional sequences that end here, exactly once and in order: [MS-MQQB] 3.1.1.5 and 3.1.5.8.6."""

from __future__ import annotations

from uuid import UUID

from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo
from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.binary import transfer_rows


class IncomingSequences:
    """How far the sequences of other queue managers have come.

    Attributes:
        infos: by sender and format name, the least recently used first.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.infos: dict[tuple[UUID, str], IncomingTransactionalTransferInfo] = {}

    def incoming(self, message: Message) -> IncomingTransactionalTransferInfo:
        """Return the state of a sender's sequence to a destination: MQQB-3.1.5.8.8-07 and -08.

        Keyed by the name used, as each outgoing queue of the sender has a sequence of its own; kept even if
        the queue does not exist, so that a message refused for that is not accepted when it is resent.
        """
        assert message.destination is not None, "a received message has a destination"
        key = message.source_machine_identifier, message.destination.canonical
        info = self.infos.pop(key, None)
        if info is None:
            info = IncomingTransactionalTransferInfo(None, message.destination, key[0])
            while len(self.infos) >= self._context.settings.incoming_sequences_max:
                self._forget(next(iter(self.infos)))
        self.infos[key] = info  # least recently used first
        return info

    def _forget(self, key: tuple[UUID, str]) -> None:
        """Evict a sender, as there are too many: what it resends will not be recognised."""
        info = self.infos.pop(key)
        if info.queue is not None:
            info.queue.incoming.pop(key, None)
        self._context.changes.delete(Table.INCOMING, transfer_rows.incoming_key(info))

    def follows(self, info: IncomingTransactionalTransferInfo, message: Message) -> bool:
        """Return whether a message is next in its sequence: MQQB-3.1.5.8.6-03 to -05."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "only transactional messages have a sequence"
        previous = message.transaction_previous_sequence_number
        if sequence == info.sequence_identifier:
            return message.transaction_sequence_number > info.sequence_number >= previous
        return sequence > info.sequence_identifier and previous == 0

    def refused(self, info: IncomingTransactionalTransferInfo) -> None:
        """Count a message that is not next: MQQB-3.1.5.8.6-06 and -08."""
        info.reject_count += 1
        info.last_access_time = self._context.utc
        if info.sequence_identifier.ordinal:  # MQQB-3.1.1.3.1-13
            transfer_rows.put_incoming(self._context, info)

    def accepted(self, info: IncomingTransactionalTransferInfo, message: Message) -> None:
        """Advance the sequence to a message: MQQB-3.1.5.8.6-07 to -09."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "only transactional messages have a sequence"
        info.reject_count, info.last_access_time = 0, self._context.utc
        info.sequence_identifier, info.sequence_number = sequence, message.transaction_sequence_number
        transfer_rows.put_incoming(self._context, info)
