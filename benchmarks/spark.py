"""The Spark data source, side by side with the columnar decoder alone.

    python benchmarks/spark.py [LARGEST_GB]

Makes captures of mixed sessions of 1/16, 1/8, 1/4, 1/2 and the whole of the largest (4 GB unless told), and
reads each with `read_capture` on one core, and with ``spark.read.format("msmq")`` on local[1] and local[2]: a
few columns aggregated by kind and destination, and all columns with their bodies to the noop sink; the
smallest also with `spark_udfs.packets`, exact by a shuffle of all segments. Each reader is a process of its
own. A capture with fewer tasks than cores is shown, and not judged. Told apart: the start of Spark with its
first queries, and what each query takes over a small capture once all is warm, which is its planning and the
start of its tasks; rates are of the rest. A rate per core is divided by the N of local[N]. Beside the seconds
of the fastest run stand those of CPU that its Python processes and the JVM took: they run beside each other,
so on local[1] more than one core may be busy. Linux only: memory and CPU times are read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.captures import CaptureSummary, write
from benchmarks.readers import measured

ROOT: Final = Path(__file__).resolve().parents[1]
SIZES: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
BYTES_PER_FRAME: Final = 776
"""Of the captures made; what comes of it is told as it is."""
SMALL: Final = 1000
"""Frames of the capture for first runs."""
SPLIT: Final = 512 << 20
"""As the data source has it when it is not told."""
FEW: Final = ("kind", "destination", "size", "body_size")
QUERIES: Final = ("aggregated", "all columns")
MASTERS: Final = (1, 2)
LEAST_GB: Final = 0.5
"""Of the largest capture: below, what is fixed hides what is measured."""
RATE_AIM: Final = 0.8
FLAT_AIM: Final = 0.1


class Line(NamedTuple):
    """One query over one capture by one reader."""

    reader: str
    query: str
    gigabytes: float
    seconds: float
    fixed: float
    """Seconds of the same query over the small capture; 0 for the decoder, which plans nothing."""
    cores: int
    processor: tuple[float, ...] = ()
    """Seconds of CPU of the Python processes that Spark started and of the JVM; none for the decoder."""

    @property
    def busy(self) -> bool:
        """Whether there is a task for each core."""
        return self.gigabytes * 1e9 > SPLIT * (self.cores - 1)

    @property
    def per_gigabyte(self) -> float:
        """Seconds for a GB once tasks run."""
        return (self.seconds - self.fixed) / self.gigabytes

    @property
    def rate(self) -> float:
        """MB a second and core once tasks run."""
        return 1000 / self.per_gigabyte / self.cores


def runs_over(path: Path) -> int:
    """How often a capture is read, for the fastest to count: three times below a GB, once above two."""
    return max(1, min(3, round(2e9 / path.stat().st_size)))


def started(fields: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The processes that this one has started, directly or not: java or python, and what /proc tells of each.

    A process may be gone before it is read.

    Args:
        fields: files of its folder in /proc.
    """
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = {name: (folder / name).read_text() for name in ("stat", *fields)}
        except (FileNotFoundError, ProcessLookupError):
            continue
    parents = {pid: int(_stat(texts)[1]) for pid, texts in found.items()}
    for pid, texts in found.items():
        above = parents[pid]
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid():
            yield "java" if "(java)" in texts["stat"] else "python", texts


def _stat(texts: dict[str, str]) -> list[str]:
    """The fields of ``/proc/PID/stat`` that follow the name of the program."""
    return texts["stat"].rpartition(")")[2].split()


def processor_seconds() -> dict[str, float]:
    """Seconds of CPU so far, by kind of process, of those started and of those that they have waited for."""
    taken = {"java": 0.0, "python": 0.0}
    for kind, texts in started(()):
        taken[kind] += sum(map(int, _stat(texts)[11:15])) / os.sysconf("SC_CLK_TCK")
    return taken


