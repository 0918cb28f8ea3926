"""What the commands share that administer the bindery and queues of a folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.common import dumps, safe
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.errors import InvalidValue, NcpRefused
from msmqwire.netware.constants import CompletionCode
from msmqwire.qm.runtime.local import Local
from msmqwire.qms.runtime.administration import attach

Data = Annotated[Path, typer.Option(help="Folder of the queue service, with or without a server.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
_WRONG: Final = (
    CompletionCode.INVALID_NAME,
    CompletionCode.WILD_CARD_NOT_ALLOWED,
    CompletionCode.INVALID_PATH,
)
"""What is wrong usage of a command, since it names what can't be."""


def in_folder(data: Path, work: Callable[[Local], None], *, create: bool = False) -> None:
    """Do work with the queue service of a folder; report an error, and exit with its status."""

    def run() -> None:
        with attach(data, create=create) as local:
            try:
                work(local)
            except InvalidValue as exc:  # all values are those of the command line
                raise typer.BadParameter(str(exc)) from None
            except NcpRefused as exc:
                if exc.code in _WRONG:
                    raise typer.BadParameter(exc.why) from None
                raise

    run_reporting_errors(run)


def wants_json(as_json: bool) -> bool:
    """Return whether a program is to read the output."""
    return as_json or not sys.stdout.isatty()


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], as_json: bool) -> None:
    """Print objects, each as a line of JSON, or as a table with these keys by their headings."""
    if wants_json(as_json):
        for row in rows:
            print(dumps(row))
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell(row[key])) for key in columns.values()))
    Console().print(table)


def print_one(row: Mapping[str, Any], as_json: bool) -> None:
    """Print an object as a line of JSON, or each of its keys on a line."""
    if wants_json(as_json):
        print(dumps(row))
        return
    for name, value in row.items():
        print(f"{name:12} {cell(value)}")


def cell(value: Any) -> str:
    """Format a value for people."""
    match value:
        case bool():
            return "yes" if value else "no"
        case None | "" | [] | {}:
            return "-"
        case list():
            return ", ".join(map(cell, value))
        case dict():
            return "; ".join(f"{safe(name)}: {cell(item)}" for name, item in value.items())
    return safe(str(value))
