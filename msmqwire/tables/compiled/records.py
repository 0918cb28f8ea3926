"""The records of a capture file in memory, compiled."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.tables.compiled.decorators import inlined
from msmqwire.tables.compiled.memory import b32, u32
from msmqwire.tables.compiled.state import (
    BIG_ENDIAN,
    END,
    FRACTION_NS,
    HEADER_SIZE,
    I_DIVISOR,
    I_LIMIT,
    I_LINK,
    I_MULTIPLIER,
    I_OFFSET,
    INTERFACES,
    IS_PCAPNG,
    LINKTYPE,
    NEED,
    POS,
    RECORD,
    RECORD_INTERFACE,
    RECORD_LENGTH,
    RECORD_LINK,
    RECORD_NS,
    RECORD_SIZE,
    SIZE_LIMIT,
)

_ENHANCED: Final = 6


@inlined
def next_record(state: Any, memory: Any, interfaces: Any) -> int:
    """Read the record at POS; return the offset behind it.

    Returns -1 if it cannot, with the reason in NEED: the bytes that are needed from POS on, or 0 for a record
    or block that is for the generic reader.
    """
    pos, end = state[POS], state[END]
    if not state[IS_PCAPNG]:
        header = state[HEADER_SIZE]
        if end - pos < header:
            state[NEED] = header
            return -1
        if state[BIG_ENDIAN]:
            seconds, fraction = b32(memory, pos), b32(memory, pos + 4)
            size, length = b32(memory, pos + 8), b32(memory, pos + 12)
        else:
            seconds, fraction = u32(memory, pos), u32(memory, pos + 4)
            size, length = u32(memory, pos + 8), u32(memory, pos + 12)
        if size > state[SIZE_LIMIT]:
            state[NEED] = 0
            return -1
        if end - pos - header < size:
            state[NEED] = header + size
            return -1
        state[RECORD] = pos + header
        state[RECORD_SIZE] = size
        state[RECORD_LENGTH] = length
        state[RECORD_NS] = seconds * 1_000_000_000 + fraction * state[FRACTION_NS]
        state[RECORD_LINK] = state[LINKTYPE]
        state[RECORD_INTERFACE] = 0
        return pos + header + size
    if end - pos < 32:
        state[NEED] = 32
        return -1
    big = state[BIG_ENDIAN]
    kind = b32(memory, pos) if big else u32(memory, pos)
    size = b32(memory, pos + 4) if big else u32(memory, pos + 4)
    state[NEED] = 0
    if kind != _ENHANCED or size % 4 or size < 32 or size > state[SIZE_LIMIT]:
        return -1
    if end - pos < size:
        state[NEED] = size
        return -1
    if big:
        interface, high, low = b32(memory, pos + 8), b32(memory, pos + 12), b32(memory, pos + 16)
        captured, length, again = b32(memory, pos + 20), b32(memory, pos + 24), b32(memory, pos + size - 4)
    else:
        interface, high, low = u32(memory, pos + 8), u32(memory, pos + 12), u32(memory, pos + 16)
        captured, length, again = u32(memory, pos + 20), u32(memory, pos + 24), u32(memory, pos + size - 4)
    if again != size or interface >= state[INTERFACES] or high >> 31:
        return -1
    if captured > size - 32 or captured > interfaces[interface, I_LIMIT] or interfaces[interface, I_LINK] < 0:
        return -1
    ticks, divisor = high << 32 | low, interfaces[interface, I_DIVISOR]
    multiplier, whole = interfaces[interface, I_MULTIPLIER], ticks // divisor
    if whole > 6_900_000_000_000_000_000 // multiplier:  # with the offset, below 2**61, it stays in 64 bits
        return -1
    time_ns = whole * multiplier + (ticks - whole * divisor) * multiplier // divisor
    state[RECORD] = pos + 28
    state[RECORD_SIZE] = captured
    state[RECORD_LENGTH] = length
    state[RECORD_NS] = time_ns + interfaces[interface, I_OFFSET]
    state[RECORD_LINK] = interfaces[interface, I_LINK]
    state[RECORD_INTERFACE] = interface
    return pos + size
