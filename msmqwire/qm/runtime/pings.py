"""The sockets of pings, [MS-MQQB] 2.1.2, and the gate before the public one.

A source address of UDP is easily forged, so an answer may go to a computer that has never asked. The gate
keeps answers from becoming a loop between servers, or a flood; the engine decides which datagrams are
requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Final, Protocol

from msmqwire.names.origins import LOOPBACK_ORIGIN, origin_of
from msmqwire.ping import is_ping
from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.endpoints import canonical, local_address
from msmqwire.service.logs import log

REPEAT_S: Final = 10.0
"""Seconds in which a repeated request counts as a copy: a cookie names one request."""
REMEMBERED_MAX: Final = 4096
_SECOND: Final = 1.0


class Arrived(Protocol):
    """Called with a datagram, its canonical address and port, and whether it came to the ping port."""

    def __call__(self, data: bytes, address: str, port: int, *, request: bool) -> None: ...


class PingGate:
    """Decides whether a datagram at the ping port may be answered; the owner supplies the time.

    Two servers that answer each other repeat the same two datagrams. So a copy of a datagram is not answered,
    however often it comes back.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._second_began = float("-inf")
        self._admitted = 0
        self._by_network: Counter[str] = Counter()  # no more entries than are admitted in a second
        self._seen: OrderedDict[tuple[str, int, bytes], float] = OrderedDict()  # newest last

    @property
    def remembered(self) -> int:
        """The number of datagrams remembered."""
        return len(self._seen)

    def admits(self, data: bytes, address: str, port: int, now: float) -> bool:
        """Return whether a datagram from a canonical address may be answered; `now` in seconds.

        A datagram that is not a ping packet is not counted: the engine does not answer it.
        """
        if not port:
            return False
        if not is_ping(data):
            return True
        seen, datagram = self._seen, (address, port, data)
        while seen and now - next(iter(seen.values())) >= REPEAT_S:
            seen.popitem(last=False)
        is_copy = datagram in seen
        if not is_copy and not self._is_within_limits(address, now):
            return False
        seen[datagram] = now
        seen.move_to_end(datagram)
        if len(seen) > REMEMBERED_MAX:
            seen.popitem(last=False)
        return not is_copy

    def _is_within_limits(self, address: str, now: float) -> bool:
        if now - self._second_began >= _SECOND:
            self._second_began, self._admitted = now, 0
            self._by_network.clear()
        network = _network_of(address)
        if (
            self._admitted >= self._limits.pings
            or self._by_network[network] >= self._limits.pings_per_network
        ):
            return False
        self._admitted += 1
        self._by_network[network] += 1
        return True


def _network_of(address: str) -> str:
    """Return the network whose answers are limited together: 24 bits of IPv4, 64 of IPv6, or the loopback."""
    origin = origin_of(address)
    return origin if ":" in address or origin == LOOPBACK_ORIGIN else address.rpartition(".")[0]


class PingPorts(Protocol):
    """The ping port, and the sender of requests: see `PingSockets`."""

    port: int

    async def listen(self, address: str, port: int) -> int: ...

    def stop_listening(self) -> None: ...

    def close(self) -> None: ...

    def answer(self, address: str, port: int, data: bytes) -> bool: ...

    async def request(self, address: str, port: int, data: bytes, listening: str) -> None: ...


class PingSockets:
    """The ping port, and the ports that requests are sent from.

    Args:
        arrived: called with each datagram.
    """

    def __init__(self, arrived: Arrived) -> None:
        self._arrived = arrived
        self._answering: asyncio.DatagramTransport | None = None
        self._requesting: dict[str, asyncio.DatagramTransport] = {}  # by the address that they are sent from
        self._opening = asyncio.Lock()
        self.port = 0
        """The ping port; 0 if no pings are answered."""

    async def listen(self, address: str, port: int) -> int:
        """Receive ping requests; return the port. Raises OSError."""
        self._answering = await self._open((address, port), at_ping_port=True)
        self.port = int(self._answering.get_extra_info("sockname")[1])
        return self.port

    def stop_listening(self) -> None:
        """Receive no more ping requests."""
        if self._answering is not None:
            self._answering.close()
            self._answering = None

    def close(self) -> None:
        """Close all sockets."""
        self.stop_listening()
        for transport in self._requesting.values():
            transport.close()

    async def _open(self, address: tuple[str, int], *, at_ping_port: bool) -> asyncio.DatagramTransport:
        protocol = partial(_Datagrams, self._arrived, at_ping_port=at_ping_port)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(protocol, local_addr=address)  # MQQB-2.1.2-03
        return transport

    def answer(self, address: str, port: int, data: bytes) -> bool:
        """Send a response from the ping port; return False if that is closed."""
        if self._answering is None:
            return False
        self._answering.sendto(data, (_as_family_of(self._answering, address), port))
        return True

    async def request(self, address: str, port: int, data: bytes, listening: str) -> None:
        """Send a request from a port that receives the response; `listening` is the address of sessions."""
        any_address = "::" if isinstance(ip_address(address), IPv6Address) else "0.0.0.0"
        local = local_address(listening, address) or (any_address, 0)
        try:
            async with self._opening:
                if local[0] not in self._requesting:
                    self._requesting[local[0]] = await self._open(local, at_ping_port=False)
        except OSError as exc:
            log.info("can't ping", extra={"peer": address, "error": str(exc)})
            return
        self._requesting[local[0]].sendto(data, (address, port))


class _Datagrams(asyncio.DatagramProtocol):
    """Datagrams to the ping port, or to a port that requests are sent from."""

    def __init__(self, arrived: Arrived, *, at_ping_port: bool) -> None:
        self._arrived, self._at_ping_port = arrived, at_ping_port

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._arrived(data, canonical(addr[0]), addr[1], request=self._at_ping_port)


def _as_family_of(transport: asyncio.DatagramTransport, address: str) -> str:
    """Return an address as the socket accepts it: an IPv4 address mapped if the socket is an IPv6 one."""
    is_ipv6 = ":" in transport.get_extra_info("sockname")[0]
    return f"::ffff:{address}" if is_ipv6 and ":" not in address else address
