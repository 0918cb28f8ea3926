"""Establishing sessions: [MS-MQQB] 3.1.5.2, 3.1.5.9, 3.1.5.10 and 3.1.6.1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msmqwire.constants import HResult
from msmqwire.qm.model.address import address_text
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import Connect, Disconnect, Resolve
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState, QueueManagerState
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.pings import Pings
from msmqwire.qm.protocols.binary.session import NextHop, Session
from msmqwire.qm.protocols.binary.session_table import SessionTable
from msmqwire.qm.protocols.binary.states import SessionEvent, SessionMessageState, SessionRole, SessionState
from msmqwire.qm.protocols.binary.transfer import SessionTransfer
from msmqwire.qm.protocols.binary.transfer_table import HELD, TransferTable
from msmqwire.qm.rules.dispatch import Dispatch

_DOUBLINGS_MAX: Final = 20


class Connecting:
    """Finds or establishes the sessions that transfers need, and closes them.

    Args:
        context, sessions, transfers, dispatch, pings: parts of the engine.
        send_waiting: sends the messages that wait for an open session.
    """

    def __init__(
        self,
        context: Context,
        sessions: SessionTable,
        transfers: TransferTable,
        dispatch: Dispatch,
        pings: Pings,
        send_waiting: Callable[[Session], None],
    ) -> None:
        self._context, self._sessions, self._transfers = context, sessions, transfers
        self._dispatch, self._pings, self._send_waiting = dispatch, pings, send_waiting
        self._resolving: dict[int, Session] = {}
        self._requests = 0
        self._handed_over: list[Session] = []
        self._sends = False

    def ensure_session(self, transfer: SessionTransfer) -> None:
        """Give a transfer with messages a session: an existing one if it leads to the same peer."""
        if transfer.queue.state in HELD:
            return
        session = transfer.session
        if session is None:
            session = self._sessions.leading_to(transfer.peer)  # MQQB-1.3.5.2-01
            if session is None:  # MQQB-1.3.5.2-01
                session = self._sessions.add(SessionRole.INITIATOR, transfer.peer)
            self.attach(session, transfer)
            if session.is_open:
                self._send_waiting(session)
        if (
            session.role is SessionRole.INITIATOR
            and session.state is SessionState.CLOSED
            and not self._busy(session)
        ):
            if self._context.queue_manager.connection_active:
                self.establish(session)
            else:
                self.retry_later(session)
        elif session.unanswered and not session.resolves_locally and _is_local(transfer):
            self._resolve(session)  # so far only peers have asked for it

    def _busy(self, session: Session) -> bool:
        """Return whether an attempt is under way: names are resolved, or a ping or connection is awaited."""
        return bool(session.unanswered) or session.connection is not None or self._pings.waits(session)

    def attach(self, session: Session, transfer: SessionTransfer) -> None:
        """Let a session serve a transfer. With an open one, the caller sends the waiting messages."""
        transfer.session = session
        session.transfers.append(transfer)  # MQQB-3.1.7.1-04
        if transfer.queue.asked_by == "":
            session.asked_locally = True
        if session.is_open:
            self._transfers.begin_session(transfer)
            self.serve(session, transfer)

    def serve(self, session: Session, transfer: SessionTransfer) -> None:
        """Start serving a transfer with an open session: resend messages of an earlier connection."""
        queue = transfer.queue
        if queue.state not in HELD:
            queue.state = OutgoingQueueState.CONNECTED  # MQQB-3.1.5.4.2-04, DMPR-3.1.1.3-06
        queue.next_hops = [address_text(session.remote_address)]  # MQQB-3.1.5.4.2-02, DMPR-3.1.1.3-02
        # MQQB-3.1.5.4.2-03, DMPR-3.1.1.3-14
        self._transfers.record(transfer, ConnectionStatus.ESTABLISHED, 0, session.remote_address)
        unacknowledged = (
            SessionMessageState.WAITING_FOR_SESSION_ACK,
            SessionMessageState.WAITING_FOR_ORDER_ACK,
        )
        transfer.send_again(
            [message for message in transfer.table.values() if message.state in unacknowledged]
        )

    def ask_locally(self, session: Session) -> None:
        """A local application needs a session that so far only messages of peers needed."""
        session.asked_locally = True
        if self._context.timers.active(Timer.SESSION_RETRY_CONNECT, session.number):
            # Even without a message to send yet: the queue is about to be opened.
            self._start_retry_timer(session)

    def opened(self, session: Session) -> None:
        """Serve the transfers of an open session, and the transfers that wait for its queue manager."""
        session.failures = 0
        self._retry_soon(session.remote_address)
        for transfer in session.transfers:
            self.serve(session, transfer)
        belongs = self._sessions.belongs
        for transfer in list(self._transfers.transfers.values()):
            other = transfer.session
            waits = transfer.table and (other is None or not other.is_open)
            leads_there = transfer.qm_guid == session.remote_guid or belongs(transfer.peer, session)
            if waits and leads_there and transfer.queue.state not in HELD:
                if other is not None:
                    other.transfers.remove(transfer)
                self.attach(session, transfer)

    def _retry_soon(self, address: str) -> None:
        """A computer is reachable again: retry other places there soon."""
        for other in list(self._sessions.sessions.values()):
            waits = self._context.timers.active(Timer.SESSION_RETRY_CONNECT, other.number)
            if other.failures > 1 and other.remote_address == address and waits:
                other.failures = 0
                self.retry_later(other)

    # -- establishing -----------------------------------------------------------------------------------

    def establish(self, session: Session, *, retry: bool = False) -> None:
        """Establish a protocol session from the start: [MS-MQQB] 3.1.5.2 and 3.1.5.2.1."""
        self._context.timers.stop(Timer.SESSION_RETRY_CONNECT, session.number)
        session.may_ping = self._context.settings.ping and not retry  # MQQB-3.1.5.2.2-01
        first = session.transfers[0]
        if self._has_moved(session, first):
            return
        if first.host:  # MQQB-3.1.5.2.1-04, MQQB-3.1.5.2.1-07
            asked = [NextHop(NULL_GUID, first.host, "")]
        else:
            asked = self._transfers.next_hops(first)
        session.hops, session.hop, session.asked = [], 0, {}
        if not asked:
            self.failed(
                # MQQB-3.1.5.2.1-03, MQQB-3.1.5.2.1-05, DMPR-3.1.1.3-10 and -15
                session,
                ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE,
                OutgoingQueueState.NEED_VALIDATION,
            )
            return
        session.remote_host_name, session.remote_guid = asked[0].host_name, asked[0].qm_guid
        for hop in asked:
            self._requests += 1
            session.asked[self._requests] = [hop]
            self._resolving[self._requests] = session
        session.unanswered = set(session.asked)  # MQQB-3.1.5.2.1-09
        self._resolve(session)

    def _resolve(self, session: Session) -> None:
        """Request the addresses that are not known yet; a repeated request is answered as well."""
        session.resolves_locally = any(_is_local(transfer) for transfer in session.transfers)
        for request in sorted(session.unanswered):
            host = session.asked[request][0].host_name
            self._context.effects.append(Resolve(request, host, session.resolves_locally))

    def _has_moved(self, session: Session, first: SessionTransfer) -> bool:
        """Get Destination Info, MQQB-3.1.5.2.1-02: a transfer that leads elsewhere gets another session."""
        peer = self._transfers.locate(first)
        if peer == first.peer:
            return False
        first.peer, first.session = peer, None
        session.transfers.remove(first)
        self.ensure_session(first)
        if session.transfers:
            self.establish(session)
        else:
            self._sessions.release(session)
        return True

    def resolved(self, request: int, addresses: Sequence[str]) -> None:
        """Take the addresses of a host name; an empty sequence if it has none."""
        session = self._resolving.pop(request, None)
        if session is None or request not in session.unanswered:
            return
        session.unanswered.discard(request)
        hop = session.asked[request][0]
        # MQQB-3.1.1.3.1.3-01 to -03
        session.asked[request] = [NextHop(hop.qm_guid, hop.host_name, address) for address in addresses]
        if session.unanswered:
            return
        # MQQB-3.1.1.3.1-03
        session.hops = [hop for found in session.asked.values() for hop in found]  # MQQB-3.1.5.2.1-06
        session.asked = {}
        if self._is_abandoned(session):
            return
        for transfer in session.transfers:
            transfer.queue.next_hops = [address_text(hop.address) for hop in session.hops]  # DMPR-3.1.1.3-02
        if not session.hops:
            # DMPR-3.1.1.3-10 and -15
            self.failed(session, ConnectionStatus.DNS_FAILURE, OutgoingQueueState.NEED_VALIDATION)
            return
        self.try_hop(session, ping=session.may_ping)

    def _is_abandoned(self, session: Session) -> bool:
        """Return whether a session being established is no longer needed, or has to wait while offline."""
        if session.transfers and self._context.queue_manager.connection_active:
            return False
        self.retry_later(session)
        return True

    def try_hop(self, session: Session, *, ping: bool) -> None:
        """The Ping Mechanism, and the transport connection: [MS-MQQB] 3.1.5.2.2 and 3.1.5.2.3."""
        hop = session.hops[session.hop]  # MQQB-3.1.5.2.1-08
        # MQQB-3.1.1.3.1-26, MQQB-3.1.1.3.1-27, MQQB-3.1.5.2.1-08, MQQB-3.1.6.1-03
        session.remote_address, session.remote_host_name = hop.address, hop.host_name
        session.remote_guid = hop.qm_guid  # MQQB-3.1.5.2.1-08, MQQB-3.1.6.1-03
        session.pinged = ping  # MQQB-3.1.5.2.3-06
        if ping:  # MQQB-2.1-01, MQQB-2.1.2-01
            self._pings.request(session, self._pinged)  # MQQB-3.1.5.2-02, MQQB-3.1.1.7.1-01
        else:
            self._connect(session)

    def _pinged(self, session: Session, accepted: bool) -> None:
        """Connect or try later, depending on the ping's answer: MQQB-3.1.5.2.2-02 and -03."""
        if self._is_abandoned(session):
            return
        if accepted:
            self._connect(session)
        else:
            self.failed(session, ConnectionStatus.PING_FAILURE, None)  # MQQB-3.1.5.2.2-03, DMPR-3.1.1.3-15

    def _connect(self, session: Session) -> None:
        connection = self._sessions.open_connection(session)
        for transfer in session.transfers:
            if transfer.queue.state not in HELD:
                transfer.queue.state = OutgoingQueueState.WAITING  # MQQB-3.1.5.2.3-09, DMPR-3.1.1.3-11
        self._context.effects.append(Connect(connection, session.remote_address, session.remote_host_name))

    def connect_failed(self, session: Session, status: ConnectionStatus, detail: str) -> None:
        """Handle a transport connection that could not be opened."""
        self._sessions.forget_connection(session)
        self.failed(session, status, None, detail)

    def failed(
        self,
        session: Session,
        status: ConnectionStatus,
        state: OutgoingQueueState | None,
        detail: str = "",
    ) -> None:
        """Record a failed attempt, MQQB-3.1.5.2-03, and retry while messages wait."""
        self._count_failure(session, status)
        for transfer in session.transfers:
            self._transfers.record(
                transfer, status, HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE, session.remote_address,
                detail,
            )  # fmt: skip
            if state is not None and transfer.queue.state not in HELD:
                transfer.queue.state = state
        self.retry_later(session)  # MQQB-3.1.1.1.1.3-02, MQQB-3.1.1.1.1.5-02, MQQB-3.1.1.1.1.7-02

    def _count_failure(self, session: Session, status: ConnectionStatus) -> None:
        """Count a failed attempt; report the first failure of a place that messages of peers asked for."""
        if not self._context.queue_manager.connection_active:
            return  # nothing has failed
        session.failures += 1
        origin = session.asked_by
        if origin and session.failures == 1:
            why = f"requested by messages of {origin}: {status.value}; retried at growing intervals"
            self._context.trouble("unreachable", f"{session.place}, {why}")

    def _retry_delay(self, session: Session) -> int:
        """Return the time until the next attempt: [MS-MQQB] 3.1.2.3.

        It doubles with each failure unless a local application asked for the place.
        """
        settings = self._context.settings
        delay = settings.session_retry_connect_ms + settings.round_trip_delay_ms  # MQQB-3.1.2.3-02
        if session.asked_locally or not session.failures:
            return delay
        longest = max(settings.session_retry_connect_max_ms, delay)
        return min(delay << min(session.failures - 1, _DOUBLINGS_MAX), longest)

    def retry_later(self, session: Session) -> None:
        """Start the Session Retry Connect Timer if there is anything to send: [MS-MQQB] 3.1.2.3."""
        # MQQB-3.1.5.9-04, MQQB-3.1.5.9-05
        needed = any(transfer.table and transfer.queue.state not in HELD for transfer in session.transfers)
        if not needed or self._context.queue_manager.state is QueueManagerState.STOPPING:
            self._sessions.release(session)  # MQQB-3.1.1.1.1.1-14
            return
        if session.state is SessionState.CLOSED:
            session.step(SessionEvent.RECONNECT_LATER)
        self._start_retry_timer(session)

    def _start_retry_timer(self, session: Session) -> None:
        self._context.timers.start(
            Timer.SESSION_RETRY_CONNECT,  # MQQB-3.1.2.3-01
            session.number,
            self._retry_delay(session),
            lambda: self._retry(session),
        )

    def _retry(self, session: Session) -> None:
        """Session Retry Connect Timer Event: [MS-MQQB] 3.1.6.1."""
        if not any(transfer.table for transfer in session.transfers):  # MQQB-3.1.6.1-01
            self._sessions.release(session)
            return
        if not self._context.queue_manager.connection_active:
            self.retry_later(session)
            return
        if session.hop + 1 < len(session.hops):  # MQQB-3.1.6.1-03
            session.hop += 1
            self.try_hop(session, ping=False)  # MQQB-3.1.6.1-04
        else:
            self.establish(session, retry=True)  # MQQB-3.1.6.1-02

    def retry_now(self, session: Session) -> None:
        """Try to connect now if the Session Retry Connect Timer runs."""
        if self._context.timers.active(Timer.SESSION_RETRY_CONNECT, session.number):
            self._context.timers.stop(Timer.SESSION_RETRY_CONNECT, session.number)
            self._retry(session)

    # -- closing ----------------------------------------------------------------------------------------

    def close(self, session: Session) -> None:
        """Closing a Session: [MS-MQQB] 3.1.5.9."""
        context = self._context
        if session.state is SessionState.CLOSED and session.connection is None:
            return
        if not session.is_open and session.role is SessionRole.INITIATOR:
            self._count_failure(session, ConnectionStatus.CONNECTION_REFUSED)
        for transfer in session.transfers:
            if transfer.queue.state not in HELD:
                transfer.queue.state = OutgoingQueueState.DISCONNECTING  # MQQB-3.1.5.9-02, DMPR-3.1.1.3-07
            self._dispatch.remove_queue(transfer.queue)  # MQQB-3.1.7.1.6-02
        if session.connection is not None:
            # MQQB-3.1.1.7.3-03
            context.effects.append(Disconnect(session.connection))  # MQQB-3.1.5.9-01
            self._sessions.forget_connection(session)
        for timer in _SESSION_TIMERS:  # MQQB-3.1.5.9-03
            context.timers.stop(timer, session.number)
        for transfer in session.transfers:
            context.timers.stop(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
        session.step(SessionEvent.CLOSE)  # MQQB-3.1.5.9-03
        for outgoing in (*(message for _, message in session.in_flight), *session.unsaved):
            outgoing.session = None
        session.in_flight.clear()
        session.unsaved.clear()
        session.unacked_message_count = session.unacked_bytes = 0
        session.order_acks_due.clear()
        for transfer in session.transfers:
            if transfer.queue.state not in HELD:
                transfer.queue.state = OutgoingQueueState.DISCONNECTED  # MQQB-3.1.5.9-02, DMPR-3.1.1.3-07
            # MQQB-3.1.1.1.1.3-04: resent over the next connection
            lost = SessionMessageState.WAITING_FOR_SESSION_ACK
            transfer.send_again([message for message in transfer.table.values() if message.state is lost])
        initiator = session.role is SessionRole.INITIATOR
        own = [transfer for transfer in session.transfers if initiator and transfer.peer == session.peer]
        guests = [transfer for transfer in session.transfers if transfer not in own]
        session.transfers = own
        if initiator:
            self.retry_later(session)
        else:
            self._sessions.release(session)  # MQQB-3.1.1.1.1.2-12
        self._hand_over(guests)  # MQQB-3-01

    def _hand_over(self, guests: list[SessionTransfer]) -> None:
        """Find sessions for transfers that only shared this one: its next connection may lead elsewhere."""
        for transfer in guests:
            transfer.session = None
            if transfer.table and transfer.queue.state not in HELD:
                session = self._sessions.leading_to(transfer.peer)
                if session is None:
                    session = self._sessions.add(SessionRole.INITIATOR, transfer.peer)
                self.attach(session, transfer)
                if session.is_open:
                    self._handed_over.append(session)
                elif session.state is SessionState.CLOSED and not self._busy(session):
                    self.retry_later(session)
        self._send_handed_over()

    def _send_handed_over(self) -> None:
        """Send over the sessions that have taken over transfers.

        Sending may close a session, which hands over its transfers in turn. This is a loop, not a recursion,
        because a peer can have opened any number of sessions.
        """
        if self._sends:
            return
        self._sends = True
        try:
            while self._handed_over:
                self._send_waiting(self._handed_over.pop())
        finally:
            self._sends = False


def _is_local(transfer: SessionTransfer) -> bool:
    """Return whether a local application sends to the queue of a transfer."""
    return transfer.queue.asked_by == "" and transfer.queue.acknowledged_peer is None


_SESSION_TIMERS: Final = (
    Timer.SESSION_INITIALIZATION, Timer.SESSION_CLEANUP, Timer.SESSION_RETRY_CONNECT, Timer.SESSION_ACK_WAIT,
    Timer.SESSION_ACK_SEND, Timer.ORDER_ACK_SEND,
)  # fmt: skip
