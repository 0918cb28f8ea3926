"""The outcome of a message at its sender: delivered or given up, journaled or dead-lettered."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.messages import MessageEvents


class DeliveryOutcome:
    """Disposes of messages that no longer have to be sent.

    Attributes:
        when_sent: called for each message that is delivered (True) or given up (False), with the class of the
            final acknowledgement, or with the reason as text; called twice for a transactional message that
            is delivered and then positively acknowledged.
        when_transmitted: called each time that a message leaves over a connection, with the number of its
            outgoing queue and the address that it goes to.
    """

    def __init__(self, context: Context, messages: MessageEvents, lookup: Lookup) -> None:
        self._context, self._messages, self._lookup = context, messages, lookup
        self.when_sent: Callable[[ObjectId, bool, int | str | None], None] | None = None
        self.when_transmitted: Callable[[ObjectId, int, str], None] | None = None

    def transmitted(self, message: Message, queue: OutgoingQueue, address: str) -> None:
        """Notify the owner, if interested, that a message leaves; its arrival is not known yet."""
        if self.when_transmitted is not None:
            self.when_transmitted(message.identifier, queue.number, address)

    def delivered(self, position: MessagePosition) -> None:
        """Source Journaling, and the end of a message here: [MS-MQQB] 3.1.5.5.4, [MC-MQSRM] 3.1.5.2.2."""
        manager = self._context.queue_manager
        journal, message = manager.system_journal_queue, position.message
        own = message.source_machine_identifier.int == manager.identifier.int
        self.report(message, delivered=True)
        # MQQB-3.1.1.1.1.3-09, MQQB-3.1.1.1.1.5-09, MQQB-3.1.1.1.1.7-14 and -15
        # MQMQ-2.2.19.2-20, MQMQ-2.2.19.2-18
        # MQQB-3.1.5.5.4-01, MQQB-3.1.5.7-03
        if own and message.positive_journaling_requested and journal is not None:
            self._messages.transfer(position, journal)  # SRMP-3.1.5.2.2-01, SRMP-3.1.1.1.2.1-07
        else:
            self._messages.discard(position)

    def dead_letter(
        self, position: MessagePosition, message: Message, reason: int | str, *, why: str = ""
    ) -> None:
        """Dead-letter a message that could not be delivered, if requested: [MS-MQQB] 3.1.7.1.2.

        [MC-MQSRM] 3.1.5.2.1 has the same rules. `reason` and `why` are as for `Context.refused`.
        """
        self._context.refused(reason, message, position.queue, why=why)
        manager = self._context.queue_manager
        target: Queue | None = manager.system_deadletter_queue
        # MQMQ-2.2.19.2-17
        if message.transactional or message.transaction_identifier is not None:  # MQQB-1.3.4.2-01
            target = manager.system_transactional_deadletter_queue  # MQMQ-2.2.19.2-17, MQQB-3.1.7.1.2-04
            if message.application_deadletter_queue:  # MQQB-3.1.7.1.2-04
                named = self._lookup.path(message.application_deadletter_queue)  # MQQB-3.1.5.7-04
                target = named if named is not None and named.transactional else target  # SRMP-3.1.5.2.1.2-02
        # MQQB-3.1.1.1.1.3-07, MQQB-3.1.1.1.1.3-08, MQQB-3.1.1.1.1.5-07, MQQB-3.1.1.1.1.5-08
        # MQQB-3.1.1.1.1.7-12, MQQB-3.1.1.1.1.7-13, MQMQ-2.2.19.2-16, SRMP-3.1.5.2.1-01, MQQB-3.1.5.7-05
        # MQQB-3.1.7.1.2-05
        if message.negative_journaling_requested and target is not None:  # MQQB-1.3.4-01
            self._messages.transfer(position, target)  # SRMP-3.1.5.2.1.2-03
        else:
            self._messages.discard(position)

    def report(self, message: Message, *, delivered: bool, reason: int | str | None = None) -> None:
        """Notify the owner, if interested, that a message reached the other side or was given up, and why."""
        if self.when_sent is not None:
            self.when_sent(message.identifier, delivered, reason)
