"""The queries that `spark` measures, in the process that runs Spark.

    python benchmarks/spark_queries.py CORES checked|unchecked SMALL CAPTURE...

Starts Spark with or without the checks of Arrow (`spark_udfs.session`). Prints a JSON object: the seconds of
the start and of the first queries over the small capture, for each reader (the data source, and
`spark_udfs.frame`) the fixed seconds of each query over it once all is warm, and for each capture and query
the fastest run; the seconds of `spark_udfs.packets` over the first capture; and the peak memory. Linux only:
/proc is read.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.processes import MemoryWatch, cpu_seconds

SPLIT: Final = 512 << 20
"""The default of the data source."""
FEW: Final = ("kind", "destination", "size", "body_size")
QUERIES: Final = ("aggregated", "all columns")
READERS: Final = ("source", "frame")


class Run(NamedTuple):
    """One run of a query.

    Attributes:
        seconds: elapsed.
        rows: counted; 0 when the query counts none.
        python: CPU seconds of the Python processes that Spark started.
        jvm: CPU seconds of the JVM.
    """

    seconds: float
    rows: int
    python: float
    jvm: float


def runs_over(path: Path) -> int:
    """Return how often to read a capture, for the fastest run: three times below 1 GB, once above 2 GB."""
    return max(1, min(3, round(2e9 / path.stat().st_size)))


def fastest(query: Callable[[str], int], path: str, runs: int = 1) -> Run:
    """Return the fastest of several runs of a query over a capture."""
    measured = []
    for _ in range(runs):
        before, start = cpu_seconds(), time.perf_counter()
        rows = query(path)
        seconds, after = time.perf_counter() - start, cpu_seconds()
        python, jvm = (after[kind] - before[kind] for kind in ("python", "java"))
        measured.append(Run(seconds, rows, python, jvm))
    return min(measured)


def measure(cores: int, arrow_checks: bool, small: str, paths: list[str]) -> dict[str, Any]:
    """Start Spark, run the queries and return the output of the module."""
    memory = MemoryWatch()
    memory.start()
    start = time.perf_counter()
    from pyspark.sql import functions as F

    import spark_udfs

    config = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": str(cores)}
    spark = spark_udfs.session(f"local[{cores}]", arrow_checks=arrow_checks, config=config)
    spark_udfs.register(spark)
    spark.sparkContext.setLogLevel("ERROR")

    def rows_of(reader: str, path: str, columns: Sequence[str] | None) -> Any:
        if reader == "frame":
            return spark_udfs.frame(spark, path, columns=columns, split_size=SPLIT)
        loading = spark.read.format("msmq").option("splitSize", str(SPLIT))
        return (loading if columns is None else loading.option("columns", ",".join(columns))).load(path)

    def aggregated(reader: str, path: str) -> int:
        rows = (
            rows_of(reader, path, FEW)
            .groupBy("kind", "destination")
            .agg(F.count("*").alias("packets"), F.sum("size"), F.sum("body_size"))
            .collect()
        )
        return sum(row["packets"] for row in rows)

    def all_columns(reader: str, path: str) -> int:
        rows_of(reader, path, None).write.format("noop").mode("overwrite").save()
        return 0

    def exact(path: str) -> int:
        rows = spark_udfs.packets(spark, path, columns=FEW).groupBy("kind").count().collect()
        return sum(row["count"] for row in rows)

    spark.range(1).count()
    start_up = time.perf_counter() - start
    queries = {name: [partial(query, name) for query in (aggregated, all_columns)] for name in READERS}
    result: dict[str, Any] = {
        "started": start_up,
        "first": sum(fastest(query, small).seconds for query in queries["source"]),
        "fixed": {name: [fastest(query, small, 3).seconds for query in queries[name]] for name in READERS},
        "runs": {name: [] for name in READERS},
    }
    for path in paths:
        for name in READERS:
            runs = [fastest(query, path, runs_over(Path(path))) for query in queries[name]]
            result["runs"][name].append(runs)
    result["exact"] = fastest(exact, paths[0])
    memory.stop()
    spark.stop()
    return {**result, "memory": memory.peak}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2] == "checked", sys.argv[3], sys.argv[4:])))
