"""One incoming connection of DCE/RPC: bytes to and from its association, and its time limits."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from msmqwire.qm.runtime.limits import Limits
from msmqwire.rpc.events import Bound, Closed, ServerEvent
from msmqwire.rpc.server_association import ServerAssociation
from msmqwire.service.logs import log
from msmqwire.service.watched_connection import Wait, WatchedConnection

_HIGH_WATER: Final = 1 << 18
"""Unread bytes beyond which no more calls of a peer are accepted."""


class RpcConnectionOwner(Protocol):
    """The owner of connections, to which they report."""

    @property
    def limits(self) -> Limits:
        """The limits on peers."""

    def accepted(self, connection: RpcConnection) -> ServerAssociation | None:
        """A connection has come in; return its association, or None to refuse it."""

    def happened(self, connection: RpcConnection, event: ServerEvent) -> None:
        """The client has done something."""

    def takes_calls(self, connection: RpcConnection) -> bool:
        """Return whether calls are accepted now; if not, `go_on` notifies the connection once they are."""

    def holds(self, connection: RpcConnection, received: int) -> None:
        """A connection holds `connection.held` bytes, after `received` more."""

    def keeps(self, connection: RpcConnection) -> bool:
        """Return whether a connection without calls is to stay for the open queues of its client."""

    def ended(self, connection: RpcConnection) -> None:
        """The association of a connection has ended."""

    def lost(self, connection: RpcConnection) -> None:
        """A connection that was accepted is closed."""


class RpcConnection(WatchedConnection):
    """A TCP connection of a client.

    Attributes:
        association: its state; None if it was refused.
        calls: the service's numbers of its unanswered calls, by call_id.
    """

    def __init__(self, owner: RpcConnectionOwner) -> None:
        super().__init__("RPC")
        self._owner = owner
        self.association: ServerAssociation | None = None
        self.calls: dict[int, int] = {}
        self._bound = self._ended = False
        self._events = 0
        self._backlog: deque[ServerEvent] = deque()  # received, and not yet reported to the owner
        self._has_reported = False

    def _begin(self, transport: asyncio.Transport) -> bool:
        transport.set_write_buffer_limits(_HIGH_WATER)
        self.association = self._owner.accepted(self)
        self._watch()
        return self.association is not None

    def _lost(self, reason: Exception | None) -> None:
        if self.association is not None:
            self._end()
            self._owner.lost(self)

    def data_received(self, data: bytes) -> None:
        association = self.association
        self._used()
        if association is None or self._ended:
            self._drop(data, self._owner.limits.unwanted_bytes)
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
        """Take the calls that have waited for the answers to earlier ones."""
        if not self._ended and not self._paused:
            self._take_backlog()
            self.flush()

    def _take_backlog(self) -> None:
        """Report the client's calls to the owner, as far as there is room for answers.

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
        """Read from the peer, or pause while it does not read its answers, and while calls wait here."""
        self._set_reading(self._is_ending or not (self._paused or self._backlog))

    @property
    def is_closing(self) -> bool:
        """Whether sending has ended."""
        return self._is_ending or self._transport is None or self._transport.is_closing()

    @property
    def held(self) -> int:
        """The bytes of incomplete requests, and of answers that the peer has not read."""
        if self.association is None or self._transport is None:
            return 0
        incomplete = 0 if self._ended else self.association.incomplete or 0
        return incomplete + self._transport.get_write_buffer_size()

    def flush(self) -> None:
        """Pass the bytes that the association has to send to the transport."""
        association, transport = self.association, self._transport
        if association is None or transport is None or self.is_closing:
            return
        if data := association.data_to_send():
            self._write(transport, data)
            if transport.get_write_buffer_size() > self._owner.limits.unsent_bytes:
                log.warning(
                    "a peer does not read the answers to its calls: its connection is ended",
                    extra={"peer": self.address},
                )
                self.abort()
                return
        self._watch()

    def report(self, what: str, **details: object) -> None:
        """Log the fault of a call: the first of a connection at `info`, since a peer can cause any number."""
        level = log.debug if self._has_reported else log.info
        self._has_reported = True
        level(what, extra={"peer": self.address, **details})

    def close(self) -> None:
        """End the connection once the peer has read all sent data, or after `Limits.close_s`."""
        transport = self._transport
        if transport is None or self._is_ending:
            return
        self.flush()
        self._is_ending = True
        self._end()
        self._after(self._owner.limits.close_s, self.abort)
        self._let_read()
        self._send_end(transport)

    def stop(self) -> None:
        """Notify the client that the server stops, and end the connection: at once if it is idle."""
        transport, association = self._transport, self.association
        if transport is None or association is None:
            return
        waits = bool(association.outstanding) or association.incomplete is not None or self._paused
        is_idle = not waits and self._is_quiet
        association.shutdown()
        self.close()
        if is_idle:
            # A reset, which a request under way causes, loses nothing.
            transport.close()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._backlog.clear()
            self._owner.ended(self)

    def resume_writing(self) -> None:
        if not self._paused or self._transport is None:
            return
        self._paused = False
        if not self._is_ending:
            self._take_backlog()
            self._owner.holds(self, 0)
            self.flush()

    def _awaited(self) -> tuple[Wait, int] | None:
        association = self.association
        if association is None:
            return None
        if self._paused:
            return Wait.READ, self._taken
        if not self._bound:
            return Wait.BEGIN, 0
        if association.incomplete is not None:
            return Wait.REST, self._events
        return None if association.outstanding else (Wait.REQUEST, self._events)

    def _seconds_for(self, wait: Wait) -> float:
        limits = self._owner.limits
        return limits.rpc_idle_s if wait is Wait.REQUEST else limits.rpc_read_s

    def _is_over(self, wait: Wait) -> None:
        if wait is not Wait.REQUEST:
            self._report_too_late(wait)
            self.abort()
        elif self._owner.keeps(self):
            self._watch()
        else:
            self._report_too_late(wait)
            self.close()
