"""The fate of messages in captures of any size, by the stages of `msmqwire.analysis.fate` in tasks.

Rows are shuffled three times and sorted within their partitions, so that no task holds more than one
connection, one sequence or one message at a time:

- by connection, to observations of messages in its packets; - observations by a number, by the sequence or
the receive that it belongs to, and claims of queue managers, by their GUID; - all of it by message.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.fate import BODY_LIMIT, COLUMNS, KINDS
from msmqwire.analysis.fate.connections import Connection, is_start, where_of
from msmqwire.analysis.fate.message import Namesakes
from msmqwire.analysis.fate.numbers import Numbers
from msmqwire.analysis.fate.observations import Observation, one_by_one
from msmqwire.analysis.fate.rows import Row, rows
from msmqwire.analysis.fate.sighting_rows import SIGHTING_SCHEMA, sighting_of, sighting_row
from msmqwire.analysis.fate.summaries import QueueSums
from msmqwire.analysis.fate.tables import FATE_SCHEMA, SUMMARY_SCHEMA, fate_row, summary_row, summed_of
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.errors import CaptureError
from msmqwire.tables import CaptureWarning, arrow_schema
from msmqwire.tables.columns import BY_NAME, INT64
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.parts import Part
from spark_udfs.source.options import SPLIT_SIZE, Options, Paths, paths_option
from spark_udfs.source.part_tasks import frame_of_parts
from spark_udfs.source.schema import row_batches, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG: Final = logging.getLogger(__name__)
_POSITION: Final = pa.field("position", INT64)
_ORDINAL: Final = pa.field("ordinal", INT64)
_ROW_SCHEMA: Final = pa.schema(
    [
        pa.field(field.name, INT64 if pa.types.is_timestamp(field.type) else field.type)
        for field in arrow_schema([BY_NAME[name] for name in COLUMNS])
    ]
)
"""The columns of a capture with times as integers: Spark's have no nanoseconds."""
_SIGHTINGS: Final = SIGHTING_SCHEMA.append(_ORDINAL)
_FATES: Final = FATE_SCHEMA.append(_POSITION)


def fate(
    spark: SparkSession,
    paths: Paths,
    *,
    ports: Collection[int] = (),
    acknowledgements: bool = False,
    split_size: int | str = SPLIT_SIZE,
    partitions: int | None = None,
    storage_options: StorageOptions = NO_OPTIONS,
) -> DataFrame:
    """Return the fate of each message in captures, a row each: `msmqwire.analysis.fate.fates` by tasks.

    The captures are read once before it returns, for exact parts. A truncated or damaged file is reported by
    a warning in the log of a task; its messages up to there are in the result.

    Args:
        spark: the session.
        paths: capture files, patterns, folders or URLs: one capture, in this order.
        ports: as for `msmqwire.dissect`.
        acknowledgements: whether acknowledgement messages have rows of their own.
        split_size: bytes of files for one task, also as ``512m``.
        partitions: the number of partitions of the shuffles; by default as configured in the session.
        storage_options: as for `msmqwire.dissect`.

    Returns:
        The columns of `msmqwire.analysis.fate.tables.FATE_SCHEMA`, and ``position``: the rows' order, by the
        first sight of each message.

    Raises:
        BadOption: an argument is invalid, a ValueError.
        FileNotFoundError: a path or pattern names no file.
        UnsupportedStore: the store of a URL can't be used.
        OSError: a file can't be read.
    """
    from pyspark.sql import functions as F

    options = Options.parse(
        {
            "paths": paths_option(paths),
            "ports": ",".join(map(str, ports)),
            "splitSize": str(split_size),
            "splits": "exact",
            "bodyLimit": str(BODY_LIMIT),
        }
    )
    options = replace(options, storage_options=storage_options)
    packets = frame_of_parts(spark, options.parts(), FateRows(options).read, spark_schema(_ROW_SCHEMA))
    # Parts are in the order of the capture, and so are the rows of each.
    packets = packets.withColumn("position", F.monotonically_increasing_id())
    packets = packets.where(F.col("stream").isNotNull())
    sightings = _staged(packets, ("stream",), ("position",), _connection_stage, _SIGHTINGS, partitions)
    by_number = sightings.where(F.col("group").isNotNull())
    numbered = _staged(by_number, ("group",), ("position", "ordinal"), _number_stage, _SIGHTINGS, partitions)
    observed = sightings.where(F.col("group").isNull()).unionAll(numbered)
    stage = partial(_message_stage, acknowledgements=acknowledgements)
    return _staged(observed, ("key",), ("position", "ordinal"), stage, _FATES, partitions)


