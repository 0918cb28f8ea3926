"""Wrong arguments fail in the driver, when a DataFrame is defined, and name the right ones; no task runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spark_udfs
from msmqwire.errors import InvalidArgument
from spark_udfs.jobs import decode, findings
from spark_udfs.reassembly.packets import packets
from spark_udfs.source.options import BadOption
from tests.support.paths import EXAMPLES

CAPTURE = str(EXAMPLES / "session.pcap")
WHERE = [
    ([("kind", "==", "UserMesage")], "where: 'UserMesage' is not a kind of packet; did you mean UserMessage"),
    ("kind == 'UserMesage'", "where: 'UserMesage' is not a kind of packet; did you mean UserMessage"),
    ([("src", "==", "10.0.0.300")], "where: '10.0.0.300' is not an address"),
    ("labl like 'x'", "where: 'labl' is not a column; did you mean label"),
]


@pytest.mark.parametrize(
    "option, value, why",
    [
        ("read", "segmets", "option read: 'segmets' is not a possible value; did you mean segments"),
        ("mode", "FAILFSAT", "did you mean FAILFAST"),
        ("splits", "exakt", "did you mean exact"),
        ("splts", "exact", "'splts' is not an option of the data source msmq; did you mean splits"),
        ("columns", "kind,lable", "'lable' is not a column; did you mean label"),
        ("ports", "99999", "ports: 99999 is not a port"),
        ("readings", "job_numbr=big", "'job_numbr' is not a reading; did you mean job_number"),
        ("pushdown", "ture", "did you mean true"),
    ],
)
def test_an_option_of_the_data_source(spark: Any, option: str, value: str, why: str) -> None:
    with pytest.raises(Exception, match=why):  # not even an action is needed
        spark.read.format("msmq").option(option, value).load(CAPTURE)


@pytest.mark.parametrize("where, why", WHERE)
def test_conditions(spark: Any, where: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=why):
        spark_udfs.frame(spark, CAPTURE, where=where)
    with pytest.raises(InvalidArgument, match=why):
        spark_udfs.lake(spark, CAPTURE, tmp_path / "lake", where=where)
    assert list(tmp_path.iterdir()) == []


def test_other_arguments(spark: Any, tmp_path: Path) -> None:
    for arguments, why in (
        ({"columns": ["lable"]}, "did you mean label"),
        ({"ports": [99_999]}, "99999"),
        ({"splits": "exakt"}, "did you mean exact"),
    ):
        with pytest.raises(ValueError, match=why):
            spark_udfs.frame(spark, CAPTURE, **arguments)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=why):
            spark_udfs.lake(spark, CAPTURE, tmp_path / "lake", **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'kinds' is not a key of partitions"):
        spark_udfs.lake(spark, CAPTURE, tmp_path / "lake", by="kinds")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="99999"):
        spark_udfs.fate(spark, CAPTURE, ports=[99_999])
    with pytest.raises(InvalidArgument, match="did you mean shuffle"):
        packets(spark, CAPTURE, reassembly="shufle")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="a port is 1 to 65,535"):
        packets(spark, CAPTURE, ports=[99_999])
    with pytest.raises(InvalidArgument, match="did you mean label"):
        packets(spark, CAPTURE, columns=["lable"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_a_filter_of_a_query_that_nothing_meets_is_no_error(spark: Any, pushdown: str) -> None:
    """SQL compares with anything; a filter of a value that can't be stays with Spark."""
    table = spark.read.format("msmq").option("pushdown", pushdown).load(CAPTURE)
    for condition in ("kind = 'UserMesage'", "src = '10.0.0.300'", "dst_port = 99999"):
        assert table.where(condition).count() == 0
    assert table.where("kind in ('UserMesage', 'UserMessage')").count() == 1


def test_arguments_of_jobs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    for job, arguments, why in (
        (decode, ("--columns", "kind,lable"), "columns: 'lable' is not a column; did you mean label"),
        (decode, ("--ports", "99999"), "99999 is not a port"),
        (findings, ("--format", "parket"), "invalid choice: 'parket'"),
    ):
        with pytest.raises(SystemExit) as ended:
            job.main([CAPTURE, *out, *arguments])
        assert ended.value.code == 2
        assert why in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
