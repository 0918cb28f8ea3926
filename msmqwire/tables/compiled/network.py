"""Headers of TCP segments and UDP datagrams, compiled: the simple cases of `msmqwire.capture.ip`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.capture import not_read
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.memory import b16, b32

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
"""For the generic reader: extension headers, PGM, Destination unreachable, tunnels that are new or rare, and
what is cut off or contradictory."""
FIRST_REASON: Final = 16
"""In place of NOT_IP or OTHER, and above: why a frame is not read, by its index in `not_read.REASONS`."""
TCP_NUMBER, UDP_NUMBER = 6, 17
"""Protocols of IP."""

(
    SRC_HIGH,
    SRC_LOW,
    DST_HIGH,
    DST_LOW,
    PORTS,
    IS_IPV6,
    SEQ,
    ACK,
    FLAGS,
    START,
    STOP,
    TUNNEL,
    IS_NEW,
    MISSING,
) = range(14)
HEADER_FIELDS: Final = 14
"""The header that `parse_frame` fills, by index. An IPv4 address is the low half of its 128 bits; PORTS has
the source port above the destination port; above the lowest bit of IS_IPV6 is the network of the addresses,
see `tunnels.network_of`; the payload is from START to STOP, without the MISSING bytes that
the capture has cut off. TUNNEL is the number of the tunnels of the frame,
0 for none; IS_NEW says that they have none yet, and are in `TunnelArrays.path`."""
FRAGMENT_START, FRAGMENT_END, FRAGMENT_FLAGS = SEQ, ACK, FLAGS
MORE_FRAGMENTS: Final = 1
"""Of a fragment the header has its offset in the datagram and where it ends there; from START to STOP what
was captured of it; in FRAGMENT_FLAGS whether more follow, and above that bit its protocol; in PORTS
what tells the datagrams of two hosts apart."""

PROTOCOL_REASONS: Final = np.array([not_read.PROTOCOLS.get(number, -1) for number in range(256)], np.int64)
"""For each protocol of IP the index of the reason why it is not read, -1 for one of other programs."""
_VXLAN_PORT, _VXLAN_PORT_BEFORE = not_read.VXLAN_PORTS
_VXLAN_GPE_PORT, _GENEVE_PORT = not_read.VXLAN_GPE_PORT, not_read.GENEVE_PORT
_GTP_PORT, _TEREDO_PORT, _L2TP_PORT = not_read.GTP_PORT, not_read.TEREDO_PORT, not_read.L2TP_PORT
_GTP, _TEREDO, _L2TP_IN_UDP = not_read.GTP, not_read.TEREDO, not_read.L2TP_IN_UDP
_L2TP_SIZE, _L2TP_HEADER = not_read.L2TP_SIZE, int.from_bytes(not_read.L2TP_HEADER, "big")


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
def fragment_header(
    header: Any, key: int, start: int, end: int, offset: int, more: int, protocol: int
) -> int:
    """Fill the rest of ``header`` from a fragment, of which ``end`` may not have been captured."""
    header[PORTS], header[START] = key, start
    header[FRAGMENT_START], header[FRAGMENT_END] = offset, offset + end - start
    header[FRAGMENT_FLAGS] = protocol << 1 | more
    return FRAGMENT


@inlined
def is_udp_tunnel_port(ports: int) -> bool:
    """Whether the destination port of a UDP datagram is that of a tunnel which is read."""
    port = ports & 0xFFFF
    return (
        port == _VXLAN_PORT or port == _VXLAN_PORT_BEFORE or port == _VXLAN_GPE_PORT or port == _GENEVE_PORT
    )


@inlined
def is_tunnel_port(ports: int) -> bool:
    """Whether one of the ports of a UDP datagram is that of a tunnel which is not read; see `tunnel_of`."""
    port = ports & 0xFFFF
    source = ports >> 16
    return (
        port == _GTP_PORT
        or port == _TEREDO_PORT
        or source == _TEREDO_PORT
        or port == _L2TP_PORT
        or source == _L2TP_PORT
    )


@jit
def tunnel_of(memory: Any, start: int, stop: int, size: int, ports: int) -> int:
    """Return the index of the tunnel in a UDP datagram that is not read, -1 for none: `not_read.of_udp`.

    What was captured of its ``size`` bytes is from ``start`` to ``stop``.
    """
    port = ports & 0xFFFF
    if stop - start < 8:
        return -1
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
    if (port == _L2TP_PORT or ports >> 16 == _L2TP_PORT) and stop - start > _L2TP_SIZE:
        fits = b32(memory, start) == _L2TP_HEADER and b32(memory, start + 4) != 0
        return _L2TP_IN_UDP if fits else -1
    return -1
