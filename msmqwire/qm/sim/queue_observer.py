"""The events in the queues of a node, for the books of a run."""

from __future__ import annotations

from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.sim.ledger import MessageLedger, NodeView
from msmqwire.qm.sim.reader_ledger import ReaderLedger


class QueueObserver:
    """Passes the queue events of a node to the books, as one more protocol of its core."""

    def __init__(self, ledger: MessageLedger, reader_ledger: ReaderLedger, node: NodeView) -> None:
        self._ledger, self._reader_ledger, self._node = ledger, reader_ledger, node

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        self._reader_ledger.available(self._node, position)
        self._ledger.available(self._node, queue, position)

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        self._reader_ledger.deleted(self._node, queue, position, reason)
        self._ledger.deleted(self._node, queue, position, reason)

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """Do nothing: no message is concerned."""

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """Do nothing: no message is concerned."""

    def taken_offline(self) -> None:
        """Do nothing: no message is concerned."""

    def brought_online(self) -> None:
        """Do nothing: no message is concerned."""

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Do nothing: sent messages are observed on the wire."""
