"""The cells of columns while a batch is being made, in the buffers that Arrow will have."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.columnar.arrow import plans
from msmqwire.columnar.arrow.rows import value_of_packet
from msmqwire.columnar.columns import Column
from msmqwire.columnar.compiled import fixed_cells, variable_cells
from msmqwire.columnar.compiled.fixed_cells import BOOL, INT32, INT64, PADDING
from msmqwire.columnar.compiled.variable_cells import ASK, NEAR, S_BASE, S_END, S_ROW, S_USED

_LEAST: Final = 1 << 16
_SHARE_LEAST: Final = 1 / 64
"""Of a batch, from which its size is guessed."""
_MARGIN: Final = 1.25
_ALIGNED: Final = 16
"""Offsets of a column in a row of those of all columns, a multiple of this."""
_OTHERS: Final = 1
"""Arrays that are kept besides that of the batch being made: that of the batch that is looked at."""

Block = tuple[Any, Any, int, Any]
"""Rows, the places of their fields, how many there are, the memory that their bytes stand in."""
Reparse = Callable[[Any, int, Any], Any]


def bitmap(valid: Any) -> Any:
    """Arrow's bitmap of a column of booleans; None where all are true."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def shared_texts(codes: Any, texts: Sequence[str], valid: Any = None) -> Any:
    """An array of texts from their places in ``texts``; null where they are not ``valid``."""
    n, pieces = len(codes), [text.encode() for text in texts]
    starts = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=starts[1:])
    source = np.frombuffer(bytearray(b"".join(pieces) + bytes(PADDING)), np.uint8)
    offsets = np.empty(n + 1, np.int32)
    size = fixed_cells.text_offsets(codes, n, starts, offsets)
    data = np.empty(size + PADDING, np.uint8)
    fixed_cells.texts(codes, n, starts, source, offsets, data)
    buffers = [None if valid is None else bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data[:size])]
    return pa.Array.from_buffers(pa.string(), n, buffers)


def sparse(cells: dict[int, Any], n: int, kind: Any) -> Any:
    """An array of texts or of integers of 64 bits of which most are null, from the others by row."""
    found = {row: value for row, value in cells.items() if value is not None}
    if not found:
        return pa.nulls(n, kind)
    rows = np.array(list(found))
    valid = np.zeros(n, np.bool_)
    valid[rows] = True
    values = np.zeros(n, np.int64)
    if kind != pa.string():
        values[rows] = list(found.values())
        return pa.Array.from_buffers(kind, n, [bitmap(valid), pa.py_buffer(values)])
    pieces = [text.encode() for text in found.values()]
    values[rows] = [len(piece) for piece in pieces]
    offsets = np.zeros(n + 1, np.int32)
    np.cumsum(values, out=offsets[1:])
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(kind, n, buffers)


