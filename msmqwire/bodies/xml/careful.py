"""A parser of XML that keeps the values read so far, its position, and the memory that they take."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Final
from xml.parsers import expat

from msmqwire.bodies.body import Problem
from msmqwire.bodies.limits import DICT_COST, TEXT_COST, Budget, LimitExceeded
from msmqwire.bodies.xml.reading import ATTRIBUTE_COST, ATTRIBUTES_MAX, ELEMENT_COST
from msmqwire.errors import MalformedBody
from msmqwire.names.printable import counted

_MANY_ATTRIBUTES: Final = re.compile(
    rb"<[^\s/><]++(?:\s++[^\s=<]++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+')){%d}" % (ATTRIBUTES_MAX + 1)
)
_REFERENCE: Final = re.compile(rb"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,10}));")
_REFERENCE_COST: Final = 64
_NAME_COST: Final = 280
"""Bytes that a name takes which was not there before: in the parser, and as a member."""
_STAND_IN: Final = 0xF700
"""The private character that stands for the control character 0 while expat, which forbids that, reads."""

_NAMES_BASE, _NAMES_FACTOR = 1 << 20, 32
"""Characters of the names of all elements at the most, each with its namespace: the parser makes each one."""


class Doctype(Exception):
    """XML with a document type, which is not read."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class _Builder:
    """The elements that expat has found."""

    def __init__(self, parser: expat.XMLParserType, budget: Budget, forbidden: bool, size: int) -> None:
        self._parser, self._budget, self._forbidden = parser, budget, forbidden
        self.root: ElementTree.Element | None = None
        self.open: list[ElementTree.Element] = []
        self._last: ElementTree.Element | None = None
        self._text: list[str] = []
        self._names = 0
        self._characters = _NAMES_BASE + _NAMES_FACTOR * size
        self._known: dict[str, str] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.flush()
        if len(self.open) >= self._budget.depth:
            raise LimitExceeded(f"more than {counted(self._budget.depth, 'element')} deep")
        self._budget.records()
        self._characters -= len(tag) + sum(map(len, attributes))
        if self._characters < 0:
            raise LimitExceeded("the names of elements with their namespaces are too long")
        size = sum(map(len, attributes)) + sum(map(len, attributes.values()))
        cost = ELEMENT_COST + len(attributes) * ATTRIBUTE_COST + (DICT_COST if attributes else 0)
        if self._last is None and self.open:
            cost += DICT_COST  # the first child of its parent
        names = len(self._parser.intern)
        if names != self._names:
            cost += (names - self._names) * _NAME_COST + 4 * (len(tag) + size)
            self._names = names
        self._budget.spend(cost + 2 * size)
        named = {self._name(name): self._allowed(text) for name, text in attributes.items()}
        element = ElementTree.Element(self._name(tag), named)
        if self.open:
            self.open[-1].append(element)
        else:
            self.root = element
        self.open.append(element)
        self._last = None

    def end(self, tag: str) -> None:
        self.flush()
        self._last = self.open.pop()

    def data(self, text: str) -> None:
        self._budget.text(len(text) - TEXT_COST)
        self._text.append(text)

    def doctype(self, *_: object) -> None:
        raise Doctype(self._parser.CurrentByteIndex)

    def flush(self) -> None:
        if not self._text:
            return
        text = self._allowed("".join(self._text))
        self._text.clear()
        self._budget.spend(TEXT_COST + 2 * len(text))
        if self._last is not None:
            self._last.tail = text
            if not text.isspace():
                self._budget.spend(DICT_COST)  # the element between texts is an object
        elif self.open:
            self.open[-1].text = text

    def keep(self) -> None:
        """Keep the text before a fault."""
        if self.open and self._text:
            text = self._allowed("".join(self._text))
            if self._last is not None:
                self._last.tail = text
            else:
                self.open[-1].text = text

    def _name(self, name: str) -> str:
        """Return a name as ElementTree has it, one text for all elements of that name."""
        if "}" not in name:
            return name
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = "{" + name
        return known

    def _allowed(self, text: str) -> str:
        return text.translate(_BACK) if self._forbidden else text


def read_carefully(
    data: bytes, budget: Budget, start: int
) -> tuple[ElementTree.Element, tuple[Problem, ...]]:
    """Return the root element of XML as far as it could be read, and its faults.

    Args:
        data: XML in UTF-8.
        budget: the rest of the limits.
        start: the offset of the data in the body.

    Raises:
        MalformedBody: there is no root element.
        Doctype: the XML has a document type.
    """
    problems: list[Problem] = []
    budget.exact(len(data))
    try:
        budget.spend(_REFERENCE_COST * data.count(b"&#"))
    except LimitExceeded as exc:
        raise MalformedBody(exc.why, offset=start) from None
    allowed, forbidden = _with_stand_ins(data)
    if forbidden is not None:
        problems.append(Problem("has characters that XML forbids", "", start + forbidden))
    many = _MANY_ATTRIBUTES.search(allowed) if allowed.count(b"=") > ATTRIBUTES_MAX else None
    parser = expat.ParserCreate("utf-8", "}")
    parser.buffer_text = True
    parser.buffer_size = 1 << 16
    builder = _Builder(parser, budget, forbidden is not None, len(data))
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = builder.doctype
    try:
        if many is None:
            parser.Parse(allowed, True)
        else:
            parser.Parse(allowed[: many.start()], False)
            why = f"an element has more than {ATTRIBUTES_MAX:,} attributes"
            problems.append(Problem(why, _path(builder), start + many.start()))
    except Doctype as exc:
        raise Doctype(start + max(allowed.rfind(b"<!DOCTYPE", 0, exc.offset + 1), 0)) from None
    except LimitExceeded as exc:
        problems.append(Problem(exc.why, _path(builder), start + parser.CurrentByteIndex))
    except expat.ExpatError as exc:
        parser.buffer_text = False  # which hands over the text before the fault
        why = f"not well-formed XML: {expat.ErrorString(exc.code)}"
        at = start + max(parser.ErrorByteIndex, 0)
        if builder.root is None:
            raise MalformedBody(why, offset=at) from None
        problems.append(Problem(why, _path(builder), at))
    finally:
        builder.keep()
        # The handlers hold the parser, which holds them.
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.StartDoctypeDeclHandler = None
    if builder.root is None:
        why = problems[-1].error if problems else "not well-formed XML: no element found"
        raise MalformedBody(why, offset=start)
    return builder.root, tuple(problems)


def _path(builder: _Builder) -> str:
    return ".".join(element.tag.rpartition("}")[2] for element in builder.open)[-200:]


def _is_allowed(code: int) -> bool:
    return (
        code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    )


_BACK: Final = {_STAND_IN + code: code for code in range(0x20) if not _is_allowed(code)}


def _with_stand_ins(data: bytes) -> tuple[bytes, int | None]:
    """Return XML with references to characters that it forbids replaced, and where the first one is.

    XmlSerializer writes control characters so, and its reader takes them.
    """
    if b"&#" not in data:
        return data, None
    first: list[int] = []

    def replaced(found: re.Match[bytes]) -> bytes:
        code = int(found[1], 16) if found[1] else int(found[2])
        if _is_allowed(code):
            return found[0]
        if not first:
            first.append(found.start())
        return chr(_STAND_IN + code if code < 0x20 else 0xFFFD).encode()

    data = _REFERENCE.sub(replaced, data)
    return data, first[0] if first else None
