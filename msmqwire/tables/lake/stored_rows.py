"""The rows of the files of a lake, in one form: a file may lack later columns, and another program may have
written it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture.record import NO_TIME
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.lake.part_writer import PART
from msmqwire.tables.lake.schemas import read_schema
from msmqwire.tables.lake.state import LakeState
from msmqwire.tables.lake.table import LakeFile, LakeTable

TIMES: Final = ("time_ns", "time")
"""The columns that a time is taken from, the first one first."""


class StoredRows:
    """The rows of the files of a version of a lake.

    Args:
        table: the version.
        state: its state, which knows the parts of files of lakes of earlier versions.

    Attributes:
        schema: the schema of the files that are written.
    """

    def __init__(self, table: LakeTable, state: LakeState) -> None:
        fields = [field.remove_metadata() for field in read_schema(table) if field.name not in table.keys]
        self.schema = pa.schema(fields)
        self._keys = table.keys
        self._parts = {path: part.number for part in state.parts for path in part.files}

    def columns(self) -> list[str]:
        """Return the names of the columns, with those of keys."""
        return [*self.schema.names, *self._keys]

    def as_written(self, rows: pa.Table, file: LakeFile) -> pa.Table:
        """Return all columns of some rows of a file as they are written: missing ones are null, but for that
        of the part.
        """
        arrays = []
        for field in self.schema:
            if field.name in rows.column_names:
                arrays.append(_cast(rows[field.name], field.type))
            elif field.name == PART.name and file.path in self._parts:
                arrays.append(_constant(self._parts[file.path], field.type, rows.num_rows))
            else:
                arrays.append(_constant(None, field.type, rows.num_rows))
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def needed(self, names: Sequence[str]) -> list[str]:
        """Return the columns of files that have the values of columns of captures."""
        return [one for name in names for one in (TIMES if name == "time" else (name,))]

    def as_captured(self, rows: pa.Table, file: LakeFile, names: Sequence[str]) -> pa.Table:
        """Return columns of captures for some rows of a file; times have nanoseconds."""
        arrays = []
        for name in names:
            kind = BY_NAME[name].type
            if name in self._keys:
                arrays.append(_constant(file.keys[name], kind, rows.num_rows))
            elif name == "time":
                arrays.append(_times(rows).cast(kind))
            elif name in rows.column_names:
                arrays.append(_cast(rows[name], kind))
            else:
                arrays.append(_constant(None, kind, rows.num_rows))
        return pa.Table.from_arrays(arrays, names=list(names))


def times_of(rows: pa.Table) -> Any:
    """Return the times of some rows in nanoseconds, by which they are sorted; `NO_TIME` for those without."""
    return _times(rows).fill_null(NO_TIME).to_numpy()


def _times(rows: pa.Table) -> Any:
    found = [
        rows["time_ns"] if name == "time_ns" else _cast(rows[name], BY_NAME["time"].type).cast(pa.int64())
        for name in TIMES
        if name in rows.column_names
    ]
    if not found:
        return _constant(None, pa.int64(), rows.num_rows)
    return pc.coalesce(*found) if len(found) > 1 and found[0].null_count else found[0]


def _cast(values: Any, kind: pa.DataType) -> Any:
    return values if values.type == kind else values.cast(kind, safe=False)


def _constant(value: Any, kind: pa.DataType, count: int) -> pa.ChunkedArray:
    array = pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)
    return pa.chunked_array([array])
