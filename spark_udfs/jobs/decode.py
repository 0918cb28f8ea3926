"""Captures to Parquet: ``spark-submit spark_udfs/jobs/decode.py CAPTURES... --out DIR``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from msmqwire.analysis.dissection.message_security import Examiner, contents_of
from spark_udfs.jobs import common

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import SparkSession


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return its exit status."""
    parser = common.parser("decode", "Decodes captures of MSMQ to Parquet, one row a packet.")
    parser.add_argument("--by-kind", action="store_true", help="partition by kind too, not by date alone")
    parser.add_argument("--columns", type=_names, help="the columns, comma separated; the usual ones without")
    parser.add_argument("--body-limit", type=int, help="bytes of a body at most")
    parser.add_argument(
        "--piece-size", type=int, help="bytes above which a connection is divided among tasks"
    )
    parser.add_argument(
        "--key", action="append", default=[], help="a private key of a receiving queue manager, PEM or DER"
    )
    parser.add_argument(
        "--cert",
        action="append",
        default=[],
        help="certificates of senders, PEM or DER",
    )
    args = parser.parse_args(argv)
    from spark_udfs.reassembly.packet_columns import packet_schema

    try:
        packet_schema(args.columns)
        args.key, args.cert = contents_of(args.key), contents_of(args.cert)
        Examiner.from_files(args.key, args.cert)
    except OSError as exc:
        return common.fail(f"{exc.filename}: {exc.strerror}", common.EX_NOINPUT)
    except ValueError as exc:
        parser.error(str(exc))
    return common.run(args, _decode)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _decode(spark: SparkSession, args: Namespace) -> common.Counts:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    from spark_udfs.reassembly.packet_columns import packet_schema
    from spark_udfs.reassembly.packets import packets_of
    from spark_udfs.reassembly.shuffle import PIECE_SIZE

    flows = common.flows_of(spark, args, piece_size=args.piece_size or PIECE_SIZE)
    names = packet_schema(args.columns).names
    decoded = list(dict.fromkeys([*names, "time", "kind", "size"]))
    rows = packets_of(
        flows,
        columns=decoded,
        body_limit=args.body_limit,
        partitions=args.partitions,
        keys=args.key,
        certificates=args.cert,
    )
    observation = Observation("packets")
    rows = rows.observe(observation, *common.count_columns(F.col("kind"), F.col("size"), F.lit(1)))
    partition_columns = ["date", "kind"] if args.by_kind else ["date"]
    columns = [name for name in names if name not in partition_columns] + partition_columns
    rows = rows.withColumn("date", F.to_date("time")).select(columns)
    common.write(rows, args, partition_columns=partition_columns)
    return common.counts_of(flows, observation.get)


if __name__ == "__main__":
    # Not as __main__: executors import it by its name.
    sys.exit(import_module("spark_udfs.jobs.decode").main())
