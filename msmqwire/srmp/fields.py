"""Header fields of HTTP messages and of MIME parts: RFC 9112 section 5, RFC 2045 section 5.1.

A field remembers its exact bytes while its name and value are those that were read. Text that two readers
could take for different messages is refused: bare LF and CR, control characters, blanks before the colon,
several lengths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msmqwire.errors import InvalidValue, MalformedPacket

CRLF: Final = b"\r\n"
_BLOCK_END: Final = CRLF + CRLF
_BESIDE: Final = len(": \r\n")  # name and value
HEAD_SIZE_MAX: Final = 16_384  # as http.sys, the web server of Windows, limits the head of a request
FIELD_COUNT_MAX: Final = 100
CONTENT_LENGTH: Final = "Content-Length"
CONTENT_TYPE: Final = "Content-Type"
TRANSFER_ENCODING: Final = "Transfer-Encoding"

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_FIELD: Final = re.compile(rf"({_TOKEN}):([^\0-\x08\x0a-\x1f\x7f]*)".encode())
# A line as `Field.to_bytes` writes one with a value. It begins at the start or after a line feed, so that no
# text makes it search twice.
_USUAL: Final = re.compile(
    rf"(?<![^\n])({_TOKEN}+): ([!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)\r\n"
)
_USUAL_BLOCK: Final = re.compile(rf"(?:{_USUAL.pattern})*+")
_FOLD: Final = re.compile(rb"[ \t][^\0-\x08\x0a-\x1f\x7f]*")
_NAME: Final = re.compile(_TOKEN)
# Text that reads back as it is: Latin-1 without controls, no blank at either end.
_VALUE: Final = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_LENGTH: Final = re.compile(r"[0-9]{1,19}")
_MEDIA_TYPE: Final = re.compile(rf"{_TOKEN}/{_TOKEN}")
_PARAMETER: Final = re.compile(rf'[ \t]*;[ \t]*({_TOKEN})=(?:({_TOKEN}(?:/{_TOKEN})?)|"((?:[^"\\]|\\.)*)")')
_QUOTED_PAIR: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Field:
    """One header field.

    Attributes:
        name: the name as it was written.
        value: without blanks around it; a folded value is joined by single blanks.
        raw: the line or lines without the last CRLF, if they are not ``name: value``. They count only while
            they say the same as `name` and `value`.
    """

    name: str
    value: str
    raw: bytes = b""

    @property
    def folded(self) -> bool:
        """Whether the value goes on in a further line, which RFC 9112 5.2 calls obsolete."""
        return CRLF in self.raw

    def to_bytes(self, path: str) -> bytes:
        """Return the line or lines with CRLF. Raises InvalidValue for values that would not read back."""
        if self.raw and _reads_as(self.raw) == (self.name, self.value):
            return self.raw + CRLF
        if not _NAME.fullmatch(self.name):
            raise InvalidValue(f"{self.name!r} is not the name of a header field", path=path)
        if not _VALUE.fullmatch(self.value):
            raise InvalidValue(f"{self.value!r} can't be the value of a header field", path=path)
        return f"{self.name}: {self.value}".encode("latin-1") + CRLF


def line_end(
    data: bytes | bytearray, start: int, stop: int, path: str, *, name: str, scanned: int = 0
) -> int:
    """Return the offset after the CRLF of the line at `start`; -1 if its end is not there yet.

    The line must end before `stop`; up to `scanned` no LF is to be found. Raises MalformedPacket for a
    line that is too long, and for an LF or CR on its own.
    """
    at = data.find(b"\n", max(start, scanned), stop)
    if at < 0:
        if len(data) >= stop:
            raise MalformedPacket(f"{name} is too long", path=path, offset=stop)
        return -1
    if at == start or data[at - 1] != CRLF[0]:
        raise MalformedPacket("a line feed without a carriage return", path=path, offset=at)
    bare = data.find(b"\r", start, at - 1)
    if bare >= 0:
        raise MalformedPacket("a carriage return without a line feed", path=path, offset=bare)
    return at + 1


class FieldBlock:
    """Collects header fields, line by line or all at once, up to the empty line.

    Attributes:
        offsets: the beginning of each field.
        names: the names of the fields that `fields` returned, in lower case.
    """

    def __init__(self, path: str) -> None:
        """Start a block; `path` names it in errors."""
        self.path = path
        self.offsets: list[int] = []
        self.names: list[str] = []
        self._lines: list[list[bytes]] = []
        self._usual: list[Field] = []

    def take_usual(self, data: bytes | bytearray, start: int, stop: int) -> int:
        """Take a whole block at once if each line is as `Field.to_bytes` writes it; else nothing.

        Returns the offset after its empty line, which is before `stop`, or -1.
        """
        end = data.find(_BLOCK_END, start, stop)
        if end < 0:
            return -1
        fields, offsets, at = [], [], start
        for name, value in _USUAL.findall(data[start : end + len(CRLF)].decode("latin-1")):
            fields.append(Field(name, value))
            offsets.append(at)
            at += len(name) + len(value) + _BESIDE
        if at != end + len(CRLF) or len(fields) > FIELD_COUNT_MAX:  # there are other lines too
            return -1
        self._usual, self.offsets = fields, offsets
        return at + len(CRLF)

    def add(self, line: bytes, offset: int) -> None:
        """Add a line without its CRLF, from this offset. Raises MalformedPacket for a line that is no
        field.
        """
        if line[:1] in (b" ", b"\t"):
            self._fold(line, offset)
            return
        if len(self._lines) == FIELD_COUNT_MAX:
            why = f"more than {FIELD_COUNT_MAX} header fields"
            raise MalformedPacket(why, path=self.path, offset=offset)
        if not _FIELD.fullmatch(line):
            raise MalformedPacket("the line is not a header field", path=self.path, offset=offset)
        self._lines.append([line])
        self.offsets.append(offset)

    def _fold(self, line: bytes, offset: int) -> None:
        if not self._lines:
            raise MalformedPacket("the first line starts with a blank", path=self.path, offset=offset)
        if not _FOLD.fullmatch(line):
            raise MalformedPacket("a control character", path=self.path, offset=offset)
        self._lines[-1].append(line)

    def fields(self) -> tuple[Field, ...]:
        """Return the fields in their order."""
        fields = tuple(self._usual or map(_field, self._lines))
        self.names = [field.name.lower() for field in fields]
        return fields


def read_block(data: bytes, start: int, path: str) -> tuple[FieldBlock, int]:
    """Return the fields at `start` and the offset after their empty line. Raises MalformedPacket."""
    block, limit = FieldBlock(path), start + HEAD_SIZE_MAX
    if (end := block.take_usual(data, start, limit)) >= 0:
        return block, end
    while True:
        end = line_end(data, start, limit, path, name="the block of header fields")
        if end < 0:
            raise MalformedPacket("the header fields break off", path=path, offset=len(data))
        if end == start + len(CRLF):
            return block, end
        block.add(data[start : end - len(CRLF)], start)
        start = end


def build_block(fields: Sequence[Field], path: str) -> bytes:
    """Return the bytes of header fields and their empty line. Raises InvalidValue."""
    text = "".join([f"{field.name}: {field.value}\r\n" for field in fields if not field.raw])
    if text.count("\n") == len(fields) and _USUAL_BLOCK.fullmatch(text):
        return text.encode("latin-1") + CRLF
    lines = [field.to_bytes(f"{path}[{number}]") for number, field in enumerate(fields)]
    return b"".join(lines) + CRLF


def find_all(fields: Sequence[Field], name: str) -> list[int]:
    """Return the numbers of the fields of this name, in any case."""
    size, wanted = len(name), name.lower()
    return [
        number
        for number, field in enumerate(fields)
        if len(field.name) == size and field.name.lower() == wanted
    ]


def value_of(fields: Sequence[Field], name: str) -> str | None:
    """Return the value of the first field of this name, or None."""
    numbers = find_all(fields, name)
    return fields[numbers[0]].value if numbers else None


def refuse_twice(block: FieldBlock, name: str) -> int | None:
    """Return the number of a field of a block, or None.

    Raises MalformedPacket if it is there twice: readers differ in which one counts.
    """
    names, wanted = block.names, name.lower()
    if wanted not in names:
        return None
    number = names.index(wanted)
    if wanted in names[number + 1 :]:
        path, offset = f"{block.path}.{name}", block.offsets[names.index(wanted, number + 1)]
        raise MalformedPacket("given more than once", path=path, offset=offset)
    return number


def one_value(fields: Sequence[Field], name: str, block: FieldBlock) -> tuple[str, int] | None:
    """Return the value and offset of a field that divides bytes, or None.

    Raises MalformedPacket if it is there twice, or folded, which some readers do not follow.
    """
    number = refuse_twice(block, name)
    if number is None:
        return None
    field, offset = fields[number], block.offsets[number]
    if field.folded:
        raise MalformedPacket("folded", path=f"{block.path}.{name}", offset=offset)
    return field.value, offset


def content_length(fields: Sequence[Field], block: FieldBlock, length_max: int) -> int | None:
    """Return the Content-Length, or None without one.

    Raises MalformedPacket unless it is given once, in decimal digits, and at most `length_max`.
    """
    found = one_value(fields, CONTENT_LENGTH, block)
    if found is None:
        return None
    text, offset = found
    path = f"{block.path}.{CONTENT_LENGTH}"
    if not _LENGTH.fullmatch(text):
        raise MalformedPacket("not a decimal number of 1 to 19 digits", path=path, offset=offset)
    if int(text) > length_max:
        raise MalformedPacket(f"{int(text)} is more than {length_max}", path=path, offset=offset)
    return int(text)


def parse_media_type(value: str) -> tuple[str, dict[str, str]] | None:
    """Return the media type of a Content-Type in lower case, and its parameters by lower-case name.

    None if the value breaks the grammar or has a parameter twice. Quoted strings lose their quotes.
    """
    media_type = _MEDIA_TYPE.match(value)
    if media_type is None:
        return None
    parameters: dict[str, str] = {}
    at = media_type.end()
    while at < len(value):
        parameter = _PARAMETER.match(value, at)
        if parameter is None or parameter[1].lower() in parameters:
            return None
        quoted = parameter[3]
        text = parameter[2] if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
        parameters[parameter[1].lower()] = text
        at = parameter.end()
    return media_type[0].lower(), parameters


def _field(lines: Sequence[bytes]) -> Field:
    """Return the field of these lines, without their CRLF."""
    name, _, first = lines[0].partition(b":")
    value = b" ".join(part for line in (first, *lines[1:]) if (part := line.strip(b" \t")))
    raw = CRLF.join(lines)
    canonical = name + b": " + value
    return Field(name.decode("ascii"), value.decode("latin-1"), b"" if raw == canonical else raw)


def _reads_as(raw: bytes) -> tuple[str, str] | None:
    """Return name and value of the lines of one field; None if they are none."""
    block = FieldBlock("")
    try:
        for line in raw.split(CRLF):
            block.add(line, 0)
    except MalformedPacket:
        return None
    fields = block.fields()
    return (fields[0].name, fields[0].value) if len(fields) == 1 else None
