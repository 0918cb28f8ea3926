"""Fewer files with the same rows: in each partition sorted by time, so that their times do not overlap."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from msmqwire.capture.record import NO_TIME
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.errors import InvalidArgument
from msmqwire.tables.lake.commits import until_accepted
from msmqwire.tables.lake.lake_change import LakeChange, change_of, committed, lake_there
from msmqwire.tables.lake.merging import Merger
from msmqwire.tables.lake.partitions import Keys
from msmqwire.tables.lake.place import Place, lake_place
from msmqwire.tables.lake.state import PART_FILE, LakeState
from msmqwire.tables.lake.stored_rows import TIMES, StoredRows
from msmqwire.tables.lake.table import LakeFile, LakeTable

TARGET_SIZE: Final = 128 << 20
_UNKNOWN: Final = np.iinfo(np.int64).max


def compact_lake(
    out: str | os.PathLike[str],
    *,
    target_size: int = TARGET_SIZE,
    dry_run: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
    progress: Callable[[int], None] | None = None,
) -> LakeChange:
    """Merge small files of a lake, and files whose times overlap: the rows stay the same.

    In each partition rows are sorted by time over all files afterwards. Large files that overlap no other one
    stay as they are, and so does a lake that has nothing to merge. Files that another program has added are
    written anew. For the memory see `msmqwire.tables.lake.merging`: mostly some 100 MB, at most some 1.2 GB.

    The files from before stay until `vacuum_lake` removes them, for those who read them. Of a writer that
    commits meanwhile nothing is lost: what it has replaced is not merged.

    Args:
        out: the folder, or its URL.
        target_size: bytes of a file, at least, but for the last one of those that are merged.
        dry_run: whether files are only looked for; then the result has those to be removed.
        storage_options: as for `msmqwire.dissect`.
        progress: gets how many bytes of files more were read.

    Raises:
        LakeMissing: the folder is not a lake.
        LakeMismatch: an earlier or later version has made it, or somebody else has changed its columns.
        LakeDamaged: the log, the state or a file is broken.
        InvalidArgument: no such size.
        UnsupportedStore: the store can't be used.
        OSError: a file can't be read or written.
    """
    if target_size < 1:
        raise InvalidArgument(f"it is 1 or more, not {target_size}", path="target_size")
    run = _Run(lake_place(out, storage_options), target_size, dry_run, progress)
    try:
        return until_accepted(run.place, run.attempt)
    finally:
        run.discard(run.done)


@dataclass(frozen=True)
class _Files:
    """Files of a partition that are merged.

    Attributes:
        keys: the values of the partition.
        files: the files.
        merged: those that have their rows.
    """

    keys: Keys
    files: list[LakeFile]
    merged: list[LakeFile] = field(default_factory=list)


@dataclass
class _Run:
    place: Place
    target_size: int
    dry_run: bool
    progress: Callable[[int], None] | None
    done: list[_Files] = field(default_factory=list)
    """What was merged for a commit that was refused."""

    def attempt(self, found: tuple[LakeTable, LakeState] | None) -> LakeChange:
        table, state = lake_there(self.place, found)
        rows = StoredRows(table, state)
        self._keep({file.path for file in table.files()})
        if not self.done:
            planned = list(_planned(table, self.target_size))
            if self.dry_run:
                return change_of("compact", table, _sum(planned), [], dry_run=True)
            self.place.prepare()
            merger = Merger(self.place, rows, self.target_size, self.progress)
            for files in planned:
                self.done.append(_Files(files.keys, files.files, merger.merged(files.keys, files.files)))
        removes, adds = _sum(self.done), [file for files in self.done for file in files.merged]
        change = change_of("compact", table, removes, adds)
        if removes:
            change = committed(table, state, change, removes, adds, accepted=self.done.clear, same_rows=True)
        return change

    def _keep(self, present: set[str]) -> None:
        """Keep what was merged of files that are still there."""
        stale = [files for files in self.done if not present.issuperset(file.path for file in files.files)]
        self.done = [files for files in self.done if files not in stale]
        self.discard(stale)

    def discard(self, done: list[_Files]) -> None:
        self.place.remove(file.path for files in done for file in files.merged)


def _sum(done: list[_Files]) -> list[LakeFile]:
    return [file for files in done for file in files.files]


def _planned(table: LakeTable, target_size: int) -> Iterator[_Files]:
    """Yield the files to be merged, of each partition those that are near in time."""
    files = table.files()
    lows, highs = _bounds(table)
    partitions: dict[tuple[str | None, ...], list[int]] = {}
    for number in np.lexsort((highs, lows)).tolist():
        partitions.setdefault(tuple(files[number].keys.values()), []).append(number)
    for numbers in partitions.values():
        waiting = list[LakeFile]()
        for cluster in _clusters(numbers, lows, highs):
            found = [files[number] for number in cluster]
            if len(found) == 1 and found[0].size >= target_size and _is_ours(found[0]):
                yield from _worth_it(waiting)
                waiting = []
            else:
                waiting += found
        yield from _worth_it(waiting)


def _worth_it(files: list[LakeFile]) -> Iterator[_Files]:
    if len(files) > 1 or not all(map(_is_ours, files)):
        yield _Files(files[0].keys, files)


def _is_ours(file: LakeFile) -> bool:
    """Whether a file is named as our writers do, which sort it."""
    return PART_FILE.fullmatch(file.path.rpartition("/")[2]) is not None


def _clusters(numbers: list[int], lows: Any, highs: Any) -> Iterator[list[int]]:
    """Yield the files, in the order of their first times, those together that overlap by more than an
    instant.
    """
    cluster, end = list[int](), NO_TIME
    for number in numbers:
        if cluster and lows[number] >= end:
            yield cluster
            cluster, end = [], NO_TIME
        cluster.append(number)
        end = max(end, highs[number])
    if cluster:
        yield cluster


def _bounds(table: LakeTable) -> tuple[Any, Any]:
    """The first and last time of each file; `NO_TIME` comes before all. A file without statistics may have
    any.
    """
    exact, rounded = TIMES
    count = table.actions.num_rows
    if exact not in table.schema.names:
        return np.full(count, NO_TIME), np.full(count, NO_TIME)
    low, high = table.bounds(exact)
    nulls = np.full(count, _UNKNOWN)
    if f"null_count.{exact}" in table.actions.column_names:
        nulls = pc.fill_null(table.actions[f"null_count.{exact}"], _UNKNOWN).to_numpy()
    low = np.where(nulls > 0, NO_TIME, low)
    without = table.without(exact)
    if without.any() and rounded in table.schema.names:
        # Another program has left it out.
        first, last = table.bounds(rounded)
        has_times = without & ~table.without(rounded) & (first != np.iinfo(np.int64).min)
        low, high = np.where(has_times, first * 1000, low), np.where(has_times, last * 1000, high)
        without &= ~has_times
    return low, np.where(without, NO_TIME, high)
