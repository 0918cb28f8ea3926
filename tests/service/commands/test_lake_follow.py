"""``msmqwire lake --follow`` as a process: ended by signals, and killed at any moment."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import msmqwire
from tests.support.capture.following import (
    Growing,
    complete_rows,
    contents_of,
    lake_rows,
    one_reader,
    polars_rows,
)
from tests.support.capture.lakes import traffic, write_capture
from tests.support.patience import limit
from tests.support.running import until

EVERY = "0.1"


class Follower:
    """A command that follows a folder.

    Attributes:
        process: the process.
        out, err: what it has printed, as files.
    """

    def __init__(self, folder: Path, lake: Path, *options: str) -> None:
        self.out, self.err = lake.with_suffix(".out"), lake.with_suffix(".err")
        program = [sys.executable, "-m", "msmqwire", "lake", folder, "--out", lake, "--follow", *options]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen([*program, "--every", EVERY], stdout=out, stderr=err)

    @property
    def lines(self) -> list[str]:
        return self.err.read_text().splitlines()

    def wait(self) -> int:
        return self.process.wait(limit(120))


@contextmanager
def follower(folder: Path, lake: Path, *options: str) -> Iterator[Follower]:
    one = Follower(folder, lake, *options)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "captures"
    path.mkdir()
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_a_last_commit(folder, tmp_path, number):
    lake = tmp_path / "lake"
    write_capture(folder / "0.pcap", traffic(5))
    with follower(folder, lake) as one:
        until(lambda: any(line.startswith("version 0: ") for line in one.lines), "the first commit")
        write_capture(folder / "1.pcap", traffic(7, port=50_001))
        one.process.send_signal(number)
        assert one.wait() == 0
    assert one.lines[0] == (
        f"{folder}: followed into {lake}, with a look every {EVERY} s; Ctrl-C or SIGTERM ends it"
    )
    assert one.lines[-1].startswith("ended: 16 rows in 2 commits")
    assert one.out.read_text() == ""
    assert lake_rows(lake) == one_reader(sorted(folder.iterdir()))


def test_each_commit_is_a_json_object(folder, tmp_path):
    lake = tmp_path / "lake"
    with follower(folder, lake, "--json") as one:
        for number in range(3):
            write_capture(folder / f"{number}.pcap", traffic(3, port=50_000 + number))
            until(lambda n=number: len(one.out.read_text().splitlines()) > n, "a commit")
        one.process.terminate()
        assert one.wait() == 0
    commits = [json.loads(line) for line in one.out.read_text().splitlines()]
    assert [(commit["version"], commit["rows"]) for commit in commits] == [(0, 5), (1, 5), (2, 5)]


@pytest.mark.parametrize("seed", range(2))
def test_kills_at_any_moment_lose_and_double_nothing(folder, tmp_path, seed):
    rng, lake = random.Random(seed), tmp_path / "lake"
    growing = Growing(rng, [folder / f"{number}.pcap" for number in range(3)], contents_of(rng, 3))
    growing.grow()
    ends: list[Callable[[Follower], None]] = [lambda one: one.process.kill()] * 3
    for end in [*ends, lambda one: one.process.terminate()]:
        with follower(folder, lake) as one:
            until(lambda: len(one.lines) > 0, "its first line")
            for _ in range(rng.randrange(2, 6)):
                growing.grow()
                time.sleep(rng.uniform(0, 0.4))  # the moment of the kill is to be any
            end(one)
            one.wait()
    assert one.process.returncode == 0
    assert lake_rows(lake) == polars_rows(lake) == complete_rows(growing.present)
    while not growing.is_whole:
        growing.grow()
    msmqwire.write_lake(folder, lake)
    assert lake_rows(lake) == polars_rows(lake) == one_reader(growing.paths)


def test_what_does_not_go_with_it(folder, tmp_path):
    write_capture(folder / "0.pcap", traffic(3))
    program = [sys.executable, "-m", "msmqwire", "lake", str(folder), "--out", str(tmp_path / "lake")]
    for options, words in (
        (["--follow", "--workers", "2"], "one process reads"),
        (["--follow", "--splits", "walked"], "only an exact lake"),
        (["--follow", "--findings"], "leave out one of the two"),
        (["--follow", "--every", "0"], "0.1 or more"),
        (["--every", "5"], "goes with --follow"),
    ):
        ran = subprocess.run(
            [*program, *options], capture_output=True, text=True, timeout=limit(120), check=False
        )
        assert (ran.returncode, words in ran.stderr) == (2, True), ran.stderr
    assert not (tmp_path / "lake").exists()
