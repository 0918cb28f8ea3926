"""The maintenance of a lake that is killed at each of its steps, and beside a writer in another process."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import LakeError
from msmqwire.tables.lake import compact_lake, delete_from_lake, lake_history, retain_lake, vacuum_lake
from msmqwire.tables.lake.delta_errors import Refused
from msmqwire.tables.lake.table import LakeTable
from tests.support import captures as c
from tests.support.capture.killed import killed_at
from tests.support.capture.lakes import (
    DAY_NS,
    all_files,
    delta_rows,
    expected_rows,
    files_of,
    named_rows,
    traffic,
    write_capture,
)
from tests.support.nightly import STRIDE
from tests.support.paths import ROOT
from tests.support.patience import limit

SPLIT = 1 << 30
EDGE_NS = c.START_NS + 15 * 10**6
WHERE = "kind == 'UserMessage' and label like '1%'"


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    return [
        write_capture(
            tmp_path / f"{n}.pcap",
            c.merged(
                traffic(12, port=50_000 + n, disordered=True),
                traffic(3, port=51_000 + n, start_ns=c.START_NS + DAY_NS),
            ),
        )
        for n in range(3)
    ]


@pytest.fixture
def lake(tmp_path: Path, captures: list[Path]) -> Path:
    for number in range(len(captures)):
        msmqwire.write_lake(captures[: number + 1], tmp_path / "before", split_size=SPLIT)
    return tmp_path / "before"


def vacuumed(lake: Path) -> None:
    compact_lake(lake)
    vacuum_lake(lake, timedelta(0))


def retained(lake: Path) -> None:
    retain_lake(lake, timedelta(0), now_ns=EDGE_NS)


OPERATIONS = {
    "compact": compact_lake,
    "delete": lambda lake: delete_from_lake(lake, WHERE),
    "retain": retained,
    "vacuum": vacuumed,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_killed_at_any_step(lake, tmp_path, captures, name):
    operation = OPERATIONS[name]
    old = named_rows(lake)
    shutil.copytree(lake, tmp_path / "made")
    operation(tmp_path / "made")
    new, shape = named_rows(tmp_path / "made"), len(files_of(tmp_path / "made"))
    before = {file.path for file in files_of(lake)}
    assert (new == old) == (name in ("compact", "vacuum"))
    step, done, seen = 0, False, set[bool]()
    while not done:
        step += STRIDE
        killed = tmp_path / f"lake-{step}"
        shutil.copytree(lake, killed)
        with killed_at(step):
            operation(killed)
            done = True
        rows = named_rows(killed)
        assert rows in (old, new)
        assert delta_rows(killed) == rows
        seen.add({file.path for file in files_of(killed)} == before)
        operation(killed)  # the next one ends what there is to do
        assert named_rows(killed) == delta_rows(killed) == new
        assert len(files_of(killed)) == shape
        vacuum_lake(killed, timedelta(0))
        assert {path for path in all_files(killed) if path.startswith("date=")} == {
            file.path for file in files_of(killed)
        }
        assert msmqwire.write_lake(captures, killed, split_size=SPLIT).rows == 0
        shutil.rmtree(killed)
    assert step > 9
    assert seen == {False, True}


@pytest.mark.parametrize("name", ["compact", "delete", "retain"])
def test_an_error_leaves_the_lake_as_it_was(lake, monkeypatch, name):
    files = all_files(lake)

    def failing(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("msmqwire.tables.lake.sorted_files.DataFile.close", failing)
    with pytest.raises(OSError, match="No space"):
        OPERATIONS[name](lake)
    assert all_files(lake) == files


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int = 1) -> None:
    """Let somebody else act just before the next commits."""
    commit, left = LakeTable.commit, times

    def call(self: LakeTable, change: Any) -> LakeTable:
        nonlocal left
        if left and change.operation in ("compact", "delete", "retain"):
            left -= 1
            act()
        return commit(self, change)

    monkeypatch.setattr(LakeTable, "commit", call)


@pytest.mark.parametrize("name", ["compact", "delete", "retain"])
def test_a_writer_that_comes_between(lake, captures, tmp_path, monkeypatch, name):
    """The commit is refused and planned again; what was written already is used, where it holds."""
    captures.append(write_capture(tmp_path / "3.pcap", traffic(13, port=50_009)))
    before_commit(monkeypatch, lambda: msmqwire.write_lake(captures, lake, split_size=SPLIT))
    OPERATIONS[name](lake)
    assert named_rows(lake) == delta_rows(lake)
    expected = expected_rows(captures)
    if name == "delete":  # what came between was there before the commit
        expected -= expected_rows(captures, where=WHERE)
    if name == "retain":
        expected -= expected_rows(captures, where=f"time < '{EDGE_NS // 10**9}.{EDGE_NS % 10**9:09}'")
    assert named_rows(lake) == expected
    assert [one.operation for one in lake_history(lake)[:2]] == [name, "write"]
    vacuum_lake(lake, timedelta(0))
    data = {path for path in all_files(lake) if path.startswith("date=")}
    assert data == {file.path for file in files_of(lake)}


def test_a_delete_that_comes_before_a_compaction(lake, captures, monkeypatch):
    """Its rows do not come back with what was merged of the files from before."""
    before_commit(monkeypatch, lambda: delete_from_lake(lake, WHERE))
    compact_lake(lake)
    monkeypatch.undo()
    assert named_rows(lake) == expected_rows(captures) - expected_rows(captures, where=WHERE)
    vacuum_lake(lake, timedelta(0))
    data = {path for path in all_files(lake) if path.startswith("date=")}
    assert data == {file.path for file in files_of(lake)}


def test_a_commit_that_is_refused_for_ever(lake, monkeypatch):
    files = all_files(lake)

    def refusing(*_arguments: Any) -> None:
        raise Refused("no reason")

    monkeypatch.setattr(LakeTable, "commit", refusing)
    for operation in (compact_lake, OPERATIONS["delete"], retained):
        with pytest.raises(LakeError, match="no reason"):
            operation(lake)
        assert all_files(lake) == files


WRITER = """
import sys
import msmqwire

