"""The manifest of a lake: which files it consists of, and of which captures they were made.

A JSON file, replaced as a whole by each commit. Files that it does not name are not in the lake. A lake may
be in a folder that other users can write to, so each value is checked, and no path leads out of the folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from msmqwire.capture.paths import local_path
from msmqwire.capture.stores import is_url
from msmqwire.errors import InvalidValue, LakeDamaged, LakeMissing, UnsupportedStore
from msmqwire.ownership import read_own

HIDDEN: Final = "_lake"
"""The folder for everything but data: readers of whole folders skip names that start with ``_``."""
NAME: Final = "manifest.json"
STAGING: Final = f"{HIDDEN}/staging"
_FORMAT: Final = 1
_SIZE_MAX: Final = 1 << 30
"""Bytes of a manifest: a million files have about half of it."""
_TOKEN: Final = "[0-9a-f]{32}"
_FILE: Final = re.compile(rf"(date=[^/\0]+/)((kind|queue)=[^/\0]+/)?part-{_TOKEN}-[0-9]{{1,9}}\.parquet")
_STAGED: Final = re.compile(rf"{STAGING}/{_TOKEN}/{_TOKEN}-[0-9]{{1,9}}\.staged")
_RUN: Final = re.compile(rf"{STAGING}/{_TOKEN}")

T = TypeVar("T")
Keys = dict[str, str | None]
"""The values of a partition: a date as ISO text, a kind, a queue. None stands for null."""


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One Parquet file.

    Attributes:
        path: its path below the folder, with ``/``.
        rows: its rows.
        size: its bytes.
        keys: the values of its partition.
        first_ns, last_ns: the earliest and the latest time in it, in nanoseconds since 1970; None if no row
            has one.
    """

    path: str
    rows: int
    size: int
    keys: Keys
    first_ns: int | None
    last_ns: int | None


@dataclass(frozen=True, slots=True)
class Damage:
    """The error that ended the reading of a capture; see `msmqwire.errors.CaptureError`."""

    file: str
    offset: int
    why: str
    cut: bool


@dataclass(frozen=True, slots=True)
class WindowRange:
    """A range of a capture file that was read: from a record, up to the next range or the end."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PartEntry:
    """The windows that one task has read, and the files that it has written.

    Attributes:
        windows: those read, in order.
        is_last: whether it was the end of the captures, so that all incomplete packets were reported.
        commit: the number of the commit that added it.
        files: those written; none without rows.
        damages: the captures that it could not read to their ends.
    """

    windows: tuple[WindowRange, ...]
    is_last: bool
    commit: int
    files: tuple[LakeFile, ...]
    damages: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class CaptureEntry:
    """A capture file as it was when it was read.

    Attributes:
        path: its absolute path, or its URL.
        size, mtime_ns, inode: of its status; of a URL only the size.
        digest: the digest of samples of its bytes; see `msmqwire.tables.lake.captures`.
        version: the version of the content of a URL.
    """

    path: str
    size: int
    mtime_ns: int
    inode: int
    digest: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """The rest of a commit, which the next process carries out if it was interrupted.

    Attributes:
        run: the folder of the staged files, below that of the lake.
        removals: files that are no longer in the lake.
        moves: staged files, and the paths that the manifest names.
    """

    run: str
    removals: tuple[str, ...]
    moves: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Manifest:
    """The contents of a lake.

    Attributes:
        settings: the settings for reading captures into it: JSON values by name.
        commit: the number of the last commit; 0 for a new lake.
        captures: the captures by path, in the order in which they came.
        parts: all parts.
        pending: the rest of the last commit; None once it is complete.
    """

    settings: Mapping[str, Any]
    commit: int = 0
    captures: Mapping[str, CaptureEntry] = field(default_factory=dict)
    parts: Sequence[PartEntry] = ()
    pending: Pending | None = None

    @property
    def files(self) -> list[LakeFile]:
        """All files of the lake."""
        return [file for part in self.parts for file in part.files]

    def dump(self) -> bytes:
        """Return the manifest as JSON."""
        lists = {"captures": self.captures.values(), "parts": self.parts}
        data = {
            "msmqwire_lake": _FORMAT,
            "commit": self.commit,
            "settings": self.settings,
            "pending": self.pending,
        }
        # One object a line. An indented text would take the encoder that is not compiled.
        members = [f"{json.dumps(name)}: {_json(value)}" for name, value in data.items()]
        members += [
            f"{json.dumps(name)}: [\n" + ",\n".join(map(_json, values)) + "\n]"
            for name, values in lists.items()
        ]
        return ("{\n" + ",\n".join(members) + "\n}\n").encode()


def _json(value: Any) -> str:
    return json.dumps(value, default=lambda entry: {name: getattr(entry, name) for name in entry.__slots__})


def lake_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a lake by its real path.

    Raises:
        UnsupportedStore: it is a URL of a store. A commit renames files and holds a lock, which stores can't.
    """
    if is_url(path):
        raise UnsupportedStore(f"{os.fspath(path)}: a lake is in a local folder, or in one that is mounted")
    return Path(os.path.realpath(local_path(os.fspath(path))))


