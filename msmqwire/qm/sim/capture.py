"""The traffic of a run as a capture file: pcap with synthetic Ethernet, IPv4, TCP and UDP headers."""

from __future__ import annotations

from ipaddress import IPv4Address
from struct import Struct
from typing import BinaryIO, Final

from msmqwire.capture.writing import pcap_header, pcap_record
from msmqwire.ping import PING_PORT
from msmqwire.qm.sim.plan import START_UTC

_ETHERNET_HEADER: Final = bytes.fromhex("020000000002 020000000001 0800")
_IP_HEADER: Final = Struct(">BBHHHBBH4s4s")
_TCP_HEADER: Final = Struct(">HHIIBBHHH")
_UDP_HEADER: Final = Struct(">HHHH")
_PSEUDO_HEADER: Final = Struct(">4s4sBBH")
_PROTOCOL_TCP, _PROTOCOL_UDP = 6, 17
_FIN, _SYN, _PSH, _ACK = 0x01, 0x02, 0x08, 0x10
_MSS: Final = 1460
_FIRST_CLIENT_PORT: Final = 49152
_CLIENT_PORTS: Final = 16000
SERVER_PORT: Final = 1801


class Capture:
    """A pcap file with the frames that a network would have carried.

    All times are milliseconds since the start of the run.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._connections = 0
        file.write(pcap_header())

    def connection(
        self, now: int, client: str, server: str, server_port: int = SERVER_PORT
    ) -> CapturedConnection:
        """Write the handshake of a new connection between two addresses."""
        self._connections += 1
        port = _FIRST_CLIENT_PORT + self._connections % _CLIENT_PORTS
        return CapturedConnection(self, now, client, server, (port, server_port))

    def datagram(self, now: int, source: str, target: str, port: int, data: bytes) -> None:
        """Write a UDP datagram, to the ping port or from it."""
        ports = (_FIRST_CLIENT_PORT, PING_PORT) if port == PING_PORT else (PING_PORT, port)
        addresses = IPv4Address(source).packed, IPv4Address(target).packed
        size = _UDP_HEADER.size + len(data)
        pseudo_header = _PSEUDO_HEADER.pack(*addresses, 0, _PROTOCOL_UDP, size)
        checksum = _checksum(pseudo_header + _UDP_HEADER.pack(*ports, size, 0) + data) or 0xFFFF
        self.frame(now, addresses, _PROTOCOL_UDP, _UDP_HEADER.pack(*ports, size, checksum) + data)

    def frame(self, now: int, addresses: tuple[bytes, bytes], protocol: int, payload: bytes) -> None:
        """Write a frame that carries an IP payload."""
        header = _IP_HEADER.pack(0x45, 0, _IP_HEADER.size + len(payload), 0, 0, 64, protocol, 0, *addresses)
        header = header[:10] + _checksum(header).to_bytes(2, "big") + header[12:]
        data = _ETHERNET_HEADER + header + payload
        time_ns = START_UTC * 1_000_000_000 + now * 1_000_000
        self._file.write(pcap_record(time_ns, data, len(data)))


class CapturedConnection:
    """A TCP connection in a capture."""

    def __init__(self, capture: Capture, now: int, client: str, server: str, ports: tuple[int, int]) -> None:
        self._capture = capture
        self._addresses = IPv4Address(client).packed, IPv4Address(server).packed
        self._ports = ports
        self._next_sequence = [0, 0]  # by side: 0 is the client's
        self._closed = False
        self._segment(now, 0, b"", _SYN)
        self._segment(now, 1, b"", _SYN | _ACK)
        self._segment(now, 0, b"", _ACK)

    def data(self, now: int, side: int, data: bytes) -> None:
        """Write bytes that arrived from one side."""
        for start in range(0, len(data), _MSS):
            self._segment(now, side, data[start : start + _MSS], _PSH | _ACK)

    def close(self, now: int) -> None:
        """Write the end of the connection, once."""
        if not self._closed:
            self._closed = True
            self._segment(now, 0, b"", _FIN | _ACK)
            self._segment(now, 1, b"", _FIN | _ACK)

    def _segment(self, now: int, side: int, payload: bytes, flags: int) -> None:
        source, target = self._addresses if side == 0 else self._addresses[::-1]
        ports = self._ports if side == 0 else self._ports[::-1]
        acknowledged = self._next_sequence[1 - side] if flags & _ACK else 0
        fields = (*ports, self._next_sequence[side], acknowledged, 0x50, flags, 0xFFFF)
        pseudo_header = _PSEUDO_HEADER.pack(source, target, 0, _PROTOCOL_TCP, _TCP_HEADER.size + len(payload))
        checksum = _checksum(pseudo_header + _TCP_HEADER.pack(*fields, 0, 0) + payload)
        segment = _TCP_HEADER.pack(*fields, checksum, 0) + payload
        self._capture.frame(now, (source, target), _PROTOCOL_TCP, segment)
        self._next_sequence[side] += len(payload) + (1 if flags & (_SYN | _FIN) else 0)


def _checksum(data: bytes) -> int:
    """Return the Internet checksum, RFC 1071."""
    padded = data + b"\0" if len(data) % 2 else data
    total = sum(int.from_bytes(padded[offset : offset + 2], "big") for offset in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
