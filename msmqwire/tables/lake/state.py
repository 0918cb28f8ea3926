"""The state of a lake: the captures that it was made of, and how far they were read.

A JSON file beside the data, which is written anew by each commit and named by its transaction. The files of
the rows are in the log of the table. A lake may be in a folder that other users can write to, so each value
is checked.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from msmqwire.errors import LakeDamaged

FOLDER: Final = "_msmqwire"
"""The folder of the states: readers of whole folders skip names that start with ``_``."""
STATE_NAME: Final = re.compile(r"[0-9a-f]{16}\.json")
SIZE_MAX: Final = 1 << 30
"""Bytes of a state: one of a million parts has a fifth of it."""
PART_FILE: Final = re.compile(r"part-[0-9a-f]{32}-[0-9]{1,9}\.parquet")
"""The names of the files that our writers make."""
FILE_PATH: Final = re.compile(rf"(date=[^/\0]+/)((kind|queue)=[^/\0]+/)?{PART_FILE.pattern}")
_FORMAT: Final = 2
"""Format 1 was that of the manifest of earlier versions: see `msmqwire.tables.lake.upgrade`."""

T = TypeVar("T")


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
    """The windows that one task has read.

    Attributes:
        number: the value of the column ``part`` in its rows; no other part has or had it.
        windows: those read, in order.
        is_last: whether it was the end of the captures, so that all incomplete packets were reported.
        damages: the captures that it could not read to their ends.
        files: of a part of a lake of an earlier version, the files of its rows, which have no column
            ``part``.
    """

    number: int
    windows: tuple[WindowRange, ...]
    is_last: bool
    damages: tuple[Damage, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaptureEntry:
    """A capture file as it was when it was read.

    Attributes:
        path: its absolute path, or its URL.
        size, mtime_ns, inode: of its status; of a URL only the size.
        digest: the digest of samples of its bytes; see `msmqwire.tables.lake.captures`.
        version: the version of the content of a URL.
        since: the number of the commit that has first read a capture of this path.
    """

    path: str
    size: int
    mtime_ns: int
    inode: int
    digest: str
    version: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class Deletion:
    """Rows that were deleted, and that reading their captures again does not bring back.

    Attributes:
        where: the expression that they match; empty if only their time counts.
        before_ns: rows before this time, in nanoseconds since 1970, match too; None for none.
        commit: the number of the commit: it is about captures that were there until then.
    """

    where: str
    before_ns: int | None
    commit: int


@dataclass(frozen=True)
class LakeState:
    """The captures of a lake.

    Attributes:
        settings: the settings for reading captures into it: JSON values by name.
        commit: the number of the last commit that was ours; 0 for a new lake.
        captures: the captures by path, in the order in which they came.
        parts: all parts.
        deletions: the rows that were deleted, in order.
    """

    settings: Mapping[str, Any]
    commit: int = 0
    captures: Mapping[str, CaptureEntry] = field(default_factory=dict)
    parts: Sequence[PartEntry] = ()
    deletions: Sequence[Deletion] = ()

    def dump(self) -> bytes:
        """Return the state as JSON."""
        lists = {"captures": self.captures.values(), "parts": self.parts, "deletions": self.deletions}
        data = {"msmqwire_lake": _FORMAT, "commit": self.commit, "settings": self.settings}
        # One object a line. An indented text would take the encoder that is not compiled.
        members = [f"{json.dumps(name)}: {_json(value)}" for name, value in data.items()]
        members += [
            f"{json.dumps(name)}: [\n" + ",\n".join(map(_json, values)) + "\n]"
            for name, values in lists.items()
        ]
        return ("{\n" + ",\n".join(members) + "\n}\n").encode()


def _json(value: Any) -> str:
    return json.dumps(value, default=lambda entry: {name: getattr(entry, name) for name in entry.__slots__})


def new_number() -> int:
    """Return the number of a state: of 63 bits, as no other one has it."""
    return secrets.randbits(63) | 1


def state_path(number: int) -> str:
    """Return the path of a state below its lake."""
    return f"{FOLDER}/{number:016x}.json"


def parse_state(content: bytes, file: str) -> LakeState:
    """Return the state that a file has. Raises LakeDamaged."""
    try:
        return _Reader().state(json.loads(content))
    except (WrongValue, ValueError, RecursionError) as exc:
        raise LakeDamaged(f"the state is damaged: {exc}", file=file) from None


class WrongValue(Exception):
    """A value that a state can't have; the text has its path."""


