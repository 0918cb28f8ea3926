"""Lakes of an earlier version made tables: each row once, in the files that were there."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

import msmqwire
from msmqwire.durable import acquire_lock
from msmqwire.errors import LakeDamaged, LakeMismatch, LakeMissing, UnsupportedStore
from msmqwire.tables.columns import FINDING_IDS
from msmqwire.tables.expression_parser import parse_expression
from msmqwire.tables.lake import LakeUpgrade, compact_lake, delete_from_lake, upgrade, upgrade_lake
from msmqwire.tables.lake.manifest import FORMAT, UPGRADING
from tests.support import captures as c
from tests.support.capture.killed import killed_at
from tests.support.capture.lakes import (
    DAY_NS,
    delta_rows,
    expected_rows,
    files_of,
    named_rows,
    rows_of,
    state_of,
    traffic,
    write_capture,
)
from tests.support.capture.old_lakes import NAMES, OldLake, old_lake
from tests.support.installed import library
from tests.support.paths import ROOT

ROWS = 28


@pytest.fixture
def old(tmp_path: Path) -> OldLake:
    return old_lake(tmp_path, "interrupted")


def numbered_rows(table: pa.Table) -> Counter[str]:
    """The rows with the numbers of frames and streams."""
    names = ["file", "frame", "stream", "label", "sent_time", "message_id", "body"]
    rows = table.select(names).to_pylist()  # the captures were elsewhere before
    return Counter(repr({**row, "file": os.path.basename(row["file"])}) for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_for_all_readers(tmp_path: Path, name: str) -> None:
    old = old_lake(tmp_path, name)
    lake, files = old.folder, {path.stat().st_ino for path in old.folder.rglob("*.parquet")}
    assert upgrade_lake(lake) == LakeUpgrade(
        upgraded=True, rows=ROWS, files=len(DeltaTable(lake).file_uris()), version=0
    )
    expected = expected_rows(old.captures)
    read = msmqwire.read_lake(lake).to_table()
    assert read.num_rows == expected.total() == ROWS
    if name == "exact":
        assert numbered_rows(read) == numbered_rows(msmqwire.read_capture([str(p) for p in old.captures]))
    else:
        assert rows_of(read) == expected
        assert delta_rows(lake) == expected
        assert rows_of(DeltaTable(lake).to_pyarrow_table()) == expected
        frame = DeltaTable(lake).to_pandas(types_mapper=library("pandas").ArrowDtype)
        assert rows_of(pa.Table.from_pandas(frame, preserve_index=False)) == expected
        found = from_files(lake)
        for field in read.schema:  # the files have no columns that came later
            if field.name not in found.column_names:
                found = found.append_column(field, pa.nulls(ROWS, field.type))
        assert rows_of(found) == expected
    assert sorted(path.name for path in lake.iterdir() if path.name[0] == "_") == ["_delta_log", "_msmqwire"]
    if name != "interrupted":
        assert {path.stat().st_ino for path in lake.rglob("*.parquet")} == files
    run = msmqwire.write_lake(old.captures, lake, **old.options)
    assert (run.captures_read, run.captures_unchanged, run.version) == (0, 3, 0)


def from_files(lake: Path) -> pa.Table:
    """The rows for DuckDB, by the list of files."""
    with library("duckdb").connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        files = DeltaTable(lake).file_uris()
        return db.read_parquet(files, hive_partitioning=True, union_by_name=True).to_arrow_table()


@pytest.mark.parametrize("name", NAMES)
def test_refused_before_and_unchanged(tmp_path: Path, name: str) -> None:
    old = old_lake(tmp_path, name, "a lake's")
    before = old.contents()
    for use in (msmqwire.read_lake, partial(msmqwire.write_lake, old.captures)):
        with pytest.raises(LakeMismatch) as caught:
            use(old.folder)
        command = caught.value.why.partition(" by ")[2]
        assert shlex.split(command) == ["msmqwire", "lake", "--out", str(old.folder), "--upgrade"]
        assert "\n" not in str(caught.value)
    old.folder.chmod(0o777)
    files = sum(len(part["files"]) for part in old.data()["parts"])
    assert upgrade_lake(old.folder, dry_run=True) == LakeUpgrade(
        upgraded=True, rows=ROWS, files=files, version=None, dry_run=True
    )
    assert old.contents() == before
    assert old.folder.stat().st_mode & 0o777 == 0o777


@pytest.mark.parametrize("name", NAMES)
def test_captures_grow_and_are_replaced(tmp_path: Path, name: str) -> None:
    old = old_lake(tmp_path, name)
    upgrade_lake(old.folder)
    before = {file for part in state_of(old.folder).parts for file in part.files}
    with old.captures[0].open("ab") as file:
        file.write(c.pcap_bytes(traffic(3, port=50_020, start_ns=c.START_NS + DAY_NS))[24:])
    done = msmqwire.write_lake(old.captures, old.folder, **old.options)
    assert 0 < done.rows_replaced < ROWS
    check_rows(old)
    write_capture(old.captures[1], traffic(5, port=50_021))
    assert msmqwire.write_lake(old.captures, old.folder, **old.options).rows_replaced > 0
    check_rows(old)
    after = {file for part in state_of(old.folder).parts for file in part.files}
    assert before > after
    assert after <= {file.path for file in files_of(old.folder)}


def check_rows(old: OldLake) -> None:
    if old.options.get("splits") == "exact":
        read = msmqwire.read_capture([str(path) for path in old.captures])
        assert numbered_rows(msmqwire.read_lake(old.folder).to_table()) == numbered_rows(read)
    else:
        assert named_rows(old.folder) == delta_rows(old.folder) == expected_rows(old.captures)


@pytest.mark.parametrize("name", ["by_date", "by_queue"])
def test_maintenance_of_old_files(tmp_path: Path, name: str) -> None:
    """Their rows have the numbers of their parts once they are written anew: then these are read again."""
    old = old_lake(tmp_path, name)
    upgrade_lake(old.folder)
    parts = state_of(old.folder).parts
    deleted = delete_from_lake(old.folder, "label == '1'").rows_deleted
    assert deleted > 0
    assert compact_lake(old.folder).files_removed > 1
    assert named_rows(old.folder).total() == ROWS - deleted
    numbers = msmqwire.read_lake(old.folder).to_table(columns=["part"])["part"].unique().to_pylist()
    assert {part.number for part in parts if part.files} >= set(numbers) - {None}
    with old.captures[0].open("ab") as file:
        file.write(c.pcap_bytes(traffic(3, port=50_020, start_ns=c.START_NS + DAY_NS))[24:])
    assert msmqwire.write_lake(old.captures, old.folder, **old.options).rows_replaced > 0
    expected = expected_rows(old.captures, where=[parse_expression("label is null or label != '1'")])
    assert named_rows(old.folder) == delta_rows(old.folder) == expected


def test_killed_at_any_step(tmp_path: Path) -> None:
    old = old_lake(tmp_path / "first", "interrupted")
    expected, before, done, seen = expected_rows(old.captures), 0, False, set[bool]()
    while not done:
        before += 1
        lake = tmp_path / f"lake-{before}"
        shutil.copytree(old.folder, lake)
        with killed_at(before):
            upgrade_lake(lake)
            done = True
        try:
            assert named_rows(lake) == expected
            seen.add(True)
        except LakeMismatch:
            seen.add(False)
        with killed_at(before // 2):  # so is the next one
            upgrade_lake(lake)
        upgrade_lake(lake)
        assert named_rows(lake) == delta_rows(lake) == expected
        assert not (lake / "_lake").exists()
        assert upgrade_lake(lake) == LakeUpgrade(upgraded=False, rows=0, files=0, version=0)
        assert msmqwire.write_lake(old.captures, lake, **old.options).captures_read == 0
        shutil.rmtree(lake)
    assert before > 30
    assert seen == {False, True}


PROGRAM = """
import sys
from msmqwire.tables.lake import upgrade_lake