def fate_summary(fates: DataFrame, *, partitions: int | None = None) -> DataFrame:
    """Return the rows of `fate` summed up by destination queue: `msmqwire.analysis.fate.summary` by tasks.

    Args:
        fates: rows of `fate`, all or some of them.
        partitions: the number of partitions of the shuffle; by default as configured in the session.

    Returns:
        The columns of `msmqwire.analysis.fate.tables.SUMMARY_SCHEMA`; the task of a queue holds its
        latencies.
    """
    return _staged(fates, ("destination",), ("position",), _summary_stage, SUMMARY_SCHEMA, partitions)


def _staged(
    frame: DataFrame,
    keys: tuple[str, ...],
    order: tuple[str, ...],
    stage: Callable[[Iterable[Any]], Iterator[Any]],
    schema: pa.Schema,
    partitions: int | None,
) -> DataFrame:
    """Return the result of a stage for rows, grouped by key and in order."""
    shuffled = frame.repartition(*keys) if partitions is None else frame.repartition(partitions, *keys)
    return shuffled.sortWithinPartitions(*keys, *order).mapInArrow(stage, spark_schema(schema))


@dataclass(frozen=True)
class FateRows:
    """Reads the packets of a part for fates.

    Attributes:
        options: the options of the load.
    """

    options: Options

    def read(self, part: Part | ExactPart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises OSError."""
        errors: list[CaptureError] = []
        where = [("kind", "in", KINDS)]
        for batch in self.options.part_reader().batches(part, COLUMNS, where, errors=errors):
            arrays = [pc.cast(batch.column(field.name), field.type) for field in _ROW_SCHEMA]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ROW_SCHEMA)
        for error in errors:
            _LOG.warning("%s", error)
            warnings.warn(CaptureWarning(error), stacklevel=2)


def _positioned(batches: Iterable[Any]) -> Iterator[tuple[Row, int]]:
    for batch in batches:
        yield from zip(rows(batch), batch.column("position").to_pylist(), strict=True)


def _connection_stage(batches: Iterable[Any]) -> Iterator[Any]:
    """The first stage: rows of connections, one after the other, to sightings."""

    def made() -> Iterator[dict[str, Any]]:
        for _, packets in groupby(_positioned(batches), key=lambda positioned: positioned[0].stream):
            connection, ordinal = None, 0
            for row, position in packets:
                if connection is None:
                    connection = Connection(from_start=is_start(row))
                for sighting in one_by_one(connection.feed(row, where_of(row, position))):
                    yield sighting_row(sighting) | {"ordinal": ordinal}
                    ordinal += 1
            for sighting in one_by_one(connection.end()) if connection is not None else ():
                yield sighting_row(sighting) | {"ordinal": ordinal}
                ordinal += 1

    return row_batches(made(), _SIGHTINGS)


def _number_stage(batches: Iterable[Any]) -> Iterator[Any]:
    """The second stage: observations by a number, group by group, to observations of messages."""

    def made() -> Iterator[dict[str, Any]]:
        for _, group in groupby(_dicts(batches), key=lambda row: row["group"]):
            numbers = Numbers()
            for row in group:
                sighting = sighting_of(row)
                if not isinstance(sighting, Observation):
                    for observation in numbers.feed(sighting):
                        yield sighting_row(observation) | {"ordinal": row["ordinal"]}

    return row_batches(made(), _SIGHTINGS)


def _message_stage(batches: Iterable[Any], *, acknowledgements: bool) -> Iterator[Any]:
    """The third stage: observations of messages, one after the other, to fates."""

    def made() -> Iterator[dict[str, Any]]:
        for key, group in groupby(_dicts(batches), key=lambda row: row["key"]):
            namesakes = Namesakes()
            for row in group:
                sighting = sighting_of(row)
                if isinstance(sighting, Observation):
                    namesakes.add(sighting)
            for message in namesakes.messages:
                if acknowledgements or not message.is_acknowledgement:
                    position = message.observations[0].where.position
                    yield fate_row(namesakes.fate(message, key)) | {"position": position}

    return row_batches(made(), _FATES)


def _summary_stage(batches: Iterable[Any]) -> Iterator[Any]:
    def made() -> Iterator[dict[str, Any]]:
        for queue, group in groupby(_dicts(batches), key=lambda row: row["destination"]):
            sums = QueueSums()
            for row in group:
                sums.add(summed_of(row))
            yield summary_row(sums.summary(queue))

    return row_batches(made(), SUMMARY_SCHEMA)


def _dicts(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()
