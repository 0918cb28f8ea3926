"""The job that makes the table of sessions:
``spark-submit spark_udfs/jobs/sessions.py CAPTURES... --out DIR``.

A session is judged from its beginning, so connections are not divided.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spark_udfs.jobs import common
from spark_udfs.reassembly.chunks import Segments, chunks
from spark_udfs.source.schema import row_batches, spark_batches, spark_schema
from spark_udfs.source.session_table import SESSION_SCHEMA, FlowSessions

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import DataFrame, SparkSession

    from spark_udfs.reassembly.shuffle import Flows


def sessions_of(flows: Flows, *, partitions: int | None = None) -> DataFrame:
    """Return the sessions of flows, which must not be divided: ``load_flows(..., piece_size=None)``."""
    stage = partial(_session_stage, ports=flows.ports, end_ns=flows.end_ns)
    return flows.shuffled(partitions).mapInArrow(stage, spark_schema(SESSION_SCHEMA))


def _session_stage(batches: Iterable[Any], ports: tuple[int, ...], end_ns: int) -> Iterator[Any]:
    rows = session_rows(batches, ports=ports, end_ns=end_ns)
    return spark_batches(row_batches(rows, SESSION_SCHEMA))


def session_rows(
    batches: Iterable[Any], *, ports: Collection[int] = (), end_ns: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield the sessions of segments; arguments as for `spark_udfs.reassembly.packets.packet_batches`."""
    for chunk in chunks(Segments(batches), {}):
        sessions = FlowSessions(chunk.flow, ports=ports)
        for segment in chunk.segments:
            yield from sessions.feed(segment)
        yield from sessions.flush(end_ns)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return its exit status."""
    parser = common.parser("sessions", "Makes the table of the MSMQ sessions in captures.")
    common.add_format(parser)
    return common.run(parser.parse_args(argv), _sessions)


def _sessions(spark: SparkSession, args: Namespace) -> common.Counts:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    flows = common.flows_of(spark, args, piece_size=None)
    observation = Observation("sessions")
    columns = {"packets": "packets", "malformed": "malformed_packets", "skipped_bytes": "skipped_bytes"}
    rows = sessions_of(flows, partitions=args.partitions).observe(
        observation,
        *(
            F.coalesce(F.sum(F.col(f"client_{column}") + F.col(f"server_{column}")), F.lit(0)).alias(name)
            for name, column in columns.items()
        ),
    )
    common.write(rows, args, form=args.format)
    return common.counts_of(flows, observation.get)


if __name__ == "__main__":
    # Not as __main__: executors import it by its name.
    sys.exit(import_module("spark_udfs.jobs.sessions").main())