print(flush=True)
upgrade_lake(sys.argv[1])
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    rng = random.Random(1)
    for number in range(6):
        old = old_lake(tmp_path / str(number), "interrupted")
        command = [sys.executable, "-c", PROGRAM, str(old.folder)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0, 0.3))  # the moment of the kill is to be any
            process.send_signal(signal.SIGKILL)
        upgrade_lake(old.folder)
        assert named_rows(old.folder) == expected_rows(old.captures)
        assert not (old.folder / "_lake").exists()


def test_earlier_versions_refuse_it_first(old: OldLake) -> None:
    """The format is changed before anything else is: nobody adds rows that would not come along."""
    for before in range(1, 20):
        with killed_at(before):
            upgrade_lake(old.folder)
        if old.data()["msmqwire_lake"] != FORMAT:
            break
        assert (old.folder / "_lake" / "staging").exists()
    assert old.data()["msmqwire_lake"] == UPGRADING
    assert old.data()["pending"]
    assert not (old.folder / "_delta_log").exists()


def test_an_earlier_version_that_writes(old: OldLake) -> None:
    lock = acquire_lock(old.folder / "_lake" / "lock")
    assert lock is not None
    with closing(lock):
        before = old.contents()
        with pytest.raises(LakeMismatch, match="wait until that ends"):
            upgrade_lake(old.folder)
        assert old.contents() == before
    assert upgrade_lake(old.folder).upgraded


