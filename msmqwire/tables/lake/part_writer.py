"""The rows of a part of captures to Parquet files, which are in the lake once they are committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture.record import NO_TIME
from msmqwire.errors import CaptureError
from msmqwire.tables import Condition, arrow_schema
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.lake.deleted_rows import DeletedRows, without_deleted
from msmqwire.tables.lake.file_names import FileNames
from msmqwire.tables.lake.mixed_rows import MixedRows, Taken
from msmqwire.tables.lake.partitions import DAY_NS, PARTITIONS_MAX, By, Partition, folder_of
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.sorted_files import DataFile, PartitionWriter
from msmqwire.tables.lake.state import Damage
from msmqwire.tables.lake.table import LakeFile
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.parts import Part

TIME: Final = pa.timestamp("us", "UTC")
"""The type of the column ``time``: nanoseconds are in ``time_ns``, for Spark reads no other times."""
PENDING_BYTES_MAX: Final = 256 << 20
"""Bytes of rows that wait to be written into the files of their partitions."""
CLOSED_AT_ONCE: Final = 16
"""Files of a part that are synced at the same time."""


PART: Final = pa.field(
    "part", pa.int64(), metadata={"comment": "The part of captures that was read at once.", "group": "where"}
)


def lake_schema(columns: Sequence[str], by: By | None = None) -> pa.Schema:
    """Return the Arrow schema of the files of a lake.

    Args:
        columns: names of `COLUMNS`.
        by: the partitioning of the lake; a kind is a key and no column.
    """
    fields = []
    for field in arrow_schema([BY_NAME[name] for name in columns if not (name == by == "kind")]):
        fields.append(field.with_type(TIME) if field.name == "time" else field)
        if field.name == "time":
            meaning = {"comment": "The same in nanoseconds since 1970-01-01 UTC.", "group": "where"}
            fields.append(pa.field("time_ns", pa.int64(), metadata=meaning))
    return pa.schema([*fields, PART])


@dataclass(frozen=True, slots=True)
class PartFiles:
    """The result of writing a part.

    Attributes:
        number: the number of the part.
        files: its files.
        damages: the captures that could not be read to their ends.
        not_read: the number of frames that were not read though packets may be in them, by reason.
        state: that of the reader after the part, if the writer keeps it.
    """

    number: int
    files: tuple[LakeFile, ...]
    damages: tuple[Damage, ...]
    not_read: dict[str, int]
    state: bytes = b""


NumberedPart = tuple[int, Part | ExactPart]
"""A part with the value of ``part`` in its rows."""


@dataclass(frozen=True)
class PartWriter:
    """Writes the rows of parts.

    Attributes:
        place: where the lake is.
        reader: the reader of the packets.
        columns: names of `COLUMNS`.
        where: conditions that all rows meet.
        by: the second key of partitions; None for none.
        deleted: rows that are left out.
        keeps_state: whether results have the state of the reader after the part, which is an exact one.
    """

    place: Place
    reader: PartReader
    columns: tuple[str, ...]
    where: tuple[Condition, ...] = ()
    by: By | None = None
    deleted: tuple[DeletedRows, ...] = ()
    keeps_state: bool = False

    def write(self, numbered: NumberedPart) -> PartFiles:
        """Write the rows of a part. Each attempt has files of its own.

        Raises:
            OSError: a file can't be read or written.
        """
        number, part = numbered
        errors, not_read, states = list[CaptureError](), Counter[str](), list[bytes]()
        needed = [name for rows in self.deleted for name in rows.columns]
        decoded = dict.fromkeys([*self.columns, "time", *([self.by] if self.by else []), *needed])
        batches = self.reader.batches(
            part,
            list(decoded),
            self.where,
            errors=errors,
            not_read=not_read,
            states=states if self.keeps_state else None,
        )
        written = self.write_rows(number, (without_deleted(batch, self.deleted) for batch in batches))
        damages = tuple(Damage(error.file, error.offset, error.why, error.cut) for error in errors)
        return PartFiles(number, written, damages, dict(not_read), b"".join(states))

    def write_rows(self, number: int, batches: Iterable[pa.RecordBatch]) -> tuple[LakeFile, ...]:
        """Write rows; return their files, which are on disk then. Each attempt has files of its own.

        Args:
            number: the value of ``part`` in them.
            batches: the rows, with `columns`, ``time`` in nanoseconds, and the column of `by`.

        Raises:
            OSError: a file can't be written.
            Whatever `batches` raise.
        """
        files = _PartitionFiles(self, number)
        try:
            for batch in batches:
                files.add(batch)
            return files.finish()
        except BaseException:
            files.discard()
            raise


class _PartitionFiles:
    """The files of one attempt to write a part."""

    def __init__(self, writer: PartWriter, number: int) -> None:
        self._writer, self._number = writer, number
        # Meanings of columns are a third of a small file; the log of the table has them.
        self._schema = pa.schema(
            [field.remove_metadata() for field in lake_schema(writer.columns, writer.by)]
        )
        self._names = FileNames()
        self._numbers: dict[Partition, int] = {}
        self._partitions: list[PartitionWriter] = []
        self._files: list[DataFile] = []
        self._mixed = MixedRows()

    def _open(self, partition: Partition, uncompressed: Collection[str]) -> DataFile:
        """Begin a file of a partition; some columns have no values in it."""
        keys = partition.keys(self._writer.by)
        path = self._names.new(folder_of(keys))
        self._files.append(DataFile(self._writer.place, path, keys, self._schema, uncompressed))
        return self._files[-1]

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if not batch.num_rows:
            return
        times = batch.column("time").view(pa.int64()).fill_null(NO_TIME).to_numpy()
        rows = _as_written(batch, self._schema, self._number)
        numbers = self._partitions_of(batch, times)
        if np.all(numbers == numbers[0]):
            self._partitions[numbers[0]].add(pa.Table.from_batches([rows]), rows.nbytes, times)
        else:
            self._write_mixed(self._mixed.add(rows, times, numbers))
        if sum(writer.pending_bytes for writer in self._partitions) > PENDING_BYTES_MAX:
            for writer in self._partitions:
                writer.flush()

    def _partitions_of(self, batch: pa.RecordBatch, times: Any) -> Any:
        """The number of the partition of each row."""
        days, values = times // DAY_NS, [None]
        codes = np.zeros(len(times), np.int64)
        if self._writer.by is not None:
            encoded = batch.column(self._writer.by).dictionary_encode(null_encoding="encode")
            values, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
        elif days.min() == days.max():
            return np.full(len(times), self._number_of(int(days[0]), None))
        different, day_codes = np.unique(days, return_inverse=True)
        pairs, rows = np.unique(day_codes * len(values) + codes, return_inverse=True)
        numbers = [
            self._number_of(int(different[pair // len(values)]), values[pair % len(values)])
            for pair in pairs.tolist()
        ]
        return np.array(numbers)[rows]

    def _number_of(self, day: int, value: str | None) -> int:
        partition = Partition(None if day == NO_TIME // DAY_NS else day, value)
        if partition not in self._numbers and len(self._partitions) >= PARTITIONS_MAX:
            partition = partition.overflow(self._writer.by)
        if partition not in self._numbers:
            self._numbers[partition] = len(self._partitions)
            self._partitions.append(PartitionWriter(partial(self._open, partition)))
        return self._numbers[partition]

    def _write_mixed(self, taken: Iterable[Taken], *, is_end: bool = False) -> None:
        for number, rows, size, times in taken:
            self._partitions[number].add(rows, size, times)
            # They may be a small part of the memory kept for them.
            self._partitions[number].flush_in_order(is_end=is_end)

    def finish(self) -> tuple[LakeFile, ...]:
        """Write the remaining rows; return the files, which are on disk then."""
        self._write_mixed(self._mixed.take(), is_end=True)
        for writer in self._partitions:
            writer.flush(is_end=True)
        # Each waits for the disk, which completes several at once.
        with ThreadPoolExecutor(CLOSED_AT_ONCE) as pool:
            files = tuple(pool.map(DataFile.close, self._files))
        self._writer.place.sync(file.path for file in files)
        return files

    def discard(self) -> None:
        """Remove the files."""
        for file in self._files:
            file.discard()


def _as_written(batch: pa.RecordBatch, schema: pa.Schema, part: int) -> pa.RecordBatch:
    """Rows with the columns of a lake."""
    arrays = []
    for field in schema:
        if field.name == "time":
            arrays.append(pc.cast(batch.column("time"), field.type, safe=False))
        elif field.name == "time_ns":
            arrays.append(batch.column("time").view(field.type))
        elif field.name == PART.name:
            arrays.append(pa.repeat(pa.scalar(part, field.type), batch.num_rows))
        else:
            arrays.append(batch.column(field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
