"""Files with keys and certificates that a user has named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.ownership import read_secret

FILE_SIZE_MAX: Final = 0x0010_0000
"""Limit in bytes; 256 certificates take about half of it."""


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file. Raises InvalidValue for an unreadable or too large file."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(FILE_SIZE_MAX + 1)
    except OSError as exc:
        raise InvalidValue(f"{os.fspath(path)}: {exc.strerror or exc}") from None
    if len(content) > FILE_SIZE_MAX:
        raise InvalidValue(f"{os.fspath(path)}: more than {FILE_SIZE_MAX} bytes")
    return content


def read_private(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file with a private key.

    Raises InvalidValue for an unreadable or too large file, and one that other users may use.
    """
    try:
        return read_secret(Path(path), FILE_SIZE_MAX)
    except OSError as exc:
        raise InvalidValue(f"{os.fspath(path)}: {exc.strerror or exc}") from None
