"""The records of a capture file where they stand in memory, compiled."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.columnar.compiled.jit import b32, inlined, u32
from msmqwire.columnar.compiled.state import (
    BIG_ENDIAN,
    END,
    HEADER_SIZE,
    I_DIVISOR,
    I_LIMIT,
    I_LINK,
    I_MULTIPLIER,
    I_OFFSET,
    INTERFACES,
    IS_PCAPNG,
    LIMIT,
    LINKTYPE,
    NEED,
    POS,
    RECORD,
    RECORD_INTERFACE,
    RECORD_LENGTH,
    RECORD_LINK,
    RECORD_NS,
    RECORD_SIZE,
    UNIT,
)

_ENHANCED: Final = 6


@inlined
def next_record(st: Any, buf: Any, interfaces: Any) -> int:
    """The record at POS; the place behind it, or -1 with why in NEED: 0 for a block that is not plain."""
    pos, end = st[POS], st[END]
    if not st[IS_PCAPNG]:
        header = st[HEADER_SIZE]
        if end - pos < header:
            st[NEED] = header
            return -1
        if st[BIG_ENDIAN]:
            seconds, fraction = b32(buf, pos), b32(buf, pos + 4)
            size, length = b32(buf, pos + 8), b32(buf, pos + 12)
        else:
            seconds, fraction = u32(buf, pos), u32(buf, pos + 4)
            size, length = u32(buf, pos + 8), u32(buf, pos + 12)
        if size > st[LIMIT]:
            st[NEED] = 0
            return -1
        if end - pos - header < size:
            st[NEED] = header + size
            return -1
        st[RECORD] = pos + header
        st[RECORD_SIZE] = size
        st[RECORD_LENGTH] = length
        st[RECORD_NS] = seconds * 1_000_000_000 + fraction * st[UNIT]
        st[RECORD_LINK] = st[LINKTYPE]
        st[RECORD_INTERFACE] = 0
        return pos + header + size
    if end - pos < 32:
        st[NEED] = 32
        return -1
    big = st[BIG_ENDIAN]
    kind = b32(buf, pos) if big else u32(buf, pos)
    size = b32(buf, pos + 4) if big else u32(buf, pos + 4)
    st[NEED] = 0
    if kind != _ENHANCED or size % 4 or size < 32 or size > st[LIMIT]:
        return -1
    if end - pos < size:
        st[NEED] = size
        return -1
    if big:
        interface, high, low = b32(buf, pos + 8), b32(buf, pos + 12), b32(buf, pos + 16)
        captured, length, again = b32(buf, pos + 20), b32(buf, pos + 24), b32(buf, pos + size - 4)
    else:
        interface, high, low = u32(buf, pos + 8), u32(buf, pos + 12), u32(buf, pos + 16)
        captured, length, again = u32(buf, pos + 20), u32(buf, pos + 24), u32(buf, pos + size - 4)
    if again != size or interface >= st[INTERFACES] or high >> 31:
        return -1
    if captured > size - 32 or captured > interfaces[interface, I_LIMIT] or interfaces[interface, I_LINK] < 0:
        return -1
    ticks, divisor = high << 32 | low, interfaces[interface, I_DIVISOR]
    multiplier, whole = interfaces[interface, I_MULTIPLIER], ticks // divisor
    if whole > 6_900_000_000_000_000_000 // multiplier:  # with the offset, below 2**61, it stays in 64 bits
        return -1
    time_ns = whole * multiplier + (ticks - whole * divisor) * multiplier // divisor
    st[RECORD] = pos + 28
    st[RECORD_SIZE] = captured
    st[RECORD_LENGTH] = length
    st[RECORD_NS] = time_ns + interfaces[interface, I_OFFSET]
    st[RECORD_LINK] = interfaces[interface, I_LINK]
    st[RECORD_INTERFACE] = interface
    return pos + size
