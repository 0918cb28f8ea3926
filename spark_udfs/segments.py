"""What a task makes of its part of the captures: TCP segments and UDP datagrams.

Each belongs to the frame that completes it, so that the rows of all parts together are the same
however the captures are divided. Fragments of IP datagrams that come from before a part are known by
its warm-up.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import Datagram, IpDecoder
from msmqwire.capture.splits import Window, located_records
from msmqwire.columnar import CaptureWarning, Condition
from msmqwire.columnar.filters import meeting
from msmqwire.errors import CaptureError
from spark_udfs.flows import FlowNumbers
from spark_udfs.options import Options
from spark_udfs.packet_reader import MalformedCapture
from spark_udfs.parts import Part
from spark_udfs.schema import as_spark

BATCH_ROWS: Final = 8192
BATCH_BYTES: Final = 16 << 20
"""Bytes of payload after which a batch is closed."""


def _field(name: str, kind: Any, meaning: str) -> pa.Field:
    return pa.field(name, kind, metadata={"comment": meaning})


SEGMENT_SCHEMA: Final = pa.schema(
    [
        _field("file", pa.string(), "The capture file of the frame that completed it."),
        _field("file_index", pa.int32(), "The place of that file in the load, from 0."),
        _field("offset", pa.int64(), "The byte of the unpacked file at which that frame's record starts."),
        _field("time", pa.timestamp("ns", "UTC"), "When that frame was captured."),
        _field("time_ns", pa.int64(), "The same in nanoseconds since 1970-01-01 UTC."),
        _field("transport", pa.string(), "tcp, udp, or damaged: the file can't be read on."),
        _field("src", pa.string(), "Address of the sender."),
        _field("src_port", pa.int32(), "Port of the sender."),
        _field("dst", pa.string(), "Address of the receiver."),
        _field("dst_port", pa.int32(), "Port of the receiver."),
        _field("flow", pa.int64(), "A number for the pair of endpoints, the same both ways; 0 for damaged."),
        _field("seq", pa.int64(), "Sequence number; 0 for UDP."),
        _field("ack", pa.int64(), "Acknowledgement number; 0 for UDP."),
        _field("flags", pa.int32(), "FIN, SYN, RST, PSH, ACK, URG, ECE, CWR from bit 0; 0 for UDP."),
        _field(
            "payload",
            pa.binary(),
            "The bytes after the header, as far as captured; or the reason.",
        ),
        _field("missing", pa.int64(), "Bytes of payload that the capture cut off behind them."),
    ]
)
"""The columns of ``read=segments``."""
DAMAGED: Final = "damaged"
"""The transport of a row that tells of a file which can't be read to its end."""
PUSHED: Final = ("file", "transport", "src", "src_port", "dst", "dst_port")
"""The columns whose conditions are looked at before a row is made."""

_Row = tuple[Any, ...]
_TIME_NS_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True)
class SegmentReader:
    """Reads segments.

    Attributes:
        options: of the load.
        columns: the names of the columns wanted, in their order.
        schema: the Arrow schema in which Spark takes them.
        where: conditions that rows meet, on columns of `PUSHED`.
    """

    options: Options
    columns: tuple[str, ...]
    schema: pa.Schema
    where: tuple[Condition, ...] = ()

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        """The rows of a part.

        Raises:
            MalformedCapture: in mode FAILFAST, for a damaged file.
            OSError: a file can't be read.
        """
        for batch in segment_batches(part, strict=self.options.mode == "FAILFAST"):
            kept = meeting(batch, self.where)
            if self.options.mode == "DROPMALFORMED":
                kept = kept.filter(pc.not_equal(kept.column("transport"), DAMAGED))
            yield as_spark([kept.column(name) for name in self.columns], self.schema)


def segment_batches(part: Part, *, strict: bool = False) -> Iterator[pa.RecordBatch]:
    """The segments of a part, in the order of the capture, with the columns of `SEGMENT_SCHEMA`.

    A file that can't be read to its end is told by a `CaptureWarning` and by a last row, whose transport
    is `DAMAGED`, whose payload is the reason as UTF-8 text and whose offset is where reading stopped; or
    with `strict` by an error.

    Raises:
        MalformedCapture: with `strict`, for a damaged file.
        OSError: a file can't be read.
    """
    decoder, numbers = IpDecoder(), FlowNumbers()
    for window in part.before():
        for _ in _datagrams(window, decoder, None):
            pass
    rows: list[_Row] = []
    size = 0
    for index, window in enumerate(part.windows, part.file_index):
        errors: list[CaptureError] = []
        for offset, segment in _datagrams(window, decoder, errors):
            rows.append(_row(offset, segment, index, numbers))
            size += len(segment.payload)
            if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _batch(rows)
                rows, size = [], 0
        for error in errors:
            if strict:
                raise MalformedCapture(str(error))
            warnings.warn(CaptureWarning(error), stacklevel=2)
            rows.append(_damaged(error, index))
    if rows:
        yield _batch(rows)


def _datagrams(
    window: Window, decoder: IpDecoder, errors: list[CaptureError] | None
) -> Iterator[tuple[int, Datagram]]:
    with window.open() as stream:
        try:
            for offset, record in located_records(stream):
                segment = decoder.decode(record)
                if segment is not None:
                    yield offset, segment
        except CaptureError as error:
            if errors is not None:
                errors.append(error)


def _row(offset: int, segment: Datagram, file_index: int, numbers: FlowNumbers) -> _Row:
    (
        transport, src, src_port, dst, dst_port, time_ns, _, file, payload, missing, seq, ack, flags
    ) = segment  # fmt: skip
    time = time_ns if -_TIME_NS_MAX <= time_ns <= _TIME_NS_MAX else None
    flow = numbers.number(src, src_port, dst, dst_port)
    return (
        file, file_index, offset, time, time, transport, src, src_port, dst, dst_port, flow, seq, ack, flags,
        payload, missing,
    )  # fmt: skip


def _damaged(error: CaptureError, file_index: int) -> _Row:
    return (
        error.file, file_index, error.offset, None, None, DAMAGED, None, None, None, None, 0, 0, 0, 0,
        error.why.encode(), 0,
    )  # fmt: skip


def _batch(rows: Sequence[_Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(cells, field.type) for cells, field in zip(columns, SEGMENT_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SEGMENT_SCHEMA)
