"""Targets for the compiled decoder: each row compared with the generic reader's, over arrays with guards.

With MSMQWIRE_ENGINE=interpreted every index is checked besides; the runner sets it for these targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pyarrow as pa

from fuzz.readers.captures import files, named, scripts
from fuzz.readers.frames import capture_of
from fuzz.readers.guarded import guarded_arrays
from fuzz.readers.registry import target
from msmqwire.analysis.dissection import Dissection, dissect
from msmqwire.capture import record_index, source
from msmqwire.capture.record_index import is_splittable, one_per_step, record_positions
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError
from msmqwire.tables import arrow_schema, record_batches
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.compiled.skip import skip_records
from msmqwire.tables.scanning import row_buffer

NAMES = [column.name for column in UNJUDGED]
SIZES = (
    {"CHUNK": 256, "ARENA": 64, "ROWS": 3},
    {"CHUNK": 5000, "ARENA": 3000, "ROWS": 1},
    {"CHUNK": 1 << 14, "ARENA": 1 << 14, "ROWS": 7},
)
"""Sizes of the chunks in which a file is read, of the arena, and of a batch."""
PATTERNS = (0x00, 0xFF)
"""The content of uninitialised memory; no row may depend on it."""


def _table(found: Iterator[Any]) -> Any:
    kept = list(found)
    for batch in kept:
        batch.validate(full=True)
    return pa.Table.from_batches(kept, arrow_schema(UNJUDGED))


def _is_same(by_columns: Dissection, actual: Any, by_items: Dissection, expected: Any) -> None:
    assert actual.num_rows == expected.num_rows
    if not actual.equals(expected):
        for name in NAMES:
            assert actual[name].to_pylist() == expected[name].to_pylist(), name
    assert [str(error) for error in by_columns.errors] == [str(error) for error in by_items.errors]
    assert by_columns.counters() == by_items.counters()
    assert by_columns.records == by_items.records


def rows_are_those_of_the_generic_reader(file: bytes, choice: int) -> None:
    """Compare the rows of a capture file, its errors and counts; a number chooses sizes and pattern."""
    by_items = dissect(named(file), lint=False)
    expected = _table(batches(by_items, UNJUDGED, batch_rows=1000))
    sizes = SIZES[choice % len(SIZES)]
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        stack.enter_context(guarded_arrays(PATTERNS[choice >> 7]))
        by_columns = dissect(named(file), lint=False)
        actual = _table(record_batches(by_columns, columns=NAMES, batch_rows=sizes["ROWS"]))
        _is_same(by_columns, actual, by_items, expected)


@target(seeds=lambda: (b"\2" + data for data in files()), size_max=4096)
def captures(data: bytes) -> None:
    """Files of any bytes."""
    rows_are_those_of_the_generic_reader(data[1:], data[0] if data else 0)


@target(seeds=lambda: (b"\2" + script for script in scripts()), size_max=4096)
def segments(data: bytes) -> None:
    """Connections and datagrams, in any order, of any content."""
    rows_are_those_of_the_generic_reader(capture_of(data[1:]), data[0] if data else 0)


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="msmqwire-fuzz-")


def _positions(window: Window, **options: Any) -> tuple[list[Any], tuple[str, int] | None]:
    found: list[Any] = []
    try:
        found.extend(record_positions(window, **options))
    except CaptureError as error:
        return found, (error.why, error.offset)
    return found, None


@target(seeds=lambda: (b"\x10" + data for data in files()), size_max=4096)
def skipped(data: bytes) -> None:
    """The compiled search for records finds them where the reader does, in chunks of any size."""
    path = Path(_folder().name, "a.cap")
    path.write_bytes(data[1:])
    if not is_splittable(str(path)):
        return
    window = Window(str(path), b"", 0, len(data) - 1)
    expected = _positions(window)
    with ExitStack() as stack:
        for module in (record_index, source):
            stack.enter_context(mock.patch.object(module, "CHUNK_SIZE", 30 + 4 * data[0]))
        assert _positions(window, next_offset=one_per_step(1), skip=skip_records) == expected
        first, error = _positions(window, next_offset=one_per_step(100), skip=skip_records)
    assert error == expected[1]
    assert all(position in expected[0] for position in first)
    assert first[-1:] == expected[0][-1:]
