"""The command line: packets, captures, a queue manager, and commands that send and receive messages."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from msmqwire import __version__
from msmqwire.cli.commands import RootGroup
from msmqwire.cli.common import EX_IOERR, EX_SOFTWARE, EX_USAGE, say

_VERBOSE = "msmqwire.verbose"


class _Root(RootGroup):
    """The whole command line: its wrong usage is reported as all other errors are."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; exit with its status, unless the caller wants its result."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            status = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as exc:
            from msmqwire.cli.wrong_usage import report

            report(exc)
            sys.exit(exc.exit_code)
        except click.Abort:  # Ctrl-C
            print("Aborted!", file=sys.stderr)
            sys.exit(1)
        sys.exit(status if isinstance(status, int) else 0)


app = _Root(
    "msmqwire",
    "Reads, writes, judges and speaks the Microsoft Message Queuing (MSMQ) protocols.",
    params=[
        click.Option(
            ["--verbose"],
            is_flag=True,
            is_eager=True,  # before --version, wherever it stands
            expose_value=False,
            callback=lambda context, _option, requested: context.meta.update({_VERBOSE: requested}),
            help="With --version: also the decoder of captures to columns.",
        ),
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            callback=lambda context, _option, requested: _print_version(context) if requested else None,
            help="Print name and version.",
        ),
    ],
)


def _print_version(context: click.Context) -> NoReturn:
    print(f"msmqwire {__version__}")
    if context.meta[_VERBOSE]:
        print(f"columns: {_engine()}")
    context.exit()


def _engine() -> str:
    """Return the decoder of captures to columns, or the extra that is missing."""
    from msmqwire.extras import MissingExtra, importing

    try:
        with importing():
            from msmqwire.tables.compiled.engine import chosen

            return chosen().about
    except MissingExtra as exc:
        return str(exc)


def main() -> NoReturn:
    """Run the command line; exit with its status."""
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
        # The reader of a pipe has closed it.
        _close_output()
        sys.exit(1)
    except OSError as exc:
        _close_output()
        why = exc.strerror or str(exc)
        say(why if exc.filename is None else f"{exc.filename}: {why}")
        sys.exit(EX_IOERR)
    except Exception as exc:
        _report_missing_extra(exc)
        traceback.print_exc()
        say(f"a fault of msmqwire itself: {exc!r}")
        sys.exit(EX_SOFTWARE)
    sys.exit(0)


def _report_missing_extra(exc: Exception) -> None:
    """Exit if an exception is an import that failed for want of an extra, and say how to install it."""
    from msmqwire.extras import missing

    found = missing(exc) if isinstance(exc, ModuleNotFoundError) else None
    if found is not None:
        say(str(found))
        sys.exit(EX_USAGE)


def _close_output() -> None:
    """Redirect standard output to the null device, so that flushing it can't fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
