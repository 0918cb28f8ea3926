"""Recomputation of sizes, counts, presence bits and padding after a change."""

from __future__ import annotations

from functools import cache
from typing import Any

from msmqwire.schema.nodes import (
    Align,
    Choice,
    Close,
    Fill,
    Flags,
    Header,
    Maybe,
    Part,
    Ref,
    Text,
    UInt,
    View,
    inner_headers,
)
from msmqwire.schema.record import FlagsValue, Record
from msmqwire.schema.references import references
from msmqwire.schema.texts import encode_text


def recomputed(record: Record) -> Record:
    """Return a complete copy of a record with every computable field recomputed. Raises InvalidValue."""
    return record.schema.make(_without_computed(record))  # type: ignore[no-any-return]


def _without_computed(record: Record) -> dict[str, Any]:
    """Return the fields of a record without those that building computes."""
    computed, fields = decided_fields(record.schema), {}
    for part in record.schema.parts:
        if isinstance(part, (Align, Fill, Close, View)) or not hasattr(record, part.name):
            continue
        value = record[part.name]
        if isinstance(part, UInt) and (part.name in computed or part.size_of or part.same_as):
            if _is_of_bytes(record, part.name):
                fields[part.name] = value
            continue
        if isinstance(part, Flags) and isinstance(value, FlagsValue):
            bits = _presence_bits(record, part.name)
            value = {name: bit for name, bit in value.bits().items() if name not in bits}
        fields[part.name] = _inner(value)
    return _without_bits(record, fields)


def _is_of_bytes(record: Record, name: str) -> bool:
    """Whether a length of a text counts bytes, where readers would take its characters for fewer bytes.

    So it is for texts that are not well-formed UTF-16, of which a shorter part may be.
    """
    for part in record.schema.parts:
        if isinstance(part, Text) and isinstance(part.otherwise, Ref) and part.otherwise.path == name:
            text = record[part.name]
            return not isinstance(text, str) and bool(record[name] == len(encode_text(text)))
    return False


def _inner(value: Any) -> Any:
    if isinstance(value, Record):
        return _without_computed(value)
    return [_inner(item) for item in value] if isinstance(value, list) else value


def _presence_bits(record: Record, word: str) -> set[str]:
    """Return the bits of a flag word that announce parts of the same structure."""
    bits: set[str] = set()
    for part in record.schema.parts:
        path = _decides(part, record)
        if path and path.startswith(f"{word}."):
            bits.add(path.rpartition(".")[2])
    return bits


def _without_bits(record: Record, fields: dict[str, Any]) -> dict[str, Any]:
    """Remove the bits in its headers that announce which headers are present."""
    for part in record.schema.parts:
        header, _, rest = (_decides(part, record) or "").partition(".")
        word, _, bit = rest.partition(".")
        if bit and isinstance(fields.get(header), dict) and isinstance(fields[header].get(word), dict):
            fields[header][word].pop(bit, None)
    return fields


def _decides(part: Part, record: Record) -> str | None:
    """Return the path of the bits that a part decides; None if they say more than its presence."""
    match part:
        case Maybe(when=str() as when):
            return when
        case Choice():
            value, word = record[part.name], record.get(part.by.partition(".")[0])
            if not isinstance(word, FlagsValue):
                return part.by
            arm = part.arms.get(getattr(word, part.by.partition(".")[2]))
            fits = (arm is None) if value is None else (arm is not None and isinstance(value, arm.record))
            return None if fits else part.by
        case _:
            return None


@cache
def decided_fields(header: Header) -> frozenset[str]:
    """Return the integers of a structure that its own or inner parts decide."""
    return frozenset(path for path in _open_references(header) if path in header.fields)


def _open_references(header: Header) -> set[str]:
    paths: set[str] = set()
    for part in header.parts:
        if not isinstance(part, Choice) or part.within:
            paths.update(path for path in references(part) if "." not in path)
        for inner in inner_headers(part):
            paths.update(path for path in _open_references(inner) if path not in inner.fields)
    return paths - {part.by for part in header.parts if isinstance(part, Choice)}
