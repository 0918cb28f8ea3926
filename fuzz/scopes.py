"""Structures while they are being drawn, and the fields that references between them resolve to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msmqwire.schema import Bits, Close, Each, Flags, Header, Record, Repeat, UInt
from msmqwire.schema.record import flags_class


@dataclass(slots=True)
class OpenStructure:
    """A structure that is being drawn.

    Attributes:
        header: its schema.
        path: its path from the root.
        start: its offset.
        values: the values drawn so far, by field; flag words are integers until `finish`.
        inner: the structures that are its fields.
    """

    header: Header
    path: str
    start: int
    values: dict[str, Any] = field(default_factory=dict)
    inner: dict[str, OpenStructure] = field(default_factory=dict)

    def finish(self) -> Record:
        """Return the record."""
        fields: dict[str, Any] = {}
        for part in self.header.parts:
            if part.name in self.inner:
                fields[part.name] = self.inner[part.name].finish()
            elif isinstance(part, Flags):
                fields[part.name] = flags_class(self.header.key, part)(self.values[part.name])
            elif isinstance(part, Repeat | Each):
                fields[part.name] = [item and item.finish() for item in self.values[part.name]]
            elif not isinstance(part, Close):
                fields[part.name] = self.values[part.name]
        return self.header.record(**fields)

    def descend(self, path: str) -> tuple[OpenStructure, list[str]]:
        """Follow a path into inner structures; return the innermost, and the remaining path."""
        structure, names = self, path.split(".")
        while len(names) > 1 and names[0] in structure.inner:
            structure, names = structure.inner[names[0]], names[1:]
        return structure, names

    def number(self, path: str) -> int:
        """Return the integer at a path; 0 when it is absent."""
        structure, names = self.descend(path)
        return int(structure.values.get(names[0], 0))


class _Target(NamedTuple):
    """The field that a reference resolves to.

    Attributes:
        owner: the structure that has the field.
        name: the name of the field. bits: the referred bits of a flag word; None for an integer.
    """

    owner: OpenStructure
    name: str
    bits: Bits | None

    @property
    def key(self) -> tuple[int, str]:
        return id(self.owner), self.bits.name if self.bits else self.name


class Scopes:
    """The structures around the one that is being drawn, and which of their fields are settled.

    A field is settled once its value must not change any more.

    Attributes:
        open: from the outermost to the innermost.
    """

    def __init__(self, open_structures: list[OpenStructure], settled: set[tuple[int, str]]) -> None:
        self.open = open_structures
        self._settled = settled

    def snapshot(self) -> Scopes:
        """Return the present scopes, for a reference that is resolved later."""
        return Scopes(list(self.open), self._settled)

    def path(self, name: str) -> str:
        """Return the path of a field of the innermost structure."""
        prefix = self.open[-1].path
        return f"{prefix}.{name}" if prefix else name

    def value(self, path: str) -> int | None:
        """Return the value that a reference resolves to; None in an absent header."""
        target = self._resolve(path)
        if target is None:
            return None
        value: int = target.owner.values[target.name]
        return value if target.bits is None else (value & target.bits.mask) >> target.bits.shift

    def settle(self, path: str, value: int) -> None:
        """Set the field that a reference resolves to, for good."""
        target = self._resolve(path)
        assert target is not None, path
        owner, name, bits = target
        if bits is not None:
            value = (owner.values[name] & ~bits.mask) | value << bits.shift
        owner.values[name] = value
        self._settled.add(target.key)

    def settle_bits(self, owner: OpenStructure, bits: Bits) -> None:
        """Keep the present value of bits."""
        self._settled.add((id(owner), bits.name))

    def is_settled(self, path: str) -> bool:
        """Whether a reference resolves to a settled field, or to an absent header."""
        target = self._resolve(path)
        return target is None or target.key in self._settled

    def widest(self, path: str) -> int:
        """Return the greatest value of the field that a reference resolves to."""
        target = self._resolve(path)
        assert target is not None
        if target.bits is not None:
            return (1 << target.bits.width) - 1
        part = target.owner.header.part(target.name)
        assert isinstance(part, UInt)
        return max(part.must) if part.must else (1 << part.bits) - 1

    def _resolve(self, path: str) -> _Target | None:
        """The target of a reference; None in an absent header."""
        for scope in reversed(self.open):
            owner, names = scope.descend(path)
            if owner.values.get(names[0]) is not None:
                part = owner.header.part(names[0])
                bits = next(b for b in part.parts if b.name == names[1]) if isinstance(part, Flags) else None
                return _Target(owner, names[0], bits)
        return None
