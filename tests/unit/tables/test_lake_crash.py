"""A lake whose writer is killed at each of its steps, and one whose tasks or workers fail."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import LakeError, LakeMissing
from msmqwire.tables.lake.part_writer import PartWriter
from tests.support.capture.killed import killed_at
from tests.support.capture.lakes import Growth, all_files, grown, named_rows
from tests.support.nightly import STRIDE
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.running import until

SPLIT = 4000


@pytest.fixture
def growth(tmp_path: Path) -> Growth:
    return grown(tmp_path, SPLIT)


def test_a_writer_killed_at_any_step(growth, tmp_path):
    rng = random.Random(1)
    before, seen = 0, set[bool]()
    while True:
        before += STRIDE
        lake = tmp_path / f"lake-{before}"
        shutil.copytree(growth.lake, lake)
        done = False
        with killed_at(before) as steps:
            msmqwire.write_lake(growth.captures, lake, split_size=SPLIT)
            done = True
        growth.check_readers(lake)
        seen.add(named_rows(lake) == growth.new)
        with killed_at(rng.randrange(1, 40)):  # so is the next one
            msmqwire.write_lake(growth.captures, lake, split_size=SPLIT)
        growth.check_readers(lake)
        msmqwire.write_lake(growth.captures, lake, split_size=SPLIT)
        growth.check_complete(lake)
        shutil.rmtree(lake)
        if done:
            break
    assert before > 30
    assert before - STRIDE <= steps() < before
    assert seen == {False, True}


def test_a_new_lake_killed_at_any_step(growth, tmp_path):
    before, done, seen = 0, False, set[bool]()
    while not done:
        before += 1
        lake = tmp_path / f"lake-{before}"
        with killed_at(before):
            msmqwire.write_lake(growth.captures, lake, split_size=1 << 30)
            done = True
        with suppress(LakeMissing):
            assert named_rows(lake) == growth.new
            seen.add(True)
        seen.add(done)
        msmqwire.write_lake(growth.captures, lake, split_size=1 << 30)
        growth.check_complete(lake)
    assert before > 10
    assert seen == {False, True}


def test_a_task_that_fails_leaves_the_lake_as_it_was(growth, monkeypatch):
    files = all_files(growth.lake)
    written = []
    write = PartWriter.write

    def failing(self: PartWriter, part: Any) -> Any:
        if written:
            raise OSError(28, "No space left on device")
        written.append(part)
        return write(self, part)

    monkeypatch.setattr(PartWriter, "write", failing)
    with pytest.raises(OSError, match="No space"):
        msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT)
    assert named_rows(growth.lake) == growth.old
    assert all_files(growth.lake) == files
    monkeypatch.undo()
    msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT)
    growth.check_complete(growth.lake)


def test_several_attempts_at_a_part_write_files_of_their_own(growth, monkeypatch):
    """As a cluster does with a slow task: both attempts end, one of them counts."""
    write = PartWriter.write

    def twice(self: PartWriter, part: Any) -> Any:
        first, second = write(self, part), write(self, part)
        assert not {file.path for file in first.files} & {file.path for file in second.files}
        return second

    monkeypatch.setattr(PartWriter, "write", twice)
    msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT)
    growth.check_complete(growth.lake)


PROGRAM = """
import os, signal, sys
import msmqwire
from msmqwire.tables.lake.part_writer import PartWriter

write = PartWriter.write

def write_or_die(self, part):
    mark = sys.argv[2]
    if not os.path.exists(mark) or sys.argv[3] == "always":
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return write(self, part)

write_or_die.__name__ = "write"  # by which it is pickled
PartWriter.write = write_or_die

if __name__ == "__main__":
    msmqwire.write_lake(sys.argv[4:], sys.argv[1], split_size=4000, workers=2)
"""


@pytest.mark.parametrize("how", ["once", "always"])
def test_workers_that_are_killed(growth, tmp_path, how):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    arguments = [growth.lake, tmp_path / "mark", how, *growth.captures]
    ran = subprocess.run(
        [sys.executable, program, *map(str, arguments)],
        capture_output=True, text=True, timeout=limit(300), check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if how == "once":
        assert ran.returncode == 0, ran.stderr
        growth.check_complete(growth.lake)
    else:
        assert LakeError.__name__ in ran.stderr
        assert named_rows(growth.lake) == growth.old


BUSY = """
import os, sys, time
import msmqwire
from msmqwire.tables.lake.part_writer import PartWriter

def write(self, part):
    open(f"{sys.argv[2]}-{os.getpid()}", "w").close()
    time.sleep(600)  # busy, until the interrupt

PartWriter.write = write

if __name__ == "__main__":
    try:
        msmqwire.write_lake(sys.argv[3:], sys.argv[1], split_size=4000, workers=2)
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_an_interrupt_ends_busy_workers_at_once(growth, tmp_path):
    """Ctrl-C on a terminal reaches all processes; nobody complains, and the lake is as it was."""
    program = tmp_path / "program.py"
    program.write_text(BUSY)
    command = [sys.executable, program, growth.lake, tmp_path / "busy", *growth.captures]
    with subprocess.Popen(
        [*map(str, command)], stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            until(
                lambda: process.poll() is not None or len(list(tmp_path.glob("busy-*"))) == 2,
                "two workers are busy",
            )
            assert process.poll() is None
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=limit(120))
        finally:
            process.kill()
    assert (process.returncode, errors) == (130, b"")
    assert named_rows(growth.lake) == growth.old
