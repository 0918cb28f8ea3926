"""The packets of a part, as Spark takes them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.errors import CaptureError, MsmqError
from msmqwire.tables import CaptureWarning, Condition, arrow_schema
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.filters import columns_of, meeting
from msmqwire.tables.parts import Part
from spark_udfs.source.options import Options
from spark_udfs.source.schema import as_spark


class MalformedCapture(MsmqError):
    """A load in mode FAILFAST met a malformed packet or a damaged file."""


@dataclass(frozen=True)
class PacketReader:
    """Reads the packets of a part.

    Attributes:
        options: the options of the load.
        columns: the names of the columns to read, in order.
        schema: the Arrow schema in which Spark takes them.
        where: conditions that rows must meet.
    """

    options: Options
    columns: tuple[str, ...]
    schema: pa.Schema
    where: tuple[Condition, ...] = ()

    def read(self, part: Part | ExactPart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part.

        Raises:
            MalformedCapture: in mode FAILFAST, for a malformed packet or a damaged file.
            OSError: a file can't be read.
        """
        errors: list[CaptureError] = []
        fail_fast = self.options.mode == "FAILFAST"
        where = [] if fail_fast else [*self.where, *self._mode_conditions()]
        batches = self.options.part_reader().batches(part, self._decoded_columns(), where, errors=errors)
        for batch in batches:
            rows = batch
            if fail_fast:
                _refuse_malformed(batch)
                rows = meeting(batch, self.where)  # only now: malformed packets must be seen
            yield as_spark([self._column(name, rows) for name in self.columns], self.schema)
        for error in errors:
            yield from self._damage_row(error)

    def _decoded_columns(self) -> list[str]:
        """The columns to decode: the columns to read, and their source columns."""
        names = [name for name in self.columns if name != self.options.corrupt_column]
        if self.options.corrupt_column in self.columns:
            names += ["kind", "raw"]
        if self.options.mode == "FAILFAST":
            names += ["kind", "error", "file", "src", *(column.name for column in columns_of(self.where))]
        return list(dict.fromkeys(names))

    def _column(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        if name != self.options.corrupt_column:
            return batch.column(name)
        is_malformed = pc.equal(batch.column("kind"), "Malformed")
        return pc.if_else(is_malformed, batch.column("raw"), pa.scalar(None, pa.binary()))

    def _mode_conditions(self) -> list[Condition]:
        if self.options.mode != "DROPMALFORMED":
            return []
        return [("kind", "!=", "Malformed"), ("kind", "!=", "Skipped")]

    def _damage_row(self, error: CaptureError) -> Iterator[pa.RecordBatch]:
        """Yield the row that reports a damaged file, if the mode and the conditions let it through."""
        if self.options.mode == "FAILFAST":
            raise MalformedCapture(str(error))
        warnings.warn(CaptureWarning(error), stacklevel=2)
        row = {"file": error.file, "kind": "Skipped", "error": f"byte {error.offset}: {error.why}"}
        names = list(
            dict.fromkeys(["file", "kind", "error", *(column.name for column in columns_of(self.where))])
        )
        columns = [BY_NAME[name] for name in names]
        batch = pa.RecordBatch.from_pylist([row], arrow_schema(columns))
        if self.options.mode == "PERMISSIVE" and meeting(batch, self.where).num_rows:
            yield as_spark(
                [pa.array([row.get(field.name)], field.type) for field in self.schema], self.schema
            )


def _refuse_malformed(batch: pa.RecordBatch) -> None:
    malformed = batch.filter(pc.equal(batch.column("kind"), "Malformed"))
    if malformed.num_rows:
        file, src, reason = (malformed.column(name)[0].as_py() for name in ("file", "src", "error"))
        raise MalformedCapture(f"{file}: a malformed packet from {src}: {reason}")
