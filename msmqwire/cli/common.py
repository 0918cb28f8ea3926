"""Shared by the commands: exit statuses, error output, input."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from msmqwire.json_text import dumps

if TYPE_CHECKING:
    from pathlib import Path

    from msmqwire.errors import LocatedError

_FEW: Final = 100_000, 50, 100
"""Thresholds of the garbage collector for `few_collections`."""
_JSON: Final = frozenset({"--json"})
EX_USAGE: Final = 2
EX_DATAERR: Final = 65
EX_NOINPUT: Final = 66
EX_UNAVAILABLE: Final = 69
EX_SOFTWARE: Final = 70
EX_IOERR: Final = 74
EX_TEMPFAIL: Final = 75
"""The exit status if it is not known whether the command has succeeded."""


def say(
    error: LocatedError | dict[str, Any] | str,
    err: TextIO | None = None,
    *,
    offset: int | None = None,
    see: str = "",
) -> None:
    """Print an error: for people on a terminal, else, and with ``--json``, as one JSON object.

    Args:
        error: a text, an exception, or the object with its ``error`` or ``warning``.
        err: the output, by default standard error.
        offset: the place that a plain text is about.
        see: a hint for people: the place where they find more.
    """
    if isinstance(error, str):
        data: dict[str, Any] = {"error": error, "path": "", "offset": offset}
    else:
        data = error if isinstance(error, dict) else error.to_json()
    stream = err or sys.stderr
    if stream is None:
        return
    print(
        _for_people(data, see) if stream.isatty() and not _JSON.intersection(sys.argv) else dumps(data),
        file=stream,
    )


def _for_people(data: Mapping[str, Any], see: str) -> str:
    """Return an error as text: its kind, its place and its reason. Text from outside is made safe."""
    from msmqwire.names.printable import safe

    kind = "warning" if "warning" in data else "error"
    offset = None if data.get("offset") is None else f"byte {data['offset']}"
    code = " ".join(str(data[key]) for key in ("name", "hresult", "code") if data.get(key))
    where = ", ".join(filter(None, (data.get("path"), offset)))
    first, *more = str(data[kind]).splitlines() or [""]
    text = f"{kind}: {f'{where}: ' if where else ''}{first}{f' ({code})' if code else ''}"
    return "\n".join(safe(line) for line in (text, *more, *see.splitlines()))


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


def readable(*files: Path | None) -> None:
    """Check that files can be read. Raises NoInput."""
    for file in files:
        if file is not None:
            try:
                file.open("rb").close()
            except OSError as exc:
                raise NoInput(f"{file}: {exc.strerror or exc}") from None


def standard_input() -> BufferedReader:
    """Return standard input as a binary stream. Raises NoInput if it is closed."""
    if sys.stdin is None:
        raise NoInput("standard input is closed")
    return cast(BufferedReader, sys.stdin.buffer)


@contextmanager
def few_collections() -> Iterator[None]:
    """Make the garbage collector run rarely, for a command that holds most of its objects to the end.

    By default it goes through all of them each time that they have grown by a quarter.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_FEW)
    try:
        yield
    finally:
        gc.set_threshold(*before)


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
