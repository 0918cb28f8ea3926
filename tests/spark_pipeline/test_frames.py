"""`spark_udfs.frame` on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import spark_udfs
from msmqwire.tables.scanning import row_buffer
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.protected_captures import PROTECTED, given
from tests.support.capture.spark_rows import collected, expected
from tests.support.capture_files import Frame

NAMES = ("kind", "src_port", "dst_port", "label", "size", "body", "error")


@pytest.mark.parametrize("split", ["0", "4k", "128m"])
def test_the_rows_of_the_data_source_part_by_part(spark: Any, folder: Path, split: str) -> None:
    from pyspark.sql import functions as F

    reader = spark.read.format("msmq").options(splitSize=split, overlap="8k")
    loaded = reader.load(f"{folder}/*")
    table = spark_udfs.frame(spark, f"{folder}/*", split_size=split, overlap="8k")
    assert table.schema == loaded.schema
    number = F.spark_partition_id()
    rows = collected(table.select(number, "*"))
    assert rows == collected(loaded.select(number, "*"))
    assert len(rows) == 99
    assert table.rdd.getNumPartitions() == loaded.rdd.getNumPartitions()


@pytest.mark.parametrize("by_tasks", [False, True])
def test_exact_splits_have_the_rows_of_one_reader(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, by_tasks: bool
) -> None:
    """Parts that begin anywhere, with an overlap of nothing."""
    monkeypatch.setattr("spark_udfs.source.survey_tasks.SURVEYORS_MIN", 0 if by_tasks else 1 << 20)
    files = sorted(folder.iterdir())
    names = (*NAMES, "frame", "stream", "file")
    with mock.patch.object(row_buffer, "CHUNK", 700):  # the driver's: a place for a part after each chunk
        table = spark_udfs.frame(spark, files, columns=names, splits="exact", split_size=8000, overlap=0)
    # Tasks survey what a search divides: these files are too small for one.
    assert table.rdd.getNumPartitions() >= len(files) + (not by_tasks)
    assert collected(table) == expected(files, *names)
    loaded = spark.read.format("msmq").options(splits="exact").load(f"{folder}/*").select(*names)
    assert collected(loaded) == expected(files, *names)


def test_exact_splits_are_for_packets_that_are_complete(spark: Any, folder: Path) -> None:
    with pytest.raises(Exception, match="exact is for packets, not segments"):
        spark.read.format("msmq").options(splits="exact", read="segments").load(f"{folder}/*").collect()
    with pytest.raises(Exception, match="not for streaming"):
        spark.readStream.format("msmq").options(splits="exact").load(str(folder)).writeStream.format(
            "noop"
        ).start().awaitTermination(60)


def test_columns_and_conditions(spark: Any, folder: Path) -> None:
    """Where nothing is split, the rows of `read_capture`; conditions checked before and after decoding."""
    files = sorted(folder.iterdir())
    times = sorted(row[0] for row in expected(files, "time"))
    moment = times[len(times) // 2].to_pydatetime(warn=False)
    conditions = [
        [("kind", "==", "UserMessage"), ("dst_port", "==", 1801), ("src_port", "in", [50_000, 50_002])],
        [("time", ">=", moment), ("label", "!=", "50001/29")],
        [("time", "<", moment.isoformat()), ("body_size", ">", 205)],
    ]
    everything = len(expected(files, "kind"))
    for where in conditions:
        rows = expected(files, *NAMES, where=where, body_limit=3)
        assert 0 < len(rows) < everything
        table = spark_udfs.frame(spark, files, columns=NAMES, where=where, body_limit=3)
        assert collected(table) == rows
    table = spark_udfs.frame(spark, folder, columns=["raw", "frame"], split_size=0)
    assert [row.raw for row in table.where("frame is null").collect()] == []
    assert collected(table) == expected(files, "raw", "frame")


def test_ports(spark: Any, tmp_path: Path) -> None:
    """A ping cut short is one on a known port only."""
    path = tmp_path / "ping.pcap"
    ping = c.udp_packet(h.ping()[:20], "10.0.0.1", 4000, c.SERVER, 1999)
    path.write_bytes(c.pcap_bytes([Frame(c.START_NS, c.ethernet(ping))]))
    rows = expected(path, "kind", ports=[1999])
    assert len(rows) == 1
    assert expected(path, "kind") == []
    assert collected(spark_udfs.frame(spark, path, columns=["kind"], ports=[1999])) == rows
    assert collected(spark_udfs.frame(spark, path, columns=["kind"])) == []


def test_malformed_packets_and_damaged_files(spark: Any, bad: Path) -> None:
    names = ["kind", "size", "error", "file", "time"]
    permissive = spark_udfs.frame(spark, bad, columns=names)
    assert collected(permissive) == collected(spark.read.format("msmq").load(str(bad)).select(names))
    damage = permissive.where("kind = 'Skipped' and size is null").collect()
    assert [(row.file, row.error.rpartition(": ")[2], row.time) for row in damage] == [
        (str(bad), "the file ends within a record", None)
    ]
    for where, kinds in (
        ([("kind", "in", ["Skipped", "Malformed"])], ["Malformed", "Skipped", "Skipped"]),
        ([("kind", "==", "SessionAck"), ("size", "<", 100)], ["SessionAck", "SessionAck"]),
        ([("error", "==", damage[0].error)], ["Skipped"]),
        ([("time", ">", "2000-01-01"), ("kind", "==", "Skipped")], ["Skipped"]),
    ):
        table = spark_udfs.frame(spark, bad, columns=["kind"], where=where)
        assert [row.kind for row in table.collect()] == kinds
    dropped = spark_udfs.frame(spark, bad, columns=["kind"], mode="dropmalformed")
    assert [row.kind for row in dropped.collect()] == ["SessionAck", "SessionAck"]


def test_fail_fast(spark: Any, bad: Path, folder: Path) -> None:
    """Malformed packets are seen, whatever is asked for."""
    where = [("kind", "==", "UserMessage"), ("time", ">", "2000-01-01")]
    with pytest.raises(Exception, match=r"a malformed packet from 10\.0\.0\.1"):
        spark_udfs.frame(spark, bad, columns=["label"], mode="FAILFAST", where=where).collect()
    files = sorted(folder.iterdir())
    table = spark_udfs.frame(spark, files, columns=NAMES, mode="FAILFAST", where=where)
    assert collected(table) == expected(files, *NAMES, where=where)


def test_bodies_decrypted_in_a_session_without_the_data_source(spark: Any) -> None:
    names = ("label", "signature_status", "decrypted", "body", "body_size")
    table = spark_udfs.frame(spark.newSession(), PROTECTED, columns=names, **given())
    assert collected(table) == expected(PROTECTED, *names, **given())
