"""The cells of columns of fixed width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire.tables.arrow import plans
from msmqwire.tables.arrow.buffers import Bitmaps, BufferPool
from msmqwire.tables.columns import Column
from msmqwire.tables.compiled import fixed_cells
from msmqwire.tables.compiled.fixed_cells import BOOL, INT32, INT64, FixedWidthCells, KindScratch
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.variable_cells import GROUP


class FixedWidthColumns:
    """The cells of the columns of integers, flags and times in seconds, for one batch after the other."""

    def __init__(self, columns: Sequence[Column], capacity: int) -> None:
        self._capacity = capacity
        self._plan = plans.fixed_width_plan(columns)
        self._scratch = KindScratch(*(np.zeros(GROUP, np.int64) for _ in range(3)))
        self._memory = BufferPool(), BufferPool(), BufferPool(), BufferPool()

    def begin(self) -> None:
        """Begin a batch."""
        plan, capacity = self._plan, self._capacity
        bools, int32s, int64s, valid = self._memory
        self._cells = FixedWidthCells(
            bools.array((max(1, plan.counts[BOOL]), capacity), np.bool_),
            int32s.array((max(1, plan.counts[INT32]), capacity), np.int32),
            int64s.array((max(1, plan.counts[INT64]), capacity), np.int64),
            valid.array((max(1, plan.valid), capacity), np.bool_),
        )

    def add(self, block: RowBlock, to: int) -> None:
        """Write the cells of a block of rows, from row ``to`` of the batch on."""
        fixed_cells.write_packet_cells(self._plan.fields, block, self._cells, self._scratch, to)

    def finish(self, n: int) -> None:
        """Prepare the bitmaps of the first ``n`` cells of all columns, for `array`."""
        self._bools, self._valid = Bitmaps(self._cells.bools, n), Bitmaps(self._cells.valid, n)

    def array(self, column: Column, n: int) -> Any:
        """Return the first ``n`` cells of a column, as many as are finished."""
        form, number, valid = self._plan.columns[column.name]
        if form == BOOL:
            data = self._bools.values(number)
        else:
            cells = self._cells.int32s if form == INT32 else self._cells.int64s
            data = pa.py_buffer(cells[number, :n])
        return pa.Array.from_buffers(column.type, n, [self._valid.validity(valid), data])

    def validity(self, column: Column) -> Any:
        """Return the bitmap of the cells of a column that are finished; None if none is null."""
        return self._valid.validity(self._plan.columns[column.name][2])

    def flags(self, column: Column, first: int, stop: int) -> tuple[Any, Any]:
        """Return some values of a column of flags, and the mask of the valid ones; the rest are null."""
        _, number, valid = self._plan.columns[column.name]
        return self._cells.bools[number, first:stop], self._cells.valid[valid, first:stop]

    def numbers(self, column: Column, n: int) -> tuple[Any, Any]:
        """Return the first ``n`` values of a column of 32 bits, and which of them are not null."""
        _, number, valid = self._plan.columns[column.name]
        return self._cells.int32s[number, :n], self._cells.valid[valid, :n]
