"""The size of a structure and the offsets of its parts, as far as a declaration fixes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from msmqwire.schema.nodes import (
    TO_NULL,
    Choice,
    Close,
    Flags,
    Guid,
    Header,
    OemText,
    Part,
    Raw,
    Sub,
    Text,
    UInt,
    View,
)


def fixed_size(header: Header) -> int | None:
    """Return the size of a structure in bytes; None if a field decides it."""
    return _fixed_size(header.parts)


@cache
def field_offset(header: Header, name: str) -> int:
    """Return the offset of a part in bytes from the start of its structure.

    Raises KeyError if the structure has no such part, ValueError if parts of variable size precede it.
    """
    offset = _fixed_size(header.parts[: header.parts.index(header.part(name))])
    if offset is None:
        raise ValueError(f"{header.name}.{name} has no fixed offset")
    return offset


@cache
def head_size(header: Header) -> int:
    """Return the size in bytes of the fixed part that a structure begins with."""
    counts = range(len(header.parts), -1, -1)
    return next(size for count in counts if (size := _fixed_size(header.parts[:count])) is not None)


def _fixed_size(parts: Sequence[Part]) -> int | None:
    total = 0
    for part in parts:
        match part:
            case UInt() | Flags() | Guid():
                total += part.size
            case Raw(length=int(n)) | Text(length=int(n)) | OemText(length=int(n)):
                total += n
            case Sub(header=inner, within=None) if (inside := fixed_size(inner)) is not None:
                total += inside
            case Close() | View():
                pass
            case _:
                return None
    return total


def least_size(header: Header) -> int:
    """Return the smallest size of a structure in bytes."""
    total = 0
    for part in header.parts:
        match part:
            case UInt() | Flags() | Guid():
                total += part.size
            case Raw(length=int(n)) | Text(length=int(n)) | OemText(length=int(n)):
                total += n
            case Text(length=length) if length is TO_NULL:
                total += 2
            case Sub():
                total += least_size(part.header) if part.within is None else 0
            case Choice():
                total += min((least_size(arm) if arm else 0 for arm in part.arms.values()), default=0)
            case _:
                pass
    return total
