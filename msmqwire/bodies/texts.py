"""Bodies that are text: UTF-8, or UTF-16 with or without a byte order mark."""

from __future__ import annotations

import codecs
import re
from typing import Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Content, Plain, Problem
from msmqwire.bodies.limits import Budget
from msmqwire.bodies.scalars import shown
from msmqwire.errors import InvalidValue, MalformedBody

# Control characters including C1, private use and noncharacters; tab, line ends and form feed belong to
# text.
_NOT_TEXT: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\uf8ff\ufff9-\uffff]")

_NOT_UTF8_TEXT: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")
"""Fewer characters than in UTF-16, since other bytes are hardly ever well-formed UTF-8."""
_ASCII_TEXT: Final = bytes((0x09, 0x0A, 0x0C, 0x0D, *range(0x20, 0x7F)))
"""The ASCII characters that are text."""
_LATIN_SHARE: Final = 0.75
"""The share of code units below 0x100 from which bytes without a byte order mark count as UTF-16."""
_DECLARED: Final = re.compile(
    rb"<\?xml version=[\"'][0-9.]+[\"'] encoding=[\"']"
    rb"(iso-?8859-(?:[1-9]|1[013456])|latin-?1|(?:windows-|cp)125[0-8]|koi8-[ru])[\"']",
    re.IGNORECASE,
)
"""Declarations of encodings that have one byte a character: no other codec is looked up."""
_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def recognises(body: bytes) -> bool:
    """Return whether bytes are text."""
    return decoded(body) is not None


def read(body: bytes, budget: Budget) -> Content:
    """Read a text. Raises MalformedBody if the bytes are none."""
    text = decoded(body)
    if text is None:
        raise MalformedBody("the bytes are not text in UTF-8 or UTF-16", offset=0)
    return of_text(text, budget)


def of_text(text: str, budget: Budget) -> Content:
    """Return a text as content."""
    room = (
        budget.limits.text if budget.limits.memory is None else min(budget.limits.text, budget.limits.memory)
    )
    problems: tuple[Problem, ...] = ()
    if len(text) > room:
        problems = (Problem(f"the text has more characters than the limit, {room:,}", "", room),)
        text = text[:room]
    return Content("text", text, plain.one_line(text), problems)


def write(value: Plain, type_: str | None = None) -> bytes:
    """Return a text in UTF-8, or in the encoding named as its type. Raises InvalidValue."""
    if not isinstance(value, str):
        raise InvalidValue(f"{shown(value)} is not text; write it as json")
    try:
        return value.encode(type_ or "utf-8")
    except LookupError:
        raise InvalidValue(f"{type_!r:.80} is not an encoding; write utf-8 or utf-16", path="type") from None
    except UnicodeEncodeError as exc:
        why = f"{value[exc.start]!a} can't be written in {type_ or 'UTF-8'}"
        raise InvalidValue(why, path=f"[{exc.start}]") from None


def decoded(body: bytes) -> str | None:
    """Return bytes as text, without a byte order mark and one null at the end; None if they are not text."""
    text = _utf16(body)
    return _utf8(body) if text is None else text


def of_declared_encoding(body: bytes) -> str | None:
    """Return XML in the encoding that its declaration names, of one byte a character; None for anything else.

    Programs of COM and Java write it so; programs of .NET write UTF-8 or UTF-16.
    """
    declared = _DECLARED.match(body)
    if declared is None:
        return None
    try:
        text = body.decode(declared[1].decode())
    except UnicodeDecodeError:
        return None
    return text if text and not _NOT_TEXT.search(text) else None


def is_utf16(body: bytes) -> bool:
    """Return whether bytes are text in UTF-16."""
    return _utf16(body) is not None


def _utf16(body: bytes) -> str | None:
    if len(body) < 2 or len(body) % 2:
        return None
    marked = body[:2] in _MARKS
    if not marked and body[1::2].count(0) < _LATIN_SHARE * len(body) / 2:
        return None
    try:
        text = body.decode("utf-16" if marked else "utf-16-le").removesuffix("\0")
    except UnicodeDecodeError:
        return None
    return text if text and not _NOT_TEXT.search(text) else None


def _utf8(body: bytes) -> str | None:
    if body.isascii():
        text = body.decode("ascii").removesuffix("\0")
        return text if text and not text.encode().translate(None, _ASCII_TEXT) else None
    try:
        text = body.decode("utf-8-sig").removesuffix("\0")
    except UnicodeDecodeError:
        return None
    return text if text and not _NOT_UTF8_TEXT.search(text) else None
