"""The identity of a message that begins here: its identifier, source and time."""

from __future__ import annotations

from typing import Final

from msmqwire.names import PrivateName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.recovery import Stored

MESSAGE_ID_ORDINAL: Final = b"MessageIdOrdinal"
_ORDINALS: Final = 1 << 32
_RESERVED: Final = 4096
"""Ordinals reserved by one stored row, so that express messages do not touch the disk."""


class MessageIdentity:
    """Numbers messages; all protocols share MessageIdOrdinal, [MS-MQQB] 3.1.1.3."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ordinal = self._reserved_until = 0

    def restore(self, stored: Stored) -> None:
        """Continue after every ordinal that may have been used before."""
        row = stored.row(Table.META, MESSAGE_ID_ORDINAL)
        self._ordinal = self._reserved_until = int.from_bytes(row, "little") if row else 0  # SRMP-3.1.3.1-02

    def store(self) -> None:
        """Give back the ordinals that were reserved and not used."""
        self._reserve(self._ordinal)

    def identify(self, message: Message) -> None:
        """Assign an identifier unless the message has one: [MS-MQQB] 3.1.7.1.1."""
        if not message.identifier.uniquifier:  # DMPR-3.1.1.12-02
            message.identifier = self.next()  # DMPR-3.1.1.12-02

    def next(self) -> ObjectId:
        """Return an unused identifier."""
        # MQQB-3.1.1.3-16
        self._ordinal = self._ordinal % (_ORDINALS - 1) + 1  # SRMP-3.1.1.1.5-02, MQQB-3.1.1.3-17
        if self._ordinal > self._reserved_until or self._ordinal == 1:
            self._reserve(min(self._ordinal + _RESERVED, _ORDINALS - 1))
        return ObjectId(self._context.queue_manager.identifier, self._ordinal)  # DMPR-3.1.1.12-02

    def stamp(self, message: Message) -> None:
        """Set source, time and identifier of a message that begins here."""
        message.source_machine_identifier = self._context.queue_manager.identifier  # DMPR-3.1.1.12-35
        message.sent_time = self._context.utc  # SRMP-2.2.5.1.2-02, DMPR-3.1.1.12-47
        self.identify(message)
        if isinstance(message.destination, PrivateName):
            message.destination_queue_manager_identifier = message.destination.guid

    def _reserve(self, last: int) -> None:
        """Use no ordinal up to this one again after a restart."""
        self._reserved_until = last
        # MQMQ-2.2.18.1.3-03, MQQB-3.1.1.3-16
        self._context.changes.put(Table.META, MESSAGE_ID_ORDINAL, last.to_bytes(8, "little"))
