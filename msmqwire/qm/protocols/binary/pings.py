"""Pings: [MS-MQQB] 3.1.5.2.2 and 3.1.7.6 to 3.1.7.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.ping import PING, PING_PORT
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import SendDatagram
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import PING as STATES
from msmqwire.qm.protocols.binary.states import PingState

_COOKIES: Final = 1 << 32
Answered = Callable[[Session, bool], None]
"""A function called with the session that pinged, and whether the peer would accept it."""


class Pings:
    """Asks other queue managers whether they would accept a session, and answers their requests.

    Args:
        context: the state of the queue manager. is_full: whether a further session would be refused here.
    """

    def __init__(self, context: Context, is_full: Callable[[], bool]) -> None:
        self._context, self._is_full = context, is_full
        self.cookie = 0  # MQQB-3.1.3.2-18, MQQB-3.1.1.3-18
        self._waiting: dict[int, tuple[Session, Answered]] = {}

    def waits(self, session: Session) -> bool:
        """Return whether a session waits for a response."""
        return any(waiting is session for waiting, _ in self._waiting.values())

    def request(self, session: Session, answered: Answered) -> None:
        """Send Ping Request: [MS-MQQB] 3.1.7.6."""
        self.cookie = cookie = (self.cookie + 1) % _COOKIES  # MQQB-3.1.7.6-01, MQQB-3.1.1.3-18
        self._waiting[cookie] = session, answered  # MQQB-3.1.1.1.1.9-01
        data = PING.build(
            {
                "Flags": {"RC": not self._context.settings.server_class},  # MQQB-2.2.7-03 and -05
                "Cookie": cookie,
                "QMGuid": self._context.queue_manager.identifier,  # MQQB-2.2.7-13
            }
        )
        self._context.effects.append(SendDatagram(session.remote_address, PING_PORT, data, request=True))
        # MQQB-3.1.1.1.1.9-01
        self._context.timers.start(
            # MQQB-3.1.2.9-01 and -02
            Timer.PING_RESPONSE, cookie, self._context.settings.ping_response_ms,  # MQQB-3.1.7.6-02
            lambda: self._processed(cookie, "Ping Response Timer"),  # MQQB-3.1.6.8-01, MQQB-3.1.7.6-03
        )  # fmt: skip

    def received(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """Handle a datagram: a request if it came to the ping port, a response if to our sending port.

        A response that came to the ping port would be answered by the peer, and so on without end. In
        requests RF is clear, and QMGuid is that of the requester.
        """
        try:
            packet = PING.parse(data)
        except MalformedPacket:
            return  # MQQB-3.1.7.7-01, MQQB-3.1.7.8-01
        if not request:  # MQQB-2.1.2-05
            if (
                packet.Cookie == self.cookie  # MQQB-2.2.7-12
            ):  # MQQB-3.1.7.8-02: also while an earlier request waits for its response
                self._processed(packet.Cookie, f"Ping Response, RF {int(packet.Flags.RF)}")
        # MQQB-2.2.7-05, MQQB-2.2.7-13
        elif packet.Flags.RF or packet.QMGuid == self._context.queue_manager.identifier:
            return
        elif self._context.settings.answer_pings:  # MQQB-2.1.2-06
            answer = PING.build(
                {
                    "Flags": {
                        "RC": packet.Flags.RC,  # MQQB-2.2.7-04, MQQB-3.1.7.7-02
                        "RF": self._is_full(),  # MQQB-2.2.7-06, MQQB-3.1.7.7-03
                    },
                    "Cookie": packet.Cookie,  # MQQB-2.2.7-11
                    "QMGuid": self._context.queue_manager.identifier,  # MQQB-2.2.7-13, MQQB-3.1.7.7-02
                }
            )
            # MQQB-2.1.2-02 and -07
            self._context.effects.append(SendDatagram(address, port, answer, request=False))

    def _processed(self, cookie: int, event: str) -> None:
        """Ping Response Processed, or the timer has expired: [MS-MQQB] 3.1.7.9 and 3.1.6.8."""
        waiting = self._waiting.pop(cookie, None)
        if waiting is None:  # MQQB-3.1.7.8-03
            return
        self._context.timers.stop(Timer.PING_RESPONSE, cookie)
        session, answered = waiting
        # MQQB-3.1.7.6-04, MQQB-3.1.7.9-01
        answered(session, STATES[PingState.WAITING, event] is PingState.ACCEPTED)
