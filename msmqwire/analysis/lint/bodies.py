"""Checks of the content of bodies: content that overruns a receiver that reads it without care.

| id | pattern |
| --- | --- |
| ATTACK-BODY-DTD | an XML body with a document type: entities that grow, files of the receiver, addresses |
| ATTACK-BODY-GADGET | serialized objects of .NET of types that run programs when they are made |
| ATTACK-BODY-BINARY | serialized objects of .NET that come over HTTP from an address of the Internet |

An encrypted body is not looked at.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.message import encrypted
from msmqwire.analysis.lint.registry import REMOTE, SRMP, USER, Check, Problem, listed, rule
from msmqwire.analysis.lint.srmp_offsets import PartOffsets
from msmqwire.names.printable import counted
from msmqwire.srmp.attributes import attribute
from msmqwire.srmp.http_message import StatusLine
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import PARTS, Multipart

BODY: Final = "MessagePropertiesHeader.MessageBody"
BINARY_OBJECT: Final = 0x0300
"""The BodyType of BinaryMessageFormatter."""

_GADGET_TITLE: Final = "Serialized objects are of types known as gadgets"
_DTD_TITLE: Final = "An XML body has a document type"
_XML: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*<[?!]")
_WIDE_XML: Final = re.compile(rb"(?:\xff\xfe)?(?:[ \t\r\n]\x00)*<\x00[?!]\x00")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DOCTYPE: Final = re.compile(r"<!DOCTYPE[ \t\r\n]+([^\s>\[]{1,80})[^>\[]*(\[?)")
_HTML: Final = re.compile(r"<!doctype[ \t\r\n]+html[ \t\r\n]*>", re.IGNORECASE)
_NRBF: Final = re.compile(rb"\x00.{8}\x01\x00{7}", re.DOTALL)


def document_type(body: bytes) -> str | None:
    """Return the finding about the document type of an XML body; None for other bodies, and that of HTML
    5.
    """
    if _XML.match(body):
        if b"<!DOCTYPE" not in body:
            return None
        text = body.removeprefix(codecs.BOM_UTF8).decode("latin-1")
    elif _WIDE_XML.match(body):
        text = body.removeprefix(codecs.BOM_UTF16_LE).decode("utf-16-le", "replace")
    else:
        return None
    at = 0
    while (space := _SPACE.match(text, at)) is not None:
        at = space.end()
        end = "?>" if text.startswith("<?", at) else "-->" if text.startswith("<!--", at) else ""
        if not end:
            break
        found = text.find(end, at)
        if found < 0:
            return None
        at = found + len(end)
    declared = _DOCTYPE.match(text, at)
    if declared is None or _HTML.match(text, at):
        return None
    more = ", with declarations in it" if declared[2] else ""
    return f"the document type {declared[1]!r}{more}"


@rule("ATTACK-BODY-DTD", _DTD_TITLE, BODY, USER | REMOTE, "ATTACK")
def _dtd(packet: Any) -> Problem:
    body = packet.MessagePropertiesHeader.MessageBody
    return None if not body or encrypted(packet) else document_type(body)


def gadgets(body: bytes) -> str | None:
    """Return which types in serialized objects are known as gadgets, and who says so; None for none."""
    if not _NRBF.match(body):
        return None
    from msmqwire.bodies.nrbf.gadgets import dangerous, type_names

    found = dangerous(type_names(body))
    if not found:
        return None
    name, source = found[0]
    more = f", and {counted(len(found) - 1, 'other type')}" if len(found) > 1 else ""
    return f"the type {name} ({source}){more}"


@rule("ATTACK-BODY-GADGET", _GADGET_TITLE, BODY, USER | REMOTE, "ATTACK")
def _gadget(packet: Any) -> Problem:
    body = packet.MessagePropertiesHeader.MessageBody
    return None if not body or encrypted(packet) else gadgets(body)


GADGET_OVER_HTTP: Final = listed("ATTACK-BODY-GADGET", _GADGET_TITLE, "", SRMP, "ATTACK")
DTD_OVER_HTTP: Final = listed("ATTACK-BODY-DTD", _DTD_TITLE, "", SRMP, "ATTACK")
BINARY_FROM_OUTSIDE: Final = listed(
    "ATTACK-BODY-BINARY", "Serialized objects come over HTTP from the Internet", "", SRMP, "ATTACK"
)


def lint_srmp_body(message: SrmpMessage, source: str | None = None) -> list[Finding]:
    """Return the findings about the body of an SRMP message.

    Args:
        message: the message.
        source: the address that it came from, None if that is unknown.
    """
    if isinstance(message.start, StatusLine) or not message.body:
        return []
    return [
        check.at(path, PartOffsets(message).of(path), text)
        for check, path, text in _problems(message, message.body, source)
    ]


def _problems(message: SrmpMessage, body: bytes, source: str | None) -> Iterator[tuple[Check, str, str]]:
    path = _path_of_body(message)
    if (said := document_type(body)) is not None:
        yield DTD_OVER_HTTP, path, said
    if (said := gadgets(body)) is not None:
        yield GADGET_OVER_HTTP, path, said
    is_binary = attribute("body_type", message) == BINARY_OBJECT or _NRBF.match(body)
    if source is not None and is_binary and _is_outside(source):
        yield BINARY_FROM_OUTSIDE, path, f"BodyType 0x300 or its bytes, from {source}"


def _is_outside(address: str) -> bool:
    """Whether an address is one of the Internet, not of a network of one's own."""
    try:
        return ip_address(address).is_global
    except ValueError:
        return False


def _path_of_body(message: SrmpMessage) -> str:
    if not isinstance(message.content, Multipart):
        return PARTS
    places = (n for n, part in enumerate(message.content.parts) if part.content is message.body)
    return f"{PARTS}[{next(places, 0)}]"
