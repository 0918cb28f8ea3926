"""TCP and UDP for a queue manager, [MS-MQQB] 2.1: what comes in is handed to the engine as it is."""

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
    """What others may take of this computer.

    Attributes:
        connections: TCP connections that others have opened, at most.
        connections_of_one: the same from one address.
        connect_s: seconds after which an attempt to connect is given up.
        close_s: seconds in which a peer has to take what was sent before its connection is closed.
        unwanted_bytes: bytes that are read from a peer in that time, at most: beyond, it is closed at once.
        unsent_bytes: bytes that wait for a peer to take them, at most: beyond, its connection is closed.
    """

    connections: int = 1000
    connections_of_one: int = 250
    connect_s: float = 20.0
    close_s: float = 5.0
    unwanted_bytes: int = 64 << 20
    unsent_bytes: int = 64 << 20


@dataclass(slots=True)
class Traffic:
    """What has gone over the network, for those who watch."""

    bytes_received: int = 0
    bytes_sent: int = 0
    accepted: int = 0
    refused: int = 0
    connected: int = 0
    connect_failed: int = 0
    datagrams_received: int = 0


@dataclass(frozen=True, slots=True)
class AddressOverrides:
    """How other computers are reached, where that is not by their names and TCP 1801.

    Attributes:
        port: TCP port of other queue managers.
        ping_port: UDP port of other queue managers.
        hosts: by name or address as in format names, in lower case: address, and port or None.
    """

    port: int = TCP_PORT
    ping_port: int = PING_PORT
    hosts: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)


