"""Lakes written by Spark's tasks, and read by Spark, on a cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, Field
from deltalake.transaction import AddAction, RemoveAction

import msmqwire
import spark_udfs
from msmqwire.errors import LakeError, LakeMismatch, LakeMissing, UnsupportedStore
from msmqwire.tables.lake.part_writer import PartWriter
from msmqwire.tables.lake.place import LocalPlace
from spark_udfs import lakes
from spark_udfs.lake_files import hadoop_options
from tests.spark_pipeline.conftest import settings
from tests.support import captures as c
from tests.support.capture.lakes import (
    DAY_NS,
    all_files,
    delta_rows,
    expected_rows,
    files_of,
    grown,
    named_rows,
    rows_of,
    state_of,
    traffic,
    write_capture,
)
from tests.support.capture.s3_server import s3_server
from tests.support.nightly import nightly
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.running import until

SPLIT = 4000
QUEUE = "DIRECT=TCP:2024-01-01"
QUEUES = [r"OS:a\b", "TCP:1.2.3.4\\q;?*=%~", "TCP:1.2.3.4\\\u0416", QUEUE.removeprefix("DIRECT=")]


def spark_rows(spark: Any, lake: Path) -> Counter[str]:
    """The rows that Spark finds in a lake."""
    return rows_of(spark_udfs.read_lake(spark, lake).toArrow())


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three captures of two days, with several queues."""
    folder = tmp_path_factory.mktemp("captures")
    return [
        write_capture(
            folder / f"{number}.pcap",
            traffic(
                8,
                port=50_000 + number,
                start_ns=c.START_NS + number // 2 * DAY_NS,
                queues=QUEUES,
                disordered=True,
            ),
        )
        for number in range(3)
    ]


@pytest.mark.parametrize(("by", "splits"), [(None, "walked"), ("kind", "searched"), ("destination", "exact")])
def test_the_lake_of_write_lake(
    spark: Any, captures: list[Path], tmp_path: Path, by: Any, splits: Any
) -> None:
    lake, other = tmp_path / "lake", tmp_path / "other"
    options: dict[str, Any] = {"by": by, "splits": splits, "split_size": SPLIT, "overlap": 1 << 20}
    done = spark_udfs.lake(spark, captures, lake, **options)
    assert done == msmqwire.write_lake(captures, other, **options)
    assert (done.captures_read, done.rows) == (3, sum(expected_rows(captures).values()))
    contents = named_rows(lake)
    assert contents == named_rows(other) == spark_rows(spark, lake) == delta_rows(lake)
    if splits != "exact":  # which have other numbers of streams
        assert contents == expected_rows(captures)
    files = files_of(lake)
    named = {file.path for file in files}
    assert named == {path for path in all_files(lake) if path.endswith(".parquet")}
    attempts = {Path(path).name.rpartition("-")[0] for path in named}
    numbers = {part.number for part in state_of(lake).parts}
    assert len(attempts) == len(numbers) >= 3
    table = spark_udfs.read_lake(spark, lake)
    assert {row.part for row in table.select("part").distinct().collect()} == numbers


def test_a_second_run_reads_what_is_new(spark: Any, tmp_path: Path) -> None:
    """A run by Spark goes on with a lake of `write_lake`, and the other way."""
    growth = grown(tmp_path, SPLIT)
    shutil.copytree(growth.lake, tmp_path / "other")
    done = spark_udfs.lake(spark, growth.captures, growth.lake, split_size=SPLIT)
    assert done == msmqwire.write_lake(growth.captures, tmp_path / "other", split_size=SPLIT)
    assert (done.captures_read, done.captures_unchanged) == (3, 0)  # the second one was the last
    growth.check_complete(growth.lake)
    assert spark_rows(spark, growth.lake) == growth.new
    for again in (
        spark_udfs.lake(spark, growth.captures, growth.lake, split_size=SPLIT),
        msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT),
    ):
        assert (again.number, again.captures_read, again.rows) == (done.number, 0, 0)
    growth.check_complete(growth.lake)


