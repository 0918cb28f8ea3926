"""Rows that were deleted from a lake: found in its files, and left out when their captures are read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.tables.expression import Expression
from msmqwire.tables.expression_parser import parse_expression
from msmqwire.tables.lake.state import Deletion, LakeState


@dataclass(frozen=True)
class DeletedRows:
    """Rows that were deleted.

    Attributes:
        deletion: the rows that match.
        captures: only rows of these captures, by path; None for all.
    """

    deletion: Deletion
    captures: frozenset[str] | None = None

    @cached_property
    def _expression(self) -> Expression | None:
        return parse_expression(self.deletion.where) if self.deletion.where else None

    @cached_property
    def _paths(self) -> pa.Array:
        return pa.array(sorted(self.captures or ()), pa.string())

    @property
    def columns(self) -> list[str]:
        """The columns that `mask` needs."""
        names = [column.name for column in self._expression.columns()] if self._expression else []
        times = [] if self.deletion.before_ns is None else ["time"]
        return [*names, *times, *([] if self.captures is None else ["file"])]

    def mask(self, batch: pa.RecordBatch) -> Any:
        """Return which rows match; null does not. Times of the batch have nanoseconds."""
        masks = []
        if self._expression is not None:
            masks.append(self._expression.mask(batch))
        if self.deletion.before_ns is not None:
            times = batch.column("time")
            masks.append(pc.less(times, pa.scalar(self.deletion.before_ns, times.type)))
        if self.captures is not None:
            masks.append(pc.is_in(batch.column("file"), self._paths))
        found = pc.fill_null(masks[0], False)
        for mask in masks[1:]:
            found = pc.and_(found, pc.fill_null(mask, False))
        return found


def deleted_again(state: LakeState) -> tuple[DeletedRows, ...]:
    """Return the rows that reading the captures of a lake again must not bring back."""
    return tuple(
        DeletedRows(
            deletion,
            frozenset(entry.path for entry in state.captures.values() if entry.since <= deletion.commit),
        )
        for deletion in state.deletions
    )


def without_deleted(batch: pa.RecordBatch, deleted: Sequence[DeletedRows]) -> pa.RecordBatch:
    """Return a batch without rows that were deleted."""
    for rows in deleted:
        batch = batch.filter(pc.invert(rows.mask(batch)))
    return batch
