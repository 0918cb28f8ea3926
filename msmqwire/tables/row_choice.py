"""Conditions on columns that choose rows of a scan before items are made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.arrow.errors import ERRORS
from msmqwire.tables.columns import TUNNEL
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.filters import Condition, Filter
from msmqwire.tables.scanning.row_buffer import ROWS

_OF_FILES: Final = {"file", "frame", *TUNNEL, *ERRORS}
"""Columns whose cells are not in the rows of items in the form that batches take."""
_ROW: Final = "row"


class RowChoice:
    """Chooses rows: those of the compiled scan by their columns, others by their items.

    Args:
        dissection: the captures.
        conditions: on columns.
        accepts: whether an item meets them.
    """

    def __init__(
        self, dissection: Dissection, conditions: Sequence[Condition], accepts: Callable[[Item], bool]
    ) -> None:
        self.accepts = accepts
        self._test = Filter(conditions)
        columns = self._test.columns
        self._knows_all = _OF_FILES.isdisjoint({*self._test.names, *(column.name for column in columns)})
        self._late = BatchMaker(columns, Filter([]), ROWS, None, dissection.examiner) if columns else None

    def of(self, block: RowBlock, items: Sequence[Item], item: Callable[[int], Item]) -> list[int]:
        """Return the numbers of the rows that meet the conditions.

        Args:
            block: the rows.
            items: the items of the generic reader, to which R_EXTRA refers.
            item: returns the item of a row.
        """
        if not self._knows_all:
            return [r for r in range(len(block.rows)) if self.accepts(item(r))]
        numbers = block.rows[:, entry.R_EXTRA]
        of_scan = np.flatnonzero(numbers < 0)
        if self._test.names:
            maker = BatchMaker([], self._test, 1, None)  # for each block, as it remembers addresses
            of_scan = of_scan[maker.meets(block)[of_scan]]
        if self._late is not None and len(of_scan):
            part = block._replace(rows=block.rows[of_scan], field_offsets=block.field_offsets[of_scan])
            of_scan = of_scan[self._rest(self._late, part)]
        others = [r for r in np.flatnonzero(numbers >= 0).tolist() if self.accepts(items[numbers[r]])]
        return sorted([*of_scan.tolist(), *others]) if others else of_scan.tolist()

    def _rest(self, maker: BatchMaker, block: RowBlock) -> Any:
        """Return the places of the rows that meet the conditions on fields."""
        found, before = [np.zeros(0, np.int64)], 0
        for batch in [*maker.add(block, ()), *maker.finish()]:
            rows = pa.array(np.arange(before, before + batch.num_rows))
            before += batch.num_rows
            found.append(self._test.rest(batch.append_column(_ROW, rows)).column(_ROW).to_numpy())
        return np.concatenate(found)
