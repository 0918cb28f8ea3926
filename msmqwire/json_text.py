"""JSON text: in ASCII without control characters, which any terminal and file can take, or in Unicode."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Any, Final

_NOT_ASCII: Final = re.compile("[\x7f-\U0010ffff]+")
_INDENTED: Final = 64
"""Levels that are indented: with each level of a long chain the text would grow with the square."""


def dumps(data: Any, *, indent: int | None = None) -> str:
    """Return JSON in ASCII without control characters, including DEL; of whatever depth."""
    try:
        return json.dumps(data, indent=indent).replace("\x7f", "\\u007f")
    except RecursionError:  # values of bodies are nested as deep as their senders like
        return dumps_deep(data, indent=indent)


def dumps_deep(data: Any, *, indent: int | None = None) -> str:
    """Return the same, more slowly, of values whose depth is not known; only 64 levels are indented."""
    return _NOT_ASCII.sub(_escape, dumps_unicode(data, indent=indent))


def dumps_unicode(data: Any, *, indent: int | None = None) -> str:
    """Return JSON in Unicode, without NaN and infinities; of whatever depth."""
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
    except RecursionError:  # quick up to some depth
        return "".join(tokens(data, indent))


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def tokens(value: Any, indent: int | None) -> Iterator[str]:
    """Yield a value as JSON text in Unicode, in parts, of whatever depth."""
    comma, colon = (", ", ": ") if indent is None else (",", ": ")
    stack: list[tuple[Iterator[Any], str]] = []  # containers that are open: the rest, and the end
    first = True
    pending: list[Any] = [value]

    def newline(depth: int) -> str:
        return "" if indent is None else "\n" + " " * (indent * min(depth, _INDENTED))

    while True:
        if pending:
            item = pending.pop()
            if isinstance(item, dict):
                if not item:
                    yield "{}"
                else:
                    stack.append((iter(item.items()), "}"))
                    yield "{"
                    first = True
            elif isinstance(item, list):
                if not item:
                    yield "[]"
                else:
                    stack.append((iter(item), "]"))
                    yield "["
                    first = True
            elif isinstance(item, str):
                yield encode_basestring(item)
            else:
                yield json.dumps(item, allow_nan=False)
        if not stack:
            return
        rest, end = stack[-1]
        try:
            following = next(rest)
        except StopIteration:
            stack.pop()
            yield newline(len(stack)) + end
            first = False
            continue
        yield ("" if first else comma) + newline(len(stack))
        first = False
        if end == "}":
            key, following = following
            yield encode_basestring(key) + colon
        pending.append(following)
