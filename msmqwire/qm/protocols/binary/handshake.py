"""EstablishConnection and ConnectionParameters: [MS-MQQB] 3.1.5.3 and 3.1.5.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.constants import HResult
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import Send
from msmqwire.qm.model.enumerations import ConnectionStatus
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.session_table import SessionTable
from msmqwire.qm.protocols.binary.session_timers import SessionTimers
from msmqwire.qm.protocols.binary.states import SessionEvent, SessionRole, SessionState
from msmqwire.qm.protocols.binary.transfer_table import TransferTable
from msmqwire.schema import Record

_ESTABLISH_CONNECTION_SIZE: Final = len(ESTABLISH_CONNECTION.build({}))
_CONNECTION_PARAMETERS_SIZE: Final = len(CONNECTION_PARAMETERS.build({}))
HANDSHAKE_SIZES: Final = {
    SessionState.WAITING_EC_MSG: _ESTABLISH_CONNECTION_SIZE,
    SessionState.WAITING_ECR_MSG: _ESTABLISH_CONNECTION_SIZE,
    SessionState.WAITING_CP_MSG: _CONNECTION_PARAMETERS_SIZE,
    SessionState.WAITING_CPR_MSG: _CONNECTION_PARAMETERS_SIZE,
}
"""The size in bytes of the only packet that may arrive in each state, [MS-MQQB] 2.2.2 and 2.2.3.

