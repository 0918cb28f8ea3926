"""Connections of DCE/RPC over the network of a run, which may break after any byte."""

from __future__ import annotations

from itertools import count
from typing import Final, Protocol

from msmqwire.qm.core import Core
from msmqwire.qm.sim.host import Host
from msmqwire.qm.sim.ledger import NodeView
from msmqwire.qm.sim.network import Endpoint, Network, SimulatedConnection

RPC_PORT: Final = 2103


class RpcEnd(Endpoint):
    """One end of a connection.

    Attributes:
        origin: the address of the other end.
    """

    __slots__ = ("_connection", "_side", "origin")

    def __init__(self, host: Host, number: int) -> None:
        super().__init__(host, -number)  # the engine of [MS-MQQB] numbers its own
        self._connection: SimulatedConnection | None = None
        self._side, self.origin = 0, ""

    def joins(self, connection: SimulatedConnection, side: int) -> None:
        """Become an end of a connection."""
        self._connection, self._side = connection, side
        self.origin = connection.ends[1 - side].host.address

    def send(self, data: bytes) -> None:
        """Send bytes, if there are any."""
        if data and self._connection is not None and self.alive:
            self._connection.send(self._side, data)

    def close(self) -> None:
        """Close the connection, or stop making it; bytes sent before still arrive."""
        if self._connection is None:
            self.open = False
        elif self.alive:
            self._connection.close(self._side)


class SimulatedServer(Protocol):
    """The server at a node."""

    def accepted(self, number: int, origin: str) -> RpcEnd:
        """Return the server's end of a new connection from an address."""


class RpcHost(Host, NodeView, Protocol):
    """A serving node, for the books."""

    core: Core | None

    @property
    def remote(self) -> SimulatedServer:
        """The server in its present life."""


class SimulatedRpcConnection(SimulatedConnection):
    """A connection that breaks after a number of bytes in one direction, if its network has `breaks`."""

    def __init__(self, network: SimulatedRpcNetwork, first: RpcEnd, second: RpcEnd) -> None:
        super().__init__(network.network, first, second, observed=False, port=RPC_PORT)
        self._rpc = network
        first.joins(self, 0)
        second.joins(self, 1)

    def send(self, side: int, data: bytes) -> None:
        if not self.ends[side].open:
            return
        left = self._rpc.passes(side, len(data))
        if data[:left]:
            super().send(side, data[:left])
        if left < len(data):
            self.break_off()


class SimulatedRpcNetwork:
    """All connections of DCE/RPC of a run.

    Attributes:
        network: the network that carries them. sent: the bytes that all clients, and all servers, have sent.
        breaks: the number of bytes after which the connection breaks, once; None for never.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._numbers = count(1)
        self.sent = [0, 0]
        self.breaks: list[int | None] = [None, None]

    def connect(self, client: RpcEnd, server: RpcHost) -> None:
        """Connect a client to a node; it is notified when that is done, or has failed."""
        environment = self.network.environment
        delay = environment.rng.choice((0, 1, 10, 100))
        environment.after(delay, lambda: self._reach(client, server))

    def _reach(self, client: RpcEnd, server: RpcHost) -> None:
        environment = self.network.environment
        if not (client.alive and client.open):
            return
        if (until := self.network.blocked_until(client.host, server)) > environment.now:
            environment.after(until - environment.now, lambda: self._reach(client, server))
            return
        if server.core is None or environment.now < server.refuses_until:
            client.disconnected()
            return
        environment.counts["remote connections"] += 1
        environment.log(client.host.name, "connects to read", server.name)
        end = server.remote.accepted(next(self._numbers), client.host.address)
        self.network.establish(SimulatedRpcConnection(self, client, end))

    def number(self) -> int:
        """Return a number for an end of a connection."""
        return next(self._numbers)

    def passes(self, side: int, size: int) -> int:
        """Count bytes that a side sends; return the number that gets through."""
        before, limit = self.sent[side], self.breaks[side]
        self.sent[side] += size
        if limit is None or limit >= self.sent[side]:
            return size
        self.breaks[side] = None
        return max(limit - before, 0)
