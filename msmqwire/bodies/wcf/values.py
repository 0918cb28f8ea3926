"""The strings, names and values of the records of [MC-NBFX]: 2.1.3, 2.1.4 and 2.3.

A name that XML has not, and bytes that are not text, are problems, and reading goes on.
"""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msmqwire.bodies.limits import Budget
from msmqwire.bodies.wcf.characters import (
    CONSTANTS,
    FAULTS,
    FIXED,
    as_name,
)
from msmqwire.bodies.wcf.fault import Fault, announced, read_size
from msmqwire.bodies.wcf.names import LETTERS, XMLNS
from msmqwire.bodies.wcf.output import Output
from msmqwire.bodies.wcf.problems import PROBLEMS_MAX, Problems
from msmqwire.bodies.wcf.words import WORDS
from msmqwire.names.printable import counted

NAME_MAX: Final = 16_384
"""Bytes of a name."""
_NAMES_MAX: Final = 2048
_NAME_LENGTH_MAX: Final = 64
PARTS_MAX: Final = 1024
_WORD_LENGTH: Final = 256
"""Characters above which a string of the session is counted before it is used."""

known_names: dict[bytes | str | None, str] = {}
"""Names that were read before, checked; bounded. None is never among them."""

STATIC: Final = dict(WORDS)
_FIXED: Final = dict(FIXED)
_CONSTANTS: Final = dict(CONSTANTS)


class Values:
    """Reads strings, names and values at places of the bytes of a document.

    Attributes:
        data: the bytes.
        words: strings with odd numbers.
        budget: the limits left.
        problems: the faults after which reading goes on.
        dictionary: strings with even numbers.
        out: the characters of the document.
        at: the record that is read now.
    """

    __slots__ = ("at", "budget", "data", "dictionary", "out", "problems", "words")

    def __init__(
        self,
        data: bytes,
        words: dict[int, str],
        budget: Budget,
        problems: Problems,
        dictionary: Mapping[int, str],
    ) -> None:
        self.data, self.words, self.budget, self.problems = data, words, budget, problems
        self.dictionary = dictionary
        self.out = Output(budget)
        self.at = 0

    def path(self) -> str:
        """Return the elements that are open."""
        raise NotImplementedError

    def problem(self, error: str, offset: int) -> None:
        """Tell of a fault after which reading goes on."""
        full = len(self.problems.found) >= PROBLEMS_MAX
        self.problems.add(error, offset, "" if full else self.path())

    def string(self, at: int) -> tuple[str, int]:
        """Read a text with its length, a String of 2.1.3."""
        data = self.data
        size = data[at]
        if size > 0x7F:
            size, at = read_size(data, at)
        else:
            at += 1
        end = at + size  # NBFX-2.1.3-01
        if end > len(data):
            raise Fault("a text ends after the bytes", at)
        try:
            return data[at:end].decode(), end
        except UnicodeDecodeError as exc:
            return self.replaced(data[at:end], at + exc.start), end

    def replaced(self, raw: bytes, at: int) -> str:
        self.problem("the text is not UTF-8", at)  # NBFX-2.1.3-02 and NBFX-2.2.3.13-02
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
        known = known_names.get(raw)
        if known is not None:
            return known, end
        try:
            text = raw.decode()
        except UnicodeDecodeError as exc:
            return as_name(self.replaced(raw, at + exc.start)), end
        return self.checked(text, raw, start), end

    def checked(self, text: str, key: bytes | str, at: int) -> str:
        """Return a name as it stands in XML."""
        if not text:  # NBFX-2.2.1.1-01, NBFX-2.2.1.2-01 and NBFX-2.2.1.3-01
            raise Fault("a name of no characters", at)
        name = as_name(text)
        if name != text or name == XMLNS:  # NBFX-2.2.2.1-01, NBFX-2.2.2.2-01 and NBFX-2.2.2.6-01
            self.problem(f"{text[:40]!r} can't be a name", at)
            return name
        if len(key) <= _NAME_LENGTH_MAX:
            if len(known_names) >= _NAMES_MAX:
                known_names.clear()
            known_names[key] = name
        return name

    def word_name(self, at: int) -> tuple[str, int]:
        """Read the number of a name."""
        word, end = self.word(at)
        known = known_names.get(word)
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
        at += 1  # NBFX-2.1.4-01
        if number > 0x7F:
            number, at = read_size(self.data, start)
        if not number & 1:  # NBFX-NBFS-2.1-01 and NBFX-NBFSE-2.2-01
            word = self.dictionary.get(number)
            if word is None:
                raise Fault(f"{number} is not a string of the static dictionary", start)  # NBFX-NBFS-2.1-03
            return word, at
        word = self.words.get(number)
        if word is None:
            raise Fault(f"{number} is not a string of the session", start)  # NBFX-NBFSE-2.2-02
        if len(word) > _WORD_LENGTH:
            self.out.count(len(word))
        return word, at

    def value(self, kind: int, at: int) -> tuple[str, int]:
        """Read a text record, without the end of its element; return its characters."""
        fixed = _FIXED.get(kind)
        if fixed is not None:
            layout, characters = fixed
            (value,) = layout.unpack_from(self.data, at + 1)  # NBFX-2.1-02
            fault = FAULTS.get(kind)
            if fault is not None and (why := fault(value)) is not None:
                self.problem(why, at + 1)
            return characters(value), at + 1 + layout.size  # NBFX-2.1-02
        constant = _CONSTANTS.get(kind)
        if constant is not None:
            return constant, at + 1
        if kind == 0xAA:  # NBFX-2.2.3.21-01
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
            if kind < 0x80 or kind & 1 or kind == 0xA4:  # NBFX-2.2.3.19-02
                raise Fault(f"a record of the type 0x{kind:02X} in a list", at)
            text, at = self.value(kind, at)
            texts.append(text)
            size += len(text) + 1
            if len(texts) >= PARTS_MAX:
                self.budget.records(len(texts))
                self.out.count(size)
                whole.append(" ".join(texts))
                texts.clear()
                size = 0
        self.budget.records(len(texts))
        if texts:
            whole.append(" ".join(texts))
        return " ".join(whole), at + 1  # NBFX-2.2.3.19-01, NBFX-2.2.3.19-03

    def qualified(self, at: int) -> tuple[str, int]:
        """Read a name with the prefix of one letter."""
        letter = self.data[at + 1]
        if letter >= len(LETTERS):  # NBFX-2.2.3.30-01
            raise Fault(f"{letter} is the prefix of no name", at + 1)
        name, end = self.word(at + 2)
        return f"{LETTERS[letter]}:{name}", end


