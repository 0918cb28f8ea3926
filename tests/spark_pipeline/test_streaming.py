"""Structured Streaming of captures that grow and rotate."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import msmqwire
from spark_udfs.source.options import Options
from spark_udfs.source.packet_reader import PacketReader
from spark_udfs.source.schema import arrow_fields, packet_schema, spark_schema
from spark_udfs.source.streaming import CaptureGone, MsmqStreamReader
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.nightly import nightly
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.running import until

NAMES = ("kind", "src_port", "label", "size", "body")
SECONDS = limit(120)


def capture(sessions: int = 3, messages: int = 30) -> list[c.Frame]:
    """Sessions that end properly, so that nothing remains for the end of the capture."""
    talks = []
    for number in range(sessions):
        talk = c.TcpConversation((c.CLIENT, 50_000 + number), start_ns=c.START_NS + number * 70_000, mss=400)
        talk.handshake().send(h.establish_connection()).send(h.establish_connection(), by_client=False)
        for message in range(messages):
            properties = h.properties_header(label=f"{number}/{message}", body=bytes(100 + message))
            talk.send(h.user_message(properties=properties))
        talks.append(talk.close().frames)
    return c.disorder(c.merged(*talks), random.Random(5), reorder=0.05)


def expected(paths: list[Path]) -> list[tuple[Any, ...]]:
    table = msmqwire.read_capture([str(path) for path in paths], columns=NAMES)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def reader(folder: Path, **options: str) -> MsmqStreamReader:
    schema = spark_schema(packet_schema())
    rows = PacketReader(Options((str(folder),)), tuple(packet_schema().names), arrow_fields(schema))
    return MsmqStreamReader(Options.parse({"path": str(folder), **options}), rows)


def batch(stream: MsmqStreamReader, start: Any, end: Any) -> list[tuple[Any, ...]]:
    return [
        tuple(row[name] for name in NAMES)
        for partition in stream.partitions(start, end)
        for rows in stream.read(partition)
        for row in rows.to_pylist()
    ]


@pytest.mark.parametrize("split", ["0", "5k"])
@pytest.mark.parametrize("seed", range(4))
def test_batches_at_any_time(tmp_path: Path, seed: int, split: str) -> None:
    """However much has been written when a batch is planned, and however often the query is restarted."""
    rng = random.Random(seed)
    frames = capture()
    cut = sorted(rng.sample(range(len(frames)), 2))
    groups = [frames[: cut[0]], frames[cut[0] : cut[1]], frames[cut[1] :]]
    contents = [rng.choice([c.pcap_bytes, c.pcapng_bytes])(group) for group in groups]
    stream = reader(tmp_path, splitSize=split)
    offset, rows = stream.initialOffset(), list[tuple[Any, ...]]()
    for number, data in enumerate(contents):
        at = 0
        while at < len(data):
            size = rng.randrange(1, 20_000)
            with (tmp_path / f"{number}.cap").open("ab") as file:
                file.write(data[at : at + size])
            at += size
            end = stream.latestOffset(offset)
            if rng.random() < 0.3:
                stream = reader(tmp_path, splitSize=split)  # the driver was killed
            rows += batch(stream, offset, end)
            offset = end
    assert sorted(rows, key=repr) == expected(sorted(tmp_path.iterdir()))
    assert stream.latestOffset(offset) == offset
    assert [entry["complete"] for entry in offset["files"].values()] == [True, True, False]


def test_a_file_that_disappears(tmp_path: Path) -> None:
    data = c.pcap_bytes(capture(1))
    for name in ("1.cap", "2.cap"):
        (tmp_path / name).write_bytes(data)
    stream = reader(tmp_path)
    start = stream.latestOffset(stream.initialOffset())
    assert [entry["end"] for entry in start["files"].values()] == [len(data)] * 2
    (tmp_path / "1.cap").unlink()
    later = stream.latestOffset(start)  # it had been read, and the writer had moved on
    assert list(later["files"]) == [str(tmp_path / "2.cap")]
    (tmp_path / "2.cap").write_bytes(data[:-1])
    with pytest.raises(CaptureGone, match=r"2\.cap has become shorter"):
        stream.latestOffset(later)
    (tmp_path / "2.cap").unlink()
    with pytest.raises(CaptureGone, match=r"2\.cap has disappeared"):
        stream.latestOffset(later)
    with pytest.raises(CaptureGone, match=r"2\.cap has disappeared"):
        stream.partitions(stream.initialOffset(), later)


@pytest.mark.filterwarnings("ignore::msmqwire.tables.CaptureWarning")
def test_a_truncated_file_and_a_damaged_file_are_reported_once(tmp_path: Path) -> None:
    data = c.pcap_bytes(capture(1))
    (tmp_path / "1.cap").write_bytes(data[:-3])
    stream = reader(tmp_path)
    first = stream.latestOffset(stream.initialOffset())
    assert batch(stream, stream.initialOffset(), first)
    (tmp_path / "2.cap").write_bytes(b"nothing of the kind")
    second = stream.latestOffset(first)
    assert [row[0] for row in batch(stream, first, second)] == ["Skipped", "Skipped"]
    assert batch(stream, second, stream.latestOffset(second)) == []


def test_a_query_on_the_cluster(spark: Any, tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    data = c.pcapng_bytes(capture())
    (source / "1.pcapng").write_bytes(data[: len(data) // 2])

    def run() -> None:
        stream = spark.readStream.format("msmq").option("splitSize", "8k").load(str(source))
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(sink))
        )
        assert query.awaitTermination(SECONDS)

    run()
    (source / "1.pcapng").write_bytes(data)
    run()
    rows = spark.read.parquet(str(sink)).select(*NAMES).collect()
    assert sorted((tuple(row) for row in rows), key=repr) == expected([source / "1.pcapng"])


DRIVER = """
import sys
import spark_udfs
from pyspark.sql import SparkSession
source, sink, checkpoint, end = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
spark_udfs.register(spark)
stream = spark.readStream.format("msmq").option("columns", "kind,src_port,label,size,body").load(source)
query = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(sink)
print("started", flush=True)
if end == "end":
    query.processAllAvailable()
    query.stop()
