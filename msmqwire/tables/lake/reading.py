"""A lake as a dataset of Arrow: the files that the manifest names, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake.entries import check_files
from msmqwire.tables.lake.manifest import LakeFile, Manifest, lake_folder, load
from msmqwire.tables.lake.part_writer import TIME, lake_schema
from msmqwire.tables.lake.partitions import COLUMN_KEYS

WAIT_S: Final = 2.0
"""The time that a reader waits for a commit that is not complete: files then get their names."""
_POLL_S: Final = 0.02


@dataclass(frozen=True)
class LakeContents:
    """A lake as one commit has left it.

    Attributes:
        folder: the folder, as an absolute path.
        schema: the schema of its rows: the columns, then the keys of partitions.
        keys: the names of these keys.
        files: each file, by its absolute path.
    """

    folder: str
    schema: pa.Schema
    keys: tuple[str, ...]
    files: Mapping[str, LakeFile]


def lake_contents(path: str | os.PathLike[str]) -> LakeContents:
    """Return the contents of a lake now.

    Raises:
        LakeMissing: the folder is not a lake.
        LakeDamaged: the manifest is broken.
        UnsupportedStore: it is a URL.
        OSError: it can't be read.
    """
    folder = lake_folder(path)
    deadline = time.monotonic() + WAIT_S
    while (manifest := load(folder)).pending is not None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    staged = {} if manifest.pending is None else {name: path for path, name in manifest.pending.moves}
    files = {}
    for file in manifest.files:
        place = folder / file.path
        if file.path in staged and not place.exists():
            place = folder / staged[file.path]
        files[str(place)] = file
    check_files(folder, files)
    schema, keys = _schema(manifest, folder)
    return LakeContents(str(folder), schema, keys, files)


def _schema(manifest: Manifest, folder: Path) -> tuple[pa.Schema, tuple[str, ...]]:
    columns, by = manifest.settings.get("columns"), manifest.settings.get("by")
    try:
        schema, key = lake_schema(columns, by), COLUMN_KEYS[by]  # type: ignore[arg-type]
    except (KeyError, TypeError) as exc:
        raise LakeDamaged(f"the manifest is damaged: settings: {exc!r}", file=str(folder)) from None
    keys = [pa.field("date", pa.date32())] + ([pa.field(key, pa.string())] if key else [])
    return pa.schema([*schema, *keys]), tuple(field.name for field in keys)


def read_lake(path: str | os.PathLike[str]) -> ds.Dataset:
    """Return a lake as a `pyarrow.dataset.Dataset`, as the last commit has left it.

    The keys of partitions are columns too: ``date``, and ``kind`` or ``queue``. Conditions on them and on
    ``time`` leave out files without opening them.

    After a commit that replaces files, those of captures that have grown, it must be called again.

    Args:
        path: the folder.

    Raises:
        LakeMissing: the folder is not a lake.
        LakeDamaged: the manifest is broken.
        UnsupportedStore: it is a URL.
        OSError: it can't be read.
    """
    contents = lake_contents(path)
    form, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    fragments = [
        form.make_fragment(place, local, partition_expression=_guarantee(file, contents.schema))
        for place, file in contents.files.items()
    ]
    return ds.FileSystemDataset(fragments, contents.schema, form, local)


def _guarantee(file: LakeFile, schema: pa.Schema) -> Any:
    """Facts that hold for all rows of a file."""
    guarantee = _key("date", file.keys.get("date"))
    for name in schema.names:
        if name in file.keys and name != "date":
            guarantee &= _key(name, file.keys[name])
    if (
        "time" in schema.names
        and file.first_ns is not None
        and file.last_ns is not None
        and "date" in file.keys
    ):
        field = ds.field("time")
        first, last = (pa.scalar(ns // 1000, TIME) for ns in (file.first_ns, file.last_ns))
        bounds = (field >= first) & (field <= last)
        guarantee &= bounds if file.keys.get("date") is not None else bounds | field.is_null()
    return guarantee


def _key(name: str, value: str | None) -> Any:
    if value is None:
        return ds.field(name).is_null()
    return ds.field(name) == pa.scalar(date.fromisoformat(value) if name == "date" else value)
