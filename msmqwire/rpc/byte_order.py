"""PDUs of big-endian senders: their bytes in the order of the schemas, and back ([C706] 14.1).

Each PDU says in its data representation label in which byte order its integers are. The schemas are
little-endian; the integers of another PDU are turned before it is read, and after it was built. No field
changes its place, with one exception: an interface version is one integer of 32 bits, so that the minor
version stands before the major one.

Tokens, signatures and stubs stay as they are: the first two have a byte order of their own, a stub is read by
its declaration.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.rpc.constants import PfcFlags
from msmqwire.rpc.pdus import BIG_ENDIAN, DREP_OFFSET, SYNTAX_ID
from msmqwire.schema import Align, Flags, Guid, Header, Maybe, Raw, Ref, Repeat, Sub, UInt

_GUID_PARTS: Final = (4, 2, 2)
_LABEL: Final = BIG_ENDIAN.to_bytes(4, "little")


def is_big_endian(head: bytes | bytearray) -> bool:
    """Return whether a PDU that begins so is big-endian, by its data representation label."""
    return head[DREP_OFFSET : DREP_OFFSET + len(_LABEL)] == _LABEL


def turned(schema: Header, data: bytes, *, big_endian: bool) -> bytes:
    """Return the bytes of a structure in the other byte order.

    `big_endian` is the order of `data`. Where they end early, or a count is wrong, the rest stays as it is:
    reading them reports the fault.
    """
    turner = _Turner(data, "big" if big_endian else "little")
    turner.structure(schema)
    return bytes(turner.out)


class _Turner:
    def __init__(self, data: bytes, order: Any) -> None:
        self.out, self._order, self._at = bytearray(data), order, 0

    def integer(self, size: int) -> int:
        """Turn the next integer, and return its value."""
        at, self._at = self._at, self._at + size
        piece = self.out[at : at + size]
        if len(piece) == size:
            self.out[at : at + size] = piece[::-1]
        return int.from_bytes(piece, self._order)

    def structure(self, schema: Header) -> dict[str, Any]:
        """Turn a structure, and return the values of its integers."""
        values: dict[str, Any] = {}
        if schema is SYNTAX_ID:
            self.guid()
            self.integer(4)
            return values
        for part in schema.parts:
            if self._at >= len(self.out):
                break
            self.part(part, values)
        return values

    def part(self, part: Any, values: dict[str, Any]) -> None:
        match part:
            case UInt() | Flags() if part.name == "packed_drep":
                self._at += part.size  # octets
            case UInt() | Flags():
                values[part.name] = self.integer(part.size)
            case Guid():
                self.guid()
            case Sub():
                values[part.name] = self.structure(part.header)
            case Repeat():
                for _ in range(values[part.count]):
                    if self._at >= len(self.out):
                        return
                    self.structure(part.item)
            case Maybe():  # the object of a request
                if values["header"]["pfc_flags"] & PfcFlags.OBJECT_UUID:
                    self.part(part.node, values)
            case Align():
                self._at += -self._at % part.to
            case Raw(length=Ref(path=path)):
                self._at += values[path]
            case Raw():  # the rest
                self._at = len(self.out)
            case _:
                raise TypeError(part)

    def guid(self) -> None:
        for size in _GUID_PARTS:
            self.integer(size)
        self._at += 16 - sum(_GUID_PARTS)
