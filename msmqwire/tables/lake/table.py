"""The Delta table of a lake: its files, and the commits that change them.

The log and its commits are `deltalake`'s. Ours is what makes a lake exact: each commit of ours names the
state of the captures by its application transaction, so that of two writers that planned from the same state
one is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.errors import InvalidArgument, LakeDamaged, LakeMismatch, LakeMissing
from msmqwire.extras import importing
from msmqwire.tables.lake.delta_errors import delta_errors
from msmqwire.tables.lake.entries import LOG
from msmqwire.tables.lake.partitions import Keys
from msmqwire.tables.lake.place import Place, refuse_old
from msmqwire.tables.lake.state import LakeState, new_number, parse_state, state_path
from msmqwire.tables.lake.statistics import COLUMNS

if TYPE_CHECKING:
    from deltalake import DeltaTable

_APPLICATION: Final = "msmqwire"
_READER, _WRITER = 1, 2
"""The protocol of our tables; a higher one may have deletion vectors, or other names of columns."""
_CHECKPOINT_COMMITS: Final = 10
_CHECKPOINT_FILES: Final = 1000
_ATTEMPTS: Final = 5
"""How often a state may be gone that a commit has just replaced."""
_OUTSIDE: Final = r"^$|^/|(^|/)\.{1,2}(/|$)|^[A-Za-z][A-Za-z0-9+.-]*:|//|\\|%2[eEfF]|%5[cC]|%00|[\x00-\x1f]"
"""What a path in the log has that leads out of the table."""


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A Parquet file of a lake.

    Attributes:
        path: its path below the folder, with ``/``.
        rows: its rows; None if who wrote it has not counted them.
        size: its bytes.
        keys: the values of its partition.
        stats: its statistics in JSON; empty for one that is in the log already.
    """

    path: str
    rows: int | None
    size: int
    keys: Keys
    stats: str = ""


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Commit:
    """What changes in a lake at once.

    Attributes:
        operation: what was done, for the history.
        state: the state of the captures from then on.
        adds, removes: files.
        details: figures for the history.
        same_rows: whether there are the same rows as before, in other files.
        accepted: is called once it has happened, before anything that may fail: then the files are the
            lake's.
        transactions: numbers of transactions of other applications, by their ids; see
            `LakeTable.transaction`.
    """

    operation: str
    state: LakeState
    adds: Sequence[LakeFile] = ()
    removes: Sequence[LakeFile] = ()
    details: Mapping[str, Any] | None = None
    same_rows: bool = False
    accepted: Callable[[], object] = _nothing
    transactions: Mapping[str, int] = field(default_factory=dict)


