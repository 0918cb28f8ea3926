"""Files that hold secrets: only their owner may read or write them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from msmqwire.durable import replace_file
from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted

_OTHERS: Final = 0o077
_MODE: Final = 0o600


def read_secret(file: Path, size_max: int, path: str = "") -> bytes:
    """Return the content of a file.

    Args:
        file: the file.
        size_max: its largest size in bytes.
        path: the path of the error.

    Raises OSError if it can't be read, and InvalidValue for a file that is too large, or that other users may
    read or write.
    """
    with file.open("rb") as stream:
        if os.name == "posix" and (mode := stat.S_IMODE(os.fstat(stream.fileno()).st_mode)) & _OTHERS:
            why = f"{file} has the mode {mode:04o}: other users may use it; use chmod 600"
            raise InvalidValue(why, path=path)
        content = stream.read(size_max + 1)
    if len(content) > size_max:
        raise InvalidValue(f"{file} has more than {counted(size_max, 'byte')}", path=path)
    return content


def write_secret(file: Path, content: bytes) -> None:
    """Replace a file by a new one that only its owner can access, and sync it. Raises OSError.

    No other process may write it meanwhile.
    """
    replace_file(file, content, mode=_MODE)
