"""Limits on the command line: numbers, and the word for no limit."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.errors import InvalidValue

_DIGITS_MAX: Final = 20
DEFAULT: Final = "default"


def limit_of(text: str, name: str, *, default: bool = False) -> Any:
    """Return a number, or None for ``none``; with `default` also that word. Raises InvalidValue."""
    word = text.lower()
    if word == "none":
        return None
    if default and word == DEFAULT:
        return DEFAULT
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        others = "none or default" if default else "none"
        raise InvalidValue(f"{text[:100]!r} is neither a number nor {others}", path=name)
    return int(text)
