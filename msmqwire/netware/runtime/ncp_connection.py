"""One TCP connection of NCP: bytes to and from its session, and the time limits of its client."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Protocol

from msmqwire.errors import MalformedPacket
from msmqwire.names.origins import origin_of
from msmqwire.ncp.framing import NcpFramer, NcpUnit, build_unit
from msmqwire.ncp.headers import NCP_TCP_REPLY, NCP_TCP_REQUEST
from msmqwire.netware.protocol.session import Answer, GiveUp, Later, NcpSession, Perform
from msmqwire.netware.runtime.limits import NcpLimits
from msmqwire.netware.runtime.turns import PeerTurns
from msmqwire.service.logs import log
from msmqwire.service.watched_connection import Wait, WatchedConnection

_HIGH_WATER: Final = 1 << 17
"""Unread bytes beyond which no more requests of a client are accepted."""
_UNITS_AT_ONCE: Final = 32
"""Requests that are answered in a row before other connections have their turn."""


class NcpConnectionOwner(Protocol):
    """The owner of connections, to which they report."""

    @property
    def limits(self) -> NcpLimits:
        """The limits on clients."""

    def accepted(self, connection: NcpServerConnection) -> NcpSession | None:
        """A connection has come in; return its session, or None to refuse it."""

    @property
    def turns(self) -> PeerTurns:
        """The turns in which requests of a peer are taken and performed."""

    async def perform(self, connection: NcpServerConnection, task: Perform | GiveUp) -> bytes:
        """Perform the request of a connection's session; return the reply."""

    def holds(self, connection: NcpServerConnection, received: int) -> None:
        """A connection holds `connection.held` bytes, after `received` more."""

    def lost(self, connection: NcpServerConnection) -> None:
        """A connection that was accepted is closed."""


def report(task: asyncio.Task[None]) -> None:
    """Report an unforeseen exception of a task to the loop, as the task is not awaited."""
    exc = None if task.cancelled() else task.exception()
    if exc is not None:
        context = {"message": "a request of NCP can't be performed", "exception": exc, "task": task}
        task.get_loop().call_exception_handler(context)


