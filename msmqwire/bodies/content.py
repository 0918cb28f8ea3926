"""Bodies decoded by content, where the type says no more than bytes: .NET formats and text."""

from __future__ import annotations

import codecs
import re
from typing import Final

from msmqwire.bodies.decoded_body import DecodedBody
from msmqwire.bodies.nmf import read_nmf
from msmqwire.bodies.xml import read_xml

# [MS-NRBF] 2.6.1: RecordTypeEnum 0, RootId, HeaderId, MajorVersion 1, MinorVersion 0, and the next record.
_BINARY_FORMATTER: Final = re.compile(rb"\x00.{8}\x01\x00\x00\x00\x00\x00\x00\x00[\x01-\x16]", re.DOTALL)

# Control characters including C1, private use and noncharacters; tab, line ends and form feed belong to
# text.
_NOT_TEXT: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\uf8ff\ufff9-\uffff]")

_LATIN_SHARE: Final = 0.75
"""The share of code units below 0x100 from which bytes without a byte order mark count as UTF-16."""


def read_content(body: bytes) -> DecodedBody:
    """Decode bytes by what they look like; never raises."""
    if _BINARY_FORMATTER.match(body):
        return DecodedBody(
            "binaryformatter", body, None, body, "an object of .NET; such objects are not deserialized"
        )
    message = read_nmf(body)
    if message is not None:
        return DecodedBody("nmf", message, message.summary, body)
    for kind, text in (("utf-16 text", _utf16(body)), ("utf-8 text", _utf8(body))):
        if text is not None:
            return read_xml(text, body, otherwise=kind)
    return DecodedBody("bytes", body, None, body)


def _utf16(body: bytes) -> str | None:
    if len(body) < 2 or len(body) % 2:
        return None
    marked = body[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        text = body.decode("utf-16" if marked else "utf-16-le").removesuffix("\0")
    except UnicodeDecodeError:
        return None
    if not text or _NOT_TEXT.search(text):
        return None
    return text if marked or body[1::2].count(0) >= _LATIN_SHARE * len(body) / 2 else None


def _utf8(body: bytes) -> str | None:
    try:
        text = body.decode("utf-8-sig").removesuffix("\0")
    except UnicodeDecodeError:
        return None
    return text if text and not _NOT_TEXT.search(text) else None
