"""[MC-NBFX]: documents of records, read to XML.

An element is put down as its record comes, so nothing is recursive and no tree is made. An unrecoverable
fault ends the reading: the elements that are open are closed, and the reason is a problem. Lesser faults are
problems too, and reading goes on. `records` has the records themselves.
"""

from __future__ import annotations

import binascii
import contextlib
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from msmqwire.bodies.body import Problem
from msmqwire.bodies.limits import DEFAULT, Budget, LimitExceeded
from msmqwire.bodies.wcf.characters import (
    CONSTANTS,
    FAULTS,
    FIXED,
    TO_ESCAPE,
    as_name,
    escape,
    escape_attribute,
)
from msmqwire.bodies.wcf.fault import Fault, announced, read_size
from msmqwire.bodies.wcf.names import ATTRIBUTES_MAX, XML_NAMESPACE, XMLNS, XMLNS_NAMESPACE
from msmqwire.bodies.wcf.words import WORDS
from msmqwire.names.printable import counted

END_ELEMENT, COMMENT, ARRAY = 1, 2, 3
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

ARRAY_ATTRIBUTES_MAX: Final = 100
"""Attributes of the element of an array, which stand again with each value."""
NAME_MAX: Final = 16_384
"""Bytes of a name."""
PROBLEMS_MAX: Final = 32

_NAMES_MAX: Final = 2048
_NAME_LENGTH_MAX: Final = 64
_PARTS_MAX: Final = 1024
_COUNT_MAX: Final = 512
_LONG_TEXT: Final = 0x1_0000
_WORD_LENGTH: Final = 256
"""Characters above which a string of the session is counted before it is used."""
_DECLARATION_COST: Final = 250
"""Bytes of memory that a declaration of a prefix takes in the scope."""
_WORD_COST: Final = 300
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

_names: dict[bytes | str | None, str] = {}
"""Names that were read before, checked; bounded. None is never among them."""

# By type of an element: its prefix of one letter or none, and how its name begins.
_PREFIXES: Final = ["" if kind < 0x44 else LETTERS[(kind - 0x44) % 26] for kind in range(0x78)]
_LEADS: Final = [f"{prefix}:" if prefix else "" for prefix in _PREFIXES]
_LETTERED: Final = frozenset({0x42, *range(0x44, 0x5E)})
"""Elements whose name is a number, with a prefix of one letter or none."""
_STATIC: Final = dict(WORDS)
_FIXED: Final = dict(FIXED)
_CONSTANTS: Final = dict(CONSTANTS)


class Session:
    """Strings that a session has defined: [MC-NBFSE] 2.1.

    Attributes:
        words: them, by odd number.
        new: the number of the next one.
    """

    __slots__ = ("_known", "new", "words")

    def __init__(self) -> None:
        self.words: dict[int, str] = {}
        self._known: set[str] = set()
        self.new = 1

    def read(self, data: bytes, budget: Budget, problems: Problems) -> int:
        """Read the table of strings before a document; return where that begins. Raises Fault."""
        words, number = self.words, self.new
        size, at = read_size(data, 0)
        end = at + size
        if end > len(data):
            raise Fault(
                announced(size, len(data) - at),
                0,
                "StringTable.Size",
            )
        known = self._known
        budget.spend(size)
        while at < end:
            start = at
            length = data[at]
            at += 1
            if length > 0x7F:
                length, at = read_size(data, start)
            stop = at + length
            if stop > end:
                raise Fault("a string ends after its table", start, "StringTable.Strings")
            try:
                word = data[at:stop].decode()
            except UnicodeDecodeError as exc:
                problems.add("the string is not UTF-8", at + exc.start, "StringTable.Strings")
                word = data[at:stop].decode("utf-8", "replace")
            if word in known:
                problems.add("a string that the session has already", start, "StringTable.Strings")
            known.add(word)
            words[number] = word
            number += 2
            at = stop
            if not number & 0x1FE:
                budget.spend(_WORD_COST << 8)
        self.new = number
        return end


class Problems:
    """Faults of a body, the first ones of many.

    Attributes:
        base: the offset in the body of the bytes that are read now; None when they are none of its bytes.
    """

    __slots__ = ("base", "found", "more")

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.base: int | None = 0
        self.more = 0

    def add(self, error: str, offset: int | None, path: str = "") -> None:
        """Add a fault at a byte of those that are read now."""
        if len(self.found) >= PROBLEMS_MAX:
            self.more += 1
            return
        if offset is not None:
            offset = None if self.base is None else self.base + offset
        self.found.append(Problem(error, path, offset))

    def all(self) -> tuple[Problem, ...]:
        """Return the faults; the last one says how many are not reported."""
        if not self.more:
            return tuple(self.found)
        return (*self.found, Problem(f"{self.more} more problems of this kind are not reported"))


