"""Checks of the file of a store before SQLite opens it, and the error that says what to do after damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msmqwire.errors import StoreDamaged, StoreForeign
from msmqwire.service.store.layout import Layout

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_SIZE: Final = 100
_APPLICATION_ID: Final = slice(68, 72)


def damaged(path: Path, reason: str) -> StoreDamaged:
    """Return the error for damage of a store."""
    return StoreDamaged(f"{reason}; {advice(path)}", file=str(path))


def unreadable(path: Path, reason: str) -> StoreDamaged:
    """Return the error for a store of which nothing can be read."""
    return StoreDamaged(f"{reason}; nothing of it can be read: put back a copy", file=str(path))


def advice(path: Path) -> str:
    """Return the next step after damage of a store."""
    return f"`msmqwire check {path.parent}` names what is lost; {remedy(path)}"


def remedy(path: Path) -> str:
    """Return what helps after damage of a store, as far as it can be read."""
    return f"put back a copy, or go on without what is lost: msmqwire check {path.parent} --accept"


def application_of(path: Path) -> int:
    """Return the number in the header of a file that identifies its application. Raises OSError."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(_HEADER_SIZE)[_APPLICATION_ID], "big")


def check_header(
    path: Path,
    layout: Layout,
    *,
    writable: bool = True,
    error: Callable[[Path, str], StoreDamaged] = damaged,
) -> None:
    """Check the first bytes before SQLite opens the file: it might write into one that is not a store.

    Raises StoreForeign, OSError, and the error that `error` returns for damage.
    """
    with path.open("r+b" if writable else "rb") as file:  # SQLite opens a read-only file without an error
        header = file.read(_HEADER_SIZE)
    is_store = header[_APPLICATION_ID] == layout.application_id.to_bytes(4, "big")
    if not header:
        raise error(path, "the file is empty")
    if not header.startswith(_MAGIC):
        if is_store:
            raise error(path, "the beginning of the file is overwritten")
        reason = f"this is not a store of {layout.content}, or its beginning is overwritten"
        raise StoreForeign(f"{reason}; name another file", file=str(path))
    if len(header) < _HEADER_SIZE:
        raise error(path, "the file is cut off")
    if not is_store:
        reason = "this is the database of another program; name another file"
        raise StoreForeign(reason, file=str(path))
