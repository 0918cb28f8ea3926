"""Output of commands: standard output, or the file that ``-o`` names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, BinaryIO, TextIO

from click import BadParameter
from click.exceptions import Exit

from msmqwire.capture.paths import expand
from msmqwire.capture.stores import StorageOptions, is_url
from msmqwire.cli.common import EX_IOERR, say
from msmqwire.cli.options import Option

Output = Annotated[
    str | None,
    Option("-o", "--output", metavar="FILE", help="File to write to; - is standard output (the default)."),
]


@contextmanager
def output(path: str | None, captures: list[str], storage_options: StorageOptions) -> Iterator[TextIO]:
    """Open the output of a command, text in UTF-8; its ``buffer`` is for bytes.

    Args:
        path: the file; None and ``-`` for standard output.
        captures: files that the command reads: none of them is overwritten.
        storage_options: those of the captures.

    Raises:
        BadParameter: the file is one of the captures, or in a store.
        Exit: it can't be written.
        OSError, UnsupportedStore: a capture can't be looked at.
    """
    if path is None or path == "-":
        yield sys.stdout
        return
    refuse_to_overwrite(path, captures, storage_options)
    try:
        file = open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n")  # noqa: SIM115
    except OSError as exc:
        say(f"{path}: {exc.strerror}")
        raise Exit(EX_IOERR) from None
    with file:
        yield file


def binary(out: TextIO) -> BinaryIO:
    """Return the sink for the bytes of an output."""
    return out.buffer


def refuse_to_overwrite(path: str, captures: list[str], storage_options: StorageOptions) -> None:
    """Raise BadParameter if an output is not a local file, or one of the captures, which would be lost."""
    if is_url(path):
        raise BadParameter("a local file, or - for standard output", param_hint="--output")
    if not os.path.exists(path):
        return
    local = [capture for capture in captures if capture != "-" and not is_url(capture)]
    files = (os.fspath(file) for file in expand(local, storage_options, may_miss=True))
    if any(os.path.exists(file) and os.path.samefile(path, file) for file in files):
        raise BadParameter(f"{path} is one of the captures", param_hint="--output")
