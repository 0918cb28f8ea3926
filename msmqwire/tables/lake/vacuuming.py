"""Files out of the folder of a lake that no version of it needs any more."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Final
from urllib.parse import unquote

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.errors import InvalidArgument
from msmqwire.tables.lake.lake_change import LakeChange, lake_there
from msmqwire.tables.lake.log_commits import log_commits
from msmqwire.tables.lake.place import FoundFile, Place, lake_place
from msmqwire.tables.lake.state import FILE_PATH, FOLDER, STATE_NAME, LakeState, state_path
from msmqwire.tables.lake.table import LakeTable, opened

_HOUR: Final = timedelta(hours=1)
_HOURS_MAX: Final = 1_000_000
"""Hours that the library takes: 114 years."""


def vacuum_lake(
    out: str | os.PathLike[str],
    age: timedelta,
    *,
    dry_run: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
) -> LakeChange:
    """Remove files of a lake that no version needs any more: those of versions that ended longer ago than an
    age, and those that killed writers have left, if they are older than it.

    Only files are removed whose names our writers make, and old states. Other files in the folder stay,
    whatever they are. No link is followed. Nothing is committed.

    A writer that runs longer than the age would lose the files that it has not committed yet, and a reader
    those of a version that has ended: the age must be longer than the longest run.

    Args:
        out: the folder, or its URL.
        age: the age, which is rounded up to hours.
        dry_run: whether files are only looked for.
        storage_options: as for `msmqwire.dissect`.

    Raises:
        InvalidArgument: the age is negative.
        LakeMissing: the folder is not a lake.
        LakeMismatch: an earlier or later version has made it.
        LakeDamaged: the log or the state is broken, or there is a link in place of a folder.
        UnsupportedStore: the store can't be used.
        OSError: a file can't be read or removed.
    """
    if age < timedelta():
        raise InvalidArgument("an age is not negative", path="age")
    hours = min(age // _HOUR + bool(age % _HOUR), _HOURS_MAX)
    place = lake_place(out, storage_options)
    table, state = lake_there(place, opened(place))
    place.check_files([])
    if not dry_run:
        place.prepare()
    files = _unneeded(table, state, hours)
    if not dry_run:
        place.remove(file.path for file in files)
        place.remove_empty({_folder(file.path) for file in files if not file.path.startswith(f"{FOLDER}/")})
    size = sum(file.size for file in files)
    return LakeChange("vacuum", table.version, dry_run, files_removed=len(files), bytes_removed=size)


def _unneeded(table: LakeTable, state: LakeState, hours: int) -> list[FoundFile]:
    """The files that are to be removed."""
    place, before_ms = table.place, round(time.time() * 1000) - hours * 3_600_000
    # A checkpoint may have forgotten when a file was removed: the library takes it for an orphan then.
    needed = {
        unquote(path)
        for commit in log_commits(place, since_ms=before_ms)
        if commit.time_ms >= before_ms
        for path in commit.removed
    }
    needed.update(file.path for file in table.files())
    ours = {path for part in state.parts for path in part.files}
    paths = {
        path
        for path in table.unneeded(hours)
        if path not in needed and (FILE_PATH.fullmatch(path) or path in ours)
    }
    data = [file for file in _found(place, map(_folder, paths)) if file.path in paths]
    states = [
        file
        for file in place.found(FOLDER)
        if STATE_NAME.fullmatch(_name(file.path)) and file.path != state_path(table.state_number or 0)
    ]
    return [file for file in (*data, *states) if file.mtime_ns < before_ms * 1_000_000]


def _found(place: Place, folders: Iterable[str]) -> Iterable[FoundFile]:
    for folder in sorted(set(folders)):
        yield from place.found(folder)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
