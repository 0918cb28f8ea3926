"""Rows of captures and of DataFrames, in an order that both have."""

from __future__ import annotations

from typing import Any

import msmqwire


def expected(paths: Any, *names: str, **arguments: Any) -> list[tuple[Any, ...]]:
    """The rows of these columns by `msmqwire.read_capture`."""
    table = msmqwire.read_capture(paths, columns=names, **arguments)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def collected(table: Any) -> list[tuple[Any, ...]]:
    """The rows of a DataFrame."""
    return sorted((tuple(row) for row in table.collect()), key=repr)
