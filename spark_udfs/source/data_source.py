"""The data source ``msmq`` of Spark: ``spark.read.format("msmq").load("captures/*.pcapng")``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from spark_udfs.source.filters import pushed
from spark_udfs.source.options import Options
from spark_udfs.source.packet_reader import PacketReader
from spark_udfs.source.parts import Part, parts, windows_of
from spark_udfs.source.schema import (
    arrow_fields,
    as_spark,
    chosen,
    packet_schema,
    spark_schema,
    wanted_columns,
)
from spark_udfs.source.segment_reader import PUSHED, SEGMENT_SCHEMA, SegmentReader
from spark_udfs.source.streaming import MsmqStreamReader

PACKETS_PUSHED = ("time", "file", "transport", "src", "src_port", "dst", "dst_port", "kind", "size")


class MsmqDataSource(DataSource):
    """Captures as rows: packets, TCP segments or sessions. docs/spark.md has the options."""

    @classmethod
    def name(cls) -> str:
        return "msmq"

    def schema(self) -> Any:
        """All columns, without ``raw``, or those of the option ``columns``."""
        options = Options.parse(self.options)
        return spark_schema(_known(options, options.columns))

    def reader(self, schema: Any) -> DataSourceReader:
        options = Options.parse(self.options)
        if options.read == "sessions":
            return SessionsReader(options, schema)
        return PushdownReader(options, schema) if options.pushdown else MsmqReader(options, schema)

    def streamReader(self, schema: Any) -> MsmqStreamReader:
        options = Options.parse(self.options)
        return MsmqStreamReader(options, rows_reader(options, schema))


def _known(options: Options, columns: Iterable[str] | None) -> pa.Schema:
    """The Arrow schema of what is read, all columns or some."""
    if options.read == "packets":
        return packet_schema() if columns is None else chosen(packet_schema(raw=True), columns)
    if options.read == "segments":
        known = SEGMENT_SCHEMA
    else:
        from spark_udfs.jobs.sessions import SESSION_SCHEMA

        known = SESSION_SCHEMA
    return known if columns is None else chosen(known, columns)


def rows_reader(options: Options, schema: Any) -> PacketReader | SegmentReader:
    """What reads a part.

    Args:
        options: of the load.
        schema: the Spark schema of the rows.

    Raises:
        BadOption: the schema has a column that there is not.
    """
    if options.read == "packets":
        names = wanted_columns(schema, packet_schema(raw=True), options.corrupt_column)
        return PacketReader(options, tuple(names), arrow_fields(schema))
    names = wanted_columns(schema, SEGMENT_SCHEMA, None)
    return SegmentReader(options, tuple(names), arrow_fields(schema))


class MsmqReader(DataSourceReader):
    """Reads packets or segments, in parallel."""

    def __init__(self, options: Options, schema: Any) -> None:
        self._options = options
        self._rows = rows_reader(options, schema)

    def partitions(self) -> list[Part]:
        options = self._options
        windows = windows_of(
            options.files(), options.split_size, search=options.search, overlap=options.overlap
        )
        return parts(windows, options.split_size, options.overlap)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Part):  # Spark makes one of its own for a load without files
            yield from self._rows.read(partition)


class PushdownReader(MsmqReader):
    """Takes filters over from Spark, so that fewer packets are decoded.

    Only on request, because Spark up to 4.3 keeps what was planned with the filters of one query for
    all queries on the same DataFrame.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take the filters that can be judged before a packet is decoded; give back the others."""
        if self._options.mode == "FAILFAST" and self._options.read == "packets":
            return filters  # a malformed packet is to be seen, whatever is asked for
        columns = PUSHED if self._options.read == "segments" else PACKETS_PUSHED
        conditions, left = pushed(filters, columns)
        self._rows = replace(self._rows, where=tuple(conditions))
        return left


class SessionsReader(DataSourceReader):
    """Reads the session table, in one task."""

    def __init__(self, options: Options, schema: Any) -> None:
        from spark_udfs.jobs.sessions import SESSION_SCHEMA

        self._options = options
        self._names = wanted_columns(schema, SESSION_SCHEMA, None)
        self._schema = arrow_fields(schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from spark_udfs.jobs.sessions import session_batches

        for batch in session_batches(self._options.files(), ports=self._options.ports):
            yield as_spark([batch.column(name) for name in self._names], self._schema)
