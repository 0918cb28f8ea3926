"""A lake of an earlier version made a table, with the files that it has.

First earlier versions are kept from it, then their last commit is completed if it was interrupted, all files
are committed at once, and the folder of the manifest is removed. Whoever is killed on the way leaves what
the next one goes on with.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import pyarrow as pa

from msmqwire.durable import acquire_lock, replace_file
from msmqwire.errors import LakeDamaged, LakeError, LakeMismatch, LakeMissing, UnsupportedStore
from msmqwire.names.printable import counted
from msmqwire.tables import chosen_columns
from msmqwire.tables.columns import FINDING_IDS, LATER_GROUPS
from msmqwire.tables.lake.delta_errors import Refused
from msmqwire.tables.lake.entries import check_entries
from msmqwire.tables.lake.manifest import RUN_NAME, STAGED_NAME, STAGING, Manifest, OldFile, load
from msmqwire.tables.lake.open_folder import OpenFolder, names_by_folder, opened_folder
from msmqwire.tables.lake.part_writer import lake_schema
from msmqwire.tables.lake.place import OLD, OLD_MANIFEST, LocalPlace, lake_place
from msmqwire.tables.lake.rewriting import opened_parquet
from msmqwire.tables.lake.schemas import table_schema
from msmqwire.tables.lake.settings import Settings, lake_columns
from msmqwire.tables.lake.state import LakeState, PartEntry
from msmqwire.tables.lake.statistics import statistics
from msmqwire.tables.lake.table import Commit, LakeFile, create, delta_schema, table_if_any

_LOCK: Final = "lock"
_MANIFEST: Final = os.path.basename(OLD_MANIFEST)
_Known = Mapping[re.Pattern[str], Any]
"""Entries of a folder by their names: None for files, those in it for folders."""
_BESIDE: Final = re.compile(rf"{_LOCK}(-journal|-wal|-shm)?|{re.escape(_MANIFEST)}\.new")
"""Files beside the manifest, of its writers and of the library that locks."""
_KNOWN: Final[_Known] = {
    _BESIDE: None,
    re.compile(os.path.basename(STAGING)): {RUN_NAME: {STAGED_NAME: None}},
}
_MODE: Final = 0o664


@dataclass(frozen=True, slots=True)
class LakeUpgrade:
    """The result of an upgrade.

    Attributes:
        upgraded: whether a table was made, or would be without ``dry_run``; otherwise there was one.
        rows: rows of the files that the table was made of.
        files: the number of these files.
        version: the version of the table; None if there is none yet.
        left: entries of the folder of the manifest that are none of ours, which keep it from being removed.
        dry_run: whether it was only looked at.
    """

    upgraded: bool
    rows: int
    files: int
    version: int | None
    left: tuple[str, ...] = ()
    dry_run: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values by name."""
        return {"operation": "upgrade", **asdict(self)}


def upgrade_lake(path: str | os.PathLike[str], *, dry_run: bool = False) -> LakeUpgrade:
    """Make a table of a lake of an earlier version; its files stay as they are.

    Earlier versions refuse the lake from then on. An upgrade that was interrupted is repeated from its
    beginning, or goes on: the lake has each row once.

    Args:
        path: the folder.
        dry_run: whether nothing is to be changed.

    Raises:
        LakeMissing: there is no lake.
        LakeMismatch: another process writes it, or its columns are of types that this version has not.
        LakeDamaged: the manifest or a file of the lake is broken, or the log of the table.
        UnsupportedStore: it is a URL: lakes of earlier versions were in local folders.
        OSError: something can't be read or written.
    """
    place = lake_place(path)
    if not isinstance(place, LocalPlace):
        raise UnsupportedStore(
            f"{place.shown}: lakes of earlier versions are in local folders: upgrade one there, and copy it"
        )
    if place.folder.exists():
        check_entries(place.folder, mend=not dry_run)
    if place.has(OLD_MANIFEST):
        with _locked(place, dry_run=dry_run):
            result = _of_manifest(place, dry_run=dry_run)
    else:
        result = _known(place)
    return replace(result, dry_run=True) if dry_run else replace(result, left=_removed(place))