class NcpServerConnection(WatchedConnection):
    """A TCP connection of a client.

    Attributes:
        peer: the address or network that takes turns with other peers.
        session: its NCP session; None if it was refused.
        working: the task of the request being performed; done when there is none.
    """

    def __init__(self, owner: NcpConnectionOwner) -> None:
        super().__init__("NCP")
        self._owner = owner
        self.peer = ""
        self.session: NcpSession | None = None
        self.working: asyncio.Task[None] | None = None
        self._framer = NcpFramer(NCP_TCP_REQUEST)
        self._waiting: NcpUnit | None = None  # for the request before it to be performed
        self._turn: asyncio.Future[None] | None = None  # in which more requests are taken
        self._closing = False  # this side sends no more
        self._has_eof = False  # the client sends no more
        self._units = 0  # taken

    def _begin(self, transport: asyncio.Transport) -> bool:
        self.peer = origin_of(self.address)
        transport.set_write_buffer_limits(_HIGH_WATER)
        self.session = self._owner.accepted(self)
        self._watch()
        return self.session is not None

    def _lost(self, reason: Exception | None) -> None:
        self._is_ending = self._closing = True
        if self._turn is not None:
            self._turn.cancel()
        if self.session is not None:
            self._owner.lost(self)

    def data_received(self, data: bytes) -> None:
        self._used()
        if self.session is None or self._is_ending:
            self._drop(data, self._owner.limits.unwanted_bytes)
            return
        self._framer.add(data)
        if self._turn is None:
            self._take()
        if not self._is_ending:
            self._owner.holds(self, len(data))

    def eof_received(self) -> bool:
        """Answer the requests that have come, and end; the client may still read."""
        self._has_eof = True
        if self.session is not None and self._turn is None:
            self._take()
        return self.session is not None and not self._closing

    @property
    def held(self) -> int:
        """The bytes of incomplete and waiting requests, and of replies that the client has not read."""
        waiting = 0 if self._waiting is None else len(self._waiting.packet)
        unread = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._framer.held + waiting + unread

    def _take(self) -> None:
        """Take requests, now or when it is the turn of the peer."""
        if self._owner.turns.may_go(self.peer):
            self._take_some()
        else:
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        self._turn = turn = self._owner.turns.turn(self.peer)
        turn.add_done_callback(self._has_turn)
        self._let_read()
        self._watch()

    def _has_turn(self, turn: asyncio.Future[None]) -> None:
        self._turn = None
        if not turn.cancelled():
            self._take_some()

    def _take_some(self) -> None:
        """Take requests, while there is room for replies and none has to wait."""
        start = time.monotonic()
        for _ in range(_UNITS_AT_ONCE):
            if self._paused or self._is_ending or not self._take_one():
                self._let_read()
                self._watch()
                break
        else:
            self._wait_for_turn()
        self._owner.turns.spent(self.peer, time.monotonic() - start)

    def _take_one(self) -> bool:
        """Take the next request; return False if there is none, or it has to wait."""
        session = self.session
        assert session is not None
        unit, self._waiting = self._waiting, None
        if unit is None:
            try:
                unit = self._framer.next_unit()
            except MalformedPacket as exc:
                log.info("a connection of NCP ends", extra={"peer": self.address, "reason": str(exc)})
                self.close()
                return False
            if unit is None:
                if self._has_eof and self.working is None:
                    self.close()
                return False
            self._units += 1
        outcome = session.received(unit.packet, unit.preamble.ReplyBufferSize)
        match outcome:
            case Later():
                self._waiting = unit
                return False
            case Answer(packet):
                self._send(packet)
            case Perform() | GiveUp():
                self.working = asyncio.get_running_loop().create_task(self._perform(outcome))
                self.working.add_done_callback(report)
        return True

    async def _perform(self, task: Perform | GiveUp) -> None:
        turns = self._owner.turns
        if not turns.may_go(self.peer):
            await turns.turn(self.peer)
        try:
            packet = await self._owner.perform(self, task)
        except BaseException:
            self.abort()
            raise
        self._send(packet)
        self.working = None
        if self._is_ending:
            self._finish()
            return
        if self._turn is None:
            self._take()
        if not self._is_ending:
            self._owner.holds(self, 0)

    def _send(self, packet: bytes) -> None:
        if self._transport is None or self._closing or self._transport.is_closing():
            return
        self._write(self._transport, build_unit(NCP_TCP_REPLY, packet))

    def _let_read(self) -> None:
        """Read from the client, or pause while it does not read its replies, and while requests wait."""
        self._set_reading(self._is_ending or not (self._paused or self._waiting or self._turn))

    # -- the end --------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the connection, at once if it is idle; a reply still to come says that the server goes down."""
        if self.session is None or self._transport is None:
            return
        self.session.is_going_down = True
        is_idle = self.working is None and not self.held and self._is_quiet
        self.close()
        if is_idle:
            # A reset, which a request under way causes, loses nothing.
            self._transport.close()

    def close(self) -> None:
        """End the connection once its request is answered and the client has read the reply.

        After `NcpLimits.close_s` it ends anyway.
        """
        if self._transport is None or self._is_ending:
            return
        self._is_ending = True
        self._after(self._owner.limits.close_s, self.abort)
        self._let_read()
        if self.working is None:
            self._finish()

    def _finish(self) -> None:
        """End sending."""
        if self._transport is None or self._closing:
            return
        self._closing = True
        if self._has_eof:
            self._transport.close()
            return
        self._send_end(self._transport)

    def resume_writing(self) -> None:
        self._paused = False
        if not self._is_ending and self._turn is None:
            self._take()
            self._owner.holds(self, 0)

    def _awaited(self) -> tuple[Wait, int] | None:
        if self.session is None:
            return None
        if self._paused:
            return Wait.READ, self._taken
        if self.working is not None or self._turn is not None:
            return None
        if self.session.caller is None:
            return Wait.BEGIN, 0
        return Wait.REST if self._framer.held else Wait.REQUEST, self._units

    def _seconds_for(self, wait: Wait) -> float:
        limits = self._owner.limits
        return limits.idle_s if wait is Wait.REQUEST else limits.partial_s

    def _is_over(self, wait: Wait) -> None:
        self._report_too_late(wait)
        if wait in (Wait.BEGIN, Wait.REQUEST):
            self.close()
        else:
            self.abort()
