"""The job that judges captures: ``spark-submit spark_udfs/jobs/findings.py CAPTURES... --out DIR``.

One row a finding, and at the end how many there are of each id. A session is judged from its beginning, so
connections are not cut in pieces.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from msmqwire.columnar.arrow.rows import value_of
from msmqwire.columnar.columns import BY_NAME, INT64, TEXT, arrow_schema
from msmqwire.dissection import Item
from spark_udfs.jobs import common
from spark_udfs.reassembly.packets import FRAME_OFFSET, items
from spark_udfs.source.schema import arrow_fields, as_spark, spark_schema

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import DataFrame, SparkSession

    from spark_udfs.reassembly.arrange import Flows

_WHERE: Final = (
    "time", "file", "transport", "stream", "src", "src_port", "dst", "dst_port", "kind", "size",
)  # fmt: skip
_FINDING: Final = {
    "id": (TEXT, "The requirement that is broken, or ATTACK- and a name."),
    "severity": (TEXT, "MUST, SHOULD or ATTACK."),
    "path": (TEXT, "The field."),
    "offset": (INT64, "Its first byte, from the start of the packet."),
    "message": (TEXT, "What is wrong."),
}
FINDING_SCHEMA: Final = pa.schema(
    [
        *arrow_schema([BY_NAME[name] for name in _WHERE]),
        FRAME_OFFSET,
        *(pa.field(name, kind, metadata={"comment": text}) for name, (kind, text) in _FINDING.items()),
    ]
)
"""One row a finding. ``stream`` is the flow number."""
BATCH_ROWS: Final = 8192


def findings_of(found: Flows, *, partitions: int | None = None) -> DataFrame:
    """The findings of flows, which must not be cut: ``arrange(..., piece_size=None)``.

    Rows without an id count what was looked at: ``offset`` packets of a kind, of ``size`` bytes together.
    """
    stage = partial(_stage, ports=found.ports, end_ns=found.end_ns)
    return found.arranged(partitions).mapInArrow(stage, spark_schema(FINDING_SCHEMA))


def finding_batches(batches: Iterable[Any], *, ports: Sequence[int] = (), end_ns: int = 0) -> Iterator[Any]:
    """The findings of segments as record batches with `FINDING_SCHEMA`, and the counts as rows at the end;
    arguments as for `spark_udfs.reassembly.packets.items`."""
    numbers, sizes = Counter[str](), Counter[str]()
    rows: list[dict[str, Any]] = []
    for flow, item in items(batches, ports=ports, lint=True, end_ns=end_ns):
        numbers[item.kind] += 1
        sizes[item.kind] += item.size
        rows += _rows(flow, item)
        if len(rows) >= BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(rows, schema=FINDING_SCHEMA)
            rows = []
    rows += [{"kind": kind, "offset": numbers[kind], "size": sizes[kind]} for kind in sorted(numbers)]
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=FINDING_SCHEMA)


def _rows(flow: int, item: Item) -> Iterator[dict[str, Any]]:
    if not item.findings:
        return
    where = {name: value_of(BY_NAME[name], item) for name in _WHERE}
    where["stream"] = flow if item.transport == "tcp" else None
    where[FRAME_OFFSET.name] = item.frames[-1]
    for finding in item.findings:
        yield where | finding.to_json()


def _stage(batches: Iterable[Any], ports: tuple[int, ...], end_ns: int) -> Iterator[Any]:
    schema = arrow_fields(spark_schema(FINDING_SCHEMA))
    for batch in finding_batches(batches, ports=ports, end_ns=end_ns):
        yield as_spark(batch.columns, schema)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; its exit status."""
    parser = common.parser("findings", "Judges captures of MSMQ by the specifications, one row a finding.")
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the table")
    return common.run(parser.parse_args(argv), _findings)


def _findings(spark: SparkSession, args: Namespace) -> common.Counts:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    from spark_udfs.jobs.decode import counted

    found = common.flows_of(spark, args, piece_size=None)
    seen = Observation("findings")
    rows = findings_of(found, partitions=args.partitions)
    is_count = F.col("id").isNull()
    kind = F.when(is_count, F.col("kind"))
    rows = rows.observe(seen, *counted(kind, F.col("size"), F.col("offset")))
    common.write(rows.where(~is_count), args, form=args.format)
    written = spark.read.schema(rows.schema).format(args.format)
    if args.format == "csv":
        written = written.option("header", "true")
    table = written.load(args.out)
    for row in table.groupBy("severity", "id").count().orderBy("severity", "id").collect():
        print(f"{row['count']:>12,}  {row.severity:<6}  {row.id}")
    return common.Counts(**seen.get, damaged_files=len(found.damaged))


if __name__ == "__main__":
    # Not as __main__: executors know it by its name.
    sys.exit(import_module("spark_udfs.jobs.findings").main())
