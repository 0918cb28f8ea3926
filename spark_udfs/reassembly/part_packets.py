"""Exact packets by exact parts, each decoded by a task from the state before it.

The columns are those of `spark_udfs.reassembly.packets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from msmqwire.capture.splits import whole_file
from msmqwire.errors import CaptureError
from msmqwire.tables.columns import INT64
from msmqwire.tables.exact_parts import ExactPart, ExactPlan, MapWindows, plan_exact_parts
from msmqwire.tables.flow_number import FlowNumbers
from msmqwire.tables.part_reader import ENDPOINTS, PartReader
from spark_udfs.reassembly.packet_columns import FRAME_OFFSET, damage_row
from spark_udfs.source.options import Options
from spark_udfs.source.part_tasks import frame_of_parts
from spark_udfs.source.schema import row_batches, spark_batches, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def plan_parts(options: Options, map_windows: MapWindows | None = None) -> ExactPlan:
    """Return the parts of captures, in which a frame is numbered by its offset; `exact_parts` reads them.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
        OSError: a file can't be read.
    """
    files = [whole_file(path, options.storage_options) for path in options.files()]
    return plan_exact_parts(
        files,
        options.split_size,
        by_offset=True,
        ports=options.ports,
        ncp_readings=options.ncp_readings,
        map_windows=map_windows,
    )


def packets_of_parts(
    spark: SparkSession, parts: Sequence[ExactPart], reader: PartReader, schema: pa.Schema
) -> DataFrame:
    """Return the packets of parts whose frames are numbered by offset.

    Args:
        spark: the session.
        parts: all parts of a capture.
        reader: reads one part.
        schema: the schema of the rows: `packet_schema`.
    """
    return frame_of_parts(spark, parts, PartPackets(reader, schema).read, spark_schema(schema))


@dataclass(frozen=True)
class PartPackets:
    """Reads the packets of parts.

    Attributes:
        reader: the reader of the parts.
        schema: the schema of the rows: `packet_schema`.
    """

    reader: PartReader
    schema: pa.Schema

    def read(self, part: ExactPart) -> Iterator[pa.RecordBatch]:
        """Yield the packets of a part whose frames are numbered by offset, in Spark's form.

        Raises:
            OSError: a file can't be read.
        """
        yield from spark_batches(self.batches(part))

    def batches(self, part: ExactPart) -> Iterator[pa.RecordBatch]:
        """Yield the packets of such a part with the schema, and a row for each file that is damaged."""
        names = self.schema.names
        sources = {name: "frame" if name == FRAME_OFFSET.name else name for name in names}
        decoded = [*sources.values(), *(ENDPOINTS if "stream" in names else ())]
        flows, errors = FlowNumbers(), list[CaptureError]()
        for batch in self.reader.batches(part, list(dict.fromkeys(decoded)), errors=errors):
            made = {"frame": pa.nulls(batch.num_rows, INT64)}
            if "stream" in names:
                made["stream"] = flows.column(batch)
            arrays = [made.get(name, batch.column(sources[name])) for name in names]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        rows = (damage_row(error.file, error.offset, error.why) for error in errors)
        yield from row_batches(rows, self.schema)
