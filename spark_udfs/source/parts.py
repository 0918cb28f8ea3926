"""The captures of a load divided among tasks.

The files of a load are one capture, in their order. A part is the work of one task: a window of a
large file, or several small files that follow each other. Before them stands what the task reads to
know the connections that come in from before, the warm-up: what it brings about is the result of
other parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final, cast

from pyspark.sql.datasource import InputPartition

from msmqwire.capture import open_records
from msmqwire.capture.splits import Window, last_part, plan
from msmqwire.errors import CaptureError

WARM_UP_FILES_MAX: Final = 64
"""Files that a task reads before its own, however small they are."""


@dataclass(frozen=True)
class Part(InputPartition):
    """What one task reads.

    Attributes:
        windows: its windows, in order.
        file_index: the place in the load of the file of the first window; the others follow it.
        warm_up: what to read before them, in order.
        overlap: bytes of the warm-up that are enough; what is longer is shortened by the task.
        cut_files: the files of which this or another part has a window, so that no part knows the
            numbers of their frames.
        alone: whether there are no other parts.
        last: whether the capture ends with it.
    """

    windows: tuple[Window, ...]
    file_index: int
    warm_up: tuple[Window, ...]
    overlap: int
    cut_files: frozenset[str]
    alone: bool
    last: bool

    def before(self) -> list[Window]:
        """The warm-up, no longer than needed, its end apart: before that, a reader may be hasty."""
        found = _last_of(self.warm_up, self.overlap)
        if found:
            end = last_part(found[-1], _hasty(self.overlap), _skip)
            if end.start > found[-1].start:
                found[-1:] = [replace(found[-1], end=end.start), end]
        return found

    def joined_ns(self) -> int:
        """The time of the first frame that the reader of what follows knows; 0 for none."""
        joined: list[Window] = []
        for window in (*self.warm_up, *self.windows):
            if joined and joined[-1].path == window.path:
                joined[-1] = replace(joined[-1], end=window.end, tails=window.tails)
            else:
                joined.append(window)
        first = _last_of(joined[-WARM_UP_FILES_MAX:], self.overlap)[:1]
        for window in first:
            with window.open() as stream, suppress(CaptureError):
                for record in open_records(cast(BinaryIO, stream)):
                    return record.time_ns
        return 0


def _hasty(overlap: int) -> int:
    """Bytes of the end of a warm-up that are read as what follows it is."""
    return overlap // 4


def _skip(*given: Any) -> tuple[int, int]:
    """`skip_records`; what compiles it is not imported before a file is walked."""
    from msmqwire.columnar.compiled.skip import skip_records

    return skip_records(*given)


def _last_of(windows: Sequence[Window], size: int) -> list[Window]:
    """The last bytes of some windows, so many at least where there are."""
    found = list[Window]()
    for window in reversed(windows):
        if size <= 0:
            break
        found.append(last_part(window, size, _skip))
        size -= window.end - window.start
    return found[::-1]


@dataclass
class _Run:
    """Windows that one task may read."""

    file_index: int
    windows: list[Window] = field(default_factory=list)
    size: int = 0

    def takes(self, file_index: int, window: Window, size: int, split_size: int) -> bool:
        """Whether a window may be read with those that are there: the start of the file after theirs."""
        follows = window.start == 0 and file_index == self.file_index + len(self.windows)
        return follows and self.windows[0].start == 0 and self.size + size <= split_size


def parts(
    windows: Sequence[Sequence[Window]],
    split_size: int,
    overlap: int,
    *,
    old: Sequence[int] | None = None,
) -> list[Part]:
    """The parts of a load.

    Args:
        windows: the windows of each file, in the order of the load; neighbours in a file adjoin.
        split_size: bytes of files that one task may read together; 0 for each file apart.
        overlap: bytes of warm-up.
        old: for a load that goes on from an earlier one and does not end the capture, how many windows
            at the start of each file have been read before.
    """
    cut_files = {of_file[0].path for of_file in windows if len(of_file) > 1 or (old and of_file)}
    runs: list[_Run] = []
    for index, of_file in enumerate(windows):
        for window in of_file[old[index] if old else 0 :]:
            size = window.end - window.start
            if not runs or not runs[-1].takes(index, window, size, split_size):
                runs.append(_Run(index))
            runs[-1].windows.append(window)
            runs[-1].size += size
    found = []
    for number, run in enumerate(runs):
        warm_up = tuple(_warm_up(windows, run, overlap))
        found.append(
            Part(
                windows=tuple(run.windows),
                file_index=run.file_index,
                warm_up=warm_up,
                overlap=overlap,
                cut_files=frozenset(cut_files & {window.path for window in (*warm_up, *run.windows)}),
                alone=len(runs) == 1 and old is None,
                last=number == len(runs) - 1 and old is None,
            )
        )
    return found


def _warm_up(windows: Sequence[Sequence[Window]], run: _Run, overlap: int) -> list[Window]:
    """What stands before a run, at least the bytes asked for where there are as many: one window a file."""
    found: list[Window] = []
    for window in _backwards(windows, run):
        if overlap <= 0:
            break
        if found and found[-1].path == window.path:
            found[-1] = replace(window, end=found[-1].end, tails=found[-1].tails)
        elif len(found) == WARM_UP_FILES_MAX:
            break
        else:
            found.append(window)
        overlap -= window.end - window.start
    return found[::-1]


def _backwards(windows: Sequence[Sequence[Window]], run: _Run) -> Iterator[Window]:
    first = run.windows[0]
    yield from reversed([window for window in windows[run.file_index] if window.start < first.start])
    for of_file in reversed(windows[: run.file_index]):
        yield from reversed(of_file)


def windows_of(
    files: Sequence[str], split_size: int, *, search: bool, overlap: int = 0
) -> list[list[Window]]:
    """The windows of each file, alike in size.

    Args:
        files: their paths.
        split_size: bytes of a window, about, at most; 0 for whole files.
        search: as for `plan`.
        overlap: bytes of warm-up of the parts that will be made of them.

    Raises:
        FileNotFoundError: a file is not there any more.
        OSError: a file can't be read.
    """
    tails = (overlap, _hasty(overlap))
    return [plan(path, _even(path, split_size), search=search, tails=tails, skip=_skip) for path in files]


def _even(path: str, split_size: int) -> int:
    """Bytes of a window with which none of a file is much smaller than the others, and there are no more."""
    size = os.path.getsize(path)
    return -(-size // -(-size // split_size)) if size and split_size else split_size
