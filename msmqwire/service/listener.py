"""A listener: its sockets, and its connections, bounded in number and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from msmqwire.names.origins import LOOPBACK_ORIGIN, origin_of
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.listening_sockets import Factory, ListeningSockets
from msmqwire.service.logs import log
from msmqwire.service.partial_packets import PartialPackets
from msmqwire.service.places import ListenerLimits, Places

PROVED_MAX: Final = 1_000
"""Limit of the origins remembered whose peers have proved who they are."""


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


def _nobody(_: str) -> bool:
    return False


class _Origins:
    """A limited number of origins: the one added least recently is forgotten."""

    def __init__(self) -> None:
        self._origins: dict[str, None] = {}

    def __contains__(self, origin: str) -> bool:
        return origin in self._origins

    def add(self, origin: str) -> None:
        self._origins.pop(origin, None)
        self._origins[origin] = None
        if len(self._origins) > PROVED_MAX:
            del self._origins[next(iter(self._origins))]


class Admissions(Protocol):
    """The counters of a listener."""

    accepted: int
    refused: int
    evicted: int


class Listener(Generic[ConnectionT]):
    """The open connections of one protocol.

    A connection asks `admit` when it is established, reports its bytes to `holds`, and ends with `remove`.
    It is silent, and makes room for others, until its peer has shown that it uses the protocol: `spoke`.
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
        too_much_held: Callable[[ConnectionT], None],
        is_known: Callable[[str], bool] = _nobody,
    ) -> None:
        """Make a listener without a socket.

        Args:
            protocol: its name, for logs.
            limits: the limits on its connections.
            admissions: counts them.
            open_connections: the open connections of all protocols of this process.
            too_much_held: called with a connection that was ended because too many bytes were held.
            is_known: whether an origin is known: a part of the places is for those.
        """
        self._protocol, self._most = protocol, limits
        self._admissions, self._open_connections = admissions, open_connections
        self._too_much_was_held, self._is_named = too_much_held, is_known
        self._proved = _Origins()
        self._sockets = ListeningSockets()
        self._admitted: dict[ConnectionT, None] = {}  # the oldest first
        self._places: Places[ConnectionT] = Places(limits, self._knows)
        self.held: PartialPackets[ConnectionT] = PartialPackets(limits.held_bytes)
        self._stopping = False
        open_connections.add(lambda: (len(self._places), 0), self)

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
        """Register an established connection; return False to refuse it.

        If there is no place, another connection makes room, if there is one that has to: see `Places`.
        """
        origin = origin_of(connection.address)
        reason = self._make_room(origin)
        if reason is not None:
            self._admissions.refused += 1
            log.warning(
                f"a connection of {self._protocol} is refused",
                extra={"peer": connection.address, "reason": reason},
            )
            return False
        self._admissions.accepted += 1
        self._admitted[connection] = None
        self._places.take(connection, origin)
        return True

    def _make_room(self, origin: str) -> str | None:
        """Make room for a connection of an origin; return the reason if there is none."""
        if self._stopping:
            return "the server stops"
        refusal, ends = self._places.room(origin)
        if refusal is not None:
            return refusal
        if ends is not None:
            self._evict(ends)
            return None
        is_known = self._places.is_known(origin)
        descriptors = self._open_connections
        if descriptors.allows_incoming(is_known=is_known) or descriptors.make_room(for_known=is_known):
            return None
        return "too few file descriptors"

    def spoke(self, connection: ConnectionT) -> None:
        """The peer of a connection has shown that it uses the protocol; a second report does nothing."""
        self._places.spoke(connection)

    def proved(self, connection: ConnectionT) -> None:
        """The peer of a connection has proved who it is: its origin is known from now on.

        The loopback stays unknown: one user's password says nothing about the other users of this computer.
        """
        self._places.spoke(connection)
        origin = origin_of(connection.address)
        if origin != LOOPBACK_ORIGIN:
            self._proved.add(origin)

    def _knows(self, origin: str) -> bool:
        return self._is_named(origin) or origin in self._proved

    @property
    def silent(self) -> int:
        """See `msmqwire.service.descriptors.SilentConnections`."""
        return self._places.silent

    def end_silent(self, *, for_known: bool) -> bool:
        """See `msmqwire.service.descriptors.SilentConnections`."""
        silent = self._places.oldest_silent(for_known=for_known)
        if silent is not None:
            self._evict(silent)
        return silent is not None

    def _evict(self, connection: ConnectionT) -> None:
        self._places.leave(connection)
        self._admissions.evicted += 1
        log.warning(
            f"a connection of {self._protocol} makes room for another",
            extra={"peer": connection.address},
        )
        connection.abort()

    def remove(self, connection: ConnectionT) -> None:
        """Forget a connection that was admitted and is closed."""
        del self._admitted[connection]
        self.held.forget(connection)
        self._places.leave(connection)

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
            self._too_much_was_held(largest)
