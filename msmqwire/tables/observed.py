"""Record batches of captures whose packets are seen one by one as well, with one reading of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from msmqwire.analysis.dissection import Dissection, Item, scan
from msmqwire.capture.not_read import warn_of
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import Column
from msmqwire.tables.filters import Filter
from msmqwire.tables.session_rows import SessionRows


def observed_batches(
    dissection: Dissection,
    observe: Callable[[Item | SessionRows], None],
    columns: Sequence[Column],
    where: Filter,
    *,
    batch_rows: int,
    body_limit: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a dissection; each part of it is observed before its rows are yielded.

    Args:
        dissection: the captures; nothing was read of them.
        observe: takes each part; see `Dissection.parts`.
        columns: those of the batches.
        where: a condition on the kind that all rows meet.
        batch_rows: rows of a batch, at most.
        body_limit: bytes of ``body``, at most.
    """
    reader = scan.reader_of(dissection, only_findings=False)
    if reader is None:
        items = filter(where.lets_through, _observed(dissection, observe))
        yield from batches(items, columns, batch_rows=batch_rows, body_limit=body_limit)
        return
    maker = BatchMaker(columns, where, batch_rows, body_limit, dissection.examiner)
    for part in reader.parts_and_batches(maker):
        if isinstance(part, pa.RecordBatch):
            yield part
        else:
            observe(part)
    if dissection.warns:
        warn_of(dissection.frames_not_read, stacklevel=3)


def _observed(items: Iterator[Item], observe: Callable[[Any], None]) -> Iterator[Item]:
    for item in items:
        observe(item)
        yield item
