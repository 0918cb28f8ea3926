"""Whole captures to record batches without compiled code: packet by packet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from msmqwire.analysis.dissection import Dissection
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import Column, arrow_schema
from msmqwire.tables.compiled.engine import slow_reading
from msmqwire.tables.filters import Filter


def portable_batches(
    dissection: Dissection,
    columns: Sequence[Column],
    where: Filter,
    batch_rows: int,
    body_limit: int | None,
) -> Iterator[Any]:
    """Yield the record batches of a dissection: the rows of `msmqwire.tables.decoder.Decoder`.

    Args:
        dissection: the captures to read.
        columns: those of the batches.
        where: the conditions that all rows meet.
        batch_rows: rows of a batch, at most.
        body_limit: bytes of ``body``, at most; None for all.
    """
    decoded = list(dict.fromkeys([*columns, *where.columns]))
    schema = arrow_schema(tuple(columns))
    dissection.warns = False  # as with compiled code: who reads the batches reports the frames not read
    items = (item for item in dissection if where.lets_through(item))
    for batch in batches(items, decoded, batch_rows=batch_rows, body_limit=body_limit):
        slow_reading.add(batch.num_rows)
        rows = where.rest(batch)
        if not rows.num_rows:
            continue
        if not schema:
            yield rows.select([])
            continue
        yield pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema)
