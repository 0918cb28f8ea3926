"""Packets in tunnels, compiled: the usual cases of `msmqwire.capture.tunnels`.

The scan walks from header to header, and writes down the tunnels that it enters: their kinds and numbers, and
the addresses of the last packet of IP around them. That path has a number as soon as the generic reader has
read a packet in it. So texts are made once for each path, and nothing is decided here that is rare.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.capture import links, not_read, tunnels
from msmqwire.capture.icmp import ICMP
from msmqwire.tables.compiled.arrays import Int32s, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.memory import b16, b32, b64, u8
from msmqwire.tables.compiled.network import (
    DST_HIGH,
    DST_LOW,
    IS_IPV6,
    IS_NEW,
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

TUNNELLED_MAX: Final = 1024
"""Bytes of headers around a packet that the scan reads, besides those of the link."""

P_WORDS, P_VERSION, P_SRC_HIGH, P_SRC_LOW, P_DST_HIGH, P_DST_LOW = range(6)
P_TUNNELS: Final = 6
PATH_WORDS: Final = 32
"""A path of tunnels, by index: how many words it has; the version of the innermost packet of IP around the
packet, 0 without one, and its addresses; then for each tunnel, from outside in, how many numbers it has and,
above KIND_SHIFT bits, its kind, followed by these numbers."""
KIND_SHIFT: Final = 8

KINDS: Final = ("vxlan", "geneve", "gre", "erspan", "mpls", "pppoe", "ipip", "4in6", "6in4", "6in6")
"""The names of the kinds of tunnels."""
_VXLAN, _GENEVE, _GRE, _ERSPAN, _MPLS, _PPPOE, _IPIP = range(7)

_IP_4, _IP_6 = links.IP_TYPES
_ETHERNET = tunnels.ETHERNET_TYPE
_MPLS_TYPE, _MPLS_TYPE_MULTICAST = tunnels.MPLS_TYPES
_PPPOE_TYPE, _ARP_TYPE = tunnels.PPPOE_TYPE, 0x0806
_ERSPAN_TYPE, _ERSPAN_3_TYPE = 0x88BE, 0x22EB
_IN_IP_4, _IN_IP_6, _GRE_NUMBER, _MPLS_NUMBER = tunnels.IP_4, tunnels.IP_6, tunnels.GRE, tunnels.MPLS
_DEPTH_MAX, _LABELS_MAX, _TAGS_MAX = tunnels.DEPTH_MAX, tunnels.LABELS_MAX, links.TAGS_MAX
_GENEVE_PORT, _VXLAN_GPE_PORT, _LENGTHS = not_read.GENEVE_PORT, not_read.VXLAN_GPE_PORT, not_read.LENGTHS
_TYPES = np.array([*not_read.ETHERTYPES], np.int64)
_STEPS = 4 * tunnels.DEPTH_MAX
_FRAGMENT_HEADER, _AUTHENTICATION_HEADER, _PGM_NUMBER, _ICMP = 44, 51, 113, ICMP
_FITS, _MAY_FIT = 2, 1


class TunnelArrays(NamedTuple):
    """The paths of tunnels that have a number.

    Attributes:
        path: the path of the current frame; see P_WORDS.
        table: a hash table that finds the number of a path; -1 where there is none.
        paths: the path of each number.
        networks: the network in each, see `tunnels.network_of`.
        seed: the seed of the hashes.
    """

    path: Int64s
    table: Int32s
    paths: Int64Rows
    networks: Int64s
    seed: Int64s


@inlined
def _slot(path: Any, mask: int, seed: int) -> Any:
    mixed = np.uint64(np.int64(seed))
    for i in range(path[P_WORDS]):
        mixed = (mixed ^ np.uint64(path[i])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(mask))


@jit
def _number_of(arrays: TunnelArrays) -> int:
    """Return the number of the current path, 0 if it has none."""
    path, table, paths = arrays.path, arrays.table, arrays.paths
    mask = table.size - 1
    slot = _slot(path, mask, arrays.seed[0])
    while table[slot] >= 0:
        number, same = table[slot], True
        for i in range(path[P_WORDS]):
            if paths[number, i] != path[i]:
                same = False
                break
        if same:
            return number
        slot = (slot + 1) & mask
    return 0


@exported
@jit
def add_path(arrays: TunnelArrays, number: int) -> None:
    """Enter the path with this number, which is in its row, in the table."""
    table = arrays.table
    mask = table.size - 1
    slot = _slot(arrays.paths[number], mask, arrays.seed[0])
    while table[slot] >= 0:
        slot = (slot + 1) & mask
    table[slot] = number


@inlined
def _enter(path: Any, kind: int) -> None:
    """Add a tunnel without a number to the path."""
    path[path[P_WORDS]] = kind << KIND_SHIFT
    path[P_WORDS] += 1


@inlined
def _enter_numbered(path: Any, kind: int, number: int) -> None:
    path[path[P_WORDS]] = kind << KIND_SHIFT | 1
    path[path[P_WORDS] + 1] = number
    path[P_WORDS] += 2


@inlined
def _leave_outside(path: Any, header: Any, version: int) -> None:
    """Note a packet of IP as one around what follows."""
    path[P_VERSION] = version
    path[P_SRC_HIGH], path[P_SRC_LOW] = header[SRC_HIGH], header[SRC_LOW]
    path[P_DST_HIGH], path[P_DST_LOW] = header[DST_HIGH], header[DST_LOW]


@inlined
def _ip_fits(memory: Any, at: int, stop: int, limit: int, ethertype: int) -> bool:
    """Whether a header of IP is at an offset, which was captured: `tunnels.ip_fits`."""
    if ethertype == _IP_4:
        if at + 20 > stop or memory[at] >> 4 != 4:
            return False
        header, total = (memory[at] & 15) * 4, b16(memory, at + 2)
        return header >= 20 and at + header <= limit and (total == 0 or header <= total <= limit - at)
    return at + 40 <= stop and memory[at] >> 4 == 6 and at + 40 + b16(memory, at + 4) <= limit


@jit
def _frame_fits(memory: Any, at: int, stop: int, limit: int) -> int:
    """Return _FITS for an Ethernet frame with IP in it, 0 for none, _MAY_FIT for what is rare."""
    if at + 14 > stop:
        return _MAY_FIT
    ethertype = b16(memory, at + 12)
    at += 14
    for _ in range(_TAGS_MAX):
        if ethertype != 0x8100 and ethertype != 0x88A8 and ethertype != 0x9100:
            break
        if at + 4 > stop:
            return _MAY_FIT
        ethertype = b16(memory, at + 2)
        at += 4
    if ethertype == _IP_4 or ethertype == _IP_6:
        if _ip_fits(memory, at, stop, limit, ethertype):
            return _FITS
        return _MAY_FIT if at + 40 > stop else 0
    if ethertype < _LENGTHS or ethertype == _ARP_TYPE:
        return _MAY_FIT
    for i in range(_TYPES.size):
        if _TYPES[i] == ethertype:
            return _MAY_FIT
    return 0


@inlined
def _with_number(header: Any, arrays: TunnelArrays, depth: int) -> bool:
    """Fill what a header has of tunnels; return False if they have no number yet."""
    if depth == 0:
        return True
    number = _number_of(arrays)
    if number == 0:
        header[IS_NEW] = 1
        return False
    header[TUNNEL] = number
    header[IS_IPV6] |= arrays.networks[number] << 1
    return True


@jit
def parse_tunnelled(
    memory: Any, at: int, stop: int, limit: int, ethertype: int, header: Any, arrays: TunnelArrays
) -> int:
    """Fill ``header`` from what an EtherType is about, in which there may be tunnels.

    Args:
        memory: the bytes.
        at: where it begins.
        stop: where what was captured of it ends.
        limit: where it ended on the wire.
        ethertype: what it is.
        header: see `network`.
        arrays: the paths of tunnels.

    Returns:
        TCP, UDP, FRAGMENT or OTHER, or UNDECIDED.
    """
    path, depth, start, number = arrays.path, 0, at, 0
    path[P_WORDS] = P_TUNNELS
    for i in range(P_VERSION, P_TUNNELS):
        path[i] = 0
    for _ in range(_STEPS):
        stop = min(stop, limit)
        if at - start > TUNNELLED_MAX or depth > _DEPTH_MAX or path[P_WORDS] + 2 > PATH_WORDS:
            return UNDECIDED
        if ethertype == _ETHERNET:
            if at + 14 > stop:
                return UNDECIDED
            ethertype = b16(memory, at + 12)
            at += 14
            for _ in range(_TAGS_MAX):
                if ethertype != 0x8100 and ethertype != 0x88A8 and ethertype != 0x9100:
                    break
                if at + 4 > stop:
                    return UNDECIDED
                ethertype = b16(memory, at + 2)
                at += 4
        if ethertype == _MPLS_TYPE or ethertype == _MPLS_TYPE_MULTICAST:
            first, count, word = path[P_WORDS], 0, 0
            while word & 0x100 == 0:
                if at + 4 > stop or count == _LABELS_MAX or first + 1 + count == PATH_WORDS:
                    return UNDECIDED
                word = b32(memory, at)
                path[first + 1 + count] = word >> 12
                count += 1
                at += 4
            path[first] = _MPLS << KIND_SHIFT | count
            path[P_WORDS] = first + 1 + count
            depth += 1
            if at >= stop:
                return UNDECIDED
            version = memory[at] >> 4
            with_word = _frame_fits(memory, at + 4, stop, limit) if version == 0 else 0
            without = _frame_fits(memory, at, stop, limit)
            if with_word == _MAY_FIT or without == _MAY_FIT:
                return UNDECIDED
            if version == 4 or version == 6:
                ethertype = _IP_4 if version == 4 else _IP_6
                if without or not _ip_fits(memory, at, stop, limit, ethertype):
                    return UNDECIDED
            elif with_word or without:
                ethertype = _ETHERNET
                at += 4 if with_word else 0
            else:
                return UNDECIDED
            continue
        if ethertype == _PPPOE_TYPE:
            if at + 8 > stop or b16(memory, at) != 0x1100:
                return UNDECIDED
            protocol = b16(memory, at + 6)
            if protocol != 0x0021 and protocol != 0x0057:
                return UNDECIDED
            ethertype = _IP_4 if protocol == 0x0021 else _IP_6
            _enter_numbered(path, _PPPOE, b16(memory, at + 2))
            depth += 1
            at += 8
            continue
        if ethertype == _IP_4:
            if at + 20 > stop or memory[at] >> 4 != 4:
                return UNDECIDED
            total, version = b16(memory, at + 2), 4
            inner, end = at + (memory[at] & 15) * 4, at + total if total else limit
            if inner < at + 20 or end < inner:
                return UNDECIDED
            protocol = u8(memory, at + 9)
            header[SRC_HIGH] = header[DST_HIGH] = header[IS_IPV6] = 0
            header[SRC_LOW], header[DST_LOW] = b32(memory, at + 12), b32(memory, at + 16)
            word = b16(memory, at + 6)
            if word & 0x3FFF:
                if not _with_number(header, arrays, depth):
                    return UNDECIDED
                header[STOP] = max(inner, min(end, stop))
                key = b16(memory, at + 4) << 8 | protocol
                return fragment_header(header, key, inner, end, (word & 0x1FFF) * 8, word >> 13 & 1, protocol)
        elif ethertype == _IP_6:
            if at + 40 > stop or memory[at] >> 4 != 6:
                return UNDECIDED
            total, version = b16(memory, at + 4), 6
            inner, protocol = at + 40, u8(memory, at + 6)
            end = inner + total if total else limit
            if end < inner:
                return UNDECIDED
            header[SRC_HIGH], header[SRC_LOW] = b64(memory, at + 8), b64(memory, at + 16)
            header[DST_HIGH], header[DST_LOW] = b64(memory, at + 24), b64(memory, at + 32)
            header[IS_IPV6] = 1
            if protocol == _FRAGMENT_HEADER:
                if inner + 8 > min(end, stop):
                    return UNDECIDED
                word, protocol = b16(memory, inner + 2), u8(memory, inner)
                key = b32(memory, inner + 4)
                inner += 8
                if word & 0xFFF9:  # else a whole datagram
                    if not _with_number(header, arrays, depth):
                        return UNDECIDED
                    header[STOP] = min(end, stop)
                    return fragment_header(header, key, inner, end, word & 0xFFF8, word & 1, protocol)
        else:
            return UNDECIDED
        if end > stop:
            return UNDECIDED  # cut off
        limit = end
        if protocol == UDP_NUMBER and inner + 8 <= end and is_udp_tunnel_port(b16(memory, inner + 2)):
            size, port = b16(memory, inner + 4), b16(memory, inner + 2)
            if size and (size < 8 or inner + size > end):
                return UNDECIDED
            at = inner + 8
            limit = inner + size if size else end
            if at + 8 > limit:
                return UNDECIDED
            _leave_outside(path, header, version)
            flags, kind, number = u8(memory, at), _VXLAN, b32(memory, at + 4) >> 8
            if port == _GENEVE_PORT:
                if flags >= 0x40 or memory[at + 1] & 0x80:
                    return UNDECIDED
                ethertype, kind = b16(memory, at + 2), _GENEVE
                at += 8 + 4 * flags
            elif flags & 8 == 0 or memory[at + 7] or (port == _VXLAN_GPE_PORT and flags & 4):
                return UNDECIDED
            else:
                ethertype = _ETHERNET
                at += 8
            stop = min(stop, limit)
            if ethertype == _ETHERNET:
                if _frame_fits(memory, at, stop, limit) != _FITS:
                    return UNDECIDED
            else:
                is_ip = ethertype == _IP_4 or ethertype == _IP_6
                if not is_ip or not _ip_fits(memory, at, stop, limit, ethertype):
                    return UNDECIDED
            _enter_numbered(path, kind, number)
            depth += 1
        elif protocol == TCP_NUMBER or protocol == UDP_NUMBER:
            result = parse_transport(memory, inner, end, protocol, header)
            if result != UNDECIDED and not _with_number(header, arrays, depth):
                return UNDECIDED
            return result
        elif protocol == _IN_IP_4 or protocol == _IN_IP_6:
            _leave_outside(path, header, version)
            ethertype, at = _IP_4 if protocol == _IN_IP_4 else _IP_6, inner
            _enter(path, _IPIP + (version == 6) + 2 * (protocol == _IN_IP_6))
            depth += 1
        elif protocol == _MPLS_NUMBER:
            _leave_outside(path, header, version)
            ethertype, at = _MPLS_TYPE, inner
        elif protocol == _GRE_NUMBER:
            if inner + 4 > end:
                return UNDECIDED
            _leave_outside(path, header, version)
            flags, ethertype = b16(memory, inner), b16(memory, inner + 2)
            at = inner + 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + (flags >> 12 & 1))
            if flags & 0x4007 or at > end:  # with routes, or of another version
                return UNDECIDED
            if ethertype == _ERSPAN_TYPE or ethertype == _ERSPAN_3_TYPE:
                is_3 = ethertype == _ERSPAN_3_TYPE
                ethertype = _ETHERNET
                if not is_3 and flags & 0x1000 == 0:
                    _enter(path, _ERSPAN)
                else:
                    if at + 12 > end or memory[at] >> 4 != (2 if is_3 else 1):
                        return UNDECIDED
                    _enter_numbered(path, _ERSPAN, b16(memory, at + 2) & 0x3FF)
                    if is_3:
                        if memory[at + 10] & 0x7C:
                            return UNDECIDED
                        at += 12 + 8 * (u8(memory, at + 11) & 1)
                    else:
                        at += 8
            elif flags & 0x2000:
                _enter_numbered(path, _GRE, b32(memory, inner + 8 if flags & 0x8000 else inner + 4))
            else:
                _enter(path, _GRE)
            depth += 1
        else:
            is_other = version == 4 and protocol != _AUTHENTICATION_HEADER and protocol != _PGM_NUMBER
            return OTHER if is_other and protocol != _ICMP and PROTOCOL_REASONS[protocol] < 0 else UNDECIDED
    return UNDECIDED
