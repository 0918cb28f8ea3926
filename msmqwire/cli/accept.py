"""``msmqwire check --accept``: going on without what a damaged store has lost."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from msmqwire.cli.confirm import confirm
from msmqwire.cli.progress import byte_progress
from msmqwire.names.printable import counted, safe
from msmqwire.service.store.findings import Finding, FolderCheck
from msmqwire.service.store.salvage import keep_copy, replace_by_whole


class Accepted(NamedTuple):
    """The outcome for one store.

    Attributes:
        copy: the path of the copy of the damaged store.
        rows: the number of rows of the new one.
        repaired: what was made again.
    """

    copy: Path
    rows: int
    repaired: list[Finding]


def agree(path: Path, faults: int, *, yes: bool) -> None:
    """Ask whether the loss is accepted. Raises as `confirm` does."""
    if not yes:
        what = counted(faults, "fault")
        confirm(
            f"Keep a copy of {safe(str(path))} and go on without what is lost", f"{path} has {what}",
            "goes on without what is lost",
        )  # fmt: skip


def accept(check: FolderCheck) -> Accepted:
    """Put the rows that are whole in place of a damaged store, of which a copy is kept.

    All findings of the check have been taken, and the caller closes it.
    """
    path = check.store.path
    repair = check.repair()
    copy = keep_copy(path)
    with byte_progress(path.stat().st_size, path.name) as advance:
        rows = replace_by_whole(check.store, repair.changes, advance or (lambda size: None))
    return Accepted(copy, rows, repair.done)
