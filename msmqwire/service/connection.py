"""A connection over TCP, for all protocols: its peer and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from msmqwire.service.endpoints import canonical
from msmqwire.service.keep_alive import keep_alive


class PeerConnection(asyncio.Protocol):
    """A TCP connection with a peer.

    A subclass acts on its beginning in `_begin`, and on its end in `_lost`.

    Attributes:
        address: the peer's address; empty until it is established.
        gone: done when it is closed.
    """

    def __init__(self) -> None:
        self.address = ""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._admitted = False
        self._is_ending = False  # it is closed in order
        self._unwanted = 0  # bytes received after the end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        peer = transport.get_extra_info("peername")
        if peer is None:  # already reset
            transport.abort()
            return
        self.address = canonical(peer[0])
        keep_alive(transport.get_extra_info("socket"))
        self._admitted = self._begin(transport)
        if not self._admitted:
            transport.abort()

    @property
    def local_address(self) -> str:
        """The local address that the peer connected to; empty until it is established."""
        own = None if self._transport is None else self._transport.get_extra_info("sockname")
        return canonical(own[0]) if own else ""

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        if not self.gone.done():
            self.gone.set_result(None)
            self._lost(exc)

    def _begin(self, transport: asyncio.Transport) -> bool:
        """Begin with an established connection; return False to refuse it."""
        return True

    def _lost(self, reason: Exception | None) -> None:
        """Act on the end of a connection, even a refused one."""

    # -- the end --------------------------------------------------------------------------------------------

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End the connection once the peer has read all sent data and has ended it as well, or its time is
        over.
        """
        self.abort()

    def stop(self) -> None:
        """End the connection because the server stops."""
        self.close()

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        """Act after a number of seconds, in place of the action scheduled before."""
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, act)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send_end(self, transport: asyncio.Transport) -> None:
        """End sending, and let the peer end the connection.

        Bytes that it still sends must be read and discarded: closing the socket at once would reset the
        connection, and the peer would lose the bytes that it has not read.
        """
        try:
            transport.write_eof()
        except OSError:  # the peer has reset it
            self.abort()

    def _drop(self, data: bytes, most: int) -> None:
        """Discard bytes received after the end; above a limit the connection is ended at once."""
        self._unwanted += len(data)
        if self._unwanted > most:
            self.abort()
