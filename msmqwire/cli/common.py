"""What the commands share: exit statuses, errors, input, text that is safe to show."""

from __future__ import annotations

import json
import sys
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, TextIO, cast

from msmqwire.errors import LocatedError

EX_USAGE: Final = 2
EX_DATAERR: Final = 65
EX_NOINPUT: Final = 66
EX_UNAVAILABLE: Final = 69
EX_SOFTWARE: Final = 70
EX_IOERR: Final = 74


def dumps(data: Any, *, indent: int | None = None) -> str:
    """JSON without control characters, DEL included."""
    return json.dumps(data, indent=indent).replace("\x7f", "\\u007f")


def say(error: LocatedError | dict[str, Any], err: TextIO | None = None) -> None:
    """Prints an error as one JSON object, to standard error unless told otherwise."""
    data = error.to_json() if isinstance(error, LocatedError) else error
    print(dumps(data), file=err or sys.stderr)


class NoInput(Exception):
    """The input is not there or can't be read; ends with status 66."""


def read_input(name: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``. Raises NoInput."""
    try:
        if name == "-":
            return standard_input().read()
        return Path(name).read_bytes()
    except OSError as exc:
        raise NoInput(f"{name}: {exc.strerror or exc}") from None


def standard_input() -> BufferedReader:
    """The bytes of standard input. Raises NoInput where it is closed."""
    if sys.stdin is None:
        raise NoInput("standard input is closed")
    return cast(BufferedReader, sys.stdin.buffer)


def from_hex(text: bytes) -> bytes:
    """The bytes of hex text: digits in pairs, blanks and line ends between, ``#`` to the end of a line.

    Raises LocatedError with the place in the text.
    """
    digits: list[str] = []
    comment = False
    for place, char in enumerate(text.decode("latin-1")):
        if char in "\r\n":
            comment = False
        elif comment or char in " \t:,":
            continue
        elif char == "#":
            comment = True
        elif char in "0123456789abcdefABCDEF":
            digits.append(char)
        else:
            raise LocatedError(f"{char!r} is not a hex digit", offset=place)
    if len(digits) % 2:
        raise LocatedError("an odd number of hex digits", offset=len(text))
    return bytes.fromhex("".join(digits))


def safe(text: str) -> str:
    """Text without anything that a terminal would act on: what comes from a peer is hostile."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