def test_spark_reads_only_the_needed_files_and_row_groups(
    spark: Any, captures: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "a [lake] {of} 100*?"
    msmqwire.write_lake(captures, lake, by="destination")
    queue = "DIRECT=TCP:1.2.3.4\\\u0416"
    table = spark_udfs.read_lake(spark, lake)
    names = ["time_ns", "label", "queue", "destination"]
    expected = msmqwire.read_lake(lake).to_table(names, filter=ds.field("queue") == queue).to_pylist()
    found = table.where(table.queue == queue).select(*names)
    assert sorted(map(tuple, found.collect())) == sorted(tuple(row.values()) for row in expected)
    assert len(expected) == 6
    chosen = table.where(f"date = '2023-11-14' and queue = '{QUEUE}' and size > 5 and time > '2020-01-01'")
    chosen = chosen.select("time", "label")
    capsys.readouterr()
    chosen.explain("formatted")
    plan = capsys.readouterr().out
    assert "Batched: true" in plan
    partition, pushed = (
        re.findall(rf"{name}: \[(.*)\]", plan)[0] for name in ("PartitionFilters", "PushedFilters")
    )
    assert "2023-11-14" in partition
    assert QUEUE in partition
    assert "GreaterThan(size,5)" in pushed
    assert "GreaterThan(time," in pushed
    count = chosen.count()
    keys = {"date": "2023-11-14", "queue": QUEUE}
    files = files_of(lake)
    needed = [file for file in files if file.keys == keys]
    assert count == sum(file.rows or 0 for file in needed) > 0
    for file in files:
        if file not in needed:
            (lake / file.path).write_bytes(b"not opened")
    assert chosen.count() == count


def test_keys_and_columns_are_those_of_read_lake(spark: Any, captures: list[Path], tmp_path: Path) -> None:
    """Keys that are escaped, cut, or null; columns that came later; an earlier version."""
    lake = tmp_path / "lake"
    long = write_capture(tmp_path / "long.pcap", traffic(2, port=50_009, queues=["TCP:" + "\u00fc" * 90]))
    msmqwire.write_lake([*captures, long], lake, by="destination", split_size=SPLIT)
    table = DeltaTable(str(lake))
    table.alter.add_columns([Field("site", "string"), Field("ratio", "double")])
    names = ["time", "time_ns", "label", "part", "date", "queue", "destination"]

    def rows(found: pa.Table) -> list[str]:
        return sorted(str(row) for row in found.select(names).to_pylist())

    expected = rows(msmqwire.read_lake(lake).to_table())
    found = spark_udfs.read_lake(spark, lake).toArrow()
    assert rows(found) == expected
    assert found["site"].null_count == found["ratio"].null_count == found.num_rows == len(expected)
    keys = set(found["queue"].to_pylist())
    assert {None, QUEUE, *(f"DIRECT={queue}" for queue in QUEUES)} < keys
    assert any(key and "~" in key and len(key) < 60 for key in keys)
    assert found.schema.names == msmqwire.read_lake(lake).schema.names
    old = spark_udfs.read_lake(spark, lake, 0)
    assert rows(old.toArrow()) == expected
    assert "site" not in old.columns
    with pytest.raises(LakeMissing, match="99"):
        spark_udfs.read_lake(spark, lake, version=99)


def test_a_file_elsewhere_has_the_keys_of_the_log(spark: Any, captures: list[Path], tmp_path: Path) -> None:
    """As another program may write them: no reader of paths would find the keys."""
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures, lake, by="kind")
    before = spark_rows(spark, lake)
    moved = files_of(lake)[0]
    os.replace(lake / moved.path, lake / "elsewhere.parquet")
    table = DeltaTable(str(lake))
    add = AddAction("elsewhere.parquet", moved.size, moved.keys, 0, True, "{}")
    remove = RemoveAction(moved.path, True, 0, moved.size, moved.keys)
    table.create_write_transaction([add, remove], "append", table.schema(), ["date", "kind"])
    assert spark_rows(spark, lake) == named_rows(lake) == before


def test_a_lake_without_rows(spark: Any, captures: list[Path], tmp_path: Path) -> None:
    nothing = write_capture(tmp_path / "nothing.pcap", [])
    assert spark_udfs.lake(spark, nothing, tmp_path / "lake", by="kind").rows == 0
    msmqwire.write_lake(captures, tmp_path / "other", by="kind")
    table = spark_udfs.read_lake(spark, tmp_path / "lake")
    assert table.collect() == []
    assert table.schema == spark_udfs.read_lake(spark, tmp_path / "other").schema
    assert table.columns[-2:] == ["date", "kind"]


