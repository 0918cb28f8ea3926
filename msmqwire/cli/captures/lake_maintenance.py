"""The maintenance of a lake by ``msmqwire lake``: files merged and removed, rows deleted, the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import click
from click import BadParameter, UsageError
from click.core import ParameterSource

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.cli.captures import filters
from msmqwire.cli.captures.capture_input import no_input, storage_options_of
from msmqwire.cli.common import say
from msmqwire.cli.errors import run_reporting_errors, usage
from msmqwire.cli.options import Option
from msmqwire.cli.progress import byte_progress, waiting_shown
from msmqwire.errors import UnsupportedStore
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted, safe

if TYPE_CHECKING:
    from msmqwire.tables.lake import LakeChange, LakeVersion

Compact = Annotated[
    bool,
    Option(
        "--compact",
        help="Merge small files of the lake, and those whose times overlap: rows are sorted by time then.",
    ),
]
TargetSize = Annotated[
    int | None,
    Option("--target-size", min=1, metavar="BYTES", help="Size of files of --compact, by default 134217728."),
]
DeleteWhere = Annotated[
    str | None,
    Option(
        "--delete-where",
        metavar="EXPRESSION",
        help="Delete the rows for which an expression over the columns is true, and leave them out when "
        "their captures are read again.",
    ),
]
Retain = Annotated[
    str | None,
    Option("--retain", metavar="AGE", help="Delete the rows that are older, as 30d or 12h."),
]
Vacuum = Annotated[
    str | None,
    Option(
        "--vacuum",
        metavar="AGE",
        help="Remove files that no version has needed for this time, as 7d, and those that killed runs have "
        "left. It must be longer than the longest run of any writer or reader.",
    ),
]
History = Annotated[bool, Option("--history", help="Show the versions of the lake, the last one first.")]
Upgrade = Annotated[
    bool, Option("--upgrade", help="Make a Delta table of a lake of an earlier version; its files stay.")
]
DryRun = Annotated[bool, Option("--dry-run", help="Only say what would be done.")]

_AGE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_COMMON: Final = ("out", "as_json", "storage_option")
"""The parameters that all kinds of maintenance take."""
_NO_DRY_RUN: Final = ("history",)
_COLUMNS: Final = ("version", "time", "operation", "figures")


@dataclass(frozen=True)
class Maintenance:
    """The options of maintenance, as given.

    Attributes:
        options: by the names of the parameters, of those that are given; `target_size` and `dry_run` apart.
        target_size: that of ``--compact``.
        dry_run: whether nothing is to be changed.
    """

    options: Mapping[str, str | bool]
    target_size: int | None
    dry_run: bool

    @property
    def is_wanted(self) -> bool:
        """Whether there is something to do."""
        self._check_alone()
        return bool(self.options)

    def _check_alone(self) -> None:
        """Refuse options that belong to another one. Raises BadParameter."""
        if self.target_size is not None and "compact" not in self.options:
            raise BadParameter("goes with --compact", param_hint="--target-size")
        if self.dry_run and not set(self.options) - set(_NO_DRY_RUN):
            raise BadParameter(
                "goes with --compact, --delete-where, --retain, --vacuum or --upgrade", param_hint="--dry-run"
            )

    def carry_out(self, out: str, storage_option: list[str] | None, *, as_json: bool) -> None:
        """Do it, and print the result. Raises BadParameter, UsageError and click's Exit."""
        (name, value), *more = self.options.items()
        _check_others(name, more)
        if name != "history" and value == "":
            raise BadParameter("it is empty", param_hint=_option(name))
        try:
            storage_options = storage_options_of(storage_option)
        except UnsupportedStore as exc:
            raise no_input(exc) from None
        if name == "history":
            run_reporting_errors(lambda: _show_history(out, storage_options, as_json=as_json))
            return
        if name == "upgrade":
            run_reporting_errors(lambda: _upgrade(out, dry_run=self.dry_run, as_json=as_json))
            return
        function = self._function(name, str(value))

        def run() -> None:
            with usage(_option(name)):
                result = function(out, dry_run=self.dry_run, storage_options=storage_options)
            print(dumps(result.to_json()) if as_json else _sentence(result))

        run_reporting_errors(run)

    def _function(self, name: str, value: str) -> Callable[..., LakeChange]:
        """Return what does it."""
        from msmqwire.tables import lake

        if name == "compact":
            size = lake.TARGET_SIZE if self.target_size is None else self.target_size
            return _with_progress(lambda out, **more: lake.compact_lake(out, target_size=size, **more))
        if name == "delete_where":
            filters.expression_of(value, "--delete-where")
            return _with_progress(lambda out, **more: lake.delete_from_lake(out, value, **more))
        age = age_of(value, _option(name))
        if name == "retain":
            return _with_progress(lambda out, **more: lake.retain_lake(out, age, **more))

        def vacuum(out: str, **more: Any) -> LakeChange:
            with waiting_shown(lambda: "looking for files that no version needs"):
                return lake.vacuum_lake(out, age, **more)

        return vacuum


