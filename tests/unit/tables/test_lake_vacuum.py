"""Files that no version of a lake needs, and those that are none of its business."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

import msmqwire
from msmqwire.errors import InvalidArgument, LakeDamaged, LakeMissing
from msmqwire.tables.lake import compact_lake, delete_from_lake, lake_history, vacuum_lake
from tests.support.capture.killed import killed_at
from tests.support.capture.lakes import (
    all_files,
    delta_rows,
    files_of,
    grown,
    named_rows,
    state_file,
    traffic,
    write_capture,
)

SPLIT = 4000
DAY = timedelta(days=1)
NAME = f"part-{'0' * 32}-0.parquet"


def old(path: Path, content: bytes = b"x", days: float = 3) -> Path:
    """Write a file that is some days old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time.time() - days * 86_400,) * 2)
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    capture = write_capture(tmp_path / "0.pcap", traffic(30))
    msmqwire.write_lake(capture, tmp_path / "lake", split_size=SPLIT)
    return tmp_path / "lake"


def test_only_files_of_ours_go(lake):
    folder = next(lake.glob("date=*"))
    os.utime(state_file(lake), (0, 0))
    stay = [
        old(lake / "README"), old(folder / "README"), old(folder / "part-1.parquet"), old(lake / NAME),
        old(lake / ".git" / NAME), old(lake / "_notes" / NAME), old(folder / ".part" / NAME),
        old(lake / "_msmqwire" / "notes.json"), old(lake / "other=1" / NAME),
        old(lake / "date=2020-01-01" / "deeper" / "kind=x" / NAME),
    ]  # fmt: skip
    young = [
        old(folder / f"part-{'1' * 32}-0.parquet", days=0.5),
        old(lake / "_msmqwire" / f"{1:016x}.json", days=0),
    ]
    go = [
        old(folder / NAME), old(lake / "date=2020-01-01" / "kind=x" / NAME),
        old(lake / "date=2020-01-02" / NAME, b"four"), old(lake / "_msmqwire" / f"{2:016x}.json"),
    ]  # fmt: skip
    rows, files = named_rows(lake), all_files(lake)
    tried = vacuum_lake(lake, DAY, dry_run=True)
    assert all_files(lake) == files
    done = vacuum_lake(lake, DAY)
    assert (done.files_removed, done.bytes_removed) == (tried.files_removed, tried.bytes_removed) == (4, 7)
    assert files - all_files(lake) == {str(path.relative_to(lake)) for path in go}
    assert all(path.exists() for path in [*stay, *young])
    assert not (lake / "date=2020-01-02").exists()
    assert not (lake / "date=2020-01-01" / "kind=x").exists()
    assert named_rows(lake) == delta_rows(lake) == rows
    assert vacuum_lake(lake, DAY).files_removed == 0
    assert lake_history(lake)[0].version == 0  # nothing was committed


def test_files_of_earlier_versions(lake):
    before = {file.path for file in files_of(lake)}
    compact_lake(lake)
    for path in before:
        os.utime(lake / path, (0, 0))
    # They are old, and in the lake until just now: their readers may still be there.
    assert vacuum_lake(lake, DAY).files_removed == 0
    assert msmqwire.read_lake(lake, version=0).count_rows()
    assert vacuum_lake(lake, timedelta(0)).files_removed == len(before)
    assert not before & all_files(lake)
    assert named_rows(lake) == delta_rows(lake)
    with pytest.raises(LakeMissing, match="no longer there"):
        msmqwire.read_lake(lake, version=0)


def test_a_checkpoint_that_forgets_removals(lake):
    """It drops those of a week ago; an age of a month still keeps their files."""
    before = {file.path for file in files_of(lake)}
    compact_lake(lake)
    log = lake / "_delta_log" / f"{1:020}.json"
    past = round((time.time() - 10 * 86_400) * 1000)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "remove" in line:
            line["remove"]["deletionTimestamp"] = past
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] = past
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for path in before:
        os.utime(lake / path, (0, 0))
    DeltaTable(str(lake)).create_checkpoint()
    assert vacuum_lake(lake, timedelta(days=30)).files_removed == 0
    assert vacuum_lake(lake, timedelta(days=9)).files_removed == len(before)
    assert named_rows(lake) == delta_rows(lake)


