"""Names in generated code: the codes of `struct`, positions, and the structures that enclose a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from re import sub

from msmqwire.schema.nodes import Bits, Flags, Header, OemText, UInt

CODES = {8: "B", 16: "H", 32: "I", 64: "Q"}
INTEGER_CODES = frozenset("HIQhiq")
"""Codes of `struct` to which the byte order makes a difference."""


def byte_order(part: UInt | Flags) -> str:
    """Return the character of `struct` for the byte order of a part; empty where it makes no difference."""
    if part.bits == 8:
        return ""
    return ">" if part.big_endian else "<"  # MQMQ-2.2.18-01


class Constants:
    """Names in generated code beside its own variables.

    Attributes:
        expressions: the Python expressions of values, by name.
    """

    def __init__(self) -> None:
        self.expressions: dict[str, str] = {}

    def name(self, wanted: str, expression: str) -> str:
        """Return the name of a value, the same one for the same expression."""
        name = identifier(wanted)
        while self.expressions.setdefault(name, expression) != expression:
            name += "_"
        return name

    def packing(self, action: str, codes: str) -> str:
        """Return the name of ``pack`` or ``unpack_from`` for the codes, with their byte order."""
        order = "big_" if codes[0] == ">" else ""
        return self.name(f"{action}_{order}{codes[1:]}", f"Struct({codes!r}).{action}")

    def maker(self, header: Header) -> str:
        """Return the name of the function that makes a record of a structure."""
        return self.name(f"new_{header.key}", f"maker_of({header.key!r})")

    def record(self, header: Header) -> str:
        """Return the name of the record class of a structure."""
        return self.name(f"R_{header.key}", f"record_of({header.key!r})")

    def part(self, header: Header, part: OemText) -> str:
        """Return the name of a part of a structure."""
        return self.name(f"P_{header.key}_{part.name}", f"part_of({header.key!r}, {part.name!r})")

    def flags(self, header: Header, part: Flags) -> str:
        """Return the name of the function that makes a flag word."""
        return self.name(f"F_{header.key}_{part.name}", f"flags_of({header.key!r}, {part.name!r})")

    def flag_texts(self, header: Header, part: Flags) -> str:
        """Return the name of the texts of the words of a field."""
        return self.name(f"T_{header.key}_{part.name}", f"FlagTexts({header.key!r}, {part.name!r})")


def identifier(name: str) -> str:
    """Return a name with an underscore for each character that a name in Python can't have."""
    return sub(r"\W", "_", name)


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