def test_refusals(spark: Any, captures: list[Path], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with pytest.raises(LakeMissing, match="no lake"):
        spark_udfs.read_lake(spark, tmp_path)
    with pytest.raises(UnsupportedStore, match="in a local folder, or in s3://"):
        spark_udfs.lake(spark, captures, "hdfs://host/lake")
    with pytest.raises(UnsupportedStore, match="local folders and s3://"):
        spark_udfs.read_lake(spark, "gs://bucket/lake")
    with pytest.raises(FileNotFoundError):
        spark_udfs.lake(spark, tmp_path / "none.pcap", lake)
    msmqwire.write_lake(captures[0], lake, columns=["time", "kind"])
    with pytest.raises(LakeMismatch, match="begun with columns"):
        spark_udfs.lake(spark, captures, lake, columns=["time"])
    with pytest.raises(LakeMismatch, match="is not a lake"):
        spark_udfs.lake(spark, captures, captures[0].parent)


def test_a_lake_in_a_store(spark: Any, captures: list[Path]) -> None:
    """Tasks write to it themselves; no client of Hadoop is there to read it by Spark."""
    with s3_server() as server:
        server.filesystem().create_dir("lakes")
        url, options = "s3://lakes/a b", server.options
        for files in (captures[:1], captures):
            done = spark_udfs.lake(spark, files, url, by="kind", split_size=SPLIT, storage_options=options)
        assert done.captures_read > 1
        rows = rows_of(msmqwire.read_lake(url, storage_options=options).to_table())
        assert rows == expected_rows(captures)
        with pytest.raises(UnsupportedStore, match=r"jar org\.apache\.hadoop:hadoop-aws:[0-9.]+ to read it"):
            spark_udfs.read_lake(spark, url, storage_options=options)


def test_options_of_stores_have_names_of_hadoop() -> None:
    options = {"access_key": "a", "secret_key": "b", "endpoint_override": "localhost:9", "scheme": "http"}
    assert hadoop_options(options) == {
        "fs.s3a.access.key": "a",
        "fs.s3a.secret.key": "b",
        "fs.s3a.endpoint": "localhost:9",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
    }
    others = hadoop_options({"force_virtual_addressing": True, "anonymous": True, "connect_timeout": 5})
    assert others["fs.s3a.path.style.access"] == "false"
    assert others["fs.s3a.aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")
    assert others["fs.s3a.connection.establish.timeout"] == "5s"


def test_executors_with_another_folder(
    spark: Any, captures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task fails where the folder of the run is not there; the driver refuses files that are not whole."""
    lake, elsewhere = tmp_path / "lake", LocalPlace(tmp_path / "elsewhere")
    msmqwire.write_lake(captures[0], lake)
    before, files, write = named_rows(lake), all_files(lake), lakes._write

    def written_elsewhere(writer: PartWriter, numbered: Any) -> Any:
        return write(replace(writer, place=elsewhere), numbered)

    def cut_short(writer: PartWriter, numbered: Any) -> Any:
        number, written = write(writer, numbered)
        os.truncate(writer.place.full(written.files[0].path), 9)
        return number, written

    monkeypatch.setattr(lakes, "_write", written_elsewhere)
    with pytest.raises(Exception, match="the driver has prepared this folder, which is not here"):
        spark_udfs.lake(spark, captures, lake)
    elsewhere.prepare()  # a mount of another file system there
    with pytest.raises(LakeError, match="is not here, or not whole"):
        spark_udfs.lake(spark, captures, lake)
    monkeypatch.setattr(lakes, "_write", cut_short)
    with pytest.raises(LakeError, match="is not here, or not whole"):
        spark_udfs.lake(spark, captures, lake)
    assert named_rows(lake) == delta_rows(lake) == before
    assert all_files(lake) == files


PROGRAM = """
import json, os, signal, sys, threading, time
from pathlib import Path

import spark_udfs
from msmqwire.tables.lake import table
from pyspark import TaskContext
from pyspark.sql import SparkSession
from spark_udfs import lakes
from tests.support.patience import limit
from tests.support.running import until

config, when, marks, lake, *captures = sys.argv[1:]
write = lakes._write

def wait_for(mark):
    deadline = time.monotonic() + limit(100)
    while not Path(marks, mark).exists() and time.monotonic() < deadline:
        time.sleep(0.05)

def faulty(writer, numbered):
    number, attempt = numbered[0], TaskContext.get().attemptNumber()
    written = write(writer, numbered)
    Path(marks, f"{number}-{attempt}").touch()
    if when == "while tasks run":
        wait_for("never")
    elif (number, attempt) == (0, 0):
        raise OSError(28, "No space left on device")
    elif (number, attempt) == (1, 0):
        wait_for("1-1")
    return written

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

lakes._write = faulty
if when == "before the commit":
    table.LakeTable.commit = killed
elif when == "after the commit":
    table.LakeTable.checkpoint = killed
    table._CHECKPOINT_COMMITS = 1
else:
    threading.Thread(target=lambda: (wait_for("0-0"), killed()), daemon=True).start()
spark = SparkSession.builder.config(map=json.loads(config)).getOrCreate()
spark_udfs.lake(spark, captures, lake, split_size=4000)
"""


@pytest.mark.parametrize(
    "when",
    [
        pytest.param("while tasks run", marks=nightly),
        "before the commit",
        pytest.param("after the commit", marks=nightly),
    ],
)
def test_a_driver_that_is_killed(spark: Any, cluster: Any, tmp_path: Path, when: str) -> None:
    """Before the commit, or after it. Then a task has failed too, and two attempts at another have ended."""
    growth, marks = grown(tmp_path, SPLIT), tmp_path / "marks"
    marks.mkdir()
    config = settings(cluster) | {
        "spark.task.maxFailures": "4",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(config), when, marks, growth.lake, *growth.captures],
        capture_output=True, text=True, timeout=limit(300), check=False, stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    growth.check_readers(growth.lake)
    found = growth.new if when == "after the commit" else growth.old
    assert spark_rows(spark, growth.lake) == named_rows(growth.lake) == delta_rows(growth.lake) == found
    if when != "while tasks run":
        assert {"0-0", "0-1", "1-0", "1-1"} <= {path.name for path in marks.iterdir()}
    spark_udfs.lake(spark, growth.captures, growth.lake, split_size=SPLIT)
    growth.check_complete(growth.lake)
    assert spark_rows(spark, growth.lake) == growth.new


SECOND = """
import json, sys
import spark_udfs
from pyspark.sql import SparkSession
from spark_udfs import lakes
from tests.spark_pipeline.test_lakes import meeting

config, marks, lake, *captures = sys.argv[1:]
lakes.check_shared = meeting(marks, "second", "first")
spark = SparkSession.builder.config(map=json.loads(config)).getOrCreate()
print(spark_udfs.lake(spark, captures, lake, by="kind", split_size=4000).version)
"""


def meeting(marks: str | Path, mine: str, other: str) -> Any:
    """A check of files after which two drivers commit at the same time."""
    check = lakes.check_shared

    def checked(*arguments: Any) -> None:
        check(*arguments)
        Path(marks, mine).touch()
        until(Path(marks, other).exists, "the other driver has written too")

    return checked


@nightly
def test_two_drivers_at_once(
    spark: Any, cluster: Any, captures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are about to commit: the one that comes later plans again, and both have their rows there."""
    lake, marks = tmp_path / "lake", tmp_path / "marks"
    marks.mkdir()
    more = [
        write_capture(tmp_path / f"more-{number}.pcap", traffic(5, port=51_000 + number, queues=QUEUES))
        for number in range(2)
    ]
    monkeypatch.setattr(lakes, "check_shared", meeting(marks, "first", "second"))
    command = [sys.executable, "-c", SECOND, json.dumps(settings(cluster)), marks, lake, *more]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, env=environment,
    ) as second:  # fmt: skip
        try:
            first = spark_udfs.lake(spark, captures, lake, by="kind", split_size=SPLIT)
            output, errors = second.communicate(timeout=limit(300))
        finally:
            second.kill()
    assert second.returncode == 0, errors
    assert {first.version, int(output)} == {0, 1}
    assert named_rows(lake) == spark_rows(spark, lake) == expected_rows([*captures, *more])
