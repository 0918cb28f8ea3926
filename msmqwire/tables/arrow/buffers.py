"""The buffers of Arrow arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.tables.compiled import bitmaps, fixed_cells
from msmqwire.tables.compiled.fixed_cells import PADDING

_OTHERS: Final = 1
"""Arrays that are kept besides that of the current batch: that of the batch before, which may be in use."""


def bitmap(valid: Any) -> Any:
    """Return Arrow's bitmap of an array of booleans; None if all are true."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


class Bitmaps:
    """Arrow's bitmaps of rows of booleans.

    Args:
        values: the booleans, as arrays of them.
        n: their number in each row.
    """

    def __init__(self, values: Any, n: int) -> None:
        self._bits = np.empty((len(values), -(-n // 8)), np.uint8)
        self._counts, self._n = np.empty(len(values), np.int64), n
        bitmaps.pack(values.view(np.uint8), n, self._bits, self._counts)

    def values(self, row: int) -> Any:
        """Return the bitmap of a row."""
        return pa.py_buffer(self._bits[row])

    def validity(self, row: int) -> Any:
        """Return the bitmap of a row; None if all are true."""
        return None if self._counts[row] == self._n else self.values(row)


class SharedTexts:
    """Texts that many rows share, each by its index, to Arrow arrays.

    Args:
        texts: the texts; more may be appended to them later.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._encode()

    def _encode(self) -> None:
        encoded = [text.encode() for text in self.texts]
        self._starts = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(text) for text in encoded], out=self._starts[1:])
        self._source = np.frombuffer(bytearray(b"".join(encoded) + bytes(PADDING)), np.uint8)

    def array(self, codes: Any, validity: Any = None) -> Any:
        """Return an array of texts from their indices; null where the bitmap says so, if there is one."""
        if len(self._starts) <= len(self.texts):
            self._encode()
        n = len(codes)
        offsets = np.empty(n + 1, np.int32)
        size = fixed_cells.text_offsets(codes, self._starts, offsets)
        data = np.empty(size + PADDING, np.uint8)
        fixed_cells.write_texts(codes, self._starts, self._source, offsets, data)
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data[:size])]
        return pa.Array.from_buffers(pa.string(), n, buffers)


class BufferPool:
    """Arrays for one batch after the other, reused when nothing refers to them any more.

    Fresh memory is expensive, since the system clears each page.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []

    def array(self, shape: tuple[int, ...], kind: Any) -> Any:
        """Return an array with arbitrary contents."""
        size = math.prod(shape) * np.dtype(kind).itemsize
        previous = [array for array in self._arrays if array.size == size]
        self._arrays = []
        free = next((k for k in range(len(previous)) if _references(previous, k) == _ALONE), None)
        array = np.empty(size, np.uint8) if free is None else previous.pop(free)
        self._arrays = [*previous[-_OTHERS:], array]
        return array.view(kind).reshape(shape)


def _references(arrays: list[Any], k: int) -> int:
    return sys.getrefcount(arrays[k])


_ALONE: Final = _references([np.empty(0, np.uint8)], 0)
