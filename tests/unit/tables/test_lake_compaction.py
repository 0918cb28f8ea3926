"""Lakes with fewer files: the same rows, sorted by time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import msmqwire
from msmqwire.capture.record import NO_TIME
from msmqwire.errors import InvalidArgument, LakeDamaged, LakeMissing
from msmqwire.tables.lake import (
    compact_lake,
    delete_from_lake,
    lake_history,
    merging,
    retain_lake,
    sorted_files,
    upgrade_lake,
    vacuum_lake,
)
from msmqwire.tables.lake.state import PART_FILE
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
"""Bytes of a part, so that a capture has several."""
QUEUES = (r"OS:alpha\private$\orders", r"TCP:1.2.3.4\it" 's "q"')


def times(path: Path) -> np.ndarray:
    """The times of a file by which it is sorted."""
    return pq.read_table(path, columns=["time_ns"])["time_ns"].fill_null(NO_TIME).to_numpy()


def check_order(lake: Path) -> None:
    """Rows are sorted in each partition, over all its files, and no two files overlap."""
    partitions: dict[tuple, list[np.ndarray]] = {}
    for file in files_of(lake):
        partitions.setdefault(tuple(file.keys.values()), []).append(times(lake / file.path))
    for found in partitions.values():
        found.sort(key=lambda one: (one[0], one[-1]))
        joined = np.concatenate(found)
        assert (joined[:-1] <= joined[1:]).all()


def interleaved(folder: Path, count: int = 4, size: int = 40) -> list[Path]:
    """Captures of the same time, with packets out of order, over midnight."""
    return [
        write_capture(
            folder / f"{number}.pcap",
            c.merged(
                traffic(size, port=50_000 + number, queues=QUEUES, disordered=True),
                traffic(9, port=51_000 + number, start_ns=c.START_NS + DAY_NS + number * 1000, queues=QUEUES),
            ),
        )
        for number in range(count)
    ]


def lake_of(captures: Sequence[Path], lake: Path, **options) -> Counter[str]:
    """Make a lake by a run for each capture; return its rows."""
    for number in range(len(captures)):
        msmqwire.write_lake(captures[: number + 1], lake, split_size=SMALL, **options)
    return named_rows(lake)


@pytest.mark.parametrize("by", [None, "kind", "destination"])
def test_the_same_rows_sorted_in_few_files(tmp_path, by):
    lake = tmp_path / "lake"
    rows = lake_of(interleaved(tmp_path), lake, by=by)
    before = files_of(lake)
    seen = list[int]()
    done = compact_lake(lake, progress=seen.append)
    assert (done.files_removed, done.bytes_removed) == (len(before), sum(file.size for file in before))
    after = files_of(lake)
    assert (done.files_added, done.bytes_added) == (len(after), sum(file.size for file in after))
    assert len({tuple(file.keys.values()) for file in before}) == len(after) < len(before) / 3
    assert named_rows(lake) == delta_rows(lake) == rows
    check_order(lake)
    assert abs(sum(seen) - done.bytes_removed) < 200 * len(before)
    files = all_files(lake)
    assert compact_lake(lake).version == done.version  # there is nothing to do
    assert all_files(lake) == files
    assert lake_history(lake)[0].operation == "compact"


@pytest.mark.parametrize("open_bytes", [1, 1 << 30])
def test_files_of_many_row_groups(tmp_path, monkeypatch, open_bytes):
    """Each is read when its time has come; rows go on up to the least of the last times."""
    for module in (sorted_files, merging):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", 7)
    captures = [
        write_capture(
            tmp_path / f"{n}.pcap", traffic(30, port=50_000 + n, start_ns=c.START_NS + 2_000_001 * n)
        )
        for n in range(3)
    ]
    lake = tmp_path / "lake"
    for number in range(3):
        msmqwire.write_lake(captures[: number + 1], lake)
    assert max(pq.ParquetFile(lake / file.path).num_row_groups for file in files_of(lake)) > 3
    rows = named_rows(lake)
    monkeypatch.setattr(merging, "OPEN_BYTES_MAX", open_bytes)
    compact_lake(lake)
    assert len(files_of(lake)) == 1
    assert named_rows(lake) == rows
    check_order(lake)


def test_compaction_changes_no_data_for_streams(tmp_path):
    lake = tmp_path / "lake"
    lake_of(interleaved(tmp_path, 2), lake)
    version = compact_lake(lake).version
    log = (lake / "_delta_log" / f"{version:020}.json").read_text()
    assert '"dataChange":true' not in log
    assert log.count('"dataChange":false') > 2


def test_large_files_that_overlap_nothing_stay(tmp_path):
    lake = tmp_path / "lake"
    captures = [
        write_capture(tmp_path / f"{n}.pcap", traffic(200, port=50_000 + n, start_ns=c.START_NS + n * 10**11))
        for n in range(3)
    ]
    for number in range(3):
        msmqwire.write_lake(captures[: number + 1], lake)
    large = min(file.size for file in files_of(lake))
    assert compact_lake(lake, target_size=large).files_removed == 0
    before = {file.path for file in files_of(lake)}
    # One more, in the time of the second: these two are merged, and the others stay.
    captures.append(write_capture(tmp_path / "3.pcap", traffic(2, port=50_009, start_ns=c.START_NS + 10**11)))
    msmqwire.write_lake(captures, lake)
    rows = named_rows(lake)
    done = compact_lake(lake, target_size=large)
    assert done.files_removed <= 3
    assert len(before & {file.path for file in files_of(lake)}) >= 1
    assert named_rows(lake) == rows
    check_order(lake)


@nightly
def test_the_size_of_files(tmp_path):
    lake = tmp_path / "lake"
    rows = lake_of(interleaved(tmp_path, 2, 1000), lake)
    compact_lake(lake, target_size=40_000)
    sizes = [file.size for file in files_of(lake) if file.keys["date"] == "2023-11-14"]
    assert len(sizes) > 2
    assert sum(size < 40_000 for size in sizes) <= 1
    assert max(sizes) < 160_000
    assert named_rows(lake) == rows
    check_order(lake)
    assert compact_lake(lake, target_size=40_000).files_removed == 0
    for wrong in (0, -1):
        with pytest.raises(InvalidArgument, match="1 or more"):
            compact_lake(lake, target_size=wrong)


def test_more_overlaps_than_fit_into_memory(tmp_path, monkeypatch):
    """Some are merged into files first, which are removed afterwards."""
    lake = tmp_path / "lake"
    rows = lake_of(interleaved(tmp_path, 5), lake)
    monkeypatch.setattr(merging, "OPEN_BYTES_MAX", 100_000)
    files = len(list(lake.rglob("part-*.parquet")))
    done = compact_lake(lake)
    assert len(list(lake.rglob("part-*.parquet"))) == files + done.files_added
    assert named_rows(lake) == delta_rows(lake) == rows
    check_order(lake)


def test_rows_of_one_instant(tmp_path):
    """They are in files of about the size that was asked for, which overlap in that instant alone."""
    lake, captures = tmp_path / "lake", []
    for number in range(3):
        frames = traffic(30, port=50_000 + number)
        same = [replace(frame, time_ns=c.START_NS) for frame in frames]
        captures.append(write_capture(tmp_path / f"{number}.pcap", same))
        msmqwire.write_lake(captures, lake, split_size=SMALL)
    rows = named_rows(lake)
    compact_lake(lake, target_size=10_000)
    assert named_rows(lake) == rows
    check_order(lake)
    assert compact_lake(lake, target_size=10_000).files_removed == 0


def of_another_program(lake: Path, rows: pa.Table) -> None:
    """Add rows as another writer of Delta tables does."""
    library("polars").from_arrow(rows).write_delta(
        str(lake), mode="append", delta_write_options={"schema_mode": "merge"}
    )


def test_files_of_another_program(tmp_path):
    """They have other names, are not sorted, lack columns and have times without nanoseconds."""
    lake = tmp_path / "lake"
    lake_of(interleaved(tmp_path, 2), lake)
    table = msmqwire.read_lake(lake).to_table()
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    of_another_program(lake, mixed.select(["time", "kind", "label", "date"]))
    of_another_program(lake, mixed.slice(0, 5).select(["kind", "date"]))
    rows = named_rows(lake)
    assert sum(rows.values()) == 2 * table.num_rows + 5
    compact_lake(lake)
    assert named_rows(lake) == delta_rows(lake) == rows
    assert all(PART_FILE.fullmatch(file.path.rpartition("/")[2]) for file in files_of(lake))
    found = msmqwire.read_lake(lake).to_table()
    assert found["part"].null_count == table.num_rows + 5
    for date in pc.unique(found["date"]):
        values = found.filter(pc.equal(found["date"], date))["time"].cast(pa.int64())
        by_time = values.fill_null(NO_TIME).to_numpy()
        assert (by_time[:-1] <= by_time[1:]).all()
    assert compact_lake(lake).files_removed == 0
    # Parts are still read again, in the files that they share with these rows.
    msmqwire.write_lake(sorted(tmp_path.glob("*.pcap")), lake, split_size=SMALL)


@pytest.mark.parametrize("name", ["by_date", "by_queue", "exact"])
def test_files_of_an_earlier_version(tmp_path, name):
    """They have no column of parts: it is filled, and the state no longer names them."""
    lake = old_lake(tmp_path, name).folder
    upgrade_lake(lake)
    rows = named_rows(lake)
    named = {path: part.number for part in state_of(lake).parts for path in part.files}
    assert named
    done = compact_lake(lake)
    assert done.files_removed
    assert named_rows(lake) == delta_rows(lake) == rows
    left = {path for part in state_of(lake).parts for path in part.files}
    assert left == set(named) & {file.path for file in files_of(lake)}
    numbers = Counter(msmqwire.read_lake(lake).to_table(columns=["part"])["part"].to_pylist())
    assert set(numbers) - {None} <= set(named.values())
    check_order(lake)


def test_a_damaged_file_is_named_and_nothing_changes(tmp_path):
    lake = tmp_path / "lake"
    lake_of(interleaved(tmp_path, 2), lake)
    path = lake / files_of(lake)[0].path
    content = bytearray(path.read_bytes())
    content[10:2000] = bytes(1990)
    path.write_bytes(content)
    files = all_files(lake)
    with pytest.raises(LakeDamaged, match=path.name):
        compact_lake(lake)
    assert all_files(lake) == files
    path.unlink()
    with pytest.raises(LakeDamaged, match=path.name):
        compact_lake(lake)
    with pytest.raises(LakeMissing, match="there is no lake"):
        compact_lake(tmp_path / "none")


DELETED = (
    "kind == 'UserMessage' and label like '1%'",
    "kind == 'EstablishConnection'",
    "src_port in (50001, 50003)",
    "label == '3' or message_id > 30",
    "destination contains 'it'",
)


OPERATIONS = ("write", "grow", "compact", "delete", "retain", "vacuum")


@pytest.mark.parametrize("seed", range(6))
def test_operations_in_any_order(tmp_path, seed):
    """Whatever is done to a lake, it has the rows of its captures without those that were deleted."""
    rng = random.Random(seed)
    lake, by = tmp_path / "lake", rng.choice([None, "kind", "destination"])
    frames = [
        traffic(
            rng.randrange(4, 30), port=50_000 + n, queues=QUEUES, disordered=rng.random() < 0.5,
            start_ns=c.START_NS + rng.randrange(0, 2) * DAY_NS + n * 1000,
        )
        for n in range(5)
    ]  # fmt: skip
    sizes = [rng.randrange(3, len(one)) for one in frames]
    captures = [write_capture(tmp_path / f"{n}.pcap", one[: sizes[n]]) for n, one in enumerate(frames)]
    deleted: dict[Path, list[str]] = {}
    known = 0

    def expected() -> Counter[str]:
        rows = Counter[str]()
        for path, conditions in deleted.items():
            rows += expected_rows([path])
            if conditions:
                rows -= expected_rows([path], where=" or ".join(f"({one})" for one in conditions))
        return rows

    for _ in range(14):
        operation = rng.choice(OPERATIONS) if known else "write"
        if operation == "write":
            known = min(known + 1, len(captures))
        if operation == "grow":
            grown = rng.randrange(known)
            sizes[grown] = min(sizes[grown] + rng.randrange(1, 9), len(frames[grown]))
            write_capture(captures[grown], frames[grown][: sizes[grown]])
        if operation in ("write", "grow"):
            msmqwire.write_lake(captures[:known], lake, by=by, split_size=SMALL)
            for path in captures[:known]:
                deleted.setdefault(path, [])
        before = expected()
        if operation == "compact":
            compact_lake(lake, target_size=rng.choice([1, 30_000, 1 << 30]))
            check_order(lake)
        if operation in ("delete", "retain"):
            if operation == "delete":
                condition = rng.choice(DELETED)
                done = delete_from_lake(lake, condition)
            else:
                before_ns = c.START_NS + rng.randrange(10**7)
                condition = f"time < '{before_ns // 10**9}.{before_ns % 10**9:09}'"
                done = retain_lake(lake, timedelta(seconds=1), now_ns=before_ns + 10**9)
            if done.rows_deleted:
                for conditions in deleted.values():
                    conditions.append(condition)
            assert sum(before.values()) - sum(expected().values()) == done.rows_deleted
        if operation == "vacuum":
            vacuum_lake(lake, timedelta(0))
            needed = {file.path for file in files_of(lake)}
            assert {one for one in all_files(lake) if one.startswith("date=")} == needed
        assert named_rows(lake) == expected(), operation
    assert delta_rows(lake) == expected()
