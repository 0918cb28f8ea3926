"""Writing of one value with its type for BodyType."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from msmqwire.bodies import dates, plain, scalars
from msmqwire.bodies.activex.reading import DECIMAL_PLACES_MAX, KINDS, OPAQUE
from msmqwire.bodies.body import Plain
from msmqwire.constants import VarEnum
from msmqwire.errors import InvalidValue
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import with_article

_MANY: Final = {"VT_VECTOR": VarEnum.VT_VECTOR, "VT_ARRAY": VarEnum.VT_ARRAY}
_TEXTS: Final = (VarEnum.VT_BSTR, VarEnum.VT_LPSTR, VarEnum.VT_LPWSTR)
_INTEGERS: Final = {
    "b": (-(1 << 7), (1 << 7) - 1), "B": (0, (1 << 8) - 1),
    "h": (-(1 << 15), (1 << 15) - 1), "H": (0, (1 << 16) - 1),
    "i": (-(1 << 31), (1 << 31) - 1), "I": (0, (1 << 32) - 1),
    "q": (-(1 << 63), (1 << 63) - 1), "Q": (0, (1 << 64) - 1),
}  # fmt: skip
_BY_SIZE: Final = (VarEnum.VT_I4, VarEnum.VT_I8, VarEnum.VT_UI8)
_PACKED: Final = frozenset(kind for kind, (form, _, _) in KINDS.items() if form in "bBhHiI")
_MANTISSA: Final = 1 << 96
NAMES: Final = tuple(VarEnum(kind).name for kind in (*KINDS, *_TEXTS, VarEnum.VT_NULL, *sorted(OPAQUE)))


def kind_named(name: str) -> int:
    """Return the number of a type by its name: ``VT_I4``, ``i4``, ``VT_I4 | VT_VECTOR``, ``0x1003``.

    Raises InvalidArgument.
    """
    kind = 0
    for part in name.replace("+", "|").split("|"):
        word = part.strip().upper()
        if word.isascii() and word[:1].isdigit():
            try:
                kind |= int(word, 0)
                continue
            except ValueError:
                raise unknown_name(name, NAMES, "type of ActiveXMessageFormatter", path="type") from None
        word = word if word.startswith("VT_") else f"VT_{word}"
        if word not in NAMES and word not in _MANY:
            raise unknown_name(part.strip(), NAMES, "type of ActiveXMessageFormatter", path="type")
        kind |= VarEnum[word]
    return kind


def write(value: Plain, type_: str | None = None) -> tuple[bytes, int]:
    """Return a value as bytes, and its type; that which fits if none is given.

    A text is a VT_BSTR, a number VT_I4 or the next that holds it, VT_R8 with a fraction; ``$decimal`` is
    VT_CY or, with more than four places, VT_DECIMAL; ``$date`` VT_DATE, and VT_FILETIME if its zone is
    ``Z``; a list is a vector of the type of its items.

    Raises InvalidValue.
    """
    kind = _kind_of(value, "") if type_ is None else kind_named(type_)
    many, element = kind & (VarEnum.VT_VECTOR | VarEnum.VT_ARRAY), kind & 0xFFF
    if kind in OPAQUE or (many and element == VarEnum.VT_UI1 and not isinstance(value, list)):
        return scalars.bytes_of(value, ""), kind
    if not many:
        return _one(value, kind, ""), kind
    if not isinstance(value, list):
        raise InvalidValue(f"{scalars.shown(value)} is not a list, which {type_} takes")
    if element in _PACKED and set(map(type, value)) == {int}:
        try:
            return struct.pack(f"<{len(value)}{KINDS[element][0]}", *value), kind
        except struct.error:
            pass  # the number that is too large is looked for below
    parts = (_one(item, element, f"[{number}]") for number, item in enumerate(value))
    if element not in _TEXTS:
        return b"".join(parts), kind
    null = b"\0" if element == VarEnum.VT_LPSTR else b"\0\0"
    return b"".join(part + null for part in parts), kind


def _kind_of(value: Plain, path: str) -> int:
    match value:
        case None:
            return VarEnum.VT_NULL
        case bool():
            return VarEnum.VT_BOOL
        case int():
            return _smallest(value, path)
        case float():
            return VarEnum.VT_R8
        case str():
            return VarEnum.VT_BSTR
        case list():
            if set(map(type, value)) == {int}:
                numbers: Any = value
                kinds = _smallest(min(numbers)), _smallest(max(numbers))
                return VarEnum.VT_VECTOR | max(kinds, key=_BY_SIZE.index)
            return VarEnum.VT_VECTOR | _common([_kind_of(item, f"[{n}]") for n, item in enumerate(value)])
        case {plain.BYTES: _}:
            return VarEnum.VT_UI1 | VarEnum.VT_VECTOR
        case {plain.GUID: _}:
            return VarEnum.VT_CLSID
        case {plain.FLOAT: _}:
            return VarEnum.VT_R8
        case {plain.DATE: str(text)}:
            return VarEnum.VT_FILETIME if text.endswith("Z") else VarEnum.VT_DATE
        case {plain.DECIMAL: _}:
            return _kind_of_decimal(scalars.decimal_of(value, path), path)
    why = f"{scalars.shown(value)} is an object, which ActiveXMessageFormatter has not"
    raise InvalidValue(f"{why}; write it as xml or json", path=path)


def _smallest(value: int, path: str = "") -> int:
    for kind in _BY_SIZE:
        low, high = _INTEGERS[KINDS[kind][0]]
        if low <= value <= high:
            return kind
    raise InvalidValue(f"{value} is beyond 64 bits; write it as a text", path=path)


def _kind_of_decimal(number: Decimal, path: str) -> int:
    exponent = number.as_tuple().exponent
    if exponent == 0 and abs(number) > plain.EXACT and -(1 << 63) <= number < 1 << 64:
        return _smallest(int(number), path)
    if isinstance(exponent, int) and exponent >= -4 and abs(number) * 10_000 < 1 << 63:
        return VarEnum.VT_CY
    return VarEnum.VT_DECIMAL


def _common(kinds: list[int]) -> int:
    """Return the type that all items of a list have, or the widest number."""
    found = set(kinds) or {int(VarEnum.VT_I4)}
    if len(found) == 1:
        (kind,) = found
        if kind & ~0xFFF or kind == VarEnum.VT_NULL:
            raise InvalidValue("a vector holds no lists, bytes or nulls; write the value as xml or json")
        return kind
    if found <= set(_BY_SIZE):
        return max(found, key=_BY_SIZE.index)
    if found <= {*_BY_SIZE, VarEnum.VT_R8}:
        return VarEnum.VT_R8
    raise InvalidValue("the items of a vector are of one type; write the value as xml or json")


def _one(value: Plain, kind: int, path: str) -> bytes:
    if kind in _TEXTS:
        if not isinstance(value, str):
            raise InvalidValue(f"{scalars.shown(value)} is not text", path=path)
        try:
            return value.encode("utf-8" if kind == VarEnum.VT_LPSTR else "utf-16-le")
        except UnicodeEncodeError:
            raise InvalidValue("a text with half a surrogate pair can't be written", path=path) from None
    if kind == VarEnum.VT_NULL and value is None:
        return b""
    if kind == VarEnum.VT_BOOL and isinstance(value, bool):
        return b"\xff\xff" if value else b"\0\0"
    if kind not in KINDS:
        raise InvalidValue(f"{scalars.shown(value)} can't be written as type 0x{kind:X}", path=path)
    form = KINDS[kind][0]
    if kind == VarEnum.VT_CLSID:
        return UUID(scalars.guid_of(value, path)).bytes_le
    if kind in (VarEnum.VT_DATE, VarEnum.VT_FILETIME):
        return _time(value, kind, path)
    if kind == VarEnum.VT_DECIMAL:
        return _decimal(scalars.decimal_of(value, path), path)
    if kind == VarEnum.VT_CY:
        number = scalars.decimal_of(value, path).scaleb(4)
        if number != number.to_integral_value() or not -(1 << 63) <= number < 1 << 63:
            why = f"{scalars.shown(value)} is not a VT_CY, which has four places and 15 digits before them"
            raise InvalidValue(f"{why}; write it as VT_DECIMAL", path=path)
        return struct.pack("<q", int(number))
    if form in "fd":
        return _float(value, form, path)
    return _integer(value, kind, form, path)


def _integer(value: Plain, kind: int, form: str, path: str) -> bytes:
    number = scalars.decimal_of(value, path)
    low, high = _INTEGERS[form]
    if number != number.to_integral_value() or not low <= number <= high:
        name = VarEnum(kind).name
        raise InvalidValue(
            f"{scalars.shown(value)} is not {with_article(name)}, an integer from {low} to {high}", path=path
        )
    return struct.pack("<" + form, int(number))


def _float(value: Plain, form: str, path: str) -> bytes:
    try:
        return struct.pack("<" + form, scalars.float_of(value, path))
    except OverflowError:
        raise InvalidValue(
            f"{scalars.shown(value)} is beyond a VT_R4; write it as VT_R8", path=path
        ) from None


def _time(value: Plain, kind: int, path: str) -> bytes:
    ticks, zone = scalars.ticks_of(value, path)
    if kind == VarEnum.VT_FILETIME:
        units = ticks - dates.offset(zone) - dates.FILETIME_EPOCH
        if units < 0:
            raise InvalidValue("a VT_FILETIME is not before 1601; write the time as VT_DATE", path=path)
        return struct.pack("<Q", units)
    if zone:
        why = f"a VT_DATE has no zone; write the time without {zone}, or as VT_FILETIME"
        raise InvalidValue(why, path=path)
    days, rest = divmod(ticks - dates.OLE_EPOCH, dates.DAY)
    # Before 1899-12-30 the fraction still counts from midnight on.
    return struct.pack("<d", days + rest / dates.DAY if days >= 0 else days - rest / dates.DAY)


def _decimal(number: Decimal, path: str) -> bytes:
    sign, digits, exponent = number.as_tuple()
    mantissa = int("".join(map(str, digits)))
    places = -int(exponent)
    if places < 0:
        mantissa, places = mantissa * 10 ** min(-places, 40), 0
    if places > DECIMAL_PLACES_MAX or mantissa >= _MANTISSA:
        raise InvalidValue(f"{number} is not a VT_DECIMAL: it has 28 places and 96 bits at most", path=path)
    return struct.pack("<HBBIQ", 0, places, sign << 7, mantissa >> 64, mantissa & ((1 << 64) - 1))
