"""Transactional sequences that end here, exactly once and in order: [MS-MQQB] 3.1.1.5 and 3.1.5.8.6.

The streams of [MC-MQSRM] are among them, with their own rules for the order of messages.
"""

from __future__ import annotations

from itertools import islice
from typing import Final
from uuid import UUID

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, SequenceKey, sequence_key
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import transfer_rows
from msmqwire.qm.rules.memory_pool import CHARACTER_BYTES, SENDER_BYTES, Kind, MemoryPool
from msmqwire.qm.rules.origin_keys import OriginKeys
from msmqwire.qm.rules.recovery import Stored

_AT_ONCE: Final = 16
"""A sixteenth of the senders of an origin is evicted at once: finding the origin takes time."""
FORMER_STREAMS_BYTES_MAX: Final = 16 * 8
"""Bytes of `IncomingTransactionalTransferInfo.former_streams`: sixteen identifiers."""


class IncomingSequences:
    """The progress of the sequences of other queue managers.

    Attributes:
        infos: the sequences by `SequenceKey`, the least recently used first.
    """

    def __init__(self, context: Context, memory: MemoryPool) -> None:
        self._context, self._memory = context, memory
        self.infos: dict[SequenceKey, IncomingTransactionalTransferInfo] = {}
        self._of_origins: OriginKeys[SequenceKey] = OriginKeys()

    def restore(self, stored: Stored) -> None:
        """Take over the stored sequences; the queues have been restored."""
        queues = self._context.queue_manager.queues
        for key, row in stored.rows(Table.INCOMING):
            assert isinstance(key, bytes)
            self._restore(transfer_rows.read_incoming(key, row, queues))

    def _restore(self, info: IncomingTransactionalTransferInfo) -> None:
        """Take over a stored sequence, bound or not by the present `Settings.bind_senders`.

        If it has just been turned on, a sequence belongs to its last origin. If it has just been turned off,
        only the last of several origins is left.
        """
        bound = self._context.settings.bind_senders
        if info.bound != bound and info.origin:
            self._context.changes.delete(Table.INCOMING, transfer_rows.incoming_key(info))
            info.bound = bound
            other = self.infos.get(info.key)
            if other is not None and other.last_access_time > info.last_access_time:
                return
            if other is not None:
                self._forget(other.key)
            transfer_rows.put_incoming(self._context, info)
        self._add(info)
        if info.queue is not None:
            info.queue.incoming[info.key] = info

    def incoming(
        self, message: Message, stream_owner: UUID | None = None
    ) -> IncomingTransactionalTransferInfo:
        """Return the state of a sender's sequence to a destination: MQQB-3.1.5.8.8-07 and -08.

        `stream_owner` is the GUID in the identifier of a stream.

        Keyed by the name used, since each outgoing queue of the sender has its own sequence; kept even if the
        queue does not exist, so that a message refused for that reason is not accepted when it is resent.
        `Settings.bind_senders` gives each origin sequences of its own.
        """
        assert message.destination is not None, "a received message has a destination"
        bound = self._context.settings.bind_senders
        sender, stream = message.source_machine_identifier, stream_owner is not None
        owner = sender if stream_owner is None else stream_owner
        # SRMP-3.1.1.2-02, DMPR-3.1.1.5-02 and -03
        key = sequence_key(owner, message.destination, message.origin if bound else "", stream=stream)
        info = self.infos.pop(key, None)
        if info is None:
            info = IncomingTransactionalTransferInfo(
                # DMPR-3.1.1.5-02 and -03
                None, message.destination, sender, origin=message.origin, bound=bound,
                stream_owner=stream_owner,
            )  # fmt: skip
            unbound = self.infos.get((*key[:2], ""))
            if unbound is not None:  # version 1 stored it without an origin: any origin continues it
                info.sequence_identifier = unbound.sequence_identifier
                info.sequence_number = unbound.sequence_number
            self._make_room(info)
            self._add(info)
        else:
            self.infos[key] = info  # least recently used first
            self._of_origins.touch(info.origin, key)
        return info

    def _move(self, info: IncomingTransactionalTransferInfo, origin: str) -> None:
        """An unbound sequence continues from another origin."""
        self._leave(info)
        info.origin = origin
        self._enter(info)

    def _enter(self, info: IncomingTransactionalTransferInfo) -> None:
        self._of_origins.add(info.origin, info.key)
        self._memory.take(Kind.SENDERS, info.origin, _size(info))

    def _leave(self, info: IncomingTransactionalTransferInfo) -> None:
        self._of_origins.remove(info.origin, info.key)
        self._memory.give_back(Kind.SENDERS, info.origin, _size(info))

    def _add(self, info: IncomingTransactionalTransferInfo) -> None:
        self.infos[info.key] = info
        self._enter(info)

    def _make_room(self, info: IncomingTransactionalTransferInfo) -> None:
        """Evict senders beyond the limit: messages that they resend will not be recognised.

        The origin with the most senders loses its longest idle ones.
        """
        size = _size(info)
        while len(self.infos) >= self._context.settings.incoming_sequences_max or not self._memory.fits(
            Kind.SENDERS, info.origin, size
        ):
            keys = self._of_origins.of(self._memory.crowding(Kind.SENDERS, info.origin, size))
            if not keys:
                return  # the first of its origin, whose name alone is longer than the limit
            for key in list(islice(keys, max(1, len(keys) // _AT_ONCE))):
                self._forget(key)

    def _forget(self, key: SequenceKey) -> None:
        info = self.infos.pop(key)
        self._leave(info)
        if info.queue is not None:
            info.queue.incoming.pop(key, None)
        self._context.changes.delete(Table.INCOMING, transfer_rows.incoming_key(info))

    def follows(self, info: IncomingTransactionalTransferInfo, message: Message) -> bool:
        """Return whether a message is next in its sequence: [MS-MQQB] 3.1.5.8.6."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "only transactional messages have a sequence"
        previous = message.transaction_previous_sequence_number
        if sequence == info.sequence_identifier:
            # MQQB-3.1.5.8.6-03, MQQB-3.1.5.8.6-05
            return message.transaction_sequence_number > info.sequence_number >= previous  # MQMQ-2.2.20.5-08
        # MQQB-3.1.5.8.6-04, MQQB-3.1.5.8.6-05
        return sequence > info.sequence_identifier and previous == 0

    def refused(self, info: IncomingTransactionalTransferInfo) -> None:
        """Count a message that is not next."""
        info.reject_count += 1  # MQQB-3.1.5.8.6-06, DMPR-3.1.1.5-07
        info.last_access_time = self._context.utc  # MQQB-3.1.5.8.6-08, DMPR-3.1.1.5-06
        if info.sequence_identifier.ordinal:  # MQQB-3.1.1.3.1-13
            transfer_rows.put_incoming(self._context, info)

    def accepted(self, info: IncomingTransactionalTransferInfo, message: Message) -> None:
        """Advance the sequence to a message."""
        sequence = message.transactional_message_sequence_identifier
        assert sequence is not None, "only transactional messages have a sequence"
        if info.origin != message.origin:
            self._move(info, message.origin)
        info.reject_count = 0  # MQQB-3.1.5.8.6-07, DMPR-3.1.1.5-07
        info.last_access_time = self._context.utc  # MQQB-3.1.5.8.6-08, DMPR-3.1.1.5-06
        # MQQB-3.1.1.3.1-15 and -16, MQQB-3.1.5.8.6-09, DMPR-3.1.1.5-04 and -05
        # SRMP-3.1.1.1.6-06, SRMP-3.1.1.1.6-07
        info.sequence_identifier, info.sequence_number = sequence, message.transaction_sequence_number
        transfer_rows.put_incoming(self._context, info)  # SRMP-3.1.1.1.6-06, SRMP-3.1.1.1.6-07


def _size(info: IncomingTransactionalTransferInfo) -> int:
    former = FORMER_STREAMS_BYTES_MAX if info.is_stream else 0
    return SENDER_BYTES + former + CHARACTER_BYTES * len(info.format_name.canonical)
