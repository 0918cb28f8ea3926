"""Slots of the packet values that a generated reader keeps for later checks.

In Lua, ``V`` has the integers and flag words, and the offsets of texts, bytes and padding, whose lengths are
in ``N``; ``O`` the offsets of the fields that a refusal may name; ``X`` marks padding whose length differs
from the alignment. All are false for fields that are not in the packet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msmqwire.schema import Bits, Flags, Header, UInt
from msmqwire.schema.nodes import Choice, Maybe, Raw, Repeat, Sub, Text, View, inner_headers
from msmqwire.schema.references import references


@dataclass(frozen=True, slots=True)
class Place:
    """A structure at its place in a packet: its path is empty for the packet itself, ``[]`` marks a list."""

    header: Header
    path: str

    def of(self, name: str) -> str:
        """Return the path of a part."""
        return f"{self.path}.{name}" if self.path else name


class ValueSlots:
    """The slots of the fields whose values are kept, by path."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}
        self.blamed: set[str] = set()

    def keep(self, path: str) -> None:
        """Keep a field from now on."""
        self._indices.setdefault(path, len(self._indices) + 1)

    def __contains__(self, path: str) -> bool:
        return path in self._indices

    def __len__(self) -> int:
        return len(self._indices)

    def value(self, path: str) -> str:
        """Return the expression of a value. Raises KeyError for a field that is not kept."""
        return f"V[{self._indices[path]}]"

    def length(self, path: str) -> str:
        """Return the expression of the length of text, bytes or padding."""
        return f"N[{self._indices[path]}]"

    def offset(self, path: str) -> str:
        """Return the expression of the offset of a field that a refusal may name."""
        return f"O[{self._indices[path]}]"

    def odd(self, path: str) -> str:
        """Return the expression for whether padding has a wrong length."""
        return f"X[{self._indices[path]}]"

    def forgotten(self, packets: Sequence[Header]) -> list[str]:
        """Return the statements that clear the values of earlier packets that not all kinds have."""
        places = [Place(packet, "") for packet in packets]
        always = set(_always(places[0])).intersection(*map(_always, places[1:]))
        numbers = {path for place in places for path in _numbers(place)}
        heads = {head for packet in packets for head in packet.fields}
        lines = []
        for path in self._indices:
            if path not in always and path.partition(".")[0] in heads:
                number = f"  {self.value(path)} = false"
                spans = f"  {self.value(path)}, {self.length(path)}, {self.odd(path)} = false, false, false"
                lines.append(number if path in numbers else spans)
        return lines

    def references(self, place: Place) -> None:
        """Keep the fields that the parts of a structure refer to, and those that decide whether it is
        well-formed.
        """
        self._references((place,))

    def _references(self, scopes: tuple[Place, ...]) -> None:
        place = scopes[-1]
        for part in place.header.parts:
            if isinstance(part, UInt) and (part.must is not None or part.size_of):
                self.keep(place.of(part.name))
                self.blamed.add(place.of(part.name))
            if isinstance(part, View):
                self.keep(part.of)
            for reference in references(part):
                path = resolve(scopes, reference)[0]
                self.keep(path)
                fits = part.node if isinstance(part, Maybe) else part
                if isinstance(fits, Raw | Text | Choice | Repeat | Sub):
                    self.blamed.add(path)
        for inner in inner_places(place):
            self._references((*scopes, inner))


def _always(place: Place) -> Iterator[str]:
    """Yield the paths of all parts that are in every packet."""
    for part in place.header.parts:
        yield place.of(part.name)
        if isinstance(part, Sub):
            yield from _always(Place(part.header, place.of(part.name)))


def _numbers(place: Place) -> Iterator[str]:
    """Yield the paths of all integers and flag words."""
    for part in place.header.parts:
        if isinstance(part, UInt | Flags):
            yield place.of(part.name)
    for inner in inner_places(place):
        yield from _numbers(inner)


def inner_places(place: Place) -> Iterator[Place]:
    """Yield the structures directly inside one, views apart."""
    for part in place.header.parts:
        path = place.of(part.name) + ("[]" if isinstance(part, Repeat) else "")
        for inner in [] if isinstance(part, View) else inner_headers(part):
            yield Place(inner, path)


def resolve(scopes: tuple[Place, ...], reference: str) -> tuple[str, Bits | None]:
    """Return the path of the integer that a reference names, and the named bits. Raises KeyError."""
    names = reference.split(".")
    for place in reversed(scopes):
        header, path, rest = place.header, place.path, names
        while rest and rest[0] in header.fields:
            part = header.part(rest[0])
            path = f"{path}.{rest[0]}" if path else rest[0]
            if isinstance(part, UInt | Flags):
                return path, part.part(rest[1]) if isinstance(part, Flags) and len(rest) > 1 else None
            header, rest = inner_headers(part)[0], rest[1:]
    raise KeyError(reference)


def bits_of(word: str, bits: Bits) -> str:
    """Return the expression of named bits of a flag word of at most 32 bits, without a call."""
    above = word if bits.shift + bits.width == 32 else f"{word} % {1 << bits.shift + bits.width}"
    return f"({above} - {word} % {1 << bits.shift}) / {1 << bits.shift}" if bits.shift else above
