"""Connections that are passed on to aiohttp, which would limit neither their time nor their bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from msmqwire.service.connection import PeerConnection

if TYPE_CHECKING:
    from aiohttp import web


class ConnectionAdmission(Protocol):
    """The owner of the connections."""

    def admit(self, connection: LimitedConnection) -> bool:
        """Note a new connection; return False if there are too many: it is closed then."""

    def forget(self, connection: LimitedConnection) -> None:
        """Note that a connection has ended, or was not admitted."""


class LimitedConnection(PeerConnection):
    """Passes a connection on to a handler of aiohttp, for a limited time and number of bytes."""

    def __init__(
        self,
        owner: ConnectionAdmission,
        handler: web.RequestHandler | None,
        seconds: float,
        bytes_max: int | None = None,
    ) -> None:
        """Limit a connection.

        Args:
            owner: counts it.
            handler: the handler of aiohttp; None to close the connection at once.
            seconds: its longest time.
            bytes_max: limit of the bytes that it may send; None for none.
        """
        super().__init__()
        self._owner, self._handler = owner, handler
        self._seconds, self._bytes_left = seconds, bytes_max

    def _begin(self, transport: asyncio.Transport) -> bool:
        if self._handler is None or not self._owner.admit(self):
            self._handler = None
            return False
        self.last(self._seconds)
        self._handler.connection_made(transport)
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
        self._owner.forget(self)
        if self._admitted and self._handler is not None:
            self._handler.connection_lost(reason)