class Kept:
    """An array for each batch: one of those before it where nobody has that any more.

    Fresh memory is dear, since the system clears each page of it.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []

    def array(self, shape: tuple[int, ...], kind: Any) -> Any:
        """An array with anything in it."""
        size = math.prod(shape) * np.dtype(kind).itemsize
        kept = [array for array in self._arrays if array.size == size]
        self._arrays = []
        free = next((k for k in range(len(kept)) if _references(kept, k) == _ALONE), None)
        array = np.empty(size, np.uint8) if free is None else kept.pop(free)
        self._arrays = [*kept[-_OTHERS:], array]
        return array.view(kind).reshape(shape)


def _references(arrays: list[Any], k: int) -> int:
    return sys.getrefcount(arrays[k])


_ALONE: Final = _references([np.empty(0, np.uint8)], 0)


class Spans:
    """The cells of all columns whose values differ in size."""

    def __init__(
        self, columns: Sequence[Column], capacity: int, bytes_max: int, body_limit: int | None
    ) -> None:
        self.columns = columns
        self._capacity, self._bytes_max = capacity, bytes_max
        self._spans, self._plans = plans.span_plans(columns, body_limit)
        self._sizes = np.full(len(columns), _LEAST, np.int64)
        self._numbers = {column.name: number for number, column in enumerate(columns)}
        self._memory = Kept(), Kept(), Kept()

    @property
    def used(self) -> int:
        """Bytes in all cells."""
        return int((self._spans[:, S_USED] - self._spans[:, S_BASE]).sum())

    def begin(self) -> None:
        """Begins a new batch."""
        count = len(self.columns)
        offsets, valid, data = self._memory
        places = -(-(self._capacity + 1) // _ALIGNED) * _ALIGNED
        self._offsets = offsets.array((count, places), np.int32)
        self._offsets[:, 0] = 0
        self._valid = valid.array((count, self._capacity), np.bool_)
        self._data = data.array((int(self._sizes.sum()),), np.uint8)
        self._lay_out()
        self._spans[:, S_USED] = self._spans[:, S_BASE]

    def _lay_out(self) -> None:
        """Has each column know its part of the bytes."""
        self._spans[:, S_END] = np.cumsum(self._sizes)
        self._spans[:, S_BASE] = self._spans[:, S_END] - self._sizes

    def add(self, block: Block, to: int, reparse: Reparse) -> None:
        """The cells of some rows, from row ``to`` of the batch on."""
        if not self.columns:
            return
        rows, at, n, buf = block
        self._spans[:, S_ROW] = 0
        while True:
            number, why = variable_cells.cells(
                self._spans, self._plans, rows, at, n, buf, self._offsets, self._valid, self._data, to
            )
            if number < 0:
                return
            if why == ASK:
                row = int(self._spans[number, S_ROW])
                value = value_of_packet(self.columns[number], reparse(rows, row, buf))
                self._put(number, to + row, value)
                self._spans[number, S_ROW] += 1
            else:
                left = int(self._spans[number, S_END] - self._spans[number, S_USED])
                self._grow(number, left + 1, to + int(self._spans[number, S_ROW]))

    def _put(self, number: int, row: int, value: str | bytes | None) -> None:
        """One cell, behind those before it."""
        data = value.encode() if isinstance(value, str) else value
        if data:
            self._grow(number, len(data), row)
            used = int(self._spans[number, S_USED])
            self._data[used : used + len(data)] = np.frombuffer(data, np.uint8)
            self._spans[number, S_USED] += len(data)
        self._valid[number, row] = data is not None
        self._offsets[number, row + 1] = self._spans[number, S_USED] - self._spans[number, S_BASE]

    def _grow(self, number: int, more: int, row: int) -> None:
        """Has room for more bytes in the cells of a column; and for what all columns will take if the batch
        goes on as up to ``row``, so that they seldom grow one by one."""
        before = self._spans.copy()
        used = before[:, S_USED] - before[:, S_BASE]
        if used[number] + more <= self._sizes[number]:
            return
        share = max(row / self._capacity, int(used.sum()) / self._bytes_max, _SHARE_LEAST)
        self._sizes = np.maximum(self._sizes, (used / share * _MARGIN).astype(np.int64))
        self._sizes[number] = max(used[number] + more, 2 * self._sizes[number])
        data = self._memory[-1].array((int(self._sizes.sum()),), np.uint8)
        self._lay_out()
        self._spans[:, S_USED] = self._spans[:, S_BASE] + used
        for old, new, count in zip(before[:, S_BASE], self._spans[:, S_BASE], used, strict=True):
            data[new : new + count] = self._data[old : old + count]
        self._data = data

    def array(self, column: Column, n: int) -> Any:
        """The first ``n`` cells of a column."""
        number = self._numbers[column.name]
        start, stop = self._spans[number, S_BASE], self._spans[number, S_USED]
        buffers = [
            bitmap(self._valid[number, :n]),
            pa.py_buffer(self._offsets[number, : n + 1]),
            pa.py_buffer(self._data[start:stop]),
        ]
        return pa.Array.from_buffers(column.type, n, buffers)


class Integers:
    """The cells of all columns of integers, flags and times of seconds in packets."""

    def __init__(self, columns: Sequence[Column], capacity: int) -> None:
        self._capacity = capacity
        self._plan = plans.integer_plan(columns)
        self._chosen = np.zeros(NEAR, np.int64), np.zeros(NEAR, np.int64), np.zeros(NEAR, np.int64)
        self._memory = Kept(), Kept(), Kept(), Kept()

    def begin(self) -> None:
        """Begins a new batch."""
        plan, capacity = self._plan, self._capacity
        valid, bools, int32s, int64s = self._memory
        self._valid = valid.array((max(1, plan.valid), capacity), np.bool_)
        self._valid[:] = False
        self._bools = bools.array((max(1, plan.counts[BOOL]), capacity), np.bool_)
        self._int32s = int32s.array((max(1, plan.counts[INT32]), capacity), np.int32)
        self._int64s = int64s.array((max(1, plan.counts[INT64]), capacity), np.int64)
        self._bitmaps: dict[int, Any] = {}

    def add(self, block: Block, to: int) -> None:
        """The cells of some rows, from row ``to`` of the batch on."""
        rows, at, n, buf = block
        plan = self._plan
        fixed_cells.integers(
            plan.fields, plan.field_counts, plan.there, plan.there_counts, rows, at, n, buf, self._bools,
            self._int32s, self._int64s, self._valid, to, *self._chosen,
        )  # fmt: skip

    def array(self, column: Column, n: int) -> Any:
        """The first ``n`` cells of a column."""
        form, number, valid = self._plan.columns[column.name]
        if valid not in self._bitmaps:
            self._bitmaps[valid] = bitmap(self._valid[valid, :n])
        data: Any
        if form == BOOL:
            data = np.packbits(self._bools[number, :n], bitorder="little")
        elif form == INT32:
            data = self._int32s[number, :n]
        else:
            data = self._int64s[number, :n]
        return pa.Array.from_buffers(column.type, n, [self._bitmaps[valid], pa.py_buffer(data)])

    def numbers(self, column: Column, n: int) -> tuple[Any, Any]:
        """The first ``n`` values of a column of 32 bits, and which of them are there."""
        _, number, valid = self._plan.columns[column.name]
        return self._int32s[number, :n], self._valid[valid, :n]
