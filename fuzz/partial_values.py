"""Strategies for values from which parts were left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from fuzz.drawing import values
from fuzz.leaves import Fixed
from msmqwire.schema import (
    SCHEMAS,
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Header,
    Maybe,
    OemText,
    Part,
    Record,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
)
from msmqwire.schema.record import FlagsValue
from msmqwire.schema.references import deciding
from msmqwire.schema.texts import OEM_CODE_PAGE


def partial(schema: Header, fixed: Fixed | None = None, *, json: bool = True) -> st.SearchStrategy[Any]:
    """Return a strategy for records, mappings and JSON data with parts missing that can be completed.

    Either some of the computable fields are missing, or all of them and some other ones. Without `json` no
    JSON data is among them.
    """
    return _partial(values(schema, fixed), json)


@st.composite
def _partial(draw: st.DrawFn, whole: st.SearchStrategy[Record], json: bool) -> Any:
    record = draw(whole)
    omitter = _Omitter(draw, draw(st.booleans()), json and draw(st.booleans()))
    return omitter.structure(record, frozenset())


class _Omitter:
    """Makes partial values of complete ones.

    Args:
        draw: as Hypothesis passes it.
        all_computed: whether to omit everything that can be computed.
        json: whether to make JSON data.
    """

    def __init__(self, draw: st.DrawFn, all_computed: bool, json: bool) -> None:
        self.draw, self.all_computed, self.json = draw, all_computed, json

    def omits(self, computed: bool, optional: bool) -> bool:
        """Whether to omit something that is computed, or may be missing."""
        if computed:
            return self.all_computed or self.draw(st.booleans())
        return optional and self.all_computed and self.draw(st.integers(0, 3)) == 0

    def structure(self, record: Record, referred: frozenset[str]) -> Any:
        schema = record.schema
        referred |= deciding(schema)
        fields: dict[str, Any] = {}
        required, unknown_unit = _required(schema), set(_of_unknown_unit(record))
        for part in schema.parts:
            if isinstance(part, Close) or (part.name in unknown_unit and self.all_computed):
                continue
            if part.name not in required | unknown_unit and self.omits_part(part, schema, referred, fields):
                continue
            fields[part.name] = self.value(part, record[part.name], referred)
            if isinstance(part, View) and self.all_computed:  # its bytes would fill in the omitted fields
                fields = _without(fields, part.of)
        if self.json or self.draw(st.booleans()):
            return fields
        has_partial_word = any(
            isinstance(part, Flags) and isinstance(fields.get(part.name), dict) for part in schema.parts
        )
        return fields if has_partial_word else schema.record(**fields)

    def omits_part(
        self, part: Part, schema: Header, referred: frozenset[str], fields: dict[str, Any]
    ) -> bool:
        match part:
            case UInt(same_as=original) if original in schema.fields and original not in fields:
                return True
            case UInt():
                computed = part.size_of or part.same_as or part.name in referred | _counting()
                return self.omits(bool(computed), True)
            case Align() | Fill():
                return self.all_computed
            case Text(strict=True) | Choice() | Sub() if _has_no_empty_form(part):
                return False
            case Repeat(count=count) if (first := _first_of(schema, count)) is not part:
                return first.name not in fields
            case Maybe(when=str(when)) if when.partition(".")[0] in schema.fields:
                decided_by = schema.part(when.partition(".")[0])
                if isinstance(decided_by, Maybe) and fields.get(decided_by.name) is None:
                    return True
                twin = next(p for p in schema.parts if isinstance(p, Maybe) and p.when == when)
                return twin.name not in fields if twin is not part else self.omits(False, True)
            case _:
                return self.omits(False, True)

    def value(self, part: Part, value: Any, referred: frozenset[str]) -> Any:
        match value:
            case FlagsValue():
                assert isinstance(part, Flags)
                return self.word(part, value, referred)
            case Record():
                return self.structure(value, referred)
            case list():
                return [item and self.structure(item, referred) for item in value]
            case UUID() if self.json:
                return str(value)
            case bytes() if self.json:
                if isinstance(part, OemText):
                    return {OEM_CODE_PAGE: value.hex()}
                return {"utf16le": value.hex()} if isinstance(part, Text) else value.hex()
        return value

    def word(self, part: Flags, value: FlagsValue, referred: frozenset[str]) -> Any:
        names = {path.rpartition(".")[2] for path in referred if f"{part.name}." in path}
        bits = {name: number for name, number in value.bits().items() if not self.omits(name in names, True)}
        is_complete = len(bits) == len(part.parts)
        return value if is_complete and not self.json and self.draw(st.booleans()) else bits


def _first_of(schema: Header, count: str) -> Repeat:
    """The first of the lists with one count."""
    return next(part for part in schema.parts if isinstance(part, Repeat) and part.count == count)


def _without(fields: dict[str, Any], path: str) -> dict[str, Any]:
    name, _, inner = path.partition(".")
    if name not in fields:
        return fields
    if not inner:
        return {key: value for key, value in fields.items() if key != name}
    return {**fields, name: _without(dict(fields[name]), inner)}


def _of_unknown_unit(record: Record) -> Iterator[str]:
    """Texts read as bytes, with their lengths, whose unit depends on the surrounding bytes."""
    for part in record.schema.parts:
        if isinstance(part, Text) and part.otherwise and isinstance(record[part.name], bytes):
            yield from (part.name, part.otherwise.path)


@cache
def _counting() -> frozenset[str]:
    """The names of fields of elements that count their deferred data."""
    return frozenset(
        count.rpartition(".")[2]
        for schema in SCHEMAS.values()
        for part in schema.parts
        if isinstance(part, Each)
        for _, _, count in part.arms.values()
    )


@cache
def _required(schema: Header) -> frozenset[str]:
    """The fields without which two forms would look alike or two lists would not match."""
    names: set[str] = set()
    for part in schema.parts:
        if isinstance(part, Each):
            names |= {part.name, part.of}
        elif isinstance(part, Choice):
            arms = {arm for arm in part.arms.values() if arm}
            if len({frozenset(arm.fields) for arm in arms}) < len(arms):
                names |= {part.by, part.name}
    return frozenset(names)


def _has_no_empty_form(part: Text | Choice | Sub) -> bool:
    if isinstance(part, Sub):
        return any(_has_no_empty_form(inner) for inner in part.header.parts if isinstance(inner, Choice))
    return isinstance(part, Text) or None not in part.arms.values()
