"""The cells of columns whose values differ in size, while a batch is being made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.columnar.arrow import plans
from msmqwire.columnar.arrow.buffers import Block, BufferPool, bitmap
from msmqwire.columnar.arrow.rows import value_of_packet
from msmqwire.columnar.columns import Column
from msmqwire.columnar.compiled import variable_cells
from msmqwire.columnar.compiled.variable_cells import ASK, S_BASE, S_END, S_ROW, S_USED

_LEAST: Final = 1 << 16
_SHARE_LEAST: Final = 1 / 64
"""Of a batch, from which its size is guessed."""
_MARGIN: Final = 1.25
_ALIGNED: Final = 16
"""Offsets of a column in a row of those of all columns, a multiple of this."""

Reparse = Callable[[Any, int, Any], Any]


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
        self._memory = BufferPool(), BufferPool(), BufferPool()

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
