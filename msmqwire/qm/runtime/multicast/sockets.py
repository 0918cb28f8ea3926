"""The sockets of PGM: raw ones of IP protocol 113, or of UDP.

A socket of a group is bound to the address of the group, so that the system selects its packets, and every
server of one computer gets them. Packets to one computer are handled differently:

- With raw sockets every server gets a copy of each NAK, and answers the NAKs for its own sessions.
- A UDP port belongs to one socket. The first server of a computer gets the agreed port, every other server a
  separate one. A source sends from the port at which it takes NAKs, and receivers send NAKs to that port as
  well. Receivers of other implementations still reach it by the NAKs that they multicast.
"""

from __future__ import annotations

import errno
import socket
import sys
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Final, NamedTuple

from msmqwire.pgm.packets import PACKET_SIZE_MAX
from msmqwire.qm.runtime.multicast.options import PgmMode, PgmOptions

PGM: Final = 113
"""The number of PGM among the protocols of IP: RFC 3208 section 8."""
SECOND_UDP_PORT: Final = 3056
"""The port to which other implementations send in UDP; packets to it are accepted."""
_RECEIVE_BUFFER: Final = 4 << 20  # bytes; the system may give less
_IP_MULTICAST_ALL: Final = 49  # of Linux: not in Python's socket module before 3.14
_IP_HEADER_MIN: Final = 20
_UDP_HEADER: Final = 8
_WORD: Final = 4


class Datagram(NamedTuple):
    """A packet of PGM with the address and the UDP port, 0 in raw mode, that it came from."""

    data: bytes
    sender: IPv4Address
    port: int


def new_socket(kind: int, protocol: int) -> socket.socket:
    """Return a non-blocking socket of IPv4. Raises OSError."""
    made = socket.socket(socket.AF_INET, kind, protocol)
    made.setblocking(False)
    return made


class Sender:
    """The socket of one interface for outgoing packets."""

    def __init__(self, made: socket.socket, port: int) -> None:
        self.socket, self._group_port, self._ttl = made, port, 0

    def multicast(self, data: bytes, group: IPv4Address, ttl: int) -> None:
        """Send to a group. Raises OSError."""
        if ttl != self._ttl:
            self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
            self._ttl = ttl
        self.unicast(data, group, self._group_port)

    def unicast(self, data: bytes, address: IPv4Address, port: int) -> None:
        """Send to an address. Raises OSError; packets are lost if the system has no room for them."""
        with suppress(
            BlockingIOError, InterruptedError
        ):  # as if the network had lost it: the receivers request it again
            self.socket.sendto(data, (str(address), port))


class Sockets:
    """Opens the sockets of PGM in one mode.

    Attributes:
        raw: whether packets go in IP and not in UDP.
        headers: the octets of IP and UDP before each packet.
    """

    def __init__(self, options: PgmOptions) -> None:
        """Choose the mode. Raises OSError if raw sockets are requested and not permitted."""
        self._options = options
        self.raw = options.mode is not PgmMode.UDP and _may_be_raw(or_fail=options.mode is PgmMode.RAW)
        self.headers = _IP_HEADER_MIN if self.raw else _IP_HEADER_MIN + _UDP_HEADER
        self.multicast_port = 0 if self.raw else options.multicast_port
        self.unicast_port = 0 if self.raw else options.unicast_port

    def local_address(self, group: IPv4Address) -> IPv4Address:
        """Return the source address of packets to a group. Raises OSError if there is no route."""
        if self._options.interface is not None:
            return self._options.interface
        with new_socket(socket.SOCK_DGRAM, 0) as probe:
            probe.connect((str(group), SECOND_UDP_PORT))  # sends nothing
            return IPv4Address(probe.getsockname()[0])

    def of_group(self, group: IPv4Address, local: IPv4Address) -> list[socket.socket]:
        """Return sockets that get the packets sent to a group. Raises OSError."""
        ports = (0,) if self.raw else tuple(dict.fromkeys((self.multicast_port, SECOND_UDP_PORT)))
        made: list[socket.socket] = []
        try:
            for port in ports:
                made.append(self._new())
                _join(made[-1], group, port, local)
        except OSError:
            close(made)
            raise
        return made

    def of_source(self, local: IPv4Address) -> tuple[Sender, list[socket.socket]]:
        """Return the socket for outgoing packets, and all sockets for answers. Raises OSError."""
        made = [self._new()]
        try:
            _bind(made[0], local, self.unicast_port, or_any=not self.raw)
            made[0].setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, local.packed)
            made[0].setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        except OSError:
            close(made)
            raise
        if not self.raw and made[0].getsockname()[1] != SECOND_UDP_PORT:
            second = self._new()
            try:
                _bind(second, local, SECOND_UDP_PORT, or_any=False)
                made.append(second)
            except OSError:  # another server of this computer has it
                second.close()
        return Sender(made[0], self.multicast_port), made

    def _new(self) -> socket.socket:
        return new_socket(socket.SOCK_RAW, PGM) if self.raw else new_socket(socket.SOCK_DGRAM, 0)

    def read(self, source: socket.socket) -> Datagram | None:
        """Return the next packet; None if there is none. Raises OSError."""
        while True:
            try:
                data, (host, port) = source.recvfrom(PACKET_SIZE_MAX)
            except (BlockingIOError, InterruptedError):
                return None
            if not self.raw:
                return Datagram(data, IPv4Address(host), port)
            content = _without_ip_header(data)
            if content is not None:
                return Datagram(content, IPv4Address(host), 0)


def close(sockets: list[socket.socket]) -> None:
    """Close sockets."""
    for one in sockets:
        one.close()


def _may_be_raw(*, or_fail: bool) -> bool:
    try:
        new_socket(socket.SOCK_RAW, PGM).close()
    except OSError:
        if or_fail:
            raise
        return False
    return True


def _join(made: socket.socket, group: IPv4Address, port: int, local: IPv4Address) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform.startswith("linux"):
        # Receive only from the interface on which this socket has joined.
        made.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
    elif hasattr(socket, "SO_REUSEPORT"):
        # Other systems need this option to share a port. On Linux it would keep out servers of other users.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
    made.bind((str(group), port))
    made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group.packed + local.packed)


def _bind(made: socket.socket, local: IPv4Address, port: int, *, or_any: bool) -> None:
    """Bind to an unshared port: with several sockets on one port, the wrong one may get a NAK."""
    try:
        made.bind((str(local), port))
    except OSError as exc:
        if not or_any or exc.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        made.bind((str(local), 0))


def _without_ip_header(data: bytes) -> bytes | None:
    """Return the content of an IP packet; None if its header is incomplete."""
    size = (data[0] & 0x0F) * _WORD if data else 0
    return data[size:] if _IP_HEADER_MIN <= size <= len(data) else None
