"""The sessions of the binary protocol and their transport connections."""

from __future__ import annotations

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import SessionRole
from msmqwire.qm.protocols.binary.transfer import Peer
from msmqwire.qm.protocols.binary.transfer_table import HELD, TransferTable


class SessionTable:
    """Sessions by number and by transport connection.

    Attributes:
        sessions: all sessions, by number.
        by_connection: the sessions with a transport connection, by its number.
    """

    def __init__(self, context: Context, transfers: TransferTable) -> None:
        self._context, self._transfers = context, transfers
        self.sessions: dict[int, Session] = {}
        self.by_connection: dict[int, Session] = {}
        self._last_number = 0

    def add(self, role: SessionRole, peer: Peer | None) -> Session:
        """Return a new session, not connected yet."""
        self._last_number += 1
        session = Session(self._last_number, role, peer)
        self.sessions[session.number] = session
        return session

    def next_connection(self) -> int:
        """Return a number for a new connection."""
        self._last_number += 1
        return self._last_number

    def open_connection(self, session: Session) -> int:
        """Return the number of a new connection of a session."""
        session.connection = number = self.next_connection()
        self.by_connection[number] = session
        return number

    def forget_connection(self, session: Session) -> None:
        """The connection of a session is closed."""
        if session.connection is not None:
            self.by_connection.pop(session.connection, None)
            session.connection = None
            session.framer.discard()

    def leading_to(self, peer: Peer) -> Session | None:
        """Return the session that leads to a queue manager or host, an open one if possible."""
        candidate = None
        bound = peer[0] == "bound"
        guid = peer[1][1] if isinstance(peer[1], tuple) else peer[1]
        for session in self.sessions.values():
            to_peer = session.peer == peer
            if session.is_open:
                belongs = bound and self.belongs(peer, session)
                if to_peer or (session.remote_guid == guid and belongs is bound):  # MQQB-3-01
                    return session
                if belongs:
                    candidate = session
            elif to_peer and candidate is None:
                candidate = session
        return candidate

    def belongs(self, peer: Peer, session: Session) -> bool:
        """Return whether the peer of a session is the origin that acknowledgements are bound to."""
        return peer[0] == "bound" and isinstance(peer[1], tuple) and peer[1][0] == session.origin

    def release(self, session: Session) -> None:
        """Remove a session that is not needed any more, with its unused outgoing queues."""
        served, session.transfers = session.transfers, []
        for transfer in served:
            transfer.session = None
            queue = transfer.queue
            if transfer.is_idle and queue.state not in HELD and queue.acknowledged_peer is None:
                self._transfers.forget(queue)
        self._context.timers.stop(Timer.SESSION_RETRY_CONNECT, session.number)
        self.sessions.pop(session.number, None)

    def is_full(self) -> bool:
        """Return whether another session from outside would be refused."""
        limit = self._context.settings.max_in_sessions
        accepted = sum(
            session.role is SessionRole.ACCEPTOR and session.is_open for session in self.sessions.values()
        )
        return accepted >= limit or not self._context.queue_manager.connection_active