class Output:
    """Characters of a document; their memory is counted as they come.

    Attributes:
        parts: the latest of them.
        ahead: characters among them that are counted already.
    """

    __slots__ = ("_budget", "_chunks", "_total", "_wide", "ahead", "parts")

    def __init__(self, budget: Budget) -> None:
        self.parts: list[str] = []
        self.ahead = 0
        self._budget = budget
        self._chunks: list[str] = []
        self._total, self._wide = 0, 1

    def count(self, characters: int) -> None:
        """Count characters before they are made. Raises LimitExceeded."""
        self.ahead += characters
        self._budget.text(characters)

    def flush(self) -> None:
        """Count the pieces and put them together. Raises LimitExceeded."""
        parts = self.parts
        if not parts:
            return
        chunk = "".join(parts)
        parts.clear()
        size = len(chunk)
        index = len(self._chunks)
        self._chunks.append(chunk)
        if chunk.isascii():
            if self._wide == 1 and not self.ahead:
                # The usual message.
                self._total += size
                self._budget.text(size)
                self._budget.spend(size // 8)
                return
        else:
            wide = 4 if _WIDE.search(chunk) else 2 if _NOT_LATIN.search(chunk) else 1
            if wide > self._wide:
                # One such character makes all that came before as wide as itself.
                try:
                    self._budget.spend((wide - self._wide) * self._total)
                except LimitExceeded:
                    self._chunks[index] = chunk.encode("ascii", "replace").decode("ascii")
                    raise
                self._wide = wide
        self._total += size
        # All is there twice while it is put together: an eighth is for everything else.
        self._budget.spend((self._wide - 1) * size + size // 8)
        if size > self.ahead:
            self._budget.text(size - self.ahead)
        self.ahead = max(0, self.ahead - size)

    def text(self) -> str:
        """Return all of them."""
        self._chunks += self.parts
        return "".join(self._chunks)


_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")
_NOT_LATIN: Final = re.compile("[\u0100-\U0010ffff]")


def read_document(
    data: bytes,
    session: Session | None,
    budget: Budget,
    problems: Problems,
    *,
    dictionary: Mapping[int, str] = _STATIC,
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


class _Reader:
    __slots__ = (
        "_opening",
        "_scope",
        "_stack",
        "at",
        "budget",
        "data",
        "dictionary",
        "out",
        "problems",
        "words",
    )

    def __init__(
        self,
        data: bytes,
        words: dict[int, str],
        budget: Budget,
        problems: Problems,
        dictionary: Mapping[int, str] = _STATIC,
    ) -> None:
        self.data, self.words, self.budget, self.problems = data, words, budget, problems
        self.dictionary = dictionary
        self.out = Output(budget)
        self.at = 0
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

    def problem(self, error: str, offset: int) -> None:
        """Tell of a fault after which reading goes on."""
        full = len(self.problems.found) >= PROBLEMS_MAX
        self.problems.add(error, offset, "" if full else self.path())

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
        words, static, names = self.words, self.dictionary, _names
        end, depth = len(data), self.budget.depth
        at = roots = count = 0
        opening = _openings.get(data[:_OPENING_SIZE]) if static is _STATIC else None
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
                    if kind == 0xA5:
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
                    parts.append(tag)
                    if undo:
                        _leave(scope, undo)
            elif kind > 0x3F:
                if len(stack) >= depth:
                    raise Fault(f"more than {counted(depth, 'element')} within each other", at)
                if not stack:
                    roots += 1
                    if roots == 2 and not fragment:
                        self.problem("a second element after the end of the first", at)
                if kind > 0x77:
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
                    raise Fault("the end of an element that was not opened", at)
                tag, undo = stack.pop()
                parts.append(tag)
                if undo:
                    _leave(scope, undo)
                at += 1
            elif kind == COMMENT:
                text, at = self.string(at + 1)
                parts.append(self.comment(text))
            elif kind == ARRAY:
                if not stack and not fragment:
                    raise Fault("an array outside of the element", at)
                at = self.array(at, depth)
            else:
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
            prefix = LETTERS[kind - 0x5E]
            name, at = self.name(at)
            tag = f"{prefix}:{name}"
        elif kind > 0x43:
            prefix = LETTERS[kind - 0x44]
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
        put("<" + tag)
        self._opening = tag
        undo: dict[str, str | None] | None = None
        names: list[tuple[str, str, int]] | None = None
        count = 0
        while 3 < (kind := data[at]) < 0x40:
            first = at
            at += 1
            if 7 < kind < 0x0C:
                declared = ""
                if kind & 1:
                    declared, at = self.name(at)
                uri, at = self.string(at) if kind < 0x0A else self.word(at)
                shown = self.attribute(uri)
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
                    its_prefix = LETTERS[kind - 0x26]
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
                if kind & 1 or kind < 0x80:
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
            if within and len(self.out.parts) > _PARTS_MAX:
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
            raise Fault("an array of no values", begin)
        if end > len(data):
            left = counted(len(data) - at, "byte", "are")
            raise Fault(f"{counted(count, 'value', 'are')} announced and {left} left", begin)
        self.budget.records(count)
        out.count(count * (len(before) + len(after)))
        step = layout.size * (_PARTS_MAX // 4)
        parts = out.parts
        for start in range(at, end, step):
            for (value,) in layout.iter_unpack(data[start : min(end, start + step)]):
                parts += (before, characters(value), after)
                if fault is not None and (why := fault(value)) is not None:
                    self.problem(why, start)
            out.flush()
        return end

    def string(self, at: int) -> tuple[str, int]:
        """Read a text with its length, a String of 2.1.3."""
        data = self.data
        size = data[at]
        if size > 0x7F:
            size, at = read_size(data, at)
        else:
            at += 1
        end = at + size
        if end > len(data):
            raise Fault("a text ends after the bytes", at)
        try:
            return data[at:end].decode(), end
        except UnicodeDecodeError as exc:
            return self.replaced(data[at:end], at + exc.start), end

    def replaced(self, raw: bytes, at: int) -> str:
        self.problem("the text is not UTF-8", at)
        return raw.decode("utf-8", "replace")

    def name(self, at: int) -> tuple[str, int]:
        """Read a name; an invalid one is reported, and written as a valid one."""
        data = self.data
        size = data[at]
        start = at
        if size > 0x7F:
            size, at = read_size(data, at)
        else:
            at += 1
        end = at + size
        if end > len(data):
            raise Fault("a name ends after the bytes", start)
        if size > NAME_MAX:
            raise Fault(f"a name of {counted(size, 'byte')}", start)
        raw = data[at:end]
        known = _names.get(raw)
        if known is not None:
            return known, end
        try:
            text = raw.decode()
        except UnicodeDecodeError as exc:
            return as_name(self.replaced(raw, at + exc.start)), end
        return self.checked(text, raw, start), end

    def checked(self, text: str, key: bytes | str, at: int) -> str:
        """Return a name as it stands in XML."""
        if not text:
            raise Fault("a name of no characters", at)
        name = as_name(text)
        if name != text or name == XMLNS:
            self.problem(f"{text[:40]!r} can't be a name", at)
        elif len(key) <= _NAME_LENGTH_MAX:
            if len(_names) >= _NAMES_MAX:
                _names.clear()
            _names[key] = name
        return name

    def word_name(self, at: int) -> tuple[str, int]:
        """Read the number of a name."""
        word, end = self.word(at)
        known = _names.get(word)
        if known is not None:
            return known, end
        if len(word) > _WORD_LENGTH:
            if len(word) > NAME_MAX:
                raise Fault(f"a name of {counted(len(word), 'character')}", at)
            self.out.count(len(word))  # it stands in the end of the element too
        return self.checked(word, word, at), end

    def word(self, at: int) -> tuple[str, int]:
        """Read the number of a string, a DictionaryString of 2.1.4."""
        start = at
        number = self.data[at]
        at += 1
        if number > 0x7F:
            number, at = read_size(self.data, start)
        if not number & 1:
            word = self.dictionary.get(number)
            if word is None:
                raise Fault(f"{number} is no string of the static dictionary", start)
            return word, at
        word = self.words.get(number)
        if word is None:
            raise Fault(f"{number} is no string of the session", start)
        if len(word) > _WORD_LENGTH:
            self.out.count(len(word))
        return word, at

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

    def value(self, kind: int, at: int) -> tuple[str, int]:
        """Read a text record, without the end of its element; return its characters."""
        fixed = _FIXED.get(kind)
        if fixed is not None:
            layout, characters = fixed
            (value,) = layout.unpack_from(self.data, at + 1)
            fault = FAULTS.get(kind)
            if fault is not None and (why := fault(value)) is not None:
                self.problem(why, at + 1)
            return characters(value), at + 1 + layout.size
        constant = _CONSTANTS.get(kind)
        if constant is not None:
            return constant, at + 1
        if kind == 0xAA:
            return self.word(at + 1)
        read = _LONG.get(kind)
        if read is None:
            raise Fault(f"a record of the reserved type 0x{self.data[at]:02X}", at)
        return read(self, at)

    def counted(self, layout: struct.Struct, at: int) -> tuple[bytes, int, int]:
        """Read bytes with a length of a layout; return them and where they begin and end."""
        (size,) = layout.unpack_from(self.data, at + 1)
        start = at + 1 + layout.size
        if not 0 <= size <= len(self.data) - start:
            left = len(self.data) - start
            raise Fault(announced(size, left), at + 1)
        return self.data[start : start + size], start, start + size

    def listed(self, at: int) -> tuple[str, int]:
        """Read a list of text records, which are separated by spaces."""
        data = self.data
        at += 1
        texts: list[str] = []
        whole: list[str] = []
        size = 0
        while (kind := data[at]) != 0xA6:
            if kind < 0x80 or kind & 1 or kind == 0xA4:
                raise Fault(f"a record of the type 0x{kind:02X} in a list", at)
            text, at = self.value(kind, at)
            texts.append(text)
            size += len(text) + 1
            if len(texts) >= _PARTS_MAX:
                self.budget.records(len(texts))
                self.out.count(size)
                whole.append(" ".join(texts))
                texts.clear()
                size = 0
        self.budget.records(len(texts))
        if texts:
            whole.append(" ".join(texts))
        return " ".join(whole), at + 1

    def qualified(self, at: int) -> tuple[str, int]:
        """Read a name with the prefix of one letter."""
        letter = self.data[at + 1]
        if letter >= len(LETTERS):
            raise Fault(f"{letter} is the prefix of no name", at + 1)
        name, end = self.word(at + 2)
        return f"{LETTERS[letter]}:{name}", end


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


def _characters(layout: struct.Struct) -> Callable[[_Reader, int], tuple[str, int]]:
    def read(reader: _Reader, at: int) -> tuple[str, int]:
        raw, start, end = reader.counted(layout, at)
        try:
            return raw.decode(), end
        except UnicodeDecodeError as exc:
            return reader.replaced(raw, start + exc.start), end

    return read


def _base64(layout: struct.Struct) -> Callable[[_Reader, int], tuple[str, int]]:
    def read(reader: _Reader, at: int) -> tuple[str, int]:
        raw, _, end = reader.counted(layout, at)
        return binascii.b2a_base64(raw, newline=False).decode("ascii"), end

    return read


def _unicode(layout: struct.Struct) -> Callable[[_Reader, int], tuple[str, int]]:
    def read(reader: _Reader, at: int) -> tuple[str, int]:
        raw, start, end = reader.counted(layout, at)
        if len(raw) % 2:
            reader.problem("UTF-16 of an odd number of bytes", start)
            raw = raw[:-1]
        text = raw.decode("utf-16-le", "surrogatepass")
        if not text.isascii() and (lone := _SURROGATE.search(text)):
            reader.problem("half of a pair of surrogates", start + 2 * lone.start())
        return text, end

    return read


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UINT8, _UINT16, _INT32 = struct.Struct("B"), struct.Struct("<H"), struct.Struct("<i")

_LONG: Final[Mapping[int, Callable[[_Reader, int], tuple[str, int]]]] = MappingProxyType(
    {
        0x98: _characters(_UINT8),
        0x9A: _characters(_UINT16),
        0x9C: _characters(_INT32),
        0x9E: _base64(_UINT8),
        0xA0: _base64(_UINT16),
        0xA2: _base64(_INT32),
        0xA4: _Reader.listed,
        0xB6: _unicode(_UINT8),
        0xB8: _unicode(_UINT16),
        0xBA: _unicode(_INT32),
        0xBC: _Reader.qualified,
    }
)
"""The reader of a text record whose value has a length, by type."""


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
