"""Rows to the cells of columns whose values differ in size, compiled.

The cells of a column are written one after the other into its part of the bytes of all columns. A column
stops for want of room, or to ask Python for a cell that is out of the ordinary; it goes on from there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.columnar.compiled.generated import QUEUE
from msmqwire.columnar.compiled.jit import LINE, copy, inlined, jit, prefetch, put64, u16, u32
from msmqwire.columnar.compiled.state import R_KIND, R_LENGTH, R_START
from msmqwire.columnar.compiled.texts import GUID_SIZE, decimal, guid, hexadecimal, number, utf8
from msmqwire.names.header_names import (
    AT_DESTINATION,
    AT_SOURCE,
    DIRECT,
    ELSEWHERE,
    LIKE_ADMIN,
    NO_QUEUE,
    PUBLIC,
)

DONE, ROOM, ASK = range(3)
"""Why a column stopped: at the end, for want of room, or to ask."""
RAW, BYTES, GUID, TEXT, QUEUE_NAME, SENDER = range(6)
"""How the cells of a column are made."""
NEAR: Final = 128
"""Rows whose packets are in the caches of a core together."""

S_FORM, S_KINDS, S_MOST, S_UNLESS_EMPTY, S_BASE, S_USED, S_END, S_ROW = range(8)
SPAN_FIELDS: Final = 8
"""What is known of a column: its form; the kinds of packets that may have it, as bits; the bytes of a cell at
the most; whether an empty one is null; where its bytes start, how far they go, and how far they may; the row
of the block that comes next."""

SLOT, PLUS, END_SLOT, END_PLUS = range(4)
"""A plan says for each kind of packet where a field stands: slot and distance of its start and of its end;
slot -1 for kinds that do not have it."""
(
    Q_FLAGS_SLOT, Q_FLAGS, Q_SOURCE, Q_TARGET, Q_SHIFT, Q_SLOT, Q_PLUS, Q_ADMIN_SHIFT, Q_ADMIN_SLOT,
    Q_ADMIN_PLUS,
) = range(10)  # fmt: skip
"""The plan of a queue of the UserHeader."""
T_SLOT, T_PLUS, T_MASK = range(4, 7)
"""What the plan of a SecurityID has besides: slot and distance of the flags with its type, and their mask."""
PLAN_FIELDS: Final = 10

_DIRECT: Final = np.uint64(int.from_bytes(b"DIRECT=", "little"))
_DIRECT_SIZE: Final = 7
_PRIVATE: Final = np.uint64(int.from_bytes(b"PRIVATE=", "little"))
_PRIVATE_SIZE: Final = 8
_PUBLIC: Final = np.uint64(int.from_bytes(b"PUBLIC=", "little"))
_PUBLIC_SIZE: Final = 7
_NAME_MOST: Final = 64  # of the names that are not direct ones
_PUBLIC_GUID: Final = QUEUE["PublicQueueFormatName.PublicQueueIdentifier"]
_OTHER_GUID: Final = QUEUE["PrivateQueueFormatName.SourceQueueManager"]
_OTHER_NUMBER: Final = QUEUE["PrivateQueueFormatName.PrivateQueueIdentifier"]
_NUMBER: Final = QUEUE["PrivateQueueFormatNameId.PrivateQueueIdentifier"]
_COUNT: Final = QUEUE["DirectQueueFormatName.Count"]
_NAME: Final = QUEUE["DirectQueueFormatName.DirectFormatName"]
_HEADERS: Final = 5 * LINE  # about where a packet has its headers
_SID_HEAD, _SID_PART = 24, 11  # characters at the most: of revision and authority; of each part after them


@inlined
def _begin(plan: Any, rows: Any, at: Any, i: int) -> int:
    """Where the field of a row starts; -1 when it has none."""
    kind = rows[i, R_KIND]
    if kind >= plan.shape[0] or plan[kind, SLOT] < 0 or at[i, plan[kind, SLOT]] < 0:
        return -1
    return rows[i, R_START] + at[i, plan[kind, SLOT]] + plan[kind, PLUS]


@inlined
def _end(plan: Any, rows: Any, at: Any, i: int) -> int:
    kind = rows[i, R_KIND]
    return rows[i, R_START] + at[i, plan[kind, END_SLOT]] + plan[kind, END_PLUS]


@inlined
def _raw_cells(
    span: Any, rows: Any, i: int, n: int, buf: Any, offsets: Any, valid: Any, to: int, data: Any
) -> int:
    """The bytes of whole packets."""
    pos, why = span[S_USED], DONE
    while i < n:
        size = rows[i, R_LENGTH]
        if pos + size > span[S_END]:
            why = ROOM
            break
        copy(buf, rows[i, R_START], size, data, pos)
        pos += size
        valid[to + i] = size > 0
        offsets[to + i + 1] = pos - span[S_BASE]
        i += 1
    span[S_USED], span[S_ROW] = pos, i
    return why


@inlined
def _byte_cells(
    span: Any, plan: Any, rows: Any, at: Any, i: int, n: int, buf: Any, offsets: Any, valid: Any, to: int,
    data: Any,
) -> int:  # fmt: skip
    """Fields of bytes."""
    pos, why = span[S_USED], DONE
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = 0
        if start >= 0:
            size = _end(plan, rows, at, i) - start
            count = min(size, span[S_MOST])
            if pos + count > span[S_END]:
                why = ROOM
                break
            valid[to + i] = size > 0 or not span[S_UNLESS_EMPTY]
            copy(buf, start, count, data, pos)
            pos += count
        offsets[to + i + 1] = pos - span[S_BASE]
        i += 1
    span[S_USED], span[S_ROW] = pos, i
    return why


@inlined
def _guid_cells(
    span: Any, plan: Any, rows: Any, at: Any, i: int, n: int, buf: Any, offsets: Any, valid: Any, to: int,
    data: Any,
) -> int:  # fmt: skip
    """GUIDs as text."""
    pos = span[S_USED]
    why = DONE
    if pos + (n - i) * GUID_SIZE > span[S_END]:
        n, why = i, ROOM
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = start >= 0
        if start >= 0:
            pos = guid(buf, start, data, pos)
        offsets[to + i + 1] = pos - span[S_BASE]
        i += 1
    span[S_USED], span[S_ROW] = pos, i
    return why


@inlined
def _text_cells(
    span: Any, plan: Any, rows: Any, at: Any, i: int, n: int, buf: Any, offsets: Any, valid: Any, to: int,
    data: Any,
) -> int:  # fmt: skip
    """Texts; one of size 0 is null."""
    pos, why = span[S_USED], DONE
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = 0
        if start >= 0:
            stop = _end(plan, rows, at, i)
            if stop > start:
                if pos + 3 * ((stop - start) // 2) > span[S_END]:
                    why = ROOM
                    break
                behind = utf8(buf, start, stop, data, pos)
                if behind < 0:
                    why = ASK
                    break
                pos = behind
                valid[to + i] = 1
        offsets[to + i + 1] = pos - span[S_BASE]
        i += 1
    span[S_USED], span[S_ROW] = pos, i
    return why


@inlined
def _private(buf: Any, place: int, number_at: int, data: Any, pos: int) -> int:
    put64(data, pos, _PRIVATE)
    pos = guid(buf, place, data, pos + _PRIVATE_SIZE)
    data[pos] = 0x5C
    return number(buf, number_at, data, pos + 1)


@inlined
def _queue_cells(
    span: Any, plan: Any, rows: Any, at: Any, i: int, n: int, buf: Any, offsets: Any, valid: Any, to: int,
    data: Any,
) -> int:  # fmt: skip
    """Queues of the UserHeader as format names."""
    pos, why = span[S_USED], DONE
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
            p = user + at[i, slot] + plus
            if form == DIRECT:
                start = p + _NAME
                stop = start + u16(buf, p + _COUNT)
                if pos + _DIRECT_SIZE + 1 + 3 * ((stop - start) // 2) > span[S_END]:
                    why = ROOM
                    break
                put64(data, pos, _DIRECT)
                behind = utf8(buf, start, stop, data, pos + _DIRECT_SIZE)
                if behind < 0:
                    why = ASK
                    break
                pos = behind
                valid[to + i] = 1
            elif form != NO_QUEUE:
                if pos + _NAME_MOST > span[S_END]:
                    why = ROOM
                    break
                if form == PUBLIC:
                    put64(data, pos, _PUBLIC)
                    pos = guid(buf, p + _PUBLIC_GUID, data, pos + _PUBLIC_SIZE)
                elif form == AT_SOURCE:
                    pos = _private(buf, user + plan[kind, Q_SOURCE], p + _NUMBER, data, pos)
                elif form == AT_DESTINATION:
                    pos = _private(buf, user + plan[kind, Q_TARGET], p + _NUMBER, data, pos)
                elif form == ELSEWHERE:
                    pos = _private(buf, p + _OTHER_GUID, p + _OTHER_NUMBER, data, pos)
                else:
                    why = ASK
                    break
                valid[to + i] = 1
        offsets[to + i + 1] = pos - span[S_BASE]
        i += 1
    span[S_USED], span[S_ROW] = pos, i
    return why


@jit
def _sid(buf: Any, start: int, size: int, data: Any, pos: int) -> int:
    data[pos] = 0x53
    data[pos + 1] = 0x2D
    pos = decimal(np.uint64(buf[start]), data, pos + 2)
    data[pos] = 0x2D
    authority = np.uint64(0)
    for k in range(2, 8):
        authority = authority << np.uint64(8) | np.uint64(buf[start + k])
    pos = decimal(authority, data, pos + 1)
    for k in range(8, size, 4):
        data[pos] = 0x2D
        pos = decimal(np.uint64(u32(buf, start + k)), data, pos + 1)
    return pos


@inlined
def _sender_cells(
    span: Any, plan: Any, rows: Any, at: Any, i: int, n: int, buf: Any, offsets: Any, valid: Any, to: int,
    data: Any,
) -> int:  # fmt: skip
    """SecurityIDs: a SID or GUID as text, else hex: `msmqwire.columnar.arrow.values.sender_id`."""
    pos, why = span[S_USED], DONE
    while i < n:
        start = _begin(plan, rows, at, i)
        valid[to + i] = 0
        if start >= 0:
            size = _end(plan, rows, at, i) - start
            if pos + _SID_HEAD + GUID_SIZE + (_SID_PART * size >> 2) > span[S_END]:
                why = ROOM
                break
            kind = rows[i, R_KIND]
            flags = u16(buf, rows[i, R_START] + at[i, plan[kind, T_SLOT]] + plan[kind, T_PLUS])
            form = flags & plan[kind, T_MASK]
            valid[to + i] = size > 0
            if form == 1 and size >= 8 and size == 8 + 4 * buf[start + 1]:
                pos = _sid(buf, start, size, data, pos)
            elif form == 2 and size == 16:
                pos = guid(buf, start, data, pos)
            else:
                pos = hexadecimal(buf, start, size, data, pos)
        offsets[to + i + 1] = pos - span[S_BASE]
        i += 1
    span[S_USED], span[S_ROW] = pos, i
    return why


@inlined
def _no_cells(span: Any, i: int, n: int, offsets: Any, valid: Any, to: int) -> int:
    """Rows of kinds that do not have the field."""
    used = span[S_USED] - span[S_BASE]
    for k in range(i, n):
        valid[to + k] = 0
        offsets[to + k + 1] = used
    span[S_ROW] = n
    return DONE


@jit
def cells(
    spans: Any, plans: Any, rows: Any, at: Any, n: int, buf: Any, offsets: Any, valid: Any, data: Any, to: int
) -> tuple[int, int]:
    """The cells of a block of rows in all columns; the column that stopped, and why.

    Some rows at a time, so that their packets stay near.
    """
    for first in range(0, n, NEAR):
        stop = min(n, first + NEAR)
        kinds = 0
        for i in range(first, stop):
            kinds |= 1 << rows[i, R_KIND]
        for i in range(stop, min(n, stop + NEAR)):
            for place in range(rows[i, R_START], rows[i, R_START] + _HEADERS, LINE):
                prefetch(buf, place)
        for c in range(spans.shape[0]):
            span, plan, o, v = spans[c], plans[c], offsets[c], valid[c]
            i, form = max(first, span[S_ROW]), span[S_FORM]
            if i >= stop:
                continue
            if not span[S_KINDS] & kinds:
                why = _no_cells(span, i, stop, o, v, to)
            elif form == RAW:
                why = _raw_cells(span, rows, i, stop, buf, o, v, to, data)
            elif form == BYTES:
                why = _byte_cells(span, plan, rows, at, i, stop, buf, o, v, to, data)
            elif form == GUID:
                why = _guid_cells(span, plan, rows, at, i, stop, buf, o, v, to, data)
            elif form == TEXT:
                why = _text_cells(span, plan, rows, at, i, stop, buf, o, v, to, data)
            elif form == QUEUE_NAME:
                why = _queue_cells(span, plan, rows, at, i, stop, buf, o, v, to, data)
            else:
                why = _sender_cells(span, plan, rows, at, i, stop, buf, o, v, to, data)
            if why != DONE:
                return c, why
    return -1, DONE
