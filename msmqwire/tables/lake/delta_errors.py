"""Errors of the library that writes the log of a lake, in our words: its own have colours and a stack."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msmqwire.capture.store_errors import translated
from msmqwire.capture.stores import NO_OPTIONS
from msmqwire.errors import LakeDamaged, LakeMismatch, LakeMissing, MsmqError
from msmqwire.names.printable import safe

if TYPE_CHECKING:
    from msmqwire.tables.lake.place import Place

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX: Final = re.compile(
    r"^((Kernel error|External error|Generic( delta)?( kernel| \w+)? error|Unsupported)(:| ->)\s*)+"
)
_DUMP: Final = re.compile(r": \w+ \{.*")
"""A value as programmers see it."""
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")
_PARTS: Final = 3
"""Lines of an error of a store that say something: the request, and why it failed."""
_IN_THE_WAY: Final = "already exists"
_PANIC: Final = "PanicException"


class Refused(Exception):
    """A commit was refused as another one came before it, or its table is there already."""


@contextmanager
def delta_errors(place: Place) -> Iterator[None]:
    """Turn the errors of the library into ours.

    Raises:
        Refused: another commit came before.
        LakeMissing: there is no table.
        LakeMismatch: the table needs a newer version.
        LakeDamaged: the log can't be read.
        OSError: a file or a store can't be reached.
    """
    from deltalake.exceptions import CommitFailedError, DeltaProtocolError, TableNotFoundError

    try:
        yield
    except (MsmqError, OSError) as exc:
        if isinstance(exc, MsmqError) or exc.filename is not None:
            raise
        raise _os_error(place, _text(exc)) from None
    except CommitFailedError as exc:
        raise Refused(_text(exc)) from None
    except TableNotFoundError as exc:
        if "PermissionDenied" in str(exc):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place.shown) from None
        raise LakeMissing("no lake: it has no log", file=place.shown) from None
    except DeltaProtocolError as exc:
        raise _newer(place, exc) from None
    except BaseException as exc:
        if not isinstance(exc, Exception) and type(exc).__name__ != _PANIC:
            raise
        text = _text(exc)
        if _IN_THE_WAY in text:
            raise Refused(text) from None
        if "nsupported" in text or "not supported" in text:
            raise _newer(place, exc) from None
        raise LakeDamaged(
            f"the log of the lake is damaged: {text:.200}; put it back from a copy, or read the captures into"
            " another lake",
            file=place.shown,
        ) from None


def _os_error(place: Place, text: str) -> OSError:
    """The error of the system that a text names, or that of a store."""
    number = _OS_ERROR.search(text)
    if number is None:
        return translated(OSError(text), place.shown, NO_OPTIONS)
    file = re.search(re.escape(place.shown) + r"\S*", text)
    return OSError(int(number[1]), os.strerror(int(number[1])), file[0] if file else place.shown)


def _newer(place: Place, exc: BaseException) -> LakeMismatch:
    return LakeMismatch(
        f"the table needs what this version does not know: {_text(exc)}; install a newer one",
        file=place.shown,
    )


def _text(exc: BaseException) -> str:
    """The error in one line, without the stack."""
    lines = [line.strip(" ↳\t") for line in _COLOURS.sub("", str(exc)).splitlines()]
    lines = [line for line in lines if line and not re.match(r"\d+: |at |Help: ", line)]
    text = _DUMP.sub("", _PREFIX.sub("", " ".join(lines[:_PARTS]))).strip().rstrip(",.;")
    return safe(text) or type(exc).__name__