class Memory(threading.Thread):
    """Watches the processes that this one has started: the resident MiB of each at the highest.

    Attributes:
        most: by kind of process, the largest of that kind.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = {"java": 0.0, "python": 0.0}
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.5):
            self.look()

    def stop(self) -> None:
        self._done.set()
        self.join()

    def look(self) -> None:
        """One look."""
        for kind, texts in started(["status"]):
            fields = dict(line.split(":", 1) for line in texts["status"].splitlines())
            mebibytes = int(fields.get("VmHWM", "0").split()[0]) / 1024
            self.most[kind] = max(self.most[kind], mebibytes)


def spark_reads(cores: int, small: str, paths: list[str]) -> dict[str, Any]:
    """What this process measures with Spark: seconds of the start and of each query, and memory."""
    memory = Memory()
    memory.start()
    start = time.perf_counter()
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    import spark_udfs

    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(cores))
        .getOrCreate()
    )
    spark_udfs.register(spark)
    spark.sparkContext.setLogLevel("ERROR")
    fields = spark.read.format("msmq").load(small).schema.fields
    whole = StructType([field for field in fields if field.name != "raw"])
    few = StructType([field for field in fields if field.name in FEW])

    def loaded(path: str, schema: Any) -> Any:
        return spark.read.format("msmq").option("splitSize", str(SPLIT)).schema(schema).load(path)

    def aggregated(path: str) -> int:
        rows = (
            loaded(path, few)
            .groupBy("kind", "destination")
            .agg(F.count("*").alias("packets"), F.sum("size"), F.sum("body_size"))
            .collect()
        )
        return sum(row["packets"] for row in rows)

    def all_columns(path: str) -> int:
        loaded(path, whole).write.format("noop").mode("overwrite").save()
        return 0

    def timed(query: Any, path: str, runs: int = 1) -> tuple[float, int, float, float]:
        """Of the fastest run: seconds, rows, seconds of CPU of Python and of the JVM."""
        taken = []
        for _ in range(runs):
            before, begun = processor_seconds(), time.perf_counter()
            counted: int = query(path)
            seconds, after = time.perf_counter() - begun, processor_seconds()
            taken.append((seconds, counted, *(after[kind] - before[kind] for kind in ("python", "java"))))
        return min(taken)

    spark.range(1).count()
    start_up = time.perf_counter() - start
    queries = aggregated, all_columns
    first = [timed(query, small)[0] for query in queries]
    fixed = [timed(query, small, 3)[0] for query in queries]
    taken = [[timed(query, path, runs_over(Path(path))) for query in queries] for path in paths]

    def exact(path: str) -> int:
        rows = spark_udfs.packets(spark, path, columns=FEW).groupBy("kind").count().collect()
        return sum(row["count"] for row in rows)

    shuffled = timed(exact, paths[0])
    memory.stop()
    spark.stop()
    return {
        "started": start_up,
        "first": sum(first),
        "fixed": fixed,
        "taken": taken,
        "exact": shuffled,
        "memory": memory.most,
    }


def spark_measured(cores: int, small: Path, paths: list[Path]) -> dict[str, Any]:
    """`spark_reads` in a process of its own."""
    command = [sys.executable, __file__, "--child", str(cores), str(small), *map(str, paths)]
    # Spark starts its workers itself: they are to be this Python, and to find the package.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"local[{cores}]: {done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def decoder_lines(small: Path, captures: list[tuple[Path, CaptureSummary]]) -> tuple[list[Line], list[int]]:
    """The decoder alone, and how many rows each capture has."""
    lines, rows = [], []
    most = 0.0
    for path, made in captures:
        for query, columns in zip(QUERIES, (FEW, ()), strict=True):
            found = measured("columnar", path, first=small, runs=runs_over(path), columns=columns)
            lines.append(Line("decoder alone", query, made.bytes / 1e9, found["seconds"], 0.0, 1))
            most = max(most, found["memory"])
        rows.append(found["counted"])
    print(f"decoder alone: {most:.0f} MiB resident at the highest", flush=True)
    return lines, rows


def spark_lines(
    cores: int, small: Path, captures: list[tuple[Path, CaptureSummary]], rows: list[int]
) -> list[Line]:
    """Spark on so many cores; prints it when the rows are not those of the decoder."""
    found = spark_measured(cores, small, [path for path, _ in captures])
    memory = found["memory"]
    print(
        f"local[{cores}]: started in {found['started']:.1f} s, first queries {found['first']:.1f} s;"
        f" at the highest {memory['python']:.0f} MiB in a Python worker, {memory['java']:.0f} MiB in the JVM",
        flush=True,
    )
    gigabytes, (seconds, counted, *_) = captures[0][1].bytes / 1e9, found["exact"]
    print(
        f"local[{cores}]: spark_udfs.packets, {gigabytes:.3f} GB in {seconds:.1f} s,"
        f" {seconds / gigabytes:.0f} s per GB; {counted:,} rows of {rows[0]:,}",
        flush=True,
    )
    lines = []
    for (_, made), taken, expected in zip(captures, found["taken"], rows, strict=True):
        for query, fixed, (seconds, counted, python, java) in zip(
            QUERIES, found["fixed"], taken, strict=True
        ):
            if query == "aggregated" and counted != expected:
                print(f"local[{cores}] found {counted:,} rows, the decoder {expected:,}: see the limits")
            lines.append(
                Line(f"local[{cores}]", query, made.bytes / 1e9, seconds, fixed, cores, (python, java))
            )
    return lines


def show(lines: list[Line]) -> None:
    """Prints a line for each reader and size, then what was aimed at and what was reached."""
    alone = {(x.query, x.gigabytes): x.rate for x in lines if x.reader == "decoder alone"}
    print(
        f"\n{'':<14} {'':<12} {'GB':>6} {'seconds':>8} {'fixed':>6} {'s per GB':>9} {'MB/s a core':>12}"
        f" {'of alone':>9} {'CPU s: Python':>14} {'JVM':>6}"
    )
    for line in sorted(lines, key=lambda x: QUERIES.index(x.query)):
        print(
            f"{line.reader:<14} {line.query:<12} {line.gigabytes:>6.3f} {line.seconds:>8.2f}"
            f" {line.fixed:>6.2f} {line.per_gigabyte:>9.2f} {line.rate:>12.1f}"
            f" {line.rate / alone[line.query, line.gigabytes]:>9.2f}"
            + "".join(
                f" {seconds:>{size}.2f}" for seconds, size in zip(line.processor, (14, 6), strict=False)
            )
        )
    print(f"\n{'':<27} {'rate a core, of alone':>22} {'s per GB, apart by':>20}")
    for reader in sorted({line.reader for line in lines} - {"decoder alone"}):
        for query in QUERIES:
            mine = [x for x in lines if (x.reader, x.query) == (reader, query) and x.busy]
            share = mine[-1].rate / alone[query, mine[-1].gigabytes]
            times = [line.per_gigabyte for line in mine]
            apart = max(times) / min(times) - 1
            print(
                f"{reader:<14} {query:<12} {share:>14.2f} {'reached' if share >= RATE_AIM else 'missed'}"
                f" {apart:>12.0%} {'reached' if 0 <= apart <= FLAT_AIM else 'missed'}"
            )
    print(f"aims: {RATE_AIM:.0%} of the decoder's rate a core, on the largest; flat within {FLAT_AIM:.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description="The Spark data source beside the decoder alone.")
    parser.add_argument("largest", type=float, nargs="?", default=4.0, metavar="LARGEST_GB")
    largest: float = parser.parse_args().largest
    if largest < LEAST_GB:
        parser.error(f"at least {LEAST_GB} GB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = folder / "small.part"
        write(small, SMALL)
        captures = []
        for share in SIZES:
            path = folder / f"mixed-{share}.part"
            captures.append((path, write(path, round(largest * share * 1e9 / BYTES_PER_FRAME))))
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, splits of {SPLIT >> 20} MiB")
        lines, rows = decoder_lines(small, captures)
        for cores in MASTERS:
            lines += spark_lines(cores, small, captures, rows)
        show(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(spark_reads(int(sys.argv[2]), sys.argv[3], sys.argv[4:])))
    else:
        main()
