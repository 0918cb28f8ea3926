"""A listener: its sockets, and its connections, bounded in number and memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from msmqwire.names.origins import origin_of
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.listening_sockets import Factory, ListeningSockets
from msmqwire.service.logs import log
from msmqwire.service.partial_packets import PartialPackets


class IncomingConnection(Hashable, Protocol):
    """A connection, for its listener: see `msmqwire.service.connection.PeerConnection`."""

    @property
    def address(self) -> str:
        """The address of the peer."""

    @property
    def held(self) -> int:
        """The bytes held for it now: of incomplete requests, and of unread answers."""

    @property
    def gone(self) -> asyncio.Future[None]:
        """Done when it is closed."""

    def stop(self) -> None:
        """End the connection because the server stops, once the peer has read all, or its time is over."""

    def abort(self) -> None:
        """End the connection at once."""


ConnectionT = TypeVar("ConnectionT", bound=IncomingConnection)


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Limits on the connections of a listener together.

    Attributes:
        connections: the number of open connections.
        per_origin: the same, from one IPv4 address or one IPv6 network of 64 bits.
        held_bytes: bytes that they may hold.
        close_s: seconds that a peer has to read its data before its connection is closed.
    """

    connections: int
    per_origin: int
    held_bytes: int
    close_s: float


class Admissions(Protocol):
    """The counters of a listener."""

    accepted: int
    refused: int


class Listener(Generic[ConnectionT]):
    """The open connections of one protocol.

    A connection asks `admit` when it is established, reports its bytes to `holds`, and ends with `remove`.
    This needs no socket, so that a simulator makes connections in the same way.

    Attributes:
        held: bytes that connections hold.
    """

    def __init__(
        self,
        protocol: str,
        limits: ListenerLimits,
        admissions: Admissions,
        open_connections: OpenConnections,
        evicted: Callable[[ConnectionT], None],
    ) -> None:
        """Make a listener without a socket.

        Args:
            protocol: its name, for logs.
            limits: the limits on its connections.
            admissions: counts them.
            open_connections: the open connections of all protocols of this process.
            evicted: called with a connection that was ended because too many bytes were held.
        """
        self._protocol, self._most = protocol, limits
        self._admissions, self._open_connections = admissions, open_connections
        self._evicted = evicted
        self._sockets = ListeningSockets()
        self._admitted: dict[ConnectionT, None] = {}  # the oldest first
        self._from: Counter[str] = Counter()  # by origin
        self.held: PartialPackets[ConnectionT] = PartialPackets(limits.held_bytes)
        self._stopping = False
        open_connections.add(lambda: (len(self._admitted), 0))

    def __bool__(self) -> bool:
        """A listener without connections is true as well."""
        return True

    def __len__(self) -> int:
        return len(self._admitted)

    def __contains__(self, connection: ConnectionT) -> bool:
        return connection in self._admitted

    def __iter__(self) -> Iterator[ConnectionT]:
        return iter(list(self._admitted))

    # -- listening ------------------------------------------------------------------------------------------

    async def bind_at(self, address: str, port: int, factory: Factory) -> int:
        """Listen at one more address; connections wait for `accept`.

        Returns the port, which the system chooses for 0. Raises OSError.
        """
        return await self._sockets.bind(address, port, factory)

    def accept(self) -> None:
        """Begin to accept connections."""
        self._sockets.accept()

    @property
    def is_listening(self) -> bool:
        """Whether connections are accepted."""
        return bool(self._sockets)

    @property
    def is_stopping(self) -> bool:
        """Whether no more connections are accepted."""
        return self._stopping

    def stop_listening(self) -> None:
        """Accept no more connections, not even established ones that are not yet admitted."""
        self._stopping = True
        self._sockets.close()

    def abort(self) -> None:
        """End all connections at once."""
        for connection in self:
            connection.abort()

    async def close(self) -> None:
        """Stop listening, end all connections, and wait until they are closed.

        Each has its own deadline; the wait for one that misses it is a second longer.
        """
        self.stop_listening()
        connections = list(self)
        for connection in connections:
            connection.stop()
        if connections:
            await asyncio.wait(
                [connection.gone for connection in connections], timeout=self._most.close_s + 1
            )
        await self._sockets.wait_closed()

    # -- connections ----------------------------------------------------------------------------------------

    def admit(self, connection: ConnectionT) -> bool:
        """Register an established connection; return False to refuse it."""
        reason = self._why_refused(connection.address)
        if reason is not None:
            self._admissions.refused += 1
            log.warning(
                f"a connection of {self._protocol} is refused",
                extra={"peer": connection.address, "reason": reason},
            )
            return False
        self._admissions.accepted += 1
        self._admitted[connection] = None
        self._from[origin_of(connection.address)] += 1
        return True

    def _why_refused(self, address: str) -> str | None:
        if self._stopping:
            return "the server stops"
        if len(self._admitted) >= self._most.connections:
            return "too many connections"
        if self._from[origin_of(address)] >= self._most.per_origin:
            return "too many connections of this peer"
        if not self._open_connections.allows_incoming():
            return "too few file descriptors"
        return None

    def remove(self, connection: ConnectionT) -> None:
        """Forget a connection that was admitted and is closed."""
        del self._admitted[connection]
        self.held.forget(connection)
        origin = origin_of(connection.address)
        self._from[origin] -= 1
        if not self._from[origin]:
            del self._from[origin]

    # -- memory ---------------------------------------------------------------------------------------------

    def holds(self, connection: ConnectionT, received: int) -> None:
        """Note the bytes that a connection holds after `received` more, and enforce the bound."""
        now = asyncio.get_running_loop().time()
        self.held.update(connection, connection.held, now, received=received)
        self.evict(now)

    def evict(self, now: float) -> None:
        """End the connections with the largest waits until the others are within the bound.

        Bytes that a peer has read meanwhile are no longer held, so each connection is measured again before
        its end.
        """
        held = self.held
        while (largest := held.excess(now)) is not None:
            if (size := largest.held) < held.of(largest):
                held.update(largest, size, now, received=0)
                continue
            held.forget(largest)
            log.warning(
                f"connections of {self._protocol} hold too much: the one with the largest wait is ended",
                extra={"peer": largest.address, "bytes": size},
            )
            largest.abort()
            self._evicted(largest)
