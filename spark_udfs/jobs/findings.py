"""The job that judges captures: ``spark-submit spark_udfs/jobs/findings.py CAPTURES... --out DIR``.

Writes one row per finding, and prints the number of findings of each id. A session is judged from its
beginning, so connections are not divided.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from msmqwire.tables.columns import BY_NAME, INT64, TEXT, arrow_schema
from spark_udfs.jobs import common
from spark_udfs.reassembly.flow_findings import FlowFindings
from spark_udfs.reassembly.packet_columns import FRAME_OFFSET
from spark_udfs.source.schema import row_batches, spark_batches, spark_schema

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import DataFrame, SparkSession

    from spark_udfs.reassembly.shuffle import Flows

_PACKET_COLUMNS: Final = (
    "time", "file", "transport", "stream", "src", "src_port", "dst", "dst_port", "kind", "size",
)  # fmt: skip
_FINDING: Final = {
    "id": (TEXT, "The requirement that is broken, or ATTACK- and a name."),
    "severity": (TEXT, "NOTE, SHOULD, MUST or ATTACK."),
    "path": (TEXT, "The field."),
    "offset": (INT64, "Its first byte, from the start of the packet."),
    "message": (TEXT, "The fault."),
}
FINDING_SCHEMA: Final = pa.schema(
    [
        *arrow_schema([BY_NAME[name] for name in _PACKET_COLUMNS]),
        FRAME_OFFSET,
        *(pa.field(name, kind, metadata={"comment": text}) for name, (kind, text) in _FINDING.items()),
    ]
)
"""One row per finding. ``stream`` is the flow number."""


def findings_of(flows: Flows, *, partitions: int | None = None) -> DataFrame:
    """Return the findings of flows, which must not be divided: ``load_flows(..., piece_size=None)``.

    Rows without an id are counts of the packets judged: ``offset`` packets of a kind, ``size`` bytes in all.
    """
    stage = partial(_stage, ports=flows.ports, end_ns=flows.end_ns)
    return flows.shuffled(partitions).mapInArrow(stage, spark_schema(FINDING_SCHEMA))


def _stage(batches: Iterable[Any], ports: tuple[int, ...], end_ns: int) -> Iterator[Any]:
    rows = finding_rows(batches, ports=ports, end_ns=end_ns)
    return spark_batches(row_batches(rows, FINDING_SCHEMA))


def finding_rows(
    batches: Iterable[Any], *, ports: Sequence[int] = (), end_ns: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield the findings of segments as rows of `FINDING_SCHEMA`, and the counts as rows at the end.

    The arguments are as for `spark_udfs.reassembly.packets.packet_batches`.
    """
    judge = FlowFindings(ports=ports, end_ns=end_ns)
    for cells, findings in judge.findings(batches):
        for finding in findings:
            yield cells | finding.to_json()
    for kind in sorted(judge.packets):
        yield {"kind": kind, "offset": judge.packets[kind], "size": judge.bytes[kind]}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return its exit status."""
    parser = common.parser("findings", "Judges captures of MSMQ by the specifications, one row a finding.")
    common.add_format(parser)
    return common.run(parser.parse_args(argv), _findings)


def _findings(spark: SparkSession, args: Namespace) -> common.Counts:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    flows = common.flows_of(spark, args, piece_size=None)
    observation = Observation("findings")
    rows = findings_of(flows, partitions=args.partitions)
    is_count = F.col("id").isNull()
    kind = F.when(is_count, F.col("kind"))
    rows = rows.observe(observation, *common.count_columns(kind, F.col("size"), F.col("offset")))
    common.write(rows.where(~is_count), args, form=args.format)
    table = common.written(spark, args, rows.schema, form=args.format)
    for row in table.groupBy("severity", "id").count().orderBy("severity", "id").collect():
        print(f"{row['count']:>12,}  {row.severity:<6}  {row.id}")
    return common.counts_of(flows, observation.get)


if __name__ == "__main__":
    # Not as __main__: executors import it by its name.
    sys.exit(import_module("spark_udfs.jobs.findings").main())
