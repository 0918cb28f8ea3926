"""Establishing sessions: [MS-MQQB] 3.1.5.2, 3.1.5.9, 3.1.5.10 and 3.1.6.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.names import FormatName, PrivateName
from msmqwire.qm.model.address import address_text
from msmqwire.qm.model.effects import Connect, Disconnect, Resolve
from msmqwire.qm.model.elements import ConnectionHistory
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState, QueueManagerState
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import NextHop, Session
from msmqwire.qm.protocols.binary.states import MessageState, Role, SessionEvent, SessionState
from msmqwire.qm.protocols.binary.transfer import Transfer

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine

_HELD: Final = (OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED)


class Connecting:
    """Finds or makes the sessions that transfers need."""

    def __init__(self, engine: BinaryEngine) -> None:
        self._engine, self._context = engine, engine.context
        self._resolving: dict[int, Session] = {}
        self._requests = 0

    def ensure_session(self, transfer: Transfer) -> None:
        """A transfer has messages: give it a session, one that is there if it leads to the same place."""
        if transfer.queue.state in _HELD:
            return
        session = transfer.session
        if session is None:
            session = self._engine.session_to(transfer.peer)
            if session is None:
                session = self._engine.new_session(Role.INITIATOR, transfer.peer)
            self.attach(session, transfer)
        if (
            session.role is Role.INITIATOR
            and session.state is SessionState.CLOSED
            and not self._busy(session)
        ):
            if self._context.queue_manager.connection_active:
                self.establish(session)
            else:
                self.retry_later(session)

    def _busy(self, session: Session) -> bool:
        """Whether an attempt is being made already: names are resolved, a ping or a connection awaited."""
        return bool(session.unanswered) or session.connection is not None or self._engine.pings.waits(session)

    def attach(self, session: Session, transfer: Transfer) -> None:
        """Have a session serve a transfer."""
        transfer.session = session
        session.transfers.append(transfer)
        if session.is_open:
            self.begin(transfer)
            self.serve(session, transfer)

    def begin(self, transfer: Transfer) -> None:
        """What each session begins with for a transfer: MQQB-3.1.3.2-02 and -05."""
        self._context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
        transfer.begin_session(self._context.utc)

    def serve(self, session: Session, transfer: Transfer) -> None:
        """An open session begins to serve a transfer: what was sent over another connection is sent again."""
        queue = transfer.queue
        if queue.state not in _HELD:
            queue.state = OutgoingQueueState.CONNECTED
        queue.next_hops = [address_text(session.remote_address)]
        self.record(transfer, ConnectionStatus.ESTABLISHED, 0, session.remote_address)
        again = [
            one
            for one in transfer.table.values()
            if one.state in (MessageState.WAITING_FOR_SESSION_ACK, MessageState.WAITING_FOR_ORDER_ACK)
        ]
        transfer.send_again(again)

    def record(self, transfer: Transfer, status: ConnectionStatus, error: int, address: str) -> None:
        """ConnectionHistory: MQQB-3.1.5.2-03."""
        transfer.queue.connection_history.append(
            ConnectionHistory(status, self._context.utc, error, (address,) if address else ())
        )

    def refuses(self, name: FormatName, manager: UUID | None = None) -> bool:
        """Whether no outgoing queue is made to send what a message of another asks for.

        Each place that can't be reached is tried again and again: others may not add to them without limit.
        `manager` is the queue manager that the name leads to, where it does not tell that itself.
        """
        engine, limit = self._engine, self._context.settings.unreachable_max
        sessions, lookup = engine.sessions.values(), engine.queues.lookup
        if len(sessions) < limit or lookup.is_local_name(name) or lookup.outgoing(name) is not None:
            return False
        guid = name.guid if isinstance(name, PrivateName) else manager
        waiting = 0
        for session in sessions:
            if session.is_open and session.remote_guid == guid:
                return False
            waiting += session.role is Role.INITIATOR and not session.is_open
        return waiting >= limit

    # -- an attempt -----------------------------------------------------------------------------------

    def establish(self, session: Session, *, retry: bool = False) -> None:
        """Establishing a Protocol Session, from the start: [MS-MQQB] 3.1.5.2 and 3.1.5.2.1."""
        self._context.timers.stop(Timer.SESSION_RETRY_CONNECT, session.number)
        session.may_ping = self._context.settings.ping and not retry  # MQQB-3.1.5.2.2-01
        first = session.transfers[0]
        if self._has_moved(session, first):
            return
        if first.host:
            asked = [NextHop(NULL_GUID, first.host, "")]  # MQQB-3.1.5.2.1-07
        else:
            asked = self._engine.next_hops(first)  # MQQB-3.1.5.2.1-04
        session.hops, session.hop, session.asked = [], 0, {}
        if not asked:
            self.failed(
                session, ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, OutgoingQueueState.NEED_VALIDATION
            )
            return
        session.remote_host_name, session.remote_guid = asked[0].host_name, asked[0].qm_guid
        for hop in asked:
            self._requests += 1
            session.asked[self._requests] = [hop]
            self._resolving[self._requests] = session
            self._context.effects.append(Resolve(self._requests, hop.host_name))
        session.unanswered = set(session.asked)

    def _has_moved(self, session: Session, first: Transfer) -> bool:
        """Get Destination Info, MQQB-3.1.5.2.1-02. What leads elsewhere than before gets another session."""
        peer = self._engine.locate(first)
        if peer == first.peer:
            return False
        first.peer, first.session = peer, None
        session.transfers.remove(first)
        self.ensure_session(first)
        if session.transfers:
            self.establish(session)
        else:
            self._engine.release(session)
        return True

    def resolved(self, request: int, addresses: Sequence[str]) -> None:
        """The addresses of a host name are known; none when it has none."""
        session = self._resolving.pop(request, None)
        if session is None or request not in session.unanswered:
            return
        session.unanswered.discard(request)
        hop = session.asked[request][0]
        session.asked[request] = [NextHop(hop.qm_guid, hop.host_name, address) for address in addresses]
        if session.unanswered:
            return
        session.hops = [hop for found in session.asked.values() for hop in found]  # MQQB-3.1.5.2.1-06
        session.asked = {}
        if self._is_abandoned(session):
            return
        for transfer in session.transfers:
            transfer.queue.next_hops = [address_text(hop.address) for hop in session.hops]
        if not session.hops:
            self.failed(session, ConnectionStatus.DNS_FAILURE, OutgoingQueueState.NEED_VALIDATION)
            return
        self.try_hop(session, ping=session.may_ping)

    def _is_abandoned(self, session: Session) -> bool:
        """Whether a session being established is not needed any more, or not now: offline it waits."""
        if session.transfers and self._context.queue_manager.connection_active:
            return False
        self.retry_later(session)
        return True

    def try_hop(self, session: Session, *, ping: bool) -> None:
        """The Ping Mechanism, and the transport connection: [MS-MQQB] 3.1.5.2.2 and 3.1.5.2.3."""
        hop = session.hops[session.hop]
        session.remote_address, session.remote_host_name = hop.address, hop.host_name
        session.remote_guid = hop.qm_guid
        session.pinged = ping
        if ping:
            self._engine.pings.request(session)
        else:
            self._connect(session)

    def pinged(self, session: Session, *, accepted: bool) -> None:
        """A ping was answered, or not: MQQB-3.1.5.2.2-02 and -03."""
        if self._is_abandoned(session):
            return
        if accepted:
            self._connect(session)
        else:
            self.failed(session, ConnectionStatus.PING_FAILURE, None)

    def _connect(self, session: Session) -> None:
        engine = self._engine
        session.connection = engine.new_connection(session)
        for transfer in session.transfers:
            if transfer.queue.state not in _HELD:
                transfer.queue.state = OutgoingQueueState.WAITING
        self._context.effects.append(
            Connect(session.connection, session.remote_address, session.remote_host_name)
        )

    def connect_failed(self, session: Session, status: ConnectionStatus) -> None:
        """The transport connection could not be opened."""
        self._engine.forget_connection(session)
        self.failed(session, status, None)

    def failed(self, session: Session, status: ConnectionStatus, state: OutgoingQueueState | None) -> None:
        """A step of establishing failed: MQQB-3.1.5.2-03; another attempt is made while messages wait."""
        for transfer in session.transfers:
            self.record(
                transfer, status, HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE, session.remote_address
            )
            if state is not None and transfer.queue.state not in _HELD:
                transfer.queue.state = state
        self.retry_later(session)

    def retry_later(self, session: Session) -> None:
        """Session Retry Connect Timer, while there is anything to send: [MS-MQQB] 3.1.2.3."""
        wanted = any(one.table and one.queue.state not in _HELD for one in session.transfers)
        if not wanted or self._context.queue_manager.state is QueueManagerState.STOPPING:
            self._engine.release(session)
            return
        if session.state is SessionState.CLOSED:
            session.step(SessionEvent.RECONNECT_LATER)
        settings = self._context.settings
        delay = settings.session_retry_connect_ms + settings.round_trip_delay_ms
        self._context.timers.start(
            Timer.SESSION_RETRY_CONNECT, session.number, delay, lambda: self._retry(session)
        )

    def _retry(self, session: Session) -> None:
        """Session Retry Connect Timer Event: [MS-MQQB] 3.1.6.1."""
        if not any(transfer.table for transfer in session.transfers):  # MQQB-3.1.6.1-01
            self._engine.release(session)
            return
        if not self._context.queue_manager.connection_active:
            self.retry_later(session)
            return
        if session.hop + 1 < len(session.hops):  # MQQB-3.1.6.1-03
            session.hop += 1
            self.try_hop(session, ping=False)
        else:
            self.establish(session, retry=True)  # MQQB-3.1.6.1-02

    # -- the end ----------------------------------------------------------------------------------------

    def close(self, session: Session) -> None:
        """Closing a Session: [MS-MQQB] 3.1.5.9."""
        engine, context = self._engine, self._context
        if session.state is SessionState.CLOSED and session.connection is None:
            return
        for transfer in session.transfers:
            if transfer.queue.state not in _HELD:
                transfer.queue.state = OutgoingQueueState.DISCONNECTING
            engine.dispatch.remove_queue(transfer.queue)
        if session.connection is not None:
            context.effects.append(Disconnect(session.connection))
            engine.forget_connection(session)
        for timer in _OF_A_SESSION:
            context.timers.stop(timer, session.number)
        for transfer in session.transfers:
            context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
        session.step(SessionEvent.CLOSE)
        for outgoing in (*(one for _, one in session.in_flight), *session.unsaved):
            outgoing.session = None
        session.in_flight.clear()
        session.unsaved.clear()
        session.unacked_message_count = session.unacked_bytes = 0
        session.order_acks_due.clear()
        for transfer in session.transfers:
            if transfer.queue.state not in _HELD:
                transfer.queue.state = OutgoingQueueState.DISCONNECTED
            # MQQB-3.1.1.1.1.3-04: sent again over the next connection
            lost = MessageState.WAITING_FOR_SESSION_ACK
            transfer.send_again([one for one in transfer.table.values() if one.state is lost])
        own = [
            one for one in session.transfers if session.role is Role.INITIATOR and one.peer == session.peer
        ]
        guests = [one for one in session.transfers if one not in own]
        session.transfers = own
        if session.role is Role.INITIATOR:
            self.retry_later(session)
        else:
            self._engine.release(session)
        self._hand_over(guests)

    def _hand_over(self, guests: list[Transfer]) -> None:
        """Transfers a session served without being made for them: its next connection may lead elsewhere."""
        for transfer in guests:
            transfer.session = None
            if transfer.table and transfer.queue.state not in _HELD:
                own = self._engine.session_to(transfer.peer)
                if own is None:
                    own = self._engine.new_session(Role.INITIATOR, transfer.peer)
                self.attach(own, transfer)
                if own.state is SessionState.CLOSED and not self._busy(own):
                    self.retry_later(own)


_OF_A_SESSION: Final = (
    Timer.SESSION_INITIALIZATION, Timer.SESSION_CLEANUP, Timer.SESSION_RETRY_CONNECT, Timer.SESSION_ACK_WAIT,
    Timer.SESSION_ACK_SEND, Timer.ORDER_ACK_SEND,
)  # fmt: skip
