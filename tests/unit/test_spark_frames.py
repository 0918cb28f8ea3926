"""What `spark_udfs.frame` refuses before it asks anything of Spark."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.errors import InvalidValue
from spark_udfs.frames import frame
from spark_udfs.source.options import BadOption
from tests.support.paths import ROOT

CAPTURE = ROOT / "examples" / "session.pcap"


@pytest.mark.parametrize(
    "arguments, why",
    [
        pytest.param({"columns": ["kind", "colour"]}, "columns: there is no colour", id="unknown column"),
        pytest.param({"columns": []}, "columns: a list of names", id="no columns"),
        pytest.param({"columns": "kind"}, "columns: a list of names", id="columns as text"),
        pytest.param({"where": [("colour", "==", 1)]}, "where: .*no column colour", id="unknown condition"),
        pytest.param({"where": [("size", "~", 1)]}, "where: .*~ is none of", id="unknown operator"),
        pytest.param({"where": [("size", "==")]}, "where: .*unpack", id="condition of two"),
        pytest.param({"where": [("src_port", "==", "x")]}, "where: .*src_port", id="text for a number"),
        pytest.param({"where": [("size", "<", 1 << 64)]}, "where: .*size", id="number too large"),
        pytest.param({"where": [("size", "<", None)]}, "where: .*null", id="null"),
        pytest.param({"where": [("size", "in", 5)]}, "where: .*size", id="no list"),
        pytest.param({"where": [("time", ">", "noon")]}, "where: .*noon", id="no time"),
        pytest.param({"ports": [0]}, "ports: 0 is no port", id="port"),
        pytest.param({"body_limit": -1}, "bodyLimit: -1", id="body limit"),
        pytest.param({"mode": "LENIENT"}, "mode: LENIENT", id="mode"),
        pytest.param({"split_size": "big"}, "splitSize: big", id="split size"),
        pytest.param({"splits": "guessed"}, "splits: guessed", id="splits"),
        pytest.param({"overlap": 1.5}, r"overlap: 1\.5", id="overlap"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], why: str) -> None:
    spark: Any = None
    with pytest.raises(BadOption, match=why):
        frame(spark, CAPTURE, **arguments)


def test_keys_and_files_that_cannot_be() -> None:
    spark: Any = None
    with pytest.raises(InvalidValue, match="private key"):
        frame(spark, CAPTURE, keys=b"no key")
    with pytest.raises(FileNotFoundError, match="none-"):
        frame(spark, CAPTURE.parent / "none-*.pcap")
