"""What a task makes of its part of the captures: packets."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture.window import Window
from msmqwire.columnar import CaptureWarning, Condition, arrow_schema, record_batches
from msmqwire.columnar.columns import BY_NAME
from msmqwire.columnar.filters import meeting
from msmqwire.dissection import dissect
from msmqwire.errors import CaptureError, MsmqError
from spark_udfs.source.flow_numbers import FlowNumbers
from spark_udfs.source.options import Options
from spark_udfs.source.parts import Part
from spark_udfs.source.schema import as_spark

BATCH_ROWS: Final = 16_384
_ENDPOINTS: Final = ("transport", "src", "src_port", "dst", "dst_port")


class MalformedCapture(MsmqError):
    """A load in mode FAILFAST came upon a malformed packet or a damaged file."""


@dataclass(frozen=True)
class PacketReader:
    """Reads packets.

    Attributes:
        options: of the load.
        columns: the names of the columns wanted, in their order.
        schema: the Arrow schema in which Spark takes them.
        where: conditions that rows meet.
    """

    options: Options
    columns: tuple[str, ...]
    schema: pa.Schema
    where: tuple[Condition, ...] = ()

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        """The rows of a part.

        Raises:
            MalformedCapture: in mode FAILFAST, for a malformed packet or a damaged file.
            OSError: a file can't be read.
        """
        needed = self._needed(part)
        flows = None if part.alone else FlowNumbers()
        with ExitStack() as stack:
            before = part.before()
            streams = [stack.enter_context(window.open()) for window in (*before, *part.windows)]
            dissection = dissect(
                cast(list[BinaryIO], streams),
                ports=self.options.ports,
                lint=False,
                flush=part.last,
                warm_up=len(before),
                joined_ns=0 if part.last else part.joined_ns(),
            )
            batches = record_batches(
                dissection,
                columns=needed,
                where=[*self.where, *self._kept()],
                batch_rows=BATCH_ROWS,
                body_limit=self.options.body_limit,
            )
            yield from self._delivered(batches, part, flows)
            for error in dissection.errors:
                located = _own_error(error, part.windows)
                if located is not None:
                    yield from self._damaged(located)

    def _needed(self, part: Part) -> list[str]:
        """The columns to decode: those wanted, and those that they are made of."""
        needed = [name for name in self.columns if name != self.options.corrupt_column]
        if self.options.corrupt_column in self.columns:
            needed += ["kind", "raw"]
        if self.options.mode == "FAILFAST":
            needed += ["kind", "error", "file", "src"]
        if "frame" in needed and part.cut_files:
            needed.append("file")
        if "stream" in needed and not part.alone:
            needed += _ENDPOINTS
        return list(dict.fromkeys(needed))

    def _kept(self) -> list[Condition]:
        if self.options.mode != "DROPMALFORMED":
            return []
        return [("kind", "!=", "Malformed"), ("kind", "!=", "Skipped")]

    def _delivered(
        self, found: Iterator[pa.RecordBatch], part: Part, flows: FlowNumbers | None
    ) -> Iterator[pa.RecordBatch]:
        for batch in found:
            if self.options.mode == "FAILFAST":
                _refuse_malformed(batch)
            arrays = []
            for name in self.columns:
                if name == self.options.corrupt_column:
                    bad = pc.equal(batch.column("kind"), "Malformed")
                    array = pc.if_else(bad, batch.column("raw"), pa.scalar(None, pa.binary()))
                elif name == "frame" and part.cut_files:
                    cut = pc.is_in(batch.column("file"), value_set=pa.array(sorted(part.cut_files)))
                    array = pc.if_else(cut, pa.scalar(None, pa.int64()), batch.column("frame"))
                elif name == "stream" and flows is not None:
                    array = flows.column(batch)
                else:
                    array = batch.column(name)
                arrays.append(array)
            yield as_spark(arrays, self.schema)

    def _damaged(self, error: CaptureError) -> Iterator[pa.RecordBatch]:
        """The row that tells of a file that can't be read on, if it is asked for."""
        if self.options.mode == "FAILFAST":
            raise MalformedCapture(str(error))
        warnings.warn(CaptureWarning(error), stacklevel=2)
        row = {"file": error.file, "kind": "Skipped", "error": f"byte {error.offset}: {error.why}"}
        names = list(dict.fromkeys(["file", "kind", "error", *(name for name, _, _ in self.where)]))
        columns = [BY_NAME[name] for name in names]
        told = pa.RecordBatch.from_pylist([row], arrow_schema(columns))
        if self.options.mode == "PERMISSIVE" and meeting(told, self.where).num_rows:
            yield as_spark(
                [pa.array([row.get(field.name)], field.type) for field in self.schema], self.schema
            )


def _own_error(error: CaptureError, windows: Sequence[Window]) -> CaptureError | None:
    """An error in one of these windows, with its place in the file; None for one in another file."""
    for window in windows:
        if window.path == error.file:
            return window.located(error)
    return None


def _refuse_malformed(batch: pa.RecordBatch) -> None:
    bad = batch.filter(pc.equal(batch.column("kind"), "Malformed"))
    if bad.num_rows:
        file, src, why = (bad.column(name)[0].as_py() for name in ("file", "src", "error"))
        raise MalformedCapture(f"{file}: a malformed packet from {src}: {why}")
