"""The transfers out of the outgoing queues that the binary protocol serves, and their destinations."""

from __future__ import annotations

from typing import Final

from msmqwire.names import DirectName, FormatName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import ConnectionHistory, OutgoingQueue
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import NextHop
from msmqwire.qm.protocols.binary.transfer import Peer, SessionTransfer
from msmqwire.qm.rules.queue_states import is_http
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.routing import Routing

HELD: Final = (OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED)
"""States in which no message leaves an outgoing queue, whatever its session does."""


class TransferTable:
    """Transfers by the number of their outgoing queue.

    Attributes:
        transfers: all transfers, by the number of their queue.
    """

    def __init__(self, context: Context, queues: Queues, routing: Routing) -> None:
        self._context, self._queues, self._routing = context, queues, routing
        self.transfers: dict[int, SessionTransfer] = {}

    def serves(self, queue: OutgoingQueue) -> bool:
        """Return whether this protocol carries the messages of a queue: MQQB-3.1.7.12-01."""
        return not queue.multicast and not is_http(queue.destination)

    def transfer_of(self, queue: OutgoingQueue) -> SessionTransfer:
        """Return the transfer of an outgoing queue, a new one for a new queue."""
        transfer = self.transfers.get(queue.number)
        if transfer is None:
            direct = isinstance(queue.destination, DirectName)
            host = queue.destination.host if isinstance(queue.destination, DirectName) else ""
            transfer = SessionTransfer(queue, self._peer_of(queue), host, direct=direct)
            self.transfers[queue.number] = transfer  # MQQB-3.1.5.2.1-01
        return transfer

    def locate(self, transfer: SessionTransfer) -> Peer:
        """Return the present destination of a transfer: its queue may have become known, or have moved."""
        return self._peer_of(transfer.queue)

    def _peer_of(self, queue: OutgoingQueue) -> Peer:
        """Get Destination Info: [MS-MQQB] 3.1.7.4. A queue whose host is unknown has a peer of its own."""
        name = queue.destination
        assert name is not None, "an outgoing queue has a destination"
        if queue.acknowledged_peer and self._context.settings.bind_senders:
            return "bound", (queue.asked_by, queue.acknowledged_peer)
        if queue.acknowledged_peer and isinstance(name, DirectName):
            return "direct", queue.acknowledged_peer
        return self.peer_of(name) or ("queue", queue.number)

    def peer_of(self, name: FormatName) -> Peer | None:
        """Get Destination Info: [MS-MQQB] 3.1.7.4. Return the destination of a name, None if that is
        unknown.
        """
        if isinstance(name, DirectName):  # MQMQ-2.1.2-01, MQBR-1.4-01
            return "host", name.host.lower()
        info = self._routing.get_destination_info(name)
        return ("qm", info.queue_manager) if info else None

    def next_hops(self, transfer: SessionTransfer) -> list[NextHop]:
        """Get Next Hops: [MS-MQQB] 3.1.7.5. Their host names are not resolved yet."""
        guid = transfer.qm_guid
        if guid is None or guid == NULL_GUID:  # MQQB-3.1.5.2.1-04
            return []
        hops = self._routing.get_next_hops(guid)
        return [NextHop(hop.identifier, hop.qualified_computer_name or hop.computer_name, "") for hop in hops]

    def begin_session(self, transfer: SessionTransfer) -> None:
        """Reset the part of a transfer that belongs to one session: [MS-MQQB] 3.1.3.2."""
        self._context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)  # MQQB-3.1.3.2-02
        transfer.begin_session(self._context.utc)  # MQQB-3.1.3.2-05

    def record(
        self, transfer: SessionTransfer, status: ConnectionStatus, error: int, address: str, detail: str = ""
    ) -> None:
        """Add an entry to ConnectionHistory: MQQB-3.1.5.2-03."""
        transfer.queue.connection_history.append(  # DMPR-3.1.1.3-12
            # DMPR-3.1.1.3-12
            ConnectionHistory(status, self._context.utc, error, (address,) if address else (), detail)
        )

    def forget(self, queue: OutgoingQueue) -> None:
        """Remove an outgoing queue that has nothing to transfer."""
        transfer = self.transfers.pop(queue.number, None)
        if transfer is not None and transfer.session is not None:
            transfer.session.transfers.remove(transfer)
        self._queues.forget(queue)
