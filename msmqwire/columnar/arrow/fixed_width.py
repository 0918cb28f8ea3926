"""The cells of columns of fixed width, while a batch is being made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire.columnar.arrow import plans
from msmqwire.columnar.arrow.buffers import Block, BufferPool, bitmap
from msmqwire.columnar.columns import Column
from msmqwire.columnar.compiled import fixed_cells
from msmqwire.columnar.compiled.fixed_cells import BOOL, INT32, INT64
from msmqwire.columnar.compiled.variable_cells import NEAR


class Integers:
    """The cells of all columns of integers, flags and times of seconds in packets."""

    def __init__(self, columns: Sequence[Column], capacity: int) -> None:
        self._capacity = capacity
        self._plan = plans.integer_plan(columns)
        self._chosen = np.zeros(NEAR, np.int64), np.zeros(NEAR, np.int64), np.zeros(NEAR, np.int64)
        self._memory = BufferPool(), BufferPool(), BufferPool(), BufferPool()

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
