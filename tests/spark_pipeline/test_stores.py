"""Captures in stores as DataFrames: S3 on a cluster, and streams without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import msmqwire
import spark_udfs
from spark_udfs.jobs import decode
from spark_udfs.source.data_source import partition_reader
from spark_udfs.source.options import BadOption, Options
from spark_udfs.source.schema import packet_schema, spark_schema
from spark_udfs.source.streaming import CaptureGone, MsmqStreamReader
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.s3_server import SECRET, S3Server, s3_server
from tests.support.paths import ROOT

SESSION = ROOT / "examples/session.pcap"
NAMES = ("file", "kind", "src_port", "label", "size")


def capture(connections: int = 2, messages: int = 20) -> list[c.Frame]:
    talks = []
    for number in range(connections):
        talk = c.TcpConversation((c.CLIENT, 50_000 + number), start_ns=c.START_NS + number * 1000)
        talk.handshake().send(h.establish_connection()).send(h.establish_connection(), by_client=False)
        for message in range(messages):
            header = h.properties_header(label=f"{number}/{message}", body=bytes(300))
            talk.send(h.user_message(properties=header))
        talks.append(talk.close().frames)
    return c.merged(*talks)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """A server with a capture in two files; packets cross the end of the first."""
    with s3_server() as server:
        frames = capture()
        server.put("caps/day/1.pcap", c.pcap_bytes(frames[:31], nanoseconds=True))
        server.put("caps/day/2.pcapng", c.pcapng_bytes(frames[31:]))
        yield server


def collected(table: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in table.collect()), key=repr)


def expected(s3: S3Server) -> list[tuple[Any, ...]]:
    table = msmqwire.read_capture("s3://caps/day", columns=NAMES, storage_options=s3.options)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def test_packets_segments_and_sessions_of_s3(spark: Any, s3: S3Server) -> None:
    reader = spark.read.format("msmq").option("storageOptions", json.dumps(s3.options))
    rows = expected(s3)
    assert len(rows) == 44
    for path, split in (("s3://caps/day", "0"), ("s3://caps/*/?.pcap*", "3k")):
        table = reader.options(splitSize=split, columns=",".join(NAMES)).load(path)
        assert collected(table) == rows
    plan = table._jdf.queryExecution().toString() + table._jdf.queryExecution().stringWithStats()
    assert SECRET not in plan
    reader = spark.read.format("msmq").option("storageOptions", json.dumps(s3.options))
    assert reader.option("read", "sessions").load("s3://caps/day").count() == 2
    frame = spark_udfs.frame(spark, "s3://caps/day", columns=NAMES, storage_options=s3.options)
    assert collected(frame) == rows
    packets = spark_udfs.packets(spark, "s3://caps/day", columns=NAMES, storage_options=s3.options)
    assert collected(packets) == rows


def test_a_store_error_on_the_cluster_hides_credentials(spark: Any, s3: S3Server) -> None:
    reader = spark.read.format("msmq").option("storageOptions", json.dumps(s3.options))
    with pytest.raises(Exception, match=r"no such bucket: 's3://nowhere/a\.pcap'") as caught:
        reader.load("s3://nowhere/a.pcap").count()
    assert SECRET not in str(caught.value)


def test_a_job_reads_urls(
    spark: Any, s3: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "table")
    status = decode.main(["s3://caps/day", "--out", out, "--columns", ",".join(NAMES), *s3.option_arguments])
    assert status == 0
    assert collected(spark.read.parquet(out).select(*NAMES)) == expected(s3)
    capsys.readouterr()
    assert decode.main(["s3://nowhere/*", "--out", out, *s3.option_arguments]) == 66
    assert decode.main(["zz://nowhere/*", "--out", out]) == 2
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert "no such bucket" in first["error"]
    assert "unknown scheme" in second["error"]


def test_options_of_stores() -> None:
    options = Options.parse({"path": "s3://a/b,/c", "storageOptions": '{"secret_key": "hidden"}'})
    assert (options.sources, options.storage_options) == (("s3://a/b", "/c"), {"secret_key": "hidden"})
    assert "hidden" not in repr(options)
    for value in ("hidden", '["hidden"]'):
        with pytest.raises(BadOption, match="storageOptions: not a JSON object") as caught:
            Options.parse({"path": "s3://a", "storageOptions": value})
        assert "hidden" not in str(caught.value)


def test_a_stream_of_files_that_are_replaced_by_longer_ones() -> None:
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    data = c.pcap_bytes(capture())
    options = Options(("memory:///rotating",), split_size=4000)
    stream = MsmqStreamReader(
        options, partition_reader(options, spark_schema(packet_schema(on_request=False)))
    )
    offset, kinds = stream.latestOffset(stream.initialOffset()), list[str]()  # no file is there as yet
    memory.pipe_file("/rotating/1.pcap", data[: len(data) // 2])
    for content in (None, data, None):
        if content is not None:
            memory.pipe_file("/rotating/1.pcap", content)
        end = stream.latestOffset(offset)
        for part in stream.partitions(offset, end):
            for batch in stream.read(part):
                kinds += batch.column("kind").to_pylist()
        offset = end
    assert sorted(kinds) == sorted(["EstablishConnection"] * 4 + ["UserMessage"] * 40)
    assert offset["files"]["memory:///rotating/1.pcap"]["end"] == len(data)
    memory.rm("/rotating/1.pcap")
    with pytest.raises(CaptureGone, match="has disappeared"):
        stream.latestOffset(offset)
