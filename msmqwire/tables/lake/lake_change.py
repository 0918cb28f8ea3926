"""The result of the maintenance of a lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any, Final

from msmqwire.errors import LakeMissing
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.state import LakeState
from msmqwire.tables.lake.table import Commit, LakeFile, LakeTable

_FIGURES: Final = ("rows_deleted", "files_removed", "files_added", "bytes_removed", "bytes_added")


@dataclass(frozen=True, slots=True)
class LakeChange:
    """What the maintenance of a lake has changed; with ``dry_run`` what it would change.

    Attributes:
        operation: what was done, as the history has it.
        version: the version of the lake afterwards: that from before if there was nothing to do.
        dry_run: whether it was only looked at.
        rows_deleted: rows that are gone.
        files_removed, bytes_removed: files that are no longer in the lake, or no longer there.
        files_added, bytes_added: files in place of them; 0 where a dry run does not know.
    """

    operation: str
    version: int
    dry_run: bool = False
    rows_deleted: int = 0
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values by name."""
        return asdict(self)

    def figures(self) -> Mapping[str, int]:
        """Return the figures, for the history of the lake."""
        return {name: getattr(self, name) for name in _FIGURES}


def lake_there(place: Place, found: tuple[LakeTable, LakeState] | None) -> tuple[LakeTable, LakeState]:
    """Return a lake that was found. Raises LakeMissing if it was not."""
    if found is None:
        raise LakeMissing(
            f"there is no lake: msmqwire lake CAPTURES --out {quote(place.shown)} makes one", file=place.shown
        )
    return found


def change_of(
    operation: str,
    table: LakeTable,
    removes: Sequence[LakeFile],
    adds: Sequence[LakeFile],
    *,
    rows_deleted: int = 0,
    dry_run: bool = False,
) -> LakeChange:
    """Return what a change of files is, before it is committed."""
    return LakeChange(
        operation,
        table.version,
        dry_run,
        rows_deleted,
        len(removes),
        len(adds),
        sum(file.size for file in removes),
        sum(file.size for file in adds),
    )


def committed(
    table: LakeTable,
    state: LakeState,
    change: LakeChange,
    removes: Sequence[LakeFile],
    adds: Sequence[LakeFile],
    *,
    accepted: Callable[[], object],
    same_rows: bool = False,
) -> LakeChange:
    """Commit a change of files, which the state then no longer names; return it with its version.

    Raises as `LakeTable.commit`.
    """
    gone = {file.path for file in removes}
    parts = [
        replace(part, files=tuple(path for path in part.files if path not in gone)) if part.files else part
        for part in state.parts
    ]
    new_state = replace(state, commit=state.commit + 1, parts=parts)
    figures = change.figures()
    done = table.commit(Commit(change.operation, new_state, adds, removes, figures, same_rows, accepted))
    return replace(change, version=done.version)
