"""Streams of Spark into lakes: each micro-batch once, whenever the driver is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import functions as F

import msmqwire
import spark_udfs
from msmqwire.errors import InvalidArgument, LakeError, LakeMismatch
from msmqwire.tables.lake import compact_lake
from spark_udfs import lake_streams
from spark_udfs.source.options import BadOption
from tests.spark_pipeline.test_streaming import capture
from tests.support import captures as c
from tests.support.capture.lakes import all_files, files_of, traffic, write_capture
from tests.support.nightly import nightly
from tests.support.paths import ROOT
from tests.support.patience import limit

NAMES = ["time_ns", "kind", "src_port", "label", "size", "body", "destination"]
SECONDS = limit(120)


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(str(row) for row in table.select(NAMES).to_pylist())


def expected(paths: list[Path]) -> Counter[str]:
    """The rows of captures; Spark's times have microseconds."""
    table = msmqwire.read_capture([str(path) for path in paths])
    micros = table["time"].cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
    return rows_of(table.append_column("time_ns", pa.array([time * 1000 for time in micros.to_pylist()])))


def check(spark: Any, lake: Path, rows: Counter[str]) -> None:
    """All readers find these rows, and those of each file are sorted."""
    assert rows_of(msmqwire.read_lake(lake).to_table()) == rows
    assert rows_of(polars.read_delta(str(lake)).to_arrow()) == rows
    if spark is not None:
        assert rows_of(spark_udfs.read_lake(spark, lake).toArrow()) == rows
    for file in files_of(lake):
        times = parquet.read_table(lake / file.path, columns=["time_ns"], partitioning=None)
        assert times["time_ns"].to_pylist() == sorted(times["time_ns"].to_pylist())


