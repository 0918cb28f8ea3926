"""Connections of DCE/RPC at one port, bounded in number, memory and time."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from msmqwire.errors import AuthenticationFailed
from msmqwire.qm.model.address import origin_of
from msmqwire.qm.runtime.descriptors import OpenConnections
from msmqwire.qm.runtime.limits import Limits, RpcTraffic
from msmqwire.qm.runtime.listening import Listeners
from msmqwire.qm.runtime.logs import log
from msmqwire.qm.runtime.partial_packets import PartialPackets
from msmqwire.qm.runtime.rpc_connection import RpcConnection
from msmqwire.rpc.constants import AuthLevel, SyntaxId
from msmqwire.rpc.events import Bound, Called, Cancelled, Closed, Denied, Orphaned, ServerEvent
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.security import SecurityContext
from msmqwire.rpc.server_association import ServerAssociation

Acceptors = Callable[[str], Callable[[int, AuthLevel], SecurityContext | None]]
"""By the address of a client: what makes the server's ends of its security contexts."""


class RpcListener(ABC):
    """Takes the calls of clients; what they are is for subclasses.

    Attributes:
        limits: on what peers may use.
        traffic: counters.
        port: at which it listens; 0 before.
    """

    def __init__(
        self,
        interfaces: Mapping[SyntaxId, int],
        limits: Limits,
        traffic: RpcTraffic,
        open_connections: OpenConnections,
        *,
        security: Acceptors | None = None,
        minimum_level: AuthLevel = AuthLevel.NONE,
    ) -> None:
        """See `ServerAssociation` for interfaces, security and level."""
        self._interfaces = interfaces
        self._security, self._minimum_level = security, minimum_level
        self.limits, self.traffic, self.port = limits, traffic, 0
        self._open_connections = open_connections
        open_connections.add(lambda: (len(self._connections), 0))
        self._listeners = Listeners(partial(RpcConnection, self))
        self._groups = AssociationGroups()
        self._connections: dict[int, RpcConnection] = {}
        self._accepted_from: Counter[str] = Counter()  # by network
        self._held = PartialPackets(limits.rpc_held_bytes)
        self._unflushed: dict[int, RpcConnection] = {}
        self._numbers = 0
        self._stopping = False

    async def bind(self, address: str, port: int) -> int:
        """Listen, so that connections wait for `accept`; return the port. Raises OSError."""
        self.port = await self._listeners.bind(address, port)
        return self.port

    def accept(self) -> None:
        """Begin to accept connections."""
        self._listeners.accept()

    def stop_listening(self) -> None:
        """Accept no more connections."""
        self._stopping = True
        self._listeners.close()

    async def close(self) -> None:
        """End all connections: idle ones at once, others when their peers have read the answers.

        Nobody gets more time for that than `Limits.close_s`.
        """
        self.stop_listening()
        connections = list(self._connections.values())
        for connection in connections:
            connection.stop()
        if connections:
            gone = (connection.gone for connection in connections)
            await asyncio.wait(list(gone), timeout=self.limits.close_s + 1)
        await self._listeners.wait_closed()

    def abort(self) -> None:
        """End all connections at once."""
        for connection in list(self._connections.values()):
            connection.abort()

    # -- what clients do ------------------------------------------------------------------------------------

    @abstractmethod
    def called(self, connection: RpcConnection, event: Called) -> None:
        """A client calls a method; `answer` or `fault` answers it, now or later."""

    @abstractmethod
    def cancelled(self, connection: RpcConnection, call: int) -> None:
        """A client has cancelled or orphaned a call."""

    @abstractmethod
    def has_open(self, group: int) -> bool:
        """Return whether an association group without calls has something open."""

    @abstractmethod
    def gone(self, connection: RpcConnection, group: int, *, last: bool) -> None:
        """A connection has ended: nobody waits for its calls; `last` says whether its group ends with it."""

    # -- connections: `RpcConnectionOwner` ------------------------------------------------------------------

    def accepted(self, connection: RpcConnection) -> ServerAssociation | None:
        """Register a connection; return None if there are too many."""
        network, limits = origin_of(connection.address), self.limits
        if (
            self._stopping
            or len(self._connections) >= limits.rpc_connections
            or self._accepted_from[network] >= limits.rpc_connections_per_peer
            or not self._open_connections.allows_incoming()
        ):
            self.traffic.refused += 1
            log.warning("a connection of RPC is refused", extra={"peer": connection.address})
            return None
        self.traffic.accepted += 1
        self._numbers += 1
        connection.number = self._numbers
        self._connections[connection.number] = connection
        self._accepted_from[network] += 1
        return ServerAssociation(
            self._interfaces,
            groups=self._groups,
            origin=connection.address,
            port=self.port,
            security=None if self._security is None else self._security(connection.address),
            minimum_level=self._minimum_level,
            stub_max=limits.rpc_request_bytes,
            calls_max=limits.rpc_calls,
        )

    def happened(self, connection: RpcConnection, event: ServerEvent) -> None:
        """Pass on what a client has done."""
        match event:
            case Called():
                self.traffic.calls += 1
                self.called(connection, event)
            case Denied(_, status):
                self.traffic.calls += 1
                self.traffic.faults += 1
                connection.report("a call is denied", status=f"{status:#x}")
            case Cancelled(call) | Orphaned(call):
                self.cancelled(connection, call)
            case Bound() | Closed():
                pass

    def holds(self, connection: RpcConnection, received: int) -> None:
        """Bound the memory of incomplete requests and unread answers."""
        now = time.monotonic()
        self._held.update(connection.number, connection.held, now, received=received)
        while (excessive := self._held.excess(now)) is not None:
            ended = self._connections[excessive]
            if (held := ended.held) < self._held.of(excessive):  # the peer has read answers meanwhile
                self._held.update(excessive, held, now, received=0)
                continue
            self._held.forget(excessive)
            self.traffic.ended += 1
            log.warning(
                "too much of incomplete requests and unread answers: a connection is ended",
                extra={"peer": ended.address},
            )
            ended.abort()

    def keeps(self, connection: RpcConnection) -> bool:
        """Return whether the client has something open."""
        return connection.association is not None and self.has_open(connection.association.group)

    def ended(self, connection: RpcConnection) -> None:
        """Take a connection out of its group, and give up its calls."""
        association = connection.association
        if association is not None:
            group = association.group
            self.gone(connection, group, last=association.connection_lost())

    def lost(self, connection: RpcConnection) -> None:
        """Unregister a connection."""
        del self._connections[connection.number]
        self._unflushed.pop(connection.number, None)
        self._held.forget(connection.number)
        network = origin_of(connection.address)
        self._accepted_from[network] -= 1
        if not self._accepted_from[network]:
            del self._accepted_from[network]

    # -- answers --------------------------------------------------------------------------------------------

    def answer_call(self, connection: RpcConnection, call: int, stub: bytes) -> None:
        """Send the results of a call, with the next `flush`."""
        association = connection.association
        if association is None or association.closed:
            return
        try:
            association.answer(call, stub)
        except AuthenticationFailed as exc:
            log.warning("an answer can't be protected", extra={"peer": connection.address, "error": str(exc)})
            connection.abort()
        self._unflushed[connection.number] = connection

    def fault_call(self, connection: RpcConnection, call: int, status: int, *, executed: bool = True) -> None:
        """Let a call fail, with the next `flush`."""
        self.traffic.faults += 1
        if connection.association is not None:
            connection.association.fault(call, status, executed=executed)
            self._unflushed[connection.number] = connection

    def flush(self) -> None:
        """Send all answers so far."""
        unflushed, self._unflushed = self._unflushed, {}
        for connection in unflushed.values():
            connection.flush()
            if connection.number in self._connections:
                self.holds(connection, 0)
