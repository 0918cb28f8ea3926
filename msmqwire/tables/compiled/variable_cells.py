"""Rows to the cells of columns of variable width, compiled.

The cells of a column are written one after the other into its part of the bytes of all columns. A column
stops when it is out of space, or at a cell that is not simple, and continues from there.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.names.header_names import (
    AT_ADMIN,
    AT_DESTINATION,
    AT_SOURCE,
    DIRECT,
    ELSEWHERE,
    LIKE_ADMIN,
    NO_QUEUE,
    PUBLIC,
)
from msmqwire.tables.compiled.arrays import BoolRows, Bytes, Int32Rows, Int64Rows, Int64Tables
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.generated import QUEUE_FIELD_OFFSETS
from msmqwire.tables.compiled.memory import LINE, copy, prefetch, put64, u16, u32
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_KIND, R_LENGTH, R_START
from msmqwire.tables.compiled.texts import (
    GUID_SIZE,
    decimal,
    guid,
    hexadecimal,
    number,
    utf8,
    utf8_replaced,
)

DONE, OUT_OF_SPACE, NOT_SIMPLE = range(3)
"""Why a column stopped: at the end; out of space; at a cell that only the generic reader can make."""
RAW, BYTES, GUID, TEXT, QUEUE_NAME, SENDER = range(6)
"""How the cells of a column are made."""
GROUP: Final = 128
"""Rows that are processed together, so that their packets stay in the caches of a core."""

C_FORM, C_KINDS, C_SIZE_MAX, C_NULL_IF_EMPTY, C_BASE, C_USED, C_END, C_ROW = range(8)
COLUMN_FIELDS: Final = 8
"""A column, by index: how its cells are made; the kinds of packets that may have it, as bits; the bytes of a
cell, at most; whether an empty one is null; where its bytes start, where the used ones end, and where its
space ends; the next row of the block."""

_OTHER_KIND: Final = 63
"""The bit of all kinds from this one on, which have `raw` only."""

SLOT, DISTANCE, END_SLOT, END_DISTANCE = range(4)
"""The plan of a column, for each kind of packet: slot and distance of the start and of the end of the field;
slot -1 for kinds that do not have it."""
(
    Q_FLAGS_SLOT, Q_FLAGS, Q_SOURCE, Q_TARGET, Q_SHIFT, Q_SLOT, Q_DISTANCE, Q_ADMIN_SHIFT, Q_ADMIN_SLOT,
    Q_ADMIN_DISTANCE,
) = range(10)  # fmt: skip
"""The plan of a queue of the UserHeader."""
T_SLOT, T_DISTANCE, T_MASK = range(4, 7)
"""What the plan of a SecurityID has besides: slot and distance of the flags with its type, and their mask."""
PLAN_FIELDS: Final = 10

_DIRECT: Final = np.uint64(int.from_bytes(b"DIRECT=", "little"))
_DIRECT_SIZE: Final = 7
_PRIVATE: Final = np.uint64(int.from_bytes(b"PRIVATE=", "little"))
_PRIVATE_SIZE: Final = 8
_PUBLIC: Final = np.uint64(int.from_bytes(b"PUBLIC=", "little"))
_PUBLIC_SIZE: Final = 7
_NAME_MAX: Final = 64  # characters of a name that is not a direct one
_PUBLIC_GUID: Final = QUEUE_FIELD_OFFSETS["PublicQueueFormatName.PublicQueueIdentifier"]
_OTHER_GUID: Final = QUEUE_FIELD_OFFSETS["PrivateQueueFormatName.SourceQueueManager"]
_OTHER_NUMBER: Final = QUEUE_FIELD_OFFSETS["PrivateQueueFormatName.PrivateQueueIdentifier"]
_NUMBER: Final = QUEUE_FIELD_OFFSETS["PrivateQueueFormatNameId.PrivateQueueIdentifier"]
_COUNT: Final = QUEUE_FIELD_OFFSETS["DirectQueueFormatName.Count"]
_NAME: Final = QUEUE_FIELD_OFFSETS["DirectQueueFormatName.DirectFormatName"]
_HEADERS: Final = 5 * LINE  # about as much as the headers of a packet take
_SID_HEAD, _SID_PART = 24, 11  # characters, at most: of revision and authority; of each part after them


class VariableWidthCells(NamedTuple):
    """The cells of a batch, or of one of its columns.

    Attributes:
        offsets: the offsets of the cells in the bytes of their column, and the end of the last.
        valid: whether each is not null.
        data: the bytes of all columns.
    """

    offsets: Int32Rows
    valid: BoolRows
    data: Bytes


@inlined
def _start(plan: Any, block: RowBlock, i: int) -> int:
    """Return where the field of a row starts; -1 if it has none."""
    kind = block.rows[i, R_KIND]
    if kind >= plan.shape[0] or plan[kind, SLOT] < 0 or block.field_offsets[i, plan[kind, SLOT]] < 0:
        return -1
    return block.rows[i, R_START] + block.field_offsets[i, plan[kind, SLOT]] + plan[kind, DISTANCE]


@inlined
def _end(plan: Any, block: RowBlock, i: int) -> int:
    kind = block.rows[i, R_KIND]
    return block.rows[i, R_START] + block.field_offsets[i, plan[kind, END_SLOT]] + plan[kind, END_DISTANCE]


# Each of the following functions writes the cells of a column from row ``i`` to row ``n`` of a block, as the
# cells ``to + i`` and so on of the batch, and returns why it stopped.


@inlined
def _raw_cells(column: Any, block: RowBlock, i: int, n: int, output: VariableWidthCells, to: int) -> int:
    """Write the bytes of whole packets."""
    rows, offsets, valid, data = block.rows, output.offsets, output.valid, output.data
    pos, stopped = column[C_USED], DONE
    while i < n:
        size = rows[i, R_LENGTH]
        if pos + size > column[C_END]:
            stopped = OUT_OF_SPACE
            break
        copy(block.memory, rows[i, R_START], size, data, pos)
        pos += size
        valid[to + i] = size > 0
        offsets[to + i + 1] = pos - column[C_BASE]
        i += 1
    column[C_USED], column[C_ROW] = pos, i
    return stopped


@inlined
def _byte_cells(
    column: Any, plan: Any, block: RowBlock, i: int, n: int, output: VariableWidthCells, to: int
) -> int:
    """Write fields of bytes."""
    offsets, valid, data = output.offsets, output.valid, output.data
    pos, stopped = column[C_USED], DONE
    while i < n:
        start = _start(plan, block, i)
        valid[to + i] = 0
        if start >= 0:
            size = _end(plan, block, i) - start
            count = min(size, column[C_SIZE_MAX])
            if pos + count > column[C_END]:
                stopped = OUT_OF_SPACE
                break
            valid[to + i] = size > 0 or not column[C_NULL_IF_EMPTY]
            copy(block.memory, start, count, data, pos)
            pos += count
        offsets[to + i + 1] = pos - column[C_BASE]
        i += 1
    column[C_USED], column[C_ROW] = pos, i
    return stopped


@inlined
def _guid_cells(
    column: Any, plan: Any, block: RowBlock, i: int, n: int, output: VariableWidthCells, to: int
) -> int:
    """Write GUIDs as text."""
    offsets, valid, data = output.offsets, output.valid, output.data
    pos, stopped = column[C_USED], DONE
    if pos + (n - i) * GUID_SIZE > column[C_END]:
        n, stopped = i, OUT_OF_SPACE
    while i < n:
        start = _start(plan, block, i)
        valid[to + i] = start >= 0
        if start >= 0:
            pos = guid(block.memory, start, data, pos)
        offsets[to + i + 1] = pos - column[C_BASE]
        i += 1
    column[C_USED], column[C_ROW] = pos, i
    return stopped


@inlined
def _text_cells(
    column: Any, plan: Any, block: RowBlock, i: int, n: int, output: VariableWidthCells, to: int
) -> int:
    """Write texts; one of size 0 is null."""
    offsets, valid, data = output.offsets, output.valid, output.data
    pos, stopped = column[C_USED], DONE
    while i < n:
        start = _start(plan, block, i)
        valid[to + i] = 0
        if start >= 0:
            stop = _end(plan, block, i)
            if stop > start:
                if pos + 3 * ((stop - start + 1) // 2) > column[C_END]:
                    stopped = OUT_OF_SPACE
                    break
                end = utf8(block.memory, start, stop, data, pos)
                pos = end if end >= 0 else utf8_replaced(block.memory, start, stop, data, pos)
                valid[to + i] = 1
        offsets[to + i + 1] = pos - column[C_BASE]
        i += 1
    column[C_USED], column[C_ROW] = pos, i
    return stopped


@inlined
def _private(memory: Any, guid_at: int, number_at: int, data: Any, pos: int) -> int:
    put64(data, pos, _PRIVATE)
    pos = guid(memory, guid_at, data, pos + _PRIVATE_SIZE)
    data[pos] = 0x5C
    return number(memory, number_at, data, pos + 1)


@inlined
def _queue_cells(
    column: Any, plan: Any, block: RowBlock, i: int, n: int, output: VariableWidthCells, to: int
) -> int:
    """Write queues of the UserHeader as format names."""
    rows, memory = block.rows, block.memory
    offsets, valid, data = output.offsets, output.valid, output.data
    pos, stopped = column[C_USED], DONE
    while i < n:
        kind = rows[i, R_KIND]
        valid[to + i] = 0
        if kind < plan.shape[0] and plan[kind, Q_FLAGS_SLOT] >= 0:
            packet = rows[i, R_START]
            flags = u32(memory, packet + plan[kind, Q_FLAGS])
            form = flags >> plan[kind, Q_SHIFT] & 7
            slot, distance = plan[kind, Q_SLOT], plan[kind, Q_DISTANCE]
            if form == LIKE_ADMIN and plan[kind, Q_ADMIN_SLOT] >= 0:
                form = flags >> plan[kind, Q_ADMIN_SHIFT] & 7
                slot, distance = plan[kind, Q_ADMIN_SLOT], plan[kind, Q_ADMIN_DISTANCE]
            p = packet + block.field_offsets[i, slot] + distance
            number_at = p + (_OTHER_NUMBER if form == ELSEWHERE else _NUMBER)
            if form == AT_ADMIN and plan[kind, Q_ADMIN_SLOT] >= 0:
                form = flags >> plan[kind, Q_ADMIN_SHIFT] & 7
                p = packet + block.field_offsets[i, plan[kind, Q_ADMIN_SLOT]] + plan[kind, Q_ADMIN_DISTANCE]
                if form == PUBLIC or form == DIRECT:  # they do not tell the GUID of their host
                    form = NO_QUEUE
            if form == DIRECT:
                start = p + _NAME
                stop = start + u16(memory, p + _COUNT)
                if pos + _DIRECT_SIZE + 1 + 3 * ((stop - start) // 2) > column[C_END]:
                    stopped = OUT_OF_SPACE
                    break
                put64(data, pos, _DIRECT)
                pos += _DIRECT_SIZE
                end = utf8(memory, start, stop, data, pos)
                pos = end if end >= 0 else utf8_replaced(memory, start, stop, data, pos)
                valid[to + i] = 1
            elif form != NO_QUEUE:
                if pos + _NAME_MAX > column[C_END]:
                    stopped = OUT_OF_SPACE
                    break
                if form == PUBLIC:
                    put64(data, pos, _PUBLIC)
                    pos = guid(memory, p + _PUBLIC_GUID, data, pos + _PUBLIC_SIZE)
                elif form == AT_SOURCE:
                    pos = _private(memory, packet + plan[kind, Q_SOURCE], number_at, data, pos)
                elif form == AT_DESTINATION:
                    pos = _private(memory, packet + plan[kind, Q_TARGET], number_at, data, pos)
                elif form == ELSEWHERE:
                    pos = _private(memory, p + _OTHER_GUID, number_at, data, pos)
                else:
                    stopped = NOT_SIMPLE
                    break
                valid[to + i] = 1
        offsets[to + i + 1] = pos - column[C_BASE]
        i += 1
    column[C_USED], column[C_ROW] = pos, i
    return stopped


@jit
def _sid(memory: Any, start: int, size: int, data: Any, pos: int) -> int:
    data[pos] = 0x53
    data[pos + 1] = 0x2D
    pos = decimal(np.uint64(memory[start]), data, pos + 2)
    data[pos] = 0x2D
    authority = np.uint64(0)
    for k in range(2, 8):
        authority = authority << np.uint64(8) | np.uint64(memory[start + k])
    pos = decimal(authority, data, pos + 1)
    for k in range(8, size, 4):
        data[pos] = 0x2D
        pos = decimal(np.uint64(u32(memory, start + k)), data, pos + 1)
    return pos


@inlined
def _sender_cells(
    column: Any, plan: Any, block: RowBlock, i: int, n: int, output: VariableWidthCells, to: int
) -> int:
    """Write SecurityIDs: a SID or GUID as text, else hex, as `msmqwire.tables.arrow.values.sender_id`."""
    rows, memory = block.rows, block.memory
    offsets, valid, data = output.offsets, output.valid, output.data
    pos, stopped = column[C_USED], DONE
    while i < n:
        start = _start(plan, block, i)
        valid[to + i] = 0
        if start >= 0:
            size = _end(plan, block, i) - start
            if pos + _SID_HEAD + GUID_SIZE + (_SID_PART * size >> 2) > column[C_END]:
                stopped = OUT_OF_SPACE
                break
            kind = rows[i, R_KIND]
            header = rows[i, R_START] + block.field_offsets[i, plan[kind, T_SLOT]]
            form = u16(memory, header + plan[kind, T_DISTANCE]) & plan[kind, T_MASK]
            valid[to + i] = size > 0
            if form == 1 and size >= 8 and size == 8 + 4 * memory[start + 1]:
                pos = _sid(memory, start, size, data, pos)
            elif form == 2 and size == 16:
                pos = guid(memory, start, data, pos)
            else:
                pos = hexadecimal(memory, start, size, data, pos)
        offsets[to + i + 1] = pos - column[C_BASE]
        i += 1
    column[C_USED], column[C_ROW] = pos, i
    return stopped


@inlined
def _null_cells(column: Any, i: int, n: int, output: VariableWidthCells, to: int) -> int:
    """Write the cells of rows of kinds that do not have the field."""
    used = column[C_USED] - column[C_BASE]
    for k in range(i, n):
        output.valid[to + k] = 0
        output.offsets[to + k + 1] = used
    column[C_ROW] = n
    return DONE


@exported
@jit
def write_cells(
    columns: Int64Rows, plans: Int64Tables, block: RowBlock, output: VariableWidthCells, to: int
) -> tuple[int, int]:
    """Write the cells of a block of rows in all columns, from cell ``to`` on.

    Rows are processed in groups, so that their packets stay in the caches.

    Returns:
        The number of the column that stopped, -1 for none, and why.
    """
    rows, memory = block.rows, block.memory
    n = rows.shape[0]
    for first in range(0, n, GROUP):
        stop = min(n, first + GROUP)
        kinds = np.int64(0)
        for i in range(first, stop):
            kinds |= np.int64(1) << np.int64(min(rows[i, R_KIND], _OTHER_KIND))
        for i in range(stop, min(n, stop + GROUP)):
            for line in range(rows[i, R_START], rows[i, R_START] + _HEADERS, LINE):
                prefetch(memory, line)
        for c in range(columns.shape[0]):
            column, plan = columns[c], plans[c]
            cells = VariableWidthCells(output.offsets[c], output.valid[c], output.data)
            i, form = max(first, column[C_ROW]), column[C_FORM]
            if i >= stop:
                continue
            if not column[C_KINDS] & kinds:
                stopped = _null_cells(column, i, stop, cells, to)
            elif form == RAW:
                stopped = _raw_cells(column, block, i, stop, cells, to)
            elif form == BYTES:
                stopped = _byte_cells(column, plan, block, i, stop, cells, to)
            elif form == GUID:
                stopped = _guid_cells(column, plan, block, i, stop, cells, to)
            elif form == TEXT:
                stopped = _text_cells(column, plan, block, i, stop, cells, to)
            elif form == QUEUE_NAME:
                stopped = _queue_cells(column, plan, block, i, stop, cells, to)
            else:
                stopped = _sender_cells(column, plan, block, i, stop, cells, to)
            if stopped != DONE:
                return c, stopped
    return -1, DONE
