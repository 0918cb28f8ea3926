"""``msmqwire lake``: captures into a folder of Parquet files that grows with them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from click import BadParameter, MissingParameter, get_current_context
from click.exceptions import Exit

from msmqwire.capture.folders import all_captures_of
from msmqwire.capture.paths import local_path
from msmqwire.capture.stores import is_url
from msmqwire.cli.captures import filters
from msmqwire.cli.captures.capture_input import (
    AnyStoredCaptures,
    Cert,
    Key,
    MessageSecurity,
    StorageOption,
    no_input,
    report_not_read,
    say_passed_over,
    storage_options_of,
)
from msmqwire.cli.captures.filter_options import Columns, From, Kind, Port, To, column_names, say_no_match
from msmqwire.cli.captures.lake_maintenance import (
    Compact,
    DeleteWhere,
    DryRun,
    History,
    Maintenance,
    Retain,
    TargetSize,
    Upgrade,
    Vacuum,
    captures_of,
    given,
)
from msmqwire.cli.captures.lake_report import commit_json, say_damages
from msmqwire.cli.captures.readings import CaptureReading
from msmqwire.cli.common import EX_DATAERR, NoInput
from msmqwire.cli.errors import run_reporting_errors, usage
from msmqwire.cli.options import Option
from msmqwire.cli.progress import byte_progress
from msmqwire.errors import CaptureWarning, UnsupportedStore
from msmqwire.names.printable import counted

if TYPE_CHECKING:
    from msmqwire.tables.lake import LakeCommit


def command(
    out: Annotated[str, Option("--out", metavar="DIR", help="The folder; created if missing.")],
    captures: AnyStoredCaptures = None,
    by: Annotated[
        str | None,
        Option("--by", metavar="COLUMN", help="Partition by this column, too: kind or destination."),
    ] = None,
    workers: Annotated[int, Option("--workers", min=1, help="Processes that decode and write.")] = 1,
    columns: Columns = None,
    findings: Annotated[
        bool,
        Option("--findings", help="Judge the packets: the column finding_ids. All captures in one process."),
    ] = False,
    body_limit: Annotated[
        int | None,
        Option("--body-limit", min=0, metavar="BYTES", help="Largest number of bytes kept of a body."),
    ] = None,
    start: From = None,
    end: To = None,
    kind: Kind = None,
    port: Port = None,
    splits: Annotated[
        str | None,
        Option(
            "--splits",
            metavar="HOW",
            help="Method to divide captures between processes: walked, searched or exact. By default that of "
            "the lake, and walked for a new one.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        Option(
            "--follow", help="Go on adding what is new, until Ctrl-C or SIGTERM; a new lake is exact then."
        ),
    ] = False,
    every: Annotated[
        float | None,
        Option("--every", metavar="SECONDS", help="Time between two looks of --follow, 10 by default."),
    ] = None,
    compact: Compact = False,
    target_size: TargetSize = None,
    delete_where: DeleteWhere = None,
    retain: Retain = None,
    vacuum: Vacuum = None,
    history: History = False,
    upgrade: Upgrade = False,
    dry_run: DryRun = False,
    storage_option: StorageOption = None,
    key: Key = None,
    cert: Cert = None,
    reading: CaptureReading = None,
    as_json: Annotated[
        bool, Option("--json", help="Print the result of the run, or of each commit, as one JSON object.")
    ] = False,
) -> None:
    """Decode captures into a lake: Parquet files by date, to which later runs add new packets.

    Captures that are in the lake are not read again; of those that have grown, only the end is read. Give all
    captures that belong together, in their order, each time, as by a folder or a pattern. The rows of a run
    are in the lake once it ends, all of them or, if it is killed, none.

    With --splits exact the rows are those of one reader of all captures. It takes one pass over all of them
    before the first row.

    With --follow the captures are looked at again and again: what is new in them is committed as soon as it
    is complete. The lake has the rows of one reader of all captures. Ctrl-C or SIGTERM ends it with status 0.

    A lake that is there is maintained by --compact, --delete-where, --retain and --vacuum, one at a time and
    without captures; --history shows its versions, --upgrade makes a Delta table of a lake of an earlier
    version, and --dry-run shows what would be done.

    Ends with status 65 if a file is cut off or damaged; the packets before the damage are in the lake.
    """
    maintenance = Maintenance(
        given(
            compact=compact, delete_where=delete_where, retain=retain, vacuum=vacuum, history=history,
            upgrade=upgrade,
        ),
        target_size,
        dry_run,
    )  # fmt: skip
    if maintenance.is_wanted:
        maintenance.carry_out(out, storage_option, as_json=as_json)
        raise Exit(0)
    if not captures:
        context = get_current_context()
        raise MissingParameter(ctx=context, param=captures_of(context))
    with usage():
        where = filters.by_time(start, end) + ([filters.by_kind(kind)] if kind else [])
    names = column_names(columns)
    if every is not None and not follow:
        raise BadParameter("goes with --follow", param_hint="--every")
    if follow:
        from msmqwire.cli.captures.lake_following import check_options, follow_captures

        check_options(workers, splits, every)
        try:
            storage_options = storage_options_of(storage_option)
        except UnsupportedStore as exc:
            raise no_input(exc) from None
        with _errors_of_captures(out):
            follow_captures(
                captures,
                out,
                every=every,
                as_json=as_json,
                by=by,
                columns=names,
                findings=findings,
                where=where,
                ports=port or (),
                body_limit=body_limit,
                storage_options=storage_options,
                **MessageSecurity(key, cert, reading).arguments(),
            )
        raise Exit(0)
    try:
        storage_options = storage_options_of(storage_option)
        files = all_captures_of(captures, say_passed_over, storage_options)
        if not files:
            raise NoInput(f"{captures[0]}: a folder without captures")
    except (NoInput, OSError, UnsupportedStore) as exc:
        raise no_input(exc) from None
    arguments = MessageSecurity(key, cert, reading).arguments()

    def run() -> LakeCommit:
        from msmqwire.tables.lake import write_lake

        with usage(), byte_progress(None) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", CaptureWarning)  # the result names everything that was not read
            return write_lake(
                files,
                out,
                by=by,  # type: ignore[arg-type]  # checked there
                columns=names,
                findings=findings,
                where=where,
                ports=port or (),
                body_limit=body_limit,
                workers=workers,
                splits=splits,  # type: ignore[arg-type]  # checked there
                storage_options=storage_options,
                progress=progress,
                planned=progress,
                **arguments,
            )

    results: list[LakeCommit] = []
    with _errors_of_captures(out):
        run_reporting_errors(lambda: results.append(run()))
    if where and results[0].captures_read and not results[0].rows:
        say_no_match(sys.stderr, "packet", results[0].captures_read, "capture")
    raise Exit(_report(results[0], as_json=as_json))


@contextmanager
def _errors_of_captures(out: str) -> Iterator[None]:
    """Report an error about a capture as missing input; one about the lake is an output error."""
    try:
        yield
    except OSError as exc:
        if _is_of_lake(exc.filename, out):
            raise
        raise no_input(exc) from None


def _is_of_lake(file: str | None, out: str) -> bool:
    """Whether an error is about the lake, and not about its captures."""
    if file is None:
        return True
    if is_url(file) or is_url(out):
        return is_url(out) and (file == out or file.startswith(f"{out.rstrip('/')}/"))
    path, lake = os.path.realpath(file), os.path.realpath(local_path(out))
    return os.path.commonpath([path, lake]) in (path, lake)


def _report(commit: LakeCommit, *, as_json: bool) -> int:
    """Print the result; return the exit status."""
    say_damages(commit)
    if as_json:
        print(commit_json(commit))
    else:
        replaced = f", {commit.rows_replaced:,} replaced" if commit.rows_replaced else ""
        print(
            f"{counted(commit.captures_read, 'capture')} read, {commit.captures_unchanged:,} unchanged:"
            f" {counted(commit.rows, 'row')} in {counted(commit.files, 'file')}{replaced}",
            file=sys.stderr,
        )
    report_not_read(commit.frames_not_read, sys.stderr)
    return EX_DATAERR if commit.damages else 0
