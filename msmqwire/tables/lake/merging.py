"""The rows of several files of a partition in the order of time, as files that follow each other.

A merge of row groups. One is read when the rows before it are written, and all rows up to the least of the
last times of those in memory go on at once. So in memory are the row groups whose times overlap, and once
more the rows that go on: our writers make row groups of at most 32 MiB. Of more than `OPEN_BYTES_MAX` parts
are merged into files first, which are removed afterwards. Only a row group that another program has written
may be larger, and is in memory as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.capture.record import NO_TIME
from msmqwire.tables.lake.file_names import FileNames
from msmqwire.tables.lake.partitions import Keys, folder_of
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.rewriting import opened_parquet
from msmqwire.tables.lake.sorted_files import ROW_GROUP_BYTES, ROW_GROUP_ROWS, DataFile
from msmqwire.tables.lake.stored_rows import TIMES, StoredRows, times_of
from msmqwire.tables.lake.table import LakeFile

OPEN_BYTES_MAX: Final = 256 << 20
"""Bytes in memory, about, of row groups whose times overlap."""
_ROW_BYTES: Final = 1024
"""Bytes in memory of a row of all columns besides its texts, about."""
_IN_MEMORY: Final = 4
"""How much larger a row group is in memory than in its file, at least, mostly."""
_INSTANT_FACTOR: Final = 4
"""How much larger than wanted a file may be, as rows of one instant are not divided."""


@dataclass(frozen=True)
class Merger:
    """Merges files of a partition.

    Attributes:
        place: where the lake is.
        rows: the form of the rows.
        target_size: bytes of a file that is written, at least, but for the last one.
        progress: gets how many bytes of the files more are read.
    """

    place: Place
    rows: StoredRows
    target_size: int
    progress: Callable[[int], None] | None = None

    def merged(self, keys: Keys, files: Sequence[LakeFile]) -> list[LakeFile]:
        """Return files with the rows of others, which stay; they are on disk then.

        Raises:
            LakeDamaged: a file is missing, or is no Parquet file.
            OSError: a file can't be read or written.
        """
        return self._merged(keys, [self._survey(file) for file in files], self.target_size)

    def _merged(self, keys: Keys, sources: list[list[_Group]], target_size: int | None) -> list[LakeFile]:
        lists = _divided(sources)
        if len(lists) == 1:
            return self._written(keys, lists[0], target_size)
        runs = list[LakeFile]()
        try:
            for groups in lists:
                runs += self._written(keys, groups, None)
            return self._merged(keys, [self._survey(run) for run in runs], target_size)
        finally:
            self.place.remove(run.path for run in runs)

    def _survey(self, file: LakeFile) -> list[_Group]:
        """The row groups of a file: their times are looked at, as statistics may be wrong."""
        groups = []
        with opened_parquet(self.place, file.path) as source:
            names = [name for name in TIMES if name in source.schema_arrow.names]
            for number in range(source.num_row_groups):
                metadata = source.metadata.row_group(number)
                if not metadata.num_rows:
                    continue
                times = times_of(source.read_row_group(number, names or source.schema_arrow.names[:1]))
                is_sorted = bool(np.all(times[:-1] <= times[1:]))
                size = metadata.total_byte_size + metadata.num_rows * _ROW_BYTES
                groups.append(_Group(file, number, int(times.min()), int(times.max()), is_sorted, size))
                if self.progress is not None:
                    self.progress(0)
        return groups

    def _written(self, keys: Keys, groups: Sequence[_Group], target_size: int | None) -> list[LakeFile]:
        output = _Output(self.place, self.rows.schema, keys, target_size)
        try:
            for table, times, row_size in self._in_order(groups):
                output.add(table, times, row_size)
            return output.finish()
        except BaseException:
            output.discard()
            raise

    def _in_order(self, groups: Sequence[_Group]) -> Iterator[tuple[pa.Table, Any, float]]:
        """Yield all rows in the order of time, with their times, and the bytes of each in memory."""
        numbered = sorted(enumerate(groups), key=lambda pair: (pair[1].first, pair[0]))
        waiting, opened = deque(numbered), list[_Opened]()
        while waiting or opened:
            bound = min((one.last for one in opened), default=waiting[0][1].first if waiting else 0)
            while waiting and waiting[0][1].first <= bound:
                opened.append(self._open(*waiting.popleft()))
                bound = min(one.last for one in opened)
            pieces = [piece for one in sorted(opened, key=_place) if (piece := one.up_to(bound)) is not None]
            opened = [one for one in opened if not one.is_empty]
            row_size = max(size for *_, size in pieces)
            if len(pieces) == 1:
                yield pieces[0]
                continue
            times = np.concatenate([times for _, times, _ in pieces])
            order = np.argsort(times, kind="stable")
            table = pa.concat_tables([table for table, _, _ in pieces]).take(pa.array(order))
            yield table, times[order], row_size

    def _open(self, place: int, group: _Group) -> _Opened:
        with opened_parquet(self.place, group.file.path) as source:
            rows = source.read_row_group(group.number)
            part = group.file.size // source.num_row_groups
        times = times_of(rows)
        table = self.rows.as_written(rows, group.file)
        if not group.is_sorted:
            order = np.argsort(times, kind="stable")
            table, times = table.take(pa.array(order)), times[order]
        if self.progress is not None:
            self.progress(part)
        return _Opened(place, table, times)


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group.

    Attributes:
        file, number: where it is.
        first, last: its least and greatest time.
        is_sorted: whether its rows are in order.
        size: its bytes in memory, about.
    """

    file: LakeFile
    number: int
    first: int
    last: int
    is_sorted: bool
    size: int


