"""Why reading of a message of WCF ends before the end of its bytes."""

from __future__ import annotations

from msmqwire.names.printable import agreed, counted


class Fault(Exception):
    """Bytes that can't be read on from; never leaves `msmqwire.bodies.wcf`.

    Attributes:
        why: one sentence.
        path: the field, in the names of its specification; empty for the element that is open.
        offset: the byte, from the start of the bytes that the raiser was given.
    """

    def __init__(self, why: str, offset: int, path: str = "") -> None:
        super().__init__(why)
        self.why, self.offset, self.path = why, offset, path


def announced(size: int, left: int) -> str:
    """Return the reason why this number of bytes can't be read."""
    return f"{counted(size, 'byte', 'are')} announced and {agreed(left, 'are')} left"


def read_size(data: bytes, at: int, largest: int = 0x7FFF_FFFF) -> tuple[int, int]:
    """Read a number of up to five bytes of seven bits, low ones first; return it and where it ends.

    It is a MultiByteInt31 of [MC-NBFX] 2.1.2, and a size of [MC-NMF] 2.2.2 with another largest number.
    """
    value = shift = 0
    for index in range(at, min(at + 5, len(data))):
        part = data[index]
        value |= (part & 0x7F) << shift  # NMF-2.2.2-02
        if part < 0x80:
            if value > largest:  # NBFX-2.1.2-01
                break
            return value, index + 1
        shift += 7
    else:
        if len(data) < at + 5:
            raise Fault("the bytes end within a number", len(data))
    raise Fault(f"a number of five bytes is above {largest:#x}", at)


def build_size(value: int) -> bytes:
    """Return a number as `read_size` reads it, in as few bytes as it needs."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
