"""The cells of columns of variable width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.tables.arrow import plans
from msmqwire.tables.arrow.buffers import Bitmaps, BufferPool
from msmqwire.tables.arrow.rows import value_of_packet
from msmqwire.tables.columns import Column
from msmqwire.tables.compiled import variable_cells
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.variable_cells import (
    C_BASE,
    C_END,
    C_ROW,
    C_USED,
    NOT_SIMPLE,
    VariableWidthCells,
)

_SIZE_MIN: Final = 1 << 16
"""Bytes of space of a column, at least."""
_SHARE_MIN: Final = 1 / 64
"""The share of a batch from which its size is estimated, at least."""
_MARGIN: Final = 1.25
"""Factor between the estimated size and the space."""
_ALIGNED: Final = 16
"""The offsets of a column take a multiple of this in the array of all offsets."""

Reparse = Callable[[RowBlock, int], Any]
"""The packet of a row by the generic reader."""


class VariableWidthColumns:
    """The cells of the columns whose values differ in size, for one batch after the other.

    Args:
        columns: the columns.
        capacity: rows of a batch, at most.
        bytes_max: bytes in all cells after which a batch ends; about.
        body_limit: bytes of ``body``, at most.
    """

    def __init__(
        self, columns: Sequence[Column], capacity: int, bytes_max: int, body_limit: int | None
    ) -> None:
        self.columns = columns
        self._capacity, self._bytes_max = capacity, bytes_max
        self._states, self._plans = plans.variable_width_plans(columns, body_limit)
        self._sizes = np.full(len(columns), _SIZE_MIN, np.int64)
        self._numbers = {column.name: number for number, column in enumerate(columns)}
        self._memory = BufferPool(), BufferPool(), BufferPool()

    @property
    def used(self) -> int:
        """Bytes in all cells."""
        return int((self._states[:, C_USED] - self._states[:, C_BASE]).sum())

    def begin(self) -> None:
        """Begin a batch."""
        count = len(self.columns)
        offsets, valid, data = self._memory
        stride = -(-(self._capacity + 1) // _ALIGNED) * _ALIGNED
        self._cells = VariableWidthCells(
            offsets.array((count, stride), np.int32),
            valid.array((count, self._capacity), np.bool_),
            data.array((int(self._sizes.sum()),), np.uint8),
        )
        self._cells.offsets[:, 0] = 0
        self._lay_out()
        self._states[:, C_USED] = self._states[:, C_BASE]

    def _lay_out(self) -> None:
        """Assign each column its part of the bytes."""
        self._states[:, C_END] = np.cumsum(self._sizes)
        self._states[:, C_BASE] = self._states[:, C_END] - self._sizes

    def add(self, block: RowBlock, to: int, reparse: Reparse) -> None:
        """Write the cells of a block of rows, from row ``to`` of the batch on."""
        if not self.columns:
            return
        self._states[:, C_ROW] = 0
        while True:
            number, reason = variable_cells.write_cells(self._states, self._plans, block, self._cells, to)
            if number < 0:
                return
            if reason == NOT_SIMPLE:
                row = int(self._states[number, C_ROW])
                value = value_of_packet(self.columns[number], reparse(block, row))
                self._append(number, to + row, value)
                self._states[number, C_ROW] += 1
            else:
                left = int(self._states[number, C_END] - self._states[number, C_USED])
                self._reserve(number, left + 1, to + int(self._states[number, C_ROW]))

    def _append(self, number: int, row: int, value: str | bytes | None) -> None:
        """Append one cell to a column."""
        data = value.encode() if isinstance(value, str) else value
        if data:
            self._reserve(number, len(data), row)
            used = int(self._states[number, C_USED])
            self._cells.data[used : used + len(data)] = np.frombuffer(data, np.uint8)
            self._states[number, C_USED] += len(data)
        self._cells.valid[number, row] = data is not None
        self._cells.offsets[number, row + 1] = self._states[number, C_USED] - self._states[number, C_BASE]

    def _reserve(self, number: int, more: int, row: int) -> None:
        """Make space for more bytes in a column.

        All columns get the memory that they will need if the batch continues as up to ``row``, so that they
        seldom grow one by one.
        """
        before = self._states.copy()
        used = before[:, C_USED] - before[:, C_BASE]
        if used[number] + more <= self._sizes[number]:
            return
        share = max(row / self._capacity, int(used.sum()) / self._bytes_max, _SHARE_MIN)
        self._sizes = np.maximum(self._sizes, (used / share * _MARGIN).astype(np.int64))
        self._sizes[number] = max(used[number] + more, 2 * self._sizes[number])
        data = self._memory[-1].array((int(self._sizes.sum()),), np.uint8)
        self._lay_out()
        self._states[:, C_USED] = self._states[:, C_BASE] + used
        for old, new, count in zip(before[:, C_BASE], self._states[:, C_BASE], used, strict=True):
            data[new : new + count] = self._cells.data[old : old + count]
        self._cells = self._cells._replace(data=data)

    def finish(self, n: int) -> None:
        """Prepare the bitmaps of the first ``n`` cells of all columns, for `array`."""
        self._valid = Bitmaps(self._cells.valid, n)

    def array(self, column: Column, n: int) -> Any:
        """Return the first ``n`` cells of a column, as many as are finished."""
        number = self._numbers[column.name]
        start, stop = self._states[number, C_BASE], self._states[number, C_USED]
        buffers = [
            self._valid.validity(number),
            pa.py_buffer(self._cells.offsets[number, : n + 1]),
            pa.py_buffer(self._cells.data[start:stop]),
        ]
        return pa.Array.from_buffers(column.type, n, buffers)
