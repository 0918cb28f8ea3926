"""Connections that are passed on to aiohttp, which would limit neither their time nor their bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from msmqwire.service.connection import PeerConnection
from msmqwire.service.logs import log

if TYPE_CHECKING:
    from aiohttp import web


_LONG_S: Final = 60.0
_HEAD_END: Final = b"\r\n\r\n"


class ConnectionPlaces(Protocol):
    """The owner of the connections."""

    def admit(self, connection: LimitedConnection) -> None:
        """Note a new connection."""

    def receives(self, connection: LimitedConnection, size: int) -> bool:
        """Return whether a connection with a limited number of bytes may send some now."""

    def logged_in(self, connection: LimitedConnection, login: str) -> None:
        """Note a request with a login."""

    def forget(self, connection: LimitedConnection) -> None:
        """Note that a connection has ended."""


class LimitedConnection(PeerConnection):
    """Passes a connection on to a handler of aiohttp, for a limited time and number of bytes.

    A login lifts the limit on bytes. Further bytes of a request whose head is complete wait for it: the
    beginning of a long body comes together with the head that proves the login.
    """

    def __init__(
        self,
        places: ConnectionPlaces,
        make_handler: Callable[[LimitedConnection], web.RequestHandler | None],
        seconds: float,
        bytes_max: int,
    ) -> None:
        """Limit a connection.

        Args:
            places: counts it.
            make_handler: makes the handler of aiohttp; None closes the connection at once.
            seconds: its longest time.
            bytes_max: limit of the bytes that it may send.
        """
        super().__init__()
        self._places, self._make_handler = places, make_handler
        self._handler: web.RequestHandler | None = None
        self._seconds = seconds
        self._ends_at = 0.0
        self._bytes_left: int | None = bytes_max
        self._end_of_head = b""  # the last bytes passed on
        self._has_head = False
        self._waiting = b""  # bytes beyond the limit

    def _begin(self, transport: asyncio.Transport) -> bool:
        self._handler = handler = self._make_handler(self)
        if handler is None:
            return False
        self._places.admit(self)
        self.last(self._seconds)
        handler.connection_made(transport)
        return True

    def last(self, seconds: float) -> None:
        """End the connection after a number of seconds from now, or a second less if they are many.

        A connection with a login says so at each request: it would have a new timer each time.
        """
        ends_at = asyncio.get_running_loop().time() + seconds
        if seconds < _LONG_S or not self._ends_at <= ends_at <= self._ends_at + 1:
            self._ends_at = ends_at
            self._after(seconds, self.abort)

    def logged_in(self, seconds: float, login: str) -> None:
        """Note a request with a login, whose client may send any number of bytes; last from now on."""
        self._places.logged_in(self, login)
        self.last(seconds)
        self._bytes_left = None
        waiting, self._waiting = self._waiting, b""
        if waiting and self._handler is not None and self._transport is not None:
            self._transport.resume_reading()
            self._handler.data_received(waiting)

    def data_received(self, data: bytes) -> None:
        if self._bytes_left is not None:
            data = self._within_limit(data, self._bytes_left)
            if not data:
                return
        if self._handler is not None:
            self._handler.data_received(data)

    def _within_limit(self, data: bytes, left: int) -> bytes:
        """Return the bytes that may be passed on before a login."""
        if self._waiting:  # read before reading was paused
            self.abort()
            return b""
        passed = data[:left]
        self._bytes_left = left - len(passed)
        joined = self._end_of_head + passed
        self._has_head = self._has_head or _HEAD_END in joined
        self._end_of_head = joined[1 - len(_HEAD_END) :]
        if len(passed) < len(data):
            if not self._has_head or self._transport is None:
                log.info("a request for a page is too long", extra={"peer": self.address})
                self.abort()
                return b""
            self._waiting = data[left:]
            self._transport.pause_reading()
        if passed and not self._places.receives(self, len(passed)):
            self.abort()
            return b""
        return passed

    def eof_received(self) -> None:
        if self._handler is not None:
            self._handler.eof_received()

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()

    def _lost(self, reason: Exception | None) -> None:
        self._places.forget(self)
        if self._admitted and self._handler is not None:
            self._handler.connection_lost(reason)
