"""Limits of decoding a hostile body, and the amount that one body has used of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmqwire.names.printable import counted

_MEMORY_BASE: Final = 8 << 20
_MEMORY_FACTOR: Final = 8

_EXACT: Final = 14
"""The share of readers that count exactly, of the 16 MiB and 16 bytes a byte that decoding may take."""

NAMES_BASE, NAMES_FACTOR = 1 << 20, 8
"""Characters of the names of all elements of XML at the most, each with its namespace, which expat makes of
each; and how many more for each byte of the body."""
DICT_COST: Final = 240
"""Bytes of memory that an object of plain data is counted with, without its values."""
LIST_COST: Final = 72
ITEM_COST: Final = 8
"""Bytes of a place in a list or object."""
VALUE_COST: Final = 32
"""Bytes of a number."""
TEXT_COST: Final = 56
"""Bytes of a text without its characters."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of decoding one body; an excess is a problem, and the part before it is kept.

    Attributes:
        depth: structures within each other, in the bytes: not of references, which may be a long chain.
        records: records, elements or objects.
        items: items of arrays, those of null runs included.
        references: references to objects.
        text: characters of all texts, copies of the same text included.
        memory: bytes that the value may take, as counted here; None for 8 MiB and 8 for each byte,
            and for 14 of both where a reader counts all that it takes.
    """

    depth: int = 128
    records: int = 1_000_000
    items: int = 2_000_000
    references: int = 1_000_000
    text: int = 64 << 20
    memory: int | None = None


DEFAULT: Final = Limits()


class LimitExceeded(Exception):
    """A limit does not allow for the next value; never leaves `msmqwire.bodies`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Budget:
    """The rest of the limits while one body is decoded; a reader may count on its own and hand counts in at
    times.

    Attributes:
        depth: structures within each other, see `Limits`.
        memory: bytes left.
        inside: whether bytes are read that were unpacked from the body, which takes memory as well.
    """

    __slots__ = ("_items", "_records", "_references", "_text", "depth", "inside", "limits", "memory")

    def __init__(self, limits: Limits, size: int) -> None:
        """Begin with the limits for a body of a size."""
        self.limits = limits
        self.depth = limits.depth
        self.inside = False
        self.memory = _MEMORY_BASE + _MEMORY_FACTOR * size if limits.memory is None else limits.memory
        self._records, self._items = limits.records, limits.items
        self._references, self._text = limits.references, limits.text

    def spend(self, memory: int) -> None:
        """Count memory. Raises LimitExceeded."""
        self.memory -= memory
        if self.memory < 0:
            # NMF-3.1.4.11-01
            raise LimitExceeded("the value takes more memory than the limit for a body of this size")

    def exact(self, size: int) -> None:
        """Allow for more memory, for a reader that counts all that it takes, not only the value."""
        self.memory = self.exactly(size)

    def exactly(self, size: int) -> int:
        """Return the memory that is left for a reader that counts all its own."""
        if self.limits.memory is not None or self.inside:
            return self.memory
        return self.memory + (_EXACT - _MEMORY_FACTOR) * ((1 << 20) + size)

    def records(self, count: int = 1) -> None:
        """Count records. Raises LimitExceeded."""
        self._records -= count
        if self._records < 0:
            # NMF-3.1.4.11-01
            raise LimitExceeded(f"there are more than {counted(self.limits.records, 'record')}")

    def items(self, count: int) -> None:
        """Count items of an array and their places, before they are made. Raises LimitExceeded."""
        self._items -= count
        if self._items < 0:
            raise LimitExceeded(f"there are more than {counted(self.limits.items, 'item')} of arrays")
        self.spend(ITEM_COST * count)

    def references(self, count: int = 1) -> None:
        """Count references. Raises LimitExceeded."""
        self._references -= count
        if self._references < 0:
            raise LimitExceeded(f"there are more than {self.limits.references:,} references")

    def text(self, characters: int) -> None:
        """Count a text. Raises LimitExceeded."""
        self.copied(characters)
        self.spend(TEXT_COST + characters)

    def copied(self, characters: int) -> None:
        """Count a text that stands in the value once more. Raises LimitExceeded."""
        self._text -= characters
        if self._text < 0:
            # NMF-3.1.4.11-01
            raise LimitExceeded(f"the texts have more than {counted(self.limits.text, 'character')}")
