"""Rows to the cells of columns of fixed size, compiled; and to texts that many rows share."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.columnar.compiled.jit import copy, inlined, jit, u8, u16, u32
from msmqwire.columnar.compiled.state import (
    R_FILE,
    R_FRAME,
    R_IPV6,
    R_KIND,
    R_PORTS,
    R_SIZE,
    R_START,
    R_STREAM,
    R_TIME,
)

BOOL, INT32, INT64 = range(3)
P_CELLS, P_TYPE, P_SLOT, P_PLUS, P_SIZE, P_SHIFT, P_MASK = range(7)
PLAN_FIELDS: Final = 7
"""A field of a kind of packet: which cells of its type its column has, where it stands, how it is cut out."""
V_VALID, V_SLOT = range(2)
"""Which cells tell whether fields are there, and the slot that tells it of a kind of packet."""

TIME, FRAME, STREAM, SIZE = range(4)
SRC_PORT, DST_PORT, FILE, TRANSPORT, KIND, SRC, DST = range(7)
"""The columns of what is known of each row, of 64 and of 32 bits."""

PADDING: Final = 16
"""Bytes that there must be behind shared texts, and behind where they are written."""


@jit
def where(rows: Any, n: int, int64s: Any, int32s: Any, to: int) -> None:
    """What is known of each row besides its packet; all but SRC and DST."""
    for i in range(n):
        row, cell = rows[i], to + i
        int64s[TIME, cell] = row[R_TIME]
        int64s[FRAME, cell] = row[R_FRAME]
        int64s[STREAM, cell] = row[R_STREAM]
        int64s[SIZE, cell] = row[R_SIZE]
        int32s[SRC_PORT, cell] = row[R_PORTS] >> 16
        int32s[DST_PORT, cell] = row[R_PORTS] & 0xFFFF
        int32s[FILE, cell] = row[R_FILE]
        int32s[TRANSPORT, cell] = row[R_STREAM] < 0
        int32s[KIND, cell] = row[R_KIND]


@jit
def integers(
    plan: Any,
    counts: Any,
    there: Any,
    there_counts: Any,
    rows: Any,
    at: Any,
    n: int,
    buf: Any,
    bools: Any,
    int32s: Any,
    int64s: Any,
    valid: Any,
    to: int,
    chosen: Any,
    bases: Any,
    cells: Any,
) -> None:
    """The fields of fixed size: ``plan[kind, :counts[kind]]`` are those of a kind, one slot after the other;
    and which are there, by ``there[kind, :there_counts[kind]]``.

    Some rows at a time, so that their packets stay near, and of them those of one kind: `chosen` has room
    for their numbers, `bases` for where the parts at a slot start, and `cells` for where they are shown.
    """
    for first in range(0, n, chosen.size):
        stop = min(n, first + chosen.size)
        for kind in range(counts.size):
            count = 0
            for i in range(first, stop):
                if rows[i, R_KIND] == kind:
                    chosen[count] = i
                    count += 1
            if not count:
                continue
            for j in range(there_counts[kind]):
                _there(valid[there[kind, j, V_VALID]], there[kind, j, V_SLOT], at, chosen, count, to)
            slot, known = -1, 0
            for j in range(counts[kind]):
                field = plan[kind, j]
                if field[P_SLOT] != slot:
                    slot, known = field[P_SLOT], 0
                    for k in range(count):
                        i = chosen[k]
                        bases[known], cells[known] = rows[i, R_START] + at[i, slot], to + i
                        known += at[i, slot] >= 0
                form, number = field[P_TYPE], field[P_CELLS]
                if form == INT32:
                    _integer(field, bases, cells, known, buf, int32s[number])
                elif form == INT64:
                    _integer(field, bases, cells, known, buf, int64s[number])
                else:
                    _integer(field, bases, cells, known, buf, bools[number])


@inlined
def _there(valid: Any, slot: int, at: Any, chosen: Any, count: int, to: int) -> None:
    for k in range(count):
        i = chosen[k]
        valid[to + i] = at[i, slot] >= 0


@inlined
def _integer(field: Any, bases: Any, cells: Any, count: int, buf: Any, values: Any) -> None:
    """One field of some rows of a kind."""
    plus, size, shift, mask = field[P_PLUS], field[P_SIZE], field[P_SHIFT], field[P_MASK]
    if size == 4:
        for k in range(count):
            values[cells[k]] = u32(buf, bases[k] + plus) >> shift & mask
    elif size == 2:
        for k in range(count):
            values[cells[k]] = u16(buf, bases[k] + plus) >> shift & mask
    else:
        for k in range(count):
            values[cells[k]] = u8(buf, bases[k] + plus) >> shift & mask


# -- texts that many rows share ---------------------------------------------------------------------


@jit
def text_offsets(codes: Any, n: int, starts: Any, offsets: Any) -> int:
    """Where the texts of some codes begin when they stand one after the other; how long they are together."""
    pos = 0
    offsets[0] = 0
    for i in range(n):
        code = codes[i]
        pos += starts[code + 1] - starts[code]
        offsets[i + 1] = pos
    return pos


@jit
def texts(codes: Any, n: int, starts: Any, source: Any, offsets: Any, data: Any) -> None:
    """The texts of some codes, `PADDING` bytes at a time: what is too much is overwritten by the next."""
    for i in range(n):
        start, pos = starts[codes[i]], offsets[i]
        for k in range(0, offsets[i + 1] - pos, PADDING):
            copy(source, start + k, PADDING, data, pos + k)


@jit
def class_codes(table: Any, classes: Any, valid: Any, codes: Any, i: int, n: int) -> int:
    """The codes of message classes, 0 for none; the row of the first without a code, n when there is none."""
    while i < n:
        codes[i] = 0
        if valid[i]:
            code = table[classes[i]]
            if not code:
                return i
            codes[i] = code
        i += 1
    return i


@inlined
def _place_of(table: Any, high: int, low: int) -> int:
    mixed = (np.uint64(low) ^ np.uint64(high) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(mixed >> np.uint64(40)) & (table.size - 1)


@jit
def address_codes(table: Any, known: Any, rows: Any, side: int, codes: Any, i: int, n: int) -> int:
    """The codes of addresses that are known; the row of the first that is not, n when there is none.

    ``side`` is R_SRC_HIGH or R_DST_HIGH.
    """
    while i < n:
        high, low, ipv6 = rows[i, side], rows[i, side + 1], rows[i, R_IPV6]
        at = _place_of(table, high, low)
        code = table[at]
        while code >= 0:
            if known[code, 0] == high and known[code, 1] == low and known[code, 2] == ipv6:
                break
            at = (at + 1) & (table.size - 1)
            code = table[at]
        if code < 0:
            return i
        codes[i] = code
        i += 1
    return i


@jit
def add_address(table: Any, known: Any, code: int, high: int, low: int, ipv6: int) -> None:
    """Gives an address a code."""
    at = _place_of(table, high, low)
    while table[at] >= 0:
        at = (at + 1) & (table.size - 1)
    table[at] = code
    known[code, 0], known[code, 1], known[code, 2] = high, low, ipv6
