"""The columnar decoder and the generic reader side by side: their rows, errors and counts."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pyarrow as pa

from msmqwire.analysis.dissection import Dissection, dissect
from msmqwire.tables import arrow_schema, record_batches
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.scanning import row_buffer

NAMES = [column.name for column in UNJUDGED]


def generic(files: list[bytes]) -> tuple[Dissection, pa.Table]:
    dissection = dissect(streams(files), lint=False)
    dissection.warns = False  # the counts are compared
    return dissection, table(batches(dissection, UNJUDGED, batch_rows=1000))


def columnar(files: list[bytes], batch_rows: int = 1000) -> tuple[Dissection, pa.Table]:
    dissection = dissect(streams(files), lint=False)
    return dissection, table(record_batches(dissection, columns=NAMES, batch_rows=batch_rows))


def streams(files: list[bytes]) -> list[Any]:
    result = []
    for number, data in enumerate(files):
        stream = io.BytesIO(data)
        stream.name = f"file {number}"  # type: ignore[attr-defined]
        result.append(stream)
    return result


def table(batches_: Iterator[Any]) -> pa.Table:
    stored = list(batches_)
    for batch in stored:
        batch.validate(full=True)
    return pa.Table.from_batches(stored, arrow_schema(UNJUDGED))


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times as numbers, since Python's own have no nanoseconds."""
    return (column.cast("int64") if pa.types.is_timestamp(column.type) else column).to_pylist()  # type: ignore[no-any-return]


def assert_same(files: list[bytes], **sizes: int) -> None:
    """Check that both readers return the same rows, errors and counts."""
    by_items, expected = generic(files)
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        by_columns, actual = columnar(files, batch_rows=sizes.get("ROWS", 1000))
    assert actual.num_rows == expected.num_rows
    for name in NAMES:
        assert plain(actual[name]) == plain(expected[name]), name
    assert [str(error) for error in by_columns.errors] == [str(error) for error in by_items.errors]
    assert by_columns.counters() == by_items.counters()
    assert by_columns.frames_not_read == by_items.frames_not_read
    assert by_columns.records == by_items.records
