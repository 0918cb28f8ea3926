"""Lakes beside the decoder, and beside the decoder with pyarrow's Parquet writer.

    python benchmarks/lake.py [GIGABYTES] [--no-spark] [--runs N] [--sizes GB,GB] [--only-sizes]

Reads a generated capture (`benchmarks/support/captures.py`; 0.75 GB by default), all columns with their
bodies, in turn, several times over: the decoder alone; the decoder and a `ParquetWriter` with zstd in one
process; the decoder and pyarrow's `write_dataset` by destination; `write_lake` in one process, by date alone,
by kind and by destination; `spark_udfs.lake` on local[1]. Prints for each the CPU seconds of its cheapest
run, here and in the JVM and the Python processes of Spark; those for a capture of 1,000 frames, which are
fixed, and those for a GB beyond; and its rate relative to the decoder with the writer, whole and without what
is fixed. With ``--sizes`` also lakes of captures of so many GB, one after the other, and how far their
seconds for a GB are apart. Linux only: CPU times of other processes are read from /proc.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.captures import write
from benchmarks.support.processes import cpu_seconds

FRAME_BYTES: Final = 776
"""Bytes of a frame of the generated captures, about."""
BATCH_ROWS: Final = 65_536
RATE_AIM: Final = 0.8
FLAT_AIM: Final = 0.1
BASE: Final = "decoder and writer"
DATASET: Final = "decoder and write_dataset"
BY_DESTINATION: Final = "lake by destination"
SPARK: Final = "lake by Spark, local[1]"
DISK_FACTOR: Final = 1.5
"""Bytes on disk for a byte of capture: itself and a lake."""
TINY_FRAMES: Final = 1000
"""The frames of the capture for the fixed costs."""

Reader = Callable[[str, Path], int]
"""Reads a capture, may write below a folder, and returns the rows."""


class Run(NamedTuple):
    """The cost of a capture for a reader.

    Attributes:
        cpu: CPU seconds of all processes.
        here: CPU seconds of this process.
        elapsed: elapsed seconds.
        rows: the number of rows read.
    """

    cpu: float
    here: float
    elapsed: float
    rows: int


def decoder(path: str, _: Path) -> int:
    import msmqwire

    return sum(batch.num_rows for batch in msmqwire.read_capture(path, batch_rows=BATCH_ROWS))


def decoder_and_writer(path: str, folder: Path) -> int:
    from pyarrow import parquet

    import msmqwire

    batches, rows = msmqwire.read_capture(path, batch_rows=BATCH_ROWS), 0
    with parquet.ParquetWriter(folder / "rows.parquet", batches.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def decoder_and_dataset(path: str, folder: Path) -> int:
    """Write the files of `BY_DESTINATION` as a user of pyarrow would."""
    import pyarrow as pa
    from pyarrow import dataset

    import msmqwire

    batches, rows = msmqwire.read_capture(path, batch_rows=BATCH_ROWS), 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    form = dataset.ParquetFileFormat()
    dataset.write_dataset(
        counted(),
        folder,
        schema=batches.schema,
        format=form,
        file_options=form.make_write_options(compression="zstd"),
        partitioning=dataset.partitioning(pa.schema([("destination", pa.string())]), flavor="hive"),
        use_threads=False,
    )
    return rows


def lake(path: str, folder: Path, *, by: Any = None) -> int:
    import msmqwire

    return msmqwire.write_lake(path, folder / "lake", by=by).rows


def spark_lake(spark: Any, path: str, folder: Path) -> int:
    import spark_udfs

    return spark_udfs.lake(spark, path, folder / "lake").rows


def session() -> Any:
    """Start Spark on one core."""
    import spark_udfs

    spark = spark_udfs.session("local[1]", config={"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measured(reader: Reader, path: Path, folder: Path, *, with_others: bool = False) -> Run:
    """Read a capture once.

    Args:
        reader: reads it.
        path: the path of the capture. folder: below which the reader may write.
        with_others: whether the processes that this one has started take part.
    """
    out = folder / "out"
    out.mkdir()
    others = sum(cpu_seconds().values()) if with_others else 0.0
    started, here = time.perf_counter(), time.process_time()
    try:
        rows = reader(str(path), out)
        here = time.process_time() - here
        cpu = here + (sum(cpu_seconds().values()) if with_others else 0.0) - others
        return Run(cpu, here, time.perf_counter() - started, rows)
    finally:
        shutil.rmtree(out)


def compare(readers: dict[str, Reader], path: Path, tiny: Path, folder: Path, runs: int) -> None:
    """Measure the readers in turn; print a line for each."""
    cheapest, fixed = dict[str, Run](), dict[str, Run]()
    for number in range(runs + 1):
        for name, reader in readers.items():
            # Spark ends workers that had nothing to do for a minute: the first run starts one.
            first = measured(reader, tiny, folder, with_others=name == SPARK)
            if not number and name == SPARK:
                print(f"{name}: the first run, of a tiny capture, takes {first.cpu:.2f} CPU s")
            for found, capture in ((fixed, tiny), (cheapest, path)):
                run = measured(reader, capture, folder, with_others=name == SPARK)
                if number:  # the first one compiles
                    found[name] = min(run, found.get(name, run))
    gigabytes = (path.stat().st_size - tiny.stat().st_size) / 1e9
    beyond = {name: (run.cpu - fixed[name].cpu) / gigabytes for name, run in cheapest.items()}
    heads = f"{'CPU s':>7} {'here':>7} {'elapsed':>8} {'fixed':>6} {'s a GB':>7} {'rate':>6} {'beyond':>7}"
    print(f"{'':<26} {heads}")
    for name, run in cheapest.items():
        ratio, marginal = cheapest[BASE].cpu / run.cpu, beyond[BASE] / beyond[name]
        verdict = f" {'reached' if ratio >= RATE_AIM else 'missed'}" if name.startswith("lake") else ""
        print(
            f"{name:<26} {run.cpu:>7.2f} {run.here:>7.2f} {run.elapsed:>8.2f} {fixed[name].cpu:>6.2f}"
            f" {beyond[name]:>7.2f} {ratio:>6.2f} {marginal:>7.2f}{verdict}"
        )
    ratio = cheapest[DATASET].cpu / cheapest[BY_DESTINATION].cpu
    print(f"{BY_DESTINATION}: {ratio:.2f} of the rate of {DATASET}")
    if len({run.rows for run in cheapest.values()}) > 1:
        print(f"rows differ: { ({name: run.rows for name, run in cheapest.items()}) }")


def compare_sizes(readers: dict[str, Reader], sizes: Sequence[float], folder: Path) -> None:
    """Measure readers over captures of these sizes in GB; print their CPU seconds for a GB.

    Raises:
        OSError: there is too little room on the disk for a capture and a lake of it.
    """
    warm_up = folder / "warm.pcap"
    write(warm_up, TINY_FRAMES)
    seconds: dict[str, list[float]] = {name: [] for name in readers}
    for size in sizes:
        path = folder / "sized.pcap"
        if shutil.disk_usage(folder).free < size * DISK_FACTOR * 1e9:
            raise OSError(
                f"{folder}: {size} GB of capture with their lake need {size * DISK_FACTOR:.0f} GB free"
            )
        gigabytes = write(path, round(size * 1e9 / FRAME_BYTES)).bytes / 1e9
        for name, reader in readers.items():
            measured(reader, warm_up, folder)  # starts a worker of Spark, if there is none
            run = measured(reader, path, folder, with_others=name == SPARK)
            seconds[name].append(run.cpu / gigabytes)
            print(f"{name:<24} {gigabytes:>5.2f} GB {run.cpu / gigabytes:>7.2f} CPU s per GB", flush=True)
        path.unlink()
    for name, per_gigabyte in seconds.items():
        apart = max(per_gigabyte) / min(per_gigabyte) - 1
        print(f"{name:<24} apart by {apart:.0%} {'reached' if apart <= FLAT_AIM else 'missed'}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Lakes beside the decoder and pyarrow's Parquet writer.")
    parser.add_argument("gigabytes", type=float, nargs="?", default=0.75)
    parser.add_argument("--no-spark", action="store_true", help="leave out Spark")
    parser.add_argument("--runs", type=int, default=3, help="runs of each, besides a first one")
    parser.add_argument("--sizes", default="", help="GB of more captures, separated by commas")
    parser.add_argument("--only-sizes", action="store_true", help="measure these alone")
    arguments = parser.parse_args()
    lakes: dict[str, Reader] = {
        "lake": lake,
        "lake by kind": partial(lake, by="kind"),
        BY_DESTINATION: partial(lake, by="destination"),
    }
    spark = None if arguments.no_spark else session()
    if spark is not None:
        lakes[SPARK] = partial(spark_lake, spark)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not arguments.only_sizes:
            path, tiny = folder / "mixed.pcap", folder / "tiny.pcap"
            write(tiny, TINY_FRAMES)
            made = write(path, round(arguments.gigabytes * 1e9 / FRAME_BYTES))
            print(f"{made.bytes / 1e9:.2f} GB, {made.frames:,} frames; the cheapest of {arguments.runs} runs")
            plain = {"decoder": decoder, BASE: decoder_and_writer, DATASET: decoder_and_dataset}
            compare({**plain, **lakes}, path, tiny, folder, arguments.runs)
            path.unlink()
        if arguments.sizes:
            compare_sizes(lakes, [float(size) for size in arguments.sizes.split(",")], folder)
    print(f"aims: {RATE_AIM:.0%} of the rate of the decoder with the writer; flat within {FLAT_AIM:.0%}")
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main()
