"""Files with keys, certificates and passwords that a user has named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.ownership import read_secret

FILE_SIZE_MAX: Final = 0x0010_0000
"""Limit in bytes; 256 certificates take about half of it."""
PASSWORD_SIZE_MAX: Final = 4096
"""Bytes that are read of a password."""


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


def read_password(file: Path, path: str = "") -> str:
    """Return the password in a file, without the newline at its end.

    Raises OSError, and InvalidValue with this path for a file that other users may use, or with no text.
    """
    try:
        return password_text(read_secret(file, PASSWORD_SIZE_MAX, path))
    except UnicodeDecodeError:
        raise InvalidValue("not a text in UTF-8", path=path) from None


def password_text(data: bytes) -> str:
    """Return the password that bytes are, without the newline at its end. Raises UnicodeDecodeError."""
    text = data.decode()
    return text.removesuffix("\r\n" if text.endswith("\r\n") else "\n")
