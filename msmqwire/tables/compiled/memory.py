"""Integers and texts in bytes, and copies of bytes, compiled: other compiled functions are made of these."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.tables.compiled.decorators import in_llvm, inlined, jit


@in_llvm
def _move(target: Any, offset: int, source: Any, start: int, count: int) -> None:
    target[offset : offset + count] = source[start : start + count]


@in_llvm
def _prefetch(source: Any, offset: int) -> None:
    """Nothing depends on it but time."""


LINE: Final = 64
"""Bytes of a cache line, which `prefetch` fetches."""


@inlined
def prefetch(source: Any, offset: int) -> None:
    """Fetch a cache line ahead of its use; the offset may be beyond the array."""
    _prefetch(source, offset)


# Offsets are unsigned, so that numba leaves out the code for negative ones, and bytes become one load.


@inlined
def u8(memory: Any, offset: int) -> Any:
    """Return the byte at an offset."""
    return int(memory[np.uint64(offset)])


@inlined
def u16(memory: Any, offset: int) -> Any:
    """Return the little-endian integer of 16 bits at an offset."""
    i = np.uint64(offset)
    return np.int64(memory[i]) | np.int64(memory[i + np.uint64(1)]) << 8


@inlined
def u32(memory: Any, offset: int) -> Any:
    """Return the little-endian integer of 32 bits at an offset."""
    i = np.uint64(offset)
    return (
        np.int64(memory[i])
        | np.int64(memory[i + np.uint64(1)]) << 8
        | np.int64(memory[i + np.uint64(2)]) << 16
        | np.int64(memory[i + np.uint64(3)]) << 24
    )


@inlined
def u64(memory: Any, offset: int) -> Any:
    """Return the little-endian unsigned integer of 64 bits at an offset."""
    return np.uint64(u32(memory, offset)) | np.uint64(u32(memory, offset + 4)) << np.uint64(32)


@inlined
def put32(data: Any, offset: int, value: Any) -> None:
    """Write the low 32 bits of an unsigned integer, little-endian."""
    i = np.uint64(offset)
    data[i] = value & np.uint64(0xFF)
    data[i + np.uint64(1)] = value >> np.uint64(8) & np.uint64(0xFF)
    data[i + np.uint64(2)] = value >> np.uint64(16) & np.uint64(0xFF)
    data[i + np.uint64(3)] = value >> np.uint64(24) & np.uint64(0xFF)


@inlined
def put64(data: Any, offset: int, value: Any) -> None:
    """Write an unsigned integer of 64 bits, little-endian."""
    put32(data, offset, value)
    put32(data, offset + 4, value >> np.uint64(32))


@inlined
def low32(value: int) -> Any:
    """Return the low 32 bits of an integer, as a signed one."""
    return ((np.int64(value) + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


@inlined
def b16(memory: Any, offset: int) -> Any:
    """Return the big-endian integer of 16 bits at an offset."""
    i = np.uint64(offset)
    return np.int64(memory[i]) << 8 | np.int64(memory[i + np.uint64(1)])


@inlined
def b32(memory: Any, offset: int) -> Any:
    """Return the big-endian integer of 32 bits at an offset."""
    return b16(memory, offset) << 16 | b16(memory, offset + 2)


@inlined
def b64(memory: Any, offset: int) -> Any:
    """Return the big-endian signed integer of 64 bits at an offset."""
    return np.int64(b32(memory, offset)) << 32 | np.int64(b32(memory, offset + 4))


@inlined
def copy(source: Any, start: int, count: int, target: Any, offset: int) -> None:
    """Copy bytes from one array to another; the caller has checked the bounds."""
    _move(target, offset, source, start, count)


@inlined
def ends_on_null(memory: Any, start: int, stop: int) -> bool:
    """Whether the bytes are whole units of UTF-16, the last of them a null."""
    size = stop - start
    return size >= 2 and size & 1 == 0 and u16(memory, stop - 2) == 0


@jit
def is_text(memory: Any, start: int, stop: int) -> bool:
    """Whether the bytes are well-formed UTF-16 that ends on its only null."""
    if not ends_on_null(memory, start, stop):
        return False
    p = start
    while p < stop - 2:
        unit = u16(memory, p)
        p += 2
        if unit == 0 or 0xDC00 <= unit < 0xE000:
            return False
        if 0xD800 <= unit < 0xDC00:
            if p >= stop - 2 or not 0xDC00 <= u16(memory, p) < 0xE000:
                return False
            p += 2
    return True


@jit
def find_null(memory: Any, start: int, stop: int) -> int:
    """Return the offset of the first null of UTF-16; -1 for none."""
    while start + 2 <= stop:
        if u16(memory, start) == 0:
            return start
        start += 2
    return -1


@jit
def chosen_length(memory: Any, start: int, first: int, second: int, stop: int) -> int:
    """Choose among two possible lengths of a text: `msmqwire.schema.record.chosen_length`."""
    first_ends = start + first <= stop and ends_on_null(memory, start, start + first)
    second_ends = start + second <= stop and ends_on_null(memory, start, start + second)
    if first_ends and is_text(memory, start, start + first):
        return first
    if second_ends and (not first_ends or is_text(memory, start, start + second)):
        return second
    return first
