"""Tables as JSON, columns of integers as a whole."""

from __future__ import annotations

from array import array
from typing import Any

from msmqwire.analysis.report.details import json_of


def table_json(table: Any) -> str:
    """Return JSON-ready data, in which lists of integers may be arrays, as the shortest JSON."""
    if isinstance(table, dict):
        return f"{{{','.join(f'{json_of(name)}:{table_json(value)}' for name, value in table.items())}}}"
    return _integers(table) if isinstance(table, array) else json_of(table)


def _integers(column: array[int]) -> str:
    """Return a column as a list."""
    import pyarrow as pa  # an extra, which the page without tables of columns does not need
    import pyarrow.compute as pc

    numbers = pa.Array.from_buffers(pa.int64(), len(column), [None, pa.py_buffer(column)])
    texts = pa.ListArray.from_arrays([0, len(column)], numbers.cast(pa.string()))
    return f"[{pc.binary_join(texts, ',')[0].as_py()}]"
