"""The traffic of a run as a capture file: pcap with Ethernet, IPv4, TCP and UDP headers of our own making."""

from __future__ import annotations

from ipaddress import IPv4Address
from struct import Struct
from typing import BinaryIO, Final

from msmqwire.ping import PING_PORT

_FILE: Final = Struct("<IHHiIII")
_NANOSECONDS: Final = 0xA1B23C4D
_ETHERNET_LINK: Final = 1
_SNAPLEN: Final = 0x40000
_RECORD: Final = Struct("<IIII")
_ETHERNET: Final = bytes.fromhex("020000000002 020000000001 0800")
_IP: Final = Struct(">BBHHHBBH4s4s")
_TCP: Final = Struct(">HHIIBBHHH")
_UDP: Final = Struct(">HHHH")
_PSEUDO: Final = Struct(">4s4sBBH")
_TCP_NUMBER, _UDP_NUMBER = 6, 17
_FIN, _SYN, _PUSH, _ACK = 0x01, 0x02, 0x08, 0x10
_SEGMENT: Final = 1460
_FIRST_PORT: Final = 49152
_PORTS: Final = 16000
_SERVER_PORT: Final = 1801
_UTC: Final = 1_700_000_000


class Capture:
    """Writes frames as a network would have carried them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._count = 0
        file.write(_FILE.pack(_NANOSECONDS, 2, 4, 0, 0, _SNAPLEN, _ETHERNET_LINK))

    def opened(self, now: int, client: str, server: str) -> Stream:
        """A connection between two addresses, `now` in milliseconds since the start of the run."""
        self._count += 1
        return Stream(self, now, client, server, _FIRST_PORT + self._count % _PORTS)

    def datagram(self, now: int, source: str, target: str, port: int, data: bytes) -> None:
        """A UDP datagram: to the ping port, or from it."""
        other = _FIRST_PORT
        ports = (other, PING_PORT) if port == PING_PORT else (PING_PORT, port)
        ends = IPv4Address(source).packed, IPv4Address(target).packed
        header = _UDP.pack(*ports, _UDP.size + len(data), 0)
        pseudo = _PSEUDO.pack(*ends, 0, _UDP_NUMBER, len(header) + len(data))
        checked = _UDP.pack(*ports, _UDP.size + len(data), _checksum(pseudo + header + data) or 0xFFFF)
        self.frame(now, ends, _UDP_NUMBER, checked + data)

    def frame(self, now: int, ends: tuple[bytes, bytes], protocol: int, content: bytes) -> None:
        """One frame."""
        size = _IP.size + len(content)
        header = _IP.pack(0x45, 0, size, 0, 0, 64, protocol, 0, *ends)
        header = header[:10] + _checksum(header).to_bytes(2, "big") + header[12:]
        data = _ETHERNET + header + content
        seconds, milliseconds = divmod(now, 1000)
        self._file.write(_RECORD.pack(_UTC + seconds, milliseconds * 1_000_000, len(data), len(data)))
        self._file.write(data)


class Stream:
    """One connection."""

    def __init__(self, capture: Capture, now: int, client: str, server: str, port: int) -> None:
        self._capture = capture
        self._addresses = IPv4Address(client).packed, IPv4Address(server).packed
        self._ports = port, _SERVER_PORT
        self._next = [0, 0]  # sequence numbers, by side: 0 the client's
        self._over = False
        self._segment(now, 0, b"", _SYN)
        self._segment(now, 1, b"", _SYN | _ACK)
        self._segment(now, 0, b"", _ACK)

    def data(self, now: int, side: int, data: bytes) -> None:
        """Bytes that arrived from one side."""
        for start in range(0, len(data), _SEGMENT):
            self._segment(now, side, data[start : start + _SEGMENT], _PUSH | _ACK)

    def closed(self, now: int) -> None:
        """The end of the connection."""
        if not self._over:
            self._over = True
            self._segment(now, 0, b"", _FIN | _ACK)
            self._segment(now, 1, b"", _FIN | _ACK)

    def _segment(self, now: int, side: int, payload: bytes, flags: int) -> None:
        ends = self._addresses if side == 0 else self._addresses[::-1]
        ports = self._ports if side == 0 else self._ports[::-1]
        acknowledged = self._next[1 - side] if flags & _ACK else 0
        fields = (*ports, self._next[side], acknowledged, 0x50, flags, 0xFFFF)
        header = _TCP.pack(*fields, 0, 0)
        pseudo = _PSEUDO.pack(*ends, 0, _TCP_NUMBER, len(header) + len(payload))
        header = _TCP.pack(*fields, _checksum(pseudo + header + payload), 0)
        self._capture.frame(now, (ends[0], ends[1]), _TCP_NUMBER, header + payload)
        self._next[side] += len(payload) + (1 if flags & (_SYN | _FIN) else 0)


def _checksum(data: bytes) -> int:
    """The Internet checksum."""
    padded = data + b"\0" if len(data) % 2 else data
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
