"""The deprecated `decode_body`: the values of `decode` in the types of Python."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from msmqwire.bodies import activex, plain, texts
from msmqwire.bodies.body import Plain
from msmqwire.bodies.decoding import BYTES_TYPES, VT_BINARY_OBJECT
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.wcf.framing import read_nmf
from msmqwire.constants import VarEnum, hresult_name, variant_name
from msmqwire.errors import MalformedBody

XML_CHARACTERS_MAX: Final = 0x0040_0000  # no more fits into a packet

_BINARY_FORMATTER: Final = re.compile(rb"\x00.{8}\x01\x00\x00\x00\x00\x00\x00\x00[\x01-\x16]", re.DOTALL)
_CHARACTER: Final = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?<char[\s>]")


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded message body.

    Attributes:
        kind: its format: the name of its type (``VT_BSTR``, ``VT_I4 | VT_VECTOR``) or, by content,
            ``xml``, ``utf-16 text``, ``utf-8 text``, ``binaryformatter``, ``nmf``, ``bytes`` or ``empty``.
        value: the value: int, float, bool, Decimal, datetime, str, UUID, a list of those, an NmfMessage, the
            value of an XML document with one simple element, bytes for the rest, None for no value.
        text: the value as readable text, None if it has none.
        raw: the bytes of the body, always.
        note: why the value is less than the type or content announced, or None.
    """

    kind: str
    value: object
    text: str | None
    raw: bytes
    note: str | None = None


def decode_body(body: bytes, body_type: int = 0) -> DecodedBody:
    """Decode a message body; deprecated, `decode` reads more.

    Args:
        body: MessagePropertiesHeader.MessageBody, decrypted.
        body_type: MessagePropertiesHeader.BodyType, 0 if unknown.

    Returns:
        The decoded body. One that does not match its type is decoded by its content, and `note` has the
        reason. No bytes make this raise.
    """
    warnings.warn(
        "decode_body is deprecated; write decode, which reads more", DeprecationWarning, stacklevel=2
    )
    body = bytes(body)
    if body_type in BYTES_TYPES or body_type == VT_BINARY_OBJECT:
        return _by_content(body) if body else DecodedBody("empty", None, "", body)
    kind = variant_name(body_type)
    try:
        if body_type & VarEnum.VT_ARRAY:
            raise MalformedBody(f"bodies of type {kind} are not read by their type")
        content = activex.read(body, body_type, Budget(DEFAULT, len(body)))
    except MalformedBody as exc:
        if not body:
            return DecodedBody("empty", None, "", body, exc.why)
        return replace(_by_content(body), note=exc.why)
    value = _python(content.value)
    note = content.problems[0].error if content.problems else None
    text = None if isinstance(value, bytes) else _shown(value, body_type)
    return DecodedBody(kind, value, text, body, note)


def _by_content(body: bytes) -> DecodedBody:
    if _BINARY_FORMATTER.match(body):
        why = "an object of .NET; such objects are not deserialized"
        return DecodedBody("binaryformatter", body, None, body, why)
    message = read_nmf(body)
    if message is not None:
        return DecodedBody("nmf", message, message.summary, body)
    text = texts.decoded(body)
    if text is None:
        return DecodedBody("bytes", body, None, body)
    kind = "utf-16 text" if texts.is_utf16(body) else "utf-8 text"
    return _xml(text, body, kind) if text.lstrip().startswith("<") else DecodedBody(kind, text, text, body)


def _xml(text: str, body: bytes, kind: str) -> DecodedBody:
    """Return the value of XML with one element of a simple type, the text of other XML."""
    from msmqwire.bodies import xml

    if len(text) > XML_CHARACTERS_MAX:
        why = f"more than {XML_CHARACTERS_MAX} characters: not read as XML"
        return DecodedBody(kind, text, text, body, why)
    try:
        content = xml.of_text(text, Budget(DEFAULT, len(body)))
    except MalformedBody as exc:
        return DecodedBody(kind, text, text, body, exc.why)
    for problem in content.problems:
        if "document type" in problem.error or " is not a" in problem.error:
            return DecodedBody("xml", text, text, body, problem.error)
        if problem.error.endswith(" elements deep"):
            return DecodedBody(kind, text, text, body, f"{problem.error}: not read as XML")
        return DecodedBody(kind, text, text, body, problem.error)
    value = _python(content.value)
    if isinstance(value, (dict, list)) or "<!--" in text:
        return DecodedBody("xml", text, text, body)
    if isinstance(value, str) and len(value) == 1 and _CHARACTER.match(text):
        value = ord(value)
    return DecodedBody("xml", value, "" if value is None else _shown(value, 0), body)


def _python(value: Plain) -> object:
    """Return plain data in the types of Python, where it stands for one value."""
    match value:
        case {plain.DECIMAL: str(text)}:
            return int(text) if text.removeprefix("-").isdigit() else Decimal(text)
        case {plain.FLOAT: str(text)}:
            return float(text.lower())
        case {plain.BYTES: str(text)}:
            return bytes.fromhex(text)
        case {plain.GUID: str(text)}:
            return UUID(text)
        case {plain.DATE: str(text)}:
            return datetime.fromisoformat(text[:26] + text[29:] if "." in text else text)
        case list():
            return [_python(item) for item in value]
    return value


def _shown(value: object, body_type: int) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
        case list():
            return ", ".join(_shown(item, body_type & ~VarEnum.VT_VECTOR) for item in value)
        case int() if body_type == VarEnum.VT_ERROR:
            return hresult_name(value)
    return str(value)