class LakeTable:
    """One version of the table of a lake.

    Attributes:
        place: where it is.
        version: its number.
        state_number: the number of its state; None if the table is not ours.
    """

    def __init__(self, place: Place, table: DeltaTable) -> None:
        self.place, self._table = place, table
        with delta_errors(place):
            self.version: int = table.version()
            self.state_number: int | None = table.transaction_version(_APPLICATION)
            protocol = table.protocol()
        if protocol.min_reader_version > _READER or protocol.min_writer_version > _WRITER:
            raise LakeMismatch(
                f"the table has protocol {protocol.min_reader_version}, {protocol.min_writer_version}:"
                " somebody else has changed it: read the captures into another lake",
                file=place.shown,
            )

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows, with the keys of partitions."""
        with delta_errors(self.place):
            return pa.schema(self._table.schema())

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The names of the keys of partitions."""
        with delta_errors(self.place):
            return tuple(self._table.metadata().partition_columns)

    @cached_property
    def actions(self) -> pa.Table:
        """The files as the log has them, with their statistics: a row each."""
        with delta_errors(self.place):
            actions = pa.table(self._table.get_add_actions(flatten=True))
        wrong = actions.filter(pc.match_substring_regex(actions["path"], _OUTSIDE))
        if wrong.num_rows:
            raise LakeDamaged(
                f"the log names a file that is not in the lake, {wrong['path'][0].as_py()!r:.120}: read the"
                " captures into another one",
                file=self.place.shown,
            )
        return actions

    def files(self, mask: Any = None) -> list[LakeFile]:
        """Return the files, or those that a mask over `actions` chooses."""
        actions = self.actions if mask is None else self.actions.filter(pa.array(mask))
        paths, rows, sizes = (actions[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
        keys = [(name, actions[f"partition.{name}"].to_pylist()) for name in self.keys]
        return [
            LakeFile(unquote(path), rows[i], sizes[i], {name: _text(values[i]) for name, values in keys})
            for i, path in enumerate(paths)
        ]

    def bounds(self, column: str) -> tuple[Any, Any]:
        """Return the statistics of a column of numbers: least and greatest value of each file.

        A file without them may have any.
        """
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        return self._bound(f"min.{column}", low), self._bound(f"max.{column}", high)

    def _bound(self, name: str, missing: int) -> Any:
        if name not in self.actions.column_names:
            return np.full(self.actions.num_rows, missing)
        values = self.actions[name]
        return pc.fill_null(values.cast(pa.int64()), missing).to_numpy()

    def without(self, column: str) -> Any:
        """Return which files have no value of a column, by their statistics."""
        name = f"null_count.{column}"
        if name not in self.actions.column_names:
            return np.zeros(self.actions.num_rows, np.bool_)
        all_null = pc.equal(self.actions[name], self.actions["num_records"])
        return pc.fill_null(all_null, False).to_numpy()

    def check_ours(self) -> int:
        """Return the number of the state. Raises LakeMismatch if the table is not ours."""
        if self.state_number is None:
            raise LakeMismatch(
                "the table is somebody else's, not a lake: name another folder", file=self.place.shown
            )
        return self.state_number

    def state(self) -> LakeState:
        """Return the state of the captures.

        Raises:
            LakeMismatch: the table is not ours.
            LakeDamaged: the state is missing or broken.
        """
        path = state_path(self.check_ours())
        try:
            content = self.place.read(path)
        except (FileNotFoundError, NotADirectoryError):
            raise _StateGone(
                "the state of the captures is missing: put it back from a copy, or read them into another"
                " lake",
                file=self.place.full(path),
            ) from None
        return parse_state(content, self.place.full(path))

    def transaction(self, application: str) -> int | None:
        """Return the number of the last transaction of an application that a commit has had, if any."""
        with delta_errors(self.place):
            number: int | None = self._table.transaction_version(application)
            return number

    def add_columns(self, fields: Sequence[pa.Field]) -> LakeTable:
        """Add columns in a commit of its own; return the version with them. Raises `Refused`."""
        from deltalake import Field

        with delta_errors(self.place):
            self._table.alter.add_columns([Field.from_arrow(field) for field in fields])
        return open_table(self.place)

    def commit(self, commit: Commit) -> LakeTable:
        """Change the lake; return the new version.

        Raises:
            Refused: another commit came before; nothing has changed.
            LakeMismatch: the files have columns that the table has not.
            OSError: it can't be written; nothing has changed.
        """

        def write(number: int) -> None:
            from deltalake.transaction import AddAction, CommitProperties, RemoveAction

            now = round(time.time() * 1000)
            self._table.create_write_transaction(
                [
                    *(
                        AddAction(f.path, f.size, f.keys, now, not commit.same_rows, f.stats)
                        for f in commit.adds
                    ),
                    *(
                        RemoveAction(f.path, not commit.same_rows, now, f.size, f.keys)
                        for f in commit.removes
                    ),
                ],
                "append",
                self._table.schema(),
                partition_by=list(self.keys),
                commit_properties=CommitProperties(
                    custom_metadata=_history(commit),
                    max_commit_retries=_ATTEMPTS,
                    app_transactions=_transactions(commit, number),
                ),
                post_commithook_properties=_no_hooks(),
            )

        return _committed(self.place, commit, write, self)

    def unneeded(self, hours: int) -> list[str]:
        """Return the paths of files that this version does not need and that are older than some hours,
        whoever has put them there.
        """
        with delta_errors(self.place):
            return self._table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)

    def checkpoint(self) -> None:
        """Write all that the log says into one file, which readers begin with; what is older than the
        retention of the log, 30 days, goes.
        """
        with delta_errors(self.place):
            self._table.create_checkpoint()
            self._table.cleanup_metadata()


class _StateGone(LakeDamaged):
    """A state is missing: another commit may just have replaced it."""


def table_at(place: Place, version: int | None = None) -> LakeTable:
    """Return a version of a table, the last one by default, whoever has made it.

    Raises:
        InvalidArgument: no version has such a number.
        LakeMissing: there is none.
        LakeMismatch: it needs a newer version, or is an old lake.
        LakeDamaged: its log is broken.
        OSError: it can't be read.
    """
    if version is not None:
        _check_version(version)
    try:
        return _table_at(place, version)
    except LakeMissing:
        refuse_old(place)
        if version is not None:
            _check_has(place, version)
        raise
    except LakeDamaged:
        if version is not None:
            _check_has(place, version)
        raise


def _check_version(version: int) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InvalidArgument(f"a number of 0 or more is wanted, not {version!r:.40}", path="version")


def _check_has(place: Place, version: int) -> None:
    """Raise LakeMissing for a version that a lake has not, and what is wrong with the log itself."""
    last = _table_at(place).version
    if version > last:
        raise LakeMissing(f"there is no version {version}: the last one is {last}", file=place.shown)
    if not place.has(f"{LOG}/{version:020}.json"):
        raise LakeMissing(
            f"version {version} is no longer there: the log has those of the last 30 days", file=place.shown
        )


def table_if_any(place: Place) -> LakeTable | None:
    """Return the last version of a table, also beside an old lake; None if there is none.

    Raises as `table_at` otherwise.
    """
    try:
        return _table_at(place)
    except LakeMissing:
        return None


def _table_at(place: Place, version: int | None = None) -> LakeTable:
    with importing():
        from deltalake import DeltaTable

    with delta_errors(place):
        return LakeTable(place, DeltaTable(place.uri, version, dict(place.options) or None))


def open_table(place: Place) -> LakeTable:
    """Return the last version of the table of a lake. Raises as `table_at`; LakeMismatch for others."""
    table = table_at(place)
    table.check_ours()
    return table


def opened(place: Place) -> tuple[LakeTable, LakeState] | None:
    """Return the last version of a lake with its state; None if there is no lake yet.

    Raises as `open_table` and `LakeTable.state`.
    """
    place.check_files([])  # the library would follow a link, and wait for a pipe
    for attempt in range(_ATTEMPTS):
        try:
            table = open_table(place)
            return table, table.state()
        except LakeMissing:
            return None
        except _StateGone:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.02 * attempt)
    raise AssertionError


