"""Values of text records as the characters they stand for: [MC-NBFX] 2.2.3.

If the text contradicts itself, the examples of its chapter 3 are followed: a date at midnight has its
time, a duration is one of XML Schema.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

TICKS: Final = 10_000_000  # NBFX-2.2.3.12-04
"""Units of 100 ns in a second."""
DAY: Final = 86_400 * TICKS  # NBFX-2.2.3.12-04
TICKS_MAX: Final = 3_155_378_976_000_000_000
"""NBFX-2.2.3.12-01: ticks of a date are below this."""
UNSPECIFIED, UTC, LOCAL = range(3)
SCALE_MAX: Final = 28
"""Digits that a decimal of .NET has at most after its point."""

_EPOCH_DAY: Final = date(1, 1, 1).toordinal()
_FLOAT: Final = struct.Struct("<f")


def floating(value: float, digits: str, precision: int) -> str:
    """Return a number as .NET prints it: plain as long as the point is near its digits.

    Args:
        value: the number.
        digits: it in the fewest digits, in any notation of Python.
        precision: digits that every number of its size has: 7 or 15.
    """
    if math.isinf(value):  # NBFX-2.2.3.9-03 and NBFX-2.2.3.10-03
        return "INF" if value > 0 else "-INF"
    if math.isnan(value):
        return "NaN"
    mantissa, _, power = digits.partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    significant = (whole + fraction).lstrip("0")
    if not significant.strip("0"):
        return sign + "0"
    # The point stands this many digits after the first one that counts.
    point = len(whole) + int(power or 0) - (len(whole + fraction) - len(significant))
    significant = significant.rstrip("0")
    if point > max(precision, len(significant)) or point < -3:  # NBFX-2.2.3.9-02 and NBFX-2.2.3.10-02
        rest = "." + significant[1:] if len(significant) > 1 else ""
        return f"{sign}{significant[0]}{rest}E{point - 1:+03d}"
    if point <= 0:  # NBFX-2.2.3.9-01 and NBFX-2.2.3.10-01
        return f"{sign}0.{'0' * -point}{significant}"
    if point >= len(significant):  # NBFX-2.2.3.9-01 and NBFX-2.2.3.10-01
        return sign + significant.ljust(point, "0")
    return f"{sign}{significant[:point]}.{significant[point:]}"


def double(value: float) -> str:
    """Return the characters of a DoubleText."""
    return floating(value, repr(value), 15)


def single(value: float) -> str:
    """Return the characters of a FloatText."""
    digits = ""
    for count in range(6, 10):
        digits = f"{value:.{count}g}"
        try:
            if _FLOAT.pack(float(digits)) == _FLOAT.pack(value):
                break
        except OverflowError:  # these digits are above the largest number of four bytes
            continue
    return floating(value, digits, 7)


def decimal(data: bytes) -> str:
    """Return the characters of a DecimalText: [MS-OAUT] 2.2.26; the zeros of its scale are kept."""
    digits = str(int.from_bytes(data[4:8], "little") << 64 | int.from_bytes(data[8:16], "little"))
    scale = data[2]
    if scale:  # NBFX-2.2.3.11-01
        digits = digits.rjust(scale + 1, "0")
        digits = f"{digits[:-scale]}.{digits[-scale:]}"
    return "-" + digits if data[3] & 0x80 and digits.strip("0.") else digits


def decimal_fault(data: bytes) -> str | None:
    """Return the fault in the bytes of a decimal, None if there is none."""
    if data[2] > SCALE_MAX:
        return f"a decimal of {data[2]} digits after the point, above {SCALE_MAX}"
    if data[3] & 0x7F or data[0] or data[1]:
        return "a decimal with reserved bits set"
    return None


_ZONES: Final = (
    "",  # NBFX-2.2.3.12-07
    "Z",  # NBFX-2.2.3.12-05
    "+00:00",  # NBFX-2.2.3.12-06
    "",
)
"""What follows a time, by its kind."""


def date_time(value: int) -> str:
    """Return the characters of a DateTimeText.

    The bytes of a local time are an instant, which is shown in the zone of the reader. Here the zone is
    always ``+00:00``: that of no reader, and other than ``Z``, a time that was written as UTC.
    """
    ticks, kind = value & 0x3FFF_FFFF_FFFF_FFFF, value >> 62
    days, ticks = divmod(min(ticks, TICKS_MAX - 1), DAY)
    seconds, fraction = divmod(ticks, TICKS)
    text = date.fromordinal(_EPOCH_DAY + days).isoformat()
    minutes, seconds = divmod(seconds, 60)
    text = f"{text}T{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
    if fraction:  # NBFX-2.2.3.12-04
        text = f"{text}.{fraction:07d}".rstrip("0")
    return text + _ZONES[kind]


def date_time_fault(value: int) -> str | None:
    """Return the fault of a date, None if there is none."""
    if value & 0x3FFF_FFFF_FFFF_FFFF >= TICKS_MAX:  # NBFX-2.2.3.12-01
        return "a date after the year 9999"
    return "a date of the kind 3" if value >> 62 > LOCAL else None  # NBFX-2.2.3.12-02


def time_span(value: int) -> str:
    """Return the characters of a TimeSpanText: a duration of XML Schema."""
    if not value:
        return "PT0S"
    seconds, fraction = divmod(abs(value), TICKS)
    days, seconds = divmod(seconds, 86_400)  # NBFX-2.2.3.23-01
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60  # NBFX-2.2.3.23-01
    sign = "-P" if value < 0 else "P"
    text = sign + (f"{days}D" if days else "")  # NBFX-2.2.3.23-01
    if not (hours or minutes or seconds or fraction):
        return text
    text += "T" + (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if fraction:
        return text + f"{seconds}.{fraction:07d}".rstrip("0") + "S"
    return text + f"{seconds}S" if seconds else text


def uuid(data: bytes) -> str:
    """Return the characters of a UuidText."""
    return str(UUID(bytes_le=data))


def unique_id(data: bytes) -> str:
    """Return the characters of a UniqueIdText."""
    return "urn:uuid:" + uuid(data)  # NBFX-2.2.3.22-01


def boolean(value: int) -> str:
    """Return the characters of a BoolText."""
    return "true" if value else "false"  # NBFX-2.2.3.26-02


FIXED: Final[Mapping[int, tuple[struct.Struct, Callable[[Any], str]]]] = MappingProxyType(
    {
        0x88: (struct.Struct("<b"), str),  # NBFX-2.2.3.5-01
        0x8A: (struct.Struct("<h"), str),  # NBFX-2.2.3.6-01, NBFX-2.1-01
        0x8C: (struct.Struct("<i"), str),  # NBFX-2.2.3.7-01, NBFX-2.1-01
        0x8E: (struct.Struct("<q"), str),  # NBFX-2.2.3.8-01, NBFX-2.1-01
        0x90: (struct.Struct("<f"), single),
        0x92: (struct.Struct("<d"), double),
        0x94: (struct.Struct("16s"), decimal),
        0x96: (struct.Struct("<Q"), date_time),
        0xAC: (struct.Struct("16s"), unique_id),  # NBFX-2.2.3.22-01
        0xAE: (struct.Struct("<q"), time_span),  # NBFX-2.2.3.23-01
        0xB0: (struct.Struct("16s"), uuid),  # NBFX-2.2.3.24-01
        0xB2: (struct.Struct("<Q"), str),  # NBFX-2.2.3.25-01
        0xB4: (struct.Struct("B"), boolean),
    }
)
"""The layout and the characters of a text record whose value has a fixed size, by type."""

FAULTS: Final[Mapping[int, Callable[[Any], str | None]]] = MappingProxyType(
    {
        0x94: decimal_fault,
        0x96: date_time_fault,
        0xB4: lambda value: None if value < 2 else f"a Boolean of {value}",  # NBFX-2.2.3.26-01
    }
)
"""The check of the value of a text record, by type."""

CONSTANTS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x80: "0",  # NBFX-2.2.3.1-01
        0x82: "1",  # NBFX-2.2.3.2-01
        0x84: "false",  # NBFX-2.2.3.3-01, NBFX-2.2-01
        0x86: "true",  # NBFX-2.2.3.4-01, NBFX-2.2-01
        0xA8: "",  # NBFX-2.2.3.20-01
    }
)
"""The characters of a text record without a value, by type."""

# NBFX-2.2.3.13.1: a character that XML does not allow has its number; a carriage return, and other spaces in
# an attribute, would come back from a reader of XML as something else, so they have theirs too.
_FORBIDDEN: Final = [*range(0x20), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)]
_ESCAPES: Final = {
    **{code: f"&#{code};" for code in _FORBIDDEN if code not in (0x09, 0x0A)},  # NBFX-2.2.3.13.1-03
    ord("&"): "&amp;",  # NBFX-2.2.3.13.1-02
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}
_ATTRIBUTE_ESCAPES: Final = {**_ESCAPES, 0x09: "&#9;", 0x0A: "&#10;", ord('"'): "&quot;"}
TO_ESCAPE: Final = re.compile("[\x00-\x08\x0b-\x1f&<>\ud800-\udfff\ufffe\uffff]")
TO_ESCAPE_IN_ATTRIBUTE: Final = re.compile('[\x00-\x1f&<>"\ud800-\udfff\ufffe\uffff]')


def escape(text: str) -> str:
    """Return the content of an element as it stands in XML."""
    return text.translate(_ESCAPES) if TO_ESCAPE.search(text) else text  # NBFX-2.2.3.13.1-01


def escape_attribute(text: str) -> str:
    """Return the value of an attribute as it stands in XML, between double quotes."""
    return text.translate(_ATTRIBUTE_ESCAPES) if TO_ESCAPE_IN_ATTRIBUTE.search(text) else text


_START: Final = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME: Final = f"[{_START}][-.0-9\xb7\u0300-\u036f\u203f\u2040{_START}]*+"
"""A name without a colon, as a pattern."""
IS_NAME: Final = re.compile(NAME)
_NO_START: Final = re.compile(f"[^{_START}]")
_NO_NAME: Final = re.compile(f"[^-.0-9\xb7\u0300-\u036f\u203f\u2040{_START}]")


def as_name(text: str) -> str:
    """Return a name as it stands in XML; characters of no name are written ``_x0020_``, as .NET does it."""
    if IS_NAME.fullmatch(text):
        return text
    first = _NO_START.sub(_name_escape, text[:1])
    return first + _NO_NAME.sub(_name_escape, text[1:])


def _name_escape(found: re.Match[str]) -> str:
    return f"_x{ord(found[0]):04X}_"
