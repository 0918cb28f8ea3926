"""Parquet files whose rows are sorted by time, written while rows arrive that mostly are.

Rows that come in order are passed on as they are. Those before the last one written are few; they wait, and
go sorted into a file of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import fs, parquet

from msmqwire.capture.record import NO_TIME
from msmqwire.tables.lake.manifest import LakeFile

ROW_GROUP_ROWS: Final = 65_536
ROW_GROUP_BYTES: Final = 32 << 20
"""Bytes in memory after which rows are written, if there are fewer."""
STRETCHES_MAX: Final = 64
"""Stretches of a batch that are sorted each on its own."""
SMALL_BYTES: Final = 65_536
"""Bytes in memory of a column that is not worth compressing: a compressor takes longer to set up."""
FILE_BUFFER_BYTES: Final = 65_536
"""Bytes that are written to a file at once; pages of small files have some hundred."""
ASCENDING: Final = ("time", "time_ns", "frame", "message_id")
"""Columns whose values mostly differ from each other, and little from the one before: a dictionary would only
take time, and differences are smaller."""


class StagedFile:
    """A Parquet file that is being written.

    Args:
        path: the path of the file.
        entry: its entry in the manifest as long as it is empty.
        schema: the schema of its rows.
        uncompressed: columns that are not compressed.

    Attributes:
        path: the path of the file.
        entry: its future entry in the manifest.
    """

    def __init__(
        self, path: Path, entry: LakeFile, schema: pa.Schema, uncompressed: Collection[str] = ()
    ) -> None:
        self.path, self.entry = path, entry
        sorting = [("time", "ascending")] if "time" in schema.names else None
        self._stream = fs.LocalFileSystem().open_output_stream(str(path), buffer_size=FILE_BUFFER_BYTES)
        self._writer = parquet.ParquetWriter(
            self._stream,
            schema,
            compression={
                leaf: "none" if field.name in uncompressed else "zstd"
                for field in schema
                for leaf in _leaves(field)
            },
            use_dictionary=[
                leaf for field in schema if field.name not in ASCENDING for leaf in _leaves(field)
            ],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in ASCENDING if name in schema.names},
            sorting_columns=sorting and parquet.SortingColumn.from_ordering(schema, sorting),
        )

    def write(self, rows: pa.Table, size: int, first_ns: int, last_ns: int) -> None:
        """Write rows as row groups.

        Args:
            rows: the rows, sorted.
            size: their bytes in memory.
            first_ns: the earliest of their times but `NO_TIME`.
            last_ns: the latest.
        """
        groups = max(-(-rows.num_rows // ROW_GROUP_ROWS), round(size / ROW_GROUP_BYTES), 1)
        self._writer.write_table(rows, row_group_size=max(-(-rows.num_rows // groups), 1))
        entry = replace(self.entry, rows=self.entry.rows + rows.num_rows)
        if last_ns != NO_TIME:
            first_ns = first_ns if entry.first_ns is None else min(entry.first_ns, first_ns)
            last_ns = last_ns if entry.last_ns is None else max(entry.last_ns, last_ns)
            entry = replace(entry, first_ns=first_ns, last_ns=last_ns)
        self.entry = entry

    def close(self) -> None:
        """Complete the file; it is on disk then. Raises OSError."""
        self._writer.close()
        self._stream.close()
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.entry = replace(self.entry, size=self.path.stat().st_size)

    def discard(self) -> None:
        """Close and remove the file, whatever is in it."""
        for opened in (self._writer, self._stream):
            with suppress(OSError):
                opened.close()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


class PartitionWriter:
    """Writes the rows of a partition: those that come in order into one file, late ones into further files.

    Args:
        open_file: begins a file of the partition, with the columns that are not to be compressed in it.

    Attributes:
        pending_bytes: the size of the rows that wait in memory.
    """

    def __init__(self, open_file: Callable[[Collection[str]], StagedFile]) -> None:
        self._open_file = open_file
        self._file: StagedFile | None = None
        self._last_ns: int | None = None
        self._in_order, self._late = _Pending(), _Pending()

    @property
    def pending_bytes(self) -> int:
        return self._in_order.bytes + self._late.bytes

    def add(self, rows: pa.Table, size: int, times: Any) -> None:
        """Add rows, in any order.

        Args:
            rows: the rows; they are kept, and must not be a small part of something large.
            size: their bytes in memory, about; to count those of a table takes long.
            times: their times in nanoseconds, or `NO_TIME`.
        """
        row_size = size / max(rows.num_rows, 1)
        for start, stop, is_sorted in _stretches(times):
            piece, piece_times = rows.slice(start, stop - start), times[start:stop]
            if not is_sorted:
                order = np.argsort(piece_times, kind="stable")
                piece, piece_times = piece.take(pa.array(order)), piece_times[order]
            self._add_sorted(piece, row_size, piece_times)
        if self._in_order.is_enough:
            self._write_in_order()
        if self._late.is_enough:
            self._write_late()

    def _add_sorted(self, rows: pa.Table, row_size: float, times: Any) -> None:
        late = 0 if self._last_ns is None else int(np.searchsorted(times, self._last_ns))
        if late:
            self._late.add(rows.take(pa.array(np.arange(late))), row_size, times[:late].copy())
            rows, times = rows.slice(late), times[late:]
        if len(times):
            self._last_ns = int(times[-1])
            self._in_order.add(rows, row_size, times)

    def flush_in_order(self, *, is_end: bool = False) -> None:
        """Write the rows that wait, but for late ones.

        Args:
            is_end: no more will come.
        """
        if self._in_order.times:
            self._write_in_order(is_end=is_end)

    def flush(self, *, is_end: bool = False) -> None:
        """Write the rows that wait; see `flush_in_order`."""
        self.flush_in_order(is_end=is_end)
        if self._late.times:
            self._write_late()

    def _write_in_order(self, *, is_end: bool = False) -> None:
        table, times, size = self._in_order.take()
        if self._file is None:
            self._file = self._open_file(_small(table) if is_end else ())
        self._file.write(table, size, *_bounds(times))

    def _write_late(self) -> None:
        table, times, size = self._late.take()
        order = np.argsort(times, kind="stable")
        self._open_file(_small(table)).write(table.take(pa.array(order)), size, *_bounds(times[order]))


def _leaves(field: pa.Field) -> tuple[str, ...]:
    """Return the names that Parquet has for the parts of a column."""
    if pa.types.is_map(field.type):
        return f"{field.name}.key_value.key", f"{field.name}.key_value.value"
    return (field.name,)


def _small(table: pa.Table) -> set[str]:
    """The columns that are not worth compressing in a file that has only these rows."""
    columns = zip(table.schema.names, table.columns, strict=True)
    return {name for name, column in columns if _is_small(column)}


def _is_small(column: pa.ChunkedArray) -> bool:
    if column.null_count == len(column):
        return True
    has_texts = any(test(column.type) for test in (pa.types.is_string, pa.types.is_binary, pa.types.is_map))
    size: int = column.nbytes if has_texts else len(column) * column.type.bit_width // 8
    return size < SMALL_BYTES


def _stretches(times: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield the start and the end of stretches of rows that follow each other, and whether each is sorted.

    Disorder is mostly local, so that little has to be sorted: rows before a stretch are not later than any
    row in it, rows after it not earlier.
    """
    latest_before = np.maximum.accumulate(times)[:-1]
    earliest_after = np.minimum.accumulate(times[::-1])[::-1][1:]
    starts = np.flatnonzero(np.append(True, latest_before <= earliest_after))  # of the shortest stretches
    stops = np.append(starts[1:], len(times))
    unsorted = stops - starts > 1
    starts, stops = starts[unsorted], stops[unsorted]
    if len(starts) > STRETCHES_MAX:
        starts, stops = starts[:1], stops[-1:]
    end = 0
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        if start > end:
            yield end, start, True
        yield start, stop, False
        end = stop
    if end < len(times):
        yield end, len(times), True


class _Pending:
    """Rows that wait."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self.times: list[Any] = []
        self._rows = self.bytes = 0

    @property
    def is_enough(self) -> bool:
        """Whether they are a row group."""
        return self._rows >= ROW_GROUP_ROWS or self.bytes >= ROW_GROUP_BYTES

    def add(self, rows: pa.Table, row_size: float, times: Any) -> None:
        self._tables.append(rows)
        self.times.append(times)
        self._rows += rows.num_rows
        self.bytes += round(rows.num_rows * row_size)

    def take(self) -> tuple[pa.Table, Any, int]:
        """Remove all; return them with their times, and their bytes."""
        table, times, size = pa.concat_tables(self._tables), np.concatenate(self.times), self.bytes
        self._tables, self.times, self._rows, self.bytes = [], [], 0, 0
        return table, times, size


def _bounds(times: Any) -> tuple[int, int]:
    """The first time that is one, and the last, of sorted times."""
    first = int(np.searchsorted(times, NO_TIME, side="right"))
    return int(times[min(first, len(times) - 1)]), int(times[-1])