class _Opened:
    """A row group in memory.

    Attributes:
        place: its place among all, by which rows of one instant are ordered.
        last: its greatest time.
    """

    def __init__(self, place: int, table: pa.Table, times: Any) -> None:
        self.place, self.last = place, int(times[-1])
        self._table, self._times = table, times
        self._row_size = table.nbytes / len(times)
        self._taken = 0

    @property
    def is_empty(self) -> bool:
        return self._taken == len(self._times)

    def up_to(self, bound: int) -> tuple[pa.Table, Any, float] | None:
        """Take the rows up to a time; None if there are none."""
        start, stop = self._taken, int(np.searchsorted(self._times, bound, "right"))
        if start == stop:
            return None
        self._taken = stop
        return self._table.slice(start, stop - start), self._times[start:stop], self._row_size


def _place(one: _Opened) -> int:
    return one.place


def _divided(sources: list[list[_Group]]) -> list[list[_Group]]:
    """Divide row groups, so that of each list those that overlap are in memory at once.

    Those of a file stay together, unless they overlap each other and are too large on their own. Each list
    but the last one has two such units at least, of which one file is made: there are fewer each time,
    however large they are.
    """
    units = [
        unit
        for groups in sources
        for unit in (
            [groups]
            if _is_ordered(groups) or _depth(groups) <= OPEN_BYTES_MAX
            else [[group] for group in groups]
        )
    ]
    lists = list[list[_Group]]()
    count = 0
    for unit in units:
        if lists and (count < 2 or _depth([*lists[-1], *unit]) <= OPEN_BYTES_MAX):
            lists[-1] += unit
            count += 1
        else:
            lists.append(list(unit))
            count = 1
    return lists


def _is_ordered(groups: Sequence[_Group]) -> bool:
    """Whether each row group follows the one before."""
    return all(before.last <= after.first for before, after in pairwise(groups))


def _depth(groups: Sequence[_Group]) -> int:
    """The bytes of the row groups that are in memory at once, at most."""
    firsts = np.array([group.first for group in groups])
    lasts = np.array([group.last for group in groups])
    sizes = np.array([group.size for group in groups])
    moments = np.concatenate([firsts, lasts])
    ends = np.repeat([0, 1], len(groups))
    order = np.lexsort((ends, moments))
    return int(np.cumsum(np.concatenate([sizes, -sizes])[order]).max(initial=0))


class _Output:
    """The files that are written, one after the other.

    Args:
        place: where the lake is.
        schema: the schema of the rows.
        keys: the values of the partition.
        target_size: bytes of each file, at least; None for one file.
    """

    def __init__(self, place: Place, schema: pa.Schema, keys: Keys, target_size: int | None) -> None:
        self._place, self._schema, self._keys, self._target = place, schema, keys, target_size
        self._folder, self._names = folder_of(keys), FileNames()
        self._group_bytes = min(ROW_GROUP_BYTES, _IN_MEMORY * (target_size or ROW_GROUP_BYTES))
        self._file: DataFile | None = None
        self._last = NO_TIME
        self._done: list[LakeFile] = []
        self._tables: list[pa.Table] = []
        self._times: list[Any] = []
        self._rows, self._bytes = 0, 0.0

    def add(self, table: pa.Table, times: Any, row_size: float) -> None:
        """Add rows, which follow those before."""
        step = max(min(ROW_GROUP_ROWS, int(self._group_bytes / max(row_size, 1))), 1)
        for start in range(0, table.num_rows, step):
            piece = table.slice(start, step)
            self._tables.append(piece)
            self._times.append(times[start : start + step])
            self._rows += piece.num_rows
            self._bytes += piece.num_rows * row_size
            if self._rows >= ROW_GROUP_ROWS or self._bytes >= self._group_bytes:
                self._write()

    def _write(self) -> None:
        """Write the rows that wait, into the next file if this one is large enough and the time changes."""
        if not self._rows:
            return
        table, times, size = pa.concat_tables(self._tables), np.concatenate(self._times), self._bytes
        self._tables, self._times, self._rows, self._bytes = [], [], 0, 0.0
        if self._is_full():
            start = int(np.searchsorted(times, self._last, "right"))
            if start:
                self._write_group(table.slice(0, start), round(size * start / len(times)))
            if start < len(times) or self._is_full(_INSTANT_FACTOR):
                self._end_file()
            table, size = table.slice(start), size * (len(times) - start) / len(times)
        if table.num_rows:
            self._write_group(table, round(size))
        self._last = int(times[-1])

    def _is_full(self, factor: int = 1) -> bool:
        if self._file is None or self._target is None:
            return False
        return self._file.written >= self._target * factor

    def _write_group(self, table: pa.Table, size: int) -> None:
        if self._file is None:
            self._file = DataFile(self._place, self._names.new(self._folder), self._keys, self._schema)
        self._file.write(table, size)

    def _end_file(self) -> None:
        if self._file is not None:
            self._done.append(self._file.close())
            self._file = None

    def finish(self) -> list[LakeFile]:
        """Write the remaining rows; return the files, which are on disk then."""
        self._write()
        self._end_file()
        self._place.sync(file.path for file in self._done)
        return self._done

    def discard(self) -> None:
        """Remove the files."""
        if self._file is not None:
            self._file.discard()
        self._place.remove(file.path for file in self._done)