else:
    query.awaitTermination()
"""


@nightly
def test_a_driver_that_is_killed_and_started_again(tmp_path: Path) -> None:
    """Every packet is once in the Parquet files, whenever the driver is killed."""
    rng = random.Random(3)
    source = tmp_path / "in"
    source.mkdir()
    frames = capture(4, 60)
    third = len(frames) // 3
    contents = [
        c.pcap_bytes(frames[:third]),
        c.pcapng_bytes(frames[third : 2 * third]),
        c.pcap_bytes(frames[2 * third :], nanoseconds=True),
    ]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    arguments = [str(source), str(tmp_path / "out"), str(tmp_path / "checkpoint")]

    def start(end: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, *arguments, end],
            env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )  # fmt: skip

    commits = tmp_path / "checkpoint" / "commits"
    for number, data in enumerate(contents[:-1]):
        driver = start("killed")
        try:
            before = len(list(commits.glob("[0-9]*")))
            with (source / f"{number}.cap").open("ab", buffering=0) as file:
                file.write(data[: len(data) // 3])
                until(lambda: len(list(commits.glob("[0-9]*"))) > before, "a batch is committed")  # noqa: B023
                at, stop = len(data) // 3, time.monotonic() + rng.uniform(0, 2)
                while at < len(data):
                    file.write(data[at : (at := at + rng.randrange(1, 6_000))])
                    time.sleep(0.02)  # the file grows while batches are made of it
            time.sleep(max(0, stop - time.monotonic()))  # the moment of the kill, at random
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert len(list(commits.glob("[0-9]*"))) >= 2
    (source / "2.cap").write_bytes(contents[-1])
    last = start("end")
    assert last.wait(SECONDS) == 0
    committed = committed_files(tmp_path / "out")
    table = ds.dataset(committed, format="parquet").to_table(columns=list(NAMES))
    rows = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)
    assert rows == expected(sorted(source.iterdir()))


def committed_files(sink: Path) -> list[str]:
    """The files named in the log of the sink: killed drivers leave others behind."""
    log = sink / "_spark_metadata"
    names = set()
    for entry in log.iterdir():
        if entry.name[0].isdigit():
            lines = entry.read_text().splitlines()[1:]
            names |= {json.loads(line)["path"].removeprefix("file://") for line in lines}
    return sorted(names)
