"""Simple types of XML schema, under the names that XmlSerializer gives to root elements and ``xsi:type``."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from msmqwire.bodies import dates, plain
from msmqwire.bodies.body import Plain

_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,20}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,400}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})")
_FLOAT: Final = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,5})?")
_FLOATS: Final = frozenset(("NaN", "INF", "-INF"))
_DURATION: Final = re.compile(
    r"-?P(?=[0-9T])([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?"
)
_TIME: Final = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})?")
_SHORT: Final = 15


def _integer(bits: int, *, signed: bool) -> Callable[[str], Plain]:
    low = -(1 << (bits - 1)) if signed else 0
    high = low + (1 << bits)

    def read(text: str) -> Plain:
        if not _DIGITS.fullmatch(text):
            raise ValueError(text)
        value = int(text)
        if not low <= value < high:
            raise ValueError(text)
        return value if -plain.EXACT <= value <= plain.EXACT else {plain.DECIMAL: text.removeprefix("+")}

    return read


def _any_integer(text: str) -> Plain:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return plain.integer(int(text))


def _boolean(text: str) -> Plain:
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


def _decimal(text: str) -> Plain:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    return {plain.DECIMAL: text.removeprefix("+")}


def _float(text: str) -> Plain:
    if text in _FLOATS:
        return {plain.FLOAT: text}
    if not _FLOAT.fullmatch(text):
        raise ValueError(text)
    return plain.floating(float(text))


def _date(text: str) -> Plain:
    whole = dates.of_text(text)
    if whole is None:
        raise ValueError(text)
    return {plain.DATE: whole}


def _duration(text: str) -> Plain:
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    return {plain.TIMESPAN: text}


def _time(text: str) -> Plain:
    if not _TIME.fullmatch(text):
        raise ValueError(text)
    return text


def _guid(text: str) -> Plain:
    return {plain.GUID: str(UUID(text))}


def _base64(text: str) -> Plain:
    return plain.raw(base64.b64decode("".join(text.split()), validate=True))


def _hex(text: str) -> Plain:
    return plain.raw(bytes.fromhex(text))


def _character(text: str) -> Plain:
    """Read a character, which XmlSerializer writes as the number of its UTF-16 code unit."""
    code = int(text) if _DIGITS.fullmatch(text) else -1
    if not 0 <= code < 1 << 16:
        raise ValueError(text)
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)


SIMPLE: Final[Mapping[str, Callable[[str], Plain]]] = MappingProxyType(
    {
        "string": str,
        "boolean": _boolean,
        "byte": _integer(8, signed=True),
        "unsignedByte": _integer(8, signed=False),
        "short": _integer(16, signed=True),
        "unsignedShort": _integer(16, signed=False),
        "char": _character,
        "int": _integer(32, signed=True),
        "unsignedInt": _integer(32, signed=False),
        "long": _integer(64, signed=True),
        "unsignedLong": _integer(64, signed=False),
        "integer": _any_integer,
        "float": _float,
        "double": _float,
        "decimal": _decimal,
        "dateTime": _date,
        "date": _date,
        "dateTimeOffset": _date,
        "time": _time,
        "duration": _duration,
        "TimeSpan": _duration,
        "guid": _guid,
        "base64Binary": _base64,
        "hexBinary": _hex,
    }
)
"""The reader of the text of a simple type, which raises ValueError or ArithmeticError, by name."""
