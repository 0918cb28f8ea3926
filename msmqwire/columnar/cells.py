"""The cells of one column while a batch is being made, in the buffers that Arrow will have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.columnar import extract, plans
from msmqwire.columnar.columns import Column
from msmqwire.columnar.extract import ASK, DONE
from msmqwire.columnar.rows import value_of_packet

_LEAST: Final = 1 << 16
_NEAR: Final = 256
"""Rows whose packets and places are in the caches of a core together."""

Block = tuple[Any, Any, int, Any]
"""Rows, the places of their fields, how many there are, the memory that their bytes stand in."""
Reparse = Callable[[Any, int, Any], Any]


def bitmap(valid: Any) -> Any:
    """Arrow's bitmap of a column of bytes that are 0 or not; None where all are not."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


class Spans:
    """The cells of a column whose values differ in size."""

    def __init__(self, column: Column, capacity: int, body_limit: int | None) -> None:
        self.column = column
        self._capacity = capacity
        self._form = plans.form_of(column)
        self._most = body_limit if column.name == "body" and body_limit is not None else 1 << 62
        self._plan = None
        if self._form == "queue":
            self._plan = plans.queue_plan(column)
        elif self._form != "where":
            self._plan = plans.span_plan(column)
        self._sender = plans.sender_flags()
        self._size = _LEAST
        self.clear()

    def clear(self) -> None:
        """Begins a new batch."""
        self._offsets = np.zeros(self._capacity + 1, np.int32)
        self._valid = np.zeros(self._capacity, np.uint8)
        self._data = np.empty(self._size, np.uint8)
        self.used = 0

    def add(self, block: Block, to: int, reparse: Reparse) -> None:
        """The cells of some rows, from row ``to`` of the batch on."""
        i, n = 0, block[2]
        while i < n:
            i, self.used, why = self._write(block, i, to)
            if why == DONE:
                continue
            if why == ASK:
                value = value_of_packet(self.column, reparse(block[0], i, block[3]))
                self.put(to + i, value)
                i += 1
            else:
                self._grow(self._data.size + _LEAST)

    def put(self, row: int, value: str | bytes | None) -> None:
        """One cell, behind those before it."""
        data = value.encode() if isinstance(value, str) else value
        if data:
            self._grow(self.used + len(data))
            self._data[self.used : self.used + len(data)] = np.frombuffer(data, np.uint8)
            self.used += len(data)
        self._valid[row] = data is not None
        self._offsets[row + 1] = self.used

    def _grow(self, size: int) -> None:
        if size > self._data.size:
            self._size = max(size, 2 * self._data.size)
            data = np.empty(self._size, np.uint8)
            data[: self.used] = self._data[: self.used]
            self._data = data

    def _write(self, block: Block, i: int, to: int) -> tuple[int, int, int]:
        rows, at, n, buf = block
        cells = self._offsets, self._valid, to, self._data, self.used
        match self._form:
            case "where":
                return extract.raw_cells(rows, i, n, buf, *cells)
            case "bytes":
                empty_is_null = self.column.convert is not None
                return extract.byte_cells(self._plan, rows, at, i, n, buf, *cells, self._most, empty_is_null)
            case "guid":
                return extract.guid_cells(self._plan, rows, at, i, n, buf, *cells)
            case "text":
                return extract.text_cells(self._plan, rows, at, i, n, buf, *cells)
            case "queue":
                return extract.queue_cells(self._plan, rows, at, i, n, buf, *cells)
            case _:
                return extract.sender_cells(self._plan, rows, at, i, n, buf, *cells, *self._sender)

    def array(self, n: int) -> Any:
        """The first ``n`` cells."""
        buffers = [bitmap(self._valid[:n]), pa.py_buffer(self._offsets), pa.py_buffer(self._data)]
        return pa.Array.from_buffers(self.column.type, n, buffers)


class Integers:
    """The cells of all columns of integers, flags and times of seconds in packets."""

    def __init__(self, columns: Sequence[Column], capacity: int) -> None:
        self.columns = columns
        self._capacity = capacity
        self._plan, self._counts = plans.integer_plan(columns)
        self._chosen = np.zeros(_NEAR, np.int64)
        self._numbers = {column.name: number for number, column in enumerate(columns)}
        self.clear()

    def clear(self) -> None:
        """Begins a new batch."""
        count, capacity = max(1, len(self.columns)), self._capacity
        # What is never written to takes no memory, so that one array of each type does for all columns.
        self._valid = np.zeros((count, capacity), np.uint8)
        self._bools = np.empty((count, capacity), np.bool_)
        self._int32s = np.empty((count, capacity), np.int32)
        self._int64s = np.empty((count, capacity), np.int64)

    def add(self, block: Block, to: int) -> None:
        """The cells of some rows, from row ``to`` of the batch on."""
        rows, at, n, buf = block
        extract.integers(
            self._plan, self._counts, rows, at, n, buf, self._bools, self._int32s, self._int64s, self._valid,
            to, self._chosen,
        )  # fmt: skip

    def array(self, column: Column, n: int) -> Any:
        """The first ``n`` cells of a column."""
        number = self._numbers[column.name]
        valid = bitmap(self._valid[number, :n])
        data: Any
        if column.type == pa.bool_():
            data = np.packbits(self._bools[number, :n], bitorder="little")
        elif column.type == pa.int32():
            data = self._int32s[number, :n]
        else:
            data = self._int64s[number, :n]
        return pa.Array.from_buffers(column.type, n, [valid, pa.py_buffer(data)])

    def numbers(self, column: Column, n: int) -> tuple[Any, Any]:
        """The first ``n`` values of a column of 32 bits, and which of them are there."""
        number = self._numbers[column.name]
        return self._int32s[number, :n], self._valid[number, :n]
