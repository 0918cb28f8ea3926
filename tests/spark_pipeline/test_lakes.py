"""Lakes written by Spark's tasks, and read by Spark, on a cluster."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import msmqwire
import spark_udfs
from msmqwire.lake import manifest
from tests.support import captures as c
from tests.support.lakes import (
    DAY_NS,
    all_files,
    expected_rows,
    listed_rows,
    named_rows,
    rows_of,
    traffic,
    write_capture,
)

SPLIT = 4000
QUEUES = [r"OS:a\b", "TCP:1.2.3.4\\q;?*=%~", "TCP:1.2.3.4\\\u0416", "TCP:2024-01-01"]


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
    assert contents == named_rows(other) == spark_rows(spark, lake)
    if splits != "exact":  # which have other numbers of streams
        assert contents == expected_rows(captures)
    if by != "kind":  # there it is in the name of the folder
        assert listed_rows(lake) == contents
    assert {file.path for file in manifest.load(lake).files} == all_files(lake) - {
        "_lake/manifest.json",
        "_lake/lock",
    }
    parts = manifest.load(lake).parts
    attempts = {Path(file.path).name.rpartition("-")[0] for part in parts for file in part.files}
    assert len(attempts) == len(parts) >= 3
