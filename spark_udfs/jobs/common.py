"""The common part of the jobs: arguments, the Spark session, progress, counts and exit statuses.

A job reads captures and writes a table. Its exit status is 0, 65 when something was lost (a truncated or
damaged file, bytes that belong to no packet), 66 when a capture is missing, or 2 for wrong usage and for
a place that Spark can't write to. A malformed packet is a row, not a loss.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msmqwire.capture.not_read import sentence, to_json
from msmqwire.capture.paths import file_size
from msmqwire.capture.stores import parse_options
from msmqwire.errors import UnsupportedStore
from msmqwire.names.printable import counted
from msmqwire.tables.spreadsheet import APOSTROPHE, FORMULA
from spark_udfs.jobs.output import refusal
from spark_udfs.source.options import BadOption, Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_udfs.reassembly.shuffle import Flows

EX_OK: Final = 0
EX_USAGE: Final = 2
EX_DATAERR: Final = 65
EX_NOINPUT: Final = 66
PROGRESS_SECONDS: Final = 10
FORMATS: Final = {"parquet": "parquet", "csv": "csv", "csv-raw": "csv"}
"""The formats of a table, with those of Spark. CSV is for spreadsheets, or has texts as they are."""
_OPTIONS: Final = {
    "parquet": {},
    # Quotes are doubled, as other programs expect: they end the cell at a quote after Spark's backslash, and
    # what a sender has put there is a cell of its own. Blanks stay, as a formula may come after them.
    "csv": {
        "header": "true",
        "escape": '"',
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    },
}


@dataclass
class Counts:
    """The counts that a job reports.

    Attributes:
        packets: packets that can be read.
        malformed: packets that can't.
        skipped_bytes: bytes that belong to no packet.
        damaged_files: truncated or damaged files.
        frames_not_read: why frames that may have packets were not read, each reason with their number.
    """

    packets: int = 0
    malformed: int = 0
    skipped_bytes: int = 0
    damaged_files: int = 0
    frames_not_read: list[dict[str, Any]] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The exit status, by whether something was lost."""
        return EX_DATAERR if self.skipped_bytes or self.damaged_files else EX_OK


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all jobs have."""
    arguments = argparse.ArgumentParser(prog=name, description=description)
    arguments.add_argument(
        "captures", nargs="+", help="capture files, patterns, folders or URLs, in this order"
    )
    arguments.add_argument("--out", required=True, help="the folder of the table")
    arguments.add_argument("--overwrite", action="store_true", help="replace the folder if it exists")
    arguments.add_argument("--ports", type=_ports, default=(), help="further ports of MSMQ, comma separated")
    arguments.add_argument("--master", help="the cluster, unless spark-submit names it: local[4]")
    arguments.add_argument("--partitions", type=int, help="the number of tasks that reassemble packets")
    arguments.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the file systems of URLs: region=eu-west-1",
    )
    arguments.add_argument("--split-size", type=int, help="bytes of a file that one task reads")
    return arguments


def add_format(arguments: argparse.ArgumentParser) -> None:
    """Add the argument of the table's format."""
    arguments.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="parquet",
        help="of the table: csv has an apostrophe before texts like formulas, csv-raw has not",
    )


def _ports(text: str) -> tuple[int, ...]:
    try:
        return Options.parse({"path": "-", "ports": text}).ports
    except BadOption as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def run(args: argparse.Namespace, job: Callable[[SparkSession, argparse.Namespace], Counts]) -> int:
    """Run a job with its arguments; return its exit status."""
    try:
        args.storage_options = parse_options(args.storage_option)
        files = Options(tuple(args.captures), storage_options=args.storage_options).files()
        if not files:
            raise FileNotFoundError("no captures found")
        size = sum(file_size(file, args.storage_options) for file in files)
    except UnsupportedStore as exc:
        return fail(str(exc), EX_USAGE)
    except OSError as exc:
        return fail(str(exc), EX_NOINPUT)
    report(f"{counted(len(files), 'file')}, {counted(size, 'byte')}")
    spark = _session(args)
    if reason := refusal(spark, args.out, overwrite=args.overwrite):
        return fail(reason, EX_USAGE)
    with Progress(spark):
        counts = job(spark, args)
    report(json.dumps(asdict(counts)))
    return counts.status


