"""Stores whose process is killed, and whose write-ahead log is truncated by a power failure."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from msmqwire.errors import StoreNewer
from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import open_store
from msmqwire.service.store.sqlite import SqliteStore
from tests.support.paths import ROOT
from tests.support.qm.stores import LATER, after, everything, last_step, step

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


def run_and_kill(action: str, path: Path, seconds: float) -> list[str]:
    """Run `tests.support.qm.stores`, kill it this long after its first line; return the lines it printed."""
    command = [sys.executable, "-m", "tests.support.qm.stores", action, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(seconds)  # the moment of the kill, at random
        process.kill()
        lines = [first, *process.stdout]
    assert process.returncode in (-signal.SIGKILL, 0)
    return [line.strip() for line in lines if line.endswith("\n")]


def test_reported_commits_survive_and_the_next_is_all_or_none(tmp_path: Path) -> None:
    rng, path = random.Random(1801), tmp_path / "store.db"
    reported = 0
    killed_while_open = 0
    for _ in range(25):
        lines = run_and_kill("commit", path, rng.uniform(0, 0.08))
        assert [int(line) for line in lines] == list(range(reported + 1, reported + 1 + len(lines)))
        reported += len(lines)
        killed_while_open += path.with_name("store.db-wal").exists()
        with open_store(path, create=False) as store:
            survived = last_step(store)
            assert survived in (reported, reported + 1)
            assert everything(store) == after(survived)
        reported = survived
    assert killed_while_open == 25


def test_a_store_whose_creation_was_killed_can_be_created(tmp_path: Path) -> None:
    rng = random.Random(1801)
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = run_and_kill("create", folder, rng.uniform(0, 0.05))
        files = {path for path in folder.iterdir() if path.suffix == ".db"}
        assert files >= {folder / f"{line}.db" for line in lines}
        for path in files | {folder / f"{len(lines)}.db"}:  # the last one may have been half created
            with open_store(path) as store:
                store.commit(step(1))
                assert everything(store) == after(1)


def test_a_store_killed_in_a_migration_has_one_whole_version(tmp_path: Path) -> None:
    rng, count = random.Random(1801), 3000
    path = tmp_path / "store.db"
    counts = {"old": 0, "new": 0}

    def fill() -> None:
        path.unlink(missing_ok=True)
        with open_store(path) as store:
            changes = step(1)
            for number in range(count):
                changes.put(Table.MESSAGE, number, b"%d" % number)
            store.commit(changes)

    fill()
    start = time.monotonic()
    SqliteStore(path, LATER).close()
    duration = time.monotonic() - start
    for attempt in range(60):
        if attempt >= 10 and counts["old"]:
            break
        fill()
        run_and_kill("migrate", path, rng.uniform(0, duration))
        try:
            with open_store(path) as store:
                rows = list(store.rows(Table.MESSAGE))
            assert rows == [(number, b"%d" % number) for number in range(count)]
            counts["old"] += 1
        except StoreNewer:
            with SqliteStore(path, LATER) as store:
                rows = list(store.rows(Table.MESSAGE))
                assert store._reader.execute("SELECT key, content FROM note").fetchall() == rows
            assert rows == [(number, b"%dm" % number) for number in range(count)]
            counts["new"] += 1
    assert counts["old"], "it was never killed during the migration"


def test_a_log_cut_anywhere_gives_a_whole_number_of_commits(tmp_path: Path) -> None:
    """After the last synced byte a power failure may leave nothing or anything."""
    rng, path = random.Random(1801), tmp_path / "store.db"
    log = tmp_path / "store.db-wal"
    ends: list[int] = []
    with open_store(path) as store:
        for number in range(1, 26):
            store.commit(step(number))
            ends.append(log.stat().st_size)
        file, log_bytes = path.read_bytes(), log.read_bytes()
    assert ends == sorted(set(ends))
    cut_path = tmp_path / "cut.db"
    for cut in sorted({*rng.sample(range(len(log_bytes)), 60), *ends, *(end - 1 for end in ends)}):
        for tail in (b"", rng.randbytes(3 * 4096), bytes(9000)):
            cut_path.write_bytes(file)
            tmp_path.joinpath("cut.db-wal").write_bytes(log_bytes[:cut] + tail)
            with open_store(cut_path, create=False) as store:
                survived = last_step(store)
                assert survived == sum(end <= cut for end in ends)
                assert everything(store) == after(survived)
                store.commit(step(survived + 1))
                assert everything(store) == after(survived + 1)
