"""Rows to the cells of columns, compiled.

A *plan* says for each kind of packet where a field stands: slot and distance of its start, and slot and
distance of its end; slot -1 for kinds that do not have it. Cells of variable size are written one after
the other. A function that writes them returns the row it stopped at, the place behind what it has written,
and why it stopped: at the end, for want of room, or to ask Python for a cell that is out of the ordinary.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.columnar.generated import QUEUE
from msmqwire.columnar.jit import copy, is_text, jit, u8, u16, u32
from msmqwire.columnar.state import R_KIND, R_LENGTH, R_START
from msmqwire.names.wire import (
    AT_DESTINATION,
    AT_SOURCE,
    DIRECT,
    ELSEWHERE,
    LIKE_ADMIN,
    NO_QUEUE,
    PUBLIC,
)

DONE, ROOM, ASK = range(3)

BOOL, INT32, INT64 = range(3)
SLOT, PLUS, END_SLOT, END_PLUS = range(4)
P_COLUMN, P_TYPE, P_SLOT, P_PLUS, P_SIZE, P_SHIFT, P_MASK = range(7)
PLAN_FIELDS: Final = 7
(
    Q_FLAGS_SLOT,
    Q_FLAGS,
    Q_SOURCE,
    Q_TARGET,
    Q_SHIFT,
    Q_SLOT,
    Q_PLUS,
    Q_ADMIN_SHIFT,
    Q_ADMIN_SLOT,
    Q_ADMIN_PLUS,
) = range(10)

_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_GUID_ORDER: Final = np.array([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15])
_GUID_PLACES: Final = np.array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34])
GUID_SIZE: Final = 36
_DIRECT: Final = np.frombuffer(b"DIRECT=", np.uint8)
_PRIVATE: Final = np.frombuffer(b"PRIVATE=", np.uint8)
_PUBLIC: Final = np.frombuffer(b"PUBLIC=", np.uint8)
_PUBLIC_GUID: Final = QUEUE["PublicQueueFormatName.PublicQueueIdentifier"]
_OTHER_GUID: Final = QUEUE["PrivateQueueFormatName.SourceQueueManager"]
_OTHER_NUMBER: Final = QUEUE["PrivateQueueFormatName.PrivateQueueIdentifier"]
_NUMBER: Final = QUEUE["PrivateQueueFormatNameId.PrivateQueueIdentifier"]
_COUNT: Final = QUEUE["DirectQueueFormatName.Count"]
_NAME: Final = QUEUE["DirectQueueFormatName.DirectFormatName"]
_NAME_MOST: Final = 64  # of the names that are not direct ones
_SID_MOST: Final = 4096


@jit
def integers(
    plan: Any,
    counts: Any,
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
) -> None:
    """The fields of fixed size: ``plan[kind, :counts[kind]]`` are those of a kind.

    Some rows at a time, so that their packets stay near, and of them those of one kind: `chosen` has room
    for their numbers.
    """
    for first in range(0, n, chosen.size):
        stop = min(n, first + chosen.size)
        for kind in range(counts.size):
            count = 0
            for i in range(first, stop):
                if rows[i, R_KIND] == kind:
                    chosen[count] = i
                    count += 1
            if count:
                for j in range(counts[kind]):
                    field = plan[kind, j]
                    column = field[P_COLUMN]
                    form = field[P_TYPE]
                    if form == INT32:
                        _integer(field, rows, at, chosen, count, buf, int32s[column], valid[column], to)
                    elif form == INT64:
                        _integer(field, rows, at, chosen, count, buf, int64s[column], valid[column], to)
                    else:
                        _integer(field, rows, at, chosen, count, buf, bools[column], valid[column], to)


@jit
def _integer(
    field: Any, rows: Any, at: Any, chosen: Any, count: int, buf: Any, cells: Any, valid: Any, to: int
) -> None:
    """One field of some rows of a kind."""
    slot, plus, size = field[P_SLOT], field[P_PLUS], field[P_SIZE]
    shift, mask = field[P_SHIFT], field[P_MASK]
    for k in range(count):
        i = chosen[k]
        place = at[i, slot]
        if place < 0:
            continue
        p = rows[i, R_START] + place + plus
        if size == 4:
            value = u32(buf, p)
        elif size == 2:
            value = u16(buf, p)
        else:
            value = u8(buf, p)
        cells[to + i] = value >> shift & mask
        valid[to + i] = 1


@jit
def _begin(plan: Any, rows: Any, at: Any, i: int) -> int:
    """Where the field of a row starts; -1 when it has none."""
    kind = rows[i, R_KIND]
    if kind >= plan.shape[0] or plan[kind, SLOT] < 0 or at[i, plan[kind, SLOT]] < 0:
        return -1
    return rows[i, R_START] + at[i, plan[kind, SLOT]] + plan[kind, PLUS]


@jit
def _end(plan: Any, rows: Any, at: Any, i: int) -> int:
    kind = rows[i, R_KIND]
    return rows[i, R_START] + at[i, plan[kind, END_SLOT]] + plan[kind, END_PLUS]


@jit
def raw_cells(
    rows: Any, i: int, n: int, buf: Any, offsets: Any, valid: Any, to: int, data: Any, pos: int
) -> tuple[int, int, int]:
    """The bytes of whole packets."""
    while i < n:
        size = rows[i, R_LENGTH]
        if pos + size > data.size:
            return i, pos, ROOM
        copy(buf, rows[i, R_START], size, data, pos)
        pos += size
        valid[to + i] = size > 0
        offsets[to + i + 1] = pos
        i += 1
    return i, pos, DONE


@jit
def byte_cells(
    plan: Any,
    rows: Any,
    at: Any,
    i: int,
    n: int,
    buf: Any,
    offsets: Any,
    valid: Any,
    to: int,
    data: Any,
    pos: int,
    most: int,
    unless_empty: bool,
) -> tuple[int, int, int]:
    """Fields of bytes, up to ``most`` of each; with ``unless_empty`` an empty one is null."""
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = 0
        if start >= 0:
            size = _end(plan, rows, at, i) - start
            valid[to + i] = size > 0 or not unless_empty
            size = min(size, most)
            if pos + size > data.size:
                return i, pos, ROOM
            copy(buf, start, size, data, pos)
            pos += size
        offsets[to + i + 1] = pos
        i += 1
    return i, pos, DONE


@jit
def _guid(buf: Any, p: int, data: Any, pos: int) -> int:
    for k in range(16):
        byte = buf[p + _GUID_ORDER[k]]
        data[pos + _GUID_PLACES[k]] = _HEX[byte >> 4]
        data[pos + _GUID_PLACES[k] + 1] = _HEX[byte & 15]
    data[pos + 8] = data[pos + 13] = data[pos + 18] = data[pos + 23] = 0x2D
    return pos + GUID_SIZE


@jit
def guid_cells(
    plan: Any,
    rows: Any,
    at: Any,
    i: int,
    n: int,
    buf: Any,
    offsets: Any,
    valid: Any,
    to: int,
    data: Any,
    pos: int,
) -> tuple[int, int, int]:
    """GUIDs as text."""
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = start >= 0
        if start >= 0:
            if pos + GUID_SIZE > data.size:
                return i, pos, ROOM
            pos = _guid(buf, start, data, pos)
        offsets[to + i + 1] = pos
        i += 1
    return i, pos, DONE


@jit
def _utf8(buf: Any, start: int, stop: int, data: Any, pos: int) -> int:
    """Well-formed UTF-16 as UTF-8."""
    while start < stop:
        unit = u16(buf, start)
        start += 2
        if unit < 0x80:
            data[pos] = unit
            pos += 1
        elif unit < 0x800:
            data[pos] = 0xC0 | unit >> 6
            data[pos + 1] = 0x80 | unit & 0x3F
            pos += 2
        elif 0xD800 <= unit < 0xDC00:
            point = 0x10000 + ((unit & 0x3FF) << 10) + (u16(buf, start) & 0x3FF)
            start += 2
            data[pos] = 0xF0 | point >> 18
            data[pos + 1] = 0x80 | point >> 12 & 0x3F
            data[pos + 2] = 0x80 | point >> 6 & 0x3F
            data[pos + 3] = 0x80 | point & 0x3F
            pos += 4
        else:
            data[pos] = 0xE0 | unit >> 12
            data[pos + 1] = 0x80 | unit >> 6 & 0x3F
            data[pos + 2] = 0x80 | unit & 0x3F
            pos += 3
    return pos


@jit
def text_cells(
    plan: Any,
    rows: Any,
    at: Any,
    i: int,
    n: int,
    buf: Any,
    offsets: Any,
    valid: Any,
    to: int,
    data: Any,
    pos: int,
) -> tuple[int, int, int]:
    """Texts; one of size 0 is null."""
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = 0
        if start >= 0:
            stop = _end(plan, rows, at, i)
            if stop > start:
                if not is_text(buf, start, stop):
                    return i, pos, ASK
                if pos + 3 * ((stop - start) // 2) > data.size:
                    return i, pos, ROOM
                pos = _utf8(buf, start, stop - 2, data, pos)
                valid[to + i] = 1
        offsets[to + i + 1] = pos
        i += 1
    return i, pos, DONE


@jit
def _number(value: int, data: Any, pos: int) -> int:
    for k in range(8):
        data[pos + k] = _HEX[value >> (28 - 4 * k) & 15]
    return pos + 8


@jit
def _private(buf: Any, guid: int, number: int, data: Any, pos: int) -> int:
    copy(_PRIVATE, 0, _PRIVATE.size, data, pos)
    pos = _guid(buf, guid, data, pos + _PRIVATE.size)
    data[pos] = 0x5C
    return _number(number, data, pos + 1)


@jit
def queue_cells(
    plan: Any,
    rows: Any,
    at: Any,
    i: int,
    n: int,
    buf: Any,
    offsets: Any,
    valid: Any,
    to: int,
    data: Any,
    pos: int,
) -> tuple[int, int, int]:
    """Queues of the UserHeader as format names."""
    while i < n:
        kind = rows[i, R_KIND]
        valid[to + i] = 0
        if kind < plan.shape[0] and plan[kind, Q_FLAGS_SLOT] >= 0:
            user = rows[i, R_START]
            flags = u32(buf, user + plan[kind, Q_FLAGS])
            form = flags >> plan[kind, Q_SHIFT] & 7
            slot, plus = plan[kind, Q_SLOT], plan[kind, Q_PLUS]
            if form == LIKE_ADMIN and plan[kind, Q_ADMIN_SLOT] >= 0:
                form = flags >> plan[kind, Q_ADMIN_SHIFT] & 7
                slot, plus = plan[kind, Q_ADMIN_SLOT], plan[kind, Q_ADMIN_PLUS]
            p = rows[i, R_START] + at[i, slot] + plus
            if form == DIRECT:
                start = p + _NAME
                stop = start + u16(buf, p + _COUNT)
                if not is_text(buf, start, stop):
                    return i, pos, ASK
                if pos + _DIRECT.size + 3 * ((stop - start) // 2) > data.size:
                    return i, pos, ROOM
                copy(_DIRECT, 0, _DIRECT.size, data, pos)
                pos = _utf8(buf, start, stop - 2, data, pos + _DIRECT.size)
                valid[to + i] = 1
            elif form != NO_QUEUE:
                if pos + _NAME_MOST > data.size:
                    return i, pos, ROOM
                if form == PUBLIC:
                    copy(_PUBLIC, 0, _PUBLIC.size, data, pos)
                    pos = _guid(buf, p + _PUBLIC_GUID, data, pos + _PUBLIC.size)
                elif form == AT_SOURCE:
                    pos = _private(buf, user + plan[kind, Q_SOURCE], u32(buf, p + _NUMBER), data, pos)
                elif form == AT_DESTINATION:
                    pos = _private(buf, user + plan[kind, Q_TARGET], u32(buf, p + _NUMBER), data, pos)
                elif form == ELSEWHERE:
                    pos = _private(buf, p + _OTHER_GUID, u32(buf, p + _OTHER_NUMBER), data, pos)
                else:
                    return i, pos, ASK
                valid[to + i] = 1
        offsets[to + i + 1] = pos
        i += 1
    return i, pos, DONE


@jit
def _decimal(value: Any, data: Any, pos: int) -> int:
    size, rest = 1, value
    while rest >= 10:
        rest //= 10
        size += 1
    for k in range(size - 1, -1, -1):
        data[pos + k] = 0x30 + value % 10
        value //= 10
    return pos + size


@jit
def sender_cells(
    plan: Any,
    rows: Any,
    at: Any,
    i: int,
    n: int,
    buf: Any,
    offsets: Any,
    valid: Any,
    to: int,
    data: Any,
    pos: int,
    flags_slot: int,
    flags_at: int,
    type_mask: int,
) -> tuple[int, int, int]:
    """SecurityIDs: a SID or GUID as text, else hex: `msmqwire.columnar.values.sender_id`."""
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = 0
        if start >= 0:
            size = _end(plan, rows, at, i) - start
            if pos + max(2 * size, _SID_MOST) > data.size:
                return i, pos, ROOM
            form = u16(buf, rows[i, R_START] + at[i, flags_slot] + flags_at) & type_mask
            valid[to + i] = size > 0
            if form == 1 and size >= 8 and size == 8 + 4 * buf[start + 1]:
                data[pos] = 0x53
                data[pos + 1] = 0x2D
                pos = _decimal(np.int64(buf[start]), data, pos + 2)
                data[pos] = 0x2D
                authority = np.int64(0)
                for k in range(2, 8):
                    authority = authority << 8 | np.int64(buf[start + k])
                pos = _decimal(authority, data, pos + 1)
                for k in range(8, size, 4):
                    data[pos] = 0x2D
                    pos = _decimal(u32(buf, start + k), data, pos + 1)
            elif form == 2 and size == 16:
                pos = _guid(buf, start, data, pos)
            else:
                for k in range(size):
                    data[pos + 2 * k] = _HEX[buf[start + k] >> 4]
                    data[pos + 2 * k + 1] = _HEX[buf[start + k] & 15]
                pos += 2 * size
        offsets[to + i + 1] = pos
        i += 1
    return i, pos, DONE


@jit
def _place_of(table: Any, high: int, low: int) -> int:
    mixed = (np.uint64(low) ^ np.uint64(high) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(mixed >> np.uint64(40)) & (table.size - 1)


@jit
def address_codes(table: Any, known: Any, high: Any, low: Any, ipv6: Any, codes: Any, i: int, n: int) -> int:
    """The codes of addresses that are known; the row of the first that is not, n when there is none."""
    while i < n:
        at = _place_of(table, high[i], low[i])
        code = table[at]
        while code >= 0:
            if known[code, 0] == high[i] and known[code, 1] == low[i] and known[code, 2] == ipv6[i]:
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
