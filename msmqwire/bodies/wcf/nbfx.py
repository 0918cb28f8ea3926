"""[MC-NBFX]: documents of records, read to XML.

An element is put down as its record comes, so nothing is recursive and no tree is made. An unrecoverable
fault ends the reading: the elements that are open are closed, and the reason is a problem. Lesser faults are
problems too, and reading goes on. `records` has the records themselves.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msmqwire.bodies.limits import DEFAULT, Budget, LimitExceeded
from msmqwire.bodies.wcf.characters import (
    FAULTS,
    FIXED,
    TO_ESCAPE,
    escape,
    escape_attribute,
)
from msmqwire.bodies.wcf.fault import Fault, read_size
from msmqwire.bodies.wcf.names import ATTRIBUTES_MAX, LETTERS, XML_NAMESPACE, XMLNS, XMLNS_NAMESPACE
from msmqwire.bodies.wcf.problems import Problems
from msmqwire.bodies.wcf.session import Session
from msmqwire.bodies.wcf.values import PARTS_MAX, STATIC, Values, known_names
from msmqwire.names.printable import counted

END_ELEMENT, COMMENT, ARRAY = 1, 2, 3

ARRAY_ATTRIBUTES_MAX: Final = 100
"""Attributes of the element of an array, which stand again with each value."""

_COUNT_MAX: Final = 512
_LONG_TEXT: Final = 0x1_0000
_DECLARATION_COST: Final = 250
"""Bytes of memory that a declaration of a prefix takes in the scope."""
_PATH_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class _Opening:
    """The beginning of an envelope: its characters, and the elements and prefixes that they open."""

    text: str
    stack: list[tuple[str, dict[str, str | None] | None]]
    scope: dict[str, str]


_OPENING_SIZE: Final = 17
_openings: dict[bytes, _Opening] = {}
"""The beginnings that WCF gives to nearly all envelopes, up to the characters of the action: see below."""

# By type of an element: its prefix of one letter or none, and how its name begins.
# NBFX-2.2.1.5-01
_PREFIXES: Final = ["" if kind < 0x44 else LETTERS[(kind - 0x44) % 26] for kind in range(0x78)]
_LEADS: Final = [f"{prefix}:" if prefix else "" for prefix in _PREFIXES]
_LETTERED: Final = frozenset({0x42, *range(0x44, 0x5E)})
"""Elements whose name is a number, with a prefix of one letter or none."""


def read_document(
    data: bytes,
    session: Session | None,
    budget: Budget,
    problems: Problems,
    *,
    dictionary: Mapping[int, str] = STATIC,
    fragment: bool = False,
) -> str:
    """Return a document as XML.

    Args:
        data: the records, from `session.read` on.
        session: strings with odd numbers; None where there are none.
        budget: the limits left.
        problems: the list that faults are put into, with offsets in the data.
        dictionary: strings with even numbers: those of [MC-NBFS], if nothing else was agreed on.
        fragment: whether it may have another number of elements than one.
    """
    reader = _Reader(data, session.words if session else {}, budget, problems, dictionary)
    return reader.read(fragment)


class _Reader(Values):
    __slots__ = ("_opening", "_scope", "_stack")

    def __init__(
        self,
        data: bytes,
        words: dict[int, str],
        budget: Budget,
        problems: Problems,
        dictionary: Mapping[int, str] = STATIC,
    ) -> None:
        super().__init__(data, words, budget, problems, dictionary)
        # Elements that are open: the end tag, and the namespaces that their prefixes had before.
        self._stack: list[tuple[str, dict[str, str | None] | None]] = []
        self._opening: str | None = None
        # No prefix needs no declaration.
        self._scope: dict[str, str] = {"xml": XML_NAMESPACE, "": ""}

    def path(self) -> str:
        """Return the elements that are open."""
        names = [end[2:-1][:_PATH_MAX] for end, _ in self._stack]
        path = ".".join(names)
        return path if len(path) <= _PATH_MAX else "…" + path[1 - _PATH_MAX :]

    def read(self, fragment: bool) -> str:
        """Read the records; return those that could be read."""
        try:
            self._read(fragment)
        except Fault as exc:
            self.problem(exc.why, exc.offset)
        except (IndexError, struct.error):
            self.problem("the bytes end within a record", len(self.data))
        except LimitExceeded as exc:
            self.problem(exc.why, self.at)
        parts = self.out.parts
        if self._opening is not None:
            parts.append(f"></{self._opening}>")
        parts.extend(end for end, _ in reversed(self._stack))
        return self.out.text()

    def _read(self, fragment: bool) -> None:
        data, out, stack, scope = self.data, self.out, self._stack, self._scope
        parts = out.parts
        words, static, names = self.words, self.dictionary, known_names
        end, depth = len(data), self.budget.depth
        at = roots = count = 0
        opening = _openings.get(data[:_OPENING_SIZE]) if static is STATIC else None
        if opening is not None and depth > len(opening.stack) and not 3 < data[_OPENING_SIZE] < 0x40:
            at, roots = _OPENING_SIZE, 1
            parts.append(opening.text)
            stack += opening.stack
            scope.update(opening.scope)
        while at < end:
            kind = data[at]
            self.at = at
            if kind > 0x7F:
                if not stack:
                    raise Fault("text outside of the element", at)
                if kind | 1 == 0x99:
                    at += 2
                    stop = at + data[at - 1]
                    if stop > end:
                        raise Fault("a text ends after the bytes", at - 1)
                    try:
                        text = data[at:stop].decode()
                    except UnicodeDecodeError as exc:
                        text = self.replaced(data[at:stop], at + exc.start)
                    at = stop
                    if TO_ESCAPE.search(text):
                        text = escape(text)
                    parts.append(text)
                else:
                    if kind == 0xA5:  # NBFX-2.1.1-01
                        raise Fault("a record of the reserved type 0xA5", at)
                    text, at = self.value(kind & 0xFE, at)
                    if len(text) > _LONG_TEXT:
                        self.long(text)
                    elif kind > 0x97:
                        parts.append(escape(text))
                    else:
                        parts.append(text)
                if kind & 1:
                    tag, undo = stack.pop()
                    parts.append(tag)  # NBFX-2.2.3.31-01
                    if undo:
                        _leave(scope, undo)
            elif kind > 0x3F:
                if len(stack) >= depth:
                    raise Fault(f"more than {counted(depth, 'element')} within each other", at)
                if not stack:
                    roots += 1
                    if roots == 2 and not fragment:
                        self.problem("a second element after the end of the first", at)
                if kind > 0x77:  # NBFX-2.2.1-01
                    raise Fault(f"a record of the reserved type 0x{kind:02X}", at)
                # The usual element first: a name that was met before, no attributes, and a short text.
                size = data[at + 1]
                known = None
                stop = at + 2
                if size < 0x80:
                    if kind > 0x5D or kind == 0x40:
                        stop += size
                        known = names.get(data[at + 2 : stop])
                    elif kind in _LETTERED:
                        known = names.get(words.get(size) if size & 1 else static.get(size))
                following = data[stop] if stop < end else END_ELEMENT
                if known is None or 3 < following < 0x40 or _PREFIXES[kind] not in scope:
                    at = self.start(at)
                else:
                    tag = _LEADS[kind] + known
                    at = stop
                    if following == 0x99 and count < _COUNT_MAX:
                        at += 2
                        stop = at + data[at - 1]
                        if stop <= end:
                            try:
                                text = data[at:stop].decode()
                            except UnicodeDecodeError:
                                at -= 2
                            else:
                                if TO_ESCAPE.search(text):
                                    text = escape(text)
                                parts.append(f"<{tag}>{text}</{tag}>")
                                at = stop
                                count += 2
                                continue
                        else:
                            at -= 2
                    parts.append(f"<{tag}>")
                    stack.append((f"</{tag}>", None))
            elif kind == END_ELEMENT:
                if not stack:
                    raise Fault("the end of an element that was not opened", at)  # NBFX-2.3.1-01
                tag, undo = stack.pop()
                parts.append(tag)  # NBFX-2-01
                if undo:
                    _leave(scope, undo)
                at += 1  # NBFX-2-01
            elif kind == COMMENT:
                text, at = self.string(at + 1)
                parts.append(self.comment(text))  # NBFX-2.3.2-01, NBFX-2-01
            elif kind == ARRAY:
                if not stack and not fragment:
                    raise Fault("an array outside of the element", at)
                at = self.array(at, depth)
            else:
                # NBFX-2.2.2-01
                why = "an attribute that follows no element" if kind else "a record of the reserved type 0x00"
                raise Fault(why, at)
            count += 1
            if count > _COUNT_MAX:
                self.budget.records(count)
                count = 0
                out.flush()
        self.at = at
        self.budget.records(count)
        if stack:
            raise Fault("the bytes end within an element", end)
        if not roots and not fragment:
            raise Fault("there is no element", end)
        out.flush()

    def start(self, at: int, within: bool = True) -> int:
        """Read an element with its attributes, put its start down and open it."""
        data, scope, put = self.data, self._scope, self.out.parts.append
        kind = data[at]
        begin = at
        at += 1
        if kind > 0x5D:
            prefix = LETTERS[kind - 0x5E]  # NBFX-2.2.1.5-01
            name, at = self.name(at)
            tag = f"{prefix}:{name}"
        elif kind > 0x43:
            prefix = LETTERS[kind - 0x44]  # NBFX-2.2.1.5-01
            name, at = self.word_name(at)
            tag = f"{prefix}:{name}"
        elif kind == 0x40:
            prefix = ""
            tag, at = self.name(at)
        elif kind == 0x42:
            prefix = ""
            tag, at = self.word_name(at)
        else:
            prefix, at = self.name(at)
            name, at = self.name(at) if kind == 0x41 else self.word_name(at)
            tag = f"{prefix}:{name}"
        put("<" + tag)  # NBFX-2.2.1-01
        self._opening = tag
        undo: dict[str, str | None] | None = None
        names: list[tuple[str, str, int]] | None = None
        count = 0
        while 3 < (kind := data[at]) < 0x40:
            first = at
            at += 1
            if 7 < kind < 0x0C:
                declared = ""
                if kind & 1:  # NBFX-2.2.2.5-01
                    declared, at = self.name(at)
                uri, at = self.string(at) if kind < 0x0A else self.word(at)  # NBFX-2.2.2.5-01
                shown = self.attribute(uri)
                # NBFX-2.2.2.5-01
                put(f' xmlns:{declared}="{shown}"' if declared else f' xmlns="{shown}"')
                self.budget.spend(_DECLARATION_COST)
                if undo is None:
                    undo = {}
                if declared in undo:
                    self.problem(f"the prefix {declared[:40]!r} is declared twice", first)
                else:
                    undo[declared] = scope.get(declared)
                scope[declared] = uri
                if (declared and not uri) or uri in _RESERVED or declared in ("xml", XMLNS):
                    self.problem(f"the prefix {declared[:40]!r} can't be declared as {uri[:80]!r}", first)
            else:
                if kind > 0x25:
                    its_prefix = LETTERS[kind - 0x26]  # NBFX-2.2.2.9-01
                    name, at = self.name(at)
                elif kind > 0x0B:
                    its_prefix = LETTERS[kind - 0x0C]
                    name, at = self.word_name(at)
                elif kind & 1:
                    its_prefix, at = self.name(at)
                    name, at = self.name(at) if kind == 5 else self.word_name(at)
                else:
                    its_prefix = ""
                    name, at = self.name(at) if kind == 4 else self.word_name(at)
                kind = data[at]
                if kind & 1 or kind < 0x80:  # NBFX-2.2.2.2-02 and NBFX-2.2.3.31-02
                    raise Fault(f"a record of the type 0x{kind:02X} where a text should be", at)
                text, at = self.value(kind, at)
                if kind > 0x97:
                    text = self.attribute(text)
                put(f' {its_prefix}:{name}="{text}"' if its_prefix else f' {name}="{text}"')
                if names is None:
                    names = []
                names.append((its_prefix, name, first))
            count += 1
            if count > ATTRIBUTES_MAX or (not within and count > ARRAY_ATTRIBUTES_MAX):
                raise Fault(f"more than {count - 1} attributes of one element", first)
            if within and len(self.out.parts) > PARTS_MAX:
                self.out.flush()
        put(">")
        self._opening = None
        self._stack.append((f"</{tag}>", undo))
        if prefix not in scope:
            self.problem(f"the prefix {prefix[:40]!r} is not declared", begin)
        if names is not None and (len(names) > 1 or names[0][0]):
            self._check(names)
        return at

    def _check(self, names: list[tuple[str, str, int]]) -> None:
        """Check that no attribute stands twice, and that prefixes are declared."""
        scope = self._scope
        seen = set()
        for prefix, name, at in names:
            if prefix and prefix not in scope:
                self.problem(f"the prefix {prefix[:40]!r} is not declared", at)
            key = (scope.get(prefix, prefix) if prefix else None, name)
            if key in seen:
                self.problem(f"the attribute {name[:40]!r} stands twice", at)
            seen.add(key)

    def array(self, at: int, depth: int) -> int:
        """Read an array of values, each of which is an element; put them down."""
        data, out = self.data, self.out
        begin = at
        at += 1
        if not 0x40 <= data[at] <= 0x77:
            raise Fault("an array without an element", at)
        if len(self._stack) >= depth:
            raise Fault(f"more than {counted(depth, 'element')} within each other", at)
        out.flush()
        try:
            at = self.start(at, within=False)
            before = "".join(out.parts)
        finally:
            out.parts.clear()
            self._opening = None
        after, undo = self._stack.pop()
        if undo:
            _leave(self._scope, undo)
        if data[at] != END_ELEMENT:
            raise Fault("the element of an array does not end", at)
        kind = data[at + 1]
        if kind not in ARRAYS:
            raise Fault(f"an array of records of the type 0x{kind:02X}", at + 1)
        layout, characters = FIXED[kind - 1]
        fault = FAULTS.get(kind - 1)
        count, at = read_size(data, at + 2)
        end = at + count * layout.size
        if not count:
            raise Fault("an array of no values", begin)  # NBFX-2.3.3-02
        if end > len(data):
            left = counted(len(data) - at, "byte", "are")
            raise Fault(f"{counted(count, 'value', 'are')} announced and {left} left", begin)
        self.budget.records(count)
        out.count(count * (len(before) + len(after)))
        step = layout.size * (PARTS_MAX // 4)
        parts = out.parts
        for start in range(at, end, step):
            for (value,) in layout.iter_unpack(data[start : min(end, start + step)]):
                parts += (before, characters(value), after)  # NBFX-2.3.3-01
                if fault is not None and (why := fault(value)) is not None:
                    self.problem(why, start)
            out.flush()
        return end

    def long(self, text: str) -> None:
        """Put a long text down in pieces, each of which is counted."""
        out = self.out
        for at in range(0, len(text), _LONG_TEXT):
            out.parts.append(escape(text[at : at + _LONG_TEXT]))
            out.flush()

    def attribute(self, text: str) -> str:
        """Return the value of an attribute as it stands in XML; a long one is counted before."""
        if len(text) > _LONG_TEXT:
            pieces = (text[at : at + _LONG_TEXT] for at in range(0, len(text), _LONG_TEXT))
            size = sum(len(escape_attribute(piece)) for piece in pieces)
            self.out.count(size)
            if not text.isascii():
                self.budget.spend(3 * size)
        return escape_attribute(text)

    def comment(self, text: str) -> str:
        """Return a comment; XML has none with two hyphens or characters that it forbids."""
        if "--" in text or text.endswith("-") or _NOT_COMMENT.search(text):
            self.problem("a comment that XML does not allow for", self.at)
            text = _NOT_COMMENT.sub("\ufffd", text).replace("-", "\u2010")
        return f"<!--{text}-->"


_NOT_COMMENT: Final = re.compile("[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_RESERVED: Final = frozenset({XML_NAMESPACE, XMLNS_NAMESPACE})

ARRAYS: Final = frozenset({0xB5, 0x8B, 0x8D, 0x8F, 0x91, 0x93, 0x95, 0x97, 0xAF, 0xB1})
"""Types of records that an array may have, NBFX-2.3.3-03."""


def _leave(scope: dict[str, str], undo: dict[str, str | None]) -> None:
    for prefix, before in undo.items():
        if before is None:
            scope.pop(prefix, None)
        else:
            scope[prefix] = before


def _opening(data: bytes) -> _Opening:
    # With a text of no characters after it, for the last start tag to end.
    reader = _Reader(data + b"\xa8", {}, Budget(DEFAULT, len(data)), Problems())
    with contextlib.suppress(Fault):
        reader._read(False)
    return _Opening("".join(reader.out.parts), reader._stack, reader._scope)


_openings.update(
    (data, _opening(data))
    for data in map(
        bytes.fromhex, ("56020b0173040b0161065608440a1e0082", "56020b0161060b0173045608440a1e0082")
    )
)
