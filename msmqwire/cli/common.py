"""Shared by the commands: exit statuses, error output, input."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from io import BufferedReader
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

if TYPE_CHECKING:
    from msmqwire.errors import LocatedError

EX_USAGE: Final = 2
EX_DATAERR: Final = 65
EX_NOINPUT: Final = 66
EX_UNAVAILABLE: Final = 69
EX_SOFTWARE: Final = 70
EX_IOERR: Final = 74
EX_TEMPFAIL: Final = 75
"""Whether it has succeeded is not known."""


def dumps(data: Any, *, indent: int | None = None) -> str:
    """Return JSON without control characters, including DEL."""
    return json.dumps(data, indent=indent).replace("\x7f", "\\u007f")


def say(
    error: LocatedError | dict[str, Any] | str, err: TextIO | None = None, *, offset: int | None = None
) -> None:
    """Print an error as one JSON object, by default to standard error; `offset` is for a plain message."""
    if isinstance(error, str):
        data: dict[str, Any] = {"error": error, "path": "", "offset": offset}
    else:
        data = error if isinstance(error, dict) else error.to_json()
    print(dumps(data), file=err or sys.stderr)


class NoInput(Exception):
    """The input is missing or can't be read; ends the command with status 66."""


def read_input(name: str, storage_options: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a file or a URL, or of standard input for ``-``. Raises NoInput."""
    from msmqwire.capture.paths import open_file
    from msmqwire.errors import UnsupportedStore

    try:
        if name == "-":
            return standard_input().read()
        with open_file(name, storage_options or {}) as file:
            return file.readall() or b""
    except OSError as exc:
        raise NoInput(f"{name}: {exc.strerror or exc}") from None
    except UnsupportedStore as exc:
        raise NoInput(str(exc)) from None


def standard_input() -> BufferedReader:
    """Return standard input as a binary stream. Raises NoInput if it is closed."""
    if sys.stdin is None:
        raise NoInput("standard input is closed")
    return cast(BufferedReader, sys.stdin.buffer)


def from_hex(text: bytes) -> bytes:
    """Parse hex text: pairs of digits, blanks and line ends between, comments from ``#`` to the line end.

    Raises LocatedError with the offset in the text.
    """
    from msmqwire.errors import LocatedError

    digits: list[str] = []
    comment = False
    for offset, char in enumerate(text.decode("latin-1")):
        if char in "\r\n":
            comment = False
        elif comment or char in " \t:,":
            continue
        elif char == "#":
            comment = True
        elif char in "0123456789abcdefABCDEF":
            digits.append(char)
        else:
            raise LocatedError(f"{char!r} is not a hex digit", offset=offset)
    if len(digits) % 2:
        raise LocatedError("an odd number of hex digits", offset=len(text))
    return bytes.fromhex("".join(digits))
