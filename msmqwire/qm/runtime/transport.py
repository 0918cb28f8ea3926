"""TCP and UDP for a queue manager, [MS-MQQB] 2.1: passes what arrives to the engine unchanged."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Final, cast

from msmqwire.ping import PING_PORT
from msmqwire.qm.model.enumerations import ConnectionStatus
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.logs import log

TCP_PORT: Final = 1801
_STATUS: Final = ConnectionStatus.SOCKET_CONNECT_FAILURE


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the resources that peers may use.

    Attributes:
        connections: TCP connections opened by peers.
        connections_per_peer: the same, from one address.
        connect_s: seconds after which an attempt to connect is given up.
        close_s: seconds that a peer has to read what was sent before its connection is closed.
        unwanted_bytes: bytes that a peer may send in that time before its connection is closed at once.
        unsent_bytes: bytes that may wait for a peer to read them before its connection is closed.
    """

    connections: int = 1000
    connections_per_peer: int = 250
    connect_s: float = 20.0
    close_s: float = 5.0
    unwanted_bytes: int = 64 << 20
    unsent_bytes: int = 64 << 20


@dataclass(slots=True)
class Traffic:
    """Counters of network traffic."""

    bytes_received: int = 0
    bytes_sent: int = 0
    accepted: int = 0
    refused: int = 0
    connected: int = 0
    connect_failed: int = 0
    datagrams_received: int = 0


@dataclass(frozen=True, slots=True)
class AddressOverrides:
    """How to reach computers that are not at the address of their name and TCP 1801.

    Attributes:
        port: TCP port of other queue managers.
        ping_port: UDP port of other queue managers.
        hosts: by name or address as in format names, in lower case: an address, and a port or None.
    """

    port: int = TCP_PORT
    ping_port: int = PING_PORT
    hosts: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)

    @property
    def known_hosts(self) -> set[str]:
        """The names of `hosts`, and the addresses where they are."""
        return {*self.hosts, *(address for address, _ in self.hosts.values())}


