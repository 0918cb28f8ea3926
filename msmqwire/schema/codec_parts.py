"""What generated code names: the codes of `struct`, positions, and the structures that enclose a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msmqwire.schema.nodes import Bits, Flags, Header, UInt

CODES = {8: "B", 16: "H", 32: "I", 64: "Q"}
INTEGER_CODES = frozenset("HIQhiq")
"""Codes of `struct` to which the byte order makes a difference."""


def byte_order(part: UInt | Flags) -> str:
    """Return the character of `struct` for the byte order of a part; empty where it makes no difference."""
    if part.bits == 8:
        return ""
    return ">" if part.big_endian else "<"


@dataclass
class Position:
    """A position in the bytes: a variable and a constant."""

    base: str
    plus: int = 0

    def __str__(self) -> str:
        return f"{self.base}+{self.plus}" if self.plus else self.base

    def advanced(self, count: int) -> Position:
        return Position(self.base, self.plus + count)


@dataclass
class Scope:
    """A structure being read: its start, integers and inner structures."""

    header: Header
    start: Position
    raws: dict[str, str] = field(default_factory=dict)  # field -> variable with its integer
    inner: dict[str, Scope] = field(default_factory=dict)
    outs: dict[str, str] = field(default_factory=dict)  # field -> expression of its value


def referenced(scopes: Sequence[Scope], path: str) -> tuple[str, Bits | None]:
    """Resolve a path from the innermost scope; return the variable of its integer, and the named bits.

    Raises KeyError.
    """
    head, *rest = path.split(".")
    for scope in reversed(scopes):
        owner, names = scope, [head, *rest]
        while names[0] in owner.inner and len(names) > 1:
            owner, names = owner.inner[names[0]], names[1:]
        if names[0] not in owner.raws:
            continue
        raw = owner.raws[names[0]]
        if len(names) == 1:
            return raw, None
        part = owner.header.part(names[0])
        assert isinstance(part, Flags)
        return raw, part.part(names[1])
    raise KeyError(path)
