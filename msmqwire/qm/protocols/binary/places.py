"""The places that messages of peers ask for: destinations, administration queues, senders."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.names import DirectName, FormatName, MulticastName
from msmqwire.names.origins import origin_of
from msmqwire.qm.model.context import Context
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.session_table import SessionTable
from msmqwire.qm.protocols.binary.states import SessionRole
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, Peer, SessionTransfer
from msmqwire.qm.protocols.binary.transfer_table import HELD, TransferTable
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.queue_memory import QueueMemory
from msmqwire.qm.rules.queue_states import is_http


class SessionPlaces:
    """Limits the places that peers make this queue manager try to reach, by origin and in total.

    A place is the destination of a session. Places that a local application has asked for do not count;
    all other places are retried only while their origin stays within its share.

    Args:
        give_up: gives up a message whose place can't be reached.
        close: closes a session.
    """

    def __init__(
        self,
        context: Context,
        sessions: SessionTable,
        transfers: TransferTable,
        lookup: Lookup,
        memory: QueueMemory,
        *,
        give_up: Callable[[OutgoingMessagePosition], None],
        close: Callable[[Session], None],
    ) -> None:
        self._context, self._sessions, self._transfers = context, sessions, transfers
        self._lookup, self._memory = lookup, memory
        self._give_up, self._close = give_up, close
        self._evicting = False
        memory.forget_idle.append(self._forget_idle)

    def serves(self, name: FormatName) -> bool:
        """Return whether the binary protocol carries messages to a name."""
        return not is_http(name) and not isinstance(name, MulticastName)

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened for a message of an origin.

        The oldest place that only peers have asked for is given up to make room for it.
        """
        if not origin or self._lookup.is_local_name(name):
            return True
        if not self.serves(name):
            return False
        if self._lookup.outgoing(name) is not None:
            return True
        return self._memory.fits(name, origin) and self.may_reach(self._transfers.peer_of(name), origin)

    def _forget_idle(self, origin: str) -> None:
        for transfer in list(self._transfers.transfers.values()):
            queue = transfer.queue
            if queue.asked_by == origin and queue.acknowledged_peer is None and transfer.is_idle:
                self._transfers.forget(queue)

    def may_reach(self, peer: Peer | None, origin: str) -> bool:
        """Return whether messages of an origin may make this queue manager try to reach a peer."""
        settings, sessions = self._context.settings, self._sessions.sessions
        if len(sessions) < min(settings.unreachable_per_origin_max, settings.unreachable_max):
            return True
        places: dict[str, list[Session]] = {}  # unreachable places, oldest first
        total = 0
        for session in sessions.values():
            to_peer = peer is not None and session.peer == peer
            if to_peer or (session.is_open and peer is not None and session.remote_guid == peer[1]):
                return True
            asked_by = session.asked_by
            if asked_by and session.role is SessionRole.INITIATOR and not session.is_open:
                places.setdefault(asked_by, []).append(session)
                total += 1
        own = places.get(origin, [])
        if len(own) >= settings.unreachable_per_origin_max:
            return self._evict(own[0], origin)
        if total >= settings.unreachable_max:
            return self._evict(max(places.values(), key=len)[0], origin)
        return True

    def _evict(self, session: Session, origin: str) -> bool:
        """Give up a place for a new one; return False if one is being given up already.

        Reports about messages given up must not drive out further places.
        """
        if self._evicting:
            return False
        self._evicting = True
        text = f"{session.place}, requested by {session.asked_by}, is given up for one of {origin}"
        self._context.trouble("unreachable", text)
        for transfer in list(session.transfers):
            if transfer.queue.state not in HELD:
                for outgoing in list(transfer.table.values()):
                    self._give_up(outgoing)
        if session.connection is not None:
            self._close(session)
        if session.number in self._sessions.sessions:
            self._sessions.release(session)
        self._evicting = False
        return True

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go over an open session with an origin, or to its address."""
        if isinstance(name, DirectName) and origin_of(name.host) == origin:
            return True
        queue = self._lookup.outgoing(name)
        transfer = self._transfers.transfers.get(queue.number) if queue is not None else None
        if transfer is not None:
            return self.goes_back(transfer, origin)
        peer = self._transfers.peer_of(name)
        return peer is not None and self._is_open_to(peer, origin)

    def goes_back(self, transfer: SessionTransfer, origin: str) -> bool:
        """Return whether a transfer goes over an open session with an origin, or to its address."""
        if transfer.host and origin_of(transfer.host) == origin:
            return True
        if transfer.session is not None and transfer.session.is_open:
            return transfer.session.origin == origin
        return self._is_open_to(transfer.peer, origin)

    def _is_open_to(self, peer: Peer, origin: str) -> bool:
        session = self._sessions.leading_to(peer)
        return session is not None and session.is_open and session.origin == origin
