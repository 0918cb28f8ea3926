"""The timers of an open session, and the acknowledgements they send: [MS-MQQB] 3.1.2.2, -4 and -5."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import Send
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.session_packets import session_ack


class SessionTimers:
    """Starts the timers, and acts when they expire.

    Args:
        context: the state of the queue manager.
        close: closes a session that has been silent for too long.
    """

    def __init__(self, context: Context, close: Callable[[Session], None]) -> None:
        self._context, self._close = context, close

    def start_cleanup(self, session: Session) -> None:
        """Session Cleanup Timer: [MS-MQQB] 3.1.2.2 and 3.1.6.2."""

        def expired() -> None:
            if session.session_active:  # MQQB-3.1.6.2-01, MQQB-3.1.6.2-02, MQQB-3.1.1.3.1-22, MQQB-3.1.2.2-01
                session.session_active = False
                self.start_cleanup(session)
            else:
                self._close(session)  # MQQB-3.1.1.1.1.1-11, MQQB-3.1.1.1.1.2-10, MQQB-3.1.1.7.2-01

        delay = self._context.settings.session_cleanup_ms
        self._context.timers.start(Timer.SESSION_CLEANUP, session.number, delay, expired)  # MQQB-3.1.2.2-02

    def start_ack_wait(self, session: Session) -> None:
        """Session Ack Wait Timer: [MS-MQQB] 3.1.2.4 and 3.1.6.3."""

        def expired() -> None:
            received = session.received_ack
            session.received_ack = False  # MQQB-3.1.6.3-01, MQQB-3.1.6.3-03
            if not session.awaits_acks:  # MQQB-3.1.1.1.1.1-12, MQQB-3.1.1.1.1.2-11
                return
            if received:  # MQQB-3.1.6.3-03, MQQB-3.1.2.4-01, MQQB-3.1.1.3.1-23
                self.start_ack_wait(session)
            else:
                self._close(session)  # MQQB-3.1.6.3-02

        direct = any(transfer.direct for transfer in session.transfers)
        factor = self._context.settings.direct_ack_wait_factor if direct else 1  # MQQB-3.1.2.4-03
        delay = factor * session.ack_wait_timeout  # MQQB-3.1.1.3.1-24
        self._context.timers.start(Timer.SESSION_ACK_WAIT, session.number, delay, expired)

    def start_ack_send(self, session: Session, delay: int | None = None) -> None:
        """Session Ack Send Timer: [MS-MQQB] 3.1.2.5 and 3.1.6.4."""

        def expired() -> None:
            if session.unacked_received_count:  # MQQB-3.1.6.4-01, MQQB-3.1.2.5-03
                self.send_session_ack(session)  # MQQB-3.1.1.7.2-01
            self.start_ack_send(session)

        if delay is None:
            delay = session.ack_wait_timeout // 2  # MQQB-3.1.6.4-10
        self._context.timers.start(Timer.SESSION_ACK_SEND, session.number, delay, expired)

    def send_session_ack(self, session: Session, window_size: int | None = None) -> None:
        """Send a SessionAck packet: [MS-MQQB] 3.1.6.4."""
        if session.is_open and session.connection is not None:
            data = session_ack(session.header(window_size))
            self._context.effects.append(Send(session.connection, data))

    def acknowledge_at_window(self, session: Session) -> None:
        """Acknowledge at once when much of the window is used: MQQB-3.1.1.6.1-07."""
        limit = max(1, int(session.window * self._context.settings.acknowledge_at_window))
        if session.unacked_received_count >= limit:
            self.send_session_ack(session)
            self.start_ack_send(session)