if __name__ == "__main__":
    for count in range(1, len(sys.argv) - 1):
        msmqwire.write_lake(sys.argv[2 : 2 + count], sys.argv[1], split_size=4000)
"""
KEEPER = """
import sys, time
from datetime import timedelta
from msmqwire.tables.lake import compact_lake, vacuum_lake

if __name__ == "__main__":
    while True:
        compact_lake(sys.argv[1], target_size=1 << 20)
        vacuum_lake(sys.argv[1], timedelta(hours=1))
        print("once", flush=True)
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_writer_and_a_keeper_in_two_processes(tmp_path, is_killed):
    captures = [write_capture(tmp_path / f"{n}.pcap", traffic(9, port=50_000 + n)) for n in range(12)]
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures[:1], lake, split_size=4000)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    rng, rounds = random.Random(1), 0

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(lake)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment,
        )  # fmt: skip

    keeper = start()
    command = [sys.executable, "-c", WRITER, str(lake), *map(str, captures)]
    try:
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as writer:
            while is_killed and writer.poll() is None:
                keeper.stdout.readline()
                time.sleep(rng.uniform(0, 0.3))  # the moment of the kill is to be any
                keeper.send_signal(signal.SIGKILL)
                keeper.communicate()
                keeper, rounds = start(), rounds + 1
            _, errors = writer.communicate(timeout=limit(300))
            assert (writer.returncode, errors) == (0, b"")
        if not is_killed:
            assert keeper.poll() is None
            keeper.stdout.readline()
    finally:
        keeper.kill()
        _, errors = keeper.communicate()
    assert errors == b""
    compact_lake(lake)
    assert named_rows(lake) == delta_rows(lake) == expected_rows(captures)
    operations = Counter(one.operation for one in lake_history(lake))
    assert operations["write"] == len(captures)
    assert operations["compact"] > 1
    assert (rounds > 1) == is_killed
