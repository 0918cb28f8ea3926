"""Parts that several records have: lengths, texts and primitive values."""

from __future__ import annotations

import struct
from typing import Final

from msmqwire.bodies.body import Plain
from msmqwire.bodies.nrbf.primitives import FIXED, Junk, decimal_text
from msmqwire.bodies.nrbf.records import Primitive

ENDS: Final = "the body ends inside of it"
_int32: Final = struct.Struct("<i")
_UNPACK: Final = {number: struct.Struct("<" + fixed.code) for number, fixed in FIXED.items()}


class Fault(Exception):
    """The rest can't be read; never leaves the reader."""

    def __init__(self, why: str, path: str, offset: int) -> None:
        super().__init__(why)
        self.why, self.path, self.offset = why, path, offset


def length(body: bytes, at: int, path: str) -> tuple[int, int]:
    """Read a count or length of four bytes; return it and the offset after."""
    if at + 4 > len(body):
        raise Fault(ENDS, path, len(body))
    count: int = _int32.unpack_from(body, at)[0]
    if count < 0:
        raise Fault(f"{count} is negative", path, at)
    return count, at + 4


def prefix(body: bytes, at: int, path: str) -> tuple[int, int]:
    """Read the length of a LengthPrefixedString, 2.1.1.6; return it and the offset after."""
    count = 0
    for number, byte in enumerate(body[at : at + 5]):
        count |= (byte & 0x7F) << (7 * number)  # NRBF-2.1.1.6-02
        if byte < 0x80:  # NRBF-2.1.1.6-03
            if count > 0x7FFF_FFFF:  # NRBF-2.1.1.6-04
                raise Fault("the length takes more than 31 bits", path, at)
            return count, at + number + 1
    if at + 5 > len(body):
        raise Fault(ENDS, path, len(body))
    raise Fault("the length takes more than five bytes", path, at)  # NRBF-2.1.1.6-01


def string(body: bytes, at: int, path: str) -> tuple[str, int]:
    """Read a LengthPrefixedString, as names are; return it and the offset after."""
    if at < len(body) and body[at] < 0x80:
        count = body[at]
        at += 1
    else:
        count, at = prefix(body, at, path)
    end = at + count  # NRBF-2.1.1.6-05
    if end > len(body):
        raise Fault(ENDS, path, len(body))
    return body[at:end].decode("utf-8", "replace"), end


def character(body: bytes, at: int, path: str) -> tuple[str, int]:
    """Read a Char, 2.1.1.1, UTF-8; return it and the offset after."""
    if at >= len(body):
        raise Fault(ENDS, path, len(body))
    first = body[at]
    # NRBF-2.1.1.1-01
    size = 1 if first < 0x80 else 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4
    try:
        return body[at : at + size].decode("utf-8"), at + size
    except UnicodeDecodeError:
        if first < 0xF5 and at + size > len(body):
            raise Fault(ENDS, path, len(body)) from None
        raise Fault("the bytes are not a character in UTF-8", path, at) from None


def primitive(body: bytes, at: int, number: int, path: str) -> tuple[Plain, int, str]:
    """Read a primitive value of a type.

    Returns:
        The value, the offset after it, and the fault of the value, empty if there is none.
    """
    fixed = FIXED.get(number)
    if fixed is not None:
        code = _UNPACK[number]
        if at + code.size > len(body):
            raise Fault(ENDS, path, len(body))
        value: Plain = code.unpack_from(body, at)[0]
        at += code.size
        if fixed.convert is not None:
            try:
                value = fixed.convert(value)
            except Junk as exc:
                return exc.value, at, exc.why
        return value, at, ""
    if number == Primitive.CHAR:
        return *character(body, at, path), ""
    if number == Primitive.DECIMAL:
        text, at = string(body, at, path)
        try:
            return decimal_text(text), at, ""
        except Junk as exc:
            return exc.value, at, exc.why
    raise Fault(f"{number} is not a primitive type of a value", path, at - 1)
