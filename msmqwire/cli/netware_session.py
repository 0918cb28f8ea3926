"""What the commands of a client of NetWare queues share: options, the connection, output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.common import dumps, safe
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.readings import named_values
from msmqwire.errors import InvalidValue
from msmqwire.netware.type_names import OBJECT_TYPES, QUEUE_TYPES
from msmqwire.qms.client import FileServer, Queue, connect

T = TypeVar("T")

Connect = Annotated[
    str, typer.Option("--connect", metavar="ADDR:PORT", help="The file server, NCP over TCP; port 524.")
]
As = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="NAME[:TYPE]",
        help=f"Who to log in as, without a password. TYPE is {', '.join(OBJECT_TYPES)} or a number; user.",
    ),
]
QueueName = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE", help=f"NAME[:TYPE]; TYPE is {', '.join(QUEUE_TYPES)} or a number; print."
    ),
]
JobNumber = Annotated[
    int, typer.Argument(metavar="JOB", min=0, max=0xFFFFFFFF, help="Its number, as jobs and submit print it.")
]
Reading = Annotated[
    list[str] | None,
    typer.Option(
        "--reading",
        metavar="NAME=VALUE",
        help="How the server has a field on whose byte order sources disagree; may be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
AsTable = Annotated[bool, typer.Option("--table", help="A table for people; the default on a terminal.")]
_DEFAULT_TYPE: Final = "user"
_DEFAULT_QUEUE_TYPE: Final = "print"


def on_server(
    address: str, identity: str, reading: list[str] | None, work: Callable[[FileServer], Awaitable[T]]
) -> T:
    """Log in to a file server, and do the work there; report errors, and exit with their status."""
    results: list[T] = []
    readings = named_values(reading)

    async def logged_in() -> T:
        name, type_ = named(identity, _DEFAULT_TYPE)
        async with connect(address, name=name, type=type_, readings=readings) as server:
            return await work(server)

    def run() -> None:
        try:
            results.append(asyncio.run(logged_in()))
        except InvalidValue as exc:  # all values are those of the command line
            raise typer.BadParameter(str(exc)) from None

    run_reporting_errors(run)
    return results[0]


def named(text: str, default_type: str) -> tuple[str, str]:
    """Return the name and the type of ``NAME[:TYPE]``."""
    name, _, type_ = text.partition(":")
    return name, type_ or default_type


async def queue_of(server: FileServer, text: str) -> Queue:
    """Return the queue of ``NAME[:TYPE]``."""
    return await server.queue(*named(text, _DEFAULT_QUEUE_TYPE))


def time_of(text: str | None) -> datetime | None:
    """Return the time of an option. Raises InvalidValue."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"{text!r:.100} is not a time as 2026-11-23T08:30:00", path="at") from None


def bytes_of(text: str, path: str) -> bytes:
    """Return the bytes of an option in hexadecimal. Raises InvalidValue."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidValue(f"{text!r:.100} is not hexadecimal", path=path) from None


def wants_table(as_json: bool, as_table: bool) -> bool:
    """Return whether people are to read the output."""
    return as_table or (sys.stdout.isatty() and not as_json)


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], table: bool) -> None:
    """Print objects, each as a line of JSON, or as a table with these keys by their headings."""
    if not table:
        for row in rows:
            print(dumps(row), flush=True)
        return
    shown = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        shown.add_row(*(Text(cell(row[key])) for key in columns.values()))
    Console().print(shown)


def print_one(row: Mapping[str, Any], table: bool) -> None:
    """Print an object as a line of JSON, or each of its keys on a line."""
    if not table:
        print(dumps(row), flush=True)
        return
    for name, value in row.items():
        print(f"{name:28} {cell(value)}")


def cell(value: Any) -> str:
    """Format a value for people."""
    match value:
        case None | "" | []:
            return "-"
        case list():
            return ", ".join(map(cell, value))
        case dict():
            return " ".join(f"{name}={cell(item)}" for name, item in value.items())
    return safe(str(value))
