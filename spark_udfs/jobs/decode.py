"""Captures to Parquet: ``spark-submit spark_udfs/jobs/decode.py CAPTURES... --out DIR``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spark_udfs.jobs import common

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import SparkSession


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; its exit status."""
    parser = common.parser("decode", "Decodes captures of MSMQ to Parquet, one row a packet.")
    parser.add_argument("--by-kind", action="store_true", help="partition by kind too, not by date alone")
    parser.add_argument("--columns", type=_names, help="the columns, comma separated; all but raw without")
    parser.add_argument("--body-limit", type=int, help="bytes of a body at most")
    parser.add_argument("--piece-size", type=int, help="bytes from which on a connection is cut in pieces")
    args = parser.parse_args(argv)
    from spark_udfs.reassembly.packets import packet_schema

    try:
        packet_schema(args.columns)
    except ValueError as exc:
        parser.error(str(exc))
    return common.run(args, _decode)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _decode(spark: SparkSession, args: Namespace) -> common.Counts:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    from spark_udfs.reassembly.arrange import PIECE_SIZE
    from spark_udfs.reassembly.packets import packet_schema, packets_of

    found = common.flows_of(spark, args, piece_size=args.piece_size or PIECE_SIZE)
    names = packet_schema(args.columns).names
    needed = list(dict.fromkeys([*names, "time", "kind", "size"]))
    rows = packets_of(found, columns=needed, body_limit=args.body_limit, partitions=args.partitions)
    seen = Observation("packets")
    rows = rows.observe(seen, *counted(F.col("kind"), F.col("size"), F.lit(1)))
    by = ["date", "kind"] if args.by_kind else ["date"]
    kept = [name for name in names if name not in by] + by
    common.write(rows.withColumn("date", F.to_date("time")).select(kept), args, by=by)
    return common.Counts(**seen.get, damaged_files=len(found.damaged))


def counted(kind: Any, size: Any, count: Any) -> list[Any]:
    """The counts of a job as columns to observe: of rows with a kind, a size and a number of packets."""
    from pyspark.sql import functions as F

    whole = ~kind.isin("Malformed", "Skipped")
    return [
        F.coalesce(F.sum(value), F.lit(0)).alias(name)
        for name, value in (
            ("packets", F.when(whole, count)),
            ("malformed", F.when(kind == "Malformed", count)),
            ("skipped_bytes", F.when(kind == "Skipped", size)),
        )
    ]


if __name__ == "__main__":
    # Not as __main__: executors know it by its name.
    sys.exit(import_module("spark_udfs.jobs.decode").main())