@pytest.mark.parametrize(
    "name", ["notes", "staging/notes", f"staging/{'0' * 32}/notes", f"staging/{'1' * 32}"]
)
def test_strange_entries_stay_and_are_named(old: OldLake, name: str) -> None:
    path = old.folder / "_lake" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    for _ in range(2):
        assert upgrade_lake(old.folder).left == (f"_lake/{name}",)
        assert old.data()["msmqwire_lake"] == UPGRADING
        assert path.read_text() == "mine"
    assert msmqwire.write_lake(old.captures, old.folder, **old.options).captures_read == 0
    path.unlink()
    assert upgrade_lake(old.folder).left == ()
    assert not (old.folder / "_lake").exists()


def first_file(data: Any) -> Any:
    return data["parts"][0]["files"][0]


def part_of(data: Any, **values: Any) -> None:
    first_file(data).update(values)


FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "format": (lambda data: data.update(msmqwire_lake=3), "format 3"),
    "kind": (lambda data: data.update(parts={}), "no list"),
    "by": (lambda data: data["settings"].update(by="src"), "no key of partitions"),
    "columns": (lambda data: data["settings"].update(columns=["colour"]), "no such columns"),
    "outside": (lambda data: part_of(data, path="date=x/../../x"), "not a path"),
    "elsewhere": (lambda data: part_of(data, keys={"date": "2001-01-01"}), "where its keys lead"),
    "keys": (lambda data: part_of(data, keys={"date": "2023-11-14", "kind": "x"}), "those of the lake"),
    "date": (lambda data: part_of(data, keys={"date": "today"}), "isoformat"),
    "twice": (lambda data: data["parts"].append(data["parts"][0]), "named twice"),
    "removed": (lambda data: data["pending"]["removals"].append(first_file(data)["path"]), "named twice"),
    "moved": (lambda data: data["pending"]["moves"][0].__setitem__(0, "/etc/passwd"), "not a path"),
    "rows": (lambda data: part_of(data, rows=1), "another file"),
    "size": (lambda data: part_of(data, size=1), "another file"),
    "missing": (lambda data: data.update(pending=None), "missing"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_manifest_changes_nothing(old: OldLake, fault: str) -> None:
    data = old.data()
    change, why = FAULTS[fault]
    change(data)
    old.manifest.write_text(json.dumps(data))
    (old.folder / "_lake" / "lock").touch(0o600)
    before = old.contents()
    with pytest.raises(LakeDamaged, match=why) as caught:
        upgrade_lake(old.folder)
    assert "\n" not in str(caught.value)
    assert old.contents() == before


def test_a_column_of_another_type(old: OldLake) -> None:
    path = next(old.folder.glob("date=*/*.parquet"))
    data = old.data()
    file = next(file for part in data["parts"] for file in part["files"] if old.folder / file["path"] == path)
    table = parquet.read_table(path, partitioning=None)
    place = table.schema.get_field_index("size")
    parquet.write_table(table.set_column(place, "size", table["size"].cast(pa.string())), path)
    file["size"] = path.stat().st_size
    old.manifest.write_text(json.dumps(data))
    with pytest.raises(LakeMismatch, match="the column size is string, not int"):
        upgrade_lake(old.folder)
    assert old.data() == data


@pytest.mark.parametrize("link", ["date=2023-11-15", "_lake/staging", "_lake/manifest.json", "_lake"])
def test_no_link_is_followed(old: OldLake, tmp_path: Path, link: str) -> None:
    outside, path = tmp_path / "outside", old.folder / link
    if path.exists():
        path.rename(outside)
    else:
        outside.mkdir()
    path.symlink_to(outside)
    before = sorted(outside.rglob("*"))
    with pytest.raises(LakeDamaged) as caught:
        upgrade_lake(old.folder)
    assert caught.value.file == str(path)
    assert sorted(outside.rglob("*")) == before


def test_a_link_made_meanwhile_is_not_followed(
    old: OldLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes after the entries were looked at: the staged files stay where they are."""
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.setattr(
        upgrade, "replace_file", lambda *_, **__: (old.folder / "date=2023-11-15").symlink_to(outside)
    )
    with pytest.raises(LakeDamaged):
        upgrade_lake(old.folder)
    assert not list(outside.iterdir())
    monkeypatch.undo()
    (old.folder / "date=2023-11-15").unlink()
    upgrade_lake(old.folder)
    check_rows(old)


def test_settings_are_kept(old: OldLake) -> None:
    data, columns = old.data(), ["label", "kind"]
    data["settings"] |= {"columns": columns, "body_limit": 9, "ports": [1801]}
    old.manifest.write_text(json.dumps(data))
    upgrade_lake(old.folder)
    assert state_of(old.folder).settings == {**data["settings"], "findings": False}
    assert msmqwire.read_lake(old.folder).schema.names == ["label", "kind", "part", "date"]
    with pytest.raises(LakeMismatch, match="columns"):
        msmqwire.write_lake(old.captures, old.folder, columns=["label"], body_limit=9, ports=[1801])


@pytest.mark.parametrize("finds", [False, True])
def test_all_columns_are_all_of_later_versions(old: OldLake, *, finds: bool) -> None:
    data = old.data()
    data["settings"]["columns"] += [FINDING_IDS] if finds else []
    old.manifest.write_text(json.dumps(data))
    upgrade_lake(old.folder)
    state = state_of(old.folder)
    assert (state.settings["columns"], state.settings["findings"]) == (None, finds)
    assert state.commit == data["commit"] == 2
    assert [entry.since for entry in state.captures.values()] == [1, 2, 2]
    assert len({part.number for part in state.parts}) == len(state.parts) == len(data["parts"])


def test_what_is_no_old_lake(old: OldLake, tmp_path: Path) -> None:
    with pytest.raises(LakeMissing, match="no manifest and no log"):
        upgrade_lake(tmp_path / "none")
    with pytest.raises(UnsupportedStore, match="local folders"):
        upgrade_lake("s3://bucket/lake")
    msmqwire.write_lake(old.captures, tmp_path / "new")
    assert upgrade_lake(tmp_path / "new") == LakeUpgrade(upgraded=False, rows=0, files=0, version=0)


def test_tables_that_the_upgrade_did_not_make(old: OldLake, tmp_path: Path) -> None:
    before = old.contents()
    write_deltalake(tmp_path / "other", pa.table({"x": [1]}))
    shutil.move(tmp_path / "other" / "_delta_log", old.folder)
    with pytest.raises(LakeMismatch, match="somebody else's"):
        upgrade_lake(old.folder)
    shutil.rmtree(old.folder / "_delta_log")
    msmqwire.write_lake(old.captures, tmp_path / "new")
    shutil.move(old.folder / "_lake", tmp_path / "new")
    with pytest.raises(LakeMismatch, match="move _lake away"):
        upgrade_lake(tmp_path / "new")
    assert (tmp_path / "new" / "_lake" / "manifest.json").read_bytes() == before["_lake/manifest.json"][0]
