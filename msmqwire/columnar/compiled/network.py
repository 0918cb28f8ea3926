"""Frames to TCP segments and UDP datagrams, compiled: the simple cases of `msmqwire.capture.ip`."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture import links
from msmqwire.columnar.compiled.jit import b16, b32, b64, inlined, u32

TCP: Final = 1
UDP: Final = 2
PGM: Final = 3
OTHER: Final = 4
NOT_IP: Final = 5
FRAGMENT: Final = 6
INCOMPLETE: Final = 7
NO_ROOM: Final = 8
"""Of a fragment: the datagram is not complete, or the arena has no room for it."""
UNDECIDED: Final = -1
"""For the generic reader: extension headers, PGM, and what is cut off or contradictory."""
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


@inlined
def _of_version(memory: Any, offset: int, stop: int, version: int) -> int:
    return offset if offset < stop and memory[offset] >> 4 == version else UNDECIDED


@inlined
def _of_type(memory: Any, offset: int, stop: int, ethertype: int) -> int:
    for _ in range(_TAGS_MAX + 1):
        if ethertype == 0x0800:
            return _of_version(memory, offset, stop, 4)
        if ethertype == 0x86DD:
            return _of_version(memory, offset, stop, 6)
        if ethertype != 0x8100 and ethertype != 0x88A8 and ethertype != 0x9100:
            return -NOT_IP
        if offset + 4 > stop:
            return UNDECIDED
        ethertype = b16(memory, offset + 2)
        offset += 4
    return UNDECIDED


@inlined
def _of_link(memory: Any, offset: int, stop: int, linktype: int) -> int:
    """Return the offset of the IP packet; -NOT_IP if there is none, or UNDECIDED."""
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

    Returns TCP, UDP, FRAGMENT, OTHER, NOT_IP or UNDECIDED; only with the first three the header is complete.
    """
    offset = _of_link(memory, start, stop, linktype)
    if offset < 0:
        return NOT_IP if offset == -NOT_IP else UNDECIDED
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
    if protocol != TCP_NUMBER and protocol != UDP_NUMBER:
        return OTHER
    if end > stop:
        return UNDECIDED  # cut off
    return parse_transport(memory, inner, end, protocol, header)
