"""Reading of JSON to plain data."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

from msmqwire.bodies import plain, texts
from msmqwire.bodies.body import Content, Plain, Problem
from msmqwire.bodies.json.careful import Careful
from msmqwire.bodies.limits import DEFAULT, DICT_COST, ITEM_COST, LIST_COST, TEXT_COST, Budget
from msmqwire.errors import MalformedBody

_START: Final = re.compile(r"\s*(?:\{\s*(?:\"|\})|\[)")
_QUOTED: Final = re.compile(r'\s*+".*"', re.DOTALL)
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET: Final = re.compile(r"[{}\[\]]")
_DIGITS: Final = bytes.maketrans(b"123456789.E", b"0000000000e")
_SMALL: Final = 4096
"""Characters of a text that no limit but that of depth can be met with, unless limits are set."""
_OBJECT_COST, _MEMBER_COST, _TEXT_OR_NUMBER = 80, 160, 64
"""Bytes of memory of an object, of a member with its name, of a short text or a number, at the most."""
_TEXT_SHARE, _NUMBER_SHARE = 13, 8
"""The same for each character of texts, and of numbers."""
_DIGITS_EXACT: Final = 15
"""Digits of a number that a float always keeps."""


class _IrregularError(ValueError):
    """Something that only the careful parser reads."""


def recognises(body: bytes) -> bool:
    """Return whether bytes look like an object or array in JSON, by their beginning."""
    text = texts.decoded(body)
    return text is not None and looks_like_json(text)


def looks_like_json(text: str) -> bool:
    """Return whether a text begins as an object or array does."""
    return _START.match(text) is not None


def is_quoted(text: str) -> bool:
    """Return whether a text may be one text in JSON: whether it is in quotation marks."""
    return _QUOTED.match(text) is not None and text.rstrip().endswith('"')


def read(body: bytes, budget: Budget) -> Content:
    """Read JSON of whatever value. Raises MalformedBody if nothing of it is JSON."""
    text = texts.decoded(body)
    if text is None:
        raise MalformedBody("the bytes are not text in UTF-8 or UTF-16, which JSON is", offset=0)
    return of_text(text, budget)


def of_text(text: str, budget: Budget) -> Content:
    """Read JSON of whatever value from a text. Raises MalformedBody if nothing of it is JSON."""
    value, problems = value_of(text, budget)
    return Content("json", value, None, problems)


def value_of(text: str, budget: Budget) -> tuple[Plain, tuple[Problem, ...]]:
    """Return the value of a text in JSON, and its faults. Raises MalformedBody."""
    if _is_within(text, budget):
        try:
            value: Plain = (_EXACT if _has_long_numbers(text) else _QUICK).decode(text)
        except (ValueError, RecursionError):
            pass
        else:
            return value, ()
    return Careful(text, budget).read()


def _is_within(text: str, budget: Budget) -> bool:
    """Return whether a text is surely within all limits and has no names or texts that need care."""
    if '"$' in text or ("\\" in text and ("\\ud" in text or "\\uD" in text or "\\u0024" in text)):
        return False
    objects, lists = text.count("{"), text.count("[")
    if objects + lists > budget.depth and _depth(text) > budget.depth:
        return False
    limits = budget.limits
    if limits is DEFAULT and len(text) <= _SMALL and budget.memory > _SMALL * DICT_COST:
        return True
    commas = text.count(",")
    if text.isascii():
        memory, room = _memory(text, objects, lists, commas), budget.exactly(len(text))
    else:
        memory = (
            objects * DICT_COST + lists * LIST_COST + commas * (ITEM_COST * 4 + TEXT_COST) + 3 * len(text)
        )
        room = budget.memory
    return (
        memory <= room
        and objects + lists <= limits.records
        and commas <= limits.items
        and len(text) <= limits.text
    )


def _memory(text: str, objects: int, lists: int, commas: int) -> int:
    """Return the most that the values of a text in ASCII take, while it is read too.

    Numbers of up to two digits and texts of up to one character are there already, so that a value which
    takes memory takes at least four characters, or five as a text.
    """
    if _has_long_numbers(text):
        values = commas * (DICT_COST + _TEXT_OR_NUMBER)
    else:
        values = min(commas * _TEXT_OR_NUMBER, len(text) * (_TEXT_SHARE if '"' in text else _NUMBER_SHARE))
    members = text.count(":") * _MEMBER_COST
    return (
        objects * _OBJECT_COST + members + lists * LIST_COST + commas * (ITEM_COST + 1) + values + len(text)
    )


def _has_long_numbers(text: str) -> bool:
    """Return whether a number may have more than a float keeps: digits, or an exponent.

    Look-alikes in a text are found too, which does no harm.
    """
    digits = text.encode().translate(_DIGITS)
    return b"0000000000000000" in digits or b"0e" in digits


def _depth(text: str) -> int:
    depth = most = 0
    for mark in _BRACKET.findall(_STRING.sub("", text)):
        if mark in "{[":
            depth += 1
            most = max(most, depth)
        else:
            depth -= 1
    return most


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise _IrregularError
    return found


def _float(text: str) -> Plain:
    return float(text) if len(text) <= _DIGITS_EXACT and "e" not in text.lower() else exact(text)


def _integer(text: str) -> Plain:
    return int(text) if len(text) <= _DIGITS_EXACT else exact(text)


def exact(text: str) -> Plain:
    """Return a number of JSON: plain if nothing of it is lost, otherwise a decimal as it is written."""
    if len(text) <= 20 and text.lstrip("-").isdigit():
        return plain.integer(int(text))
    if len(text) <= 400:
        value = float(text)
        with suppress(InvalidOperation):  # an exponent that Decimal has not
            if abs(value) != float("inf") and Decimal(repr(value)) == Decimal(text):
                return value
    return {plain.DECIMAL: text}


def _constant(text: str) -> NoReturn:
    raise _IrregularError(text)


_QUICK: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
_EXACT: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant
)
