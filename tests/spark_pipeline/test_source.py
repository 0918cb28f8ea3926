"""The data source ``msmq`` on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import msmqwire
import spark_udfs
from msmqwire.capture import open_records
from msmqwire.tables.compiled.library import is_there
from tests.support import handmade as h
from tests.support.capture.protected_captures import ALICE, PROTECTED, QM_KEY, given
from tests.support.capture.spark_rows import collected, expected
from tests.support.paths import EXAMPLES

NAMES = ("kind", "src_port", "dst_port", "label", "size", "body", "error")


@pytest.mark.parametrize("split", ["0", "4k", "128m"])
def test_the_packets_of_rotating_files(spark: Any, folder: Path, split: str) -> None:
    table = spark.read.format("msmq").option("splitSize", split).load(f"{folder}/*")
    rows = expected(sorted(folder.iterdir()), *NAMES)
    assert collected(table.select(*NAMES)) == rows
    assert sum(row[0] == "UserMessage" for row in rows) == 90
    assert table.rdd.getNumPartitions() == {"0": 3, "128m": 1}.get(split, table.rdd.getNumPartitions())
    assert split != "4k" or table.rdd.getNumPartitions() > 10


def test_executors_use_what_was_shipped(spark: Any, cluster: Any) -> None:
    def module_files(_: Any) -> list[str]:
        import msmqwire
        import spark_udfs

        return [msmqwire.__file__, spark_udfs.__file__]

    modules = set(spark.sparkContext.parallelize(range(4), 4).mapPartitions(module_files).collect())
    assert {path for path in modules if f"/{cluster.package.name}/" not in path} == set()


def test_executors_read_by_the_library_that_was_shipped(spark: Any, cluster: Any) -> None:
    def engine(_: Any) -> list[str]:
        from msmqwire.tables.compiled.engine import chosen

        return [chosen().about]

    (about,) = set(spark.sparkContext.parallelize(range(4), 4).mapPartitions(engine).collect())
    if is_there():
        (path,) = (cluster.folder / "cache" / "msmqwire").iterdir()
        assert about == f"the library {path}"
    else:
        assert about.startswith("the portable reader")


def test_files_in_the_order_given_and_columns(spark: Any, folder: Path) -> None:
    """Several paths, one of them a pattern; the option names the columns, raw among them."""
    reader = spark.read.format("msmq").option("columns", "file,frame,kind,raw")
    table = reader.load([f"{folder}/a-1.*", f"{folder}/a-[23].*"])
    assert table.columns == ["file", "frame", "kind", "raw"]
    assert collected(table) == expected(sorted(folder.iterdir()), *table.columns)
    assert collected(reader.load(f"{folder}/a-1.pcap,{folder}/a-2.*,{folder}/a-3.*")) == collected(table)


def test_what_is_not_known_of_a_split_file(spark: Any, folder: Path) -> None:
    table = spark.read.format("msmq").option("splitSize", "4k").load(f"{folder}/*")
    rows = table.select("file", "frame", "stream", "src_port", "dst_port").collect()
    packed = {row.file.endswith(".gz") for row in rows if row.frame is not None}
    assert packed == {True}
    assert {row.frame for row in rows if not row.file.endswith(".gz")} == {None}
    numbers = {(max(row.src_port, row.dst_port), row.stream) for row in rows}
    assert len(numbers) == len({stream for _, stream in numbers}) == 3


def test_a_schema_of_some_columns_and_filters(spark: Any, folder: Path) -> None:
    table = spark.read.format("msmq").schema("label string, kind string, time timestamp").load(f"{folder}/*")
    matching = table.where("kind = 'UserMessage' and label in ('50000/3', '50001/4')")
    assert sorted(row.label for row in matching.collect()) == ["50000/3", "50001/4"]
    times = sorted(row.time for row in table.select("time").collect())
    assert len(times) == 99
    middle = times[len(times) // 2]
    table = spark.read.format("msmq").options(pushdown="true", columns="time").load(f"{folder}/*")
    assert table.where(table.time == middle).count() == times.count(middle)
    assert table.where(table.time > middle).count() == sum(time > middle for time in times)
    assert table.where(table.time <= middle).count() == sum(time <= middle for time in times)


@pytest.mark.parametrize("read", ["packets", "segments"])
def test_segments_and_filters_that_are_not_left_to_spark(spark: Any, folder: Path, read: str) -> None:
    table = spark.read.format("msmq").options(read=read, pushdown="true").load(f"{folder}/*")
    where = "src = '10.0.0.2' and src_port = 1801 and dst_port in (50000, 50002) and transport = 'tcp'"
    filtered = table.where(where)
    plan = filtered._jdf.queryExecution().optimizedPlan().toString()
    assert "isnotnull(src" in plan  # left to Spark
    assert not any(value in plan for value in ("10.0.0.2", "1801", "50000", "tcp"))
    rows = filtered.select("src", "dst_port").collect()
    assert {tuple(row) for row in rows} == {("10.0.0.2", 50_000), ("10.0.0.2", 50_002)}
    everything = spark.read.format("msmq").option("read", read).load(f"{folder}/*").collect()
    assert len(rows) == sum(row.src == "10.0.0.2" and row.dst_port != 50_001 for row in everything)


def test_two_filters_on_the_same_frame(spark: Any, folder: Path) -> None:
    """One query does not affect another."""
    table = spark.read.format("msmq").load(f"{folder}/*")
    messages, handshakes = (
        table.where(table.kind == kind) for kind in ("UserMessage", "EstablishConnection")
    )
    assert (messages.union(handshakes).count(), messages.count(), table.count()) == (96, 90, 99)


def test_segments_do_not_depend_on_splits(spark: Any, folder: Path) -> None:
    reader = spark.read.format("msmq").option("read", "segments")
    expected_rows = collected(reader.load(f"{folder}/*"))
    assert collected(reader.option("splitSize", "3k").load(f"{folder}/*")) == expected_rows
    assert len(expected_rows) == sum(len(list(open_records(path))) for path in folder.iterdir())


def test_permissive(spark: Any, bad: Path) -> None:
    reader = spark.read.format("msmq").option("columnNameOfCorruptRecord", "corrupt")
    table = reader.schema("kind string, size bigint, error string, corrupt binary").load(str(bad))
    rows = [tuple(row) for row in table.collect()]
    assert [row[:2] for row in rows] == [
        ("SessionAck", 36), ("Malformed", 16), ("Skipped", 4), ("SessionAck", 36), ("Skipped", None),
    ]  # fmt: skip
    assert [row[3] for row in rows] == [None, h.base_header(0x400001), None, None, None]
    assert rows[4][2].endswith("the file ends within a record")
    assert table.where("kind = 'SessionAck'").count() == 2


def test_drop_malformed(spark: Any, bad: Path) -> None:
    table = spark.read.format("msmq").option("MODE", "dropMalformed").load(str(bad))
    assert [row.kind for row in table.collect()] == ["SessionAck", "SessionAck"]


@pytest.mark.parametrize("columns", ["label", "kind"])
def test_fail_fast(spark: Any, bad: Path, columns: str) -> None:
    reader = spark.read.format("msmq").option("mode", "FAILFAST").option("columns", columns)
    with pytest.raises(Exception, match=r"a malformed packet from 10\.0\.0\.1"):
        reader.load(str(bad)).collect()
    segments = spark.read.format("msmq").option("mode", "FAILFAST").option("read", "segments")
    with pytest.raises(Exception, match="the file ends within a record"):
        segments.load(str(bad)).collect()


@pytest.mark.parametrize(
    "option, value, why",
    [
        (
            "read",
            "frames",
            "option read: 'frames' is not a possible value: there are packets, segments and sessions",
        ),
        ("splitSize", "big", "option splitSize: big is not a number of bytes"),
        ("ports", "1801,x", "option ports: x is not a port"),
        ("colums", "kind", "'colums' is not an option of the data source msmq; did you mean columns"),
        ("columns", "kind,colour", "'colour' is not a column"),
    ],
)
def test_options_that_cannot_be(spark: Any, folder: Path, option: str, value: str, why: str) -> None:
    with pytest.raises(Exception, match=why):
        spark.read.format("msmq").option(option, value).load(f"{folder}/*").collect()


def test_a_column_that_cannot_be(spark: Any, folder: Path) -> None:
    for schema, why in (
        ("colour string", "'colour' is not a column"),
        ("size int", "size is of type bigint, not int"),
    ):
        with pytest.raises(Exception, match=why):
            spark.read.format("msmq").schema(schema).load(f"{folder}/*").collect()


def test_a_body_limit_and_a_file_that_is_not_there(spark: Any, folder: Path) -> None:
    table = spark.read.format("msmq").option("bodyLimit", "10").load(f"{folder}/*")
    sizes = {(len(row.body), row.body_size >= 200) for row in table.where("body is not null").collect()}
    assert sizes == {(10, True)}
    with pytest.raises(Exception, match="no such file"):
        spark.read.format("msmq").load(f"{folder}/none-*").collect()


def test_what_is_inside_of_bodies(spark: Any) -> None:
    names = ("kind", "body_format", "body_text", "headers")
    path = str(EXAMPLES / "session.pcap")
    assert not set(names[1:]) & set(spark.read.format("msmq").load(path).columns)
    table = spark.read.format("msmq").option("columns", ",".join(names)).load(path)
    assert dict(table.dtypes)["headers"] == "map<string,string>"
    assert collected(table) == expected([path], *names)


def test_bodies_decrypted_and_signatures_verified(spark: Any) -> None:
    names = ("label", "signature_status", "decrypted", "body", "body_size")
    found = msmqwire.read_capture(PROTECTED, columns=names, **given())
    rows = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)
    table = spark.read.format("msmq").option("keyFile", str(QM_KEY)).option("certFile", ALICE.read_text())
    assert collected(table.load(str(PROTECTED)).select(*names)) == rows
    assert collected(spark_udfs.packets(spark, PROTECTED, columns=names, **given())) == rows
    spark_udfs.register(spark, **given())
    try:
        raw = spark.read.format("msmq").option("columns", "raw").load(str(PROTECTED))
        parsed = raw.selectExpr("msmq_parse(raw) p").select(*(f"p.{name}" for name in names))
        assert collected(parsed) == rows
    finally:
        spark_udfs.register(spark)