class TcpNetwork:
    """The sockets of one queue manager.

    Attributes:
        traffic: counters.
        connections: open connections by number.
    """

    def __init__(
        self, driver: EngineDriver, *, limits: Limits | None = None, overrides: AddressOverrides | None = None
    ) -> None:
        self._driver, self._engine = driver, driver.core.binary
        self.limits, self._overrides = limits or Limits(), overrides or AddressOverrides()
        self.traffic = Traffic()
        self.connections: dict[int, Connection] = {}
        self._accepted_from: Counter[str] = Counter()
        self._unflushed: dict[int, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._established: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._listen_address = ""
        self._pings: asyncio.DatagramTransport | None = None
        self._requests: dict[str, asyncio.DatagramTransport] = {}  # by the address that they go out from
        self._requesting = asyncio.Lock()

    # -- listening ----------------------------------------------------------------------------------------

    async def listen(self, address: str, port: int) -> int:
        """Accept connections; return the port, which the system chooses for 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self, None), address, port, backlog=512)
        self._servers.append(server)
        self._listen_address = address
        return int(server.sockets[0].getsockname()[1])

    async def answer_pings(self, address: str, port: int) -> int:
        """Receive ping requests; return the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Pings(self, request=True), local_addr=(address, port)
        )
        self._pings = transport
        return int(transport.get_extra_info("sockname")[1])

    def stop_listening(self) -> None:
        """Accept no more connections and ping requests."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        if self._pings is not None:
            self._pings.close()
            self._pings = None

    async def close(self) -> None:
        """Close all connections once their peers have read what was sent, or after `Limits.close_s`."""
        self.stop_listening()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for transport in self._requests.values():
            transport.close()
        for connection in self._established:
            connection.close()
        ends = [*tasks, *(connection.gone for connection in self._established)]
        if ends:
            await asyncio.wait(ends, timeout=self.limits.close_s + 1)
        await asyncio.sleep(0)  # transports close their sockets in the next turn

    # -- incoming -----------------------------------------------------------------------------------------

    def accepted(self, connection: Connection) -> bool:
        """Register an incoming connection; return False if there are too many."""
        limits, address = self.limits, connection.address
        count = sum(self._accepted_from.values())
        if count >= limits.connections or self._accepted_from[address] >= limits.connections_per_peer:
            self.traffic.refused += 1
            log.warning("a connection is refused: there are too many", extra={"peer": address})
            return False
        self.traffic.accepted += 1
        self._accepted_from[address] += 1
        connection.number = self._engine.next_connection()
        self.connections[connection.number] = connection
        self._driver.call(self._engine.accepted, connection.number, address)
        log.debug("accepted", extra={"peer": address, "connection": connection.number})
        return True

    def received(self, connection: Connection, data: bytes) -> None:
        """Pass received bytes to the engine."""
        self.traffic.bytes_received += len(data)
        self._driver.call(self._engine.received, connection.number, data)

    def established(self, connection: Connection) -> None:
        """Register a connection of either direction."""
        self._established.add(connection)

    def lost(self, connection: Connection, reason: Exception | None) -> None:
        """Unregister a connection that has ended."""
        self._established.discard(connection)
        if connection.incoming:
            self._accepted_from[connection.address] -= 1
            if not self._accepted_from[connection.address]:
                del self._accepted_from[connection.address]
        if self.connections.pop(connection.number, None) is not None:
            self._unflushed.pop(connection.number, None)
            self._driver.call(self._engine.disconnected, connection.number)
            details = {
                "peer": connection.address,
                "connection": connection.number,
                "reason": str(reason or ""),
            }
            log.debug("connection gone", extra=details)

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """Pass a datagram to the engine: a ping request, or a response to one."""
        self.traffic.datagrams_received += 1
        engine = self._engine
        self._driver.call(lambda: engine.datagram(data, address, port, request=request))

    # -- outgoing: `engine_driver.Network` ----------------------------------------------------------------

    def resolve(self, request: int, host: str) -> None:
        self._begin(self._resolve(request, host))

    async def _resolve(self, request: int, host: str) -> None:
        addresses = await self._addresses(host)
        if not addresses:
            log.warning("the host has no address", extra={"host": host})
        self._driver.call(self._engine.resolved, request, addresses)

    async def _addresses(self, host: str) -> list[str]:
        name = self._overrides.hosts.get(host.lower(), (host, None))[0]
        try:
            return [str(ip_address(name))]
        except ValueError:
            pass
        # Not by the getaddrinfo of the loop: uvloop runs it on its own threads, and its close waits for them.
        resolve = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
        try:
            results = await asyncio.get_running_loop().run_in_executor(None, resolve)
        except (OSError, UnicodeError):
            return []
        return list(dict.fromkeys(str(socket_address[0]) for *_, socket_address in results))

    def connect(self, connection: int, address: str, host: str) -> None:
        outgoing = self.connections[connection] = Connection(self, connection)
        self._begin(self._connect(outgoing, address, host))

    async def _connect(self, connection: Connection, address: str, host: str) -> None:
        loop = asyncio.get_running_loop()
        number = connection.number
        port = self._overrides.hosts.get(host.lower(), ("", None))[1] or self._overrides.port
        if number not in self.connections:
            return  # the engine has given it up
        try:
            async with asyncio.timeout(self.limits.connect_s):
                await loop.create_connection(
                    lambda: connection, address, port, local_addr=self._local_address(address)
                )
        except (OSError, OverflowError, ValueError) as exc:
            if connection.address:
                return  # established at the last moment; the engine is informed of it and of its end
            self.traffic.connect_failed += 1
            log.info("can't connect", extra={"peer": address, "port": port, "error": str(exc) or "no answer"})
            if self.connections.pop(number, None) is not None:
                self._driver.call(self._engine.connect_failed, number, _STATUS)

    def _local_address(self, address: str) -> tuple[str, int] | None:
        """Return the local address to connect from: on the loopback the listening one, else None for any."""
        try:
            local, remote = ip_address(self._listen_address), ip_address(address)
        except ValueError:
            return None
        is_loopback = local.is_loopback and remote.is_loopback and local.version == remote.version
        return (str(local), 0) if is_loopback else None

    def connected(self, connection: Connection) -> None:
        """Inform the engine that an outgoing connection is established."""
        self.traffic.connected += 1
        if connection.number not in self.connections:  # the engine has given it up
            connection.close()
            return
        self._driver.call(self._engine.connected, connection.number)

    def send(self, connection: int, data: bytes) -> None:
        target = self.connections.get(connection)
        if target is not None:
            target.unsent.append(data)
            self._unflushed[connection] = target

    def flush(self) -> None:
        for connection in self._unflushed.values():
            self.traffic.bytes_sent += connection.flush()
        self._unflushed.clear()

    def disconnect(self, connection: int) -> None:
        ended = self.connections.pop(connection, None)
        if ended is not None:
            self._unflushed.pop(connection, None)
            self.traffic.bytes_sent += ended.flush()
            ended.close()

    def send_datagram(self, address: str, port: int, data: bytes, *, request: bool) -> None:
        if request:
            self._begin(self._ping(address, data))
        elif self._pings is not None:
            self._pings.sendto(data, (_as_family_of(self._pings, address), port))

    async def _ping(self, address: str, data: bytes) -> None:
        any_address = "::" if isinstance(ip_address(address), IPv6Address) else "0.0.0.0"
        local = self._local_address(address) or (any_address, 0)
        try:
            async with self._requesting:
                if local[0] not in self._requests:
                    self._requests[local[0]], _ = await asyncio.get_running_loop().create_datagram_endpoint(
                        lambda: _Pings(self, request=False), local_addr=local
                    )
        except OSError as exc:
            log.info("can't ping", extra={"peer": address, "error": str(exc)})
            return
        self._requests[local[0]].sendto(data, (address, self._overrides.ping_port))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Connection(asyncio.Protocol):
    """A TCP connection.

    Attributes:
        number: its number in the engine; 0 if it was refused.
        address: address of the peer; empty until it is established.
        incoming: whether the peer opened it, and it was accepted.
        unsent: data to be sent at the end of this turn.
        gone: done when it is closed.
    """

    def __init__(self, network: TcpNetwork, number: int | None) -> None:
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
        self.address = _canonical(peer[0])
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
        if self._unwanted > self._network.limits.unwanted_bytes and self._transport is not None:
            self._transport.abort()

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


class _Pings(asyncio.DatagramProtocol):
    """Datagrams to the ping port, or to the port that requests go out from."""

    def __init__(self, network: TcpNetwork, *, request: bool) -> None:
        self._network, self._request = network, request

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._network.datagram(data, _canonical(addr[0]), addr[1], request=self._request)


def _canonical(address: str) -> str:
    """Return an address without its zone, and a mapped IPv4 address in dotted form."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)


def _as_family_of(transport: asyncio.DatagramTransport, address: str) -> str:
    """Return an address as the socket accepts it: an IPv4 address mapped if the socket is an IPv6 one."""
    is_ipv6 = ":" in transport.get_extra_info("sockname")[0]
    return f"::ffff:{address}" if is_ipv6 and ":" not in address else address
