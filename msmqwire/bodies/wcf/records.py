"""[MC-NBFX] record by record, as they stand in the bytes: to read, to change and to build.

`nbfx` reads documents to XML; here a document is a list of records with their fields, from which the same
bytes are built. Strings of a dictionary are their numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msmqwire.bodies.wcf.characters import CONSTANTS, FIXED
from msmqwire.bodies.wcf.fault import Fault, announced, build_size, read_size
from msmqwire.bodies.wcf.names import LETTERS
from msmqwire.bodies.wcf.nbfx import ARRAY, ARRAYS, COMMENT, END_ELEMENT

Field: TypeAlias = "str | int | float | bytes | tuple[Any, ...]"

_UINT8, _UINT16, _INT32 = struct.Struct("B"), struct.Struct("<H"), struct.Struct("<i")
_STRING, _WORD = "string", "word"

_TEXT_NAMES: Final = (
    "Zero", "One", "False", "True", "Int8", "Int16", "Int32", "Int64", "Float", "Double", "Decimal",
    "DateTime", "Chars8", "Chars16", "Chars32", "Bytes8", "Bytes16", "Bytes32", "StartList", "EndList",
    "Empty", "Dictionary", "UniqueId", "TimeSpan", "Uuid", "UInt64", "Bool", "UnicodeChars8",
    "UnicodeChars16", "UnicodeChars32", "QNameDictionary",
)  # fmt: skip
START_LIST, END_LIST = 0xA4, 0xA6


def _kinds() -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Give the types of records that are not text: number, name, fields."""
    yield END_ELEMENT, "EndElement", ()
    yield COMMENT, "Comment", (_STRING,)
    yield 0x04, "ShortAttribute", (_STRING,)
    yield 0x05, "Attribute", (_STRING, _STRING)
    yield 0x06, "ShortDictionaryAttribute", (_WORD,)
    yield 0x07, "DictionaryAttribute", (_STRING, _WORD)
    yield 0x08, "ShortXmlnsAttribute", (_STRING,)
    yield 0x09, "XmlnsAttribute", (_STRING, _STRING)
    yield 0x0A, "ShortDictionaryXmlnsAttribute", (_WORD,)
    yield 0x0B, "DictionaryXmlnsAttribute", (_STRING, _WORD)
    yield 0x40, "ShortElement", (_STRING,)
    yield 0x41, "Element", (_STRING, _STRING)
    yield 0x42, "ShortDictionaryElement", (_WORD,)
    yield 0x43, "DictionaryElement", (_STRING, _WORD)
    for first, name, field in (
        (0x0C, "PrefixDictionaryAttribute", _WORD),
        (0x26, "PrefixAttribute", _STRING),
        (0x44, "PrefixDictionaryElement", _WORD),
        (0x5E, "PrefixElement", _STRING),
    ):
        for index, letter in enumerate(LETTERS.upper()):
            yield first + index, name + letter, (field,)


_FIELDS: Final[Mapping[int, tuple[str, ...]]] = MappingProxyType(
    {kind: fields for kind, _, fields in _kinds()}
)
_LENGTHS: Final[Mapping[int, struct.Struct]] = MappingProxyType(
    {
        first + 2 * index: layout
        for first in (0x98, 0x9E, 0xB6)
        for index, layout in enumerate((_UINT8, _UINT16, _INT32))
    }
)

NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {kind: name for kind, name, _ in _kinds()}
    | {ARRAY: "Array"}
    | {0x80 + 2 * index: f"{name}Text" for index, name in enumerate(_TEXT_NAMES)}
    | {
        0x81 + 2 * index: f"{name}TextWithEndElement"
        for index, name in enumerate(_TEXT_NAMES)
        if not name.endswith("List")
    }
)
"""The names of the records in the text, 2.1.1, by type."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        kind: its type.
        fields: its fields, in their order: texts, numbers of strings, the value of a text record as its
            layout has it (characters and binary data as bytes). The text record of an attribute and the
            records of the element of an array are records of their own, after it.
    """

    kind: int
    fields: tuple[Field, ...] = ()

    @property
    def name(self) -> str:
        """The name of the record in the text."""
        return NAMES[self.kind]