def create(place: Place, schema: pa.Schema, keys: Sequence[str], commit: Commit) -> LakeTable:
    """Make the table of a new lake with its first files.

    Args:
        place: where it is.
        schema: the schema of its rows, with the keys of partitions.
        keys: the names of these keys.
        commit: the first commit.

    Raises:
        Refused: another writer has made one.
        OSError: it can't be written.
    """

    def write(number: int) -> None:
        from deltalake import Schema
        from deltalake.transaction import (
            AddAction,
            CommitProperties,
            create_table_with_add_actions,
        )

        now = round(time.time() * 1000)
        create_table_with_add_actions(
            place.uri,
            Schema.from_arrow(delta_schema(schema)),
            [AddAction(f.path, f.size, f.keys, now, True, f.stats) for f in commit.adds],
            "error",
            list(keys),
            configuration={
                "delta.dataSkippingStatsColumns": ",".join(
                    name for name in COLUMNS if name in schema.names and name not in keys
                )
            },
            storage_options=dict(place.options) or None,
            commit_properties=CommitProperties(
                custom_metadata=_history(commit), app_transactions=_transactions(commit, number)
            ),
            post_commithook_properties=_no_hooks(),
        )

    return _committed(place, commit, write, None)


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the types of Delta tables: times have microseconds."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in schema
    ]
    return pa.schema(fields)


def _committed(
    place: Place, commit: Commit, write: Callable[[int], None], before: LakeTable | None
) -> LakeTable:
    """Write the state, then the commit that names it; clean up after it."""
    number = new_number()
    place.check_log()
    place.write(state_path(number), commit.state.dump())
    try:
        with delta_errors(place):
            write(number)
    except BaseException:
        if not _is_there(place, number):
            place.remove([state_path(number)])
            raise
    commit.accepted()
    table = table_at(place)
    first = 0 if before is None else before.version + 1
    place.sync((f"{LOG}/{version:020}.json" for version in range(first, table.version + 1)), contents=True)
    if before is not None and before.state_number is not None:
        place.remove([state_path(before.state_number)])
    changes = len(commit.adds) + len(commit.removes)
    if (table.version + 1) % _CHECKPOINT_COMMITS == 0 or changes > _CHECKPOINT_FILES:
        table.checkpoint()
    version = _version_of(place, number, range(first, table.version + 1))
    return table if version == table.version else table_at(place, version)


def _version_of(place: Place, number: int, versions: range) -> int:
    """Return which version the commit with a state has made; those of other writers are beside it."""
    for version in versions[:-1]:
        if f'"version":{number}'.encode() in place.read(f"{LOG}/{version:020}.json"):
            return version
    return versions[-1]


def _is_there(place: Place, number: int) -> bool:
    """Whether a commit has happened whose writer met an error."""
    table = table_if_any(place)
    return table is not None and table.state_number == number


def _history(commit: Commit) -> dict[str, Any]:
    return {"msmqwire": {"operation": commit.operation, **(commit.details or {})}}


def _transactions(commit: Commit, number: int) -> list[Any]:
    """The transactions of a commit whose state has a number."""
    from deltalake.transaction import Transaction

    numbers = {_APPLICATION: number, **commit.transactions}
    return [Transaction(application, last) for application, last in numbers.items()]


def _no_hooks() -> Any:
    from deltalake.transaction import PostCommitHookProperties

    return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def _text(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, date) else value
