"""XML bodies, above all those of .NET's XmlMessageFormatter, whose root element is named after the type.

No entity, no document type, no network; size and depth are limited.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from msmqwire.bodies.decoded_body import DecodedBody

XML_BYTES_MAX: Final = 0x0040_0000  # no more fits into a packet, MQMQ-2.2.19.1-21
XML_DEPTH_MAX: Final = 128

_CHUNK = 0x1_0000
_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_SPACE = re.compile(r"\s*")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_DIGITS = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})")
_FLOAT = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,5})?|-?INF|NaN")
_DATE_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,12})?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


class _NotRead(ValueError):
    """Why a text is not decoded as XML."""


def read_xml(text: str, body: bytes, *, otherwise: str) -> DecodedBody:
    """Decode text as XML if it looks like it; otherwise return it as the kind of text it is."""
    if not text.lstrip().startswith("<"):
        return DecodedBody(otherwise, text, text, body)
    if len(text) > XML_BYTES_MAX:
        return DecodedBody(
            otherwise, text, text, body, f"more than {XML_BYTES_MAX} characters: not read as XML"
        )
    if _has_doctype(text):
        return DecodedBody("xml", text, text, body, "has a document type, with which XML is not read")
    try:
        root = _parse(text)
    except _NotRead as exc:
        return DecodedBody(otherwise, text, text, body, str(exc))
    return _value(root, text, body)


def _has_doctype(text: str) -> bool:
    """Return whether a document type declaration precedes the root element."""
    at = 0
    while True:
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        if text.startswith("<?", at):
            end = "?>"
        elif text.startswith("<!--", at):
            end = "-->"
        else:
            return text.startswith("<!DOCTYPE", at)
        found = text.find(end, at)
        if found < 0:
            return False
        at = found + len(end)


def _parse(text: str) -> Any:
    """Return the root element; lxml has no type annotations."""
    from lxml import etree

    # The declared encoding was that of the bytes, and the text has been decoded already.
    parser = etree.XMLPullParser(
        events=("start", "end"),
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
    )
    data = text.strip().encode("utf-8")
    depth = 0
    try:
        for at in range(0, len(data), _CHUNK):
            parser.feed(data[at : at + _CHUNK])
            for event, _ in parser.read_events():
                depth += 1 if event == "start" else -1
                if depth > XML_DEPTH_MAX:
                    raise _NotRead(f"more than {XML_DEPTH_MAX} elements deep: not read as XML")
        return parser.close()
    except etree.LxmlError as exc:
        raise _NotRead(f"not well-formed XML: {exc}") from None


def _value(root: Any, text: str, body: bytes) -> DecodedBody:
    """Return the value of a document of one element of a simple type, else the whole text."""
    read = _TYPES.get(root.tag) if len(root) == 0 else None
    if read is None:
        return DecodedBody("xml", text, text, body)
    if root.get(_NIL) in ("true", "1"):
        return DecodedBody("xml", None, "", body)
    inner = root.text or ""
    try:
        value = read(inner if root.tag == "string" else inner.strip())
    except (ValueError, ArithmeticError):
        return DecodedBody("xml", text, text, body, f"{inner[:40]!r} is no {root.tag}")
    return DecodedBody("xml", value, inner, body)


def _integer(bits: int, *, signed: bool) -> Callable[[str], int]:
    low = -(1 << (bits - 1)) if signed else 0

    def read(text: str) -> int:
        if not _DIGITS.fullmatch(text):
            raise ValueError(text)
        value = int(text)
        if not low <= value < low + (1 << bits):
            raise ValueError(text)
        return value

    return read


def _boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


def _fail(text: str) -> Any:
    raise ValueError(text)


def _decimal(text: str) -> Decimal:
    return Decimal(text) if _DECIMAL.fullmatch(text) else _fail(text)


def _float(text: str) -> float:
    return float(text) if _FLOAT.fullmatch(text) else _fail(text)


def _date_time(text: str) -> datetime:
    """Parse a time with its zone, if any; .NET's seventh decimal is truncated."""
    parts = _DATE_TIME.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    return datetime.fromisoformat(f"{parts[1]}{(parts[2] or '')[:7]}{parts[3] or ''}")


def _base64(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


_TYPES: Final[Mapping[str, Callable[[str], object]]] = MappingProxyType(
    {
        "string": str,
        "boolean": _boolean,
        "byte": _integer(8, signed=True),
        "unsignedByte": _integer(8, signed=False),
        "short": _integer(16, signed=True),
        "unsignedShort": _integer(16, signed=False),
        "char": _integer(16, signed=False),  # the number of a UTF-16 code unit
        "int": _integer(32, signed=True),
        "unsignedInt": _integer(32, signed=False),
        "long": _integer(64, signed=True),
        "unsignedLong": _integer(64, signed=False),
        "float": _float,
        "double": _float,
        "decimal": _decimal,
        "dateTime": _date_time,
        "guid": UUID,
        "base64Binary": _base64,
    }
)
"""By the root element that XmlSerializer writes for a simple type: the decoder of its text."""
