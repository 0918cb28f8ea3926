"""Frames to TCP segments and UDP datagrams, compiled: what is before the packet of IP in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from msmqwire.capture import links, not_read, tunnels
from msmqwire.capture.icmp import ICMP, UNREACHABLE
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.memory import b16, b32, b64, u32
from msmqwire.tables.compiled.network import (
    DST_HIGH,
    DST_LOW,
    FIRST_REASON,
    IS_IPV6,
    IS_NEW,
    NOT_IP,
    OTHER,
    PROTOCOL_REASONS,
    SRC_HIGH,
    SRC_LOW,
    STOP,
    TCP_NUMBER,
    TUNNEL,
    UDP_NUMBER,
    UNDECIDED,
    fragment_header,
    is_udp_tunnel_port,
    parse_transport,
)
from msmqwire.tables.compiled.tunnelled import TunnelArrays, parse_tunnelled

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
_IS_TUNNEL = np.array([number in tunnels.PROTOCOLS for number in range(256)])
_MPLS_AT, _PPPOE_AT = 1 << 40, 1 << 41  # to which the offset is added of what an EtherType is about


@inlined
def _of_version(memory: Any, offset: int, stop: int, version: int) -> int:
    return offset if offset < stop and memory[offset] >> 4 == version else UNDECIDED


@jit
def _reason_of_type(memory: Any, offset: int, stop: int, ethertype: int) -> int:
    """Return NOT_IP or a reason for an EtherType that is none of IP; UNDECIDED where more is to be read."""
    if ethertype < _LENGTHS or ethertype == _IPX_TYPE:
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
            if ethertype == _MPLS_TYPE or ethertype == _MPLS_TYPE_MULTICAST:
                return -_MPLS_AT - offset
            if ethertype == _PPPOE_TYPE:
                return -_PPPOE_AT - offset
            reason = _reason_of_type(memory, offset, stop, ethertype)
            return UNDECIDED if reason == UNDECIDED else -reason
        if offset + 4 > stop:
            return UNDECIDED
        ethertype = b16(memory, offset + 2)
        offset += 4
    return UNDECIDED


@inlined
def _of_link(memory: Any, offset: int, stop: int, linktype: int) -> int:
    """Return the offset of the IP packet.

    Without one UNDECIDED; the negative of NOT_IP or of a reason; or that of _MPLS_AT or _PPPOE_AT with the
    offset of such a header.
    """
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
def parse_frame(
    memory: Any, start: int, stop: int, length: int, linktype: int, header: Any, tunnels: TunnelArrays
) -> int:
    """Fill ``header`` from the frame from ``start`` to ``stop``, which had ``length`` bytes on the wire.

    Returns TCP, UDP, FRAGMENT, OTHER, NOT_IP, UNDECIDED or a reason, see FIRST_REASON; only with the first
    three the header is complete. The header of what is in tunnels is that of the innermost packet.
    """
    header[TUNNEL] = header[IS_NEW] = 0
    offset, limit = _of_link(memory, start, stop, linktype), start + max(length, stop - start)
    if offset < 0:
        if offset <= -_PPPOE_AT:
            return parse_tunnelled(memory, -offset - _PPPOE_AT, stop, limit, _PPPOE_TYPE, header, tunnels)
        if offset <= -_MPLS_AT:
            return parse_tunnelled(memory, -offset - _MPLS_AT, stop, limit, _MPLS_TYPE, header, tunnels)
        return -offset if offset != UNDECIDED else UNDECIDED
    if offset >= stop:
        return UNDECIDED
    version = memory[offset] >> 4
    if version == 4:
        if linktype == _IPV6 or offset + 20 > stop:
            return UNDECIDED
        total = b16(memory, offset + 2)
        end = offset + total if total else limit
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
            return fragment_header(header, key, inner, end, (word & 0x1FFF) * 8, word >> 13 & 1, protocol)
        if protocol == 51 or protocol == 113:
            return UNDECIDED
        if protocol == _ICMP and inner < stop and memory[inner] == _UNREACHABLE:
            return UNDECIDED
    elif version == 6:
        if linktype == _IPV4 or offset + 40 > stop:
            return UNDECIDED
        total = b16(memory, offset + 4)
        inner = offset + 40
        end = inner + total if total else limit
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
                return fragment_header(header, key, inner, end, word & 0xFFF8, word & 1, protocol)
        if protocol != TCP_NUMBER and protocol != UDP_NUMBER:
            return UNDECIDED
    else:
        return UNDECIDED
    if _IS_TUNNEL[protocol]:
        ethertype = 0x0800 if version == 4 else 0x86DD
        return parse_tunnelled(memory, offset, stop, limit, ethertype, header, tunnels)
    if protocol != TCP_NUMBER and protocol != UDP_NUMBER:
        return OTHER if PROTOCOL_REASONS[protocol] < 0 else FIRST_REASON + PROTOCOL_REASONS[protocol]
    if end > stop:
        return UNDECIDED  # cut off
    if protocol == UDP_NUMBER and inner + 4 <= end and is_udp_tunnel_port(b16(memory, inner + 2)):
        ethertype = 0x0800 if version == 4 else 0x86DD
        return parse_tunnelled(memory, offset, stop, limit, ethertype, header, tunnels)
    return parse_transport(memory, inner, end, protocol, header)
