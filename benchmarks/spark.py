"""The Spark data source beside the columnar decoder alone.

    python benchmarks/spark.py [LARGEST_GB]

Makes captures of mixed sessions of 1/16, 1/8, 1/4, 1/2 and the whole of the largest (4 GB by default), and
reads each with `read_capture` on one core, and with ``spark.read.format("msmq")`` ("source") and
`spark_udfs.frame` ("frame") on local[1] and local[2], on local[1] also without the checks of Arrow
("unchecked"): a few columns aggregated by kind and destination, and all columns with their bodies to the noop
sink; the smallest also with `spark_udfs.packets`, exact by a shuffle of all segments. The decoder and each
Spark are processes of their own. A capture with fewer tasks than cores is shown, but not judged. Measured
separately: the start of Spark with its first queries, and the fixed time of each query over a small capture
once all is warm, which is its planning and the start of its tasks; rates are computed from the rest. A rate
per core is divided by the N of local[N]. Beside the seconds of the fastest run are the CPU seconds of its
Python processes and of the JVM, which run concurrently, so on local[1] more than one core may be busy. Linux
only: memory and CPU times are read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import spark_queries
from benchmarks.spark_queries import FEW, QUERIES, READERS, SPLIT, Run, runs_over
from benchmarks.support.captures import CaptureSummary, write
from benchmarks.support.readers import measured

ROOT: Final = Path(__file__).resolve().parents[1]
SIZES: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
BYTES_PER_FRAME: Final = 776
"""Approximate sizes of the generated captures; the reports use the real sizes."""
SMALL: Final = 1000
"""Frames of the capture for first runs."""
MASTERS: Final = ((1, True), (1, False), (2, True))
"""Cores, and whether Arrow's checks are on."""
LEAST_GB: Final = 0.5
"""The least share of the largest capture: below it, fixed times hide the rates."""
RATE_AIM: Final = 0.8
FLAT_AIM: Final = 0.1


class Line(NamedTuple):
    """One query over one capture by one reader.

    Attributes:
        fixed: seconds of the same query over the small capture; 0 for the decoder, which plans nothing.
        cpu: CPU seconds of the Python processes that Spark started and of the JVM; empty for the decoder.
    """

    reader: str
    query: str
    gigabytes: float
    seconds: float
    fixed: float
    cores: int
    cpu: tuple[float, ...] = ()

    @property
    def busy(self) -> bool:
        """Whether every core has a task."""
        return self.gigabytes * 1e9 > SPLIT * (self.cores - 1)

    @property
    def per_gigabyte(self) -> float:
        """Seconds for a GB once tasks run."""
        return (self.seconds - self.fixed) / self.gigabytes

    @property
    def rate(self) -> float:
        """MB per second and core once tasks run."""
        return 1000 / self.per_gigabyte / self.cores


def spark_measured(cores: int, arrow_checks: bool, small: Path, paths: list[Path]) -> dict[str, Any]:
    """Return the result of `spark_queries` on a number of cores."""
    checks = "checked" if arrow_checks else "unchecked"
    command = [sys.executable, spark_queries.__file__, str(cores), checks, str(small), *map(str, paths)]
    # Spark starts its workers itself: they must be this Python, and import the package.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"local[{cores}]: {process.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def decoder_lines(small: Path, captures: list[tuple[Path, CaptureSummary]]) -> tuple[list[Line], list[int]]:
    """Measure the decoder alone; return its lines, and the number of rows of each capture."""
    lines, rows = [], []
    peak = 0.0
    for path, made in captures:
        for query, columns in zip(QUERIES, (FEW, ()), strict=True):
            result = measured("columnar", path, first=small, runs=runs_over(path), columns=columns)
            lines.append(Line("decoder alone", query, made.bytes / 1e9, result["seconds"], 0.0, 1))
            peak = max(peak, result["memory"])
        rows.append(result["counted"])
    print(f"decoder alone: {peak:.0f} MiB resident at the highest", flush=True)
    return lines, rows


def spark_lines(
    cores: int, arrow_checks: bool, small: Path, captures: list[tuple[Path, CaptureSummary]], rows: list[int]
) -> list[Line]:
    """Measure Spark on a number of cores; print where its rows differ from the decoder's."""
    result = spark_measured(cores, arrow_checks, small, [path for path, _ in captures])
    memory, master = result["memory"], f"local[{cores}]{'' if arrow_checks else ' unchecked'}"
    print(
        f"{master}: started in {result['started']:.1f} s, first queries {result['first']:.1f} s;"
        f" at the highest {memory['python']:.0f} MiB in a Python worker, {memory['java']:.0f} MiB in the JVM",
        flush=True,
    )
    gigabytes, exact = captures[0][1].bytes / 1e9, Run(*result["exact"])
    print(
        f"{master}: spark_udfs.packets, {gigabytes:.3f} GB in {exact.seconds:.1f} s,"
        f" {exact.seconds / gigabytes:.0f} s per GB; {exact.rows:,} rows of {rows[0]:,}",
        flush=True,
    )
    lines = []
    for name in READERS:
        reader = f"{master} {name}"
        for (_, made), runs, expected in zip(captures, result["runs"][name], rows, strict=True):
            for query, fixed, cells in zip(QUERIES, result["fixed"][name], runs, strict=True):
                run = Run(*cells)
                if query == "aggregated" and run.rows != expected:
                    print(f"{reader} found {run.rows:,} rows, the decoder {expected:,}: see the limits")
                cpu = run.python, run.jvm
                lines.append(Line(reader, query, made.bytes / 1e9, run.seconds, fixed, cores, cpu))
    return lines


def show(lines: list[Line]) -> None:
    """Print a line for each reader and size, then each aim and whether it was reached."""
    alone = {(line.query, line.gigabytes): line.rate for line in lines if line.reader == "decoder alone"}
    print(
        f"\n{'':<25} {'':<12} {'GB':>6} {'seconds':>8} {'fixed':>6} {'s per GB':>9} {'MB/s a core':>12}"
        f" {'of alone':>9} {'CPU s: Python':>14} {'JVM':>6}"
    )
    for line in sorted(lines, key=lambda line: QUERIES.index(line.query)):
        print(
            f"{line.reader:<25} {line.query:<12} {line.gigabytes:>6.3f} {line.seconds:>8.2f}"
            f" {line.fixed:>6.2f} {line.per_gigabyte:>9.2f} {line.rate:>12.1f}"
            f" {line.rate / alone[line.query, line.gigabytes]:>9.2f}"
            + "".join(f" {seconds:>{width}.2f}" for seconds, width in zip(line.cpu, (14, 6), strict=False))
        )
    print(f"\n{'':<38} {'rate a core, of alone':>22} {'s per GB, apart by':>20}")
    for reader in sorted({line.reader for line in lines} - {"decoder alone"}):
        for query in QUERIES:
            judged = [line for line in lines if (line.reader, line.query) == (reader, query) and line.busy]
            if not judged:  # the capture is too small for this number of tasks
                continue
            share = judged[-1].rate / alone[query, judged[-1].gigabytes]
            times = [line.per_gigabyte for line in judged]
            apart = max(times) / min(times) - 1
            print(
                f"{reader:<25} {query:<12} {share:>14.2f} {'reached' if share >= RATE_AIM else 'missed'}"
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
        for cores, arrow_checks in MASTERS:
            lines += spark_lines(cores, arrow_checks, small, captures, rows)
        show(lines)


if __name__ == "__main__":
    main()
