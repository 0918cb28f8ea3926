"""Captures that are looked at again and again: which there are, and whether anything is new."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from msmqwire.capture.files import holds_capture
from msmqwire.capture.folders import PassedOver
from msmqwire.capture.paths import capture_files, expand, is_folder
from msmqwire.capture.splits import whole_file
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url
from msmqwire.tables.lake.state import CaptureEntry
from msmqwire.tables.parts import PLANNED_AT_ONCE

_MAGIC_SIZE: Final = 4
"""Bytes that a file in a folder must have before it is known to be no capture."""


class Stamp(NamedTuple):
    """The size of a file, and what tells that it is the same file with the same content.

    Attributes:
        size: its bytes.
        mtime_ns, inode: of its status; 0 of a URL.
        version: the version of the content of a URL.
    """

    size: int
    mtime_ns: int
    inode: int
    version: str = ""

    def is_of(self, entry: CaptureEntry) -> bool:
        """Whether a file is as a lake has it."""
        return self == (entry.size, entry.mtime_ns, entry.inode, entry.version)


@dataclass(frozen=True)
class Look:
    """The captures at one time.

    Attributes:
        stamps: the captures in their order, by absolute path or URL.
        steady: those that the look before has found as they are; of the first look, all.
        is_new: whether anything is not as the look before has found it.
    """

    stamps: dict[str, Stamp]
    steady: frozenset[str]
    is_new: bool


class Watch:
    """Looks at the captures that sources mean.

    Args:
        sources: as for `msmqwire.capture.folders.all_captures_of`.
        storage_options: the options of the stores of URLs.
        passed_over: called with files of a folder that are not captures, once for each.
    """

    def __init__(
        self,
        sources: Sequence[str | os.PathLike[str]],
        storage_options: StorageOptions,
        passed_over: Callable[[PassedOver], None],
    ) -> None:
        self._sources, self._options, self._passed_over = sources, storage_options, passed_over
        self._last: dict[str, Stamp] | None = None
        self._known: dict[str, tuple[Stamp, bool]] = {}  # whether a file in a folder is a capture
        self._reported = set[str]()

    def look(self) -> Look:
        """Look at the captures.

        Raises:
            FileNotFoundError: at the first look, a path names no file.
            UnsupportedStore: the store of a URL can't be used.
            OSError: a folder or a store can't be read.
        """
        paths = dict.fromkeys(path for source in self._sources for path in self._files(source))
        # They are looked at after they are listed: a file before a newer one has its last bytes then.
        stamps = self._stamps(list(paths))
        last = self._last
        self._last = stamps
        before = last or {}
        steady = frozenset(path for path, stamp in stamps.items() if before.get(path) == stamp)
        if last is None:
            steady = frozenset(stamps)
        is_new = last is None or list(last) != list(stamps) or len(steady) < len(stamps)
        return Look(stamps, steady, is_new)

    def _files(self, source: str | os.PathLike[str]) -> list[str]:
        if is_folder(source, self._options):
            return self._in_folder(source)
        try:
            # A pattern may match nothing as yet.
            return capture_files([source], self._options, may_miss=True)
        except FileNotFoundError:
            if self._last is None:
                raise
            return []

    def _in_folder(self, folder: str | os.PathLike[str]) -> list[str]:
        """The captures in a folder; whether a file is one is asked once, unless it changes."""
        paths = [str(f.absolute()) if isinstance(f, Path) else f for f in expand([folder], self._options)]
        stamps = self._stamps(paths)
        found = [path for path, stamp in stamps.items() if self._is_capture(path, stamp)]
        captures = set(found)
        others = {
            path: path.rpartition("/")[2]
            for path, stamp in stamps.items()
            if path not in captures and path not in self._reported and stamp.size >= _MAGIC_SIZE
        }
        if others:
            self._reported.update(others)
            self._passed_over(PassedOver(os.fspath(folder), tuple(others.values())))
        return found

    def _is_capture(self, path: str, stamp: Stamp) -> bool:
        known = self._known.get(path)
        if known is None or not (known[0] == stamp or (known[1] and known[0].inode == stamp.inode)):
            try:
                known = stamp, holds_capture(path, self._options)
            except FileNotFoundError:
                return False
            self._known[path] = known
        return known[1]

    def _stamps(self, paths: Sequence[str]) -> dict[str, Stamp]:
        """The stamps of files; those that are gone are left out."""
        if any(map(is_url, paths)):
            with ThreadPoolExecutor(PLANNED_AT_ONCE) as pool:
                stamps = list(pool.map(lambda path: stamp_of(path, self._options), paths))
        else:
            stamps = [stamp_of(path) for path in paths]
        return {path: stamp for path, stamp in zip(paths, stamps, strict=True) if stamp is not None}


def stamp_of(path: str, storage_options: StorageOptions = NO_OPTIONS) -> Stamp | None:
    """Return the stamp of a file; None if it is gone. Raises UnsupportedStore, OSError."""
    try:
        if is_url(path):
            whole = whole_file(path, storage_options)
            return Stamp(whole.end, 0, 0, whole.version)
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