def given(**options: str | bool | None) -> dict[str, str | bool]:
    """Return the options of maintenance that are given: a flag that is set, or a text."""
    return {name: value for name, value in options.items() if value not in (None, False)}


def age_of(text: str, option: str) -> timedelta:
    """Return the age that a text names, as 30d; 0 needs no unit. Raises BadParameter."""
    match = _AGE.fullmatch("0s" if text.strip() == "0" else text.strip().lower())
    if match is None:
        raise BadParameter(
            f"{text!r:.80} is not an age: a number with s, m, h, d or w, as 30d or 12h", param_hint=option
        )
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        raise BadParameter(f"{text!r:.80} is too long an age", param_hint=option) from None


def captures_of(context: click.Context) -> click.Argument:
    """Return the argument of the captures."""
    return next(one for one in context.command.params if isinstance(one, click.Argument))


def _with_progress(function: Callable[..., LakeChange]) -> Callable[..., LakeChange]:
    def run(out: str, **more: Any) -> LakeChange:
        with byte_progress(None) as progress:
            return function(out, progress=progress, **more)

    return run


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check_others(name: str, more: list[tuple[str, str | bool]]) -> None:
    """Refuse captures, their options, and a second kind of maintenance. Raises UsageError."""
    if more:
        other = _option(more[0][0])
        raise UsageError(f"{_option(name)} and {other} are two commands: give one of them at a time")
    context = click.get_current_context()
    taken = {*_COMMON, name, "dry_run", *(["target_size"] if name == "compact" else [])}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in taken or source is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(parameter, click.Argument):
            if context.params.get(parameter.name or ""):
                raise UsageError(f"{_option(name)} takes no captures: name the lake alone, by --out")
        else:
            raise BadParameter(
                f"it is for captures: leave it out with {_option(name)}",
                param_hint=max(parameter.opts, key=len),
            )


def _sentence(change: LakeChange) -> str:
    """Return the result for people."""
    would = "would be " if change.dry_run else ""
    removed = f"{counted(change.files_removed, 'file')} of {counted(change.bytes_removed, 'byte')}"
    if not change.files_removed:
        return f"nothing to do: the lake stays at version {change.version:,}"
    if change.operation == "vacuum":
        return f"{removed} {would}removed"
    if change.dry_run and change.operation == "compact":
        return f"{removed} would be merged"
    at = "" if change.dry_run else f": version {change.version:,}"
    added = f"{counted(change.files_added, 'file')} of {counted(change.bytes_added, 'byte')}"
    if change.operation == "compact":
        return f"{removed} merged into {added}{at}"
    rows = f"{counted(change.rows_deleted, 'row')} {would}deleted"
    return f"{rows} from {removed}" if change.dry_run else f"{rows}, {removed} replaced by {added}{at}"


def _upgrade(out: str, *, dry_run: bool, as_json: bool) -> None:
    from msmqwire.tables.lake import upgrade_lake

    with waiting_shown(lambda: "reading the files of the lake"):
        result = upgrade_lake(out, dry_run=dry_run)
    if as_json:
        print(dumps(result.to_json()))
        return
    made = f"a Delta table of {counted(result.files, 'file')} with {counted(result.rows, 'row')}"
    if not result.upgraded:
        print(f"nothing to do: the lake is a Delta table, at version {result.version:,}")
    elif dry_run:
        print(f"{made} would be made")
    else:
        print(f"{made} was made: version {result.version:,}")
    for path in result.left:
        say(f"{safe(path)}: not of a lake, so that its folder stays: move it away, and repeat --upgrade")


def _show_history(out: str, storage_options: StorageOptions = NO_OPTIONS, *, as_json: bool) -> None:
    from msmqwire.tables.lake import lake_history

    with waiting_shown(lambda: "reading the log of the lake"):
        versions = lake_history(out, storage_options=storage_options)
    if as_json:
        print(dumps([version.to_json() for version in versions]))
        return
    rows = [_COLUMNS, *map(_row, versions)]
    widths = [max(len(row[number]) for row in rows) for number in range(len(_COLUMNS))]
    for number, *texts, figures in rows:
        cells = [number.rjust(widths[0]), *(t.ljust(w) for t, w in zip(texts, widths[1:], strict=False))]
        print("  ".join([*cells, figures]).rstrip())


def _row(version: LakeVersion) -> tuple[str, ...]:
    figures = ", ".join(
        f"{name.replace('_', ' ')} {value:,}"
        for name, value in version.figures.items()
        if isinstance(value, int) and value
    )
    time = version.time.strftime("%Y-%m-%d %H:%M:%S")
    return (str(version.version), time, safe(version.operation), safe(figures))