class _Reader:
    """Reads the JSON of a state."""

    def state(self, data: Any) -> LakeState:
        if get(data, "msmqwire_lake", int, "") != _FORMAT:
            raise WrongValue(f"it has format {data['msmqwire_lake']}, not {_FORMAT}")
        captures = items(data, "captures", "", capture_entry)
        return LakeState(
            settings=get(data, "settings", dict, ""),
            commit=natural(data, "commit", ""),
            captures={capture.path: capture for capture in captures},
            parts=items(data, "parts", "", self.part),
            deletions=items(data, "deletions", "", self.deletion),
        )

    def part(self, data: Any, path: str) -> PartEntry:
        def file(item: Any, path: str) -> str:
            return matching(item, FILE_PATH, path)

        return PartEntry(
            number=natural(data, "number", path),
            windows=window_ranges(data, path),
            is_last=get(data, "is_last", bool, path),
            damages=items(data, "damages", path, damage),
            files=items(data, "files", path, file),
        )

    def deletion(self, data: Any, path: str) -> Deletion:
        return Deletion(
            where=get(data, "where", str, path),
            before_ns=optional(data, "before_ns", path),
            commit=natural(data, "commit", path),
        )


def capture_entry(data: Any, path: str) -> CaptureEntry:
    """Return the entry of a capture. Raises WrongValue."""
    return CaptureEntry(
        path=get(data, "path", str, path),
        size=natural(data, "size", path),
        mtime_ns=get(data, "mtime_ns", int, path),
        inode=natural(data, "inode", path),
        digest=get(data, "digest", str, path),
        version=get(data, "version", str, path),
        since=natural(data, "since", path) if "since" in data else 0,
    )


def window_ranges(data: Any, path: str) -> tuple[WindowRange, ...]:
    """Return the windows of a part. Raises WrongValue."""
    windows = items(data, "windows", path, _window)
    if not windows:
        raise WrongValue(f"{path}.windows: empty")
    return windows


def _window(data: Any, path: str) -> WindowRange:
    start, end = natural(data, "start", path), natural(data, "end", path)
    if end < start:
        raise WrongValue(f"{path}: it ends at {end}, before its start {start}")
    return WindowRange(get(data, "path", str, path), start, end)


def damage(data: Any, path: str) -> Damage:
    """Return a damage of a capture. Raises WrongValue."""
    return Damage(
        file=get(data, "file", str, path),
        offset=get(data, "offset", int, path),
        why=get(data, "why", str, path),
        cut=get(data, "cut", bool, path),
    )


def get(data: Any, name: str, kind: type[T], path: str) -> T:
    """Return a member of an object. Raises WrongValue if it has another type."""
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise WrongValue(f"{path}.{name}: no {kind.__name__}".lstrip("."))
    return value


def natural(data: Any, name: str, path: str) -> int:
    """Return a member that is a number and not negative. Raises WrongValue."""
    value = get(data, name, int, path)
    if value < 0:
        raise WrongValue(f"{path}.{name}: {value} is negative".lstrip("."))
    return value


def optional(data: Any, name: str, path: str) -> int | None:
    """Return a member that is a number or null. Raises WrongValue."""
    return None if isinstance(data, dict) and data.get(name) is None else get(data, name, int, path)


def matching(value: Any, pattern: re.Pattern[str], path: str) -> str:
    """Return a path of a file. Raises WrongValue if no lake has one like it there."""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise WrongValue(f"{path}: {value!r} is not a path that a lake has there")
    return value


def items(data: Any, name: str, path: str, item: Callable[[Any, str], T]) -> tuple[T, ...]:
    """Return a member that is a list, each item read on its own. Raises WrongValue."""
    values = get(data, name, list, path)
    return tuple(item(value, f"{path}.{name}[{i}]".lstrip(".")) for i, value in enumerate(values))
