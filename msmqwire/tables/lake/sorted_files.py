"""Parquet files whose rows are sorted by time, written while rows arrive that mostly are.

Rows that come in order are passed on as they are. Those before the last one written are few; they wait, and
go sorted into a file of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from msmqwire.tables.lake.partitions import Keys
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.statistics import statistics
from msmqwire.tables.lake.table import LakeFile

ROW_GROUP_ROWS: Final = 65_536
ROW_GROUP_BYTES: Final = 32 << 20
"""Bytes in memory after which rows are written, if there are fewer."""
STRETCHES_MAX: Final = 64
"""Stretches of a batch that are sorted each on its own."""
SMALL_BYTES: Final = 65_536
"""Bytes in memory of a column that is not worth compressing: a compressor takes longer to set up."""
ASCENDING: Final = ("time", "time_ns", "frame", "message_id")
"""Columns whose values mostly differ from each other, and little from the one before: a dictionary would only
take time, and differences are smaller."""


class DataFile:
    """A Parquet file of a lake that is being written.

    Args:
        place: where the lake is.
        path: the path of the file below the lake.
        keys: the values of its partition.
        schema: the schema of its rows.
        uncompressed: columns that are not compressed.
    """

    def __init__(
        self, place: Place, path: str, keys: Keys, schema: pa.Schema, uncompressed: Collection[str] = ()
    ) -> None:
        sorting = [("time", "ascending")] if "time" in schema.names else None
        self._path, self._keys, self._schema = path, keys, schema
        self._metadata: list[Any] = []
        self._file = place.create(path)
        self._writer = parquet.ParquetWriter(
            self._file.stream,
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
            metadata_collector=self._metadata,
        )

    def write(self, rows: pa.Table, size: int) -> None:
        """Write rows as row groups.

        Args:
            rows: the rows, sorted.
            size: their bytes in memory.
        """
        groups = max(-(-rows.num_rows // ROW_GROUP_ROWS), round(size / ROW_GROUP_BYTES), 1)
        self._writer.write_table(rows, row_group_size=max(-(-rows.num_rows // groups), 1))

    @property
    def written(self) -> int:
        """The bytes of the file so far."""
        return int(self._file.stream.tell())

    def close(self) -> LakeFile:
        """Complete the file; it is on disk then. Raises OSError."""
        self._writer.close()
        size = self._file.close()
        (metadata,) = self._metadata
        return LakeFile(self._path, metadata.num_rows, size, self._keys, statistics(metadata, self._schema))

    def discard(self) -> None:
        """Remove the file, whatever is in it."""
        with suppress(OSError, ValueError):
            self._writer.close()
        self._file.discard()


class PartitionWriter:
    """Writes the rows of a partition: those that come in order into one file, late ones into further files.

    Args:
        open_file: begins a file of the partition, with the columns that are not to be compressed in it.

    Attributes:
        pending_bytes: the size of the rows that wait in memory.
    """

    def __init__(self, open_file: Callable[[Collection[str]], DataFile]) -> None:
        self._open_file = open_file
        self._file: DataFile | None = None
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
        table, _, size = self._in_order.take()
        if self._file is None:
            self._file = self._open_file(_small(table) if is_end else ())
        self._file.write(table, size)

    def _write_late(self) -> None:
        table, times, size = self._late.take()
        order = np.argsort(times, kind="stable")
        self._open_file(_small(table)).write(table.take(pa.array(order)), size)


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
