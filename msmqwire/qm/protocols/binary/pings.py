"""Pings: [MS-MQQB] 3.1.5.2.2 and 3.1.7.6 to 3.1.7.9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.errors import MalformedPacket
from msmqwire.ping import PING, PING_PORT
from msmqwire.qm.model.effects import SendDatagram
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import PING as STATES
from msmqwire.qm.protocols.binary.states import PingState

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine

_COOKIES: Final = 1 << 32


class Pings:
    """Asks other queue managers whether they would accept a session, and answers them."""

    def __init__(self, engine: BinaryEngine) -> None:
        self._engine, self._context = engine, engine.context
        self.cookie = 0
        self._waiting: dict[int, Session] = {}

    def waits(self, session: Session) -> bool:
        """Whether a session waits for a response."""
        return session in self._waiting.values()

    def request(self, session: Session) -> None:
        """Send Ping Request: [MS-MQQB] 3.1.7.6."""
        self.cookie = cookie = (self.cookie + 1) % _COOKIES
        self._waiting[cookie] = session
        data = PING.build(
            {
                "Flags": {"RC": not self._context.settings.server_class},
                "Cookie": cookie,
                "QMGuid": self._context.queue_manager.identifier,
            }
        )
        self._context.effects.append(SendDatagram(session.remote_address, PING_PORT, data, request=True))
        self._context.timers.start(
            Timer.PING_RESPONSE, cookie, self._context.settings.ping_response_ms,
            lambda: self._processed(cookie, "Ping Response Timer"),
        )  # fmt: skip

    def received(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """A datagram: one to the ping port is a request, one to where ours was sent from a response."""
        try:
            packet = PING.parse(data)
        except MalformedPacket:
            return  # MQQB-3.1.7.7-01, MQQB-3.1.7.8-01
        if not request:
            if packet.Cookie == self.cookie:  # MQQB-3.1.7.8-02: also while an earlier request is waited for
                self._processed(packet.Cookie, f"Ping Response, RF {int(packet.Flags.RF)}")
        elif self._context.settings.answer_pings:
            answer = PING.build(
                {
                    "Flags": {"RC": packet.Flags.RC, "RF": self._engine.is_full()},
                    "Cookie": packet.Cookie,
                    "QMGuid": self._context.queue_manager.identifier,
                }
            )
            self._context.effects.append(SendDatagram(address, port, answer, request=False))

    def _processed(self, cookie: int, event: str) -> None:
        """Ping Response Processed, or its time is over: [MS-MQQB] 3.1.7.9 and 3.1.6.8."""
        session = self._waiting.pop(cookie, None)
        if session is None:
            return
        self._context.timers.stop(Timer.PING_RESPONSE, cookie)
        result = STATES[PingState.WAITING, event]
        self._engine.connecting.pinged(session, accepted=result is PingState.ACCEPTED)
