"""Strategies for values that do not fit: records with a wrong number, and mutated bytes."""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

from hypothesis import assume
from hypothesis import strategies as st

from fuzz.drawing import values
from fuzz.invariants import byte_order
from fuzz.leaves import integers
from msmqwire.errors import MalformedPacket
from msmqwire.schema import SCHEMAS, Each, Flags, Header, Record, Repeat, UInt
from msmqwire.schema.layout import Field, layout
from msmqwire.schema.references import deciding

# -- numbers that do not fit ------------------------------------------------------------------------


def misfits(schema: Header) -> st.SearchStrategy[tuple[Record, Field, int]]:
    """Return a strategy for a complete record, one of its integers or flag words, and another value for it.

    Usually other parts depend on the field. For schemas that `has_integers`.
    """
    return _misfits(values(schema))


@st.composite
def _misfits(draw: st.DrawFn, whole: st.SearchStrategy[Record]) -> tuple[Record, Field, int]:
    record: Record = draw(whole)
    numbers = [
        field
        for field in layout(record)
        if isinstance(field.node, UInt | Flags)
        and (field.header, field.node.name) not in _refused_when_wrong()
    ]
    assume(numbers)
    deciding_numbers = [field for field in numbers if _decides(field)]
    prefers_deciding = draw(st.booleans())
    field = draw(st.sampled_from(deciding_numbers if deciding_numbers and prefers_deciding else numbers))
    assert isinstance(field.node, UInt | Flags)
    signed = isinstance(field.node, UInt) and field.node.signed
    return record, field, draw(integers(field.node.bits, signed))


@cache
def _refused_when_wrong() -> frozenset[tuple[Header, str]]:
    """The fields that select the deferred data of an element: a wrong one may hide data that exists."""
    return frozenset(
        (repeated.item, part.by)
        for schema in SCHEMAS.values()
        for part in schema.parts
        if isinstance(part, Each) and isinstance(repeated := schema.part(part.of), Repeat)
    )


def _decides(field: Field) -> bool:
    return bool(isinstance(field.node, UInt) and field.node.size_of) or any(
        path.partition(".")[0] == field.node.name for path in deciding(field.header)
    )


# -- mutated bytes ----------------------------------------------------------------------------------

_EXTREMES: Final = (
    0, 1, 2, 3, 127, 128, 255, 2**15 - 1, 2**15, 2**16 - 1, 2**22, 2**31 - 1, 2**31, 2**32 - 1,
)  # fmt: skip
_EDITS: Final = ("flip", "set", "cut", "insert", "remove", "repeat", "number", "field", "field", "splice")


def mutated(
    bases: st.SearchStrategy[bytes], schema: Header | None = None, edits_max: int = 3
) -> st.SearchStrategy[bytes]:
    """Return a strategy for well-formed bytes after a few edits.

    The edits: bits flipped, bytes set, inserted, removed or repeated, ends cut off, numbers replaced by
    extremes (with `schema`, those at the offsets of its integers) and the splice of two.
    """
    return _mutated(bases, schema.key if schema else None, edits_max)


@st.composite
def _mutated(draw: st.DrawFn, bases: st.SearchStrategy[bytes], key: str | None, edits_max: int) -> bytes:
    data, schema = draw(bases), SCHEMAS[key] if key else None
    for _ in range(draw(st.integers(1, edits_max))):
        data = _edit(draw, data, bases, schema)
    return data


def _edit(draw: st.DrawFn, data: bytes, bases: st.SearchStrategy[bytes], schema: Header | None) -> bytes:
    kind = draw(st.sampled_from(_EDITS))
    offset = draw(st.integers(0, len(data)))
    if kind == "cut":
        return data[:offset]
    if kind == "insert":
        return data[:offset] + draw(st.binary(min_size=1, max_size=8)) + data[offset:]
    if kind == "splice":
        other = draw(bases)
        return data[:offset] + other[draw(st.integers(0, len(other))) :]
    if kind in ("remove", "repeat"):
        stop = min(len(data), offset + draw(st.integers(1, 8)))
        return data[:offset] + (data[offset:stop] * 2 if kind == "repeat" else b"") + data[stop:]
    if not data:
        return data
    offset = min(offset, len(data) - 1)
    if kind == "flip":
        return data[:offset] + bytes([data[offset] ^ 1 << draw(st.integers(0, 7))]) + data[offset + 1 :]
    if kind == "set":
        byte = draw(st.sampled_from([b"\0", b"\x01", b"\x7f", b"\x80", b"\xff"]))
        return data[:offset] + byte + data[offset + 1 :]
    width = draw(st.sampled_from([1, 2, 4]))
    offset -= offset % width
    numbers = _numbers(schema, data) if kind == "field" and schema else []
    order: Literal["little", "big"] = "little"
    if numbers:
        field = draw(st.sampled_from(numbers))
        offset, width, order = field.offset, field.size, byte_order(field)
    old = int.from_bytes(data[offset : offset + width], order)
    near = (old - 1, old + 1, old * 2, old + 4, old - 4, len(data), len(data) - offset, len(data) + 1)
    number: int = draw(st.sampled_from(near + _EXTREMES)) % (1 << 8 * width)
    return (data[:offset] + number.to_bytes(width, order) + data[offset + width :])[: len(data)]


def _numbers(schema: Header, data: bytes) -> list[Field]:
    """The integers and flag words in bytes; none where they are malformed."""
    try:
        value, _ = schema.read(data)
    except MalformedPacket:
        return []
    return [field for field in layout(value) if isinstance(field.node, UInt | Flags)]
