"""The TCP segments, UDP datagrams and PGM packets of a part.

Each belongs to the frame that completes it, so the rows of all parts together are the same however the
captures are divided. Fragments of IP datagrams captured before a part are known from its warm-up.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture.record import NO_TIME
from msmqwire.errors import CaptureError
from msmqwire.tables import CaptureWarning
from msmqwire.tables.arrow.tunnel_columns import TunnelColumns
from msmqwire.tables.columns import BY_NAME, TUNNEL
from msmqwire.tables.compiled.datagram_scan import (
    C_ACK,
    C_FILE,
    C_FLAGS,
    C_MISSING,
    C_OFFSET,
    C_PAIR,
    C_SEQ,
    C_SIZE,
    C_TIME,
    C_TRANSPORT,
    C_TUNNEL,
)
from msmqwire.tables.compiled.network import PGM, TCP, UDP
from msmqwire.tables.datagrams import DatagramReader, Datagrams, Pair
from msmqwire.tables.filters import SimpleCondition, meeting
from msmqwire.tables.flow_number import flow_number
from msmqwire.tables.parts import Part
from spark_udfs.source.options import Options
from spark_udfs.source.packet_reader import MalformedCapture
from spark_udfs.source.schema import as_spark


def _field(name: str, kind: Any, meaning: str) -> pa.Field:
    return pa.field(name, kind, metadata={"comment": meaning})


SEGMENT_SCHEMA: Final = pa.schema(
    [
        _field("file", pa.string(), "The capture file of the frame that completed it."),
        _field("file_index", pa.int32(), "The index of that file in the load, from 0."),
        _field("offset", pa.int64(), "The byte of the unpacked file at which that frame's record starts."),
        _field("time", pa.timestamp("ns", "UTC"), "When that frame was captured."),
        _field("time_ns", pa.int64(), "The same in nanoseconds since 1970-01-01 UTC."),
        _field(
            "transport",
            pa.string(),
            "tcp, udp, pgm (IP protocol 113), or damaged: the file can't be read further; with the option"
            " notRead also unread: as many frames as size says were not read, for the reason in error.",
        ),
        _field("src", pa.string(), "Address of the sender."),
        _field("src_port", pa.int32(), "Port of the sender."),
        _field("dst", pa.string(), "Address of the receiver."),
        _field("dst_port", pa.int32(), "Port of the receiver."),
        *(_field(name, BY_NAME[name].type, BY_NAME[name].meaning) for name in TUNNEL),
        _field("flow", pa.int64(), "A number for the pair of endpoints, the same both ways; 0 for damaged."),
        _field("seq", pa.int64(), "Sequence number; 0 without TCP, like the next two."),
        _field("ack", pa.int64(), "Acknowledgement number."),
        _field("flags", pa.int32(), "FIN, SYN, RST, PSH, ACK, URG, ECE, CWR from bit 0."),
        _field("payload", pa.binary(), "The bytes after the header, as far as captured; or the reason."),
        _field("missing", pa.int64(), "Bytes of payload after them that the capture cut off."),
        _field("size", pa.int64(), "Bytes of payload on the wire; 0 for damaged."),
        _field("error", pa.string(), "Why the file can't be read further."),
    ]
)
"""The columns of ``read=segments``."""
DAMAGED: Final = "damaged"
"""The transport of a row that reports a file that can't be read to its end."""
UNREAD: Final = "unread"
"""The transport of a row that says how many frames of a part were not read, and why."""
PUSHED: Final = ("file", "transport", "src", "src_port", "dst", "dst_port")
"""The columns whose conditions are checked before a row is made."""

_TRANSPORTS: Final = pa.array([DAMAGED, "tcp", "udp", "pgm"])
assert (TCP, UDP, PGM) == (1, 2, 3)
_PAIR_COLUMNS: Final = ("src", "src_port", "dst", "dst_port", "flow")
_CELLS: Final = {
    "offset": C_OFFSET,
    "seq": C_SEQ,
    "ack": C_ACK,
    "flags": C_FLAGS,
    "missing": C_MISSING,
}