def test_what_a_killed_writer_has_left(tmp_path):
    growth = grown(tmp_path, SPLIT)
    left = 0
    for step in range(5, 60, 6):
        with killed_at(step):
            msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT)
        needed = {file.path for file in files_of(growth.lake)}
        data = {path for path in all_files(growth.lake) if path.startswith("date=")}
        left += len(data - needed)
        vacuum_lake(growth.lake, timedelta(0))
        assert {path for path in all_files(growth.lake) if path.startswith("date=")} == needed
        assert state_file(growth.lake)
        growth.check_readers(growth.lake)
    assert left
    msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT)
    growth.check_complete(growth.lake)


@pytest.mark.parametrize("dry_run", [False, True])
def test_no_link_is_followed(lake, tmp_path, dry_run):
    elsewhere = old(tmp_path / "elsewhere" / NAME)
    link = lake / "date=2020-01-01"
    link.symlink_to(elsewhere.parent)
    files = all_files(lake)
    with pytest.raises(LakeDamaged, match="link"):
        vacuum_lake(lake, DAY, dry_run=dry_run)
    link.unlink()
    (next(lake.glob("date=*")) / NAME).symlink_to(elsewhere)
    if dry_run:
        assert vacuum_lake(lake, DAY, dry_run=True).files_removed == 0
    else:
        with pytest.raises(LakeDamaged, match="link"):
            vacuum_lake(lake, DAY)
    assert elsewhere.exists()
    assert files <= all_files(lake)


def test_a_log_that_removes_what_is_outside(lake, tmp_path):
    """A log that another user has written names files out of the lake as removed: they stay."""
    outside = old(tmp_path / NAME)
    readme = old(lake / "README")
    delete_from_lake(lake, "label == '1'")
    log = lake / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    removal = next(line["remove"] for line in lines if "remove" in line)
    for path in (f"../{NAME}", str(outside), "README", f"date=1/../../{NAME}"):
        lines.append({"remove": {**removal, "path": path, "deletionTimestamp": 1}})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    vacuum_lake(lake, timedelta(0))
    assert outside.exists()
    assert readme.exists()


def test_wrong_ages_and_lakes(lake, tmp_path):
    with pytest.raises(InvalidArgument, match="not negative"):
        vacuum_lake(lake, -DAY)
    assert vacuum_lake(lake, timedelta.max).files_removed == 0
    with pytest.raises(LakeMissing):
        vacuum_lake(tmp_path / "none", DAY)
    with pytest.raises(LakeMissing):
        lake_history(tmp_path / "none")


def test_the_history(tmp_path):
    """Also of a folder whose name the library can't list, and of commits of other programs."""
    lake = tmp_path / "a#b?c"
    capture = write_capture(tmp_path / "0.pcap", traffic(30))
    msmqwire.write_lake(capture, lake, split_size=SPLIT)
    rows = delete_from_lake(lake, "label == '1'").rows_deleted
    DeltaTable(str(lake)).optimize.compact()
    history = lake_history(lake)
    assert [(one.version, one.operation) for one in history] == [(2, "OPTIMIZE"), (1, "delete"), (0, "write")]
    assert history[1].figures["rows_deleted"] == rows == 1
    assert history[2].figures["captures_read"] == 1
    assert [one.version for one in sorted(history, key=lambda one: one.time)] == [0, 1, 2]
    assert json.loads(json.dumps(history[1].to_json()))["time"].endswith("Z")
    log = lake / "_delta_log" / f"{1:020}.json"
    content = log.read_text()
    log.write_text(content.replace('"msmqwire":{"operation":"delete"', '"msmqwire":{"operation":1'))
    assert lake_history(lake)[1].operation == "WRITE"
    first = next(line for line in content.splitlines() if "commitInfo" in line)
    for wrong in ('{"commitInfo":', '{"commitInfo":1}'):
        log.write_text(content.replace(first, wrong))
        with pytest.raises(LakeDamaged):
            lake_history(lake)
