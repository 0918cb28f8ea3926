"""The command line: ``msmqwire parse | build | dissect | lint``."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from msmqwire import __version__
from msmqwire.cli import build, dissect, lint, parse
from msmqwire.cli.common import EX_SOFTWARE, EX_USAGE, say

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Reads, writes and judges packets of the Microsoft Message Queuing (MSMQ) protocols.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"msmqwire {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print name and version.")
    ] = False,
) -> None:
    """Options of all commands."""


app.command("parse")(parse.command)
app.command("build")(build.command)
app.command("dissect")(dissect.command)
app.command("lint")(lint.command)


def main() -> NoReturn:
    """Runs the command line; ends with the exit status of contract section 1."""
    try:
        app(prog_name="msmqwire", standalone_mode=True)
    except BrokenPipeError:
        # The reader of a pipe has gone: nothing to say, and nothing to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as exc:
        traceback.print_exc()
        say({"error": f"a fault of msmqwire itself: {exc!r}", "path": "", "offset": None})
        sys.exit(EX_SOFTWARE)
    sys.exit(EX_USAGE)
