"""The values that a composer takes, as the mapping that completing takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.schema.codec_compose import ComposerSource, given_parts, is_composed
from msmqwire.schema.codec_parts import Constants
from msmqwire.schema.nodes import Choice, Flags, Header, Maybe, Part, Sub, follow


def mapping(header: Header, values: Sequence[Any]) -> dict[str, Any]:
    """Return the mapping of which `make` makes the same structure as a composer of these values.

    Raises InvalidValue for bytes that are not a structure as their place requires.
    """
    return _mapping(header, values, "", _decided_bits(header))


@cache
def _decided_bits(header: Header) -> frozenset[str]:
    return frozenset(ComposerSource(header, Constants()).decided)


def _mapping(header: Header, values: Sequence[Any], path: str, decided: frozenset[str]) -> dict[str, Any]:
    parts, fields = given_parts(header), dict[str, Any]()
    if len(values) != len(parts):
        names = ", ".join(part.name for part in parts)
        why = f"{counted(len(values), 'value')} for the parts {names}"
        raise InvalidValue(why, path=path or header.name)
    for part, value in zip(parts, values, strict=True):
        if value is None and isinstance(part, Maybe):
            continue
        fields[part.name] = _field(part, value, f"{path}.{part.name}".lstrip("."), fields, decided)
    return fields


def _field(part: Part, value: Any, path: str, before: Mapping[str, Any], decided: frozenset[str]) -> Any:
    """Return a value as `make` takes it; `before` are the fields before it."""
    match part.node if isinstance(part, Maybe) else part:
        case Flags() as word:
            return _bits(word, value, path, decided)
        case Sub(header=header):
            return (
                _mapping(header, value, path, decided)
                if is_composed(header)
                else _parsed(header, value, path)
            )
        case Choice(by=by, arms=arms):
            arm = arms.get(follow(before, by))
            return _parsed(arm, value, path) if arm else value or None
        case _:
            return value


def _bits(part: Flags, word: Any, path: str, decided: frozenset[str]) -> Any:
    """Return the bits of a word but those that are 0 and may be set by a part."""
    if not isinstance(word, int) or not 0 <= word < 1 << part.bits:
        return word
    bits = {bits.name: (word & bits.mask) >> bits.shift for bits in part.parts}
    return {name: value for name, value in bits.items() if value or f"{path}.{name}" not in decided}


def _parsed(header: Header, data: Any, path: str) -> Any:
    try:
        return header.parse(data)
    except (MalformedPacket, TypeError) as exc:
        raise InvalidValue(f"no {header.name}: {exc}", path=path) from None
