"""Frames to TCP segments and UDP datagrams, compiled: the plain cases of `msmqwire.capture.ip`."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture import links
from msmqwire.columnar.compiled.jit import b16, b32, b64, inlined, u32

TCP: Final = 1
UDP: Final = 2
OTHER: Final = 3
NOT_IP: Final = 4
UNDECIDED: Final = -1
"""For the generic reader to look at: fragments, extension headers, what is cut off or contradicts itself."""

SRC_HIGH, SRC_LOW, DST_HIGH, DST_LOW, PORTS, IS_IPV6, SEQ, ACK, FLAGS, START, STOP = range(11)
HEADS: Final = 11
"""What `datagram` tells, by index. An IPv4 address is the low half of its 128 bits; PORTS has the source
port above the destination port; the payload is from START to STOP."""

_ETHERNET, _NULL, _LOOP = links.ETHERNET, links.NULL, links.LOOP
_RAW_0, _RAW_1, _RAW_2 = links.RAW_IP
_COOKED, _COOKED_2, _IPV4, _IPV6 = links.COOKED, links.COOKED_2, links.IPV4, links.IPV6
_TAGS_MAX = links.TAGS_MAX


@inlined
def _of_version(buf: Any, at: int, stop: int, version: int) -> int:
    return at if at < stop and buf[at] >> 4 == version else UNDECIDED


@inlined
def _of_type(buf: Any, at: int, stop: int, ethertype: int) -> int:
    for _ in range(_TAGS_MAX + 1):
        if ethertype == 0x0800:
            return _of_version(buf, at, stop, 4)
        if ethertype == 0x86DD:
            return _of_version(buf, at, stop, 6)
        if ethertype != 0x8100 and ethertype != 0x88A8 and ethertype != 0x9100:
            return -NOT_IP
        if at + 4 > stop:
            return UNDECIDED
        ethertype = b16(buf, at + 2)
        at += 4
    return UNDECIDED


@inlined
def _of_link(buf: Any, at: int, stop: int, linktype: int) -> int:
    """Where the IP packet starts; -NOT_IP where there is none, UNDECIDED where that is not plain."""
    if linktype == _ETHERNET:
        return _of_type(buf, at + 14, stop, b16(buf, at + 12)) if at + 14 <= stop else UNDECIDED
    if (
        linktype == _RAW_0
        or linktype == _RAW_1
        or linktype == _RAW_2
        or linktype == _IPV4
        or linktype == _IPV6
    ):
        return at
    if linktype == _COOKED:
        return _of_type(buf, at + 16, stop, b16(buf, at + 14)) if at + 16 <= stop else UNDECIDED
    if linktype == _COOKED_2:
        return _of_type(buf, at + 20, stop, b16(buf, at)) if at + 20 <= stop else UNDECIDED
    if linktype == _NULL or linktype == _LOOP:
        if at + 4 > stop:
            return UNDECIDED
        family = b32(buf, at)
        if family > 0xFF and linktype == _NULL:
            family = u32(buf, at)
        if family == 2:
            return _of_version(buf, at + 4, stop, 4)
        plain = family == 10 or family == 23 or family == 24 or family == 28 or family == 30
        return _of_version(buf, at + 4, stop, 6) if plain else UNDECIDED
    return UNDECIDED


@inlined
def datagram(buf: Any, start: int, stop: int, length: int, linktype: int, head: Any) -> int:
    """What the frame from ``start`` to ``stop`` carries, which had ``length`` bytes on the wire."""
    at = _of_link(buf, start, stop, linktype)
    if at < 0:
        return NOT_IP if at == -NOT_IP else UNDECIDED
    if at >= stop:
        return UNDECIDED
    version = buf[at] >> 4
    if version == 4:
        if linktype == _IPV6 or at + 20 > stop:
            return UNDECIDED
        total = b16(buf, at + 2)
        end = at + total if total else start + max(length, stop - start)
        inner = at + (buf[at] & 15) * 4
        if b16(buf, at + 6) & 0x3FFF or inner < at + 20 or end < inner:
            return UNDECIDED
        protocol = buf[at + 9]
        head[SRC_HIGH] = head[DST_HIGH] = 0
        head[SRC_LOW] = b32(buf, at + 12)
        head[DST_LOW] = b32(buf, at + 16)
        head[IS_IPV6] = 0
        if protocol == 51:
            return UNDECIDED
    elif version == 6:
        if linktype == _IPV4 or at + 40 > stop:
            return UNDECIDED
        total = b16(buf, at + 4)
        inner = at + 40
        end = inner + total if total else start + max(length, stop - start)
        protocol = buf[at + 6]
        if end < inner or (protocol != 6 and protocol != 17):
            return UNDECIDED
        head[SRC_HIGH] = b64(buf, at + 8)
        head[SRC_LOW] = b64(buf, at + 16)
        head[DST_HIGH] = b64(buf, at + 24)
        head[DST_LOW] = b64(buf, at + 32)
        head[IS_IPV6] = 1
    else:
        return UNDECIDED
    if protocol != 6 and protocol != 17:
        return OTHER
    if end > stop:
        return UNDECIDED  # some of it was cut off
    if protocol == 6:
        if inner + 20 > end:
            return UNDECIDED
        payload = inner + (buf[inner + 12] >> 4) * 4
        if payload < inner + 20 or payload > end:
            return UNDECIDED
        head[SEQ] = b32(buf, inner + 4)
        head[ACK] = b32(buf, inner + 8)
        head[FLAGS] = buf[inner + 13]
    else:
        if inner + 8 > end:
            return UNDECIDED
        payload = inner + 8
        size = b16(buf, inner + 4)
        if size:
            if size < 8 or inner + size > end:
                return UNDECIDED
            end = inner + size
    head[PORTS] = b32(buf, inner)
    head[START] = payload
    head[STOP] = end
    return TCP if protocol == 6 else UDP
