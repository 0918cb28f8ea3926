"""Columns of Arrow as arrays of NumPy, and back, by their buffers.

The methods and scalars of pyarrow for it import all of pandas where that is installed: a fifth of a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def numbers(column: Any) -> Any:
    """Return the values of a column of integers; those of nulls are any."""
    if not len(column):
        return np.zeros(0, np.int64)
    values = np.frombuffer(column.buffers()[1], str(column.type), column.offset + len(column))
    return values[column.offset :]


def filled(column: Any, default: int) -> Any:
    """Return the values of a column of integers, with another one for null."""
    values = numbers(column)
    return values if not column.null_count else np.where(flags(pc.is_valid(column)), values, default)


def text_scalar(text: str) -> Any:
    """Return a text as a value of a column."""
    data = text.encode()
    offsets = pa.py_buffer(np.array([0, len(data)], np.int32))
    return pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(data)])[0]


def flags(column: Any) -> Any:
    """Return the values of a column of booleans without nulls."""
    if not len(column):
        return np.zeros(0, bool)
    bits = np.frombuffer(column.buffers()[1], np.uint8)
    return np.unpackbits(bits, count=column.offset + len(column), bitorder="little")[column.offset :] > 0


def mask(values: Any) -> Any:
    """Return an array of booleans as a column."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def integers(values: Any) -> Any:
    """Return an array of integers as a column."""
    buffer = pa.py_buffer(np.ascontiguousarray(values, np.int64))
    return pa.Array.from_buffers(pa.int64(), len(values), [None, buffer])


def coded(column: Any) -> tuple[list[Any], Any]:
    """Return the different values of a column without nulls, and for each value its number."""
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), numbers(encoded.indices).astype(np.int64)


def shared(column: Any) -> tuple[list[str | None], Any]:
    """Return the different texts of a column, None at the end, and for each cell the number of its text."""
    encoded = column.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    return texts, filled(encoded.indices, len(texts) - 1)
