"""Checks of JSON values against a schema: the part of JSON Schema 2020-12 that the API is described in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from msmqwire.errors import InvalidValue

Schema = Mapping[str, Any]
SCHEMA_PREFIX: Final = "#/components/schemas/"
"""The beginning of a reference to a named schema."""
ANNOTATIONS: Final = frozenset({"description", "default", "examples", "format", "title", "deprecated"})
"""The keywords that say something to people only."""
_WHOLE: Final = re.compile("-?[0-9]{1,20}")
_TYPES: Final[Mapping[str, Callable[[object], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
_NAMES: Final = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
    "integer": "a whole number",
    "number": "a number",
}


def ref(name: str) -> Schema:
    """Return the reference to a named schema."""
    return {"$ref": SCHEMA_PREFIX + name}


class Checker:
    """Checks values against schemas, with the named ones that references lead to."""

    def __init__(self, named: Mapping[str, Schema]) -> None:
        self._named = named
        self._checks: Final[Mapping[str, Callable[[Schema, Any, Any, str], None]]] = {
            "$ref": lambda _, name, value, path: self.check(self._of(name), value, path),
            "type": _check_type,
            "enum": _check_enum,
            "const": lambda _, one, value, path: _check_enum(_, [one], value, path),
            "minimum": _bound(lambda value, least: value >= least, "at least", "number"),
            "maximum": _bound(lambda value, most: value <= most, "at most", "number"),
            "minLength": _length("string", "character", at_least=True),
            "maxLength": _length("string", "character", at_least=False),
            "minItems": _length("array", "item", at_least=True),
            "maxItems": _length("array", "item", at_least=False),
            "minProperties": _length("object", "member", at_least=True),
            "maxProperties": _length("object", "member", at_least=False),
            "pattern": _check_pattern,
            "required": _check_required,
            "properties": self._check_properties,
            "additionalProperties": self._check_others,
            "items": self._check_items,
            "oneOf": self._check_one_of,
        }

    def known(self, schema: Schema) -> None:
        """Raise ValueError for a schema with a keyword that is not checked here, or an unknown name."""
        for keyword, value in schema.items():
            if keyword == "$ref":
                self._of(value)
            elif keyword not in self._checks and keyword not in ANNOTATIONS:
                raise ValueError(f"the keyword {keyword} is not checked")
            nested: list[Any] = []
            if keyword == "properties":
                nested = list(value.values())
            elif keyword == "oneOf":
                nested = value
            elif keyword in ("items", "additionalProperties") and isinstance(value, Mapping):
                nested = [value]
            for one in nested:
                self.known(one)

    def check(self, schema: Schema, value: object, path: str) -> None:
        """Raise InvalidValue, with its place, for a value that a schema does not allow."""
        for keyword, told in schema.items():
            if keyword not in ANNOTATIONS:
                self._checks[keyword](schema, told, value, path)

    def from_text(self, schema: Schema, text: str, path: str) -> object:
        """Return the value of a text in a path, a query or a header field. Raises InvalidValue."""
        value: object = text
        types = schema.get("type", "string")
        if types == "integer":
            if _WHOLE.fullmatch(text) is None:
                raise InvalidValue(f"{text!r:.100} is not a whole number", path=path)
            value = int(text)
        elif types == "boolean":
            if text not in ("true", "false"):
                raise InvalidValue(f"{text!r:.100} is neither true nor false", path=path)
            value = text == "true"
        self.check(schema, value, path)
        return value

    def _of(self, reference: str) -> Schema:
        name = reference.removeprefix(SCHEMA_PREFIX)
        if name not in self._named:
            raise ValueError(f"no schema is named {name}")
        return self._named[name]

    def _check_properties(
        self, schema: Schema, properties: Mapping[str, Schema], value: Any, path: str
    ) -> None:
        if isinstance(value, dict):
            for name, one in properties.items():
                if name in value:
                    self.check(one, value[name], _member(path, name))

    def _check_others(self, schema: Schema, allowed: Schema | bool, value: Any, path: str) -> None:
        if not isinstance(value, dict) or allowed is True:
            return
        known = schema.get("properties", {})
        for name, one in value.items():
            if name in known:
                continue
            if allowed is False:
                raise InvalidValue("not a member that is known here", path=_member(path, name))
            assert isinstance(allowed, Mapping), "a schema"
            self.check(allowed, one, _member(path, name))

    def _check_items(self, schema: Schema, items: Schema, value: Any, path: str) -> None:
        if isinstance(value, list):
            for at, one in enumerate(value):
                self.check(items, one, f"{path}[{at}]")

    def _check_one_of(self, schema: Schema, ones: list[Schema], value: Any, path: str) -> None:
        refusals = []
        for one in ones:
            try:
                self.check(one, value, path)
            except InvalidValue as exc:
                refusals.append((_unlike(one, value), exc))
        if len(ones) - len(refusals) > 1:
            raise InvalidValue("more than one form fits", path=path)
        if len(refusals) == len(ones):
            raise min(refusals, key=lambda refusal: refusal[0])[1]  # about the form that was meant


def _unlike(form: Schema, value: object) -> tuple[int, int]:
    """Return how unlike a form a value is: its unknown and its missing members."""
    if not isinstance(value, dict):
        return 0, 0
    unknown = value.keys() - form.get("properties", {}).keys()
    return len(unknown), len(set(form.get("required", ())) - value.keys())


def _member(path: str, name: str) -> str:
    shown = name if name.isprintable() and len(name) <= 100 else ascii(name)[:100]
    return f"{path}.{shown}" if path else shown


def _check_type(schema: Schema, types: str | list[str], value: object, path: str) -> None:
    if isinstance(types, str) and _TYPES[types](value):
        return
    wanted = [types] if isinstance(types, str) else types
    if not any(_TYPES[one](value) for one in wanted):
        raise InvalidValue(f"not {' or '.join(_NAMES[one] for one in wanted)}", path=path)


def _check_enum(schema: Schema, allowed: list[object], value: object, path: str) -> None:
    if not any(type(one) is type(value) and one == value for one in allowed):
        shown = ", ".join("null" if one is None else str(one) for one in allowed)
        raise InvalidValue(f"{value!r:.100} is none of {shown}", path=path)


def _bound(
    fits: Callable[[Any, Any], bool], words: str, kind: str
) -> Callable[[Schema, Any, Any, str], None]:
    def check(schema: Schema, limit: Any, value: object, path: str) -> None:
        if _TYPES[kind](value) and not fits(value, limit):
            raise InvalidValue(f"{value!r:.100} is not {words} {limit}", path=path)

    return check


def _length(kind: str, unit: str, *, at_least: bool) -> Callable[[Schema, Any, Any, str], None]:
    def check(schema: Schema, limit: int, value: Any, path: str) -> None:
        if _TYPES[kind](value) and (len(value) < limit if at_least else len(value) > limit):
            plural = unit if limit == 1 else f"{unit}s"
            raise InvalidValue(f"not {'at least' if at_least else 'at most'} {limit} {plural}", path=path)

    return check


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _check_pattern(schema: Schema, pattern: str, value: object, path: str) -> None:
    if isinstance(value, str) and _pattern(pattern).search(value) is None:
        raise InvalidValue(f"{value!r:.100} does not match {pattern}", path=path)


def _check_required(schema: Schema, names: list[str], value: object, path: str) -> None:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                raise InvalidValue("missing", path=_member(path, name))
