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
from typing import Any, Final

from msmqwire.analysis.lint.message import encrypted
from msmqwire.analysis.lint.registry import REMOTE, USER, Problem, rule
from msmqwire.names.printable import counted

BODY: Final = "MessagePropertiesHeader.MessageBody"
BINARY_OBJECT: Final = 0x0300
"""The BodyType of BinaryMessageFormatter."""

GADGET_TITLE: Final = "Serialized objects are of types known as gadgets"
DTD_TITLE: Final = "An XML body has a document type"
_XML: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*<[?!]")
_WIDE_XML: Final = re.compile(rb"(?:\xff\xfe)?(?:[ \t\r\n]\x00)*<\x00[?!]\x00")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DOCTYPE: Final = re.compile(r"<!DOCTYPE[ \t\r\n]+([^\s>\[]{1,80})[^>\[]*(\[?)")
_HTML: Final = re.compile(r"<!doctype[ \t\r\n]+html[ \t\r\n]*>", re.IGNORECASE)
NRBF: Final = re.compile(rb"\x00.{8}\x01\x00{7}", re.DOTALL)


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


@rule("ATTACK-BODY-DTD", DTD_TITLE, BODY, USER | REMOTE, "ATTACK")
def _dtd(packet: Any) -> Problem:
    body = packet.MessagePropertiesHeader.MessageBody
    return None if not body or encrypted(packet) else document_type(body)


def gadgets(body: bytes) -> str | None:
    """Return which types in serialized objects are known as gadgets, and the source that says so; None for
    none.
    """
    if not NRBF.match(body):
        return None
    from msmqwire.bodies.nrbf.gadgets import dangerous, type_names

    found = dangerous(type_names(body))
    if not found:
        return None
    name, source = found[0]
    more = f", and {counted(len(found) - 1, 'other type')}" if len(found) > 1 else ""
    return f"the type {name} ({source}){more}"


@rule("ATTACK-BODY-GADGET", GADGET_TITLE, BODY, USER | REMOTE, "ATTACK")
def _gadget(packet: Any) -> Problem:
    body = packet.MessagePropertiesHeader.MessageBody
    return None if not body or encrypted(packet) else gadgets(body)
