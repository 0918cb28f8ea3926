"""Statistics in the log of a lake: no row is beyond them, and readers find the same rows by them."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import msmqwire
from msmqwire.tables.lake.statistics import COLUMNS, TEXT_LENGTH, statistics, text_above
from tests.support import captures as c
from tests.support.capture.lakes import DAY_NS, files_of, traffic, write_capture
from tests.support.installed import library

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=70)


@given(TEXTS, TEXTS)
def test_no_text_with_the_same_start_is_beyond(text, end):
    above = text_above(text)
    longer = text[:TEXT_LENGTH] + end if len(text) > TEXT_LENGTH else text
    if above is None:
        assert len(text) > TEXT_LENGTH
        assert set(text[:TEXT_LENGTH]) == {chr(0x10FFFF)}
        return
    assert len(above) <= TEXT_LENGTH
    assert above.encode() >= max(text, longer).encode()


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 31 + "b"),
        ("a" * 31 + "\U0010ffff!", "a" * 30 + "b"),
        ("a" * 31 + "\ud7ff!", "a" * 31 + "\ue000"),
        ("\U0010ffff" * 33, None),
        ("", ""),
    ],
)
def test_a_text_is_rounded_up(text, above):
    assert text_above(text) == above


def of_rows(folder: Path, **columns: Any) -> dict[str, Any]:
    """The statistics of a file with these columns."""
    table = pa.table(columns)
    collected: list[Any] = []
    with parquet.ParquetWriter(folder / "rows.parquet", table.schema, metadata_collector=collected) as writer:
        writer.write_table(table, row_group_size=2)
    found: dict[str, Any] = json.loads(statistics(collected[0], table.schema))
    return found


def test_times_are_cut_at_milliseconds_outwards(tmp_path):
    kind = pa.timestamp("us", "UTC")
    found = of_rows(tmp_path, time=pa.array([-1, 1_700_000_000_000_001, None], kind))
    assert found["minValues"]["time"] == "1969-12-31T23:59:59.999Z"
    assert found["maxValues"]["time"] == "2023-11-14T22:13:20.001Z"
    assert (found["nullCount"]["time"], found["numRecords"]) == (1, 3)


def test_columns_without_values_have_a_count_of_nulls_alone(tmp_path):
    found = of_rows(
        tmp_path,
        kind=pa.array([None, None, None], pa.string()),
        message_id=pa.array([None, None, 7], pa.int64()),
        label=pa.array(["a", "b", "c"]),
    )
    assert found == {
        "numRecords": 3,
        "minValues": {"message_id": 7},
        "maxValues": {"message_id": 7},
        "nullCount": {"kind": 3, "message_id": 2},
    }


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of captures with other days and queues."""
    folder = tmp_path_factory.mktemp("lake")
    captures = [
        write_capture(
            folder / f"{n}.pcap",
            traffic(
                6,
                first=10 * n,
                port=50_000 + n,
                start_ns=c.START_NS + n * DAY_NS // 3,
                queues=[f"OS:{n}"],
            ),
        )
        for n in range(6)
    ]
    for count in range(1, 7):
        msmqwire.write_lake(captures[:count], folder / "lake")
    return folder / "lake"


def test_the_log_has_what_the_files_have(lake):
    from deltalake import DeltaTable

    table = DeltaTable(lake)
    named = set(table.metadata().configuration["delta.dataSkippingStatsColumns"].split(","))
    assert named == set(COLUMNS)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert len(actions) == len(files_of(lake))
    for action in actions:
        rows = parquet.ParquetFile(lake / action["path"]).read()
        assert action["num_records"] == rows.num_rows
        for name in COLUMNS:
            values = [value for value in rows[name].to_pylist() if value is not None]
            assert action[f"null_count.{name}"] == rows.num_rows - len(values)
            if values:
                low, high = action[f"min.{name}"], action[f"max.{name}"]
                assert low <= min(values) <= max(values) <= high
                if not isinstance(low, str | datetime):
                    assert (low, high) == (min(values), max(values))


@pytest.mark.parametrize(
    "name", ["time", "time_ns", "destination", "message_id", "part", "kind", "src_port", "label"]
)
def test_conditions_find_the_same_rows_with_and_without_them(lake, name):
    polars = library("polars")
    data, whole = msmqwire.read_lake(lake), msmqwire.read_lake(lake).to_table()
    lazily = polars.scan_delta(str(lake))
    values = whole[name].drop_null().unique()
    for value in values.take(pa.array(range(0, len(values), max(len(values) // 5, 1)))):
        for test in (ds.field(name) == value, ds.field(name) < value, ds.field(name) >= value):
            assert data.to_table(filter=test).num_rows == whole.filter(test).num_rows
        found = lazily.filter(polars.col(name) >= value.as_py()).collect()
        assert found.height == whole.filter(ds.field(name) >= value).num_rows


@pytest.mark.parametrize("name", ["time_ns", "destination", "message_id", "part"])
def test_files_that_can_have_no_row_are_not_opened(lake, name):
    data = msmqwire.read_lake(lake)
    wanted = data.to_table(columns=[name])[name].drop_null()[-1]
    assert 0 < len(list(data.get_fragments(ds.field(name) == wanted))) < len(files_of(lake)) // 2