def test_a_query_on_the_cluster(spark: Any, tmp_path: Path) -> None:
    source, lake = tmp_path / "in", tmp_path / "lake"
    source.mkdir()
    data = c.pcapng_bytes(capture())

    def run() -> None:
        stream = spark.readStream.format("msmq").option("splitSize", "8k").load(str(source))
        query = (
            stream.writeStream.foreachBatch(spark_udfs.lake_batches(lake, by="kind"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(SECONDS)

    (source / "1.pcapng").write_bytes(data[: len(data) // 2])
    run()
    (source / "1.pcapng").write_bytes(data)
    run()
    check(spark, lake, expected([source / "1.pcapng"]))
    parts = {row.part for row in spark_udfs.read_lake(spark, lake).select("part").distinct().collect()}
    assert len(parts) > 2  # tasks that have written rows
    files, commits = all_files(lake), tmp_path / "checkpoint" / "commits"
    for path in commits.iterdir():
        path.unlink()  # as a driver that is killed before it notes the last batch
    run()
    assert all_files(lake) == files
    compact_lake(lake)
    check(spark, lake, expected([source / "1.pcapng"]))


@pytest.fixture
def query(spark: Any) -> Any:
    """As in a query: the session knows its id."""
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "a query")
    yield
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)


def test_what_no_lake_is_made_of(spark: Any, tmp_path: Path, query: Any) -> None:
    path = write_capture(tmp_path / "a.pcap", traffic(3))
    rows = spark.read.format("msmq").load(str(path))
    lake = spark_udfs.lake_batches(tmp_path / "lake", by="destination")
    with pytest.raises(InvalidArgument, match="key of partitions"):
        spark_udfs.lake_batches(tmp_path / "lake", by="queue")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="'site' is not a column of captures"):
        lake(rows.withColumn("site", F.lit("a")), 0)
    with pytest.raises(InvalidArgument, match="has no destination, by which the lake is divided"):
        lake(rows.drop("destination"), 0)
    with pytest.raises(BadOption, match="column src_port is of type int, not string"):
        lake(rows.withColumn("src_port", F.lit("1")), 0)
    assert not (tmp_path / "lake").exists()
    lake(rows.select("time", "label", "destination"), 0)
    lake(rows, 0)
    assert msmqwire.read_lake(tmp_path / "lake").count_rows() == rows.count() == 5
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)
    with pytest.raises(InvalidArgument, match="it is for foreachBatch of a stream"):
        lake(rows, 1)
    with pytest.raises(LakeMismatch, match="a stream fills the lake"):
        spark_udfs.lake(spark, path, tmp_path / "lake", by="destination")


def test_files_that_the_driver_does_not_see(
    spark: Any, tmp_path: Path, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.read.format("msmq").load(str(write_capture(tmp_path / "a.pcap", traffic(3))))
    lake = spark_udfs.lake_batches(tmp_path / "lake")
    lake(rows, 0)
    files, check_shared = all_files(tmp_path / "lake"), lake_streams.check_shared

    def cut_short(place: Any, written: Any) -> None:
        os.truncate(place.full(written[0].path), 9)
        check_shared(place, written)

    monkeypatch.setattr(lake_streams, "check_shared", cut_short)
    with pytest.raises(LakeError, match="is not here, or not whole"):
        lake(rows, 1)
    assert all_files(tmp_path / "lake") == files


DRIVER = """
import os, random, signal, sys, threading, time
import spark_udfs
from deltalake import DeltaTable, transaction
from msmqwire.tables.lake import table
from pyspark.sql import SparkSession
from spark_udfs import lake_streams

source, lake, checkpoint, step, first = sys.argv[1:]
running = -1

def killed(*_, **__):
    if running >= int(first):
        os.killpg(0, signal.SIGKILL)

def before(owner, name):
    function = getattr(owner, name)
    setattr(owner, name, lambda *a, **k: (killed(), function(*a, **k))[1])

write = spark_udfs.lake_batches(lake, by="kind")

def batches(rows, number):
    global running
    running = number
    write(rows, number)
    if step == "returned":
        killed()

if step == "written":
    before(lake_streams, "check_shared")
elif step == "state":
    before(DeltaTable, "create_write_transaction")
    before(transaction, "create_table_with_add_actions")
elif step == "checkpoint":
    table._CHECKPOINT_COMMITS = 1
    before(table.LakeTable, "checkpoint")
elif step.startswith("random"):
    def later():
        time.sleep(random.Random(step).uniform(0, 4))
        os.killpg(0, signal.SIGKILL)
    start = batches
    def batches(rows, number):
        threading.Thread(target=later, daemon=True).start()
        start(rows, number)
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
spark_udfs.register(spark)
stream = spark.readStream.format("msmq").option("splitSize", "6k").load(source)
query = stream.writeStream.foreachBatch(batches).option("checkpointLocation", checkpoint)
query = query.start()
query.processAllAvailable()
query.stop()
"""


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(["written", "checkpoint"], marks=nightly),
        pytest.param(["state", "written", "returned", "checkpoint", "state", "returned"], marks=nightly),
        pytest.param([f"random {number}" for number in range(20)], marks=nightly),
    ],
    ids=["two", "each", "random"],
)
def test_a_driver_that_is_killed(tmp_path: Path, steps: list[str]) -> None:
    """Batches that were not noted come again; those that were committed are there once."""
    source, lake = tmp_path / "in", tmp_path / "lake"
    source.mkdir()
    frames = capture(3, 30)
    size = -(-len(frames) // (len(steps) + 1))
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip

    def run(step: str, first: int) -> subprocess.CompletedProcess[str]:
        arguments = [str(source), str(lake), str(tmp_path / "checkpoint"), step, str(first)]
        return subprocess.run(
            [sys.executable, "-c", DRIVER, *arguments],
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, start_new_session=True, timeout=limit(300),
        )  # fmt: skip

    for number, step in enumerate(steps):
        write_capture(source / f"{number:03}.cap", frames[number * size : (number + 1) * size])
        ran = run(step, number)
        assert ran.returncode in ((-signal.SIGKILL, 0) if "random" in step else (-signal.SIGKILL,)), (
            ran.stderr
        )
    write_capture(source / "999.cap", frames[len(steps) * size :])
    ran = run("none", 0)
    assert ran.returncode == 0, ran.stderr
    check(None, lake, expected(sorted(source.iterdir())))