def _of_manifest(place: LocalPlace, *, dry_run: bool) -> LakeUpgrade:
    table, manifest = table_if_any(place), load(place)
    if manifest is None:
        return _known(place)
    if table is None:
        return _upgraded(place, manifest, dry_run=dry_run)
    result = _known(place)
    if not manifest.is_upgrading:
        raise LakeMismatch(
            "it is a table, and an earlier version has made another lake in the same folder: move"
            f" {OLD} away, and read its captures into the table",
            file=place.shown,
        )
    return result


def _known(place: LocalPlace) -> LakeUpgrade:
    """The result for a lake that is a table already."""
    table = table_if_any(place)
    if table is None:
        raise LakeMissing("no lake: it has no manifest and no log", file=place.shown)
    table.state()
    return LakeUpgrade(upgraded=False, rows=0, files=0, version=table.version)


@contextmanager
def _locked(place: LocalPlace, *, dry_run: bool) -> Iterator[None]:
    """Keep writers of earlier versions out, and other upgrades."""
    path = place.folder / OLD / _LOCK
    if dry_run and not path.exists():
        yield
        return
    try:
        lock = acquire_lock(path)
    except sqlite3.Error as exc:
        raise OSError(None, f"the lake can't be locked: {exc}", str(path)) from None
    if lock is None:
        raise LakeMismatch(
            "an earlier version is writing the lake, or it is being upgraded: wait until that ends",
            file=place.shown,
        )
    with closing(lock):
        yield


def _upgraded(place: LocalPlace, manifest: Manifest, *, dry_run: bool) -> LakeUpgrade:
    settings = _settings(manifest.settings, place)
    columns = lake_columns(settings, place)
    files = _table_files(place, manifest, lake_schema(columns, manifest.by))
    rows = sum(file.rows or 0 for file in files)
    if dry_run:
        return LakeUpgrade(True, rows, len(files), None)
    if not manifest.is_upgrading:
        replace_file(place.folder / OLD_MANIFEST, manifest.upgrading(), mode=_MODE)
    _complete(place, manifest)
    change = Commit("upgrade", _state(manifest, settings), files, details={"rows": rows, "files": len(files)})
    try:
        table = create(place, *table_schema(columns, manifest.by), change)
    except Refused as exc:
        raise LakeError(f"the commit is refused: {exc}", file=place.shown) from None
    return LakeUpgrade(True, rows, len(files), table.version)


def _settings(old: Mapping[str, Any], place: LocalPlace) -> Settings:
    """The settings of an earlier version as they are now: all columns were a list then."""
    try:
        names = [column.name for column in chosen_columns(old["columns"])]
    except (KeyError, TypeError, ValueError):
        raise LakeDamaged(
            "the manifest is damaged: settings: no such columns", file=place.full(OLD_MANIFEST)
        ) from None
    kept = {name: old.get(name) for name in ("where", "ports", "body_limit", "by", "splits")}
    finds = FINDING_IDS in names
    every = [column.name for column in chosen_columns(None) if column.group not in LATER_GROUPS]
    is_every = names == [*every, *([FINDING_IDS] if finds and FINDING_IDS not in every else [])]
    return {"columns": None if is_every else names, "findings": finds, **kept}


def _table_files(place: LocalPlace, manifest: Manifest, schema: pa.Schema) -> list[LakeFile]:
    """The files of the lake, with statistics.

    Args:
        place: where the lake is.
        manifest: its manifest.
        schema: the schema of the rows, without the keys of partitions.

    Raises:
        LakeDamaged: one is missing, or is another one.
        LakeMismatch: one has a column of another type.
    """
    staged = manifest.pending.staged
    now = {
        file.path: staged[file.path] if file.path in staged and not place.has(file.path) else file.path
        for file in manifest.files
    }
    place.check_files(now.values())
    checked = list[pa.Schema]()
    return [_table_file(place, file, now[file.path], schema, checked) for file in manifest.files]


