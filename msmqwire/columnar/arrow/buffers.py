"""The buffers of Arrow arrays."""

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
"""Arrays that are kept besides that of the current batch: that of the batch before, which may be in use."""


def bitmap(valid: Any) -> Any:
    """Return Arrow's bitmap of an array of booleans; None if all are true."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def shared_texts(codes: Any, texts: Sequence[str], valid: Any = None) -> Any:
    """Return an array of texts from their indices in ``texts``; null where they are not ``valid``."""
    n, encoded = len(codes), [text.encode() for text in texts]
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=starts[1:])
    source = np.frombuffer(bytearray(b"".join(encoded) + bytes(PADDING)), np.uint8)
    offsets = np.empty(n + 1, np.int32)
    size = fixed_cells.text_offsets(codes, starts, offsets)
    data = np.empty(size + PADDING, np.uint8)
    fixed_cells.write_texts(codes, starts, source, offsets, data)
    buffers = [None if valid is None else bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data[:size])]
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
