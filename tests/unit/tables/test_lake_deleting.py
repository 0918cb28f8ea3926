"""Rows deleted from lakes, which do not come back."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import msmqwire
from msmqwire.errors import InvalidArgument, LakeDamaged, LakeMissing
from msmqwire.tables.expression_parser import parse_expression
from msmqwire.tables.lake import (
    compact_lake,
    delete_from_lake,
    retain_lake,
    rewriting,
    upgrade_lake,
)
from msmqwire.tables.lake.place import lake_place
from msmqwire.tables.lake.skipping import may_have
from msmqwire.tables.lake.state import Deletion
from msmqwire.tables.lake.table import opened
from tests.support import captures as c
from tests.support.capture.lakes import (
    DAY_NS,
    all_files,
    delta_rows,
    expected_rows,
    files_of,
    named_rows,
    state_of,
    traffic,
    write_capture,
)
from tests.support.capture.old_lakes import old_lake
from tests.support.installed import library
from tests.support.nightly import nightly

SMALL = 4000
MESSAGES = "kind == 'UserMessage'"
QUEUES = (r"OS:alpha\private$\orders", 'TCP:1.2.3.4\\it\'s "q"')


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    return [
        write_capture(tmp_path / f"{n}.pcap", traffic(30, port=50_000 + n, queues=QUEUES, disordered=True))
        for n in range(2)
    ]


def without(captures: list[Path], where: str) -> Counter[str]:
    """The rows of captures that do not meet an expression; null does not."""
    return expected_rows(captures) - expected_rows(captures, where=where)


CONDITIONS = (
    "kind == 'UserMessage' and label like '1%'",
    "kind != 'UserMessage'",
    "label == '7'",
    "label is null",
    "not (label == '7')",
    "destination == 'DIRECT=TCP:1.2.3.4\\it''s \"q\"'",
    "destination contains '''s \"q'",
    "src_port == 50001 or message_id in (3, 4)",
    "message_id >= 20",
    "message_id < 0",
    "body_size > 5 and internal",
    "sent_time > '2000-01-01'",
    "time >= '2023-11-14T22:13:20.140'",
    "time > '2030-01-01'",
    "frame == 3",
)


@pytest.mark.parametrize(
    "by", [pytest.param(None, marks=nightly), pytest.param("kind", marks=nightly), "destination"]
)
@pytest.mark.parametrize("compacted", [pytest.param(False, marks=nightly), True])
def test_the_rows_that_meet_an_expression_go(tmp_path, captures, by, compacted):
    lake = tmp_path / "lake"
    for number, where in enumerate(CONDITIONS):
        lake = tmp_path / f"lake-{number}"
        msmqwire.write_lake(captures, lake, by=by, split_size=1 << 30)
        if compacted:
            compact_lake(lake, target_size=1)
        files, version = all_files(lake), opened(lake_place(lake))[0].version
        expected = without(captures, where)
        gone = sum(expected_rows(captures).values()) - sum(expected.values())
        tried = delete_from_lake(lake, where, dry_run=True)
        assert (tried.rows_deleted, tried.version, all_files(lake)) == (gone, version, files), where
        done = delete_from_lake(lake, where)
        assert done.rows_deleted == gone
        assert done.version == version + (gone > 0)
        assert named_rows(lake) == delta_rows(lake) == expected, where
        deletions = state_of(lake).deletions
        assert deletions == ((Deletion(where, None, state_of(lake).commit),) if gone else ())


def test_a_capture_that_grows_brings_nothing_back(tmp_path):
    frames = traffic(40)
    capture, lake = tmp_path / "0.pcap", tmp_path / "lake"
    where = f"{MESSAGES} and label like '%1%'"
    write_capture(capture, frames[:20])
    msmqwire.write_lake(capture, lake, split_size=SMALL)
    assert delete_from_lake(lake, where).rows_deleted
    replaced = 0
    for size in (25, 33, 40, len(frames)):
        write_capture(capture, frames[:size])
        replaced += msmqwire.write_lake(capture, lake, split_size=SMALL).rows_replaced
        assert named_rows(lake) == without([capture], where)
    assert replaced  # its last part was read again
    write_capture(capture, frames[5:])  # another one of the same path
    msmqwire.write_lake(capture, lake, split_size=SMALL)
    assert named_rows(lake) == without([capture], where)
    later = write_capture(tmp_path / "1.pcap", traffic(12, port=50_001))
    msmqwire.write_lake([capture, later], lake, split_size=SMALL)
    assert named_rows(lake) == without([capture], where) + expected_rows([later])
    # It is deleted from again, and from then on that holds for this one, too.
    assert delete_from_lake(lake, where).rows_deleted == sum(expected_rows([later], where=where).values())
    assert len(state_of(lake).deletions) == 1
    write_capture(later, traffic(30, port=50_001))
    msmqwire.write_lake([capture, later], lake, split_size=SMALL)
    assert named_rows(lake) == without([capture, later], where)


def test_findings_are_deleted_and_stay_away(tmp_path):
    lake = tmp_path / "lake"
    captures = [write_capture(tmp_path / "0.pcap", traffic(6))]
    msmqwire.write_lake(captures, lake, findings=True)
    ids = set(msmqwire.read_lake(lake).to_table(columns=["finding_ids"])["finding_ids"].to_pylist()) - {None}
    assert ids
    where = f"finding_ids == '{min(ids)}'"
    assert delete_from_lake(lake, where).rows_deleted
    captures.append(write_capture(tmp_path / "1.pcap", traffic(6, port=50_001)))
    msmqwire.write_lake(captures, lake)  # all captures are read again
    table = msmqwire.read_lake(lake).to_table(columns=["finding_ids", "file"]).to_pylist()
    found = Counter(row["file"] for row in table if row["finding_ids"] == min(ids))
    assert found[str(captures[0])] == 0 < found[str(captures[1])]


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("1; drop table x", "not understood"),
        ("", "name of a column is expected"),
        ("true", "name of a column is expected"),
        ("label == 'x' or", "name of a column is expected"),
        ("label", "a comparison of label is expected"),
        ("queue_name == 'x'", "is not a column"),
        ("date == '2023-11-14'", "is not a column"),
        ("part > 0", "is not a column"),
        ("kind == 'UserMesage'", "UserMessage"),
        ("body_size > 3", "'body_size' is not a column of the lake"),
        ("label matches '('", "missing"),
    ],
)
def test_wrong_expressions_change_nothing(tmp_path, captures, where, why):
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures, lake, columns=["kind", "label", "time"])
    files = all_files(lake)
    with pytest.raises(InvalidArgument, match=why):
        delete_from_lake(lake, where)
    assert all_files(lake) == files
    assert named_rows(lake) == delta_rows(lake)


def test_files_are_passed_over_by_their_statistics(tmp_path, monkeypatch):
    lake = tmp_path / "lake"
    captures = [
        write_capture(
            tmp_path / f"{n}.pcap",
            traffic(
                5, first=100 * n, port=50_000 + n, start_ns=c.START_NS + n * DAY_NS, queues=[f"OS:{n}\\q"]
            ),
        )
        for n in range(3)
    ]
    msmqwire.write_lake(captures, lake)
    table, _ = opened(lake_place(lake))
    days = [file.keys["date"] for file in table.files()]
    for where, day in {
        "src_port == 50001 or src_port == 7": None,
        "src_port in (7, 50002)": "2023-11-16",
        "message_id == 102": "2023-11-15",
        "message_id == 100": "2023-11-15",
        "message_id in (7, 204, 300)": "2023-11-16",
        "message_id <= 0": "2023-11-14",
        "message_id > 203": "2023-11-16",
        "destination in ('x', 'DIRECT=OS:0\\q')": "2023-11-14",
        "message_id >= 200 and label like '2%'": "2023-11-16",
        "message_id < 100": "2023-11-14",
        "destination == 'DIRECT=OS:1\\q'": "2023-11-15",
        "destination > 'DIRECT=OS:1\\r'": "2023-11-16",
        "time < '2023-11-15'": "2023-11-14",
        "time >= '2023-11-16' and not label == '1'": "2023-11-16",
        "kind == 'UserMessage'": None,
        "label == '1'": None,
    }.items():
        mask = may_have(table, parse_expression(where))
        found = [one for one, is_chosen in zip(days, mask, strict=True) if is_chosen]
        assert found == (days if day is None else [day]), where
    read = []
    real = rewriting.opened_parquet

    def opening(place, path):
        read.append(path)
        return real(place, path)

    monkeypatch.setattr(rewriting, "opened_parquet", opening)
    delete_from_lake(lake, "message_id == 102")
    assert len(read) == 1


def test_old_rows_go_and_those_without_a_time_stay(tmp_path, monkeypatch):
    lake = tmp_path / "lake"
    captures = [
        write_capture(tmp_path / f"{n}.pcap", traffic(20, port=50_000 + n, start_ns=c.START_NS + n * DAY_NS))
        for n in range(3)
    ]
    msmqwire.write_lake(captures, lake)
    timeless = msmqwire.read_lake(lake).to_table().slice(0, 4)
    timeless = timeless.select(["kind", "date"])
    library("polars").from_arrow(timeless).write_delta(
        str(lake), mode="append", delta_write_options={"schema_mode": "merge"}
    )
    edge = c.START_NS + DAY_NS + 15 * 10**6
    now_ns = edge + 30 * DAY_NS
    read = []
    real = rewriting.opened_parquet

    def opening(place, path):
        read.append(path)
        return real(place, path)

    monkeypatch.setattr(rewriting, "opened_parquet", opening)
    total = sum(named_rows(lake).values())
    tried = retain_lake(lake, timedelta(days=30), now_ns=now_ns, dry_run=True)
    assert sum(named_rows(lake).values()) == total
    done = retain_lake(lake, timedelta(days=30), now_ns=now_ns)
    assert done.rows_deleted == tried.rows_deleted > 20
    assert len(set(read)) == 1  # the one at the edge; the first one is removed unread, the others stay
    times = msmqwire.read_lake(lake).to_table(columns=["time_ns"])["time_ns"]
    assert times.null_count == 4
    assert min(time for time in times.to_pylist() if time is not None) >= edge
    assert state_of(lake).deletions == (Deletion("", edge, state_of(lake).commit),)
    assert named_rows(lake) == delta_rows(lake)
    # Later ones replace it, those that it covers do nothing.
    assert retain_lake(lake, timedelta(days=31), now_ns=now_ns).rows_deleted == 0
    assert retain_lake(lake, timedelta(days=29), now_ns=now_ns).rows_deleted
    assert state_of(lake).deletions == (Deletion("", edge + DAY_NS, state_of(lake).commit),)
    write_capture(captures[0], traffic(30, port=50_000))
    msmqwire.write_lake(captures, lake)
    assert named_rows(lake) == delta_rows(lake)
    times = msmqwire.read_lake(lake).to_table(columns=["time_ns"])["time_ns"]
    assert min(time for time in times.to_pylist() if time is not None) >= edge + DAY_NS
    with pytest.raises(InvalidArgument, match="not negative"):
        retain_lake(lake, timedelta(-1))


def test_the_first_row_alone_is_too_old(tmp_path):
    """By one nanosecond, which is not in the statistics of times."""
    lake = tmp_path / "lake"
    msmqwire.write_lake(write_capture(tmp_path / "0.pcap", traffic(9)), lake)
    times = sorted(msmqwire.read_lake(lake).to_table(columns=["time_ns"])["time_ns"].to_pylist())
    assert retain_lake(lake, timedelta(0), now_ns=times[0]).rows_deleted == 0
    assert retain_lake(lake, timedelta(0), now_ns=times[0] + 1).rows_deleted == times.count(times[0])
    assert retain_lake(lake, timedelta(0), now_ns=times[-1]).rows_deleted == len(set(times)) - 2
    assert retain_lake(lake, timedelta(0), now_ns=times[-1] + 1).files_added == 0
    assert named_rows(lake) == delta_rows(lake) == Counter()


def test_a_lake_without_times_has_no_age(tmp_path, captures):
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures, lake, columns=["kind"])
    with pytest.raises(InvalidArgument, match="'time' is not a column of the lake"):
        retain_lake(lake, timedelta(1))
    with pytest.raises(LakeMissing):
        retain_lake(tmp_path / "none", timedelta(1))
    rows = named_rows(lake)
    compact_lake(lake)
    assert named_rows(lake) == rows


@pytest.mark.parametrize("name", ["by_date", "by_queue", "exact"])
def test_rows_of_an_earlier_version(tmp_path, name):
    """Files of its lakes have no parts; those that are written anew have, and their captures may grow."""
    old = old_lake(tmp_path, name)
    lake = old.folder
    upgrade_lake(lake)
    before = named_rows(lake)
    kinds = Counter(msmqwire.read_lake(lake).to_table(columns=["kind"])["kind"].to_pylist())
    done = delete_from_lake(lake, MESSAGES)
    assert done.rows_deleted == kinds["UserMessage"] > 0
    assert sum(named_rows(lake).values()) == sum(before.values()) - done.rows_deleted
    assert {path for part in state_of(lake).parts for path in part.files} <= {
        file.path for file in files_of(lake)
    }
    grown = old.captures[-1]
    grown.write_bytes(grown.read_bytes() + c.pcap_bytes(traffic(3, port=51_000))[24:])
    msmqwire.write_lake(old.captures, lake, **old.options)
    assert named_rows(lake) == delta_rows(lake)
    rows = msmqwire.read_lake(lake).to_table(columns=["kind"])["kind"].to_pylist()
    assert "UserMessage" not in rows
    assert len(rows) > 0


def test_a_damaged_file_is_named(tmp_path, captures):
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures, lake)
    path = lake / files_of(lake)[0].path
    content = path.read_bytes()
    path.write_bytes(content[:-1000] + bytes(1000))
    files = all_files(lake)
    with pytest.raises(LakeDamaged, match=path.name):
        delete_from_lake(lake, "label like '%1'")
    assert all_files(lake) == files


def test_dictionaries_and_other_types_are_compared(tmp_path, captures):
    """Another program may have its own types of texts."""
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures[:1], lake)
    rows = msmqwire.read_lake(lake).to_table(columns=["kind"])
    path = lake / files_of(lake)[0].path
    table = msmqwire.read_lake(lake).to_table().drop(["date"])
    kind = table.schema.get_field_index("kind")
    coded = table.set_column(kind, "kind", table["kind"].dictionary_encode())
    pa.parquet.write_table(coded, path)
    assert delete_from_lake(lake, MESSAGES).rows_deleted == rows["kind"].to_pylist().count("UserMessage")