def _table_file(
    place: LocalPlace, file: OldFile, path: str, schema: pa.Schema, checked: list[pa.Schema]
) -> LakeFile:
    """A file with statistics; `checked` are the schemas of files that can be read by `schema`."""
    size = os.stat(place.full(path)).st_size
    with opened_parquet(place, path) as source:
        if (source.metadata.num_rows, size) != (file.rows, file.size):
            found, said = (
                f"{counted(rows or 0, 'row')} in {counted(count, 'byte')}"
                for rows, count in ((source.metadata.num_rows, size), (file.rows, file.size))
            )
            raise LakeDamaged(
                f"it has {found}, and the manifest of the lake says {said}: it is another file",
                file=place.full(path),
            )
        if source.schema_arrow not in checked:
            _check_columns(source.schema_arrow, schema, place.full(path))
            checked.append(source.schema_arrow)
        return LakeFile(file.path, file.rows, file.size, file.keys, statistics(source.metadata, schema))


def _check_columns(found: pa.Schema, wanted: pa.Schema, file: str) -> None:
    for field in found:
        kind = wanted.field(field.name).type if field.name in wanted.names else field.type
        if not _is_read_as(field.type, kind):
            raise LakeMismatch(
                f"the column {field.name} is {field.type}, not {kind}: read the captures into another lake",
                file=file,
            )


def _is_read_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a table with a column of one type has it of another one in a file: seconds may be finer."""
    one, other = (delta_schema(pa.schema([pa.field("x", kind)])).field(0).type for kind in (found, wanted))
    return bool(one == other) or (pa.types.is_map(one) and pa.types.is_map(other))


def _state(manifest: Manifest, settings: Settings) -> LakeState:
    """The state of the captures as the manifest has it; its parts name their files."""
    since: dict[str, int] = {}
    for part in manifest.parts:
        for window in part.windows:
            since[window.path] = min(part.commit, since.get(window.path, part.commit))
    captures = {
        path: replace(entry, since=max(since.get(path, manifest.commit), 1))
        for path, entry in manifest.captures.items()
    }
    parts = [
        PartEntry(number, part.windows, part.is_last, part.damages, tuple(file.path for file in part.files))
        for number, part in enumerate(manifest.parts, 1)
    ]
    return LakeState(settings, manifest.commit, captures, parts)


def _complete(place: LocalPlace, manifest: Manifest) -> None:
    """Complete a commit that was interrupted, as those who made it do: no link is followed."""
    pending = manifest.pending
    place.remove(pending.removals)
    with opened_folder(place.folder) as root:
        for path, names in names_by_folder(pending.staged).items():
            with root.inside(path, make=True) as folder:
                for name in names:
                    if not folder.has(name):
                        _move(root, pending.staged[f"{path}/{name}"], folder, name)
    place.sync(pending.staged)


def _move(root: OpenFolder, staged: str, folder: OpenFolder, name: str) -> None:
    run, _, staged_name = staged.rpartition("/")
    with root.inside(run) as source:
        source.rename(staged_name, folder, name)


def _removed(place: LocalPlace) -> tuple[str, ...]:
    """Remove the folder of the manifest with all that is known to be in it; return what else is.

    If there is anything else the manifest stays, by which earlier versions refuse the lake.
    """
    with opened_folder(place.folder) as root:
        try:
            with root.inside(OLD) as hidden:
                left = [path for path in _left(hidden, OLD, _KNOWN) if path != OLD_MANIFEST]
                if left:
                    return tuple(left)
                hidden.unlink(_MANIFEST)
            root.rmdir(OLD)
        except FileNotFoundError:
            return ()
        except OSError:  # somebody has just put another entry there
            return (OLD,)
        root.sync()
    return ()


def _left(folder: OpenFolder, path: str, known: _Known) -> list[str]:
    """Remove the entries of a folder that are known; return the paths of all others below the lake."""
    left = []
    for name in sorted(folder.names()):
        pattern = next((pattern for pattern in known if pattern.fullmatch(name)), None)
        inner = f"{path}/{name}"
        left += [inner] if pattern is None else _remove(folder, name, inner, known[pattern])
    return left


def _remove(folder: OpenFolder, name: str, path: str, known: _Known | None) -> list[str]:
    """Remove an entry, a folder only with what is known in it; return the paths of what stays."""
    try:
        if known is None:
            folder.unlink(name)
            return []
        with folder.inside(name) as inner:
            left = _left(inner, path, known)
        if not left:
            folder.rmdir(name)
        return left
    except FileNotFoundError:
        return []
    except (OSError, LakeDamaged):  # a file in place of a folder, or the reverse
        return [path]
