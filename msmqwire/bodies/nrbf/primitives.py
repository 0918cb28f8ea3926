"""Primitive values of [MS-NRBF] 2.1.1 as plain data."""

from __future__ import annotations

import decimal
import math
import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from msmqwire.bodies import dates, plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.nrbf.records import Primitive

TICKS_MASK: Final = (1 << 62) - 1
UNSPECIFIED, UTC, LOCAL = 0, 1, 2
"""Kinds of times."""

DECIMAL_DIGITS: Final = 29
DECIMAL_MAX: Final = (1 << 96) - 1  # NRBF-2.1.1.7-03
_DECIMAL: Final = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?")  # NRBF-2.1.1.7-01
is_decimal: Final = _DECIMAL.fullmatch
_ROUNDED: Final = decimal.Context(
    prec=DECIMAL_DIGITS, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, traps=[]
)
_LAST_PLACE: Final = decimal.Decimal(1).scaleb(1 - DECIMAL_DIGITS)
_SUBNORMAL_SINGLE: Final = 1.1754943508222875e-38
_single: Final = struct.Struct("<f")


class Junk(ValueError):
    """A value that its type does not have; `value` stands in its place."""

    def __init__(self, why: str, value: Plain) -> None:
        super().__init__(why)
        self.why, self.value = why, value


class Fixed(NamedTuple):
    """A primitive type of a fixed size: its code for struct, its conversion if any, its cost in memory."""

    name: str
    code: str
    convert: Callable[..., Plain] | None
    cost: int


def single(value: float) -> Plain:
    """Return a Single as the shortest float that is the same Single."""
    if not math.isfinite(value):
        return plain.floating(value)
    for digits in range(1 if abs(value) < _SUBNORMAL_SINGLE else 6, 9):  # NRBF-2.1.1.3-01
        short = float(f"{value:.{digits}g}")
        try:
            if _single.unpack(_single.pack(short))[0] == value:
                return short
        except OverflowError:
            continue
    return float(f"{value:.9g}")


def date_time(raw: int) -> Plain:
    """Return a DateTime, 62 bits of ticks and two of the kind. Raises Junk.

    The kind 3, which the text does not have, is written by .NET for a local time that comes twice, when
    clocks are put back.
    """
    ticks, kind = raw & TICKS_MASK, raw >> 62  # NRBF-2.1.1.5-01
    if ticks > dates.TICKS_MAX:
        raise Junk(f"{ticks} ticks are later than the year 9999", plain.integer(raw))
    value: Plain = {plain.DATE: dates.of_ticks(ticks, "Z" if kind == UTC else "")}
    if kind >= LOCAL and isinstance(value, dict):
        value[plain.KIND] = "local"
    return value


def time_span(ticks: int) -> Plain:
    """Return a TimeSpan as a duration of XML."""
    seconds, fraction = divmod(abs(ticks), dates.SECOND)  # NRBF-2.1.1.4-01
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    parts = ["-P" if ticks < 0 else "P"]
    if days:
        parts.append(f"{days}D")
    if hour or minute or second or fraction or not days:
        parts.append("T")
        if hour:
            parts.append(f"{hour}H")
        if minute:
            parts.append(f"{minute}M")
        if second or fraction or not (hour or minute or days):
            parts.append(f"{second}" + (f".{fraction:07}".rstrip("0") if fraction else "") + "S")
    return {plain.TIMESPAN: "".join(parts)}


def decimal_text(text: str) -> Plain:
    """Return a Decimal from its text, zeros kept, rounded to 29 digits as 2.1.1.7 says. Raises Junk."""
    parts = is_decimal(text)
    if parts is not None and len(text) < DECIMAL_DIGITS:
        return {plain.DECIMAL: text}
    if parts is None:
        raise Junk(f"{text[:40]!r} is not a decimal", text)
    whole, fraction = parts[1].lstrip("0"), parts[2] or ""
    if len(whole) > DECIMAL_DIGITS or (len(whole) == DECIMAL_DIGITS and int(whole) > DECIMAL_MAX):
        raise Junk(f"{text[:40]} is beyond the range of a decimal", text)
    if len(whole or "0") + len(fraction) > DECIMAL_DIGITS:
        rounded = _ROUNDED.create_decimal(text)  # NRBF-2.1.1.7-02
        # NRBF-2.1.1.7-02
        text = format(rounded if whole else rounded.quantize(_LAST_PLACE, context=_ROUNDED), "f")
    return {plain.DECIMAL: text}


FIXED: Final[dict[int, Fixed]] = {
    Primitive.BOOLEAN: Fixed("Boolean", "?", None, 0),
    Primitive.BYTE: Fixed("Byte", "B", None, 0),
    Primitive.DOUBLE: Fixed("Double", "d", plain.floating, 24),
    Primitive.INT16: Fixed("Int16", "h", None, 32),
    Primitive.INT32: Fixed("Int32", "i", None, 32),
    Primitive.INT64: Fixed("Int64", "q", plain.integer, 32),
    Primitive.SBYTE: Fixed("SByte", "b", None, 32),
    Primitive.SINGLE: Fixed("Single", "f", single, 24),
    Primitive.TIME_SPAN: Fixed("TimeSpan", "q", time_span, 264),
    Primitive.DATE_TIME: Fixed("DateTime", "Q", date_time, 272),
    Primitive.UINT16: Fixed("UInt16", "H", None, 32),
    Primitive.UINT32: Fixed("UInt32", "I", None, 32),
    Primitive.UINT64: Fixed("UInt64", "Q", plain.integer, 32),
}
"""Primitive types of a fixed size, by their number."""
