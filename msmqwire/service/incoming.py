"""The incoming connections of one kind, bounded in number."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from msmqwire.names.origins import origin_of
from msmqwire.service.descriptors import OpenConnections


class IncomingConnection(Protocol):
    """A connection, as far as it is counted and ended here.

    Attributes:
        address: of the peer.
        number: set when it is admitted.
        gone: done when it is closed.
    """

    address: str
    number: int
    gone: asyncio.Future[None]

    def close(self) -> None:
        """End it once the peer has read what was sent, or has had its time."""

    def abort(self) -> None:
        """End it at once."""


ConnectionT = TypeVar("ConnectionT", bound=IncomingConnection)


class IncomingConnections(Generic[ConnectionT]):
    """The connections that were admitted and are not closed, by their numbers."""

    def __init__(self, most: int, most_per_peer: int, open_connections: OpenConnections) -> None:
        """Take how many there may be, how many of one address or network, and those of other transports."""
        self._most, self._most_per_peer, self._open_connections = most, most_per_peer, open_connections
        self._admitted: dict[int, ConnectionT] = {}
        self._from: Counter[str] = Counter()  # by network
        self._numbers = 0
        open_connections.add(lambda: (len(self._admitted), 0))

    def __len__(self) -> int:
        return len(self._admitted)

    def __contains__(self, number: int) -> bool:
        return number in self._admitted

    def __getitem__(self, number: int) -> ConnectionT:
        return self._admitted[number]

    def __iter__(self) -> Iterator[ConnectionT]:
        return iter(list(self._admitted.values()))

    def admit(self, connection: ConnectionT) -> bool:
        """Number a connection; return False if there are too many."""
        network = origin_of(connection.address)
        if (
            len(self._admitted) >= self._most
            or self._from[network] >= self._most_per_peer
            or not self._open_connections.allows_incoming()
        ):
            return False
        self._numbers += 1
        connection.number = self._numbers
        self._admitted[connection.number] = connection
        self._from[network] += 1
        return True

    def remove(self, connection: ConnectionT) -> None:
        """Forget a connection that is closed."""
        del self._admitted[connection.number]
        network = origin_of(connection.address)
        self._from[network] -= 1
        if not self._from[network]:
            del self._from[network]

    def abort(self) -> None:
        """End all at once."""
        for connection in self:
            connection.abort()

    async def close(self, seconds: float) -> None:
        """End all, and wait until they are closed, so many seconds at most."""
        connections = list(self)
        for connection in connections:
            connection.close()
        if connections:
            await asyncio.wait([connection.gone for connection in connections], timeout=seconds)
