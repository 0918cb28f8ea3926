"""Rows out of a lake: those that meet an expression, and those that are too old."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.errors import InvalidArgument
from msmqwire.names.nearest import unknown_name
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.expression import Expression
from msmqwire.tables.expression_parser import parse_expression
from msmqwire.tables.lake.commits import until_accepted
from msmqwire.tables.lake.deleted_rows import DeletedRows
from msmqwire.tables.lake.lake_change import LakeChange, change_of, committed, lake_there
from msmqwire.tables.lake.place import Place, lake_place
from msmqwire.tables.lake.rewriting import Rewritten, rewritten
from msmqwire.tables.lake.skipping import may_have
from msmqwire.tables.lake.state import Deletion, LakeState
from msmqwire.tables.lake.stored_rows import TIMES, StoredRows
from msmqwire.tables.lake.table import LakeFile, LakeTable

_NS_PER_US: Final = 1000


def delete_from_lake(
    out: str | os.PathLike[str],
    where: str,
    *,
    dry_run: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
    progress: Callable[[int], None] | None = None,
) -> LakeChange:
    """Delete the rows of a lake that meet an expression.

    A row for which it is null stays. Files that can't have such rows, by their statistics, are not read; of
    others the columns of the expression are, and those that have some are written anew. If there are none,
    nothing is committed.

    The lake keeps the expression: rows that meet it do not come back when captures are read again that were
    there, as those that have grown. It holds for all that is read of a capture of the same path from then on,
    its new packets too. Captures that come later are not concerned: delete from them again.

    The rows stay in the files from before until `vacuum_lake` removes these.

    Args:
        out: the folder, or its URL.
        where: an expression over the columns of the lake; see docs/columns.md.
        dry_run: whether rows are only counted.
        storage_options: as for `msmqwire.dissect`.
        progress: gets how many bytes of files more were gone through.

    Raises:
        InvalidArgument: the expression can't be read, or the lake has not one of its columns.
        LakeMissing: the folder is not a lake.
        LakeMismatch: an earlier or later version has made it, or somebody else has changed its columns.
        LakeDamaged: the log, the state or a file is broken.
        UnsupportedStore: the store can't be used.
        OSError: a file can't be read or written.
    """
    expression = parse_expression(where)
    run = _Run("delete", lake_place(out, storage_options), Deletion(where, None, 0), dry_run, progress)
    run.expression = expression
    return run.carry_out()


def retain_lake(
    out: str | os.PathLike[str],
    age: timedelta,
    *,
    now_ns: int | None = None,
    dry_run: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
    progress: Callable[[int], None] | None = None,
) -> LakeChange:
    """Delete the rows of a lake that are older than an age; those without a time stay.

    Files that have only such rows are removed by their statistics, without being read. If there are none,
    nothing is committed. As for `delete_from_lake`, such rows do not come back when captures are read again
    that were there; captures that come later may have old packets, which the next call deletes.

    Args:
        out: the folder, or its URL.
        age: the age from which on rows are deleted.
        now_ns: the time that it counts from, in nanoseconds since 1970; by default the present one.
        dry_run: whether rows are only counted.
        storage_options: as for `msmqwire.dissect`.
        progress: gets how many bytes of files more were gone through.

    Raises:
        InvalidArgument: the age is negative, or the lake has no times.
        LakeMissing: the folder is not a lake.
        LakeMismatch: an earlier or later version has made it, or somebody else has changed its columns.
        LakeDamaged: the log, the state or a file is broken.
        UnsupportedStore: the store can't be used.
        OSError: a file can't be read or written.
    """
    if age < timedelta():
        raise InvalidArgument("an age is not negative", path="age")
    now = time.time_ns() if now_ns is None else now_ns
    before = max(now - age // timedelta(microseconds=1) * _NS_PER_US, np.iinfo(np.int64).min + 1)
    place = lake_place(out, storage_options)
    return _Run("retain", place, Deletion("", before, 0), dry_run, progress).carry_out()


@dataclass
class _Run:
    """A run that deletes rows.

    Attributes:
        operation: its name.
        place: where the lake is.
        deletion: the rows.
        dry_run, progress: as for `delete_from_lake`.
        expression: that of the rows; None if only their time counts.
    """

    operation: str
    place: Place
    deletion: Deletion
    dry_run: bool
    progress: Callable[[int], None] | None
    expression: Expression | None = None
    _known: dict[str, Rewritten | None] = field(default_factory=dict)
    """What was found in files, and written in place of them, by their paths."""

    def carry_out(self) -> LakeChange:
        try:
            return until_accepted(self.place, self._attempt)
        finally:
            self.place.remove(
                found.file.path for found in self._known.values() if found is not None and found.file
            )

    def _attempt(self, found: tuple[LakeTable, LakeState] | None) -> LakeChange:
        table, state = lake_there(self.place, found)
        rows = StoredRows(table, state)
        self._check_columns(rows)
        if not self.dry_run:
            self.place.prepare()
        whole = self._is_whole(table)
        removes = table.files(whole)
        deleted = sum(file.rows or 0 for file in removes)
        adds = list[LakeFile]()
        for file in table.files(self._may_match(table) & ~whole):
            if file.path not in self._known:
                self._known[file.path] = self._without(file, rows)
            if (result := self._known[file.path]) is not None:
                removes.append(file)
                deleted += result.dropped
                adds += [result.file] if result.file is not None else []
        change = change_of(self.operation, table, removes, adds, rows_deleted=deleted, dry_run=self.dry_run)
        if removes and not self.dry_run:
            deletion = replace(self.deletion, commit=state.commit + 1)
            state = replace(state, deletions=_with(state.deletions, deletion))

            def accepted() -> None:
                for file in removes:
                    self._known.pop(file.path, None)

            change = committed(table, state, change, removes, adds, accepted=accepted)
        return change

    def _without(self, file: LakeFile, rows: StoredRows) -> Rewritten | None:
        """Write a file anew without the rows."""
        deleted = DeletedRows(self.deletion)
        names = deleted.columns

        def mask(table: Any) -> Any:
            return deleted.mask(rows.as_captured(table, file, names))

        return rewritten(
            self.place, file, rows.needed(names), mask, form=lambda table: rows.as_written(table, file),
            dry_run=self.dry_run, progress=self.progress,
        )  # fmt: skip

    def _check_columns(self, rows: StoredRows) -> None:
        names = ["time"] if self.expression is None else [one.name for one in self.expression.columns()]
        present = [name for name in rows.columns() if name in BY_NAME]
        for name in names:
            if name not in present:
                path = "age" if self.expression is None else "where"
                raise unknown_name(name, present, "column of the lake", path=path)

    def _may_match(self, table: LakeTable) -> Any:
        """Which files may have such rows."""
        if self.expression is not None:
            return may_have(table, self.expression)
        low, _ = table.bounds(TIMES[0])
        low = np.where(table.without(TIMES[0]), np.iinfo(np.int64).min, low)
        return (low < self.deletion.before_ns) & ~(table.without(TIMES[0]) & table.without(TIMES[1]))

    def _is_whole(self, table: LakeTable) -> Any:
        """Which files have only such rows, by their statistics."""
        actions, name = table.actions, f"null_count.{TIMES[0]}"
        if self.deletion.before_ns is None or name not in actions.column_names:
            return np.zeros(actions.num_rows, np.bool_)
        _, high = table.bounds(TIMES[0])
        counted_rows = pc.is_valid(actions["num_records"]).to_numpy()
        without_nulls = pc.fill_null(pc.equal(actions[name], 0), False).to_numpy()
        return (high < self.deletion.before_ns) & without_nulls & counted_rows


def _with(deletions: Any, new: Deletion) -> list[Deletion]:
    """The deletions of a lake and a new one, without those that it covers."""
    return [*(old for old in deletions if not _covers(new, old)), new]


def _covers(new: Deletion, old: Deletion) -> bool:
    if new.where != old.where or (new.before_ns is None) != (old.before_ns is None):
        return False
    return new.before_ns is None or old.before_ns is None or new.before_ns >= old.before_ns
