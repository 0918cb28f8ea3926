"""Switches for the choices that specifications leave open, set by their texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, get_args, get_type_hints

from msmqwire.names.nearest import unknown_name

_BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, repr=False)
class Switches:
    """The base of frozen dataclasses of switches: fields of a `Literal` type or bool, with defaults."""

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    @classmethod
    def fields(cls) -> Mapping[str, tuple[str, ...]]:
        """Return the names of all switches with the values that each can have, as text, the default first."""
        types = get_type_hints(cls)
        return {
            field.name: tuple(sorted(_values(types[field.name]), key=_text(field.default).__ne__))
            for field in dataclasses.fields(cls)
        }

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """Return the switches with these values, as text. Raises InvalidArgument."""
        known = cls.fields()
        for name, value in values.items():
            if name not in known:
                raise unknown_name(name, known, "reading", path=cls.__name__)
            if value not in known[name]:
                raise unknown_name(value, known[name], "possible value", path=f"{cls.__name__}.{name}")
        given: dict[str, Any] = {name: _BOOLEANS.get(value, value) for name, value in values.items()}
        return cls(**given)


def _values(kind: Any) -> tuple[str, ...]:
    return tuple(_BOOLEANS) if kind is bool else get_args(kind)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
