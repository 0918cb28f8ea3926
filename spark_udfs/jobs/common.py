"""What the jobs share: arguments, the session, progress, counts and exit statuses.

A job reads captures and writes a table. It ends with 0, with 65 when something was lost (a file that is cut
off or damaged, bytes that are in no packet), 66 when a capture is missing, 2 for wrong usage. A malformed
packet is a row, and no loss.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_udfs.source.options import BadOption, Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_udfs.reassembly.arrange import Flows

EX_OK: Final = 0
EX_USAGE: Final = 2
EX_DATAERR: Final = 65
EX_NOINPUT: Final = 66
PROGRESS_SECONDS: Final = 10


@dataclass
class Counts:
    """What a job found.

    Attributes:
        packets: packets that can be read.
        malformed: packets that can't.
        skipped_bytes: bytes that are in no packet.
        damaged_files: files that are cut off or damaged.
    """

    packets: int = 0
    malformed: int = 0
    skipped_bytes: int = 0
    damaged_files: int = 0

    @property
    def status(self) -> int:
        """The exit status: whether something was lost."""
        return EX_DATAERR if self.skipped_bytes or self.damaged_files else EX_OK


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """The arguments that all jobs have."""
    made = argparse.ArgumentParser(prog=name, description=description)
    made.add_argument("captures", nargs="+", help="capture files, patterns or folders, in this order")
    made.add_argument("--out", required=True, help="the folder of the table")
    made.add_argument("--overwrite", action="store_true", help="replace the folder if it is there")
    made.add_argument("--ports", type=_ports, default=(), help="further ports of MSMQ, comma separated")
    made.add_argument("--master", help="the cluster, when spark-submit does not say it: local[4]")
    made.add_argument("--partitions", type=int, help="how many tasks put packets together")
    made.add_argument("--split-size", type=int, help="bytes of a file that one task reads")
    return made


def _ports(text: str) -> tuple[int, ...]:
    try:
        return Options.parse({"path": "-", "ports": text}).ports
    except BadOption as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def run(args: argparse.Namespace, job: Callable[[SparkSession, argparse.Namespace], Counts]) -> int:
    """Run a job with its arguments; its exit status."""
    try:
        files = Options(tuple(args.captures)).files()
        if not files:
            raise FileNotFoundError("no captures are there")
    except (FileNotFoundError, NotADirectoryError) as exc:
        return fail(str(exc), EX_NOINPUT)
    if Path(args.out).exists() and not args.overwrite:
        return fail(f"{args.out} is there already; --overwrite replaces it", EX_USAGE)
    say(f"{len(files)} files, {sum(Path(file).stat().st_size for file in files):,} bytes")
    spark = _session(args)
    with Progress(spark):
        counts = job(spark, args)
    say(json.dumps(asdict(counts)))
    return counts.status


def _session(args: argparse.Namespace) -> SparkSession:
    from pyspark.sql import SparkSession

    import spark_udfs

    builder = SparkSession.builder.appName(f"msmq {Path(sys.argv[0]).stem}")
    builder = builder.config("spark.ui.showConsoleProgress", "false")  # ours are lines
    if args.master:
        builder = builder.master(args.master)
    spark = builder.getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # dates are those of UTC
    spark_udfs.register(spark)
    return spark


def flows_of(spark: SparkSession, args: argparse.Namespace, *, piece_size: int | None) -> Flows:
    """The flows of a job's captures; tells of the damaged files."""
    from spark_udfs.reassembly.arrange import arrange

    found = arrange(
        spark,
        args.captures,
        ports=args.ports,
        piece_size=piece_size,
        split_size=args.split_size,
        partitions=args.partitions,
    )
    for one in found.damaged:
        say(f"{one.file}, byte {one.offset}: {one.error}")
    if found.cuts:
        say(f"{len(found.cuts)} connections are cut at {sum(map(len, found.cuts.values()))} places")
    return found


def write(rows: Any, args: argparse.Namespace, *, form: str = "parquet", by: Sequence[str] = ()) -> None:
    """Write a table to the folder of the job."""
    writer = rows.write.mode("overwrite" if args.overwrite else "error").partitionBy(*by)
    if form == "csv":
        writer = writer.option("header", "true")
    writer.format(form).save(args.out)


def say(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr, flush=True)


def fail(why: str, status: int) -> int:
    """Tell what is wrong as the command line does; the status."""
    say(json.dumps({"error": why, "path": "", "offset": None}))
    return status


class Progress:
    """Tells every few seconds how many tasks of the stages at work are done."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        while not self._over.wait(PROGRESS_SECONDS):
            for number in self._tracker.getActiveStageIds():
                stage = self._tracker.getStageInfo(number)
                if stage is not None:
                    say(f"stage {number}: {stage.numCompletedTasks} of {stage.numTasks} tasks")
