"""`spark_udfs.fate` and `fate_summary` on a cluster: the rows of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import spark_udfs
from msmqwire.analysis.fate import fates, summary
from msmqwire.analysis.fate.tables import FATE_SCHEMA, SUMMARY_SCHEMA, fate_row, summary_row
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World
from msmqwire.tables.scanning import row_buffer
from tests.support.capture.fate_captures import Link, capture, message, session_ack
from tests.support.nightly import nightly

SEEDS = (30, 37)
"""Runs with remote read, messages passed on, connections that break."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of simulated runs."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in SEEDS:
        with (folder / f"{seed}.pcap").open("wb") as file:
            assert World(make_plan(seed), capture=file).run().violation is None
    return folder


def collected(table: Any, *order: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in table.orderBy(*order).collect()]


@pytest.mark.parametrize("seed", [pytest.param(30, marks=nightly), 37])
def test_the_fates_of_one_process(spark: Any, runs: Path, seed: int) -> None:
    path = runs / f"{seed}.pcap"
    expected = [fate_row(fate) for fate in fates([path])]
    with mock.patch.object(row_buffer, "CHUNK", 700):  # the driver's: a place for a part after each chunk
        table = spark_udfs.fate(spark, path, split_size=8000).cache()
    rows = collected(table, "position")
    assert [row.pop("position") for row in rows] == sorted(row["position"] for row in table.collect())
    assert table.columns == [*FATE_SCHEMA.names, "position"]
    assert rows == expected
    assert len({row["state"] for row in rows}) > 2
    sums = spark_udfs.fate_summary(table)
    assert sums.columns == SUMMARY_SCHEMA.names
    expected_sums = sorted(map(summary_row, summary(fates([path]))), key=lambda row: str(row["queue"]))
    assert sorted(collected(sums, "queue"), key=lambda row: str(row["queue"])) == expected_sums
    table.unpersist()


def test_acknowledgements_on_request(spark: Any, runs: Path) -> None:
    path = runs / "37.pcap"
    expected = [fate_row(fate) for fate in fates([path], acknowledgements=True)]
    rows = collected(spark_udfs.fate(spark, path, acknowledgements=True, partitions=2), "position")
    for row in rows:
        del row["position"]
    assert rows == expected
    assert {row["message_class"] for row in rows} > {"NORMAL", "ORDER_ACK"}


def test_messages_of_machines_with_one_guid(spark: Any, tmp_path: Path) -> None:
    """Also where no two have the same number: what queue managers claim is put together by their GUID."""
    first = Link().send(message(1)).send(message(2))
    clone = Link("10.0.0.7", start_ns=first.time_ns).send(message(1, label="of the clone")).send(message(7))
    clone.answer(session_ack(ack=2))
    path = tmp_path / "clones.pcap"
    path.write_bytes(capture(first, clone).read())
    expected = [fate_row(fate) for fate in fates([path])]
    assert [(row["message_id"], len(row["findings"])) for row in expected] == [(1, 0), (2, 0), (1, 1), (7, 0)]
    with mock.patch.object(row_buffer, "CHUNK", 700):
        table = spark_udfs.fate(spark, path, split_size=600).cache()
    rows = collected(table, "position")
    for row in rows:
        del row["position"]
    assert rows == expected
    sums = collected(spark_udfs.fate_summary(table), "queue")
    assert sums == [summary_row(one) for one in summary(fates([path]))]
    assert "one queue manager GUID at two addresses" in sums[0]["findings"][0]
    table.unpersist()


def test_a_capture_that_is_cut_off(spark: Any, tmp_path: Path) -> None:
    link = Link().send(message(1)).send(message(2))
    link.answer(session_ack(ack=2))
    path = tmp_path / "cut.pcap"
    path.write_bytes(capture(link).read()[:-100])
    rows = collected(spark_udfs.fate(spark, path), "position")
    assert [row["message_id"] for row in rows] == [1, 2]


def test_what_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        spark_udfs.fate(spark, tmp_path / "none.pcap")
    with pytest.raises(ValueError, match="splitSize"):
        spark_udfs.fate(spark, tmp_path, split_size="much")
