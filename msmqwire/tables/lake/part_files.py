"""The files of parts that are read again: their own are removed, those of several parts written anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.tables.lake.part_writer import PART
from msmqwire.tables.lake.rewriting import rewritten
from msmqwire.tables.lake.state import PartEntry
from msmqwire.tables.lake.table import LakeFile, LakeTable


@dataclass(frozen=True)
class Replacement:
    """The files of some parts.

    Attributes:
        removes: files that have rows of theirs.
        adds: in place of them, files with the other rows that they have.
        rows: the rows that are gone.
        pending: those of `adds` that are not the lake's yet.
    """

    removes: tuple[LakeFile, ...]
    adds: tuple[LakeFile, ...]
    rows: int
    pending: list[LakeFile] = field(default_factory=list)


@contextmanager
def replaced_files(table: LakeTable | None, parts: Sequence[PartEntry]) -> Iterator[Replacement]:
    """Give the files of parts that are read again; those to be added are there. Pending ones are removed if
    the block fails.

    Raises:
        LakeDamaged: a file is not as it should be.
        OSError: a file can't be read or written.
    """
    if table is None or not parts:
        yield Replacement((), (), 0)
        return
    adds = list[LakeFile]()
    try:
        yield _replacement(table, parts, adds)
    except BaseException:
        table.place.remove(file.path for file in adds)
        raise


def _replacement(table: LakeTable, parts: Sequence[PartEntry], adds: list[LakeFile]) -> Replacement:
    numbers = np.sort(np.array([part.number for part in parts], np.int64))
    named = {path for part in parts for path in part.files}
    low, high = table.bounds(PART.name)
    is_near = np.searchsorted(numbers, low) < np.searchsorted(numbers, high, "right")
    is_near &= ~table.without(PART.name)
    is_own = is_near & (low == high)
    removes = table.files(is_own)
    if named:
        removes += [file for file in table.files(table.without(PART.name)) if file.path in named]
    rows = sum(file.rows or 0 for file in removes)
    values = pa.array(numbers)
    for file in table.files(is_near & ~is_own):
        found = rewritten(table.place, file, [PART.name], lambda rows: _is_of_parts(rows, values))
        if found is not None:
            removes.append(file)
            rows += found.dropped
            adds += [found.file] if found.file is not None else []
    return Replacement(tuple(removes), tuple(adds), rows, adds)


def _is_of_parts(rows: pa.Table, numbers: pa.Array) -> Any:
    """Which rows are those of some parts; those that another program has written are of none."""
    if PART.name not in rows.column_names:
        return pa.nulls(rows.num_rows, pa.bool_())
    return pc.is_in(rows[PART.name], numbers)
