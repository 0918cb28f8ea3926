"""Records as people look at them: in one line, and as bytes beside fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted, cut
from msmqwire.schema.display import PlacedField, View, view_of
from msmqwire.schema.field_text import field_text
from msmqwire.schema.layout import layout
from msmqwire.schema.record import Record

TEXT_MAX: Final = 240
"""Characters of the value of one field."""


def record_view(record: Record) -> View:
    """Return a record as it is shown: each field beside its bytes, omitted ones as building computes them.

    One that can't be built has no bytes; why is said.
    """
    title = record.schema.name
    try:
        data, whole = completed(record)
        fields = list(placed_fields(whole))
    except (InvalidValue, MalformedPacket) as exc:
        return view_of(title, properties=_leaves(record, ""), remarks=[f"No bytes: {exc}"])
    return view_of(title, fields=fields, data=data, properties=[("size", counted(len(data), "byte"))])


def placed_fields(record: Record, start: int = 0, end: int | None = None) -> Iterator[PlacedField]:
    """Yield the fields of a record that begins at an offset, as far as they end before another."""
    for field in layout(record):
        if end is not None and start + field.offset + field.size > end:
            return
        if field.size:
            yield PlacedField(field.path, start + field.offset, field.size, cut(field_text(field), TEXT_MAX))


def completed(record: Record) -> tuple[bytes, Record]:
    """Return a record's bytes, and the record with its omitted fields.

    Raises:
        InvalidValue, MalformedPacket: it can't be built, or the values that it omits can't be computed.
    """
    data = record.to_bytes()
    if _is_complete(record):
        return data, record
    whole: Record = record.schema.read(data, 0)[0]
    return data, whole


def _is_complete(record: Record) -> bool:
    parts: Iterator[Any] = (record.get(name) for name in record.schema.fields)
    return len(list(record.keys())) == len(record.schema.fields) and all(
        _is_complete(part)
        for value in parts
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, Record)
    )


def _leaves(record: Record, prefix: str) -> Iterator[tuple[str, str]]:
    for name in record:
        value = record[name]
        if isinstance(value, Record):
            yield from _leaves(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", short(value)


def short(value: Any) -> str:
    """Return the value of a field in few characters: of bytes only how many there are."""
    if isinstance(value, bytes):
        return f"<{counted(len(value), 'byte')}>"
    if isinstance(value, list):
        return f"[{len(value)}]" if len(value) != 1 else f"[{short(value[0])}]"
    return cut(repr(value), 80)


def one_line(record: Record) -> str:
    """Return a record as its ``repr``.

    A header has its fields; a packet its headers, and of each the texts.
    """
    parts = []
    for name in record:
        value = record[name]
        if isinstance(value, Record):
            parts.append(f"{name}({', '.join([*_texts(value), '...'])})")
        elif value is not None and value != b"":
            parts.append(f"{name}={short(value)}")
    return f"{record.schema.name}({', '.join(parts)})"


def _texts(record: Record) -> Iterator[str]:
    for name in record:
        value = record[name]
        if isinstance(value, Record):
            yield from _texts(value)
        elif isinstance(value, str):
            yield f"{name}={short(value)}"