def _session(args: argparse.Namespace) -> SparkSession:
    from pyspark.sql import SparkSession

    import spark_udfs

    builder = SparkSession.builder.appName(f"msmq {Path(sys.argv[0]).stem}")
    builder = builder.config("spark.ui.showConsoleProgress", "false")  # `Progress` prints lines instead
    if args.master:
        builder = builder.master(args.master)
    spark = builder.getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # for the dates of partitions
    spark_udfs.register(spark)
    return spark


def flows_of(spark: SparkSession, args: argparse.Namespace, *, piece_size: int | None) -> Flows:
    """Return the flows of a job's captures; report the damaged files."""
    from spark_udfs.reassembly.shuffle import load_flows

    flows = load_flows(
        spark,
        args.captures,
        ports=args.ports,
        piece_size=piece_size,
        split_size=args.split_size,
        partitions=args.partitions,
        storage_options=args.storage_options,
    )
    for damaged in flows.damaged:
        report(f"{damaged.file}, byte {damaged.offset}: {damaged.error}")
    if flows.frames_not_read:
        report(sentence(flows.frames_not_read))
    if flows.boundaries:
        chunks = sum(len(of_flow) + 1 for of_flow in flows.boundaries.values())
        report(
            f"{counted(len(flows.boundaries), 'connection', 'are')} divided into {counted(chunks, 'chunk')}"
        )
    return flows


def counts_of(flows: Flows, observed: dict[str, Any]) -> Counts:
    """Return the counts of a job on flows, with the observed counts of its rows."""
    not_read = to_json(flows.frames_not_read)
    return Counts(**observed, damaged_files=len(flows.damaged), frames_not_read=not_read)


def count_columns(kind: Any, size: Any, packets: Any) -> list[Any]:
    """Return the columns to observe for the `Counts` of a job.

    Args:
        kind: the column with the kind of a row.
        size: the column with its bytes.
        packets: the column with the number of packets in a row.
    """
    from pyspark.sql import functions as F

    is_packet = ~kind.isin("Malformed", "Skipped")
    return [
        F.coalesce(F.sum(value), F.lit(0)).alias(name)
        for name, value in (
            ("packets", F.when(is_packet, packets)),
            ("malformed", F.when(kind == "Malformed", packets)),
            ("skipped_bytes", F.when(kind == "Skipped", size)),
        )
    ]


def write(
    rows: Any, args: argparse.Namespace, *, form: str = "parquet", partition_columns: Sequence[str] = ()
) -> None:
    """Write a table to the folder of the job, in one of `FORMATS`."""
    if form == "csv":
        rows = spreadsheet_cells(rows)
    kind = FORMATS[form]
    writer = rows.write.mode("overwrite" if args.overwrite else "error").partitionBy(*partition_columns)
    writer.format(kind).options(**_OPTIONS[kind]).save(args.out)


def written(spark: SparkSession, args: argparse.Namespace, schema: Any, *, form: str) -> DataFrame:
    """Return the table that `write` has written; texts as they stand in it."""
    kind = FORMATS[form]
    options = _OPTIONS[kind] | ({"multiLine": "true"} if kind == "csv" else {})
    return spark.read.schema(schema).format(kind).options(**options).load(args.out)


def spreadsheet_cells(rows: DataFrame) -> DataFrame:
    """Return rows whose texts are cells of `msmqwire.tables.spreadsheet.escaped`."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    texts = [field.name for field in rows.schema if isinstance(field.dataType, StringType)]
    cells = {name: F.regexp_replace(F.col(name), FORMULA, APOSTROPHE + "$1") for name in texts}
    return rows.withColumns(cells)


def report(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def fail(reason: str, status: int) -> int:
    """Report an error in the form of the command line; return the status."""
    report(json.dumps({"error": reason, "path": "", "offset": None}))
    return status


class Progress:
    """Reports every few seconds how many tasks of the running stages are done."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._finished.set()
        self._thread.join()

    def _report(self) -> None:
        while not self._finished.wait(PROGRESS_SECONDS):
            for number in self._tracker.getActiveStageIds():
                stage = self._tracker.getStageInfo(number)
                if stage is not None:
                    report(f"stage {number}: {stage.numCompletedTasks} of {counted(stage.numTasks, 'task')}")
