"""The common part of the commands of a client of NetWare queues: options, the connection, output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Final, TypeVar

from msmqwire.cli.captures.readings import named_values
from msmqwire.cli.errors import run_reporting_errors, wrong_value
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.passwords import password_of
from msmqwire.errors import InvalidValue
from msmqwire.ncp.type_names import OBJECT_TYPES, QUEUE_TYPES
from msmqwire.netware.client import FileServer, Queue, connect

T = TypeVar("T")

Connect = Annotated[
    str, Option("--connect", metavar="ADDR:PORT", help="The file server, NCP over TCP; port 524.")
]
As = Annotated[
    str,
    Option(
        "--as",
        metavar="NAME[:TYPE]",
        help=f"Name to log in as. TYPE is {', '.join(OBJECT_TYPES)} or a number; user.",
    ),
]
PasswordFile = Annotated[
    str | None,
    Option(
        "--password-file",
        metavar="FILE",
        help="File with its password, without the newline at its end; - to be asked on a terminal, else for "
        "standard input. It is sent in clear.",
    ),
]
QueueName = Annotated[
    str,
    Argument(metavar="QUEUE", help=f"NAME[:TYPE]; TYPE is {', '.join(QUEUE_TYPES)} or a number; print."),
]
JobNumber = Annotated[
    int, Argument(metavar="JOB", min=0, max=0xFFFFFFFF, help="Its number, as jobs and submit print it.")
]
Reading = Annotated[
    list[str] | None,
    Option(
        "--reading",
        metavar="NAME=VALUE",
        help="Byte order that the server has for a field on which sources disagree; may be repeated.",
    ),
]
_DEFAULT_TYPE: Final = "user"
_DEFAULT_QUEUE_TYPE: Final = "print"


def on_server(
    address: str,
    identity: str,
    password_file: str | None,
    reading: list[str] | None,
    work: Callable[[FileServer], Awaitable[T]],
) -> T:
    """Log in to a file server, and do the work there; report errors, and exit with their status."""
    results: list[T] = []
    readings = named_values(reading)

    async def logged_in(password: str) -> T:
        name, type_ = named(identity, _DEFAULT_TYPE)
        async with connect(address, name=name, type=type_, password=password, readings=readings) as server:
            return await work(server)

    def run() -> None:
        password = "" if password_file is None else password_of(password_file)
        try:
            results.append(asyncio.run(logged_in(password)))
        except InvalidValue as exc:  # all values are those of the command line
            raise wrong_value(exc, address="connect", password="password-file") from None

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
