"""Captures as columns: Arrow tables with one row for each packet, malformed packet or skipped stretch."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, overload

import pyarrow as pa

from msmqwire.columnar.columns import BY_NAME, COLUMNS, Column, arrow_schema
from msmqwire.columnar.filters import Condition, Filter
from msmqwire.dissection import Dissection, Source, dissect
from msmqwire.errors import CaptureError

__all__ = [
    "COLUMNS",
    "PACKET_COLUMNS",
    "CaptureWarning",
    "Column",
    "Condition",
    "arrow_schema",
    "read_capture",
    "read_packets",
    "record_batches",
]

BATCH_ROWS = 65_536
PACKET_COLUMNS: Final[tuple[Column, ...]] = (
    *(BY_NAME[name] for name in ("kind", "size", "error", "error_path", "error_offset")),
    *(column for column in COLUMNS if column.group != "where"),
)
"""The columns that show what the bytes of a packet tell, and nothing of a capture."""


class CaptureWarning(UserWarning):
    """A capture file could not be read to its end; its rows up to there are in the result.

    Attributes:
        error: where, and why.
    """

    def __init__(self, error: CaptureError) -> None:
        super().__init__(str(error))
        self.error = error


def chosen_columns(names: Collection[str] | None) -> list[Column]:
    """The columns of these names in the order asked for; all but ``raw`` for None. Raises ValueError."""
    if names is None:
        return [column for column in COLUMNS if column.name != "raw"]
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise ValueError(f"no column {', '.join(unknown)}")
    return [BY_NAME[name] for name in names]


def record_batches(
    dissection: Dissection,
    *,
    columns: Collection[str] | None = None,
    where: Sequence[Condition] = (),
    batch_rows: int = BATCH_ROWS,
    body_limit: int | None = None,
) -> Iterator[Any]:
    """The record batches of a dissection; see `read_capture`."""
    from msmqwire.columnar.arrow.batch import BatchMaker
    from msmqwire.columnar.decoder import Decoder

    maker = BatchMaker(chosen_columns(columns), Filter(where), batch_rows, body_limit)
    return Decoder(dissection, maker).batches()


@overload
def read_capture(
    sources: Source | Iterable[Source],
    *,
    columns: Collection[str] | None = None,
    where: Sequence[Condition] = (),
    batch_rows: None = None,
    ports: Collection[int] = (),
    body_limit: int | None = None,
    flush: bool = True,
    warm_up: int = 0,
) -> pa.Table: ...


@overload
def read_capture(
    sources: Source | Iterable[Source],
    *,
    columns: Collection[str] | None = None,
    where: Sequence[Condition] = (),
    batch_rows: int,
    ports: Collection[int] = (),
    body_limit: int | None = None,
    flush: bool = True,
    warm_up: int = 0,
) -> pa.RecordBatchReader: ...


def read_capture(
    sources: Source | Iterable[Source],
    *,
    columns: Collection[str] | None = None,
    where: Sequence[Condition] = (),
    batch_rows: int | None = None,
    ports: Collection[int] = (),
    body_limit: int | None = None,
    flush: bool = True,
    warm_up: int = 0,
) -> Any:
    """Captures as an Arrow table, or as a reader of record batches in bounded memory.

    Args:
        sources: as for `msmqwire.dissect`.
        columns: names of `COLUMNS`; all but ``raw`` when left out.
        where: conditions that all rows meet: ``[("kind", "==", "UserMessage"), ("dst_port", "in", [1801])]``.
            Those on time, endpoints and kind are applied before a packet's fields are looked at.
        batch_rows: rows of a batch; with it the result is a `pyarrow.RecordBatchReader`.
        ports: as for `msmqwire.dissect`.
        body_limit: bytes of ``body`` at the most; ``body_size`` tells the whole.
        flush, warm_up: as for `msmqwire.dissect`.

    A file that breaks off or is damaged is told by a `CaptureWarning` when its end is reached.

    Raises:
        FileNotFoundError: a path or pattern names no file.
        ValueError: no such column or operator.
    """
    schema = arrow_schema(tuple(chosen_columns(columns)))
    dissection = dissect(sources, ports=ports, lint=False, flush=flush, warm_up=warm_up)

    def rows() -> Iterator[Any]:
        yield from record_batches(
            dissection,
            columns=columns,
            where=where,
            batch_rows=batch_rows or BATCH_ROWS,
            body_limit=body_limit,
        )
        for error in dissection.errors:
            warnings.warn(CaptureWarning(error), stacklevel=3)

    Filter(where)  # refused now, not with the first batch
    reader = pa.RecordBatchReader.from_batches(schema, rows())
    return reader if batch_rows else reader.read_all()


def read_packets(raw: Any, *, columns: Sequence[str] | None = None, protocols: Any = None) -> Any:
    """The columns of packets of which each is whole in a value of an array.

    Args:
        raw: a `pyarrow.Array` or `pyarrow.ChunkedArray` of bytes.
        columns: names of `PACKET_COLUMNS`; all of them when left out.
        protocols: an array of text, as long: for each value ``session``, ``ping`` or ``remote_read``.
            Where it is null, and for None, a value with the size and the signature of a Ping is one,
            and any other is a packet of a session.

    Returns:
        A `pyarrow.ChunkedArray` of structs with a field for each column; null where there are no bytes.
        Bytes that can't be read have the kind Malformed, and ``error`` tells why.

    Raises:
        ValueError: no such column, or none at all; not as many protocols as values.
    """
    from msmqwire.columnar.packet_array import PacketReader

    names = [column.name for column in PACKET_COLUMNS] if columns is None else columns
    wanted = chosen_columns(names)
    if not wanted or any(column not in PACKET_COLUMNS for column in wanted):
        raise ValueError(f"columns of packets are wanted, not {', '.join(names) or 'none'}")
    if protocols is not None and len(protocols) != len(raw):
        raise ValueError(f"{len(protocols)} protocols for {len(raw)} values")
    made: list[Any] = []
    first = 0
    for chunk in raw.chunks if isinstance(raw, pa.ChunkedArray) else [raw]:
        part = None if protocols is None else protocols.slice(first, len(chunk))
        if isinstance(part, pa.ChunkedArray):
            part = part.combine_chunks()
        first += len(chunk)
        if len(chunk):
            made.extend(PacketReader(chunk, wanted, part, BATCH_ROWS).arrays())
    return pa.chunked_array(made, pa.struct(list(arrow_schema(tuple(wanted)))))
