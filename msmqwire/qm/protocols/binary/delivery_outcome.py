"""The end of a message at its sender: delivered or given up, kept in a journal or dead-lettered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.protocols.binary.sending import kind_of
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine


class DeliveryOutcome:
    """What is done with messages that need not be sent any more.

    Attributes:
        when_sent: is told of each message that is delivered (True) or given up (False), and of the class of
            a final acknowledgement that says why; twice of a transactional one that is delivered if its final
            acknowledgement is positive.
    """

    def __init__(self, engine: BinaryEngine) -> None:
        self._engine = engine
        self.when_sent: Callable[[ObjectId, bool, int | None], None] | None = None

    def delivered(self, outgoing: OutgoingMessagePosition) -> None:
        """Source Journaling, and the end of a message here: [MS-MQQB] 3.1.5.5.4."""
        position = outgoing.position
        journal = self._engine.context.queue_manager.system_journal_queue
        message = position.message
        own = message.source_machine_identifier == self._engine.context.queue_manager.identifier
        self.tell_sent(message, delivered=True)
        if own and message.positive_journaling_requested and journal is not None:
            self._engine.messages.transfer(position, journal)
        else:
            self._engine.messages.discard(position)

    def dead_letter(self, outgoing: OutgoingMessagePosition, message: Message) -> None:
        """A message that could not be delivered, where that was asked for: MQQB-3.1.7.1.2-04 and -05."""
        manager = self._engine.context.queue_manager
        target: Queue | None = manager.system_deadletter_queue
        if kind_of(message) == "Transactional":
            target = manager.system_transactional_deadletter_queue
            if message.application_deadletter_queue:
                own = self._engine.queues.lookup.path(message.application_deadletter_queue)
                target = own if own is not None and own.transactional else target
        if message.negative_journaling_requested and target is not None:
            self._engine.messages.transfer(outgoing.position, target)
        else:
            self._engine.messages.discard(outgoing.position)

    def tell_sent(self, message: Message, *, delivered: bool, why: int | None = None) -> None:
        """Tell the owner, who may want to know, that a message has gone to the other side or is given up."""
        if self.when_sent is not None:
            self.when_sent(message.identifier, delivered, why)
