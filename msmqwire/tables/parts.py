"""Captures divided into parts that are read by different tasks or processes.

The files are one capture, in their order. A part is the input of one task: a window of a large file, or
several small files that follow each other. It is preceded by a warm-up, which the task reads to learn the
state of connections that began earlier; whatever the warm-up yields is left to other parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final, Literal, cast

from msmqwire.capture import open_records
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.splits import Window, divide, last_part, whole_file
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url
from msmqwire.errors import CaptureError

Splits = Literal["walked", "searched", "exact"]
"""Division of captures: at records that are found by reading them once, or near each split; or as
`msmqwire.tables.exact_parts` does.
"""
SPLITS: Final = ("walked", "searched", "exact")
WARM_UP_FILES_MAX: Final = 64
"""Files that a task reads before its own, however small they are."""
PLANNED_AT_ONCE: Final = 16
"""Files in stores whose windows are planned at the same time."""


@dataclass(frozen=True)
class Part:
    """The input of one task.

    Attributes:
        windows: its windows, in order.
        file_index: the index in the capture of the file of the first window; those of later windows follow
            it.
        warm_up: the windows to read before them, in order.
        overlap: sufficient bytes of warm-up; the task shortens a longer one.
        split_files: the files of which this or another part has a window, so that no part knows the numbers
            of their frames.
        is_only: whether there are no other parts.
        is_last: whether the capture ends with it.
    """

    windows: tuple[Window, ...]
    file_index: int
    warm_up: tuple[Window, ...]
    overlap: int
    split_files: frozenset[str]
    is_only: bool
    is_last: bool

    def warm_up_windows(self) -> list[Window]:
        """Return the warm-up, shortened to the overlap, with its end as a window of its own.

        Only the end is read with the care due to the part itself: before it, connections are joined
        at the first segment.
        """
        windows = _last_windows(self.warm_up, self.overlap)
        if windows:
            end = last_part(windows[-1], _careful_size(self.overlap), skip_known)
            if end.start > windows[-1].start:
                windows[-1:] = [replace(windows[-1], end=end.start), end]
        return windows

    def joined_ns(self) -> int:
        """Return the time of the first frame with one that the task of the next part reads; 0 for none."""
        joined: list[Window] = []
        for window in (*self.warm_up, *self.windows):
            if joined and joined[-1].path == window.path:
                joined[-1] = replace(joined[-1], end=window.end, tails=window.tails)
            else:
                joined.append(window)
        first = _last_windows(joined[-WARM_UP_FILES_MAX:], self.overlap)[:1]
        for window in first:
            with window.open() as stream, suppress(CaptureError):
                for record in open_records(cast(BinaryIO, stream)):
                    if record.time_ns != NO_TIME:
                        return record.time_ns
        return 0


def _careful_size(overlap: int) -> int:
    """Bytes at the end of a warm-up that are read with the care due to the part itself."""
    return overlap // 4


def skip_known(*arguments: Any) -> tuple[int, int]:
    """Skip records by compiled code; its compiler is not imported before a file is scanned."""
    from msmqwire.tables.compiled.skip import skip_records

    return skip_records(*arguments)


def _last_windows(windows: Sequence[Window], size: int) -> list[Window]:
    """The last windows that have at least `size` bytes together, the first of them shortened."""
    last = list[Window]()
    for window in reversed(windows):
        if size <= 0:
            break
        last.append(last_part(window, size, skip_known))
        size -= window.end - window.start
    return last[::-1]


@dataclass
class _WindowGroup:
    """Windows that one task reads."""

    file_index: int
    windows: list[Window] = field(default_factory=list)
    size: int = 0

    def accepts(self, file_index: int, window: Window, size: int, split_size: int) -> bool:
        """Whether a window, the start of the file after the last one, fits into the group."""
        follows = window.start == 0 and file_index == self.file_index + len(self.windows)
        return follows and self.windows[0].start == 0 and self.size + size <= split_size


def plan_parts(
    windows: Sequence[Sequence[Window]],
    split_size: int,
    overlap: int,
    *,
    already_read: Sequence[int] | None = None,
    last_alone: bool = False,
) -> list[Part]:
    """Return the parts of a capture.

    Args:
        windows: the windows of each file, in their order; neighbours in a file adjoin.
        split_size: bytes of files that one task may read together; 0 for each file on its own.
        overlap: bytes of warm-up.
        already_read: for reading that continues an earlier one and does not end the capture, the number of
            windows at the start of each file that were read before.
        last_alone: whether the last file, which may still grow, is in a part of its own.
    """
    split_files = {of_file[0].path for of_file in windows if len(of_file) > 1 or (already_read and of_file)}
    groups: list[_WindowGroup] = []
    for index, of_file in enumerate(windows):
        for window in of_file[already_read[index] if already_read else 0 :]:
            size = window.end - window.start
            alone = last_alone and index == len(windows) - 1
            if alone or not groups or not groups[-1].accepts(index, window, size, split_size):
                groups.append(_WindowGroup(index))
            groups[-1].windows.append(window)
            groups[-1].size += size
    parts = []
    for number, group in enumerate(groups):
        warm_up = tuple(_warm_up(windows, group, overlap))
        parts.append(
            Part(
                windows=tuple(group.windows),
                file_index=group.file_index,
                warm_up=warm_up,
                overlap=overlap,
                split_files=frozenset(split_files & {window.path for window in (*warm_up, *group.windows)}),
                is_only=len(groups) == 1 and already_read is None,
                is_last=number == len(groups) - 1 and already_read is None,
            )
        )
    return parts


def _warm_up(windows: Sequence[Sequence[Window]], group: _WindowGroup, overlap: int) -> list[Window]:
    """The windows before a group, one per file, with at least `overlap` bytes where there are as many."""
    warm_up: list[Window] = []
    for window in _preceding(windows, group):
        if overlap <= 0:
            break
        if warm_up and warm_up[-1].path == window.path:
            warm_up[-1] = replace(window, end=warm_up[-1].end, tails=warm_up[-1].tails)
        elif len(warm_up) == WARM_UP_FILES_MAX:
            break
        else:
            warm_up.append(window)
        overlap -= window.end - window.start
    return warm_up[::-1]


def _preceding(windows: Sequence[Sequence[Window]], group: _WindowGroup) -> Iterator[Window]:
    """Yield the windows before a group, the nearest first."""
    first = group.windows[0]
    yield from reversed([window for window in windows[group.file_index] if window.start < first.start])
    for of_file in reversed(windows[: group.file_index]):
        yield from reversed(of_file)


def plan_windows(
    files: Sequence[str],
    split_size: int,
    *,
    search: bool,
    overlap: int = 0,
    fixed: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
) -> list[list[Window]]:
    """Return the windows of each file.

    Args:
        files: their paths, or URLs.
        split_size: approximate maximum of bytes in a window; 0 for whole files.
        search: as for `plan`.
        overlap: bytes of warm-up of the parts that will be made of them.
        fixed: whether windows start at multiples of `split_size`, where they stay when the file grows;
            otherwise all are of similar size.
        storage_options: the options of the stores of URLs.

    Raises:
        FileNotFoundError: a file has disappeared.
        UnsupportedStore: the store of a URL can't be used.
        OSError: a file can't be read.
    """
    tails = (overlap, _careful_size(overlap))

    def windows(path: str) -> list[Window]:
        whole = whole_file(path, storage_options)
        size = split_size if fixed else _window_size(whole.end, split_size)
        return divide(whole, size, search=search, tails=tails, skip=skip_known)

    # Planning a file of a store is mostly waiting.
    with ThreadPoolExecutor(PLANNED_AT_ONCE if any(map(is_url, files)) else 1) as pool:
        return list(pool.map(windows, files))


def _window_size(size: int, split_size: int) -> int:
    """Bytes of a window such that the windows of a file are alike in size and as few as possible."""
    return -(-size // -(-size // split_size)) if size and split_size else split_size
