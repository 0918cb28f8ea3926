"""The offset and size of every field of a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from msmqwire.schema.nodes import (
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Guid,
    Header,
    Leaf,
    Maybe,
    OemText,
    Packet,
    Part,
    Raw,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
)
from msmqwire.schema.record import Record
from msmqwire.schema.texts import encode_oem, encode_padded, encode_text


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a value: its path, offset, size, value and declaration."""

    path: str
    offset: int
    size: int
    value: Any
    node: Leaf
    header: Header


def layout(value: Record) -> Iterator[Field]:
    """Yield the fields of a complete record in wire order, padding included."""
    prefix = "" if isinstance(value.schema, Packet) else value.schema.name
    offset = 0
    for path, node, field_value, header in _structure(value, prefix):
        size = _size(node, field_value)
        yield Field(path, offset, size, field_value, node, header)
        offset += size


_Leaf: TypeAlias = tuple[str, Leaf, Any, Header]


def _structure(record: Record, prefix: str) -> Iterator[_Leaf]:
    for part in record.schema.parts:
        path = f"{prefix}.{part.name}" if prefix else part.name
        if not isinstance(part, (Close, View)):
            yield from _part(part, record[part.name], path, record.schema)


def _part(part: Part, value: Any, path: str, header: Header) -> Iterator[_Leaf]:
    match part:
        case Maybe() | Choice() if value is None:
            pass
        case Maybe():
            yield from _part(part.node, value, path, header)
        case Sub() | Choice():
            yield from _structure(value, path)
        case Repeat() | Each():
            for i, item in enumerate(value):
                if item is not None:
                    yield from _structure(item, f"{path}[{i}]")
        case UInt() | Flags() | Guid() | Raw() | Text() | OemText() | Align() | Fill():
            yield path, part, value, header
        case _:
            raise TypeError(part)


def _size(part: Leaf, value: Any) -> int:
    match part:
        case UInt() | Flags() | Guid():
            return part.size
        case OemText():
            return len(encode_oem(part, value))
        case Text(padded=True, length=int(length)):
            return len(encode_padded(value, length))
        case Text():
            return len(encode_text(value))
        case _:
            return len(value)
