"""Destination unreachable, of ICMP and ICMPv6: the TCP segment that it quotes."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

ICMP, ICMP_6 = 1, 58
UNREACHABLE: Final = {ICMP: 3, ICMP_6: 1}
"""The type of Destination unreachable, by the protocol of IP: RFC 792 and RFC 4443."""

_HEADER_SIZE, _IPV4_SIZE, _IPV6_SIZE, _QUOTED_SIZE = 8, 20, 40, 8
_TCP: Final = 6
_QUOTED: Final = Struct("!HHI").unpack_from


class QuotedSegment(NamedTuple):
    """The TCP segment that an ICMP message quotes: addresses as bytes, ports and the sequence number."""

    src: bytes
    src_port: int
    dst: bytes
    dst_port: int
    seq: int


def quoted_segment(protocol: int, message: bytes) -> QuotedSegment | None:
    """Return the TCP segment that could not be delivered; None if a message doesn't tell that of any.

    Args:
        protocol: `ICMP` or `ICMP_6`.
        message: its captured bytes.
    """
    if len(message) < _HEADER_SIZE or message[0] != UNREACHABLE[protocol]:
        return None
    packet = message[_HEADER_SIZE:]
    if protocol == ICMP:
        if len(packet) < _IPV4_SIZE or packet[0] >> 4 != 4 or packet[9] != _TCP:
            return None
        at, src, dst = (packet[0] & 15) * 4, packet[12:16], packet[16:20]
        is_later_fragment = packet[6] & 0x1F or packet[7]
        if at < _IPV4_SIZE or is_later_fragment:
            return None
    else:
        if len(packet) < _IPV6_SIZE or packet[0] >> 4 != 6 or packet[6] != _TCP:
            return None
        at, src, dst = _IPV6_SIZE, packet[8:24], packet[24:40]
    if len(packet) < at + _QUOTED_SIZE:
        return None
    src_port, dst_port, seq = _QUOTED(packet, at)
    return QuotedSegment(src, src_port, dst, dst_port, seq)