@dataclass(frozen=True)
class SegmentReader:
    """Reads the segments of a part.

    Attributes:
        options: the options of the load.
        columns: the names of the columns to read, in order.
        schema: the Arrow schema in which Spark takes them.
        where: conditions that rows must meet, on columns of `PUSHED`.
    """

    options: Options
    columns: tuple[str, ...]
    schema: pa.Schema
    where: tuple[SimpleCondition, ...] = ()

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part.

        Raises:
            MalformedCapture: in mode FAILFAST, for a damaged file.
            OSError: a file can't be read.
        """
        names = [*self.columns, *(condition[0] for condition in self.where)]
        if self.options.mode == "DROPMALFORMED":
            names.append("transport")
        strict, not_read = self.options.mode == "FAILFAST", self.options.not_read
        for batch in segment_batches(part, columns=names, strict=strict, not_read=not_read):
            rows = meeting(batch, self.where)
            if self.options.mode == "DROPMALFORMED":
                rows = rows.filter(pc.not_equal(rows.column("transport"), DAMAGED))
            yield as_spark([rows.column(name) for name in self.columns], self.schema)


def segment_batches(
    part: Part,
    *,
    columns: Collection[str] = SEGMENT_SCHEMA.names,
    strict: bool = False,
    not_read: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the segments of a part, in the order of the capture.

    A file that can't be read to its end is reported by a `CaptureWarning` and by a row: its transport is
    `DAMAGED`, its offset is where reading stopped, and its error is the reason, which is also its payload, as
    UTF-8 text. With `strict` it is an exception instead.

    Args:
        part: the part to read.
        columns: the names of columns of `SEGMENT_SCHEMA`; columns not named cost nothing.
        strict: whether a damaged file raises an exception.
        not_read: whether rows with the transport `UNREAD` follow: one for each reason why frames were not
            read though packets may be in them.

    Raises:
        MalformedCapture: with `strict`, for a damaged file.
        OSError: a file can't be read.
    """
    schema = pa.schema([field for field in SEGMENT_SCHEMA if field.name in columns])
    reader = DatagramReader(payloads="payload" in columns)
    for window in part.warm_up_windows():
        with window.open() as stream, suppress(CaptureError):
            reader.skip(stream)
    maker = _SegmentBatchMaker(part, schema)
    for number, window in enumerate(part.windows):
        with window.open() as stream:
            try:
                for datagrams in reader.read(stream, number, window.file_offset(0)):
                    yield maker.batch(datagrams)
                continue
            except CaptureError as error:
                damage = window.located(error)
        if strict:
            raise MalformedCapture(str(damage))
        warnings.warn(CaptureWarning(damage), stacklevel=2)
        for datagrams in reader.finish():
            yield maker.batch(datagrams)
        yield _damage_row(damage, part.file_index + number, schema)
    for datagrams in reader.finish():
        yield maker.batch(datagrams)
    if not_read:
        counts = reader.frames_not_read(at_end=part.is_last)
        rows = [
            _row_about(part.windows[-1].path, part.file_index, 0, UNREAD, reason, frames)
            for reason, frames in counts.items()
        ]
        yield pa.RecordBatch.from_pylist(rows, schema)


class _SegmentBatchMaker:
    """Makes record batches of datagrams."""

    def __init__(self, part: Part, schema: pa.Schema) -> None:
        self._schema = schema
        self._file_index = part.file_index
        self._files = pa.array([window.path for window in part.windows], pa.string())
        self._pairs: list[Pair] = []
        self._pair_columns = _pair_columns([])
        self._tunnels: TunnelColumns | None = None

    def batch(self, datagrams: Datagrams) -> pa.RecordBatch:
        """Return the record batch of some datagrams."""
        if datagrams.pairs is not self._pairs:
            self._pairs, self._pair_columns = datagrams.pairs, _pair_columns([])
        known = len(self._pair_columns["flow"])
        if len(datagrams.pairs) > known:
            added = _pair_columns(datagrams.pairs[known:])
            self._pair_columns = {
                name: pa.concat_arrays([column, added[name]]) for name, column in self._pair_columns.items()
            }
        arrays = [self._column(field, datagrams) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, field: pa.Field, datagrams: Datagrams) -> pa.Array:
        cells, name = datagrams.cells, field.name
        if name in TUNNEL:
            return self._tunnel_column(field, datagrams)
        if name in _PAIR_COLUMNS:
            return pc.take(self._pair_columns[name], pa.array(cells[C_PAIR]))
        match name:
            case "file":
                return pc.take(self._files, pa.array(cells[C_FILE]))
            case "file_index":
                return pa.array(cells[C_FILE] + self._file_index, field.type)
            case "transport":
                return pc.take(_TRANSPORTS, pa.array(cells[C_TRANSPORT]))
            case "time" | "time_ns":
                return pa.array(cells[C_TIME], mask=cells[C_TIME] == NO_TIME).view(field.type)
            case "payload":
                offsets = np.zeros(cells.shape[1] + 1, np.int32)
                np.cumsum(cells[C_SIZE], out=offsets[1:])
                buffers = [None, pa.py_buffer(offsets), pa.py_buffer(datagrams.payloads)]
                return pa.Array.from_buffers(field.type, cells.shape[1], buffers)
            case "size":
                return pa.array(cells[C_SIZE] + cells[C_MISSING])
            case "error":
                return pa.nulls(cells.shape[1], field.type)
            case _:
                return pa.array(cells[_CELLS[name]], field.type)

    def _tunnel_column(self, field: pa.Field, datagrams: Datagrams) -> pa.Array:
        numbers = datagrams.cells[C_TUNNEL]
        if not numbers.any():
            return pa.nulls(len(numbers), field.type)
        if self._tunnels is None or self._tunnels.texts is not datagrams.tunnels:
            self._tunnels = TunnelColumns(datagrams.tunnels)
        return self._tunnels.array(field.name, numbers.astype(np.int32))


def _pair_columns(pairs: Sequence[Pair]) -> dict[str, pa.Array]:
    """The columns that depend on the pair of endpoints alone."""
    rows = [(*pair[:4], flow_number(*pair)) for pair in pairs]
    columns = zip(*rows, strict=True) if rows else [()] * len(_PAIR_COLUMNS)
    return {
        name: pa.array(column, SEGMENT_SCHEMA.field(name).type)
        for name, column in zip(_PAIR_COLUMNS, columns, strict=True)
    }


def _damage_row(error: CaptureError, file_index: int, schema: pa.Schema) -> pa.RecordBatch:
    row = _row_about(error.file, file_index, error.offset, DAMAGED, error.why, 0)
    return pa.RecordBatch.from_pylist([row], schema)


def _row_about(
    file: str, file_index: int, offset: int, transport: str, about: str, size: int
) -> dict[str, Any]:
    """A row that is not a segment."""
    return {
        "file": file, "file_index": file_index, "offset": offset, "transport": transport, "flow": 0,
        "seq": 0, "ack": 0, "flags": 0, "payload": about.encode(), "missing": 0, "size": size, "error": about,
    }  # fmt: skip
