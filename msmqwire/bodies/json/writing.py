"""Writing of JSON: plain data as other programs read it, without the names that begin with ``$``."""

from __future__ import annotations

import base64
import math
import re
from typing import Any, Final

from msmqwire.bodies import plain, scalars
from msmqwire.bodies.body import Plain
from msmqwire.errors import InvalidValue

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""A number of JSON, which is written as it is, zeros and exponent included."""


def write(value: Plain, type_: str | None = None) -> bytes:
    """Return a value as JSON in UTF-8.

    Values that JSON lacks are written as serializers of .NET write them: a ``$decimal`` as a number,
    ``$date``, ``$guid`` and ``$timespan`` as text, ``$bytes`` in base64. Names that begin with ``$$`` lose
    one.

    Args:
        value: plain data.
        type_: the ``$type`` that the object gets, as serializers write it that keep types; None for none.

    Raises InvalidValue.
    """
    if type_ is not None:
        if not isinstance(value, dict):
            raise InvalidValue("only an object has a type in JSON; leave the type out", path="type")
        value = {plain.TYPE: type_, **value}
    try:
        return "".join(_Writer().tokens(value)).encode()
    except UnicodeEncodeError:
        raise InvalidValue("a text with half a surrogate pair can't be written") from None


class _Writer:
    """One value on its way to text, with a stack of its own in place of recursion."""

    def __init__(self) -> None:
        self._stack: list[tuple[Any, str]] = []  # the rest of a container, and its end
        self._path: list[str | int] = []

    def tokens(self, value: Plain) -> list[str]:
        try:
            return self._tokens(value)
        except InvalidValue as exc:
            raise InvalidValue(exc.why, path=scalars.path_of(self._path)) from None

    def _tokens(self, value: Plain) -> list[str]:
        out: list[str] = []
        stack, path = self._stack, self._path
        item: Any = value
        while True:
            inner = _simple(item, out)
            if isinstance(inner, dict):
                out.append("{")
                stack.append((iter(inner.items()), "}"))
                path.append("")
            elif inner is not None:
                out.append("[")
                stack.append((iter(enumerate(inner)), "]"))
                path.append("")
            comma = inner is None
            while stack:
                rest, end = stack[-1]
                following = next(rest, None)
                if following is None:
                    stack.pop()
                    path.pop()
                    out.append(end)
                    comma = True
                    continue
                if comma:
                    out.append(",")
                name, item = following
                path[-1] = name
                if end == "}":
                    if not isinstance(name, str):
                        path.pop()
                        raise InvalidValue(f"the name of a member is a text, not {name!r:.40}")
                    out.append(plain.quoted(name[1:] if name.startswith("$$") else name) + ":")
                break
            else:
                return out


def _simple(item: Any, out: list[str]) -> Any:
    """Add an item without parts to the text; return one that has parts."""
    if isinstance(item, list):
        return item
    if isinstance(item, dict):
        name = next(iter(item), "")
        if name not in plain.SCALARS:
            return item.get(plain.ITEMS, item)
        out.append(_written(item, name))
    elif isinstance(item, str):
        out.append(plain.quoted(item))
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise InvalidValue(f"{item} is not a value of JSON; write it as a text, or as null")
        out.append(repr(item))
    elif item is None or isinstance(item, int):
        out.append(plain.scalar(item))
    else:
        raise InvalidValue(f"{type(item).__name__} is not a value of JSON")
    return None


def _written(item: dict[str, Plain], name: str) -> str:
    if name == plain.DECIMAL:
        text = item[name]
        if isinstance(text, str) and _NUMBER.fullmatch(text):
            return text
        return format(scalars.decimal_of(item), "f")
    if name == plain.FLOAT:
        raise InvalidValue(f"{scalars.shown(item)} is not a value of JSON; write it as a text, or as null")
    if name == plain.BYTES:
        return plain.quoted(base64.b64encode(scalars.bytes_of(item)).decode())
    text = item[name]
    if not isinstance(text, str):
        raise InvalidValue(f"{scalars.shown(item)} is not text after {name}")
    return plain.quoted(without_zeros(scalars.date_of(item)) if name == plain.DATE else text)


def without_zeros(date: str) -> str:
    """Return a date with seven digits of a second, which .NET reads, or without those that are zero."""
    if "." not in date:
        return date
    before, _, after = date.partition(".")
    digits = after[:9].rstrip("0")[:7]
    return f"{before}{'.' if digits else ''}{digits}{after[9:]}"
