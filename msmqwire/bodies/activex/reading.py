"""Reading of one value by the type in BodyType."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NoReturn
from uuid import UUID

from msmqwire.bodies import dates, plain
from msmqwire.bodies.body import Content, Plain, Problem
from msmqwire.bodies.limits import DICT_COST, ITEM_COST, VALUE_COST, Budget, LimitExceeded
from msmqwire.constants import VARIANT_FALSE, VARIANT_TRUE, VarEnum, hresult_name, variant_name
from msmqwire.errors import MalformedBody
from msmqwire.names.printable import counted

_MANY: Final = VarEnum.VT_VECTOR | VarEnum.VT_ARRAY
_CURRENCY_PLACES: Final = 4
DECIMAL_PLACES_MAX: Final = 28
_NEGATIVE: Final = 0x80
_PROBLEMS_MAX: Final = 100
_SIZE: Final = struct.Struct("<I")

OPAQUE: Final = frozenset(
    {
        VarEnum.VT_STREAM,
        VarEnum.VT_STORAGE,
        VarEnum.VT_STREAMED_OBJECT,
        VarEnum.VT_STORED_OBJECT,
        VarEnum.VT_BLOB_OBJECT,
        VarEnum.VT_CF,
    }
)
"""Types of streams and stored objects: compound files and the like, which other programs read."""


class _NoValueError(ValueError):
    """Bytes that are not a value of their type."""


def _same(value: int) -> Plain:
    return value


def _boolean(value: int) -> Plain:
    return value != VARIANT_FALSE


def _currency(value: int) -> Plain:
    return {plain.DECIMAL: scaled(value, _CURRENCY_PLACES)}


def scaled(value: int, places: int) -> str:
    """Return an integer divided by a power of ten as text, with all its places."""
    if not places:
        return str(value)
    digits = f"{abs(value):0{places + 1}}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _date(data: bytes) -> Plain:
    """Read a VT_DATE: ticks of .NET, or days, which as an integer are greater than any ticks, or negative."""
    (ticks,) = struct.unpack("<q", data)
    if not 0 < ticks <= dates.TICKS_MAX:
        ticks = _ticks_of_days(struct.unpack("<d", data)[0])
    return {plain.DATE: dates.of_ticks(ticks)}


def _ticks_of_days(days: float) -> int:
    """Return the ticks of days since 1899-12-30, exact to the millisecond as in OLE Automation.

    Before that day too the fraction counts from midnight on.
    """
    if math.isfinite(days):
        whole = int(days)
        milliseconds = round(abs(days - whole) * 86_400_000)
        ticks = dates.OLE_EPOCH + whole * dates.DAY + milliseconds * (dates.SECOND // 1000)
        if 0 <= ticks <= dates.TICKS_MAX:
            return ticks
    raise _NoValueError(f"{days} days since 1899-12-30 is not a date")


def _filetime(value: int) -> Plain:
    ticks = dates.FILETIME_EPOCH + value
    if ticks > dates.TICKS_MAX:
        raise _NoValueError(f"{value} times 100 ns since 1601 is not a date")
    return {plain.DATE: dates.of_ticks(ticks, "Z")}


def _guid(data: bytes) -> Plain:
    return {plain.GUID: str(UUID(bytes_le=data))}


def _decimal(data: bytes) -> Plain:
    """Read a DECIMAL: [MS-OAUT] 2.2.26."""
    _, places, sign, high, low = struct.unpack("<HBBIQ", data)
    if places > DECIMAL_PLACES_MAX or sign & ~_NEGATIVE:
        raise _NoValueError(f"a decimal with {places} places and the sign 0x{sign:02X} is none")
    value = (high << 64) | low
    text = scaled(value, places)
    return {plain.DECIMAL: f"-{text}" if sign else text}


KINDS: Final[Mapping[int, tuple[str, Callable[..., Plain], int]]] = MappingProxyType(
    {
        VarEnum.VT_I1: ("b", _same, VALUE_COST),
        VarEnum.VT_UI1: ("B", _same, VALUE_COST),
        VarEnum.VT_I2: ("h", _same, VALUE_COST),
        VarEnum.VT_UI2: ("H", _same, VALUE_COST),
        VarEnum.VT_I4: ("i", _same, VALUE_COST),
        VarEnum.VT_INT: ("i", _same, VALUE_COST),
        VarEnum.VT_UI4: ("I", _same, VALUE_COST),
        VarEnum.VT_UINT: ("I", _same, VALUE_COST),
        VarEnum.VT_ERROR: ("I", _same, VALUE_COST),
        VarEnum.VT_I8: ("q", plain.integer, DICT_COST + 80),
        VarEnum.VT_UI8: ("Q", plain.integer, DICT_COST + 80),
        VarEnum.VT_R4: ("f", plain.floating, VALUE_COST),
        VarEnum.VT_R8: ("d", plain.floating, VALUE_COST),
        VarEnum.VT_BOOL: ("h", _boolean, 0),
        VarEnum.VT_CY: ("q", _currency, DICT_COST + 80),
        VarEnum.VT_DATE: ("8s", _date, DICT_COST + 88),
        VarEnum.VT_FILETIME: ("Q", _filetime, DICT_COST + 88),
        VarEnum.VT_CLSID: ("16s", _guid, DICT_COST + 88),
        VarEnum.VT_DECIMAL: ("16s", _decimal, DICT_COST + 80),
    }
)
"""The form of a value for `struct`, its reader, and the memory that the value takes, by type."""
_NUMBER_FORMS: Final = "bBhHiIqQfd"
_CHUNK: Final = 4096
"""Elements that are unpacked at once."""
_STRUCTS: Final = {kind: struct.Struct("<" + form) for kind, (form, _, _) in KINDS.items()}
_TEXTS: Final = (VarEnum.VT_BSTR, VarEnum.VT_LPSTR, VarEnum.VT_LPWSTR)


def read(body: bytes, body_type: int, budget: Budget) -> Content:
    """Read a value of a type.

    Raises MalformedBody if the bytes can't be a value of the type.
    """
    if body_type in KINDS:
        return _scalar(body, body_type)
    if body_type in _TEXTS:
        budget.text(len(body))
        text, problems = _text(body, body_type)
        return Content("activex", text, plain.one_line(text), problems)
    if body_type == VarEnum.VT_NULL:
        if body:
            _refuse(body, body_type, f"VT_NULL takes no bytes, the body has {len(body)}")
        return Content("activex", None, "null")
    if body_type in OPAQUE:
        return _opaque(body, body_type)
    many, kind = body_type & _MANY, body_type & ~_MANY
    if many in (VarEnum.VT_VECTOR, VarEnum.VT_ARRAY):
        if kind == VarEnum.VT_UI1:
            return Content("activex", plain.raw(body), "")
        if kind in KINDS:
            return _array(body, body_type, kind, budget)
        if kind in _TEXTS:
            return _texts(body, kind, budget)
    raise MalformedBody(f"bodies of type {variant_name(body_type)} are not read by their type")


def _refuse(body: bytes, body_type: int, why: str) -> NoReturn:
    raise MalformedBody(why, path=variant_name(body_type), offset=len(body))


def _scalar(body: bytes, body_type: int) -> Content:
    form = _STRUCTS[body_type]
    if len(body) != form.size:
        if body_type == VarEnum.VT_BOOL and len(body) == 1:
            return Content("activex", body != b"\0", "false" if body == b"\0" else "true")
        takes = f"{variant_name(body_type)} takes {counted(form.size, 'byte')}"
        _refuse(body, body_type, f"{takes}, the body has {len(body)}")
    (found,) = form.unpack(body)
    try:
        value = KINDS[body_type][1](found)
    except _NoValueError as exc:
        raise MalformedBody(str(exc), path=variant_name(body_type), offset=0) from None
    problems: tuple[Problem, ...] = ()
    if body_type == VarEnum.VT_BOOL and found not in (VARIANT_FALSE, -1):
        why = f"0x{found & VARIANT_TRUE:04X} is neither VARIANT_TRUE nor VARIANT_FALSE"
        problems = (Problem(why, "VT_BOOL", 0),)
    text = hresult_name(found) if body_type == VarEnum.VT_ERROR else plain.line(value)
    return Content("activex", value, text, problems)


def _array(body: bytes, body_type: int, kind: int, budget: Budget) -> Content:
    _, make, cost = KINDS[kind]
    form = _STRUCTS[kind]
    count, rest = divmod(len(body), form.size)
    before = 0
    if rest == _SIZE.size and body_type & VarEnum.VT_VECTOR and _SIZE.unpack_from(body) == (count,):
        # As COUNTEDARRAY is written, [MS-MQMQ] 2.2.16; of smaller elements nothing tells it apart.
        before = rest
        body = body[before:]
    elif rest:
        has = f"{variant_name(body_type)} has elements of {counted(form.size, 'byte')}"
        _refuse(body, body_type, f"{has}, the body has {len(body)}")
    problems: list[Problem] = []
    fits = _fitting(count, cost, budget, problems, form.size)
    values: list[Plain] = []
    for first in range(0, fits, _CHUNK):
        count = min(_CHUNK, fits - first)
        numbers = _numbers(body, kind, first * form.size, count)
        if numbers is not None:
            values += numbers
            continue
        for at in range(first * form.size, (first + count) * form.size, form.size):
            try:
                values.append(make(form.unpack_from(body, at)[0]))
            except _NoValueError as exc:
                problems.append(Problem(str(exc), f"[{at // form.size}]", before + at))
                return Content("activex", values, None, tuple(problems))
    return Content("activex", values, None, tuple(problems))


def _numbers(body: bytes, kind: int, at: int, count: int) -> list[Plain] | None:
    """Return numbers that are plain data as they are; None if there are other values among them."""
    code, make, _ = KINDS[kind]
    if code not in _NUMBER_FORMS or make in (_currency, _filetime):
        return None
    found = struct.unpack_from(f"<{count}{code}", body, at)
    if make is _boolean:
        return [number != VARIANT_FALSE for number in found]
    if make is plain.integer and (min(found) < -plain.EXACT or max(found) > plain.EXACT):
        return None
    if make is plain.floating and not math.isfinite(sum(found)):
        return None
    return list(found)


def _fitting(count: int, cost: int, budget: Budget, problems: list[Problem], size: int) -> int:
    """Return how many of the elements the limits allow for, and add a problem if these are not all."""
    fits = min(count, budget.limits.items, budget.memory // (cost + ITEM_COST))
    try:
        budget.items(fits)
        budget.spend(fits * cost)
        if fits < count:
            budget.items(count - fits)
            budget.spend((count - fits) * cost)
    except LimitExceeded as exc:
        problems.append(Problem(exc.why, f"[{fits}]", fits * size))
    return fits


def _text(body: bytes, kind: int) -> tuple[str, tuple[Problem, ...]]:
    if kind == VarEnum.VT_LPSTR:
        data = body.removesuffix(b"\0")
        try:
            return data.decode(), ()
        except UnicodeDecodeError as exc:
            # The message does not have the code page of its sender.
            why = "not UTF-8, read as Windows-1252"
            return data.decode("cp1252", "replace"), (Problem(why, "VT_LPSTR", exc.start),)
    if len(body) % 2:
        _refuse(body, kind, f"{variant_name(kind)} is UTF-16, the body has {counted(len(body), 'byte')}")
    problems: tuple[Problem, ...] = ()
    try:
        text = body.decode("utf-16-le")
    except UnicodeDecodeError as exc:
        why = f"not well-formed UTF-16 at byte {exc.start}"
        problems = (Problem(why, variant_name(kind), exc.start),)
        text = body.decode("utf-16-le", "replace")
    return text.removesuffix("\0") if kind == VarEnum.VT_LPWSTR else text, problems


def _texts(body: bytes, kind: int, budget: Budget) -> Content:
    """Read texts that each end in a null, or that have their number and their sizes before them."""
    width = 1 if kind == VarEnum.VT_LPSTR else 2
    if len(body) % width:
        _refuse(body, kind, f"{variant_name(kind)} is UTF-16, the body has {counted(len(body), 'byte')}")
    bounds = _counted(body, width) if _is_counted(body, width) else _ended(body, width)
    problems: list[Problem] = []
    values: list[Plain] = []
    for start, end in bounds:
        try:
            budget.items(1)
            budget.text(end - start)
        except LimitExceeded as exc:
            problems.append(Problem(exc.why, f"[{len(values)}]", start))
            break
        text, faults = _text(body[start:end], kind)
        if len(problems) < _PROBLEMS_MAX:
            problems += (
                Problem(fault.error, f"[{len(values)}]", start + (fault.offset or 0)) for fault in faults
            )
        values.append(text.rstrip("\0"))
    return Content("activex", values, None, tuple(problems))


def _is_counted(body: bytes, width: int) -> bool:
    """Return whether a number of texts and their sizes in bytes account for the whole body."""
    if len(body) < _SIZE.size:
        return False
    (count,) = _SIZE.unpack_from(body)
    number, at = 0, _SIZE.size
    for number, (start, end) in enumerate(_counted(body, width), 1):  # noqa: B007
        if (end - start) % width or end > len(body):
            return False
        at = end + (-end % 4)
    return 0 < count == number and at >= len(body)


def _counted(body: bytes, width: int) -> Iterator[tuple[int, int]]:
    (count,) = _SIZE.unpack_from(body)
    at = _SIZE.size
    for _ in range(count):
        if at + _SIZE.size > len(body):
            return
        (size,) = _SIZE.unpack_from(body, at)
        at += _SIZE.size
        yield at, at + size
        at += size + (-size % 4)


def _ended(body: bytes, width: int) -> Iterator[tuple[int, int]]:
    """Yield where each text begins and where its null ends, or the body."""
    null, start, at = bytes(width), 0, 0
    while (at := body.find(null, at)) >= 0:
        if at % width:
            at += 1
            continue
        at += width
        yield start, at
        start = at
    if start < len(body):
        yield start, len(body)


def _opaque(body: bytes, body_type: int) -> Content:
    text = f"{variant_name(body_type)} of {counted(len(body), 'byte')}"
    if body_type == VarEnum.VT_STREAMED_OBJECT and len(body) >= 16:
        # OleSaveToStream writes the class of the object first.
        text += f", class {UUID(bytes_le=body[:16])}"
    return Content("activex", plain.raw(body), text)
