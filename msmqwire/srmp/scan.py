"""Reasons to refuse hostile XML before an XML reader sees it, and offsets of its elements in the bytes.

One pass over the tags, in time and memory that the limits bound. It knows too little of XML to accept a
document: lxml decides that afterwards, and then both have seen the same elements.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted

SIZE_MAX: Final = 0x0040_0000  # bytes; SRMP-2.2.2-18 has no message above
DEPTH_MAX: Final = 32  # the deepest declared element stands 6 deep
ELEMENTS_MAX: Final = 4096  # about 60 are declared; comments, sections and instructions count too
TAG_MAX: Final = 4096  # bytes of a start tag: attributes and namespaces are compared with each other

BOM: Final = b"\xef\xbb\xbf"
_ENCODING = re.compile(rb"""<\?xml[^?>]*?[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*["']([^"'?>]*)["']""")
# Possessive, so that no text makes it search twice: a quoted value may hold a >.
_TAG_END = re.compile(rb"""[^"'<>]*+(?:"[^"<]*+"[^"'<>]*+|'[^'<]*+'[^"'<>]*+)*+>""")
_ENDS = ((b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>"))
_SLASH = ord("/")


NOT_XML: Final = "SRMP-3.1.5.1.2-02"


class Hostility(Enum):
    """The reason to refuse a document that is made to harm its reader, or to be read in two ways."""

    ENTITIES = "a document type or entity"
    DEPTH = "elements too deep"
    AMOUNT = "too many elements, too large a tag or document"
    ENCODING = "another encoding than UTF-8"


class HostileXml(MalformedPacket):
    """XML that no reader should be given.

    Attributes:
        hostility: the kind.
    """

    def __init__(
        self,
        why: str,
        *,
        path: str = "",
        offset: int | None = None,
        requirement: str = "",
        hostility: Hostility = Hostility.AMOUNT,
    ) -> None:
        super().__init__(why, path=path, offset=offset, requirement=requirement)
        self.hostility = hostility


class Place(NamedTuple):
    """The beginning and end of an element, and whether it is written as one tag (``<via/>``)."""

    start: int
    single: bool
    end: int


def is_within_limits(data: bytes) -> bool:
    """Return whether a document is so small and plain that `scan` finds nothing in it if it is well-formed.

    Every < begins a tag in it, and the elements around the deepest one need two tags each.
    """
    return (
        len(data) <= TAG_MAX
        and data.count(b"<") <= 2 * DEPTH_MAX
        and (b"!" not in data or b"<!" not in data)
        and (b"?" not in data or b"<?" not in data)
        and (data.isascii() or _is_utf_8(data))
    )


def scan(data: bytes) -> list[Place]:
    """Return the place of each element, in the order of their start tags.

    Raises MalformedPacket for a document that is too large, too deep or not in UTF-8, that has too many
    elements, or a document type, and with it every entity.
    """
    if len(data) > SIZE_MAX:
        raise _hostile(f"{counted(len(data), 'byte')}, more than {SIZE_MAX:,}", Hostility.AMOUNT, SIZE_MAX)
    _check_encoding(data)
    starts: list[int] = []
    singles: list[bool] = []
    ends: list[int] = []
    opened: list[int] = []  # numbers of the elements around
    others = 0
    at = data.find(b"<")
    while at >= 0:
        mark = data[at + 1 : at + 2]
        if mark in (b"!", b"?"):
            after = _section_end(data, at)
            others += 1
        else:
            after = _tag_end(data, at)
            if mark != b"/":
                single = data[after - 2] == _SLASH
                starts.append(at)
                singles.append(single)
                ends.append(after)
                if len(opened) == DEPTH_MAX:
                    raise _hostile(f"elements more than {DEPTH_MAX} deep", Hostility.DEPTH, at)
                if not single:
                    opened.append(len(starts) - 1)
            elif opened:  # one too many is for lxml to refuse
                ends[opened.pop()] = after
        if len(starts) + others > ELEMENTS_MAX:
            raise _hostile(f"more than {ELEMENTS_MAX} elements", Hostility.AMOUNT, at)
        at = data.find(b"<", after)
    return list(map(Place, starts, singles, ends))


def _check_encoding(data: bytes) -> None:
    """A declaration may name UTF-8, or nothing."""
    try:
        data.decode("utf-8")  # SRMP-2.2-01
    except UnicodeDecodeError as exc:
        why = "not UTF-8, the encoding of every envelope"
        raise _hostile(why, Hostility.ENCODING, exc.start) from None
    declared = _ENCODING.match(data, len(BOM) if data.startswith(BOM) else 0)
    if declared and declared[1].lower() != b"utf-8":  # SRMP-2.2-01
        raise _hostile("declares another encoding than UTF-8", Hostility.ENCODING, declared.start(1))


def start_tag(data: bytes, at: int) -> bytes:
    """Return the start tag at an offset of a document that was scanned."""
    return data[at : _tag_end(data, at)]


def _is_utf_8(data: bytes) -> bool:
    try:
        return bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _section_end(data: bytes, at: int) -> int:
    """Return the end of a comment, a CDATA section or an instruction."""
    for first, last in _ENDS:
        if data.startswith(first, at):
            found = data.find(last, at + len(first))  # <!--><a/>--> is one comment
            if found < 0:
                raise _malformed(f"no {last.decode()} follows", at)
            return found + len(last)
    raise _hostile("a document type or entity: no XML with one is read", Hostility.ENTITIES, at)


def _tag_end(data: bytes, at: int) -> int:
    end = _TAG_END.match(data, at + 1, at + TAG_MAX)
    if end is None:
        if data.find(b"<", at + 1, at + TAG_MAX) >= 0 or len(data) <= at + TAG_MAX:
            raise _malformed("a tag that does not end", at)
        raise _hostile(f"a tag that does not end within {TAG_MAX} bytes", Hostility.AMOUNT, at)
    return end.end()


def _hostile(why: str, hostility: Hostility, offset: int) -> HostileXml:
    why = f"{why} ({NOT_XML})"
    return HostileXml(why, path="Envelope", offset=offset, requirement=NOT_XML, hostility=hostility)


def _malformed(why: str, offset: int) -> MalformedPacket:
    return MalformedPacket(f"{why} ({NOT_XML})", path="Envelope", offset=offset, requirement=NOT_XML)
