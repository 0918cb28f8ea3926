"""TCP and UDP for a queue manager, [MS-MQQB] 2.1: passes all bytes to the engine unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from ipaddress import ip_address
from typing import Final

from msmqwire.ping import PING_PORT
from msmqwire.qm.model.effects import Connect, Disconnect, Resolve, Send, SendDatagram
from msmqwire.qm.model.enumerations import ConnectionStatus
from msmqwire.qm.model.refusals import MEMORY
from msmqwire.qm.runtime.addresses import AddressOverrides, no_connection
from msmqwire.qm.runtime.connection import SessionConnection
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.limits import Limits, Traffic
from msmqwire.qm.runtime.pings import PingGate, PingPorts, PingSockets
from msmqwire.qm.runtime.resolver import NameResolver, Resolver
from msmqwire.service.carrier import Performers
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.endpoints import local_address
from msmqwire.service.listener import Listener
from msmqwire.service.logs import log
from msmqwire.service.partial_packets import PartialPackets

_STATUS: Final = ConnectionStatus.SOCKET_CONNECT_FAILURE


class TcpNetwork:
    """The sockets of one queue manager.

    Attributes:
        limits: the limits on peers. traffic: counters.
        connections: open connections by number.
        partial_packets: the bytes of incomplete packets.
        open_connections: open connections of all transports of this process.
        resolver: resolves host names.
    """

    def __init__(
        self,
        driver: EngineDriver,
        *,
        limits: Limits | None = None,
        overrides: AddressOverrides | None = None,
        resolver: NameResolver | None = None,
        pings: PingPorts | None = None,
    ) -> None:
        """Make no socket yet; a simulator passes its own `resolver` and `pings`."""
        self._driver, self._engine = driver, driver.core.binary
        self.limits, self._overrides = limits or Limits(), overrides or AddressOverrides()
        self.traffic = Traffic()
        self.connections: dict[int, SessionConnection] = {}
        driver.flush_by(self.flush)
        self._unflushed: dict[int, SessionConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._outgoing: set[SessionConnection] = set()  # established ones
        self._connecting = 0
        self.open_connections = OpenConnections()
        self.open_connections.add(self._count)
        most = self.limits.listener(
            self.limits.connections, self.limits.connections_per_peer, self.limits.partial_bytes
        )
        self._listener: Listener[SessionConnection] = Listener(
            "MSMQ", most, self.traffic, self.open_connections, self._too_much_held, driver.is_known
        )
        self.partial_packets: PartialPackets[SessionConnection] = self._listener.held
        self._listen_address = ""
        self.resolver: NameResolver = resolver or Resolver(self.limits)
        self._ping_gate = PingGate(self.limits)
        self._pings: PingPorts = pings or PingSockets(self.datagram)

    # -- listening ----------------------------------------------------------------------------------------

    async def listen(self, address: str, port: int) -> int:
        """Accept connections; return the port, which the system chooses for 0. Raises OSError."""
        port = await self._listener.bind_at(address, port, lambda: SessionConnection(self, None))
        self._listener.accept()
        self._listen_address = address
        return port

    async def answer_pings(self, address: str, port: int) -> int:
        """Receive ping requests; return the port. Raises OSError."""
        return await self._pings.listen(address, port)

    @property
    def is_listening(self) -> bool:
        """Whether connections are accepted."""
        return self._listener.is_listening

    def stop_listening(self) -> None:
        """Accept no more connections and ping requests."""
        self._listener.stop_listening()
        self._pings.stop_listening()

    def abort(self) -> None:
        """End all connections at once."""
        self._listener.abort()
        for connection in self._outgoing:
            connection.abort()

    async def finish(self) -> None:
        """Nothing to wait for: unacknowledged messages are sent again."""

    async def close(self) -> None:
        """Close all connections once their peers have read all sent data, or after `Limits.close_s`."""
        self.stop_listening()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        self._pings.close()
        for connection in self._outgoing:
            connection.close()
        ends = [*tasks, *(connection.gone for connection in self._outgoing)]
        others = asyncio.wait(ends, timeout=self.limits.close_s + 1) if ends else asyncio.sleep(0)
        await asyncio.gather(self._listener.close(), others)
        await asyncio.sleep(0)  # transports close their sockets in the next turn

    # -- incoming -----------------------------------------------------------------------------------------

    def accepted(self, connection: SessionConnection) -> bool:
        """Register an incoming connection; return False if there are too many."""
        if not self._listener.admit(connection):
            return False
        connection.number = self._engine.next_connection()
        self.connections[connection.number] = connection
        self._driver.notify(self._engine.accepted, connection.number, connection.address)
        log.debug("accepted", extra={"peer": connection.address, "connection": connection.number})
        return True

    def received(self, connection: SessionConnection, data: bytes) -> None:
        """Pass received bytes to the engine, and end connections that leave too many packets incomplete."""
        self.traffic.bytes_received += len(data)
        # Messages of several senders share one sync of the disk.
        self._driver.notify(self._received, connection, data, alone=len(self.connections) == 1)
        if self.partial_packets.is_exceeded:
            self._listener.evict(self._driver.loop.time())

    def _received(self, connection: SessionConnection, data: bytes) -> None:
        engine, number = self._engine, connection.number
        engine.received(number, data)
        if connection.is_silent and engine.has_begun(number):
            connection.is_silent = False
            self._listener.spoke(connection)
        now = self._driver.loop.time()
        self.partial_packets.update(connection, engine.buffered(number), now, received=len(data))

    def _too_much_held(self, connection: SessionConnection) -> None:
        """Follow the end of a connection, of either direction, whose packet is incomplete."""
        self.traffic.partial_closed += 1
        self._driver.trace_refused(MEMORY, connection.address, "too much of incomplete packets")
        self._forget(connection, "too much of incomplete packets")

    def held(self, connection: SessionConnection) -> int:
        """Return the bytes of an incomplete packet of a connection."""
        return self._engine.buffered(connection.number)

    def lost(self, connection: SessionConnection, reason: Exception | None) -> None:
        """Unregister a connection that has ended."""
        self._outgoing.discard(connection)
        if connection.incoming:
            self._listener.remove(connection)
        self._forget(connection, str(reason or ""))

    def _forget(self, connection: SessionConnection, reason: str) -> None:
        """Report the end of a connection to the engine, unless the engine has ended it."""
        if self.connections.pop(connection.number, None) is not None:
            self._unflushed.pop(connection.number, None)
            self.partial_packets.forget(connection)
            self._driver.notify(self._engine.disconnected, connection.number)
            details = {"peer": connection.address, "connection": connection.number, "reason": reason}
            log.debug("connection gone", extra=details)

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """Pass a datagram to the engine: a ping request, or a response to one.

        A datagram from a ping port is never a request: an answer would be taken for a request there, and
        answered.
        """
        self.traffic.datagrams_received += 1
        if request and (
            port in (PING_PORT, self._overrides.ping_port, self._pings.port)
            or not self._ping_gate.admits(data, address, port, self._driver.loop.time())
        ):
            return
        engine = self._engine
        self._driver.notify(lambda: engine.datagram(data, address, port, request=request))

    # -- outgoing: `Carrier` --------------------------------------------------------------------------------

    @property
    def performers(self) -> Performers:
        return {
            Resolve: self.resolve,
            Connect: self.connect,
            Send: self.send,
            Disconnect: self.disconnect,
            SendDatagram: self.send_datagram,
        }

    def resolve(self, effect: Resolve) -> None:
        """Carry out `Resolve`."""
        request, host, local = effect

        def resolved(addresses: list[str]) -> None:
            if not addresses:
                log.warning("the host has no address", extra={"host": host})
            self._driver.notify(self._engine.resolved, request, addresses)

        name = self._overrides.hosts.get(host.lower(), (host, None))[0]
        try:
            address = str(ip_address(name))
        except ValueError:
            self.resolver.resolve(name, resolved, local=local)
        else:
            self._driver.loop.call_soon(resolved, [address])

    def connect(self, effect: Connect) -> None:
        """Carry out `Connect`."""
        connection, address, host = effect
        outgoing = self.connections[connection] = SessionConnection(self, connection)
        self._begin(self._connect(outgoing, address, host))

    async def _connect(self, connection: SessionConnection, address: str, host: str) -> None:
        loop = self._driver.loop
        number = connection.number
        port = self._overrides.hosts.get(host.lower(), ("", None))[1] or self._overrides.port
        if number not in self.connections:
            return  # the engine has given it up
        try:
            self._check_descriptors()
            self._connecting += 1
            try:
                async with asyncio.timeout(self.limits.connect_s):
                    await loop.create_connection(
                        lambda: connection, address, port,
                        local_addr=local_address(self._listen_address, address),
                    )  # fmt: skip
            finally:
                self._connecting -= 1
        except (OSError, OverflowError, ValueError) as exc:
            if connection.address:
                return  # established at the last moment; the engine is informed of it and of its end
            self.traffic.connect_failed += 1
            log.info("can't connect", extra={"peer": address, "port": port, "error": str(exc) or "no answer"})
            if self.connections.pop(number, None) is not None:
                why = no_connection(exc, host, port, address)
                self._driver.notify(self._engine.connect_failed, number, _STATUS, why)

    def _check_descriptors(self) -> None:
        """Raise OSError if no descriptor may be used for one more outgoing connection."""
        if not self.open_connections.allows_outgoing():
            raise OSError("too few file descriptors")

    def _count(self) -> tuple[int, int]:
        """Return the number of outgoing connections; the listener counts incoming ones."""
        return 0, len(self._outgoing) + self._connecting

    def connected(self, connection: SessionConnection) -> None:
        """Inform the engine that an outgoing connection is established."""
        self.traffic.connected += 1
        self._outgoing.add(connection)
        if connection.number not in self.connections:  # the engine has given it up
            connection.close()
            return
        self._driver.notify(self._engine.connected, connection.number)

    def send(self, effect: Send) -> None:
        """Carry out `Send`, at the end of the turn."""
        connection, data = effect
        target = self.connections.get(connection)
        if target is not None:
            target.unsent.append(data)
            self._unflushed[connection] = target

    def flush(self) -> None:
        """Write the bytes sent by the effects of this turn: see `Driver.flush_by`."""
        for connection in self._unflushed.values():
            self.traffic.bytes_sent += connection.flush()
        self._unflushed.clear()

    def disconnect(self, effect: Disconnect) -> None:
        """Carry out `Disconnect`."""
        connection = effect.connection
        ended = self.connections.pop(connection, None)
        if ended is not None:
            self._unflushed.pop(connection, None)
            self.partial_packets.forget(ended)
            self.traffic.bytes_sent += ended.flush()
            ended.close()

    def send_datagram(self, effect: SendDatagram) -> None:
        """Carry out `SendDatagram`."""
        address, port, data, request = effect
        if request:
            ping_port = self._overrides.ping_port
            self._begin(self._pings.request(address, ping_port, data, self._listen_address))
        elif self._pings.answer(address, port, data):
            self.traffic.pings_answered += 1

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._driver.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
