"""One TCP connection of a queue manager."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Protocol, cast

from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.endpoints import canonical
from msmqwire.service.logs import log


class ConnectionOwner(Protocol):
    """What a connection reports to."""

    @property
    def limits(self) -> Limits:
        """The limits on peers."""

    @property
    def connections(self) -> Mapping[int, Connection]:
        """The connections that the engine knows."""

    def established(self, connection: Connection) -> None:
        """A connection of either direction is established."""

    def connected(self, connection: Connection) -> None:
        """An outgoing connection is established."""

    def accepted(self, connection: Connection) -> bool:
        """A connection has come in; return False to refuse it."""

    def received(self, connection: Connection, data: bytes) -> None:
        """Bytes have arrived."""

    def lost(self, connection: Connection, reason: Exception | None) -> None:
        """A connection has ended."""


class Connection(asyncio.Protocol):
    """A TCP connection.

    Attributes:
        number: its number in the engine; 0 if it was refused.
        address: address of the peer; empty until it is established.
        incoming: whether the peer opened it, and it was accepted.
        unsent: data to be sent at the end of this turn.
        gone: done when it is closed.
    """

    def __init__(self, network: ConnectionOwner, number: int | None) -> None:
        self._network = network
        self.number = number or 0
        self._outgoing = number is not None
        self.address = ""
        self.incoming = False
        self.unsent: list[bytes] = []
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._unwanted = 0  # bytes received after the end
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self._network.established(self)
        peer = transport.get_extra_info("peername")
        if peer is None:  # already reset
            transport.abort()
            return
        self.address = canonical(peer[0])
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._outgoing:
            self._network.connected(self)
        elif self._network.accepted(self):
            self.incoming = True
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.number in self._network.connections:
            self._network.received(self, data)
            return
        self._unwanted += len(data)
        if self._unwanted > self._network.limits.unwanted_bytes:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if not self.gone.done():
            self.gone.set_result(None)
        self._network.lost(self, exc)

    def flush(self) -> int:
        """Write the unsent data to the transport; return the number of bytes."""
        chunks, self.unsent = self.unsent, []
        transport = self._transport
        if transport is None or not chunks or self._deadline is not None:
            return 0
        data = b"".join(chunks)
        transport.write(data)
        if transport.get_write_buffer_size() > self._network.limits.unsent_bytes:
            log.warning(
                "a peer does not take what is sent: its connection is ended", extra={"peer": self.address}
            )
            transport.abort()
        return len(data)

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End the connection once the peer has read what was sent and has ended it as well.

        Data that it still sends is read and dropped: closing the socket at once would reset the connection,
        and the peer would lose what it has not read.
        """
        transport = self._transport
        if transport is None or self._deadline is not None:
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._network.limits.close_s, transport.abort)
        try:
            transport.write_eof()
        except OSError:  # the peer has reset it
            transport.abort()
