"""The values of records as composers take them, and such with a wrong one among them."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from msmqwire.schema import Choice, Header, Maybe, Record, Sub
from msmqwire.schema.codec_compose import ComposerSource, given_parts, is_composed
from msmqwire.schema.codec_parts import Constants
from msmqwire.schema.references import stands_alone

WRONG: tuple[Any, ...] = (-1, 1 << 64, 1.5, None, "text", b"odd", "\ud800", (), bytes(20))


@cache
def has_composer(schema: Header) -> bool:
    """Return whether a structure can be composed of plain values."""
    if not stands_alone(schema):
        return False
    try:
        ComposerSource(schema, Constants())
    except TypeError:
        return False
    return True


def values_of(record: Record) -> tuple[Any, ...]:
    """Return the values of a record that its composer takes."""
    return tuple(_value(part, record[part.name]) for part in given_parts(record.schema))


def _value(part: Any, value: Any) -> Any:
    if _is_bytes(part):
        return b"" if value is None and isinstance(part, Choice) else value and value.to_bytes()
    return values_of(value) if isinstance(value, Record) else value


@st.composite
def spoilt(draw: st.DrawFn, schema: Header, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values with one of them changed; bytes are kept as given."""
    parts = given_parts(schema)
    places = [at for at, part in enumerate(parts) if not _is_bytes(part)]
    if not places:
        return values
    at = draw(st.sampled_from(places))
    header, value = _inner(parts[at]), draw(st.sampled_from(WRONG))
    if header is not None and values[at] is not None and draw(st.booleans()):
        value = draw(spoilt(header, values[at]))
    return (*values[:at], value, *values[at + 1 :])


def _inner(part: Any) -> Header | None:
    node = part.node if isinstance(part, Maybe) else part
    return node.header if isinstance(node, Sub) else None


def _is_bytes(part: Any) -> bool:
    header = _inner(part)
    return isinstance(part, Choice) or (header is not None and not is_composed(header))
