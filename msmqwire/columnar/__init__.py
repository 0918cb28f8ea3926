"""Captures as columns: Arrow tables with one row for each packet, malformed packet or skipped stretch."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, overload

import pyarrow as pa

from msmqwire.columnar.columns import BY_NAME, COLUMNS, Column, arrow_schema
from msmqwire.columnar.filters import Condition, Filter
from msmqwire.dissection import Dissection, Source, dissect
from msmqwire.errors import CaptureError

__all__ = [
    "COLUMNS",
    "CaptureWarning",
    "Column",
    "Condition",
    "arrow_schema",
    "read_capture",
    "record_batches",
]

BATCH_ROWS = 65_536


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
    from msmqwire.columnar.batch import BatchMaker
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
