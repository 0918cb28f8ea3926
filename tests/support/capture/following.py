"""Lakes that follow captures, and captures that grow meanwhile."""

from __future__ import annotations

import random
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import msmqwire
from msmqwire.capture.record_index import is_splittable, record_positions
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError, CaptureWarning
from msmqwire.tables import chosen_columns
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.lake import LakeCommit, follow_lake
from msmqwire.tables.part_reader import PartReader
from tests.support import captures as c
from tests.support.capture.busy import busy_capture
from tests.support.installed import library

Action = Callable[[], object]


def rows_of(table: pa.Table) -> Counter[str]:
    """All rows, with the numbers of frames and streams."""
    times = table.column("time").cast(pa.int64(), safe=False)
    if "time_ns" not in table.column_names:
        table = table.append_column("time_ns", times)
    names = [name for name in sorted(table.column_names) if name not in ("date", "time", "part", "queue")]
    return Counter(repr(row) for row in table.select(names).to_pylist())


def lake_rows(lake: Path) -> Counter[str]:
    return rows_of(msmqwire.read_lake(lake).to_table())


def polars_rows(lake: Path) -> Counter[str]:
    """The rows for another reader of Delta tables."""
    table = library("polars").read_delta(str(lake)).to_arrow()
    schema = msmqwire.read_lake(lake).schema
    return rows_of(table.select(schema.names).cast(schema))


def one_reader(paths: Iterable[Path], **options: Any) -> Counter[str]:
    """The rows of one reader at the end of the captures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        return rows_of(msmqwire.read_capture([str(path) for path in paths], **options))


def complete_rows(paths: Iterable[Path]) -> Counter[str]:
    """The rows of one reader that waits for more at the end of the last record."""
    names = [column.name for column in chosen_columns(None)]
    windows = tuple(Window(str(path), b"", 0, complete_size(path)) for path in paths)
    batches = list(PartReader().batches(ExactPart(windows, b"", False), names))
    return rows_of(pa.Table.from_batches(batches)) if batches else Counter()


def complete_size(path: Path) -> int:
    """The bytes of the complete records of a capture."""
    if not path.stat().st_size or not is_splittable(str(path)):
        return path.stat().st_size
    end = 0
    try:
        for position in record_positions(Window(str(path), b"", 0, path.stat().st_size)):
            end = position.end
    except CaptureError:
        return end
    return path.stat().st_size


class Followed(NamedTuple):
    """What following has done.

    Attributes:
        commits: its commits.
        notices: the lines that it said.
    """

    commits: list[LakeCommit]
    notices: list[str]


class _Script(threading.Event):
    """Does one thing between two looks, and ends after the last one."""

    def __init__(self, actions: Iterable[Action]) -> None:
        super().__init__()
        self._actions = iter(actions)

    def wait(self, timeout: float | None = None) -> bool:
        action = next(self._actions, None)
        if action is None:
            self.set()
        else:
            action()
        return self.is_set()


def follow(captures: Any, lake: Path, actions: Iterable[Action] = (), **options: Any) -> Followed:
    """Follow captures; do one of these actions after each look. A last look follows the last one."""
    notices = list[str]()
    commits = follow_lake(captures, lake, stop=_Script(actions), notice=notices.append, **options)
    return Followed(list(commits), notices)


def contents_of(rng: random.Random, count: int) -> list[bytes]:
    """Contents of captures of a busy network, one after the other."""
    frames = busy_capture(0.1)
    size = len(frames) // count
    parts = [frames[number * size : (number + 1) * size] for number in range(count)]
    return [(c.pcapng_bytes if rng.random() < 0.5 else c.pcap_bytes)(part) for part in parts]


class Growing:
    """Captures that grow in random pieces, mostly one after the other.

    Attributes:
        paths: the captures.
        is_whole: whether nothing is left to be added.
    """

    def __init__(self, rng: random.Random, paths: Sequence[Path], contents: Sequence[bytes]) -> None:
        self.paths, self._contents, self._rng = paths, contents, rng
        self._written = [0] * len(paths)

    @property
    def is_whole(self) -> bool:
        return self._written == [len(content) for content in self._contents]

    @property
    def present(self) -> list[Path]:
        return [path for path in self.paths if path.exists()]

    def grow(self) -> None:
        """Add some bytes to one of them."""
        waiting = [n for n, content in enumerate(self._contents) if self._written[n] < len(content)]
        if not waiting:
            return
        number = self._rng.choice(waiting) if self._rng.random() < 0.1 else waiting[0]
        start, size = self._written[number], self._rng.randrange(1, 12_000)
        piece = self._contents[number][start : start + size]
        with self.paths[number].open("ab") as file:
            file.write(piece)
        self._written[number] += len(piece)
