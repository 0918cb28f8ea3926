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

from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake.file_names import FileNames
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.sorted_files import DataFile
from msmqwire.tables.lake.table import LakeFile


@dataclass(frozen=True)
class Rewritten:
    """A file of which rows were dropped.

    Attributes:
        file: the file with the rest; None if there is none.
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
    except pa.ArrowException as exc:
        why = str(exc).partition("\n")[0]
        raise LakeDamaged(f"it can't be read as a Parquet file: {why}", file=place.full(path)) from None


def rewritten(
    place: Place, file: LakeFile, columns: Collection[str], dropped: Callable[[pa.Table], Any]
) -> Rewritten | None:
    """Write a file anew without some rows; None if it has none of them.

    Args:
        place: where the lake is.
        file: the file.
        columns: the columns that `dropped` needs.
        dropped: returns which rows of some are dropped.

    Raises:
        LakeDamaged: it is no Parquet file.
        OSError: it can't be read or written.
    """
    with opened_parquet(place, file.path) as source:
        names = [name for name in columns if name in source.schema_arrow.names]
        masks = [
            pc.invert(pc.fill_null(dropped(source.read_row_group(group, names)), False))
            for group in range(source.num_row_groups)
        ]
        kept = [int(pc.sum(mask).as_py() or 0) for mask in masks]
        gone = source.metadata.num_rows - sum(kept)
        if not gone:
            return None
        if not any(kept):
            return Rewritten(None, gone)
        folder = file.path.rpartition("/")[0]
        schema = source.schema_arrow.remove_metadata()
        target = DataFile(place, FileNames().new(folder), file.keys, schema)
        try:
            for group in np.flatnonzero(kept).tolist():
                rows = source.read_row_group(group).replace_schema_metadata().filter(masks[group])
                target.write(rows, rows.nbytes)
            written = target.close()
            place.sync([written.path])
        except BaseException:
            target.discard()
            raise
        return Rewritten(written, gone)