def _characters(layout: struct.Struct) -> Callable[[Values, int], tuple[str, int]]:
    def read(reader: Values, at: int) -> tuple[str, int]:
        raw, start, end = reader.counted(layout, at)
        try:
            return raw.decode(), end
        except UnicodeDecodeError as exc:
            return reader.replaced(raw, start + exc.start), end

    return read


def _base64(layout: struct.Struct) -> Callable[[Values, int], tuple[str, int]]:
    def read(reader: Values, at: int) -> tuple[str, int]:
        raw, _, end = reader.counted(layout, at)
        return binascii.b2a_base64(raw, newline=False).decode("ascii"), end

    return read


def _unicode(layout: struct.Struct) -> Callable[[Values, int], tuple[str, int]]:
    def read(reader: Values, at: int) -> tuple[str, int]:
        raw, start, end = reader.counted(layout, at)
        if len(raw) % 2:
            reader.problem("UTF-16 of an odd number of bytes", start)
            raw = raw[:-1]
        text = raw.decode("utf-16-le", "surrogatepass")
        if not text.isascii() and (lone := _SURROGATE.search(text)):
            reader.problem("half of a pair of surrogates", start + 2 * lone.start())  # NBFX-2.2.3.13-03
        return text, end

    return read


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UINT8, _UINT16, _INT32 = struct.Struct("B"), struct.Struct("<H"), struct.Struct("<i")

_LONG: Final[Mapping[int, Callable[[Values, int], tuple[str, int]]]] = MappingProxyType(
    {
        0x98: _characters(_UINT8),  # NBFX-2.2.3.13-01
        0x9A: _characters(_UINT16),  # NBFX-2.2.3.14-01
        0x9C: _characters(_INT32),  # NBFX-2.2.3.15-01
        0x9E: _base64(_UINT8),  # NBFX-2.2.3.16-01
        0xA0: _base64(_UINT16),  # NBFX-2.2.3.17-01
        0xA2: _base64(_INT32),  # NBFX-2.2.3.18-01
        0xA4: Values.listed,
        0xB6: _unicode(_UINT8),  # NBFX-2.2.3.27-01
        0xB8: _unicode(_UINT16),  # NBFX-2.2.3.28-01
        0xBA: _unicode(_INT32),  # NBFX-2.2.3.29-01
        0xBC: Values.qualified,
    }
)
"""The reader of a text record whose value has a length, by type."""
