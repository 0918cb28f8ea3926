"""Batches of a stream into a lake, each in one commit, and each once however often it comes.

The engine of the stream gives a batch that it has not seen committed the same number again. So each commit
has the number of its batch as a transaction of the stream, which is asked for before anything is written.
Such a lake has no captures in its state: what was read of them is what the engine remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from msmqwire.errors import InvalidArgument
from msmqwire.names.nearest import unknown_name
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.lake.commits import until_accepted
from msmqwire.tables.lake.part_writer import PartWriter
from msmqwire.tables.lake.partitions import COLUMN_KEYS, By
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.runs import first_number
from msmqwire.tables.lake.schemas import table_schema, table_with_columns
from msmqwire.tables.lake.settings import Settings, check_settings, lake_columns, stream_settings
from msmqwire.tables.lake.state import LakeState
from msmqwire.tables.lake.table import Commit, LakeFile, LakeTable, create
from msmqwire.tables.part_reader import PartReader

_APPLICATION: Final = "msmqwire-stream-"
WriteRows = Callable[[PartWriter, int], Sequence[LakeFile]]
"""Writes the rows of a batch, whose ``part`` is a number or greater ones; see `PartWriter.write_rows`."""


@dataclass
class StreamBatch:
    """A batch of a stream.

    Attributes:
        place: where the lake is.
        stream: what tells the stream from others, the same after a restart.
        number: the number of the batch, greater than those of earlier ones.
        columns: names of `COLUMNS` that its rows have.
        by: the second key of partitions; None for none.
        write: writes its rows.
    """

    place: Place
    stream: str
    number: int
    columns: Sequence[str]
    by: By | None
    write: WriteRows
    _files: Sequence[LakeFile] | None = field(default=None, init=False)
    """What was written for a commit that was refused."""

    def carry_out(self) -> int | None:
        """Write the batch unless it is there; return the version that it has made, None for none.

        A batch without rows makes no version.

        Raises:
            LakeMismatch: the folder is not a lake, or one of captures, or has other partitions.
            LakeDamaged: the log or the state of the lake is broken.
            OSError: it can't be written.
            Whatever `write` raises.
        """
        self.place.prepare()
        try:
            return until_accepted(self.place, self._attempt)
        finally:
            self.place.remove(file.path for file in self._files or ())

    def _forget(self) -> None:
        """The files are the lake's."""
        self._files = None

    def _attempt(self, found: tuple[LakeTable, LakeState] | None) -> int | None:
        table, state = found or (None, LakeState(stream_settings(self.columns, self.by)))
        check_settings(state, stream_settings(None, self.by), self.place)
        application = _APPLICATION + self.stream
        last = None if table is None else table.transaction(application)
        if last is not None and last >= self.number:
            return None
        names = lake_columns(state.settings, self.place)
        names += tuple(name for name in self.columns if name not in names)
        if self._files is None:
            writer = PartWriter(self.place, PartReader(), names, by=self.by)
            self._files = self.write(writer, first_number())
        if not self._files:
            return None
        settings: Settings = {**state.settings, **stream_settings(names, self.by)}
        figures = {"rows": sum(file.rows or 0 for file in self._files), "files": len(self._files)}
        change = Commit(
            "stream",
            replace(state, commit=state.commit + 1, settings=settings),
            self._files,
            details={"stream": self.stream, "batch": self.number, **figures},
            accepted=self._forget,
            transactions={application: self.number},
        )
        if table is None:
            return create(self.place, *table_schema(names, self.by), change).version
        return table_with_columns(table, names, self.by).commit(change).version


def check_stream(by: By | None, columns: Iterable[str] | None = None) -> None:
    """Refuse what no lake can be made of.

    Args:
        by: the second key of partitions.
        columns: the names of the columns of the stream, once they are known.

    Raises:
        InvalidArgument: there is no such key, or no such column; or there are no times.
    """
    if by not in COLUMN_KEYS:
        raise unknown_name(by, filter(None, COLUMN_KEYS), "key of partitions", path="by")
    if columns is None:
        return
    names = list(columns)
    for name in names:
        if name not in BY_NAME:
            raise unknown_name(name, BY_NAME, "column of captures", path="columns")
    for name in filter(None, ("time", by)):
        if name not in names:
            raise InvalidArgument(f"the stream has no {name}, by which the lake is divided", path="columns")


def stream_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of a stream as `PartWriter.write_rows` takes them.

    Args:
        batch: the rows; columns that they lack are null.
        schema: the columns, of `arrow_schema`.

    Raises:
        InvalidArgument: a value is beyond those that a column can have.
    """
    arrays = []
    for wanted in schema:
        if wanted.name not in batch.schema.names:
            arrays.append(pa.nulls(batch.num_rows, wanted.type))
            continue
        column = batch.column(wanted.name)
        try:
            # Spark's times have microseconds, whatever ours have.
            is_less = pa.types.is_timestamp(wanted.type) and wanted.type.unit != "ns"
            arrays.append(column.cast(wanted.type, safe=not is_less))
        except pa.ArrowInvalid as exc:
            raise InvalidArgument(str(exc).partition("\n")[0], path=wanted.name) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
