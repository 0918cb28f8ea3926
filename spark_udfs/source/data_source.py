"""The data source ``msmq`` of Spark: ``spark.read.format("msmq").load("captures/*.pcapng")``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from spark_udfs.source.filters import pushed
from spark_udfs.source.options import BadOption, Options
from spark_udfs.source.packet_reader import PacketReader
from spark_udfs.source.schema import arrow_fields, checked_columns, packet_schema, selected, spark_schema
from spark_udfs.source.segment_reader import PUSHED, SEGMENT_SCHEMA, SegmentReader
from spark_udfs.source.session_reader import SessionReader
from spark_udfs.source.session_table import SESSION_SCHEMA
from spark_udfs.source.streaming import MsmqStreamReader

PACKETS_PUSHED: Final = (
    "time", "file", "transport", "src", "src_port", "dst", "dst_port", "kind", "size",
)  # fmt: skip
"""The columns of packets whose conditions are checked before a packet is decoded."""


class MsmqDataSource(DataSource):
    """Captures as rows: packets, TCP segments or sessions. docs/spark.md has the options."""

    @classmethod
    def name(cls) -> str:
        return "msmq"

    def schema(self) -> Any:
        """The usual columns, or the columns of the option ``columns``."""
        options = Options.parse(self.options)
        if options.columns is None:
            return spark_schema(_available(options))
        return spark_schema(selected(_available(options, on_request=True), options.columns))

    def reader(self, schema: Any) -> DataSourceReader:
        options = Options.parse(self.options)
        if options.read == "sessions":
            return SessionReader(options, schema)
        return PushdownReader(options, schema) if options.pushdown else MsmqReader(options, schema)

    def streamReader(self, schema: Any) -> MsmqStreamReader:
        options = Options.parse(self.options)
        if options.splits == "exact":
            raise BadOption("option splits: exact is for captures that are complete, not for streaming")
        return MsmqStreamReader(options, partition_reader(options, schema))


def _available(options: Options, *, on_request: bool = False) -> pa.Schema:
    """The Arrow schema of the rows that a load reads, with optional columns only on request."""
    match options.read:
        case "packets":
            return packet_schema(on_request=on_request)
        case "segments":
            return SEGMENT_SCHEMA
        case "sessions":
            return SESSION_SCHEMA


def partition_reader(options: Options, schema: Any) -> PacketReader | SegmentReader:
    """Return the reader of a partition's packets or segments.

    Args:
        options: the options of the load. schema: the Spark schema of the rows.

    Raises:
        BadOption: the schema has a column that does not exist.
    """
    if options.read == "packets":
        names = checked_columns(schema, packet_schema(on_request=True), options.corrupt_column)
        return PacketReader(options, tuple(names), arrow_fields(schema))
    names = checked_columns(schema, SEGMENT_SCHEMA, None)
    return SegmentReader(options, tuple(names), arrow_fields(schema))


class MsmqReader(DataSourceReader):
    """Reads packets or segments, in parallel."""

    def __init__(self, options: Options, schema: Any) -> None:
        self._options = options
        self._reader = partition_reader(options, schema)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self._options.parts()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is not None:  # Spark makes a partition itself for a load without files
            yield from self._reader.read(partition.value)


class PushdownReader(MsmqReader):
    """Takes filters over from Spark, so that fewer packets are decoded.

    Only on request: Spark up to 4.3 reuses the plan with the filters of one query for all queries on the same
    DataFrame.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take the filters that can be checked before a packet is decoded; return the others."""
        if self._options.mode == "FAILFAST" and self._options.read == "packets":
            return filters  # a malformed packet must be seen by any query
        columns = PUSHED if self._options.read == "segments" else PACKETS_PUSHED
        conditions, remaining = pushed(filters, columns)
        self._reader = replace(self._reader, where=tuple(conditions))
        return remaining
