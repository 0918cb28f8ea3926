"""Rows to the cells of columns of fixed width, compiled; and to texts that many rows share."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.capture.record import NO_TIME
from msmqwire.tables.compiled.arrays import (
    BoolRows,
    Bools,
    Bytes,
    Int32Rows,
    Int32s,
    Int64Rows,
    Int64s,
    Int64Tables,
)
from msmqwire.tables.compiled.decorators import brief, exported, inlined, jit
from msmqwire.tables.compiled.memory import copy, u8, u16, u32
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import (
    R_EXTRA,
    R_FILE,
    R_FRAME,
    R_IPV6,
    R_KIND,
    R_PORTS,
    R_SIZE,
    R_START,
    R_STREAM,
    R_TIME,
    REFUSAL_IN_OFFSETS,
    TUNNEL_BITS,
    TUNNEL_MASK,
)

BOOL, INT32, INT64 = range(3)
"""Types of cells."""
P_CELLS, P_TYPE, P_SLOT, P_DISTANCE, P_SIZE, P_SHIFT, P_MASK = range(7)
PLAN_FIELDS: Final = 7
"""How a field of a kind of packet becomes a cell, by index: the number of its column among those of its type;
that type; the slot and distance where it stands; its size; how it is shifted and masked."""
V_VALID, V_SLOT = range(2)
"""Whether a kind of packet has a field, by index: the row of `FixedWidthCells.valid`, and the slot that says
so."""

TIME, FRAME, STREAM, SIZE = range(4)
SRC_PORT, DST_PORT, FILE, TRANSPORT, KIND, TUNNEL, SRC, DST = range(8)
"""The columns that are not from packets, of 64 and of 32 bits."""

PADDING: Final = 16
"""Bytes that must follow shared texts, and the space to which they are written."""


class FieldPlan(NamedTuple):
    """The fields that are read, for each kind of packet.

    Attributes:
        fields: ``fields[kind, :counts[kind]]`` are the fields of a kind, sorted by slot; see P_CELLS.
        counts: how many they are.
        valid_fields: ``valid_fields[kind, :valid_counts[kind]]`` say which fields exist; see V_VALID.
        valid_counts: how many they are.
    """

    fields: Int64Tables
    counts: Int64s
    valid_fields: Int64Tables
    valid_counts: Int64s


class FixedWidthCells(NamedTuple):
    """The cells of a batch: by type a row for each column, and their validity."""

    bools: BoolRows
    int32s: Int32Rows
    int64s: Int64Rows
    valid: BoolRows


class KindScratch(NamedTuple):
    """Scratch space for rows of one kind that are processed together.

    Attributes:
        chosen: the numbers of the rows.
        starts: where the parts of their packets at a slot start.
        cells: the numbers of their cells.
    """

    chosen: Int64s
    starts: Int64s
    cells: Int64s


@exported
@brief
def write_capture_cells(
    rows: Int64Rows, int64s: Int64Rows, int32s: Int32Rows, valid: BoolRows, to: int
) -> int:
    """Write the columns that are not from packets, all but SRC and DST, from cell ``to`` on.

    ``valid`` gets which cells of 64 bits are not null, then those of the ports. Returns how many rows have a
    refusal.
    """
    refusals = 0
    for i in range(rows.shape[0]):
        row, cell = rows[i], to + i
        int64s[TIME, cell] = row[R_TIME]
        int64s[FRAME, cell] = row[R_FRAME] >> TUNNEL_BITS
        int64s[STREAM, cell] = row[R_STREAM]
        int64s[SIZE, cell] = row[R_SIZE]
        int32s[SRC_PORT, cell] = row[R_PORTS] >> 16
        int32s[DST_PORT, cell] = row[R_PORTS] & 0xFFFF
        int32s[FILE, cell] = row[R_FILE]
        int32s[TRANSPORT, cell] = -row[R_STREAM] if row[R_STREAM] < 0 else 0
        int32s[KIND, cell] = row[R_KIND]
        int32s[TUNNEL, cell] = row[R_FRAME] & TUNNEL_MASK if row[R_FRAME] >= 0 else 0
        valid[TIME, cell] = row[R_TIME] != NO_TIME
        valid[FRAME, cell] = row[R_FRAME] >= 0
        valid[STREAM, cell] = row[R_STREAM] >= 0
        valid[SIZE, cell] = row[R_SIZE] >= 0
        valid[SIZE + 1 + SRC_PORT, cell] = row[R_PORTS] >> 16 >= 0
        valid[SIZE + 1 + DST_PORT, cell] = True
        refusals += row[R_EXTRA] == REFUSAL_IN_OFFSETS
    return refusals


@exported
@jit
def write_packet_cells(
    plan: FieldPlan, block: RowBlock, output: FixedWidthCells, scratch: KindScratch, to: int
) -> None:
    """Write the fields of fixed size, and which of them exist, from cell ``to`` on.

    Rows are processed in groups of the size of the scratch arrays, so that their packets stay in the caches,
    and in a group kind by kind.
    """
    rows, field_offsets, memory = block.rows, block.field_offsets, block.memory
    chosen, starts, cells = scratch.chosen, scratch.starts, scratch.cells
    n = rows.shape[0]
    for k in range(output.valid.shape[0]):
        for i in range(to, to + n):
            output.valid[k, i] = False
    for first in range(0, n, chosen.size):
        stop = min(n, first + chosen.size)
        for kind in range(plan.counts.size):
            count = 0
            for i in range(first, stop):
                if rows[i, R_KIND] == kind:
                    chosen[count] = i
                    count += 1
            if not count:
                continue
            for j in range(plan.valid_counts[kind]):
                field = plan.valid_fields[kind, j]
                _set_valid(output.valid[field[V_VALID]], field[V_SLOT], field_offsets, chosen, count, to)
            slot, existing = -1, 0
            for j in range(plan.counts[kind]):
                field = plan.fields[kind, j]
                if field[P_SLOT] != slot:
                    slot, existing = field[P_SLOT], 0
                    for k in range(count):
                        i = chosen[k]
                        starts[existing], cells[existing] = rows[i, R_START] + field_offsets[i, slot], to + i
                        existing += field_offsets[i, slot] >= 0
                form, number = field[P_TYPE], field[P_CELLS]
                if form == INT32:
                    _read_field(field, starts, cells, existing, memory, output.int32s[number])
                elif form == INT64:
                    _read_field(field, starts, cells, existing, memory, output.int64s[number])
                else:
                    _read_field(field, starts, cells, existing, memory, output.bools[number])


@inlined
def _set_valid(valid: Any, slot: int, field_offsets: Any, chosen: Any, count: int, to: int) -> None:
    for k in range(count):
        i = chosen[k]
        valid[to + i] = field_offsets[i, slot] >= 0


@inlined
def _read_field(field: Any, starts: Any, cells: Any, count: int, memory: Any, values: Any) -> None:
    """Write one field of some rows of a kind."""
    distance, size, shift, mask = field[P_DISTANCE], field[P_SIZE], field[P_SHIFT], field[P_MASK]
    if size == 4:
        for k in range(count):
            values[cells[k]] = u32(memory, starts[k] + distance) >> shift & mask
    elif size == 2:
        for k in range(count):
            values[cells[k]] = u16(memory, starts[k] + distance) >> shift & mask
    else:
        for k in range(count):
            values[cells[k]] = u8(memory, starts[k] + distance) >> shift & mask


# -- texts that many rows share ---------------------------------------------------------------------


@exported
@brief
def text_offsets(codes: Int32s, starts: Int64s, offsets: Int32s) -> int:
    """Write the offsets of the texts of some codes when they are concatenated; return their total size."""
    pos = 0
    offsets[0] = 0
    for i in range(codes.size):
        code = codes[i]
        pos += starts[code + 1] - starts[code]
        offsets[i + 1] = pos
    return pos


@exported
@brief
def write_texts(codes: Int32s, starts: Int64s, source: Bytes, offsets: Int32s, data: Bytes) -> None:
    """Concatenate the texts of some codes.

    They are copied `PADDING` bytes at a time; what is too much is overwritten by the next.
    """
    for i in range(codes.size):
        start, pos = starts[codes[i]], offsets[i]
        for k in range(0, offsets[i + 1] - pos, PADDING):
            copy(source, start + k, PADDING, data, pos + k)


@exported
@brief
def class_codes(table: Int32s, classes: Int32s, valid: Bools, codes: Int32s, i: int) -> int:
    """Write the codes of message classes from row ``i`` on, 0 for null; return the first row without a code.

    That is the number of rows if each class has one.
    """
    while i < codes.size:
        codes[i] = 0
        if valid[i]:
            code = table[classes[i]]
            if not code:
                return i
            codes[i] = code
        i += 1
    return i


@inlined
def _slot(table: Any, high: int, low: int) -> int:
    mixed = (
        np.uint64(np.int64(low)) ^ np.uint64(np.int64(high)) * np.uint64(0x9E3779B97F4A7C15)
    ) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(mixed >> np.uint64(40)) & (table.size - 1)


@exported
@brief
def address_codes(
    table: Int32s, addresses: Int64Rows, rows: Int64Rows, side: int, codes: Int32s, i: int
) -> int:
    """Write the codes of addresses from row ``i`` on; return the first row whose address has none.

    That is the number of rows if each has one. ``side`` is R_SRC_HIGH or R_DST_HIGH.
    """
    while i < rows.shape[0]:
        high, low, ipv6 = rows[i, side], rows[i, side + 1], rows[i, R_IPV6]
        slot = _slot(table, high, low)
        code = table[slot]
        while code >= 0:
            if addresses[code, 0] == high and addresses[code, 1] == low and addresses[code, 2] == ipv6:
                break
            slot = (slot + 1) & (table.size - 1)
            code = table[slot]
        if code < 0:
            return i
        codes[i] = code
        i += 1
    return i


@exported
@brief
def add_address(table: Int32s, addresses: Int64Rows, code: int, high: int, low: int, ipv6: int) -> None:
    """Give an address a code."""
    slot = _slot(table, high, low)
    while table[slot] >= 0:
        slot = (slot + 1) & (table.size - 1)
    table[slot] = code
    addresses[code, 0], addresses[code, 1], addresses[code, 2] = high, low, ipv6
