"""Values written as .NET's BinaryFormatter writes them: texts, primitive values, arrays and lists."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from msmqwire.bodies import dates, plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.nrbf.primitives import DECIMAL_DIGITS, DECIMAL_MAX, FIXED, LOCAL, UNSPECIFIED, UTC
from msmqwire.bodies.nrbf.records import Binary, Primitive, Record
from msmqwire.bodies.scalars import bytes_of, date_of, decimal_of, float_of, guid_of, shown, ticks_of
from msmqwire.errors import InvalidValue
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import with_article

_NAMES: Final[dict[str, Primitive]] = {
    "System.Boolean": Primitive.BOOLEAN,
    "System.Byte": Primitive.BYTE,
    "System.Char": Primitive.CHAR,
    "System.DateTime": Primitive.DATE_TIME,
    "System.Decimal": Primitive.DECIMAL,
    "System.Double": Primitive.DOUBLE,
    "System.Int16": Primitive.INT16,
    "System.Int32": Primitive.INT32,
    "System.Int64": Primitive.INT64,
    "System.SByte": Primitive.SBYTE,
    "System.Single": Primitive.SINGLE,
    "System.String": Primitive.STRING,
    "System.TimeSpan": Primitive.TIME_SPAN,
    "System.UInt16": Primitive.UINT16,
    "System.UInt32": Primitive.UINT32,
    "System.UInt64": Primitive.UINT64,
}
_TYPES: Final = {number: name for name, number in _NAMES.items()}
_LIST: Final = "System.Collections.Generic.List`1"
_GUID: Final = "System.Guid"
_OBJECTS: Final = "System.Object[]"
_KNOWN: Final = (*_NAMES, _GUID, *(f"{name}[]" for name in _NAMES), _OBJECTS, f"{_LIST}[[System.String]]")
_OF_LIST: Final = re.compile(re.escape(_LIST) + r"\[\[?\s*([\w.]+)\s*(?:,[^\[\]]*)?\]?\]")
_CORE: Final = "mscorlib, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089"
_TIMESPAN: Final = re.compile(
    r"(-)?P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,12})(?:\.([0-9]{1,7}))?S)?)?"
)
_MEMBERS_OF_GUID: Final = tuple(f"_{letter}" for letter in "abcdefghijk")
_ROOT: Final = 1
_NULLS_MAX: Final = 255
_DIGITS: Final = re.compile(r"-?[0-9]{1,29}(\.[0-9]{1,28})?")
_PACKED: Final[dict[str, type]] = {"d": float, "f": float, "?": bool}
"""Types of values that are packed as they are, by the code of struct; all other types are integers."""
_END: Final = bytes([Record.MESSAGE_END])
_int32: Final = struct.Struct("<i")


def write(value: Plain, type_: str | None = None) -> bytes:
    """Return a body that BinaryMessageFormatter reads.

    Args:
        value: plain data: a text, a number, a date and the like, a list of those; also one of these as
            `read` returns it, as an object of its class.
        type_: the name of the type in .NET, without its assembly: ``System.Int32``, ``System.Int32[]``,
            ``System.Object[]``, ``System.Collections.Generic.List`1[[System.Int32]]``; None for the one that
            fits the value.

    Raises:
        InvalidArgument: no such type is written.
        InvalidValue: the value is none of the type.
    """
    value, name = _unwrapped(value, type_)
    name = _guessed(value) if name is None else name
    body = b"".join(
        (struct.pack("<biiii", Record.SERIALIZED_STREAM_HEADER, _ROOT, -1, 1, 0), _root(value, name))
    )
    return body + _END


def _unwrapped(value: Plain, type_: str | None) -> tuple[Plain, str | None]:
    """Return the result of `read` for a value on its own or a list as that value, and its type."""
    if not isinstance(value, dict) or plain.TYPE not in value:
        return value, type_
    name = str(value[plain.TYPE])
    if name in _NAMES and "m_value" in value:
        return value["m_value"], type_ or name
    items, size = value.get("_items"), value.get("_size")
    if name.startswith(_LIST) and isinstance(items, list) and isinstance(size, int):
        return items[:size], type_ or name
    raise InvalidValue(f"objects of {name:.80} are not written", path=plain.TYPE)


def _guessed(value: Plain) -> str:
    """Return the type that fits a value."""
    if isinstance(value, list):
        if set(map(type, value)) == {int}:
            numbers: list[Any] = value
            small = min(numbers) >= -(1 << 31) and max(numbers) < 1 << 31
            return "System.Int32[]" if small else "System.Int64[]"
        kinds = {_kind(item) for item in value if item is not None}
        if kinds == {Primitive.INT32, Primitive.INT64}:
            kinds = {Primitive.INT64}
        if len(kinds) == 1 and (None not in value or kinds == {Primitive.STRING}):
            kind = kinds.pop()
            if kind is not None:
                return f"{_TYPES[kind]}[]"
        return _OBJECTS
    if isinstance(value, dict):
        if plain.BYTES in value:
            return "System.Byte[]"
        if plain.GUID in value:
            return _GUID
    kind = _kind(value)
    if kind is None:
        raise InvalidValue(
            f"{shown(value)} has no type that is written: texts, numbers, dates and lists of them have;"
            " write an object as json or xml"
        )
    return _TYPES[kind]


def _kind(value: Plain) -> Primitive | None:
    """Return the primitive type that fits a value, if one does."""
    if isinstance(value, str):
        return Primitive.STRING
    if isinstance(value, bool):
        return Primitive.BOOLEAN
    if isinstance(value, int):
        return Primitive.INT32 if -(1 << 31) <= value < 1 << 31 else Primitive.INT64
    if isinstance(value, float):
        return Primitive.DOUBLE
    if isinstance(value, dict):
        for name, kind in _BY_MARK.items():
            if name in value:
                return kind
    return None


_BY_MARK: Final = {
    plain.DECIMAL: Primitive.DECIMAL,
    plain.FLOAT: Primitive.DOUBLE,
    plain.DATE: Primitive.DATE_TIME,
    plain.TIMESPAN: Primitive.TIME_SPAN,
}


def _root(value: Plain, given: str) -> bytes:
    of_list = _OF_LIST.fullmatch(given.strip())
    name = of_list[1] if of_list else given.partition(",")[0].strip()
    if of_list and name in _NAMES:
        return _list(_list_of(value), name)
    if name == _OBJECTS:
        return b"".join(_objects(_list_of(value)))
    if name == _GUID:
        return _guid(value)
    kind = _NAMES.get(name.removesuffix("[]"))
    if kind is None or of_list:
        raise unknown_name(given, _KNOWN, "type that is written", path="type")
    if name.endswith("[]"):
        return _array(_ROOT, value, kind)
    if kind == Primitive.STRING:
        return _string(_ROOT, value, "")
    return _class(name, _value_members(value, kind))


def _list_of(value: Plain) -> list[Plain]:
    if isinstance(value, list):
        return value
    raise InvalidValue(f"{shown(value)} is not a list")


def _class(name: str, members: list[tuple[str, Primitive, bytes]]) -> bytes:
    """Return an object of a system class with primitive members."""
    return b"".join(
        (
            bytes([Record.SYSTEM_CLASS_WITH_MEMBERS_AND_TYPES]),
            _int32.pack(_ROOT),
            _text(name),
            _int32.pack(len(members)),
            *(_text(member) for member, _, _ in members),
            bytes([Binary.PRIMITIVE]) * len(members),
            bytes(kind for _, kind, _ in members),
            *(data for _, _, data in members),
        )
    )


def _value_members(value: Plain, kind: Primitive) -> list[tuple[str, Primitive, bytes]]:
    """Return the members of a primitive value that is an object of its own."""
    data = _ENCODE[kind](value, "")
    if kind == Primitive.DATE_TIME:
        ticks = (int.from_bytes(data, "little") & ((1 << 62) - 1)).to_bytes(8, "little")
        return [("ticks", Primitive.INT64, ticks), ("dateData", Primitive.UINT64, data)]
    if kind == Primitive.TIME_SPAN:
        return [("_ticks", Primitive.INT64, data)]
    if kind == Primitive.DECIMAL:
        number = decimal_of(value, "")
        sign, digits, exponent = number.as_tuple()
        scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
        whole = int("".join(map(str, digits))) if scale else abs(int(number))
        flags = (scale << 16 | sign << 31).to_bytes(4, "little")
        low, middle, high = (whole >> shift & 0xFFFF_FFFF for shift in (0, 32, 64))
        parts = [flags, *(part.to_bytes(4, "little") for part in (high, low, middle))]
        return [
            (name, Primitive.INT32, part)
            for name, part in zip(("flags", "hi", "lo", "mid"), parts, strict=True)
        ]
    return [("m_value", kind, data)]


def _guid(value: Plain) -> bytes:
    from uuid import UUID

    data = UUID(guid_of(value, "")).bytes_le
    parts = [data[:4], data[4:6], data[6:8], *(data[at : at + 1] for at in range(8, 16))]
    kinds = [Primitive.INT32, Primitive.INT16, Primitive.INT16, *[Primitive.BYTE] * 8]
    return _class(_GUID, list(zip(_MEMBERS_OF_GUID, kinds, parts, strict=True)))


def _list(items: list[Plain], name: str) -> bytes:
    kind = _NAMES[name]
    text = kind == Primitive.STRING
    size = _int32.pack(len(items))
    return b"".join(
        (
            bytes([Record.SYSTEM_CLASS_WITH_MEMBERS_AND_TYPES]),
            _int32.pack(_ROOT),
            _text(f"{_LIST}[[{name}, {_CORE}]]"),
            _int32.pack(3),
            *(_text(member) for member in ("_items", "_size", "_version")),
            bytes(
                [Binary.STRING_ARRAY if text else Binary.PRIMITIVE_ARRAY, Binary.PRIMITIVE, Binary.PRIMITIVE]
            ),
            bytes([Primitive.INT32] * 2 if text else [kind, Primitive.INT32, Primitive.INT32]),
            _reference(_ROOT + 1),
            size,
            size,
            _array(_ROOT + 1, items, kind),
        )
    )


def _array(number: int, value: Plain, kind: Primitive) -> bytes:
    """Return an array of texts or primitive values, as a record of its own."""
    if kind == Primitive.BYTE and not isinstance(value, list):
        data = bytes_of(value, "")
        return _array_start(Record.ARRAY_SINGLE_PRIMITIVE, number, len(data)) + bytes([kind]) + data
    items = _list_of(value)
    if kind == Primitive.STRING:
        numbers = iter(range(number + 1, number + 1 + len(items)))
        start = _array_start(Record.ARRAY_SINGLE_STRING, number, len(items))
        return start + b"".join(_items(items, lambda item, path: _string(next(numbers), item, path)))
    packed = _at_once(items, kind)
    if packed is None:
        encode = _ENCODE[kind]
        packed = b"".join([encode(item, f"[{index}]") for index, item in enumerate(items)])
    return _array_start(Record.ARRAY_SINGLE_PRIMITIVE, number, len(items)) + bytes([kind]) + packed


def _at_once(items: list[Plain], kind: Primitive) -> bytes | None:
    """Return numbers packed together; None if they have to be looked at one by one."""
    fixed = FIXED.get(kind)
    if fixed is None or kind in (Primitive.TIME_SPAN, Primitive.DATE_TIME):
        return None
    if set(map(type, items)) != {_PACKED.get(fixed.code, int)}:
        return None
    try:
        return struct.pack(f"<{len(items)}{fixed.code}", *items)
    except (struct.error, OverflowError):
        return None


def _array_start(record: Record, number: int, count: int) -> bytes:
    return bytes([record]) + _int32.pack(number) + _int32.pack(count)


def _objects(items: list[Plain]) -> Iterator[bytes]:
    """Yield an array of anything, and after it the arrays that it refers to, as .NET does."""
    number = _ROOT
    waiting: list[tuple[int, list[Plain] | dict[str, Plain], str]] = []
    pending: list[tuple[int, list[Plain] | dict[str, Plain], str]] = [(_ROOT, items, "")]

    def item(value: Plain, path: str) -> bytes:
        nonlocal number
        kind = _kind(value)
        if kind == Primitive.STRING:
            number += 1
            return _string(number, value, path)
        if kind is not None:
            return bytes([Record.MEMBER_PRIMITIVE_TYPED, kind]) + _ENCODE[kind](value, path)
        if isinstance(value, list) or (isinstance(value, dict) and plain.BYTES in value):
            number += 1
            waiting.append((number, value, path))
            return _reference(number)
        raise InvalidValue(f"{shown(value)} is not a value of a list that is written", path=path)

    while pending:
        for of, value, path in pending:
            if isinstance(value, dict):
                data = bytes_of(value, path)
                yield (
                    _array_start(Record.ARRAY_SINGLE_PRIMITIVE, of, len(data))
                    + bytes([Primitive.BYTE])
                    + data
                )
            else:
                yield _array_start(Record.ARRAY_SINGLE_OBJECT, of, len(value))
                yield from _items(value, item, path)
        pending, waiting = waiting, []


def _items(items: list[Plain], encode: Callable[[Plain, str], bytes], path: str = "") -> Iterator[bytes]:
    """Yield the records of items, nulls in runs."""
    nulls = 0
    for index, item in enumerate(items):
        if item is None:
            nulls += 1
            continue
        yield _nulls(nulls)
        nulls = 0
        yield encode(item, f"{path}[{index}]")
    yield _nulls(nulls)


def _nulls(count: int) -> bytes:
    if count == 0:
        return b""
    if count == 1:
        return bytes([Record.OBJECT_NULL])
    if count <= _NULLS_MAX:
        return bytes([Record.OBJECT_NULL_MULTIPLE_256, count])
    return bytes([Record.OBJECT_NULL_MULTIPLE]) + _int32.pack(count)


def _reference(number: int) -> bytes:
    return bytes([Record.MEMBER_REFERENCE]) + _int32.pack(number)


def _string(number: int, value: Plain, path: str) -> bytes:
    return bytes([Record.BINARY_OBJECT_STRING]) + _int32.pack(number) + _text(_str(value, path), path)


def _str(value: Plain, path: str) -> str:
    if isinstance(value, str):
        return value
    raise InvalidValue(f"{shown(value)} is not text", path=path)


def _text(text: str, path: str = "") -> bytes:
    """Return a LengthPrefixedString, 2.1.1.6."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("half of a surrogate pair can't be written", path=path) from None
    rest = len(data)
    if rest <= 0x7F:
        return bytes([rest]) + data
    size = bytearray()
    while rest > 0x7F:
        size.append(rest & 0x7F | 0x80)
        rest >>= 7
    size.append(rest)
    return bytes(size) + data


def _boolean(value: Plain, path: str) -> bytes:
    if isinstance(value, bool):
        return bytes([value])
    raise InvalidValue(f"{shown(value)} is neither true nor false", path=path)


def _char(value: Plain, path: str) -> bytes:
    text = _str(value, path)
    if len(text) != 1 or ord(text) > 0xFFFF:
        raise InvalidValue(f"{shown(text)} is not a character of 16 bits", path=path)
    return _text(text, path)[1:]


def _integer(number: Primitive) -> Callable[[Plain, str], bytes]:
    name, code, *_ = FIXED[number]
    size = struct.calcsize(code)
    signed = code.islower()
    low = -(1 << (8 * size - 1)) if signed else 0
    high = low + (1 << 8 * size) - 1

    def encode(value: Plain, path: str) -> bytes:
        if isinstance(value, int) and not isinstance(value, bool):
            whole = value
        else:
            found = decimal_of(value, path)
            if found != found.to_integral_value():
                raise InvalidValue(f"{shown(value)} is not {with_article(name)}", path=path)
            whole = int(found)
        if not low <= whole <= high:
            raise InvalidValue(f"{shown(value)} is not {with_article(name)}: {low} to {high}", path=path)
        return whole.to_bytes(size, "little", signed=signed)

    return encode


def _double(value: Plain, path: str) -> bytes:
    return struct.pack("<d", float_of(value, path))


def _single(value: Plain, path: str) -> bytes:
    number = float_of(value, path)
    try:
        return struct.pack("<f", number)
    except OverflowError:
        raise InvalidValue(f"{shown(value)} is beyond the range of a Single", path=path) from None


def _date_time(value: Plain, path: str) -> bytes:
    """Return a DateTime, 2.1.1.5; a time with an offset becomes one in UTC."""
    ticks, zone = ticks_of(value, path)
    local = isinstance(value, dict) and value.get(plain.KIND) == "local"
    ticks -= dates.offset(zone)
    if not 0 <= ticks <= dates.TICKS_MAX:
        raise InvalidValue(f"{date_of(value, path)} is beyond the range of a DateTime", path=path)
    kind = UTC if zone else LOCAL if local else UNSPECIFIED
    return (ticks | kind << 62).to_bytes(8, "little")


def _time_span(value: Plain, path: str) -> bytes:
    text = value.get(plain.TIMESPAN) if isinstance(value, dict) else value
    parts = _TIMESPAN.fullmatch(text) if isinstance(text, str) else None
    if parts is None or not any(parts.groups()[1:]):
        example = '{"$timespan": "P1DT2H"}'
        raise InvalidValue(f"{shown(value)} is not a time; write {example}", path=path)
    minus, days, hours, minutes, seconds, fraction = parts.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    ticks = whole * dates.SECOND + int((fraction or "").ljust(7, "0"))
    ticks = -ticks if minus else ticks
    if not -(1 << 63) <= ticks < 1 << 63:
        raise InvalidValue(f"{shown(value)} is beyond the range of a TimeSpan", path=path)
    return ticks.to_bytes(8, "little", signed=True)


def _decimal(value: Plain, path: str) -> bytes:
    """Return a Decimal, 2.1.1.7."""
    number = decimal_of(value, path)
    text = format(number, "f")
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = len(whole.lstrip("0")) + len(fraction)
    if not _DIGITS.fullmatch(text) or digits > DECIMAL_DIGITS or number.copy_abs() > DECIMAL_MAX:
        raise InvalidValue(
            f"{shown(value)} has more digits than a Decimal, or is beyond its range", path=path
        )
    if int(whole + fraction) > DECIMAL_MAX:
        raise InvalidValue(f"{shown(value)} has more digits than a Decimal", path=path)
    return _text(text)


_ENCODE: Final[dict[int, Callable[[Any, str], bytes]]] = {
    Primitive.BOOLEAN: _boolean,
    Primitive.CHAR: _char,
    Primitive.DECIMAL: _decimal,
    Primitive.DOUBLE: _double,
    Primitive.SINGLE: _single,
    Primitive.TIME_SPAN: _time_span,
    Primitive.DATE_TIME: _date_time,
    **{
        number: _integer(number)
        for number in (
            Primitive.BYTE, Primitive.INT16, Primitive.INT32, Primitive.INT64, Primitive.SBYTE,
            Primitive.UINT16, Primitive.UINT32, Primitive.UINT64,
        )
    },
}  # fmt: skip
