"""Lakes read by other programs: each has the rows of `read_capture`, and no other ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import msmqwire
from msmqwire.errors import LakeMismatch
from msmqwire.tables.lake import partitions
from tests.support import captures as c
from tests.support.capture.lakes import DAY_NS, expected_rows, rows_of, traffic, write_capture
from tests.support.installed import library

QUEUES = [
    r"OS:alpha\private$\orders", "TCP:1.2.3.4\\q;?*=%~", r"OS:größe\№ 5", "OS:" + "x" * 110, r"OS:a%41\b",
]  # fmt: skip
"""Destinations with what paths, logs and engines escape in different ways."""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("captures")
    frames = c.merged(
        traffic(25, queues=QUEUES, disordered=True), traffic(6, port=50_001, start_ns=c.START_NS + DAY_NS)
    )
    return [
        write_capture(folder / "0.pcap", frames[: len(frames) // 2]),
        write_capture(folder / "1.pcap", frames[len(frames) // 2 :]),
        write_capture(folder / "2.pcap", traffic(5, port=50_002, queues=QUEUES)),
    ]


@pytest.fixture(scope="module", params=[None, "kind", "destination"])
def lake(
    request: pytest.FixtureRequest, captures: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A lake with files that a later version has removed."""
    path = tmp_path_factory.mktemp("lake") / "lake"
    for count in (1, 2, 3):
        msmqwire.write_lake(captures[:count], path, by=request.param)
    return path


def by_deltalake(lake: Path) -> pa.Table:
    return library("deltalake").DeltaTable(lake).to_pyarrow_table()


def by_polars(lake: Path) -> pa.Table:
    return library("polars").scan_delta(str(lake)).collect().to_arrow()


def by_duckdb(lake: Path) -> pa.Table:
    """By the list of the files."""
    duckdb = library("duckdb")
    files = msmqwire.read_lake(lake).files
    found = duckdb.sql("SET TimeZone = 'UTC'; SELECT * FROM read_parquet($files, hive_partitioning = true, "
                       "hive_types_autocast = false)", params={"files": files})  # fmt: skip
    return found.to_arrow_table()


READERS: list[Callable[[Path], pa.Table]] = [by_deltalake, by_polars, by_duckdb]


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_has_the_rows_of_the_captures(reader, lake, captures):
    assert plain(reader(lake)) == plain(msmqwire.read_lake(lake).to_table())
    assert rows_of(msmqwire.read_lake(lake).to_table()) == expected_rows(captures)


def plain(table: pa.Table) -> Counter[str]:
    """The rows of any reader, with its own types for texts, maps and times."""
    columns = {}
    for name in sorted(table.column_names):
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", "UTC"))
        elif pa.types.is_date(column.type):
            column = column.cast(pa.string())
        columns[name] = [_value(value) for value in column.to_pylist()]
    return Counter(repr(row) for row in zip(*columns.values(), strict=True))


def _value(value: Any) -> Any:
    if isinstance(value, list):  # a map
        return sorted(tuple(item.values()) if isinstance(item, dict) else item for item in value)
    return sorted(value.items()) if isinstance(value, dict) else value


def test_pandas_reads_it_by_the_dataset(lake, captures):
    library("pandas")
    frame = msmqwire.read_lake(lake).to_table(columns=["time", "label", "kind"]).to_pandas()
    expected = msmqwire.read_capture([str(path) for path in captures], columns=["label"])
    assert Counter(frame["label"].dropna()) == Counter(expected["label"].drop_null().to_pylist())


def test_partitions_have_the_values_of_the_log(lake):
    """Polars takes them from the path, others from the log."""
    table = by_polars(lake)
    if "queue" in table.column_names:
        for queue, destination in zip(
            table["queue"].to_pylist(), table["destination"].to_pylist(), strict=True
        ):
            assert queue == (None if destination is None else partitions.queue_key(destination))
    days = pc.strftime(pc.cast(table["time"], pa.timestamp("us", "UTC")), "%Y-%m-%d").to_pylist()
    assert [str(day) for day in table["date"].to_pylist()] == days


@pytest.mark.parametrize("reader", READERS[:2])
def test_an_earlier_version(reader, captures, tmp_path):
    for count in (1, 2, 3):
        assert msmqwire.write_lake(captures[:count], tmp_path / "lake").version == count - 1
    for version in range(3):
        rows = msmqwire.read_lake(tmp_path / "lake", version=version).to_table()
        assert rows_of(rows) == expected_rows(captures[: version + 1])
    assert rows_of(reader(tmp_path / "lake")) == expected_rows(captures)


@pytest.mark.parametrize("name", ["a space", "per%cent", "p%41x", "100%", "a#b", "a?b", "a+b", "it's"])
def test_the_name_of_the_folder(name, captures, tmp_path):
    """The library decodes %41 in a path, and would write elsewhere."""
    lake = tmp_path / name
    if name in ("per%cent", "p%41x"):
        with pytest.raises(LakeMismatch, match="for another character"):
            msmqwire.write_lake(captures[:1], lake)
        assert not list(tmp_path.iterdir())
        return
    for count in (1, 3):
        msmqwire.write_lake(captures[:count], lake, by="destination")
    assert rows_of(msmqwire.read_lake(lake).to_table()) == expected_rows(captures)
    assert rows_of(by_deltalake(lake)) == expected_rows(captures)
    assert [path.name for path in tmp_path.iterdir()] == [name]
