"""Bytes of a packet to text, compiled: several characters at a time, as integers of 64 bits.

Each function writes from ``pos`` on and returns the position behind; its caller has checked that there is
space.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.memory import b16, b32, ends_on_null, put32, put64, u16, u32, u64

GUID_SIZE: Final = 36

_DASH: Final = 0x2D
_PAIRS: Final = np.frombuffer(b"".join(b"%02d" % n for n in range(100)), np.uint8)

_U4, _U8, _U16, _U32 = (np.uint64(n) for n in (4, 8, 16, 32))
_TWO_BYTES: Final = np.uint64(0x0000FFFF0000FFFF)
_BYTES: Final = np.uint64(0x00FF00FF00FF00FF)
_NIBBLES: Final = np.uint64(0x000F000F000F000F)
_ONES: Final = np.uint64(0x0101010101010101)
_SIXES: Final = np.uint64(0x0606060606060606)
_ZEROS: Final = np.uint64(0x3030303030303030)
_TO_LETTERS: Final = np.uint64(ord("a") - ord("0") - 10)
_NOT_ASCII: Final = np.uint64(0xFF80FF80FF80FF80)
_UNITS: Final = np.uint64(0x0001000100010001)
_UNIT_TOPS: Final = np.uint64(0x8000800080008000)


@inlined
def _hex(value: Any) -> Any:
    """Return the eight hexadecimal digits of 32 bits, the lowest byte first."""
    spread = np.uint64(value)
    spread = (spread | spread << _U16) & _TWO_BYTES
    spread = (spread | spread << _U8) & _BYTES
    digits = spread >> _U4 & _NIBBLES | (spread & _NIBBLES) << _U8
    letters = (digits + _SIXES) >> _U4 & _ONES
    return digits + _ZEROS + letters * _TO_LETTERS


@inlined
def number(memory: Any, p: int, data: Any, pos: int) -> int:
    """Write a little-endian integer of 32 bits as eight hexadecimal digits."""
    put64(data, pos, _hex(b32(memory, p)))
    return pos + 8


@jit
def hexadecimal(memory: Any, p: int, size: int, data: Any, pos: int) -> int:
    """Write bytes as two hexadecimal digits each."""
    while size >= 4:
        put64(data, pos, _hex(u32(memory, p)))
        p += 4
        pos += 8
        size -= 4
    for k in range(size):
        digits = _hex(memory[p + k])
        data[pos + 2 * k] = digits & np.uint64(0xFF)
        data[pos + 2 * k + 1] = digits >> _U8 & np.uint64(0xFF)
    return pos + 2 * size


@inlined
def guid(memory: Any, p: int, data: Any, pos: int) -> int:
    """Write a GUID as `GUID_SIZE` characters."""
    middle = _hex(b16(memory, p + 4) | b16(memory, p + 6) << 16)
    last = _hex(u32(memory, p + 8))
    put64(data, pos, _hex(b32(memory, p)))
    put32(data, pos + 9, middle)
    put32(data, pos + 14, middle >> _U32)
    put32(data, pos + 19, last)
    put32(data, pos + 24, last >> _U32)
    put64(data, pos + 28, _hex(u32(memory, p + 12)))
    data[pos + 8] = data[pos + 13] = data[pos + 18] = data[pos + 23] = _DASH
    return pos + GUID_SIZE


@inlined
def utf8(memory: Any, start: int, stop: int, data: Any, pos: int) -> int:
    """Write UTF-16 that ends on its only null, without that null; return -1 if it is not well-formed.

    There must be space for three bytes for each unit.
    """
    if not ends_on_null(memory, start, stop):
        return -1
    stop -= 2
    while start < stop:
        if start + 8 <= stop:
            four = u64(memory, start)
            if four & _NOT_ASCII == 0:
                if (four - _UNITS) & _UNIT_TOPS:
                    return -1
                four = (four | four >> _U8) & _TWO_BYTES
                put32(data, pos, four | four >> _U16)
                start += 8
                pos += 4
                continue
        unit = u16(memory, start)
        start += 2
        if unit < 0x80:
            if unit == 0:
                return -1
            data[pos] = unit
            pos += 1
            continue
        if 0xD800 <= unit < 0xE000:
            if unit >= 0xDC00 or start >= stop or not 0xDC00 <= u16(memory, start) < 0xE000:
                return -1
            unit = 0x10000 + ((unit & 0x3FF) << 10) + (u16(memory, start) & 0x3FF)
            start += 2
        pos = _write_point(unit, data, pos)
    return pos


@jit
def utf8_replaced(memory: Any, start: int, stop: int, data: Any, pos: int) -> int:
    """Write bytes as UTF-16 with replacement characters: `msmqwire.headers.queue_names.text`.

    There must be space for three bytes for each unit and for a last odd byte.
    """
    while start < stop:
        unit = u16(memory, start) if start + 2 <= stop else 0xD800
        following = u16(memory, start + 2) if start + 4 <= stop else 0
        if 0xD800 <= unit < 0xDC00 and 0xDC00 <= following < 0xE000:
            pos = _write_point(0x10000 + ((unit & 0x3FF) << 10) + (following & 0x3FF), data, pos)
            start += 4
            continue
        if 0xD800 <= unit < 0xDC00 and start + 4 > stop:  # all that is left
            start = stop
        if 0xD800 <= unit < 0xE000:
            unit = 0xFFFD
        pos = _write_point(unit, data, pos)
        start += 2
    return pos


@inlined
def _write_point(point: int, data: Any, pos: int) -> int:
    """Write a character as UTF-8."""
    if point < 0x80:
        data[pos] = point
        return pos + 1
    if point < 0x800:
        data[pos] = 0xC0 | point >> 6
        data[pos + 1] = 0x80 | point & 0x3F
        return pos + 2
    if point < 0x10000:
        data[pos] = 0xE0 | point >> 12
        data[pos + 1] = 0x80 | point >> 6 & 0x3F
        data[pos + 2] = 0x80 | point & 0x3F
        return pos + 3
    data[pos] = 0xF0 | point >> 18
    data[pos + 1] = 0x80 | point >> 12 & 0x3F
    data[pos + 2] = 0x80 | point >> 6 & 0x3F
    data[pos + 3] = 0x80 | point & 0x3F
    return pos + 4


@inlined
def decimal(value: Any, data: Any, pos: int) -> int:
    """Write an unsigned integer below 10**18 in decimal."""
    size, limit = 1, np.uint64(10)
    while value >= limit:
        limit *= np.uint64(10)
        size += 1
    p = pos + size
    while p - pos >= 2:
        rest = value // np.uint64(100)
        pair = np.int64(value - rest * np.uint64(100)) * 2
        p -= 2
        data[p], data[p + 1] = _PAIRS[pair], _PAIRS[pair + 1]
        value = rest
    if p > pos:
        data[pos] = np.uint64(0x30) + value
    return pos + size
