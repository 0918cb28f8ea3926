"""One incoming connection of DCE/RPC: bytes to and from its association, and the times that it has."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum, auto
from typing import Final, Protocol, cast

from msmqwire.qm.runtime.limits import Limits
from msmqwire.rpc.events import Bound, Closed, ServerEvent
from msmqwire.rpc.server_association import ServerAssociation
from msmqwire.service.endpoints import canonical
from msmqwire.service.keep_alive import keep_alive
from msmqwire.service.logs import log

_HIGH_WATER: Final = 1 << 18
"""Unread bytes beyond which no more calls are taken from a peer."""
QUIET_S: Final = 0.25
"""Seconds without a byte after which a client without calls is taken to have read its last answer."""


class RpcConnectionOwner(Protocol):
    """What a connection reports to."""

    @property
    def limits(self) -> Limits:
        """The limits on peers."""

    def accepted(self, connection: RpcConnection) -> ServerAssociation | None:
        """A connection has come in; return its association, or None to refuse it."""

    def happened(self, connection: RpcConnection, event: ServerEvent) -> None:
        """The client has done something."""

    def takes_calls(self, connection: RpcConnection) -> bool:
        """Return whether calls are taken now; if not, the connection is told by `go_on` when they are."""

    def holds(self, connection: RpcConnection, received: int) -> None:
        """A connection holds `connection.held` bytes, after `received` more."""

    def keeps(self, connection: RpcConnection) -> bool:
        """Return whether a connection without calls is to stay for what its client has here."""

    def ended(self, connection: RpcConnection) -> None:
        """The association of a connection has ended."""

    def lost(self, connection: RpcConnection) -> None:
        """A connection that was accepted is closed."""


class _Wait(Enum):
    """What a connection waits for."""

    BIND = auto()
    REST = auto()  # of a PDU or request
    CALL = auto()
    READING = auto()  # of its answers by the peer


class RpcConnection(asyncio.Protocol):
    """A TCP connection.

    Attributes:
        address, local_address: of the peer, and at which it has come; empty until it is established.
        number: its number among those of its owner, who sets it.
        association: what it says; None if it was refused.
        calls: the numbers that the service gives its calls that are to be answered, by their call_id.
        gone: done when it is closed.
    """

    def __init__(self, owner: RpcConnectionOwner) -> None:
        self._owner = owner
        self.address, self.local_address, self.number = "", "", 0
        self.association: ServerAssociation | None = None
        self.calls: dict[int, int] = {}
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wait: tuple[_Wait, int] | None = None
        self._bound = self._paused = self._ended = self._closing = False
        self._reads = True
        self._events = 0
        self._backlog: deque[ServerEvent] = deque()  # received, and not yet told to the owner
        self._written = self._taken = 0  # bytes, and those of them that the peer had read when it was watched
        self._unwanted = 0  # bytes received after the end
        self._has_reported = False
        self._last_used = 0.0  # when bytes came or went, on the clock of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        peer = transport.get_extra_info("peername")
        if peer is None:  # already reset
            transport.abort()
            return
        self.address = canonical(peer[0])
        self.local_address = canonical(transport.get_extra_info("sockname")[0])
        keep_alive(transport.get_extra_info("socket"))
        transport.set_write_buffer_limits(_HIGH_WATER)
        self.association = self._owner.accepted(self)
        if self.association is None:
            transport.abort()
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.gone.done():
            self.gone.set_result(None)
        if self.association is not None:
            self._end()
            self._owner.lost(self)

    def data_received(self, data: bytes) -> None:
        association = self.association
        self._last_used = asyncio.get_running_loop().time()
        if association is None or self._ended:
            self._unwanted += len(data)
            if self._unwanted > self._owner.limits.unwanted_bytes:
                self.abort()
            return
        for event in association.received(data):
            self._events += 1
            self._bound |= isinstance(event, Bound)
            self._backlog.append(event)
        self._take_backlog()
        if not self._ended:
            self.flush()
            self._owner.holds(self, len(data))

    def go_on(self) -> None:
        """Take the calls that have waited for the answers to others."""
        if not self._ended and not self._paused:
            self._take_backlog()
            self.flush()

    def _take_backlog(self) -> None:
        """Tell the owner what the client has done, as far as there is room for answers.

        A few bytes can hold hundreds of calls, each for a message of megabytes.
        """
        backlog = self._backlog
        while backlog and not self._paused and self._owner.takes_calls(self):
            event = backlog.popleft()
            if isinstance(event, Closed):
                log.info("a connection of RPC ends", extra={"peer": self.address, "reason": str(event.error)})
                self.close()
                return
            self._owner.happened(self, event)
        self._let_read()

    def _let_read(self) -> None:
        """Read from the peer, or do not: while it does not read its answers, and while calls wait here."""
        transport = self._transport
        reads = self._closing or not (self._paused or self._backlog)
        if transport is None or reads == self._reads or transport.is_closing():
            return
        self._reads = reads
        if reads:
            transport.resume_reading()
        else:
            transport.pause_reading()

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._closing or self._transport is None or self._transport.is_closing()

    @property
    def held(self) -> int:
        """The bytes of incomplete requests, and of answers that the peer has not read."""
        if self.association is None or self._transport is None:
            return 0
        incomplete = 0 if self._ended else self.association.incomplete or 0
        return incomplete + self._transport.get_write_buffer_size()

    def flush(self) -> None:
        """Pass what the association has to send to the transport."""
        association, transport = self.association, self._transport
        if association is None or transport is None or self.is_closing:
            return
        if data := association.data_to_send():
            self._written += len(data)
            self._last_used = asyncio.get_running_loop().time()
            transport.write(data)
            if transport.get_write_buffer_size() > self._owner.limits.unsent_bytes:
                log.warning(
                    "a peer does not read the answers to its calls: its connection is ended",
                    extra={"peer": self.address},
                )
                self.abort()
                return
        self._watch()

    def report(self, what: str, **details: object) -> None:
        """Log what is wrong with a call: the first of a connection at `info`, for a peer sends any number."""
        level = log.debug if self._has_reported else log.info
        self._has_reported = True
        level(what, extra={"peer": self.address, **details})

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End the connection once the peer has read what was sent, or after `Limits.close_s`.

        What it still sends is read and dropped: closing the socket at once would reset the connection, and
        the peer would lose what it has not read.
        """
        transport = self._transport
        if transport is None or self._closing:
            return
        self.flush()
        self._closing = True
        self._end()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._owner.limits.close_s, transport.abort)
        self._let_read()
        try:
            transport.write_eof()
        except OSError:  # the peer has reset it
            transport.abort()

    def stop(self) -> None:
        """Tell the client that the server stops, and end the connection: at once if it is idle."""
        transport, association = self._transport, self.association
        if transport is None or association is None:
            return
        quiet = asyncio.get_running_loop().time() - self._last_used
        is_idle = not association.outstanding and association.incomplete is None and not self._paused
        association.shutdown()
        self.close()
        if is_idle and quiet >= QUIET_S:
            # Nothing is lost by a reset, which a request on its way brings about.
            transport.close()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._backlog.clear()
            self._owner.ended(self)

    # -- flow control ---------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        if self._transport is None or self._closing:
            return
        self._paused = True
        self._taken = self._written - self._transport.get_write_buffer_size()
        self._let_read()
        self._watch()

    def resume_writing(self) -> None:
        if not self._paused or self._transport is None:
            return
        self._paused = False
        if not self._closing:
            self._take_backlog()
            self._owner.holds(self, 0)
            self.flush()

    # -- time -----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Give what is awaited now its time, unless that runs already."""
        wait = self._awaited()
        if wait == self._wait or self._closing:
            return
        self._wait = wait
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait is not None:
            limits = self._owner.limits
            seconds = limits.rpc_idle_s if wait[0] is _Wait.CALL else limits.rpc_read_s
            self._timer = asyncio.get_running_loop().call_later(seconds, self._too_late)

    def _awaited(self) -> tuple[_Wait, int] | None:
        """Return what is awaited from the peer, with a number that changes when it has done something."""
        association = self.association
        if association is None:
            return None
        if self._paused:
            return _Wait.READING, self._taken
        if not self._bound:
            return _Wait.BIND, 0
        if association.incomplete is not None:
            return _Wait.REST, self._events
        return None if association.outstanding else (_Wait.CALL, self._events)

    def _too_late(self) -> None:
        wait, self._wait, self._timer = self._wait, None, None
        if wait is None or self._transport is None:
            return
        taken, self._taken = self._taken, self._written - self._transport.get_write_buffer_size()
        if wait[0] is _Wait.READING and self._taken > taken:
            self._watch()
            return
        if wait[0] is _Wait.CALL and self._owner.keeps(self):
            self._watch()
            return
        level = log.debug if wait[0] is _Wait.CALL else log.info
        level(
            "a connection of RPC has waited too long",
            extra={"peer": self.address, "for": wait[0].name.lower()},
        )
        if wait[0] is _Wait.CALL:
            self.close()
        else:
            self.abort()
