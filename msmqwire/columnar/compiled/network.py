"""Frames to TCP segments and UDP datagrams, compiled: the simple cases of `msmqwire.capture.ip`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.capture import links, not_read, tunnels
from msmqwire.capture.icmp import ICMP, UNREACHABLE
from msmqwire.columnar.compiled.decorators import inlined, jit
from msmqwire.columnar.compiled.memory import b16, b32, b64, u8, u32

TCP: Final = 1
UDP: Final = 2
PGM: Final = 3
OTHER: Final = 4
NOT_IP: Final = 5
FRAGMENT: Final = 6
INCOMPLETE: Final = 7
NO_ROOM: Final = 8
"""Of a fragment: the datagram is not complete, or the arena has no room for it."""
UNKNOWN_LINK, UNKNOWN_LINK_FRAMES = len(not_read.REASONS), len(not_read.REASONS) + 1
NOT_READ_FIELDS: Final = len(not_read.REASONS) + 2
"""Counts of frames that are not read, by index: for each reason of `not_read.REASONS`; then a link type that
the generic reader has found to be unknown, -1 for none, and its frames since."""
UNDECIDED: Final = -1
"""For the generic reader: tunnels, extension headers, PGM, Destination unreachable, and what is cut off or
contradictory."""
FIRST_REASON: Final = 16
"""In place of NOT_IP or OTHER, and above: why a frame is not read, by its index in `not_read.REASONS`."""
TCP_NUMBER, UDP_NUMBER = 6, 17
"""Protocols of IP."""

SRC_HIGH, SRC_LOW, DST_HIGH, DST_LOW, PORTS, IS_IPV6, SEQ, ACK, FLAGS, START, STOP = range(11)
HEADER_FIELDS: Final = 11
"""The header that `parse_frame` fills, by index. An IPv4 address is the low half of its 128 bits; PORTS has
the source port above the destination port; the payload is from START to STOP."""
FRAGMENT_START, FRAGMENT_END, FRAGMENT_FLAGS = SEQ, ACK, FLAGS
MORE_FRAGMENTS: Final = 1
"""Of a fragment the header has its offset in the datagram and where it ends there; from START to STOP what
was captured of it; in FRAGMENT_FLAGS whether more follow, and above that bit its protocol; in PORTS
what tells the datagrams of two hosts apart."""

_ETHERNET, _NULL, _LOOP = links.ETHERNET, links.NULL, links.LOOP
_RAW_0, _RAW_1, _RAW_2 = links.RAW_IP
_COOKED, _COOKED_2, _IPV4, _IPV6 = links.COOKED, links.COOKED_2, links.IPV4, links.IPV6
_TAGS_MAX = links.TAGS_MAX
_FRAGMENT_HEADER = 44
_ICMP, _UNREACHABLE = ICMP, UNREACHABLE[ICMP]
_LENGTHS, _IPX_TYPE = not_read.LENGTHS, not_read.IPX_TYPE
_PPPOE_TYPE = tunnels.PPPOE_TYPE
_MPLS_TYPE, _MPLS_TYPE_MULTICAST = tunnels.MPLS_TYPES
_TYPES = np.array([*not_read.ETHERTYPES], np.int64)
_TYPE_REASONS = np.array([*not_read.ETHERTYPES.values()], np.int64)
PROTOCOL_REASONS: Final = np.array([not_read.PROTOCOLS.get(number, -1) for number in range(256)], np.int64)
"""For each protocol of IP the index of the reason why it is not read, -1 for one of other programs."""
_IS_TUNNEL = np.array([number in tunnels.PROTOCOLS for number in range(256)])
_VXLAN_PORT, _VXLAN_PORT_BEFORE = not_read.VXLAN_PORTS
_GENEVE_PORT, _GTP_PORT, _TEREDO_PORT = not_read.GENEVE_PORT, not_read.GTP_PORT, not_read.TEREDO_PORT
_VXLAN, _GENEVE, _GTP, _TEREDO = not_read.VXLAN, not_read.GENEVE, not_read.GTP, not_read.TEREDO


@inlined
def _of_version(memory: Any, offset: int, stop: int, version: int) -> int:
    return offset if offset < stop and memory[offset] >> 4 == version else UNDECIDED


@jit
def _reason_of_type(memory: Any, offset: int, stop: int, ethertype: int) -> int:
    """Return NOT_IP or a reason for an EtherType that is none of IP; UNDECIDED where more is to be read."""
    if ethertype < _LENGTHS or ethertype == _IPX_TYPE:
        return UNDECIDED
    if ethertype == _PPPOE_TYPE or ethertype == _MPLS_TYPE or ethertype == _MPLS_TYPE_MULTICAST:
        return UNDECIDED
    for i in range(_TYPES.size):
        if _TYPES[i] == ethertype:
            return FIRST_REASON + _TYPE_REASONS[i]
    return NOT_IP


@inlined
def _of_type(memory: Any, offset: int, stop: int, ethertype: int) -> int:
    for _ in range(_TAGS_MAX + 1):
        if ethertype == 0x0800:
            return _of_version(memory, offset, stop, 4)
        if ethertype == 0x86DD:
            return _of_version(memory, offset, stop, 6)
        if ethertype != 0x8100 and ethertype != 0x88A8 and ethertype != 0x9100:
            reason = _reason_of_type(memory, offset, stop, ethertype)
            return UNDECIDED if reason == UNDECIDED else -reason
        if offset + 4 > stop:
            return UNDECIDED
        ethertype = b16(memory, offset + 2)
        offset += 4
    return UNDECIDED


@inlined
def _of_link(memory: Any, offset: int, stop: int, linktype: int) -> int:
    """Return the offset of the IP packet; UNDECIDED, or the negative of NOT_IP or of a reason without one."""
    if linktype == _ETHERNET:
        return (
            _of_type(memory, offset + 14, stop, b16(memory, offset + 12))
            if offset + 14 <= stop
            else UNDECIDED
        )
    if (
        linktype == _RAW_0
        or linktype == _RAW_1
        or linktype == _RAW_2
        or linktype == _IPV4
        or linktype == _IPV6
    ):
        return offset
    if linktype == _COOKED:
        return (
            _of_type(memory, offset + 16, stop, b16(memory, offset + 14))
            if offset + 16 <= stop
            else UNDECIDED
        )
    if linktype == _COOKED_2:
        return _of_type(memory, offset + 20, stop, b16(memory, offset)) if offset + 20 <= stop else UNDECIDED
    if linktype == _NULL or linktype == _LOOP:
        if offset + 4 > stop:
            return UNDECIDED
        family = b32(memory, offset)
        if family > 0xFF and linktype == _NULL:
            family = u32(memory, offset)
        if family == 2:
            return _of_version(memory, offset + 4, stop, 4)
        is_ipv6 = family == 10 or family == 23 or family == 24 or family == 28 or family == 30
        return _of_version(memory, offset + 4, stop, 6) if is_ipv6 else UNDECIDED
    return UNDECIDED


@inlined
def parse_transport(memory: Any, inner: int, end: int, protocol: int, header: Any) -> int:
    """Fill the rest of ``header`` from a TCP segment or UDP datagram; return TCP, UDP or UNDECIDED."""
    if protocol == TCP_NUMBER:
        if inner + 20 > end:
            return UNDECIDED
        payload = inner + (memory[inner + 12] >> 4) * 4
        if payload < inner + 20 or payload > end:
            return UNDECIDED
        header[SEQ] = b32(memory, inner + 4)
        header[ACK] = b32(memory, inner + 8)
        header[FLAGS] = memory[inner + 13]
    else:
        if inner + 8 > end:
            return UNDECIDED
        payload = inner + 8
        size = b16(memory, inner + 4)
        if size:
            if size < 8 or inner + size > end:
                return UNDECIDED
            end = inner + size
    header[PORTS] = b32(memory, inner)
    header[START] = payload
    header[STOP] = end
    return TCP if protocol == TCP_NUMBER else UDP


@inlined
def _fragment(header: Any, key: int, start: int, end: int, offset: int, more: int, protocol: int) -> int:
    """Fill the rest of ``header`` from a fragment, of which ``end`` may not have been captured."""
    header[PORTS], header[START] = key, start
    header[FRAGMENT_START], header[FRAGMENT_END] = offset, offset + end - start
    header[FRAGMENT_FLAGS] = protocol << 1 | more
    return FRAGMENT


@inlined
def parse_frame(memory: Any, start: int, stop: int, length: int, linktype: int, header: Any) -> int:
    """Fill ``header`` from the frame from ``start`` to ``stop``, which had ``length`` bytes on the wire.

    Returns TCP, UDP, FRAGMENT, OTHER, NOT_IP, UNDECIDED or a reason, see FIRST_REASON; only with the first
    three the header is complete.
    """
    offset = _of_link(memory, start, stop, linktype)
    if offset < 0:
        return -offset if offset != UNDECIDED else UNDECIDED
    if offset >= stop:
        return UNDECIDED
    version = memory[offset] >> 4
    if version == 4:
        if linktype == _IPV6 or offset + 20 > stop:
            return UNDECIDED
        total = b16(memory, offset + 2)
        end = offset + total if total else start + max(length, stop - start)
        inner = offset + (memory[offset] & 15) * 4
        if inner < offset + 20 or end < inner:
            return UNDECIDED
        protocol = memory[offset + 9]
        header[SRC_HIGH] = header[DST_HIGH] = 0
        header[SRC_LOW] = b32(memory, offset + 12)
        header[DST_LOW] = b32(memory, offset + 16)
        header[IS_IPV6] = 0
        word = b16(memory, offset + 6)
        if word & 0x3FFF:
            header[STOP] = max(inner, min(end, stop))
            key = b16(memory, offset + 4) << 8 | protocol
            return _fragment(header, key, inner, end, (word & 0x1FFF) * 8, word >> 13 & 1, protocol)
        if protocol == 51 or protocol == 113:
            return UNDECIDED
        if protocol == _ICMP and inner < stop and memory[inner] == _UNREACHABLE:
            return UNDECIDED
    elif version == 6:
        if linktype == _IPV4 or offset + 40 > stop:
            return UNDECIDED
        total = b16(memory, offset + 4)
        inner = offset + 40
        end = inner + total if total else start + max(length, stop - start)
        protocol = memory[offset + 6]
        if end < inner:
            return UNDECIDED
        header[SRC_HIGH] = b64(memory, offset + 8)
        header[SRC_LOW] = b64(memory, offset + 16)
        header[DST_HIGH] = b64(memory, offset + 24)
        header[DST_LOW] = b64(memory, offset + 32)
        header[IS_IPV6] = 1
        if protocol == _FRAGMENT_HEADER:
            if inner + 8 > min(end, stop):
                return UNDECIDED
            word, protocol = b16(memory, inner + 2), memory[inner]
            key = b32(memory, inner + 4)
            inner += 8
            if word & 0xFFF9:  # else a whole datagram
                header[STOP] = min(end, stop)
                return _fragment(header, key, inner, end, word & 0xFFF8, word & 1, protocol)
        if protocol != TCP_NUMBER and protocol != UDP_NUMBER:
            return UNDECIDED
    else:
        return UNDECIDED
    if _IS_TUNNEL[protocol]:
        return UNDECIDED
    if protocol != TCP_NUMBER and protocol != UDP_NUMBER:
        return OTHER if PROTOCOL_REASONS[protocol] < 0 else FIRST_REASON + PROTOCOL_REASONS[protocol]
    if end > stop:
        return UNDECIDED  # cut off
    return parse_transport(memory, inner, end, protocol, header)


@inlined
def _has_ip(memory: Any, offset: int, stop: int, ethertype: int) -> bool:
    version = 4 if ethertype == 0x0800 else 6
    return (ethertype == 0x0800 or ethertype == 0x86DD) and offset < stop and memory[offset] >> 4 == version


@inlined
def _has_frame(memory: Any, offset: int, stop: int) -> bool:
    if offset + 15 > stop:
        return False
    ethertype = b16(memory, offset + 12)
    is_tag = ethertype == 0x8100 or ethertype == 0x88A8 or ethertype == 0x9100
    return is_tag or _has_ip(memory, offset + 14, stop, ethertype)


@inlined
def is_tunnel_port(ports: int) -> bool:
    """Whether one of the ports of a UDP datagram is that of a tunnel; `tunnel_of` tells whether it is one."""
    port = ports & 0xFFFF
    return (
        port == _VXLAN_PORT
        or port == _VXLAN_PORT_BEFORE
        or port == _GENEVE_PORT
        or port == _GTP_PORT
        or port == _TEREDO_PORT
        or ports >> 16 == _TEREDO_PORT
    )


@jit
def tunnel_of(memory: Any, start: int, stop: int, size: int, ports: int) -> int:
    """Return the index of the tunnel in a UDP datagram, -1 for none: `not_read.of_udp`.

    What was captured of its ``size`` bytes is from ``start`` to ``stop``.
    """
    port = ports & 0xFFFF
    if stop - start < 8:
        return -1
    if port == _VXLAN_PORT or port == _VXLAN_PORT_BEFORE:
        fits = memory[start] & 8 != 0 and memory[start + 7] == 0 and _has_frame(memory, start + 8, stop)
        return _VXLAN if fits else -1
    if port == _GENEVE_PORT:
        if memory[start] >= 0x40:
            return -1
        at, inner = start + 8 + 4 * u8(memory, start), b16(memory, start + 2)
        fits = _has_frame(memory, at, stop) if inner == 0x6558 else _has_ip(memory, at, stop, inner)
        return _GENEVE if fits else -1
    if port == _GTP_PORT:
        if stop - start < 12 or memory[start] & 0xF8 != 0x30 or memory[start + 1] != 0xFF:
            return -1
        if b16(memory, start + 2) + 8 != size:
            return -1
        if memory[start] & 4 != 0 and memory[start + 11] != 0:
            return _GTP
        at = start + 12 if memory[start] & 7 != 0 else start + 8
        version = memory[at] >> 4 if at < stop else 0
        return _GTP if version == 4 or version == 6 else -1
    if port == _TEREDO_PORT or ports >> 16 == _TEREDO_PORT:
        at = start if b16(memory, start) != 0 else start + 8
        if at + 6 > stop or memory[at] >> 4 != 6:
            return -1
        return _TEREDO if at - start + 40 + b16(memory, at + 4) == size else -1
    return -1