Any other packet ends the session, which limits the bytes held for an unidentified peer.
"""
RECOVERABLE_ACK_TIMEOUT: Final = (500, 120_000)
ACK_TIMEOUT: Final = (20_000, 120_000)
_TIME_STAMPS: Final = 1 << 32
_ROUND_TRIPS: Final = 8  # MQQB-3.1.5.3.2-05, MQQB-4.1.5-02


class SessionHandshake:
    """Opens sessions, on both sides.

    Args:
        context: the state of the queue manager. sessions, transfers, timers: parts of the engine.
        close: closes a session whose handshake fails.
        opened: called with a session that is open.
    """

    def __init__(
        self,
        context: Context,
        sessions: SessionTable,
        transfers: TransferTable,
        timers: SessionTimers,
        close: Callable[[Session], None],
        opened: Callable[[Session], None],
    ) -> None:
        self._context, self._sessions, self._transfers = context, sessions, transfers
        self._timers, self._close, self._opened = timers, close, opened

    def _send(self, session: Session, data: bytes) -> None:
        assert session.connection is not None, "packets go over a connection"
        self._context.effects.append(Send(session.connection, data))

    def _start_initialization_timer(self, session: Session) -> None:
        settings = self._context.settings
        delay = settings.session_initialization_ms + 2 * settings.round_trip_delay_ms  # MQQB-3.1.2.1-04
        self._context.timers.start(
            # MQQB-3.1.6.6-01, MQQB-3.1.1.1.1.1-02 and -05, MQQB-3.1.1.1.1.2-04
            Timer.SESSION_INITIALIZATION,
            session.number,  # MQQB-3.1.2.1-03
            delay,
            lambda: self._close(session),
        )

    def initialize(self, session: Session) -> None:
        """Initialise a session: [MS-MQQB] 3.1.3.2."""
        context, settings = self._context, self._context.settings
        wait = min(
            # MQQB-3.1.3.2-10
            max(settings.ack_wait_timeout_ms + settings.round_trip_delay_ms, ACK_TIMEOUT[0]),
            ACK_TIMEOUT[1],
        )
        # MQQB-3.1.3.2-08 and -14
        session.initialize(settings.window_size, wait, context.utc, settings.packet_size_max)
        for timer in (Timer.SESSION_ACK_WAIT, Timer.SESSION_ACK_SEND, Timer.ORDER_ACK_SEND):
            context.timers.stop(timer, session.number)  # MQQB-3.1.3.2-02
        for transfer in session.transfers:
            self._transfers.begin_session(transfer)
        self._timers.start_cleanup(session)  # MQQB-3.1.3.2-03

    def accepted(self, session: Session) -> None:
        """Begin the session of an accepted connection: [MS-MQQB] 3.1.5.10."""
        self.initialize(session)
        session.step(SessionEvent.ACCEPT)  # MQQB-3.1.5.10-01, MQQB-3.1.5.10-02, MQQB-3.1.3.2-19
        self._start_initialization_timer(session)  # MQQB-3.1.2.1-02

    def request(self, session: Session) -> None:
        """Request a session over a new transport connection: [MS-MQQB] 3.1.5.2.3."""
        self.initialize(session)
        session.step(SessionEvent.START)  # MQQB-3.1.5.2.3-07
        settings = self._context.settings
        flags = {
            "SE": not session.pinged,  # MQQB-2.2.3.1-10, MQQB-3.1.5.2.3-06
            "OS": settings.server_class,  # MQQB-2.2.3.1-12, MQQB-3.1.5.2.3-06
        }
        # MQQB-3.1.5.2.3-02
        self._send(
            session,
            ESTABLISH_CONNECTION.build(
                {
                    "EstablishConnectionHeader": {
                        # MQQB-2.2.3.1-01
                        "ClientGuid": self._context.queue_manager.identifier,  # MQQB-3.1.5.2.3-03
                        # MQQB-2.2.3.1-04
                        "ServerGuid": session.remote_guid,  # MQQB-3.1.5.2.1-07, MQQB-3.1.5.2.3-05
                        "TimeStamp": self._context.now % _TIME_STAMPS,  # MQQB-3.1.5.2.3-04, MQQB-2.2.3.1-06
                        "OperatingSystem": flags,
                    }
                }
            ),
        )
        for transfer in session.transfers:
            # MQQB-3.1.5.2.3-07, DMPR-3.1.1.3-14
            self._transfers.record(transfer, ConnectionStatus.IN_PROCESS, 0, session.remote_address)
        self._start_initialization_timer(session)  # MQQB-3.1.5.2.3-01, MQQB-3.1.5.2.3-08

    def establish_connection(self, session: Session, packet: Record) -> None:
        """Receiving an EstablishConnection packet: [MS-MQQB] 3.1.5.3."""
        if session.state is SessionState.WAITING_EC_MSG:  # MQQB-3.1.5.3-02, MQQB-2.2.3-03
            self._respond(session, packet)
        elif session.state is SessionState.WAITING_ECR_MSG:
            self._established(session, packet)
        else:
            self._close(session)

    def _respond(self, session: Session, packet: Record) -> None:
        """Answer a request: [MS-MQQB] 3.1.5.3.1."""
        header = packet.EstablishConnectionHeader
        own = self._context.queue_manager.identifier
        full = header.OperatingSystem.SE and self._sessions.is_full()  # MQQB-3.1.5.3.1-02, MQQB-2.2.3.1-13
        session.remote_guid = header.ClientGuid  # MQQB-3.1.5.3.1-01
        # MQQB-2.2.1-08
        refused = full or header.ServerGuid not in (own, NULL_GUID)  # MQQB-3.1.5.3.1-08, MQQB-3.1.5.3.1-09
        # MQQB-3.1.5.3.1-03
        self._send(
            session,
            ESTABLISH_CONNECTION.build(
                {
                    "InternalHeader": {"Flags": {"CS": refused}},  # MQQB-3.1.5.3.1-08
                    "EstablishConnectionHeader": {
                        "ClientGuid": header.ClientGuid,  # MQQB-3.1.5.3.1-04, MQQB-2.2.3.1-02
                        "ServerGuid": own,  # MQQB-3.1.5.3.1-05, MQQB-2.2.3.1-03, MQQB-2.2.3.1-05
                        "TimeStamp": header.TimeStamp,  # MQQB-3.1.5.3.1-06, MQQB-2.2.3.1-07
                        "OperatingSystem": {
                            "SE": header.OperatingSystem.SE,  # MQQB-3.1.5.3.1-07, MQQB-2.2.3.1-11
                            "OS": self._context.settings.server_class,
                        },
                    },
                }
            ),
        )
        # MQQB-3.1.1.1.1.2-02, MQQB-2.2.1-10
        if full:  # reported by CS, MQQB-2.2.1-09, before the connection ends
            self._close(session)
            return
        session.step(SessionEvent.ESTABLISH_CONNECTION)  # MQQB-3.1.5.3.1-10

    def _established(self, session: Session, packet: Record) -> None:
        """Take the response to our request: [MS-MQQB] 3.1.5.3.2."""
        header = packet.EstablishConnectionHeader
        expected = session.remote_guid
        valid = (
            header.ClientGuid == self._context.queue_manager.identifier  # MQQB-3.1.5.3.2-01
            and expected in (header.ServerGuid, NULL_GUID)  # MQQB-3.1.5.3.2-01
            and not packet.InternalHeader.Flags.CS  # MQQB-3.1.5.3.2-03
        )
        if not valid:  # MQQB-3.1.5.3.2-04
            for transfer in session.transfers:
                self._transfers.record(
                    transfer, ConnectionStatus.CONNECTION_REFUSED,
                    HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE, session.remote_address,
                )  # fmt: skip
            self._close(session)  # MQQB-3.1.1.1.1.1-03
            return
        session.remote_guid = header.ServerGuid  # MQQB-3.1.1.3.1-02, MQQB-3.1.5.3.2-02
        round_trip = (self._context.now - header.TimeStamp) % _TIME_STAMPS
        # MQQB-3.1.5.3.2-05
        # MQQB-3.1.1.3.1-25
        session.recoverable_ack_send_timeout = _within(_ROUND_TRIPS * round_trip, RECOVERABLE_ACK_TIMEOUT)
        session.step(SessionEvent.ESTABLISH_CONNECTION)
        self._parameters(session)  # MQQB-3.1.1.7.1-01
        for transfer in session.transfers:
            self._transfers.record(
                # MQQB-3.1.5.3.2-07, DMPR-3.1.1.3-14
                transfer,
                ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
                0,
                session.remote_address,
            )

    def _parameters(self, session: Session) -> None:
        self._send(
            session,
            CONNECTION_PARAMETERS.build(
                {
                    "ConnectionParametersHeader": {
                        # MQQB-3.1.5.3.2-06, MQQB-3.1.5.4.1-02
                        "RecoverableAckTimeout": session.recoverable_ack_send_timeout,
                        "AckTimeout": session.ack_wait_timeout,
                        "WindowSize": session.window_size,
                    }
                }
            ),
        )

    def connection_parameters(self, session: Session, packet: Record) -> None:
        """Receiving a ConnectionParameters packet: [MS-MQQB] 3.1.5.4."""
        header = packet.ConnectionParametersHeader
        refused = bool(packet.InternalHeader.Flags.CS)
        valid = (
            _within(header.AckTimeout, ACK_TIMEOUT) == header.AckTimeout  # MQQB-2.2.2.1-04
            # MQQB-2.2.2.1-02
            and _within(header.RecoverableAckTimeout, RECOVERABLE_ACK_TIMEOUT) == header.RecoverableAckTimeout
        )
        if refused:  # MQQB-3.1.5.4-03
            self._close(session)
            return
        if not valid or not session.step(SessionEvent.CONNECTION_PARAMETERS):  # MQQB-3.1.5.4-01
            self._close(session)
            return
        # MQQB-3.1.1.3.1-20
        session.received_window_size = header.WindowSize  # MQQB-3.1.5.4.1-01, MQQB-3.1.5.4.2-01
        if session.role is SessionRole.ACCEPTOR:  # MQQB-3.1.5.4-02
            session.ack_wait_timeout = header.AckTimeout  # MQQB-3.1.5.4.1-01
            session.recoverable_ack_send_timeout = header.RecoverableAckTimeout  # MQQB-3.1.5.4.1-01
            self._parameters(session)  # MQQB-3.1.1.7.1-01
        self._context.timers.stop(Timer.SESSION_INITIALIZATION, session.number)  # MQQB-3.1.2.1-01 and -02
        self._opened(session)


def _within(value: int, limits: tuple[int, int]) -> int:
    return min(max(value, limits[0]), limits[1])