def records(data: bytes) -> Iterator[Record]:
    """Give the records of a document. Raises Fault.

    An array is its own record without fields, then the records of its element and that one's end, and then a
    record of the type of its values with all of them in one field.
    """
    at = 0
    array = False
    while at < len(data):
        try:
            if array and data[at] == END_ELEMENT:
                yield Record(END_ELEMENT)
                record, at = _values(data, at + 1)
                array = False
            else:
                record, at = _record(data, at)
                array = array or record.kind == ARRAY
        except (IndexError, struct.error):
            raise Fault("the bytes end within a record", len(data)) from None
        yield record


def _record(data: bytes, at: int) -> tuple[Record, int]:
    kind = data[at]
    at += 1
    if kind == ARRAY:
        return Record(kind), at
    fields: list[Field] = []
    if kind in _FIELDS:
        for field in _FIELDS[kind]:
            value: Field
            if field is _STRING:
                raw, at = _sized(data, *read_size(data, at))
                value = raw.decode("utf-8", "surrogateescape")
            else:
                value, at = read_size(data, at)
            fields.append(value)
        return Record(kind, tuple(fields)), at
    text = kind & 0xFE
    if kind not in NAMES:
        raise Fault(f"0x{kind:02X} is the type of no record", at - 1)
    if text in CONSTANTS or text in (START_LIST, END_LIST):
        return Record(kind), at
    if text in FIXED:
        layout = FIXED[text][0]
        return Record(kind, layout.unpack_from(data, at)), at + layout.size
    if text in _LENGTHS:
        layout = _LENGTHS[text]
        (size,) = layout.unpack_from(data, at)
        raw, at = _sized(data, size, at + layout.size)
        return Record(kind, (raw,)), at
    if text == 0xAA:
        number, at = read_size(data, at)
        return Record(kind, (number,)), at
    letter = data[at]
    number, at = read_size(data, at + 1)
    return Record(kind, (letter, number)), at


def _values(data: bytes, at: int) -> tuple[Record, int]:
    kind = data[at]
    if kind not in ARRAYS:
        raise Fault(f"an array of records of the type 0x{kind:02X}", at)
    layout = FIXED[kind - 1][0]
    count, at = read_size(data, at + 1)
    raw, at = _sized(data, count * layout.size, at)
    return Record(kind, (tuple(value for (value,) in layout.iter_unpack(raw)),)), at


def _sized(data: bytes, size: int, at: int) -> tuple[bytes, int]:
    if not 0 <= size <= len(data) - at:
        raise Fault(announced(size, len(data) - at), at)
    return data[at : at + size], at + size


def build(items: Iterable[Record]) -> bytes:
    """Return the bytes of records; numbers take as few bytes as they need."""
    out = bytearray()
    for record in items:
        out.append(record.kind)
        fields: Any = record.fields
        text = record.kind & 0xFE
        if record.kind in _FIELDS:
            for field in fields:
                if isinstance(field, str):
                    raw = field.encode("utf-8", "surrogateescape")
                    out += build_size(len(raw)) + raw
                else:
                    out += build_size(field)
        elif text in FIXED and fields:
            layout = FIXED[text][0]
            if isinstance(fields[0], tuple):
                out += build_size(len(fields[0]))
                for value in fields[0]:
                    out += layout.pack(value)
            else:
                out += layout.pack(fields[0])
        elif text in _LENGTHS:
            out += _LENGTHS[text].pack(len(fields[0])) + fields[0]
        elif text == 0xAA:
            out += build_size(fields[0])
        elif text == 0xBC:
            out.append(fields[0])
            out += build_size(fields[1])
    return bytes(out)
