"""Values for the structures of NCP whose every byte is another, so that order and place show."""

from __future__ import annotations

from itertools import count
from typing import Any

from msmqwire.schema import Flags, Header, OemText, Raw, Ref, Repeat, Sub, UInt

_LEAST, _NUMBERS = 0x21, 0x5D


class DistinctValues:
    """Gives bytes in turn, printable ones, so that a number and its mirror are never the same."""

    def __init__(self) -> None:
        self._count = count()

    def fields(self, header: Header) -> dict[str, Any]:
        """Return the fields of a structure; computed fields are left out, and lists have two items."""
        fields: dict[str, Any] = {}
        computed = {part.count for part in header.parts if isinstance(part, Repeat)}
        computed |= {
            part.length.path
            for part in header.parts
            if isinstance(part, OemText | Raw) and isinstance(part.length, Ref)
        }
        for part in header.parts:
            if part.name not in computed:
                fields[part.name] = self._value(part)
        return fields

    def _value(self, part: Any) -> Any:
        match part:
            case UInt() | Flags():
                return int.from_bytes(self._bytes(part.size), "big")
            case Raw():
                return self._bytes(part.length if isinstance(part.length, int) else 7)
            case OemText():
                return f"NAME{next(self._count)}"
            case Sub():
                return self.fields(part.header)
            case Repeat():
                return [self.fields(part.item) for _ in range(2)]
        raise TypeError(part)

    def _bytes(self, size: int) -> bytes:
        return bytes(_LEAST + next(self._count) % _NUMBERS for _ in range(size))
