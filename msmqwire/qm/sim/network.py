"""The network of a run: connections that delay, cut and refuse, names not found, datagrams that are lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from msmqwire.ping import PING_PORT
from msmqwire.qm.sim.capture import SERVER_PORT, Capture
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.host import Host
from msmqwire.qm.sim.joined import simulated
from msmqwire.qm.sim.ledger import MessageLedger, NodeView
from msmqwire.qm.sim.packet_observer import PacketObserver
from msmqwire.qm.sim.store_contents import StoreContents

_REPLY_PORT: Final = 40_000
_CONNECT_TIMEOUT_MS: Final = 20_000
_CONNECTED: Final = "connected"
_EOF: Final = "end"
_GONE: Final = "gone"
Payload = bytes | str
"""Bytes, or one of the events of a connection."""


class Endpoint:
    """One end of a connection, at a node in one of its lives.

    Attributes:
        open: whether its bytes go out.
        informed: whether it knows that the connection is gone.
    """

    def __init__(self, host: Host, number: int) -> None:
        self.host, self.epoch, self.number = host, host.epoch, number
        self.open = True
        self.informed = False

    @property
    def alive(self) -> bool:
        """Whether the node is still in the life that has this connection."""
        return self.host.core is not None and self.host.epoch == self.epoch

    def connected(self) -> None:
        """The requested connection is established."""
        raise NotImplementedError

    def received(self, data: bytes) -> None:
        """Bytes have come."""
        raise NotImplementedError

    def ended(self) -> None:
        """The other end sends nothing more."""
        raise NotImplementedError

    def disconnected(self) -> None:
        """The connection is gone."""
        raise NotImplementedError


class Socket(Endpoint, asyncio.Transport):
    """An end at a queue manager: the transport of a connection of its TCP carrier.

    Attributes:
        established: done when a connection that it asked for is there, or has failed.
    """

    def __init__(self, host: Host, number: int, factory: Callable[[], asyncio.Protocol], peer: str) -> None:
        Endpoint.__init__(self, host, number)
        asyncio.Transport.__init__(self)
        self._factory, self._peer = factory, peer
        self.protocol: asyncio.Protocol | None = None
        self.connection: SimulatedConnection | None = None
        self.established: asyncio.Future[None] = host.loop.create_future()
        self._eof = self._lost = False

    # -- events of the other end

    def connected(self) -> None:
        if self.established.done():
            return
        self.protocol = self._factory()
        self.protocol.connection_made(self)
        self.established.set_result(None)

    def received(self, data: bytes) -> None:
        if self.protocol is not None and not self._lost:
            self.protocol.data_received(data)

    def ended(self) -> None:
        if self.protocol is not None and not self._lost and not self.protocol.eof_received():
            self.close()

    def disconnected(self) -> None:
        self._end(ConnectionResetError("the connection is gone"))

    def _end(self, exc: Exception | None) -> None:
        if not self._lost and self.protocol is not None:
            self._lost = True
            self.protocol.connection_lost(exc)

    # -- `asyncio.Transport`

    @property
    def _side(self) -> int:
        assert self.connection is not None
        return self.connection.ends.index(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self._peer, 0) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return not self.open

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.connection is not None and self.alive and not self._eof:
            self.connection.send(self._side, bytes(data))

    def write_eof(self) -> None:
        if self.connection is not None and self.alive and not self._eof:
            self._eof = True
            self.connection.put(self._side, _EOF)

    def close(self) -> None:
        if self.connection is not None and self.alive and self.open:
            self.write_eof()
            self.connection.close(self._side)
            self._end(None)

    def abort(self) -> None:
        self.close()


class SimulatedConnection:
    """A transport connection: two directions, each in order, with a delay of its own.

    Args:
        network: its network. first: the end that has opened it.
        second: the other end.
        observed: whether it carries packets of [MS-MQQB], which are checked.
        port: its port.
    """

    def __init__(
        self,
        network: Network,
        first: Endpoint,
        second: Endpoint,
        *,
        observed: bool = True,
        port: int = SERVER_PORT,
    ) -> None:
        environment = network.environment
        self.network, self.ends = network, (first, second)
        self._delays = [environment.rng.choice((0, 1, 5, 20, 200)) for _ in range(2)]
        self._in_flight: tuple[deque[tuple[int, Payload]], ...] = (deque(), deque())
        self._observers: tuple[PacketObserver, ...] = ()
        if observed:
            self._observers = network.observer(first, second), network.observer(second, first)
        capture = network.capture
        self._capture = capture and capture.connection(
            environment.now, first.host.address, second.host.address, port
        )

    def side(self, host: Host) -> int:
        """Return the end of a node."""
        return 0 if self.ends[0].host is host else 1

    def send(self, side: int, data: bytes) -> None:
        """Send bytes from one end, perhaps in several chunks."""
        if not self.ends[side].open:
            return
        if self._observers:
            self._observers[side].sent(data, self._observers[1 - side])
        environment = self.network.environment
        rng = environment.rng
        chunks = [data]
        if rng.random() < environment.plan.split_probability:
            cuts = sorted(rng.randrange(len(data)) for _ in range(2))
            chunks = [data[: cuts[0]], data[cuts[0] : cuts[1]], data[cuts[1] :]]
        for chunk in chunks:
            if chunk:
                self.put(side, chunk, rng.choice((0, 0, 1, 3)) if len(chunks) > 1 else 0)

    def put(self, side: int, payload: Payload, delay: int = 0) -> None:
        """Put bytes or an event in flight from one end to the other, after everything already in flight."""
        in_flight, environment = self._in_flight[side], self.network.environment
        due = environment.now + self._delays[side] + delay
        if in_flight:
            due = max(due, in_flight[-1][0])
        in_flight.append((due, payload))
        if payload == _GONE:
            self.network.ending.add(self)
        environment.after(due - environment.now, lambda: self._arrive(side))

    def _arrive(self, side: int) -> None:
        in_flight, environment = self._in_flight[side], self.network.environment
        source, target = self.ends[side], self.ends[1 - side]
        blocked = self.network.blocked_until(source.host, target.host)
        if blocked > environment.now:
            environment.after(blocked - environment.now, lambda: self._arrive(side))
            return
        while in_flight and in_flight[0][0] <= environment.now:
            _, payload = in_flight.popleft()
            if target.informed or not target.alive:
                continue
            if payload == _CONNECTED:
                target.connected()
            elif payload == _GONE:
                target.informed, target.open = True, False
                if self._capture:
                    self._capture.close(environment.now)
                environment.log(target.host.name, f"connection with {source.host.name} is gone")
                target.disconnected()
            elif payload == _EOF:
                target.ended()
            else:
                assert isinstance(payload, bytes)
                if self._capture:
                    self._capture.data(environment.now, side, payload)
                target.received(payload)
        if not any(self._in_flight):
            self.network.ending.discard(self)

    def close(self, side: int) -> None:
        """Close it at one end: bytes sent by that end still arrive."""
        end = self.ends[side]
        if end.open:
            end.open = False
            self.put(side, _GONE)
        end.informed = True
        self._forget_if_over()

    def cut(self, delays: tuple[int, int]) -> None:
        """Cut both directions somewhere in the bytes in flight.

        Args:
            delays: milliseconds after which each end learns of it, the second end first.
        """
        rng = self.network.environment.rng
        for side in range(2):
            in_flight = self._in_flight[side]
            remaining = rng.randrange(sum(len(item) for _, item in in_flight if isinstance(item, bytes)) + 1)
            arriving: list[tuple[int, Payload]] = []
            for due, payload in in_flight:
                prefix = payload
                if isinstance(payload, bytes):
                    prefix, remaining = payload[:remaining], max(remaining - len(payload), 0)
                if prefix:
                    arriving.append((due, prefix))
            in_flight.clear()
            in_flight.extend(arriving)
        self.break_off(delays)

    def break_off(self, delays: tuple[int, int] = (0, 0), *, loses: bool = False) -> None:
        """Break both directions after everything in flight, which may be lost as well; see `cut`."""
        for side in range(2):
            if loses:
                self._in_flight[side].clear()
            self.ends[side].open = False
            self.put(side, _GONE, delays[side])
        self._forget_if_over()

    def _forget_if_over(self) -> None:
        if not (self.ends[0].open or self.ends[1].open):
            self.network.forget(self)


class Network:
    """All connections, attempts to connect, and partitions.

    Args:
        environment: the environment of the run.
        hosts: the nodes, by name; looked up whenever one is needed.
        views: the nodes, as observers see them.
        ledger, contents: for the observers of the connections.
        capture: records the traffic; None for no capture.

    Attributes:
        joined: the networks of protocols that have joined.
        ending: connections whose end is not known to both sides yet.
    """

    def __init__(
        self,
        environment: Environment,
        hosts: Mapping[str, Host],
        views: Mapping[str, NodeView],
        ledger: MessageLedger,
        contents: StoreContents,
        capture: Capture | None = None,
    ) -> None:
        self.environment, self.capture = environment, capture
        self.hosts, self.views, self.ledger, self.contents = hosts, views, ledger, contents
        self._connections: dict[SimulatedConnection, None] = {}
        self._numbers = 0
        self._partitions: dict[frozenset[str], int] = {}
        self.ending: set[SimulatedConnection] = set()
        self.joined = [protocol.network(self) for protocol in simulated()]

    def observer(self, source: Endpoint, target: Endpoint) -> PacketObserver:
        """Return a new observer of one direction of a connection."""
        return PacketObserver(
            self.environment, self.ledger, self.contents, source.host.name, target.host.name
        )

    def blocked_until(self, first: Host, second: Host) -> int:
        """Return the time until which nothing passes between two nodes."""
        if self.environment.faults_over:
            return -1
        return self._partitions.get(frozenset((first.name, second.name)), -1)

    def forget(self, connection: SimulatedConnection) -> None:
        """Remove a connection that is over at both ends."""
        self._connections.pop(connection, None)

    # -- effects ----------------------------------------------------------------------------------------

    async def connect(
        self, host: Host, factory: Callable[[], asyncio.Protocol], address: str
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect a node to an address. Raises ConnectionRefusedError."""
        environment = self.environment
        target = self._host_at(address)
        self._numbers += 1
        end = Socket(host, self._numbers, factory, address)
        since = environment.now
        environment.after(environment.rng.choice((0, 1, 10, 100)), lambda: self._reach(end, target, since))
        try:
            await end.established
        except asyncio.CancelledError:
            end.open = False  # its carrier waits no longer
            raise
        assert end.protocol is not None
        return end, end.protocol

    def _reach(self, end: Socket, target: Host | None, since: int) -> None:
        environment = self.environment
        if not (end.alive and end.open):
            return
        if target is not None and (until := self.blocked_until(end.host, target)) > environment.now:
            if until - since > _CONNECT_TIMEOUT_MS:
                environment.after(since + _CONNECT_TIMEOUT_MS - environment.now, lambda: self._refuse(end))
            else:
                environment.after(until - environment.now, lambda: self._reach(end, target, since))
            return
        if target is None or target.core is None or environment.now < target.refuses_until:
            self._refuse(end)
            return
        self._numbers += 1
        other = Socket(target, self._numbers, target.socket, end.host.address)
        connection = SimulatedConnection(self, end, other)
        end.connection = other.connection = connection
        self.establish(connection)
        environment.counts["connections"] += 1
        environment.log(end.host.name, "connects", target.name)
        other.connected()

    def establish(self, connection: SimulatedConnection) -> None:
        """Begin a connection, and notify its first end."""
        self._connections[connection] = None
        connection.put(1, _CONNECTED)

    def _refuse(self, end: Socket) -> None:
        if end.alive and end.open and not end.established.done():
            self.environment.counts["refused connections"] += 1
            self.environment.log(end.host.name, "can't connect")
            end.established.set_exception(ConnectionRefusedError("nobody listens there"))

    def resolve(self, host: Host, host_name: str, answer: Callable[[list[str]], None]) -> None:
        """Resolve a name for a node."""
        environment = self.environment
        epoch = host.epoch
        matches = [other for other in self.hosts.values() if host_name.lower() in (other.name, other.address)]
        fails = any(environment.now < other.unresolved_until for other in matches)
        addresses = [] if fails else [other.address for other in matches]

        def answered() -> None:
            if host.epoch == epoch and host.core is not None:
                answer(addresses)

        environment.after(environment.rng.choice((0, 2, 50)), answered)

    def datagram(self, host: Host, address: str, port: int, data: bytes) -> None:
        """Send a datagram from a node."""
        environment = self.environment
        rng, faults_over = environment.rng, environment.faults_over
        target = self._host_at(address)
        lost = target is None or self.blocked_until(host, target) > environment.now
        if lost or (not faults_over and rng.random() < environment.plan.loss_probability):
            environment.counts["lost datagrams"] += 1
            return
        assert target is not None
        if self.capture:
            self.capture.datagram(environment.now, host.address, address, port, data)
        request = port == PING_PORT
        environment.after(
            rng.choice((0, 5) if faults_over else (0, 5, 900, 1_100)),
            lambda: target.datagram(data, host.address, _REPLY_PORT, request=request),
        )

    def _host_at(self, address: str) -> Host | None:
        return next((host for host in self.hosts.values() if host.address == address), None)

    # -- faults -----------------------------------------------------------------------------------------

    def partition(self, first: str, second: str, ms: int) -> None:
        """Let nothing pass between two nodes for a time."""
        self._partitions[frozenset((first, second))] = self.environment.now + ms

    def cut(self, host: Host, pick: int, late_ms: int) -> None:
        """Cut one of the connections of a node; one of its ends learns of it late."""
        candidates = [
            connection for connection in self._connections if any(end.host is host for end in connection.ends)
        ]
        exchanges = [(network, one) for network in self.joined for one in network.under_way(host)]
        if exchanges and pick % 2 == 0:
            network, exchange = exchanges[pick % len(exchanges)]
            network.cut(exchange)
            return
        if not candidates:
            return
        connection = candidates[pick % len(candidates)]
        other = connection.ends[1 - connection.side(host)].host
        self.environment.counts["connections cut"] += 1
        self.environment.log(host.name, "CUT", other.name)
        connection.cut((late_ms, 0) if self.environment.rng.random() < 0.5 else (0, late_ms))

    def crashed(self, host: Host) -> None:
        """End the connections of a node that goes down: the other ends learn of it, some late."""
        rng = self.environment.rng
        for connection in list(self._connections):
            end = connection.ends[connection.side(host)]
            if end.host is host and end.epoch == host.epoch:
                late = rng.choice((0, 0, 50, 5_000, 45_000))
                connection.cut((late, late))
        for network in self.joined:
            network.crashed(host)
