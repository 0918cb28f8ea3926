"""The torture run of lakes: writers are killed again and again, and each row has to be there exactly once.

``python tools/torture/lakes.py --kills 100``: `msmqwire lake` is run over captures that grow and are joined
by new ones: writing, compacting, deleting, following and upgrading, each in a process that is killed by
SIGKILL at a random moment. After each kill the lake has to be as it was, or as the command has left it, read
by `msmqwire.read_lake` and by deltalake. Then two writers run at once, ``--pairs`` times, and both have to
end well. The exit status is 1 if a row is missing or there twice, and 0 if none is.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support.captures import write as write_capture  # noqa: E402
from msmqwire import read_capture, read_lake  # noqa: E402
from msmqwire.errors import CaptureWarning, LakeMissing  # noqa: E402
from msmqwire.tables.expression_parser import parse_expression  # noqa: E402
from msmqwire.tables.lake.place import lake_place  # noqa: E402
from msmqwire.tables.lake.state import LakeState  # noqa: E402
from msmqwire.tables.lake.table import opened  # noqa: E402

COLUMNS: Final = ("time", "file", "kind", "src", "src_port", "dst", "dst_port", "message_id", "size", "label")
FRAMES: Final = 4000
CONDITIONS: Final = (
    "size > 3000", "kind = 'SessionAck' and src_port < 30000", "label like '%7%'", "dst_port = 1801",
)  # fmt: skip
LONGEST_S: Final = 2.5
"""Seconds until a kill, at most: most commands end before."""
LAKES: Final = ROOT / "tests" / "vectors" / "lakes"

Rows = Counter[tuple[object, ...]]


class Wrong(Exception):
    """A row is missing or there twice, or a command has failed; the text says what."""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "msmqwire", "lake", *map(str, arguments)]


def run(*arguments: object) -> None:
    """Run a command to its end. Raises Wrong if it fails."""
    ran = subprocess.run(command(*arguments), check=False, capture_output=True, text=True)
    if ran.returncode not in (0, 65):  # a capture may be cut off
        raise Wrong(f"{arguments}: status {ran.returncode}: {ran.stderr}")


def run_and_kill(rng: random.Random, longest_s: float, *arguments: object) -> bool:
    """Run a command, and kill it at a random moment; return whether it was at work then."""
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            process.wait(rng.uniform(0, longest_s))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return True
        return False


def lake_rows(lake: Path) -> Rows | None:
    """The rows of a lake, the same for both readers; None if there is none."""
    from deltalake import DeltaTable

    try:
        ours = read_lake(lake)
    except LakeMissing:
        return None
    rows = counted(ours.to_table(columns=["time_ns", *COLUMNS[1:]]).to_pylist())
    other = DeltaTable(lake).to_pyarrow_dataset().to_table(columns=["time_ns", *COLUMNS[1:]])
    if counted(other.to_pylist()) != rows:
        raise Wrong(f"{lake}: deltalake reads other rows")
    return rows


def counted(rows: Sequence[dict[str, object]]) -> Rows:
    return Counter(tuple(row.values()) for row in rows)


def compare(found: Rows | None, allowed: Sequence[Rows | None], what: str) -> int:
    """Return which of the allowed rows were found. Raises Wrong for none."""
    for number, rows in enumerate(allowed):
        if found == rows:
            return number
    rows = found or Counter()
    least = min((want or Counter() for want in allowed), key=lambda want: _distance(want, rows))
    missing, more = least - rows, rows - least
    raise Wrong(
        f"after {what}: {missing.total()} rows missing {list(missing)[:2]},"
        f" {more.total()} more {list(more)[:2]}"
    )


def _distance(one: Rows, other: Rows) -> int:
    return (one - other).total() + (other - one).total()


def state_of(lake: Path) -> LakeState:
    """The state of a lake that is there."""
    found = opened(lake_place(lake))
    if found is None:
        raise Wrong(f"{lake}: there is no lake")
    return found[1]


@dataclass
class Model:
    """A lake, its captures, and the rows that it has to have.

    Attributes:
        folder: where both are.
        rng: chooses.
        content: the whole of the captures; they have the beginnings of it.
        sizes: the bytes that each capture has.
        deleted: the conditions of each capture of which rows were deleted.
        rows: the rows of the lake now; None if there is none.
    """

    folder: Path
    rng: random.Random
    content: dict[Path, bytes] = field(default_factory=dict)
    sizes: dict[Path, int] = field(default_factory=dict)
    deleted: dict[Path, list[str]] = field(default_factory=dict)
    rows: Rows | None = None

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def captures(self) -> list[Path]:
        return sorted(self.sizes)

    def grow(self) -> None:
        """Have a capture grow, or a new one come."""
        if len(self.sizes) < 6 and (not self.sizes or self.rng.random() < 0.4):
            path = self.folder / "captures" / f"{len(self.sizes)}.pcap"
            path.parent.mkdir(exist_ok=True)
            whole = self.folder / "whole.pcap"
            write_capture(whole, FRAMES + 500 * len(self.sizes), seed=self.rng.randrange(1 << 30))
            self.content[path] = whole.read_bytes()
            self.sizes[path] = 24
        else:
            path = self.rng.choice(self.captures)
        size = self.sizes[path] + self.rng.randrange(1, len(self.content[path]) // 2)
        self.sizes[path] = min(size, len(self.content[path]))
        path.write_bytes(self.content[path][: self.sizes[path]])

    def expected(self) -> Rows:
        """The rows of the captures now, without those that were deleted."""
        table = read_capture([str(path) for path in self.captures], columns=list(COLUMNS))
        for path, conditions in self.deleted.items():
            for condition in conditions:
                matches = parse_expression(f"({condition}) and file = '{path}'").mask(table)
                table = table.filter([not match for match in matches.to_pylist()])
        times = table.column("time").cast("int64").to_pylist()
        rows = table.select(list(COLUMNS[1:])).to_pylist()
        return Counter((time_ns, *row.values()) for time_ns, row in zip(times, rows, strict=True))

    def write(self) -> bool:
        """Write what has grown, in a process that is killed; return whether it was at work."""
        self.grow()
        arguments = ("--columns", ",".join(COLUMNS), "--by", "kind", "--out", self.lake, *self.captures)
        return self._killed("writing", self.expected(), *arguments)

    def compact(self) -> bool:
        return self._killed("compacting", self.rows, "--out", self.lake, "--compact")

    def delete(self) -> bool:
        condition, before = self.rng.choice(CONDITIONS), state_of(self.lake)
        arguments = ("--out", self.lake, "--delete-where", condition)
        at_work = self._killed("deleting", self.without(condition), *arguments)
        if state_of(self.lake).deletions != before.deletions:  # one of the same rows replaces an earlier one
            for path in map(Path, before.captures):
                self.deleted.setdefault(path, []).append(condition)
        return at_work

    def without(self, condition: str) -> Rows:
        """The rows of the lake without those that match a condition."""
        matches = parse_expression(condition)
        table = read_lake(self.lake).to_table()
        time_type = read_capture([str(self.captures[0])], columns=["time"]).schema.field("time").type
        at = table.schema.get_field_index("time")
        table = table.set_column(at, "time", table.column("time_ns").cast(time_type))
        kept = table.filter([match is not True for match in matches.mask(table).to_pylist()])
        return counted(kept.select(["time_ns", *COLUMNS[1:]]).to_pylist())

    def _killed(self, what: str, after: Rows | None, *arguments: object) -> bool:
        """Run a command that is killed, and see which the lake is; return whether it was at work."""
        both = [self.rows, after]
        at_work = run_and_kill(self.rng, LONGEST_S, *arguments)
        self.rows = both[compare(lake_rows(self.lake), both, what)]
        return at_work

    def finish(self) -> None:
        """Run without a kill: all of it is there, and the rest of killed writers is removed."""
        run("--columns", ",".join(COLUMNS), "--by", "kind", "--out", self.lake, *self.captures)
        self.rows = self.expected()
        compare(lake_rows(self.lake), [self.rows], "a whole run")
        run("--out", self.lake, "--vacuum", "0h")
        compare(lake_rows(self.lake), [self.rows], "vacuum")
        named = {Path(file) for file in read_lake(self.lake).files}
        left = set(self.lake.glob("date=*/**/*.parquet")) - named
        if left:
            raise Wrong(f"vacuum has left {sorted(left)[:3]}")


def follow(folder: Path, rng: random.Random) -> bool:
    """Follow captures that grow, be killed, and go on; return whether it was at work then."""
    model = Model(folder, rng)
    model.grow()
    lake, arguments = folder / "followed", ("--columns", ",".join(COLUMNS))
    at_work = False
    with subprocess.Popen(
        command(folder / "captures", "--out", lake, "--follow", "--every", "0.3", *arguments),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        end = time.monotonic() + rng.uniform(0.5, 6)
        while time.monotonic() < end:
            model.grow()
            time.sleep(rng.uniform(0, 0.5))
        at_work = process.poll() is None
        os.killpg(process.pid, 9)
    found = lake_rows(lake)
    if found is not None and found - _read_so_far(lake, folder / "cut"):
        raise Wrong("after following: there are rows that the captures do not have")
    run(folder / "captures", "--out", lake, *arguments)
    compare(lake_rows(lake), [model.expected()], "following and a run")
    return at_work


def _read_so_far(lake: Path, folder: Path) -> Rows:
    """The rows of the captures as far as a lake has them: what has grown since can change earlier rows."""
    ends = Counter[Path]()
    for part in state_of(lake).parts:
        for window in part.windows:
            ends[Path(window.path)] = max(ends[Path(window.path)], window.end)
    folder.mkdir()
    places = {folder / path.name: path for path in sorted(ends)}
    for cut, path in places.items():
        cut.write_bytes(path.read_bytes()[: ends[path]])
    rows = Model(folder, random.Random(), sizes=dict.fromkeys(places, 0)).expected()
    return Counter({(row[0], str(places[Path(str(row[1]))]), *row[2:]): n for row, n in rows.items()})


def upgrade(folder: Path, rng: random.Random) -> bool:
    """Upgrade a lake of an earlier version, be killed, and upgrade again."""
    archive = rng.choice([path for path in sorted(LAKES.glob("*.zip")) if path.stem != "captures"])
    lake = folder / "old"
    with zipfile.ZipFile(archive) as file:
        file.extractall(lake)
    reference = folder / "reference"
    shutil.copytree(lake, reference)
    run("--out", reference, "--upgrade")
    at_work = run_and_kill(rng, LONGEST_S, "--out", lake, "--upgrade")
    run("--out", lake, "--upgrade")
    compare(lake_rows(lake), [lake_rows(reference)], f"upgrading {archive.stem}")
    if (lake / "_lake").exists():
        raise Wrong("the upgrade has left _lake")
    return at_work


def pair(folder: Path, rng: random.Random) -> None:
    """Two writers at once, which both have to end well."""
    paths = [folder / f"{name}.pcap" for name in "ab"]
    for path in paths:
        write_capture(path, rng.randrange(50, FRAMES // 4), seed=rng.randrange(1 << 30))
    lake, columns = folder / "lake", ("--columns", ",".join(COLUMNS))
    writers = [
        subprocess.Popen(
            command(path, "--out", lake, *columns),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for path in paths
    ]
    for writer in writers:
        _, errors = writer.communicate()
        if writer.returncode:
            raise Wrong(f"one of two writers ended with {writer.returncode}: {errors}")
    expected: Rows = Counter()
    for path in paths:
        model = Model(folder, rng, sizes={path: 0})
        expected += model.expected()
    compare(lake_rows(lake), [expected], "two writers at once")


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill the writers of lakes, and count their rows.")
    parser.add_argument("--kills", type=int, default=100, help="of commands at work")
    parser.add_argument("--pairs", type=int, default=50, help="two writers at once, so many times")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    rng, kills = random.Random(options.seed), Counter[str]()
    warnings.simplefilter("ignore", CaptureWarning)  # captures are cut off as they grow
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="lakes-"))
    print(f"seed {options.seed}, folder {folder}", flush=True)
    try:
        number = 0
        while kills.total() < options.kills:
            number += 1
            inner = folder / str(number)
            inner.mkdir()
            kind = rng.choice(["model", "model", "follow", "upgrade"])
            if kind == "model":
                _play(Model(inner, rng), kills)
            elif {"follow": follow, "upgrade": upgrade}[kind](inner, rng):
                kills[kind] += 1
            shutil.rmtree(inner)
            print(f"{kills.total()} kills {dict(kills)}, {time.monotonic() - started:.0f} s", flush=True)
        for number in range(options.pairs):
            inner = folder / f"pair-{number}"
            inner.mkdir()
            pair(inner, rng)
            shutil.rmtree(inner)
    except Wrong as exc:
        print(f"wrong: {exc}; seed {options.seed}, folder {folder}", file=sys.stderr)
        return 1
    print(f"{kills.total()} kills {dict(kills)}, {options.pairs} pairs of writers: each row is there once")
    return 0


def _play(model: Model, kills: Counter[str]) -> None:
    """Some commands at a lake, each of them killed."""
    model.write()
    model.finish()
    for _ in range(10):
        step = model.rng.choice([model.write, model.write, model.compact, model.delete])
        kills[step.__name__] += step()
    model.finish()


if __name__ == "__main__":
    sys.exit(main())
