"""Plain data: values of bodies as JSON has them, and values that JSON lacks as an object with a ``$`` name.

A value may be nested without bounds, as a chain of linked objects is, so nothing here is recursive.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from msmqwire.bodies.body import Plain
from msmqwire.json_text import dumps_unicode, tokens
from msmqwire.names.printable import ELLIPSIS

DECIMAL, FLOAT, BYTES, DATE, KIND, TIMESPAN, GUID = (
    "$decimal", "$float", "$bytes", "$date", "$kind", "$timespan", "$guid",
)  # fmt: skip
TYPE, ID, REF, ITEMS, LENGTHS, LOWER = "$type", "$id", "$ref", "$items", "$lengths", "$lower"
SCALARS: Final = frozenset({DECIMAL, FLOAT, BYTES, DATE, TIMESPAN, GUID})
"""Names of objects that stand for one value; the first name of such an object."""

EXACT: Final = 1 << 53
"""Integers up to this one and down to its negative are exact as numbers of JSON everywhere."""
_FEW: Final = 4
_NUMBERS: Final = frozenset((int, float))
_WITHOUT_PARTS: Final = frozenset((int, float, str, bool, type(None)))
_WORDS: Final[dict[bool | None, str]] = {None: "null", True: "true", False: "false"}
LINE_MAX: Final = 4096
"""Characters of the line of a value."""
quoted: Final = json.encoder.encode_basestring
"""Return a text as JSON has it, in quotation marks."""
dumps: Final = dumps_unicode
"""Return a value as JSON text, of whatever depth."""


def integer(value: int) -> Plain:
    """Return an integer: as a number if every reader of JSON keeps it, otherwise as a decimal."""
    return value if -EXACT <= value <= EXACT else {DECIMAL: str(value)}


def floating(value: float) -> Plain:
    """Return a float; infinities and NaN have names."""
    if math.isfinite(value):
        return value
    return {FLOAT: "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"}


def decimal(value: Decimal | str) -> Plain:
    """Return a decimal with its zeros."""
    return {DECIMAL: value if isinstance(value, str) else format(value, "f")}


def raw(value: bytes) -> Plain:
    """Return bytes."""
    return {BYTES: value.hex()}


def member(name: str) -> str:
    """Return the name of a member in an object: one that begins with ``$`` gets one more."""
    return "$" + name if name.startswith("$") else name


def beginning(value: Plain, length: int) -> str:
    """Return the first characters of a value as JSON text for people, indented; cut with an ellipsis."""
    parts: list[str] = []
    size = 0
    for part in tokens(value, 2):
        parts.append(part)
        size += len(part)
        if size > length:
            return "".join(parts)[: length - 1] + ELLIPSIS
    return "".join(parts)


def has_parts(value: Plain) -> bool:
    """Return whether a value is a list or an object, and not one that stands for a single value."""
    return isinstance(value, list) or (isinstance(value, dict) and next(iter(value), "") not in SCALARS)


def line(value: Plain, length: int = LINE_MAX) -> str:
    """Return a value in one line for people, cut to a length with an ellipsis."""
    return one_line(value if isinstance(value, str) else _words(value, length), length)


def one_line(text: str, length: int = LINE_MAX) -> str:
    """Return a text with each run of spaces and line ends as one space, cut to a length with an ellipsis."""
    whole = len(text) <= 2 * length
    if not (whole and text.isprintable() and "  " not in text) or text[:1] == " " or text[-1:] == " ":
        text = " ".join(text[: 2 * length].split()) + ("" if whole else ELLIPSIS)
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def _words(value: Plain, length: int) -> str:
    """Return the beginning of a value as text, a little longer than asked for."""
    words: list[str] = []
    add = words.append
    size = 0
    rest: Iterator[Any] = iter((value,))
    named, first, end = False, True, ""
    stack: list[tuple[Iterator[Any], bool, str]] = []  # containers that are open: the rest, and the end
    while True:
        for entry in rest:
            item = entry
            if first:
                first = False
            else:
                add(", ")
            if named:
                name, item = entry
                add(name)
                add(": ")
            kind = type(item)
            if kind is str:
                add(item)
                size += len(item)
            elif kind is dict or kind is list:
                word, inner = _opened(item, length)
                add(word)
                if inner is not None and size <= length:
                    size += len(word)
                    stack.append((rest, named, end))
                    named = kind is dict and ITEMS not in item
                    rest, first, end = iter(inner), True, "}" if named else "]"
                    break
                size += len(word)
            else:
                word = scalar(item)
                add(word)
                size += len(word)
            size += 2
            if size > length:
                return "".join(words)
        else:
            add(end)
            if not stack:
                return "".join(words)
            rest, named, end = stack.pop()
            first = False


def _opened(item: dict[str, Plain] | list[Plain], length: int) -> tuple[str, Any]:
    """Return the text that a container begins with and its contents, None if that is the whole text."""
    if isinstance(item, list):
        if len(item) > _FEW and _NUMBERS.issuperset(map(type, item)):
            return f"[{', '.join(map(str, item[:length]))}]", None
        return "[", item
    name = next(iter(item), "")
    if name in SCALARS:
        return str(item[name]), None
    if name == REF:
        return f"#{item[REF]}", None
    if ITEMS in item:
        items = item[ITEMS]
        return "[", items if isinstance(items, list) else []
    if name not in (TYPE, ID):
        if len(item) <= length and _WITHOUT_PARTS.issuperset(map(type, item.values())):
            return f"{{{_members(item)}}}", None
        return "{", item.items()
    kind = item.get(TYPE)
    word = kind.split(",", 1)[0].split("`", 1)[0].rpartition(".")[2] if isinstance(kind, str) else ""
    return word + "{", [(key, entry) for key, entry in item.items() if key not in (TYPE, ID)]


def _members(item: dict[str, Plain]) -> str:
    return ", ".join(
        [
            f"{name}: {_WORDS[entry] if entry is None or entry is True or entry is False else entry}"
            for name, entry in item.items()
        ]
    )


def scalar(value: bool | int | float | str | None) -> str:
    """Return a value without parts as text: ``null``, ``true``, ``5``, ``1.5``, a text as it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
