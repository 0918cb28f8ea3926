"""Conditions of lint rules on a packet, and their translation to Lua."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from msmqwire.schema import Flags, Header
from msmqwire.schema.nodes import Part

WORD: Final = 0xFFFF_FFFF


class Untranslatable(Exception):
    """A rule has no counterpart in Lua."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer, or a boolean used as one."""

    lua: str


@dataclass(frozen=True, slots=True)
class Truth:
    lua: str


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


@dataclass(frozen=True, slots=True)
class Structure:
    """The packet, or a structure in it: `present` is the condition for it, empty if it is always there."""

    headers: tuple[Header, ...]
    path: str
    present: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    node: Flags
    path: str


@dataclass(frozen=True, slots=True)
class Span:
    """Text, bytes, a GUID or padding, from `start` to `stop` of it."""

    node: Part
    path: str
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A method before its call."""

    call: Callable[[list[Value]], Value]


Value: TypeAlias = "Number | Truth | Constant | Structure | Word | Span | Function"


def both(first: str, second: str) -> str:
    if first == "true" or second == "false":
        return second
    return first if second == "true" else f"(({first}) and ({second}))"


def chosen(condition: str, first: str, second: str) -> str:
    """Return the condition that one of two holds, by another."""
    if condition in ("true", "false"):
        return first if condition == "true" else second
    if first == "true":
        return condition if second == "false" else f"(({condition}) or ({second}))"
    if first == "false":
        return both(negated(condition), second)
    if second == "false":
        return both(condition, first)
    return f"(({condition}) and ({first}) or not ({condition}) and ({second}))"


def negated(condition: str) -> str:
    return {"true": "false", "false": "true"}.get(condition, f"not ({condition})")


def any_of(conditions: Iterable[str]) -> str:
    return f"({' or '.join(conditions) or 'false'})"


def masked(number: str, mask: int) -> str:
    """Return the bits of a number under a mask, as a sum of its runs of bits."""
    runs, shift = [], 0
    while mask >> shift:
        if mask >> shift & 1:
            width = 1
            while mask >> (shift + width) & 1:
                width += 1
            above = number if shift + width == 32 else f"{number} % {1 << shift + width}"
            runs.append(f"{above} - {number} % {1 << shift}" if shift else above)
            shift += width
        else:
            shift += 1
    return f"({' + '.join(runs) or '0'})"