class TcpNetwork:
    """The sockets of one queue manager.

    Attributes:
        traffic: counts.
        connections: those that are open, by number.
    """

    def __init__(
        self, driver: EngineDriver, *, limits: Limits | None = None, overrides: AddressOverrides | None = None
    ) -> None:
        self._driver, self._engine = driver, driver.core.engine
        self.limits, self._overrides = limits or Limits(), overrides or AddressOverrides()
        self.traffic = Traffic()
        self.connections: dict[int, Connection] = {}
        self._of_one: Counter[str] = Counter()
        self._dirty: dict[int, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._alive: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._listens_at = ""
        self._pings: asyncio.DatagramTransport | None = None
        self._requests: dict[str, asyncio.DatagramTransport] = {}  # by the address that they go out from
        self._requesting = asyncio.Lock()

    # -- listening ----------------------------------------------------------------------------------------

    async def listen(self, address: str, port: int) -> int:
        """Accept connections; gives the port, which the system chooses for 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self, None), address, port, backlog=512)
        self._servers.append(server)
        self._listens_at = address
        return int(server.sockets[0].getsockname()[1])

    async def answer_pings(self, address: str, port: int) -> int:
        """Receive ping requests; gives the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Pings(self, request=True), local_addr=(address, port)
        )
        self._pings = transport
        return int(transport.get_extra_info("sockname")[1])

    def stop_listening(self) -> None:
        """Take no more connections and ping requests."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        if self._pings is not None:
            self._pings.close()
            self._pings = None

    async def close(self) -> None:
        """End all connections, once their peers have what was sent, or after `Limits.close_s`."""
        self.stop_listening()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for transport in self._requests.values():
            transport.close()
        for connection in self._alive:
            connection.close()
        ends = [*tasks, *(connection.gone for connection in self._alive)]
        if ends:
            await asyncio.wait(ends, timeout=self.limits.close_s + 1)
        await asyncio.sleep(0)  # transports close their sockets in the next turn

    # -- what comes in ------------------------------------------------------------------------------------

    def accepted(self, connection: Connection) -> bool:
        """A connection has come in; False when there are too many."""
        limits, address = self.limits, connection.address
        count = sum(self._of_one.values())
        if count >= limits.connections or self._of_one[address] >= limits.connections_of_one:
            self.traffic.refused += 1
            log.warning("a connection is refused: there are too many", extra={"peer": address})
            return False
        self.traffic.accepted += 1
        self._of_one[address] += 1
        connection.number = self._engine.next_connection()
        self.connections[connection.number] = connection
        self._driver.call(self._engine.accepted, connection.number, address)
        log.debug("accepted", extra={"peer": address, "connection": connection.number})
        return True

    def received(self, connection: Connection, data: bytes) -> None:
        """Bytes have come."""
        self.traffic.bytes_received += len(data)
        self._driver.call(self._engine.received, connection.number, data)

    def made(self, connection: Connection) -> None:
        """A connection is there."""
        self._alive.add(connection)

    def lost(self, connection: Connection, reason: Exception | None) -> None:
        """A connection is gone."""
        self._alive.discard(connection)
        if connection.incoming:
            self._of_one[connection.address] -= 1
            if not self._of_one[connection.address]:
                del self._of_one[connection.address]
        if self.connections.pop(connection.number, None) is not None:
            self._dirty.pop(connection.number, None)
            self._driver.call(self._engine.disconnected, connection.number)
            told = {"peer": connection.address, "connection": connection.number, "reason": str(reason or "")}
            log.debug("connection gone", extra=told)

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """A datagram has come, to the ping port or as a response."""
        self.traffic.datagrams_received += 1
        engine = self._engine
        self._driver.call(lambda: engine.datagram(data, address, port, request=request))

    # -- what goes out: `engine_driver.Network` -----------------------------------------------------

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
        # Not by getaddrinfo of the loop: uvloop resolves in threads of its own, and its close waits for them.
        resolve = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.get_running_loop().run_in_executor(None, resolve)
        except (OSError, UnicodeError):
            return []
        return list(dict.fromkeys(str(one[4][0]) for one in found))

    def connect(self, connection: int, address: str, host: str) -> None:
        made = self.connections[connection] = Connection(self, connection)
        self._begin(self._connect(made, address, host))

    async def _connect(self, made: Connection, address: str, host: str) -> None:
        loop = asyncio.get_running_loop()
        number = made.number
        port = self._overrides.hosts.get(host.lower(), ("", None))[1] or self._overrides.port
        if number not in self.connections:
            return  # given up already
        try:
            async with asyncio.timeout(self.limits.connect_s):
                await loop.create_connection(
                    lambda: made, address, port, local_addr=self._own_address(address)
                )
        except (OSError, OverflowError, ValueError) as exc:
            if made.address:
                return  # it came at the last moment and was told; its end is told as well
            self.traffic.connect_failed += 1
            log.info("can't connect", extra={"peer": address, "port": port, "error": str(exc) or "no answer"})
            if self.connections.pop(number, None) is not None:
                self._driver.call(self._engine.connect_failed, number, _STATUS)

    def _own_address(self, address: str) -> tuple[str, int] | None:
        """On the loopback every address is one of its own computer: connect from the one listened at."""
        try:
            own, other = ip_address(self._listens_at), ip_address(address)
        except ValueError:
            return None
        both = own.is_loopback and other.is_loopback and own.version == other.version
        return (str(own), 0) if both else None

    def connected(self, connection: Connection) -> None:
        """A connection that was asked for is there."""
        self.traffic.connected += 1
        if connection.number not in self.connections:  # not wanted any more
            connection.close()
            return
        self._driver.call(self._engine.connected, connection.number)

    def send(self, connection: int, data: bytes) -> None:
        found = self.connections.get(connection)
        if found is not None:
            found.parts.append(data)
            self._dirty[connection] = found

    def flush(self) -> None:
        for connection in self._dirty.values():
            self.traffic.bytes_sent += connection.flush()
        self._dirty.clear()

    def disconnect(self, connection: int) -> None:
        found = self.connections.pop(connection, None)
        if found is not None:
            self._dirty.pop(connection, None)
            self.traffic.bytes_sent += found.flush()
            found.close()

    def send_datagram(self, address: str, port: int, data: bytes, *, request: bool) -> None:
        if request:
            self._begin(self._ping(address, data))
        elif self._pings is not None:
            self._pings.sendto(data, (_as_family_of(self._pings, address), port))

    async def _ping(self, address: str, data: bytes) -> None:
        any_address = "::" if isinstance(ip_address(address), IPv6Address) else "0.0.0.0"
        local = self._own_address(address) or (any_address, 0)
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
    """One TCP connection.

    Attributes:
        number: what the engine calls it; 0 for one that was refused.
        address: of the peer.
        incoming: whether the peer opened it, and it was accepted.
        parts: what is to be sent at the end of this turn.
        gone: done when it is closed.
    """

    def __init__(self, network: TcpNetwork, number: int | None) -> None:
        self._network = network
        self.number = number or 0
        self._asked_for = number is not None
        self.address = ""
        self.incoming = False
        self.parts: list[bytes] = []
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._unwanted = 0  # bytes that came after the end
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self._network.made(self)
        peer = transport.get_extra_info("peername")
        if peer is None:  # it has been reset already
            transport.abort()
            return
        self.address = _plain(peer[0])
        found = transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._asked_for:
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
        """Pass what is to be sent to the system; return the number of bytes."""
        parts, self.parts = self.parts, []
        transport = self._transport
        if transport is None or not parts or self._deadline is not None:
            return 0
        data = b"".join(parts)
        transport.write(data)
        if transport.get_write_buffer_size() > self._network.limits.unsent_bytes:
            log.warning(
                "a peer does not take what is sent: its connection is ended", extra={"peer": self.address}
            )
            transport.abort()
        return len(data)

    def close(self) -> None:
        """End the connection once the peer has what was sent, and has ended it as well.

        What it still sends is read: were the socket closed before, the system would reset the connection, and
        what the peer has not read would be lost.
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
        self._network.datagram(data, _plain(addr[0]), addr[1], request=self._request)


def _plain(address: str) -> str:
    """An address without zone, an IPv4 one in its own form."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(found)


def _as_family_of(transport: asyncio.DatagramTransport, address: str) -> str:
    """An address as a socket takes it: an IPv4 one mapped where the socket is one of IPv6."""
    is_ipv6 = ":" in transport.get_extra_info("sockname")[0]
    return f"::ffff:{address}" if is_ipv6 and ":" not in address else address
