"""Files of a lake without some of their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from msmqwire.capture.stores import is_url
from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake.file_names import FileNames
from msmqwire.tables.lake.partitions import folder_of
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.sorted_files import DataFile
from msmqwire.tables.lake.table import LakeFile

Form = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Rewritten:
    """A file of which rows were dropped.

    Attributes:
        file: the file with the rest; None if there is none, or if nothing was written.
        dropped: the number of rows that it has not.
    """

    file: LakeFile | None
    dropped: int


@contextmanager
def opened_parquet(place: Place, path: str) -> Iterator[parquet.ParquetFile]:
    """Open a file of a lake. Raises LakeDamaged for one that is none, or missing, and OSError."""
    try:
        with (
            place.filesystem.open_input_file(place.full(path)) as stream,
            parquet.ParquetFile(stream) as file,
        ):
            yield file
    except FileNotFoundError:
        raise LakeDamaged("the log of the lake names it, and it is missing", file=place.full(path)) from None
    except OSError as exc:
        if exc.errno is not None or is_url(place.shown):
            raise
        raise _unreadable(place, path, exc) from None  # pages that are no pages
    except pa.ArrowException as exc:
        raise _unreadable(place, path, exc) from None


def _unreadable(place: Place, path: str, exc: Exception) -> LakeDamaged:
    why = str(exc).partition("\n")[0]
    return LakeDamaged(f"it can't be read as a Parquet file: {why}", file=place.full(path))


def rewritten(
    place: Place,
    file: LakeFile,
    columns: Collection[str],
    dropped: Callable[[pa.Table], Any],
    *,
    form: Form | None = None,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Rewritten | None:
    """Write a file anew without some rows; None if it has none of them.

    It is read by row groups: one is in memory.

    Args:
        place: where the lake is.
        file: the file.
        columns: the columns that `dropped` needs.
        dropped: returns which rows of some are dropped.
        form: returns rows in the form in which they are written; by default that of the file.
        dry_run: whether rows are only counted.
        progress: gets how many bytes of the file more are read, or passed over.

    Raises:
        LakeDamaged: it is no Parquet file.
        OSError: it can't be read or written.
    """
    with opened_parquet(place, file.path) as source:
        names = [name for name in columns if name in source.schema_arrow.names]
        groups = source.num_row_groups
        advance = _steps(progress, file.size, 2 * groups)
        masks = []
        for group in range(groups):
            mask = dropped(source.read_row_group(group, names))
            masks.append(pc.invert(pc.fill_null(mask, False)))
            advance(1)
        kept = [int(pc.sum(mask).as_py() or 0) for mask in masks]
        gone = source.metadata.num_rows - sum(kept)
        if not gone or dry_run or not any(kept):
            advance(groups)
            return Rewritten(None, gone) if gone else None
        form = form or pa.Table.replace_schema_metadata
        schema = form(source.schema_arrow.empty_table()).schema
        target = DataFile(place, FileNames().new(folder_of(file.keys)), file.keys, schema)
        try:
            for group in np.flatnonzero(kept).tolist():
                rows = form(source.read_row_group(group).filter(masks[group]))
                target.write(rows, rows.nbytes)
                advance(1)
            written = target.close()
            place.sync([written.path])
        except BaseException:
            target.discard()
            raise
        return Rewritten(written, gone)


def _steps(progress: Callable[[int], None] | None, size: int, count: int) -> Callable[[int], None]:
    """Return a function that reports a number of equal steps."""
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        if progress is not None and count:
            progress((done + steps) * size // count - done * size // count)
        done += steps

    return advance
