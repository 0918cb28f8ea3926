"""Connections that are passed on to aiohttp, which would limit neither their time nor their bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msmqwire.service.connection import PeerConnection
from msmqwire.service.logs import log

if TYPE_CHECKING:
    from aiohttp import web


class ConnectionPlaces(Protocol):
    """The owner of the connections."""

    def admit(self, connection: LimitedConnection) -> None:
        """Note a new connection."""

    def receives(self, connection: LimitedConnection, size: int) -> bool:
        """Return whether a connection with a limited number of bytes may send some now."""

    def forget(self, connection: LimitedConnection) -> None:
        """Note that a connection has ended."""


class LimitedConnection(PeerConnection):
    """Passes a connection on to a handler of aiohttp, for a limited time and number of bytes."""

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
        self._bytes_left: int | None = bytes_max

    def _begin(self, transport: asyncio.Transport) -> bool:
        self._handler = handler = self._make_handler(self)
        if handler is None:
            return False
        self._places.admit(self)
        self.last(self._seconds)
        handler.connection_made(transport)
        return True

    def last(self, seconds: float) -> None:
        """End the connection after a number of seconds from now."""
        self._after(seconds, self.abort)

    def send_any_number(self) -> None:
        """Lift the limit on the client's bytes."""
        self._bytes_left = None

    def data_received(self, data: bytes) -> None:
        if self._bytes_left is not None:
            self._bytes_left -= len(data)
            if self._bytes_left < 0:
                log.info("a request for a page is too long", extra={"peer": self.address})
            if self._bytes_left < 0 or not self._places.receives(self, len(data)):
                self.abort()
                return
        if self._handler is not None:
            self._handler.data_received(data)

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
