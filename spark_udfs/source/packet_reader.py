"""The packets of a partition."""

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
from spark_udfs.source.partitions import CapturePartition
from spark_udfs.source.schema import as_spark

BATCH_ROWS: Final = 16_384
_ENDPOINTS: Final = ("transport", "src", "src_port", "dst", "dst_port")


class MalformedCapture(MsmqError):
    """A load in mode FAILFAST met a malformed packet or a damaged file."""


@dataclass(frozen=True)
class PacketReader:
    """Reads the packets of a partition.

    Attributes:
        options: of the load.
        columns: the names of the columns to read, in their order.
        schema: the Arrow schema in which Spark takes them.
        where: conditions that rows must meet.
    """

    options: Options
    columns: tuple[str, ...]
    schema: pa.Schema
    where: tuple[Condition, ...] = ()

    def read(self, partition: CapturePartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition.

        Raises:
            MalformedCapture: in mode FAILFAST, for a malformed packet or a damaged file.
            OSError: a file can't be read.
        """
        flows = None if partition.is_only else FlowNumbers()
        with ExitStack() as stack:
            warm_up = partition.warm_up_windows()
            streams = [stack.enter_context(window.open()) for window in (*warm_up, *partition.windows)]
            dissection = dissect(
                cast(list[BinaryIO], streams),
                ports=self.options.ports,
                lint=False,
                flush=partition.is_last,
                warm_up=len(warm_up),
                successor_ns=0 if partition.is_last else partition.joined_ns(),
                keys=self.options.keys,
                certificates=self.options.certificates,
                readings=self.options.readings,
                ncp_readings=self.options.ncp_readings,
            )
            batches = record_batches(
                dissection,
                columns=self._decoded_columns(partition),
                where=[*self.where, *self._mode_conditions()],
                batch_rows=BATCH_ROWS,
                body_limit=self.options.body_limit,
            )
            yield from self._spark_batches(batches, partition, flows)
            for error in dissection.errors:
                located = _located_in(partition.windows, error)
                if located is not None:
                    yield from self._damage_row(located)

    def _decoded_columns(self, partition: CapturePartition) -> list[str]:
        """The columns to decode: those to read, and those that they are made of."""
        names = [name for name in self.columns if name != self.options.corrupt_column]
        if self.options.corrupt_column in self.columns:
            names += ["kind", "raw"]
        if self.options.mode == "FAILFAST":
            names += ["kind", "error", "file", "src"]
        if "frame" in names and partition.split_files:
            names.append("file")
        if "stream" in names and not partition.is_only:
            names += _ENDPOINTS
        return list(dict.fromkeys(names))

    def _mode_conditions(self) -> list[Condition]:
        if self.options.mode != "DROPMALFORMED":
            return []
        return [("kind", "!=", "Malformed"), ("kind", "!=", "Skipped")]

    def _spark_batches(
        self, batches: Iterator[pa.RecordBatch], partition: CapturePartition, flows: FlowNumbers | None
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self.options.mode == "FAILFAST":
                _refuse_malformed(batch)
            arrays = []
            for name in self.columns:
                if name == self.options.corrupt_column:
                    is_malformed = pc.equal(batch.column("kind"), "Malformed")
                    array = pc.if_else(is_malformed, batch.column("raw"), pa.scalar(None, pa.binary()))
                elif name == "frame" and partition.split_files:
                    split_files = pa.array(sorted(partition.split_files))
                    is_split = pc.is_in(batch.column("file"), value_set=split_files)
                    array = pc.if_else(is_split, pa.scalar(None, pa.int64()), batch.column("frame"))
                elif name == "stream" and flows is not None:
                    array = flows.column(batch)
                else:
                    array = batch.column(name)
                arrays.append(array)
            yield as_spark(arrays, self.schema)

    def _damage_row(self, error: CaptureError) -> Iterator[pa.RecordBatch]:
        """Yield the row that reports a damaged file, if the mode and the conditions let it through."""
        if self.options.mode == "FAILFAST":
            raise MalformedCapture(str(error))
        warnings.warn(CaptureWarning(error), stacklevel=2)
        row = {"file": error.file, "kind": "Skipped", "error": f"byte {error.offset}: {error.why}"}
        names = list(dict.fromkeys(["file", "kind", "error", *(name for name, _, _ in self.where)]))
        columns = [BY_NAME[name] for name in names]
        batch = pa.RecordBatch.from_pylist([row], arrow_schema(columns))
        if self.options.mode == "PERMISSIVE" and meeting(batch, self.where).num_rows:
            yield as_spark(
                [pa.array([row.get(field.name)], field.type) for field in self.schema], self.schema
            )


def _located_in(windows: Sequence[Window], error: CaptureError) -> CaptureError | None:
    """An error in one of these windows, with its offset in the file; None for one in another file."""
    for window in windows:
        if window.path == error.file:
            return window.located(error)
    return None


def _refuse_malformed(batch: pa.RecordBatch) -> None:
    malformed = batch.filter(pc.equal(batch.column("kind"), "Malformed"))
    if malformed.num_rows:
        file, src, reason = (malformed.column(name)[0].as_py() for name in ("file", "src", "error"))
        raise MalformedCapture(f"{file}: a malformed packet from {src}: {reason}")
