"""XML text as events, for writing it as records and for judging text that came.

It takes the constructs of such messages: elements, attributes, text, comments, CDATA sections and references
to characters, also to those that XML forbids and [MC-NBFX] 2.2.3.13.1 writes; no document type, no processing
instruction. Nothing is recursive, and each character is looked at a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from msmqwire.bodies.wcf.characters import NAME
from msmqwire.bodies.wcf.names import ATTRIBUTES_MAX, XML_NAMESPACE, XMLNS, XMLNS_NAMESPACE
from msmqwire.names.printable import counted


class IllFormed(Exception):
    """A text that is not XML, or none of a message.

    Attributes:
        why: one sentence.
        offset: the character.
    """

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.why, self.offset = why, offset


@dataclass(frozen=True, slots=True)
class Start:
    """The start of an element: prefix, local name, and its attributes in their order.

    An attribute is prefix, local name and value; that which declares a prefix has the prefix ``xmlns``, that
    of the default namespace the name ``xmlns`` and no prefix.
    """

    prefix: str
    name: str
    attributes: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Text:
    """Characters of an element."""

    text: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """The end of the element that was opened last."""


Event: TypeAlias = "Start | Text | Comment | End"

_SPACE: Final = "[ \t\r\n]"
_SPACES: Final = re.compile(f"{_SPACE}*+")
_DECLARATION: Final = re.compile(rf"<\?xml{_SPACE}[^?<>]*+\?>")
_OPEN: Final = re.compile(rf"<(?:({NAME}):)?+({NAME})")
_ATTRIBUTE: Final = re.compile(
    rf"{_SPACE}++(?:({NAME}):)?+({NAME}){_SPACE}*+={_SPACE}*+(?:\"([^\"<]*+)\"|'([^'<]*+)')"
)
_CLOSE: Final = re.compile(rf"{_SPACE}*+(/?+)>")
_END: Final = re.compile(rf"</((?:{NAME}:)?+{NAME}){_SPACE}*+>")
_REFERENCE: Final = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6})|([a-z]{2,4}));|&")
_ENTITIES: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_RESERVED: Final = frozenset({XML_NAMESPACE, XMLNS_NAMESPACE})


def events(text: str, depth: int) -> Iterator[Event]:
    """Give the events of a document. Raises IllFormed.

    Args:
        text: the XML.
        depth: elements within each other at most.
    """
    declaration = _DECLARATION.match(text)
    at = declaration.end() if declaration else 0
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        raise IllFormed(f"U+{ord(forbidden[0]):04X} can't stand in XML", forbidden.start())
    open_elements: list[tuple[str, dict[str, str | None]]] = []
    scope: dict[str, str] = {"xml": XML_NAMESPACE}
    roots = 0
    while at < len(text):
        tag = text.find("<", at)
        if tag < 0:
            tag = len(text)
        if tag > at:
            content = _content(text, at, tag)
            if open_elements:
                yield Text(content)
            elif content.strip(" \t\n"):
                raise IllFormed("text outside of the element", at)
            at = tag
            continue
        if text.startswith("</", at):
            end = _END.match(text, at)
            if end is None or not open_elements or open_elements[-1][0] != end[1]:
                raise IllFormed("the end of an element that is not the one that was opened last", at)
            _restore(scope, open_elements.pop()[1])
            yield End()
            at = end.end()
        elif text.startswith("<!--", at):
            end_at = text.find("--", at + 4)
            if end_at < 0 or not text.startswith("-->", end_at):
                raise IllFormed("a comment with two hyphens, or without an end", at)
            yield Comment(_lines(text[at + 4 : end_at]))
            at = end_at + 3
        elif text.startswith("<![CDATA[", at):
            end_at = text.find("]]>", at)
            if end_at < 0 or not open_elements:
                raise IllFormed("a CDATA section without an end, or outside of the element", at)
            yield Text(_lines(text[at + 9 : end_at]))
            at = end_at + 3
        elif text.startswith("<!", at):
            raise IllFormed("a document type, which no message has", at)
        elif text.startswith("<?", at):
            raise IllFormed("a processing instruction, which no message has", at)
        else:
            if not open_elements:
                roots += 1
                if roots > 1:
                    raise IllFormed("a second element after the end of the first", at)
            if len(open_elements) >= depth:
                raise IllFormed(f"more than {counted(depth, 'element')} within each other", at)
            start, undo, empty, at = _start(text, at, scope)
            yield start
            if empty:
                _restore(scope, undo)
                yield End()
            else:
                name = f"{start.prefix}:{start.name}" if start.prefix else start.name
                open_elements.append((name, undo))
    if open_elements:
        raise IllFormed(f"the element {open_elements[-1][0][:40]} does not end", len(text))
    if not roots:
        raise IllFormed("there is no element", len(text))


def _restore(scope: dict[str, str], undo: dict[str, str | None]) -> None:
    for prefix, before in undo.items():
        if before is None:
            del scope[prefix]
        else:
            scope[prefix] = before


def _start(text: str, at: int, scope: dict[str, str]) -> tuple[Start, dict[str, str | None], bool, int]:
    opened = _OPEN.match(text, at)
    if opened is None:
        raise IllFormed("a name should follow this '<'", at)
    begin, at = at, opened.end()
    attributes: list[tuple[str, str, str]] = []
    undo: dict[str, str | None] = {}
    while found := _ATTRIBUTE.match(text, at):
        group = 3 if found[3] is not None else 4
        raw = found[group]
        value = _resolved(_spaces(raw), found.start(group)) if raw else ""
        prefix, name = found[1] or "", found[2]
        if prefix == XMLNS or (not prefix and name == XMLNS):
            declared = name if prefix else ""
            if declared in undo:
                raise IllFormed(f"the prefix {declared[:40]!r} is declared twice", at)
            if (declared and not value) or value in _RESERVED or declared in ("xml", XMLNS):
                raise IllFormed(f"the prefix {declared[:40]!r} can't be declared as {value[:80]!r}", at)
            undo[declared] = scope.get(declared)
            scope[declared] = value
        attributes.append((prefix, name, value))
        if len(attributes) > ATTRIBUTES_MAX:
            raise IllFormed(f"more than {ATTRIBUTES_MAX} attributes of one element", at)
        at = found.end()
    closed = _CLOSE.match(text, at)
    if closed is None:
        raise IllFormed("an attribute or the end of the tag should stand here", at)
    start = Start(opened[1] or "", opened[2], attributes)
    _check(start, scope, begin)
    return start, undo, bool(closed[1]), closed.end()


def _check(start: Start, scope: dict[str, str], at: int) -> None:
    if start.prefix and start.prefix not in scope:
        raise IllFormed(f"the prefix {start.prefix[:40]!r} is not declared", at)
    seen = set()
    for prefix, name, _ in start.attributes:
        if prefix == XMLNS or (name == XMLNS and not prefix):
            continue
        if prefix and prefix not in scope:
            raise IllFormed(f"the prefix {prefix[:40]!r} is not declared", at)
        key = (scope[prefix] if prefix else None, name)
        if key in seen:
            raise IllFormed(f"the attribute {name[:40]!r} stands twice", at)
        seen.add(key)


def _content(text: str, at: int, end: int) -> str:
    content = text[at:end]
    if "]]>" in content:
        raise IllFormed("']]>' outside of a CDATA section", at + content.index("]]>"))
    return _resolved(_lines(content), at)


def _lines(text: str) -> str:
    """Return text with line ends as a reader of XML gives them."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _spaces(text: str) -> str:
    """Return the value of an attribute with spaces as a reader of XML gives them."""
    return _lines(text).replace("\n", " ").replace("\t", " ")


def _resolved(text: str, at: int) -> str:
    """Return text with the characters that references stand for."""
    if "&" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        if found[3]:
            named = _ENTITIES.get(found[3])
            if named is not None:
                return named
        elif found[1] or found[2]:
            code = int(found[1]) if found[1] else int(found[2], 16)
            if code <= 0x10FFFF:
                return chr(code)
        raise IllFormed("a reference to no character", at + found.start())

    return _REFERENCE.sub(character, text)