def load(folder: Path) -> Manifest:
    """Return the manifest of a lake.

    Raises:
        LakeMissing: the folder has none.
        LakeDamaged: it is not as it should be.
        OSError: it can't be read.
    """
    path = folder / HIDDEN / NAME
    try:
        content = read_own(path, _SIZE_MAX, None)
    except InvalidValue as exc:
        raise LakeDamaged(exc.why, file=str(path)) from None
    except (FileNotFoundError, NotADirectoryError):
        raise LakeMissing("no lake: it has no manifest", file=str(folder)) from None
    try:
        return _Reader().manifest(json.loads(content))
    except (_Wrong, ValueError, RecursionError) as exc:
        raise LakeDamaged(f"the manifest is damaged: {exc}", file=str(path)) from None


class _Wrong(Exception):
    """A value that a manifest can't have; the text has its path."""


class _Reader:
    """Reads the JSON of a manifest."""

    def manifest(self, data: Any) -> Manifest:
        if _get(data, "msmqwire_lake", int, "") != _FORMAT:
            raise _Wrong(f"it has format {data['msmqwire_lake']}, not {_FORMAT}")
        captures = _list(data, "captures", "", self.capture)
        pending = data.get("pending")
        return Manifest(
            settings=_get(data, "settings", dict, ""),
            commit=_natural(data, "commit", ""),
            captures={capture.path: capture for capture in captures},
            parts=_list(data, "parts", "", self.part),
            pending=None if pending is None else self.pending(pending, "pending"),
        )

    def capture(self, data: Any, path: str) -> CaptureEntry:
        return CaptureEntry(
            path=_get(data, "path", str, path),
            size=_natural(data, "size", path),
            mtime_ns=_get(data, "mtime_ns", int, path),
            inode=_natural(data, "inode", path),
            digest=_get(data, "digest", str, path),
            version=_get(data, "version", str, path),
        )

    def part(self, data: Any, path: str) -> PartEntry:
        windows = _list(data, "windows", path, self.window)
        if not windows:
            raise _Wrong(f"{path}.windows: empty")
        return PartEntry(
            windows=windows,
            is_last=_get(data, "is_last", bool, path),
            commit=_natural(data, "commit", path),
            files=_list(data, "files", path, self.file),
            damages=_list(data, "damages", path, self.damage),
        )

    def window(self, data: Any, path: str) -> WindowRange:
        start, end = _natural(data, "start", path), _natural(data, "end", path)
        if end < start:
            raise _Wrong(f"{path}: it ends at {end}, before its start {start}")
        return WindowRange(_get(data, "path", str, path), start, end)

    def damage(self, data: Any, path: str) -> Damage:
        return Damage(
            file=_get(data, "file", str, path),
            offset=_get(data, "offset", int, path),
            why=_get(data, "why", str, path),
            cut=_get(data, "cut", bool, path),
        )

    def file(self, data: Any, path: str) -> LakeFile:
        keys = _get(data, "keys", dict, path)
        for value in keys.values():
            if value is not None and not isinstance(value, str):
                raise _Wrong(f"{path}.keys: {value!r} is not text")
        return LakeFile(
            path=_matching(_get(data, "path", str, path), _FILE, f"{path}.path"),
            rows=_natural(data, "rows", path),
            size=_natural(data, "size", path),
            keys=keys,
            first_ns=_optional(data, "first_ns", path),
            last_ns=_optional(data, "last_ns", path),
        )

    def pending(self, data: Any, path: str) -> Pending:
        def file(item: Any, path: str) -> str:
            return _matching(item, _FILE, path)

        def move(item: Any, path: str) -> tuple[str, str]:
            if not isinstance(item, list) or len(item) != 2:
                raise _Wrong(f"{path}: no pair")
            return _matching(item[0], _STAGED, path), _matching(item[1], _FILE, path)

        return Pending(
            run=_matching(_get(data, "run", str, path), _RUN, f"{path}.run"),
            removals=_list(data, "removals", path, file),
            moves=_list(data, "moves", path, move),
        )


def _get(data: Any, name: str, kind: type[T], path: str) -> T:
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _Wrong(f"{path}.{name}: no {kind.__name__}".lstrip("."))
    return value


def _natural(data: Any, name: str, path: str) -> int:
    value = _get(data, name, int, path)
    if value < 0:
        raise _Wrong(f"{path}.{name}: {value} is negative".lstrip("."))
    return value


def _optional(data: Any, name: str, path: str) -> int | None:
    return None if isinstance(data, dict) and data.get(name) is None else _get(data, name, int, path)


def _matching(value: Any, pattern: re.Pattern[str], path: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _Wrong(f"{path}: {value!r} is not a path that a lake has there")
    return value


def _list(data: Any, name: str, path: str, item: Callable[[Any, str], T]) -> tuple[T, ...]:
    items = _get(data, name, list, path)
    return tuple(item(value, f"{path}.{name}[{i}]".lstrip(".")) for i, value in enumerate(items))
