"""Bodies as texts of any length, with their line ends, which `Body.text` has in one line."""

from __future__ import annotations

from typing import Final

from msmqwire.bodies import plain, texts
from msmqwire.bodies.body import Body

_TEXTS: Final = frozenset({"xml", "json", "text", "masstransit", "shuttle"})
"""Formats whose bytes are a text."""


def whole_text(body: bytes, found: Body) -> str | None:
    """Return a body as text: a string or number as it is, text of XML and JSON whole; None if it is none.

    Args:
        body: its bytes.
        found: the result of `decode` or `inspect_body` for them.
    """
    value = found.value
    if isinstance(value, str) or not body:
        return value if isinstance(value, str) else ""
    if found.format == "bytes":
        return None
    text = texts.decoded(body) if plain.has_parts(value) and found.format in _TEXTS else None
    return text if text is not None else found.text or None
