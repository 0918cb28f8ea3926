"""Bodies decoded by type: [MS-MQMQ] 2.2.12, and the types of [MS-OAUT] 2.2.7 that applications also use.

Numbers are little-endian; numbers and texts have no length prefix; a vector is its elements in sequence.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Final
from uuid import UUID

from msmqwire.bodies.content import read_content
from msmqwire.bodies.decoded_body import DecodedBody
from msmqwire.constants import VARIANT_FALSE, VARIANT_TRUE, VarEnum, hresult_name, variant_name
from msmqwire.names.printable import counted

VT_BINARY_OBJECT: Final = 0x300
"""The type that .NET's BinaryMessageFormatter writes; it has no name elsewhere."""

BYTES_TYPES: Final = frozenset(
    {
        VarEnum.VT_EMPTY,
        VarEnum.VT_NULL,
        VarEnum.VT_BLOB,
        VarEnum.VT_UI1 | VarEnum.VT_VECTOR,
        VarEnum.VT_UI1 | VarEnum.VT_ARRAY,
        VT_BINARY_OBJECT,
    }
)
"""Types that mean no more than bytes: the content decides."""

OLE_EPOCH: Final = datetime(1899, 12, 30)
FILETIME_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)
_CURRENCY_PLACES = 4

# Streams and stored objects are compound files and the like, left to other programs.
_OPAQUE: Final = frozenset(
    {
        VarEnum.VT_STREAM,
        VarEnum.VT_STORAGE,
        VarEnum.VT_STREAMED_OBJECT,
        VarEnum.VT_STORED_OBJECT,
        VarEnum.VT_BLOB_OBJECT,
        VarEnum.VT_CF,
    }
)


class _TypeMismatch(ValueError):
    """The bytes do not match their type."""


def _number(form: str) -> Callable[[bytes], int | float]:
    def read(data: bytes) -> int | float:
        value: int | float = struct.unpack(form, data)[0]
        return value

    return read


def _currency(data: bytes) -> Decimal:
    return Decimal(int.from_bytes(data, "little", signed=True)).scaleb(-_CURRENCY_PLACES)


def _date(data: bytes) -> datetime:
    """Decode days since 1899-12-30, without a zone; even before it the fraction counts from midnight."""
    (days,) = struct.unpack("<d", data)
    try:
        whole = int(days)
        return OLE_EPOCH + timedelta(days=whole) + timedelta(days=abs(days - whole))
    except (OverflowError, ValueError):
        raise _TypeMismatch(f"{days} days since 1899-12-30 is no date") from None


def _filetime(data: bytes) -> datetime:
    """Decode 100 ns units since 1601 in UTC, truncated to microseconds."""
    ticks = int.from_bytes(data, "little")
    try:
        return FILETIME_EPOCH + timedelta(microseconds=ticks // 10)
    except OverflowError:
        raise _TypeMismatch(f"{ticks} times 100 ns since 1601 is no date") from None


def _guid(data: bytes) -> UUID:
    return UUID(bytes_le=data)


_SCALARS: Final[Mapping[int, tuple[int, Callable[[bytes], object]]]] = MappingProxyType(
    {
        VarEnum.VT_I1: (1, _number("<b")),
        VarEnum.VT_UI1: (1, _number("<B")),
        VarEnum.VT_I2: (2, _number("<h")),
        VarEnum.VT_UI2: (2, _number("<H")),
        VarEnum.VT_I4: (4, _number("<i")),
        VarEnum.VT_INT: (4, _number("<i")),
        VarEnum.VT_UI4: (4, _number("<I")),
        VarEnum.VT_UINT: (4, _number("<I")),
        VarEnum.VT_ERROR: (4, _number("<I")),
        VarEnum.VT_I8: (8, _number("<q")),
        VarEnum.VT_UI8: (8, _number("<Q")),
        VarEnum.VT_R4: (4, _number("<f")),
        VarEnum.VT_R8: (8, _number("<d")),
        VarEnum.VT_BOOL: (2, lambda data: data != VARIANT_FALSE.to_bytes(2, "little")),
        VarEnum.VT_CY: (8, _currency),
        VarEnum.VT_DATE: (8, _date),
        VarEnum.VT_FILETIME: (8, _filetime),
        VarEnum.VT_CLSID: (16, _guid),
    }
)
"""By type: the size of a value in bytes, and its decoder."""


def read_typed(body: bytes, body_type: int) -> DecodedBody:
    """Decode a body whose type means more than bytes."""
    kind = variant_name(body_type)
    try:
        return _read(body, body_type, kind)
    except _TypeMismatch as exc:
        why = str(exc)
    if not body:
        return DecodedBody("empty", None, "", body, why)
    return replace(read_content(body), note=why)


def _read(body: bytes, body_type: int, kind: str) -> DecodedBody:
    if body_type in _SCALARS:
        size, read = _SCALARS[body_type]
        if len(body) != size:
            raise _TypeMismatch(f"{kind} takes {counted(size, 'byte')}, the body has {len(body)}")
        value = read(body)
        return DecodedBody(kind, value, _shown(value, body_type), body, _scalar_note(body, body_type))
    if body_type in (VarEnum.VT_BSTR, VarEnum.VT_LPWSTR):
        return _utf16(body, kind, terminated=body_type == VarEnum.VT_LPWSTR)
    if body_type == VarEnum.VT_LPSTR:
        return _ansi(body, kind)
    if body_type in _OPAQUE:
        return DecodedBody(kind, body, None, body)
    element = body_type ^ VarEnum.VT_VECTOR
    if body_type & VarEnum.VT_VECTOR and element in _SCALARS:
        return _vector(body, element, kind)
    raise _TypeMismatch(f"bodies of type {kind} are not read by their type")


def _shown(value: object, element: int) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
        case int() if element == VarEnum.VT_ERROR:
            return hresult_name(value)
    return str(value)


def _scalar_note(body: bytes, body_type: int) -> str | None:
    if body_type != VarEnum.VT_BOOL or int.from_bytes(body, "little") in (VARIANT_FALSE, VARIANT_TRUE):
        return None
    return f"0x{int.from_bytes(body, 'little'):04X} is neither VARIANT_TRUE nor VARIANT_FALSE"


def _vector(body: bytes, element: int, kind: str) -> DecodedBody:
    size, read = _SCALARS[element]
    if len(body) % size:
        raise _TypeMismatch(f"{kind} has elements of {counted(size, 'byte')}, the body has {len(body)}")
    values = [read(body[at : at + size]) for at in range(0, len(body), size)]
    return DecodedBody(kind, values, ", ".join(_shown(value, element) for value in values), body)


def _utf16(body: bytes, kind: str, *, terminated: bool) -> DecodedBody:
    if len(body) % 2:
        raise _TypeMismatch(f"{kind} is UTF-16, the body has {counted(len(body), 'byte')}")
    text = body.decode("utf-16-le", errors="replace")
    note = None
    try:
        body.decode("utf-16-le")
    except UnicodeDecodeError as exc:
        note = f"not well-formed UTF-16 at byte {exc.start}"
    text = text.removesuffix("\0") if terminated else text
    return DecodedBody(kind, text, text, body, note)


def _ansi(body: bytes, kind: str) -> DecodedBody:
    data = body.removesuffix(b"\0")
    try:
        text, note = data.decode("utf-8"), None
    except UnicodeDecodeError:
        # The message does not have the code page of its sender.
        text, note = data.decode("cp1252", errors="replace"), "not UTF-8, read as Windows-1252"
    return DecodedBody(kind, text, text, body, note)
