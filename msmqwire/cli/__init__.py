"""The command line: packets and captures, and a queue manager with what sends to it and reads from it."""

from __future__ import annotations

import os
import sys
import traceback
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from msmqwire import __version__
from msmqwire.cli import build, dissect, lint, parse, queue, reading, send, serve
from msmqwire.cli.common import EX_IOERR, EX_SOFTWARE, say

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Reads, writes, judges and speaks the Microsoft Message Queuing (MSMQ) protocols.",
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
app.command("serve")(serve.command)
app.add_typer(queue.app, name="queue")
app.command("send")(send.command)
app.command("receive")(reading.receive)
app.command("peek")(reading.peek)
app.command("move")(reading.move)


def main() -> NoReturn:
    """Runs the command line; ends with the exit status of contract section 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a label may be in any script
    try:
        try:
            app(prog_name="msmqwire")
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has gone: nothing to say, and nothing to say it to.
        _close_output()
        sys.exit(1)
    except OSError as exc:
        _close_output()
        say({"error": exc.strerror or str(exc), "path": "", "offset": None})
        sys.exit(EX_IOERR)
    except Exception as exc:
        traceback.print_exc()
        say({"error": f"a fault of msmqwire itself: {exc!r}", "path": "", "offset": None})
        sys.exit(EX_SOFTWARE)
    sys.exit(0)


def _close_output() -> None:
    """Standard output takes no more: what is left for it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
