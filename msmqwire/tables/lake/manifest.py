"""The manifest of lakes of earlier versions, which had no log: read once more, to make a table of them.

A lake may be in a folder that other users can write to, so each value is checked, and no path leads out of
the folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake.partitions import COLUMN_KEYS, By, Keys, folder_of
from msmqwire.tables.lake.place import OLD, OLD_MANIFEST, Place
from msmqwire.tables.lake.state import (
    FILE_PATH,
    CaptureEntry,
    Damage,
    WindowRange,
    WrongValue,
    capture_entry,
    damage,
    get,
    items,
    matching,
    natural,
    window_ranges,
)

FORMAT: Final = 1
UPGRADING: Final = 2
"""The format of a manifest of which a table is being made: earlier versions refuse the lake then."""
_TOKEN: Final = "[0-9a-f]{32}"
STAGING: Final = f"{OLD}/staging"
RUN_NAME: Final = re.compile(_TOKEN)
STAGED_NAME: Final = re.compile(rf"{_TOKEN}-[0-9]{{1,9}}\.staged")
_STAGED: Final = re.compile(rf"{STAGING}/{_TOKEN}/{STAGED_NAME.pattern}")


@dataclass(frozen=True, slots=True)
class OldFile:
    """A Parquet file: its path below the lake, its rows, its bytes, and the values of its partition."""

    path: str
    rows: int
    size: int
    keys: Keys


@dataclass(frozen=True, slots=True)
class OldPart:
    """The windows that one task has read, and the files that it has written.

    Attributes:
        windows, is_last, damages: as those of a `PartEntry`.
        commit: the number of the commit that added it.
        files: its files.
    """

    windows: tuple[WindowRange, ...]
    is_last: bool
    commit: int
    files: tuple[OldFile, ...]
    damages: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """The rest of an interrupted commit.

    Attributes:
        removals: files that are no longer in the lake.
        staged: where the new files were written, by the paths that they get.
    """

    removals: tuple[str, ...] = ()
    staged: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """The contents of a lake of an earlier version.

    Attributes:
        data: the JSON.
        settings: the settings for reading captures into it.
        by: the second key of its partitions, of the settings.
        commit: the number of the last commit.
        captures: the captures by path, in the order in which they came.
        parts: all parts.
        pending: the rest of the last commit.
    """

    data: Mapping[str, Any]
    settings: Mapping[str, Any]
    by: By | None
    commit: int
    captures: Mapping[str, CaptureEntry]
    parts: Sequence[OldPart]
    pending: Pending

    @property
    def is_upgrading(self) -> bool:
        """Whether earlier versions refuse it already."""
        return bool(self.data["msmqwire_lake"] == UPGRADING)

    @property
    def files(self) -> list[OldFile]:
        """All files of the lake."""
        return [file for part in self.parts for file in part.files]

    def upgrading(self) -> bytes:
        """Return the JSON that earlier versions refuse."""
        return json.dumps({**self.data, "msmqwire_lake": UPGRADING}).encode()


def load(place: Place) -> Manifest | None:
    """Return the manifest of a lake; None if it has none.

    Raises:
        LakeDamaged: it is not as it should be.
        OSError: it can't be read.
    """
    try:
        content = place.read(OLD_MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return _manifest(json.loads(content))
    except (WrongValue, ValueError, RecursionError) as exc:
        raise LakeDamaged(f"the manifest is damaged: {exc}", file=place.full(OLD_MANIFEST)) from None


def _manifest(data: Any) -> Manifest:
    if get(data, "msmqwire_lake", int, "") not in (FORMAT, UPGRADING):
        raise WrongValue(f"it has format {data['msmqwire_lake']}, not {FORMAT}")
    settings = get(data, "settings", dict, "")
    by = settings.get("by")
    if not (by is None or isinstance(by, str)) or by not in COLUMN_KEYS:
        raise WrongValue(f"settings.by: {by!r} is no key of partitions")
    names = {"date", COLUMN_KEYS[by]} - {None}

    def file(item: Any, path: str) -> OldFile:
        return _file(item, path, names)

    def part(item: Any, path: str) -> OldPart:
        return OldPart(
            windows=window_ranges(item, path),
            is_last=get(item, "is_last", bool, path),
            commit=natural(item, "commit", path),
            files=items(item, "files", path, file),
            damages=items(item, "damages", path, damage),
        )

    captures = items(data, "captures", "", capture_entry)
    pending = data.get("pending")
    manifest = Manifest(
        data=data,
        settings=settings,
        by=by,
        commit=natural(data, "commit", ""),
        captures={capture.path: capture for capture in captures},
        parts=items(data, "parts", "", part),
        pending=Pending() if pending is None else _pending(pending, "pending"),
    )
    paths = [file.path for file in manifest.files]
    if len(paths) != len(set(paths)) or set(paths) & set(manifest.pending.removals):
        raise WrongValue("a file is named twice")
    return manifest


def _file(data: Any, path: str, names: set[str | None]) -> OldFile:
    found = get(data, "keys", dict, path)
    if set(found) != names:
        raise WrongValue(f"{path}.keys: they are not those of the lake")
    keys: Keys = {}
    for name, value in found.items():
        if value is not None and not isinstance(value, str):
            raise WrongValue(f"{path}.keys: {value!r} is not text")
        keys[name] = value or None  # an empty text is null in Delta tables
    if keys["date"] is not None:
        date.fromisoformat(keys["date"])
    file = matching(get(data, "path", str, path), FILE_PATH, f"{path}.path")
    if file.rpartition("/")[0] != folder_of(keys):  # of which some readers take the values
        raise WrongValue(f"{path}.path: {file!r} is not where its keys lead")
    return OldFile(file, natural(data, "rows", path), natural(data, "size", path), keys)


def _pending(data: Any, path: str) -> Pending:
    def file(item: Any, path: str) -> str:
        return matching(item, FILE_PATH, path)

    def move(item: Any, path: str) -> tuple[str, str]:
        if not isinstance(item, list) or len(item) != 2:
            raise WrongValue(f"{path}: no pair")
        return matching(item[1], FILE_PATH, path), matching(item[0], _STAGED, path)

    return Pending(items(data, "removals", path, file), dict(items(data, "moves", path, move)))
