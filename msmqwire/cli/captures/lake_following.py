"""``msmqwire lake --follow``: commits as captures get more, a line each."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from click import BadParameter

from msmqwire.capture.not_read import listed
from msmqwire.cli.captures.capture_input import report_not_read
from msmqwire.cli.captures.lake_report import commit_json, say_damages
from msmqwire.cli.captures.live import ended_by_signals
from msmqwire.cli.errors import run_reporting_errors, usage
from msmqwire.names.printable import counted, safe

if TYPE_CHECKING:
    from msmqwire.tables.lake import LakeCommit

EVERY_MIN: Final = 0.1
"""Seconds between two looks at least."""
_NAMED_MAX: Final = 3
"""Captures that the first line names."""


def check_options(workers: int, splits: str | None, every: float | None) -> None:
    """Refuse options that do not go with following. Raises BadParameter."""
    if workers > 1:
        raise BadParameter("not with --follow: one process reads what is new", param_hint="--workers")
    if every is not None and not every >= EVERY_MIN:
        raise BadParameter(f"it is {EVERY_MIN} or more", param_hint="--every")
    if splits not in (None, "exact"):
        raise BadParameter("not with --follow: only an exact lake can be followed", param_hint="--splits")


def follow_captures(
    captures: Sequence[str], out: str, *, every: float | None, as_json: bool, **settings: Any
) -> None:
    """Follow captures until a signal; print each commit.

    Args:
        captures, out: as for `msmqwire.tables.lake.follow_lake`, and so are the settings.
        every: seconds between two looks; None for the default.
        as_json: whether each commit is printed as a JSON object.

    Raises:
        BadParameter: a setting is not possible.
        Exit: an error was reported.
        OSError: a capture or the lake can't be read or written.
    """
    from msmqwire.tables.lake.following import EVERY, follow_lake

    seconds = EVERY if every is None else every
    stop = threading.Event()
    totals = _Totals()

    def run() -> None:
        with usage():
            commits = follow_lake(captures, out, every=seconds, stop=stop, notice=_say, **settings)
        more = f" and {len(captures) - _NAMED_MAX:,} more" if len(captures) > _NAMED_MAX else ""
        _say(
            f"{', '.join(map(safe, captures[:_NAMED_MAX]))}{more}: followed into {safe(out)}, with a look"
            f" every {seconds:g} s; Ctrl-C or SIGTERM ends it"
        )
        for commit in commits:
            totals.add(commit)
            say_damages(commit)
            if as_json:
                print(commit_json(commit), flush=True)
            else:
                _say(_line(commit))

    with ended_by_signals(stop.set):
        run_reporting_errors(run)
    _say(f"ended: {counted(totals.rows, 'row')} in {counted(totals.commits, 'commit')}")
    report_not_read(listed(totals.not_read), sys.stderr)


class _Totals:
    """Sums over all commits."""

    def __init__(self) -> None:
        self.commits = self.rows = 0
        self.not_read = Counter[str]()

    def add(self, commit: LakeCommit) -> None:
        self.commits, self.rows = self.commits + 1, self.rows + commit.rows
        self.not_read.update({one.reason: one.frames for one in commit.frames_not_read})


def _line(commit: LakeCommit) -> str:
    """A commit for people."""
    replaced = f", {commit.rows_replaced:,} replaced" if commit.rows_replaced else ""
    return (
        f"version {commit.version}: {counted(commit.rows, 'row')} in {counted(commit.files, 'file')} from"
        f" {counted(commit.captures_read, 'capture')}{replaced}"
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
