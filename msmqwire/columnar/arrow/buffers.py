"""The buffers that Arrow arrays are made of."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.columnar.compiled import fixed_cells
from msmqwire.columnar.compiled.fixed_cells import PADDING

_OTHERS: Final = 1
"""Arrays that are kept besides that of the batch being made: that of the batch that is looked at."""

Block = tuple[Any, Any, int, Any]
"""Rows, the places of their fields, how many there are, the memory that their bytes stand in."""


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


class BufferPool:
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
