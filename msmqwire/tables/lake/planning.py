"""The work for a lake: captures that are new, and of those that have grown the last part.

All captures of a run are one capture, in their order, read in parts. A part that the lake has stays unless
its captures have changed: a capture was replaced or has grown, another one came between, also in the bytes
before it that are read to learn the state of connections; or it was the end of all captures, and no longer
is. Captures that are not named stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url
from msmqwire.capture.window import Window
from msmqwire.errors import LakeMismatch
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.lake.captures import Change, examine_all
from msmqwire.tables.lake.state import CaptureEntry, LakeState, PartEntry, WindowRange
from msmqwire.tables.parts import WARM_UP_FILES_MAX, Part, plan_parts, plan_windows

SPLIT_SIZE: Final = 512 << 20
OVERLAP: Final = 16 << 20
_NO_LIMIT: Final = 1 << 62


@dataclass(frozen=True)
class Plan:
    """The work of a run.

    Attributes:
        parts: the parts to read.
        replaced: the parts of the lake whose files those of `parts` replace.
        captures: the captures of the run, as they are now, by path.
        continued: the part of the lake that the only one of `parts` continues, under its number; None if they
            are parts of their own.
    """

    parts: Sequence[Part | ExactPart]
    replaced: Sequence[PartEntry]
    captures: dict[str, CaptureEntry]
    continued: PartEntry | None = None


def plan_run(
    files: Sequence[str],
    state: LakeState,
    *,
    split_size: int = SPLIT_SIZE,
    overlap: int = OVERLAP,
    search: bool = False,
    whole: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
) -> Plan:
    """Return the parts to read so that a lake has these captures.

    Args:
        files: absolute paths and URLs, each once, in their order.
        state: the state of the lake.
        split_size: bytes of a part, about.
        overlap: bytes that are read before a part to learn the state of connections.
        search, storage_options: as for `plan_windows`.
        whole: whether rows depend on all that was captured before: then, where anything is to be read, all
            captures are, in one part.

    Raises:
        LakeMismatch: a capture has to be read again together with captures that are not named.
        OSError: a file can't be read.
    """
    examined = examine_all(files, state.captures, storage_options)
    changes = {entry.path: change for entry, change in examined}
    captures = {entry.path: entry for entry, _ in examined}
    run = _Run(files, captures, changes, 0 if whole else split_size, overlap, search, storage_options)
    while True:
        replaced = _replaced(run, state)
        kept = _ranges(without(state.parts, replaced))
        windows, already_read, moved = _windows(run, kept)
        if whole and kept and any(len(found) > had for found, had in zip(windows, already_read, strict=True)):
            moved = set(files)
        if moved <= run.distrusted:
            break
        run = replace(run, distrusted=run.distrusted | moved)
    size = _NO_LIMIT if whole else split_size
    parts = plan_parts(windows, size, overlap, already_read=already_read, last_alone=not whole)
    if parts and parts[-1].windows[-1].path == files[-1]:
        parts[-1] = replace(parts[-1], is_last=True)
    return Plan([_numbered(part) for part in parts], replaced, captures)


def without(parts: Sequence[PartEntry], removed: Sequence[PartEntry]) -> list[PartEntry]:
    """Return the parts that are not, as objects, among those removed."""
    ids = {id(part) for part in removed}
    return [part for part in parts if id(part) not in ids]


def _numbered(part: Part) -> Part:
    """The part with the numbers of frames where a file is read from its start.

    They are the same numbers whether the file is split or not, and when it grows.
    """
    return replace(part, split_files=frozenset(window.path for window in part.windows if window.start))


def _ranges(parts: Sequence[PartEntry]) -> dict[str, list[WindowRange]]:
    """The ranges of each capture that some parts have, in order."""
    ranges: dict[str, list[WindowRange]] = {}
    for part in parts:
        for window in part.windows:
            ranges.setdefault(window.path, []).append(window)
    return {path: sorted(of_path, key=lambda window: window.start) for path, of_path in ranges.items()}


@dataclass(frozen=True)
class _Run:
    """The state that a run has found before it plans.

    Attributes:
        files: the captures, in their order.
        captures: the captures as they are now.
        changes: their changes.
        split_size, overlap, search, storage_options: as for `plan_run`.
        distrusted: captures whose windows would differ now from those that the lake has.
    """

    files: Sequence[str]
    captures: dict[str, CaptureEntry]
    changes: dict[str, Change]
    split_size: int
    overlap: int
    search: bool
    storage_options: StorageOptions
    distrusted: frozenset[str] = frozenset()

    @cached_property
    def order(self) -> dict[str, int]:
        """The place of each capture."""
        return {path: number for number, path in enumerate(self.files)}

    def whole(self, path: str) -> Window:
        """The window of a whole capture."""
        capture = self.captures[path]
        options = self.storage_options if is_url(path) else NO_OPTIONS
        return Window(path, b"", 0, capture.size, storage_options=options, version=capture.version)

    def planned(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Window]]]:
        """Yield the windows in which captures are to be read; they may have grown meanwhile."""
        found = plan_windows(
            paths,
            self.split_size,
            search=self.search,
            overlap=self.overlap,
            fixed=True,
            storage_options=self.storage_options,
        )
        for path, windows in zip(paths, found, strict=True):
            size = self.captures[path].size
            within = windows[:1] + [window for window in windows[1:] if window.start < size]
            yield path, [*within[:-1], replace(within[-1], end=size)]

    def makes_stale(self, part: PartEntry, state: LakeState) -> bool:
        """Whether a part of the lake has to be read again."""
        if not all(self._is_valid(window, state) for window in part.windows):
            return True
        paths = list(dict.fromkeys(window.path for window in part.windows))
        order, last = self.order, self.order.get(paths[-1])
        if part.is_last and last is not None and last < len(self.files) - 1:
            return True
        return self._differs_before(part.windows[0]) or any(
            before in order and after in order and order[after] != order[before] + 1
            for before, after in pairwise(paths)
        )

    def _is_valid(self, window: WindowRange, state: LakeState) -> bool:
        """Whether the bytes of a window are those of the capture now."""
        if window.path in self.distrusted:
            return False
        change = self.changes.get(window.path, Change.NONE)
        if change is Change.GROWN:
            return window.end < state.captures[window.path].size
        return change is Change.NONE

    def _differs_before(self, window: WindowRange) -> bool:
        """Whether the bytes that are read before a window have changed."""
        number, size = self.order.get(window.path, 0), window.start
        for path in reversed(self.files[max(number - WARM_UP_FILES_MAX, 0) : number]):
            if size >= self.overlap:
                break
            if self.changes[path] is not Change.NONE:
                return True
            size += self.captures[path].size
        return False


def _replaced(run: _Run, state: LakeState) -> list[PartEntry]:
    """The parts that have to be read again.

    Raises:
        LakeMismatch: some, but not all captures of such a part are named.
    """
    stale = [part for part in state.parts if run.makes_stale(part, state)]
    while True:
        # The part kept of a capture is its beginning.
        starts = {path: ranges[0].start for path, ranges in _ranges(stale).items()}
        behind = [
            part
            for part in without(state.parts, stale)
            if any(window.start > starts.get(window.path, window.end) for window in part.windows)
        ]
        if not behind:
            break
        stale += behind
    for part in stale:
        missing = [window.path for window in part.windows if window.path not in run.order]
        if missing:
            named = next(window.path for window in part.windows if window.path in run.order)
            raise LakeMismatch(
                f"it has changed, or captures beside it have, and it is read together with {missing[0]}:"
                " name all of them, in their order, or start another lake",
                file=named,
            )
    return stale


def _windows(run: _Run, kept: dict[str, list[WindowRange]]) -> tuple[list[list[Window]], list[int], set[str]]:
    """The windows of each capture, the number kept at its start, and the captures whose windows would differ
    now.
    """
    windows, already_read, moved = list[list[Window]](), list[int](), set[str]()
    whole = {path for path in run.files if path in kept and kept[path][-1].end == run.captures[path].size}
    planned = dict(run.planned([path for path in run.files if path not in whole]))
    for path in run.files:
        ranges = kept.get(path, [])
        if path in whole:
            windows.append([run.whole(path)])
            already_read.append(1)
            continue
        found = [(window.start, window.end) for window in planned[path][: len(ranges)]]
        if found != [(window.start, window.end) for window in ranges]:
            moved.add(path)
        windows.append(planned[path])
        already_read.append(len(ranges))
    return windows, already_read, moved
