"""Stores whose process is killed, and whose log ends where a power failure cut it."""

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
from msmqwire.qm.model.changes import Table
from msmqwire.qm.store.sqlite import SqliteStore
from tests.support.paths import ROOT
from tests.support.stores import LATER, after, everything, last_step, step

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


def killed(what: str, place: Path, seconds: float) -> list[str]:
    """The lines that a process of `stores` printed until it was killed, so long after the first."""
    command = [sys.executable, "-m", "tests.support.stores", what, str(place)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        lines = [first, *process.stdout]
    assert process.returncode in (-signal.SIGKILL, 0)
    return [line.strip() for line in lines if line.endswith("\n")]


def test_what_was_reported_is_there_and_the_rest_whole_or_not_at_all(tmp_path: Path) -> None:
    chance, path = random.Random(1801), tmp_path / "store.db"
    reported = 0
    amid = 0
    for _ in range(25):
        lines = killed("commit", path, chance.uniform(0, 0.08))
        assert [int(line) for line in lines] == list(range(reported + 1, reported + 1 + len(lines)))
        reported += len(lines)
        amid += path.with_name("store.db-wal").exists()
        with SqliteStore(path, create=False) as store:
            found = last_step(store)
            assert found in (reported, reported + 1)
            assert everything(store) == after(found)
        reported = found
    assert amid == 25


def test_a_store_killed_in_the_making_can_be_made(tmp_path: Path) -> None:
    chance = random.Random(1801)
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = killed("create", folder, chance.uniform(0, 0.05))
        files = {path for path in folder.iterdir() if path.suffix == ".db"}
        assert files >= {folder / f"{line}.db" for line in lines}
        for path in files | {folder / f"{len(lines)}.db"}:  # the last one may have been half made
            with SqliteStore(path) as store:
                store.commit(step(1))
                assert everything(store) == after(1)


def test_a_store_killed_on_the_way_to_a_later_version_has_the_old_or_the_new(tmp_path: Path) -> None:
    chance, count = random.Random(1801), 3000
    path = tmp_path / "store.db"
    seen = {"old": 0, "new": 0}

    def filled() -> None:
        path.unlink(missing_ok=True)
        with SqliteStore(path) as store:
            changes = step(1)
            for number in range(count):
                changes.put(Table.MESSAGE, number, b"%d" % number)
            store.commit(changes)

    filled()
    start = time.monotonic()
    SqliteStore(path, layout=LATER).close()
    most = time.monotonic() - start
    for _ in range(10):
        filled()
        killed("migrate", path, chance.uniform(0, most))
        try:
            with SqliteStore(path) as store:
                rows = list(store.rows(Table.MESSAGE))
            assert rows == [(number, b"%d" % number) for number in range(count)]
            seen["old"] += 1
        except StoreNewer:
            with SqliteStore(path, layout=LATER) as store:
                rows = list(store.rows(Table.MESSAGE))
                assert store._reader.execute("SELECT * FROM note").fetchall() == rows
            assert rows == [(number, b"%dm" % number) for number in range(count)]
            seen["new"] += 1
    assert seen["old"], "it was never killed amid the way"


def test_a_log_cut_anywhere_gives_a_whole_number_of_commits(tmp_path: Path) -> None:
    """What a power failure may leave after the last sync: nothing, or anything."""
    chance, path = random.Random(1801), tmp_path / "store.db"
    log = tmp_path / "store.db-wal"
    ends: list[int] = []
    with SqliteStore(path) as store:
        for number in range(1, 26):
            store.commit(step(number))
            ends.append(log.stat().st_size)
        file, whole = path.read_bytes(), log.read_bytes()
    assert ends == sorted(set(ends))
    cut_path = tmp_path / "cut.db"
    for cut in sorted({*chance.sample(range(len(whole)), 60), *ends, *(end - 1 for end in ends)}):
        for rest in (b"", chance.randbytes(3 * 4096), bytes(9000)):
            cut_path.write_bytes(file)
            tmp_path.joinpath("cut.db-wal").write_bytes(whole[:cut] + rest)
            with SqliteStore(cut_path, create=False) as store:
                found = last_step(store)
                assert found == sum(end <= cut for end in ends)
                assert everything(store) == after(found)
                store.commit(step(found + 1))
                assert everything(store) == after(found + 1)
