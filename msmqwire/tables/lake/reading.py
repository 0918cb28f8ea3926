"""A lake as a dataset of Arrow: the files of a version, and nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.errors import LakeDamaged, LakeMissing
from msmqwire.tables.lake.place import Place, lake_place
from msmqwire.tables.lake.schemas import read_schema
from msmqwire.tables.lake.table import LakeFile, LakeTable, table_at

_NUMBERS: Final = ("time", "time_ns", "part", "message_id")
_TEXTS: Final = ("destination",)
"""Columns whose least and greatest values let a dataset pass over files."""


@dataclass(frozen=True)
class LakeContents:
    """A version of a lake.

    Attributes:
        place: where it is.
        schema: the schema of its rows: the columns, then the keys of partitions.
        table: the table.
        files: its files.
    """

    place: Place
    schema: pa.Schema
    table: LakeTable
    files: list[LakeFile]


def lake_contents(
    path: str | os.PathLike[str],
    version: int | None = None,
    storage_options: StorageOptions = NO_OPTIONS,
) -> LakeContents:
    """Return the contents of a lake.

    Args:
        path: the folder, or its URL.
        version: the number of the version; None for the last one.
        storage_options: the options of the store of a URL.

    Raises:
        InvalidArgument: no version has such a number.
        LakeMissing: the folder is not a lake, or has not this version, or no longer its files.
        LakeMismatch: an earlier or a later version has made it, or it is somebody else's table.
        LakeDamaged: the log is broken, or a file is missing.
        UnsupportedStore: the store can't be used.
        OSError: it can't be read.
    """
    place = lake_place(path, storage_options)
    place.check_files([])
    table = table_at(place, version)
    table.check_ours()
    schema = read_schema(table)
    files = table.files()
    try:
        place.check_files(file.path for file in files)
    except LakeDamaged as exc:
        if version is None or place.has(os.path.relpath(exc.file, place.shown)):
            raise
        raise LakeMissing(
            f"version {version} is no longer there: its files were removed by --vacuum", file=place.shown
        ) from None
    return LakeContents(place, schema, table, files)


def read_lake(
    path: str | os.PathLike[str],
    *,
    version: int | None = None,
    storage_options: StorageOptions = NO_OPTIONS,
) -> ds.Dataset:
    """Return a lake as a `pyarrow.dataset.Dataset`, as the last commit has left it.

    The keys of partitions are columns too: ``date``, and ``kind`` or ``queue``. Conditions on them, and on
    ``time``, ``time_ns``, ``destination``, ``message_id`` and ``part``, leave out files without opening them.

    Args:
        path: the folder, or its URL.
        version: an earlier version, as far as the log (30 days) and its files are kept; see docs/lake.md.
        storage_options: as for `msmqwire.dissect`.

    Raises:
        InvalidArgument: no version has such a number.
        LakeMissing: the folder is not a lake, or has not this version, or no longer its files.
        LakeMismatch: an earlier or a later version has made it, or it is somebody else's table.
        LakeDamaged: the log is broken, or a file is missing.
        UnsupportedStore: the store can't be used.
        OSError: it can't be read.
    """
    contents = lake_contents(path, version, storage_options)
    form, place = ds.ParquetFileFormat(), contents.place
    fragments = [
        form.make_fragment(place.full(file.path), place.filesystem, partition_expression=guarantee)
        for file, guarantee in zip(contents.files, _guarantees(contents), strict=True)
    ]
    return ds.FileSystemDataset(fragments, contents.schema, form, place.filesystem)


def _guarantees(contents: LakeContents) -> list[Any]:
    """Facts that hold for all rows of each file."""
    facts: list[list[Any]] = [[] for _ in contents.files]
    actions = contents.table.actions
    for name in contents.table.keys:
        field, values = ds.field(name), actions[f"partition.{name}"]
        for fact, value in zip(facts, values, strict=True):
            fact.append(field == value if value.is_valid else field.is_null())
    for name in (*_NUMBERS, *_TEXTS):
        needed = [f"{kind}.{name}" for kind in ("min", "max", "null_count")]
        if name not in contents.schema.names or not set(needed) <= set(actions.column_names):
            continue
        field, kind = ds.field(name), contents.schema.field(name).type
        for fact, low, high, nulls in zip(facts, *(actions[column] for column in needed), strict=True):
            if low.is_valid and high.is_valid and nulls.is_valid:
                bounds = [field >= low.cast(kind), field <= high.cast(kind)]
                # Arrow understands a bound with nulls, but not two at once.
                fact.extend([bound | field.is_null() for bound in bounds] if nulls.as_py() else bounds)
    return [reduce(and_, fact) for fact in facts]
