"""Sizes, counts, presence bits and padding of a changed value, computed anew."""

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
    UInt,
    View,
    inner_headers,
    references,
)
from msmqwire.schema.record import FlagsValue, Record


def recomputed(record: Record) -> Record:
    """A complete copy of a record in which everything that can be computed is. Raises InvalidValue."""
    return record.schema.make(_left_out(record))  # type: ignore[no-any-return]


def _left_out(record: Record) -> dict[str, Any]:
    """The fields of a record without those that building computes."""
    computed, kept = _computed(record.schema), {}
    for part in record.schema.parts:
        if isinstance(part, (Align, Fill, Close, View)) or not hasattr(record, part.name):
            continue
        value = record[part.name]
        if isinstance(part, UInt) and (part.name in computed or part.size_of or part.same_as):
            continue
        if isinstance(part, Flags) and isinstance(value, FlagsValue):
            bits = _presence_bits(record, part.name)
            value = {name: bit for name, bit in value.bits().items() if name not in bits}
        kept[part.name] = _inner(value)
    return _without_bits(record, kept)


def _inner(value: Any) -> Any:
    if isinstance(value, Record):
        return _left_out(value)
    return [_inner(item) for item in value] if isinstance(value, list) else value


def _presence_bits(record: Record, word: str) -> set[str]:
    """The bits of a flag word that tell of parts of the same structure."""
    found: set[str] = set()
    for part in record.schema.parts:
        path = _decides(part, record)
        if path and path.startswith(f"{word}."):
            found.add(path.rpartition(".")[2])
    return found


def _without_bits(record: Record, kept: dict[str, Any]) -> dict[str, Any]:
    """The same without the bits, in headers of it, that tell which headers are there."""
    for part in record.schema.parts:
        header, _, rest = (_decides(part, record) or "").partition(".")
        word, _, bit = rest.partition(".")
        if bit and isinstance(kept.get(header), dict) and isinstance(kept[header].get(word), dict):
            kept[header][word].pop(bit, None)
    return kept


def _decides(part: Part, record: Record) -> str | None:
    """The path of the bits that a part decides; None where they say more than that it is there."""
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
def _computed(header: Header) -> frozenset[str]:
    """The integers of a structure that parts of it, or inside it, decide."""
    return frozenset(path for path in _open_references(header) if path in header.fields)


def _open_references(header: Header) -> set[str]:
    found: set[str] = set()
    for part in header.parts:
        if not isinstance(part, Choice) or part.within:
            found.update(path for path in references(part) if "." not in path)
        for inner in inner_headers(part):
            found.update(path for path in _open_references(inner) if path not in inner.fields)
    return found - {part.by for part in header.parts if isinstance(part, Choice)}
