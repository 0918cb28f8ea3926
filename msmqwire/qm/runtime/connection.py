"""One TCP connection of a queue manager."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.connection import PeerConnection
from msmqwire.service.logs import log


class ConnectionOwner(Protocol):
    """The owner of connections, to which they report."""

    @property
    def limits(self) -> Limits:
        """The limits on peers."""

    @property
    def connections(self) -> Mapping[int, SessionConnection]:
        """The connections that the engine knows."""

    def connected(self, connection: SessionConnection) -> None:
        """An outgoing connection is established."""

    def accepted(self, connection: SessionConnection) -> bool:
        """A connection has come in; return False to refuse it."""

    def received(self, connection: SessionConnection, data: bytes) -> None:
        """Bytes have arrived."""

    def held(self, connection: SessionConnection) -> int:
        """Return the bytes of an incomplete packet of a connection."""

    def lost(self, connection: SessionConnection, reason: Exception | None) -> None:
        """A connection has ended."""


class SessionConnection(PeerConnection):
    """A TCP connection.

    Attributes:
        number: its number in the engine; 0 if it was refused.
        incoming: whether the peer opened it, and it was accepted.
        is_silent: whether the peer has opened it and sent no packet of a session yet.
        unsent: data to send at the end of this turn.
    """

    # The base has them; named here, a compiled connection reads them without a dictionary in each `flush`.
    _transport: asyncio.Transport | None
    _is_ending: bool

    def __init__(self, network: ConnectionOwner, number: int | None) -> None:
        super().__init__()
        self._network = network
        self.number = number or 0
        self._outgoing = number is not None
        self.incoming = False
        self.is_silent = number is None
        self.unsent: list[bytes] = []

    def _begin(self, transport: asyncio.Transport) -> bool:
        if self._outgoing:
            self._network.connected(self)
            return True
        self.incoming = self._network.accepted(self)
        return self.incoming

    def data_received(self, data: bytes) -> None:
        if self.number in self._network.connections:
            self._network.received(self, data)
            return
        self._drop(data, self._network.limits.unwanted_bytes)

    def _lost(self, reason: Exception | None) -> None:
        self._network.lost(self, reason)

    @property
    def held(self) -> int:
        """The bytes of an incomplete packet."""
        return self._network.held(self)

    def flush(self) -> int:
        """Write the unsent data to the transport; return the number of bytes."""
        chunks, self.unsent = self.unsent, []
        transport = self._transport
        if transport is None or not chunks or self._is_ending:
            return 0
        data = b"".join(chunks)
        transport.write(data)
        if transport.get_write_buffer_size() > self._network.limits.unsent_bytes:
            log.warning(
                "a peer does not read its data: its connection is ended", extra={"peer": self.address}
            )
            transport.abort()
        return len(data)

    def close(self) -> None:
        """End the connection once the peer has read all sent data and has ended it as well."""
        transport = self._transport
        if transport is None or self._is_ending:
            return
        self._is_ending = True
        self._after(self._network.limits.close_s, self.abort)
        self._send_end(transport)
