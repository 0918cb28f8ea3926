"""A stream of Spark into a lake, each micro-batch in one commit, and each once.

Tasks write the rows of a micro-batch into the place of the lake, the driver commits once, with the number of
the batch. Spark gives a batch again that it has not seen done, after a kill for example: the number tells.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.errors import InvalidArgument
from msmqwire.tables import arrow_schema
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.lake.part_writer import PartWriter
from msmqwire.tables.lake.partitions import By
from msmqwire.tables.lake.place import Place, lake_place
from msmqwire.tables.lake.stream_batches import StreamBatch, check_stream, stream_rows
from msmqwire.tables.lake.table import LakeFile
from spark_udfs.lakes import check_here, check_shared
from spark_udfs.source.schema import checked_columns, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = "sql.streaming.queryId"
"""The property of a query of Structured Streaming that stays the same as long as its checkpoint."""
_FILES: Final = pa.schema(
    [("path", pa.string()), ("rows", pa.int64()), ("size", pa.int64()), ("keys", pa.string()),
     ("stats", pa.string())]
)  # fmt: skip


def lake_batches(
    out: str | os.PathLike[str], *, by: By | None = None, storage_options: StorageOptions = NO_OPTIONS
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that writes each micro-batch of a stream into a lake once::

        stream = spark.readStream.format("msmq").load("captures/")
        lake = spark_udfs.lake_batches("lake/", by="kind")
        stream.writeStream.foreachBatch(lake).option("checkpointLocation", "checkpoint/").start()

    A batch that Spark repeats, as its driver was killed, is in the lake once: its commit has the query's id
    and the batch's number. Both come from the checkpoint, so keep that as long as the lake. Several queries
    may fill one lake. Captures can't be written into it: what was read is in checkpoints. Spark Connect does
    not tell the id.

    The stream has columns of captures (docs/columns.md), among them ``time`` and the column of ``by``. Those
    of later batches are added to the lake; those that a batch lacks are null. ``time_ns`` has the
    microseconds of Spark's times.

    Args:
        out: the folder of the lake, which driver and executors share, or its URL; created if missing.
        by: partition by this column too, not by date alone.
        storage_options: as for `msmqwire.dissect`.

    Raises:
        InvalidArgument: no such key. A batch fails with it for other columns than a lake can have.
        UnsupportedStore: the store can't be used.
    """
    check_stream(by)
    return partial(_write_batch, lake_place(out, storage_options), by)


def _write_batch(place: Place, by: By | None, rows: DataFrame, batch: int) -> None:
    """Write a micro-batch.

    Raises:
        InvalidArgument: it has other columns than a lake can have, or is not of a stream.
        LakeMismatch: the folder is not a lake of streams, or has other partitions.
        LakeDamaged: the log or the state of the lake is broken.
        LakeError: an executor has another folder than the driver.
        OSError: it can't be written by the driver.
    """
    query = rows.sparkSession.sparkContext.getLocalProperty(_QUERY)
    if query is None:
        raise InvalidArgument("it is for foreachBatch of a stream, which has an id", path="lake_batches")
    check_stream(by, rows.columns)
    columns = checked_columns(rows.schema, arrow_schema(list(BY_NAME.values())), None)
    StreamBatch(place, query, batch, columns, by, partial(_write_by_tasks, rows)).carry_out()


def _write_by_tasks(rows: DataFrame, writer: PartWriter, number: int) -> Sequence[LakeFile]:
    """Write rows by the tasks that have them; return the files, which the driver sees."""
    written = rows.mapInArrow(partial(_write, writer, number), spark_schema(_FILES)).collect()
    files = [LakeFile(row.path, row.rows, row.size, json.loads(row.keys), row.stats) for row in written]
    check_shared(writer.place, files)
    return files


def _write(writer: PartWriter, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of a task; yield its files."""
    check_here(writer.place)
    context = TaskContext.get()
    assert context is not None
    schema = arrow_schema([BY_NAME[name] for name in writer.columns])
    rows = (stream_rows(batch, schema) for batch in batches)
    files = writer.write_rows(number + context.partitionId(), rows)
    columns = {
        "path": [file.path for file in files],
        "rows": [file.rows for file in files],
        "size": [file.size for file in files],
        "keys": [json.dumps(file.keys) for file in files],
        "stats": [file.stats for file in files],
    }
    yield pa.RecordBatch.from_pydict(columns, schema=_FILES)
