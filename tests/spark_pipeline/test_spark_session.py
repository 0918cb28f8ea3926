"""`spark_udfs.session`: in a process of its own, and beside a session that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import spark_udfs
from spark_udfs.spark_session import ArrowChecksDiffer, flags_of, with_flags
from tests.support.paths import ROOT
from tests.support.patience import limit

UNSAFE, NULLS = "arrow.enable_unsafe_memory_access", "arrow.enable_null_check_for_get"

SCRIPT = """
import spark_udfs
from spark_udfs.spark_session import ArrowChecksDiffer
from tests.support.capture.spark_rows import collected, expected

def refused(**arguments):
    try:
        spark_udfs.session(**arguments)
    except ArrowChecksDiffer as exc:
        return str(exc)
    raise AssertionError("not refused")

config = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": "-Dours=1",
          "spark.driver.defaultJavaOptions": "-Dalso=2", "spark.sql.session.timeZone": "UTC"}
spark = spark_udfs.session("local[1]", arrow_checks=False, config=config)
java = spark._jvm.java.lang
for name, field in (("memory.BoundsChecking", "BOUNDS_CHECKING_ENABLED"),
                    ("vector.NullCheckingForGet", "NULL_CHECKING_ENABLED")):
    assert java.Class.forName(f"org.apache.arrow.{name}").getField(field).get(None) is False, name
assert (java.System.getProperty("ours"), java.System.getProperty("also")) == ("1", "2")
names, paths = ("kind", "label", "size", "error"), ["examples/hostile.pcapng", "examples/session.pcap"]
rows = expected(paths, *names)
assert len(rows) > 50
assert collected(spark_udfs.frame(spark, paths, columns=names, split_size="8k")) == rows
batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
assert spark_udfs.session(arrow_checks=False, config={batch: "88"}) is spark
assert spark.conf.get(batch) == "88"
running = refused(config={batch: "99"})
assert "arrow.enable_unsafe_memory_access=true, not false" in running
assert "arrow.enable_null_check_for_get=false, not true" in running
assert spark.conf.get(batch) == "88"
spark.stop()
assert "driver's JVM has arrow.enable_unsafe_memory_access=true" in refused(master="local[1]", config=config)
from pyspark import SparkContext
assert SparkContext._active_spark_context is None
"""


def test_flags_settings_and_what_is_refused() -> None:
    """The flags are those of the classes that read them; rows stay the same; a JVM keeps its flags."""
    pytest.importorskip("pyspark")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARROW_")}
    environment["PYTHONPATH"] = str(ROOT)
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=limit(300),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]


def test_a_running_session_whose_executors_have_no_flags(spark: Any) -> None:
    with pytest.raises(
        ArrowChecksDiffer, match=f"an executor's JVM has {UNSAFE}=false, not true, {NULLS}=true"
    ):
        spark_udfs.session(arrow_checks=False)
    assert spark_udfs.session() is spark


def test_the_last_option_of_a_name_counts() -> None:
    unchecked = {UNSAFE: "true", NULLS: "false"}
    options = with_flags("-Xmx1g -Dours='a b'", unchecked)
    assert options == f"-Xmx1g -Dours='a b' -D{UNSAFE}=true -D{NULLS}=false"
    assert flags_of(options) == unchecked
    assert flags_of(f"{options} -D{UNSAFE}=false") == {UNSAFE: "false", NULLS: "false"}
    checked = {UNSAFE: "false", NULLS: "true"}
    assert flags_of("") == flags_of(f"-Dmy.{UNSAFE}=true x-D{UNSAFE}=true -D{UNSAFE}s=true") == checked
