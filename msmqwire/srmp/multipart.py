"""The MIME entity of a message with a payload: [MC-MQSRM] 2.2.2, framed as in the examples of chapter 4.

Nothing stands between a part and the delimiter after it, where RFC 2046 wants a CRLF, so a part is cut by
its Content-Length alone; a payload may hold the delimiter: SRMP-2.2.2-14, SRMP-2.2.2-16.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from uuid import UUID

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.srmp.fields import (
    CONTENT_LENGTH,
    CONTENT_TYPE,
    CRLF,
    Field,
    build_block,
    content_length,
    parse_media_type,
    read_block,
    refuse_twice,
    value_of,
)
from msmqwire.srmp.http_message import HEADER_FIELDS

PART_COUNT_MAX: Final = 16
PARTS: Final = "Multipart.Parts"
BOUNDARY: Final = "Multipart.Boundary"
CONTENT_ID: Final = "Content-Id"
MULTIPART_TYPE: Final = "multipart/related"
TEXT_XML: Final = "text/xml"
ENVELOPE_TYPE: Final = "text/xml; charset=UTF-8"  # SRMP-2.2.2-09
PAYLOAD_TYPE: Final = "application/octet-stream"  # SRMP-2.2.2-10
BODY_ID: Final = "body@"  # SRMP-2.2.2-11
EXTENSION_ID: Final = "extension@"  # SRMP-2.2.2-12
BOUNDARY_PREFIX: Final = "MSMQ - SOAP boundary, "  # SRMP-2.2.2-13

HYPHENS: Final = b"--"
_ENVELOPE_FIELD: Final = Field(CONTENT_TYPE, ENVELOPE_TYPE)
_PAYLOAD_FIELD: Final = Field(CONTENT_TYPE, PAYLOAD_TYPE)
_BOUNDARY: Final = re.compile(r"[ -~\x80-\xff]+")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart entity.

    Attributes:
        fields: its header fields in their order.
        content: the bytes that its Content-Length counts.
        line_break: whether a CRLF stands between the content and the next delimiter, as RFC 2046 wants and
            Windows does not.
    """

    fields: tuple[Field, ...]
    content: bytes
    line_break: bool = False

    @property
    def is_xml(self) -> bool:
        """Whether the part is text/xml: the envelope."""
        value = value_of(self.fields, CONTENT_TYPE) or ""
        if value in (ENVELOPE_TYPE, PAYLOAD_TYPE):
            return value == ENVELOPE_TYPE
        media_type = parse_media_type(value)
        return media_type is not None and media_type[0] == TEXT_XML

    @property
    def is_payload(self) -> bool:
        """Whether the part is the body or the extension."""
        return self.content_id.startswith((BODY_ID, EXTENSION_ID))

    @property
    def content_id(self) -> str:
        """The Content-Id in lower case, without the angle brackets that MIME wants; empty without one."""
        return (value_of(self.fields, CONTENT_ID) or "").removeprefix("<").removesuffix(">").lower()

    def has_id(self, prefix: str) -> bool:
        """Return whether the Content-Id starts so."""
        return self.content_id.startswith(prefix)


@dataclass(frozen=True)
class Multipart:
    """A multipart entity.

    Attributes:
        boundary: the text of the delimiters, without hyphens.
        parts: in their order.
        leading_line_break: whether a CRLF stands before the first delimiter; Windows sends none.
        final_line_break: whether a CRLF stands after the last one, as Windows sends it.
    """

    boundary: str
    parts: tuple[Part, ...]
    leading_line_break: bool = False
    final_line_break: bool = True  # SRMP-2.2.2-15

    def to_bytes(self) -> bytes:
        """Return the bytes; Content-Length fields are taken as they are. Raises InvalidValue."""
        return b"".join(self._pieces)

    @property
    def size(self) -> int:
        """The number of bytes. Raises InvalidValue for values that can't be built."""
        return sum(map(len, self._pieces))

    @cached_property
    def _pieces(self) -> list[bytes]:
        if not _BOUNDARY.fullmatch(self.boundary):
            raise InvalidValue(f"{self.boundary!r} can't be a boundary", path=BOUNDARY)
        delimiter = HYPHENS + self.boundary.encode("latin-1")
        pieces = [CRLF] if self.leading_line_break else []
        for number, part in enumerate(self.parts):
            pieces += [delimiter, CRLF, build_block(part.fields, f"{PARTS}[{number}].{HEADER_FIELDS}")]
            pieces += [part.content, CRLF if part.line_break else b""]
        pieces += [delimiter, HYPHENS, CRLF if self.final_line_break else b""]  # SRMP-2.2.2-15
        return pieces

    @cached_property
    def envelope_number(self) -> int | None:
        """The number of the part that is the envelope, the first of text/xml; None if there is none."""
        numbered = enumerate(self.parts)
        return next((number for number, part in numbered if part.is_xml and not part.is_payload), None)

    def content_offset(self, number: int) -> int:
        """Return where the content of a part starts in the entity."""
        before = Multipart(self.boundary, self.parts[: number + 1], self.leading_line_break, False)
        part = self.parts[number]
        behind = len(part.content) + len(CRLF) * part.line_break + len(self.boundary) + 2 * len(HYPHENS)
        return len(before.to_bytes()) - behind


def parse_multipart(data: bytes, boundary: str) -> Multipart:
    """Parse a multipart entity; offsets of errors count from its start.

    Raises MalformedPacket unless delimiters, header fields and lengths fit.
    """
    if not _BOUNDARY.fullmatch(boundary):
        raise MalformedPacket("no boundary", path=BOUNDARY, offset=0)
    delimiter = HYPHENS + boundary.encode("latin-1")
    leading = data.startswith(CRLF + delimiter)
    at = len(CRLF) if leading else 0
    if not data.startswith(delimiter, at):  # SRMP-2.2.2-17
        raise MalformedPacket("the entity does not start with a delimiter", path=PARTS, offset=0)
    at += len(delimiter)
    parts: list[Part] = []
    while not data.startswith(HYPHENS, at):
        if not data.startswith(CRLF, at):  # SRMP-2.2.2-17
            raise MalformedPacket("neither a line end nor -- after a delimiter", path=PARTS, offset=at)
        if len(parts) == PART_COUNT_MAX:
            raise MalformedPacket(f"more than {PART_COUNT_MAX} parts", path=PARTS, offset=at)
        part, at = _parse_part(data, at + len(CRLF), delimiter, f"{PARTS}[{len(parts)}].{HEADER_FIELDS}")
        parts.append(part)
    at += len(HYPHENS)
    if data[at:] not in (CRLF, b""):  # SRMP-2.2.2-17
        raise MalformedPacket("bytes after the last delimiter", path=PARTS, offset=at)
    # SRMP-4.1-01, SRMP-4.2-01, SRMP-4.3-01, SRMP-4.4-01, SRMP-4.4-03, SRMP-4.4-04, SRMP-4.5-01
    return Multipart(boundary, tuple(parts), leading, at < len(data))


def _parse_part(data: bytes, at: int, delimiter: bytes, path: str) -> tuple[Part, int]:
    """Return a part and the offset after the delimiter that follows it."""
    block, start = read_block(data, at, path)
    fields = block.fields()
    for name in (CONTENT_TYPE, CONTENT_ID):  # a second one could hide the envelope or the body
        refuse_twice(block, name)
    length = content_length(fields, block, len(data) - start)
    if length is None:
        raise MalformedPacket("missing", path=f"{path}.{CONTENT_LENGTH}", offset=at)
    end = start + length  # SRMP-2.2.2-16
    line_break = data.startswith(CRLF + delimiter, end)  # SRMP-2.2.2-16
    after = end + len(CRLF) * line_break
    if not data.startswith(delimiter, after):  # SRMP-2.2.2-17
        raise MalformedPacket("no delimiter there", path=f"{path}.{CONTENT_LENGTH}", offset=end)
    # SRMP-4.1-01, SRMP-4.2-01, SRMP-4.3-01, SRMP-4.4-01, SRMP-4.4-03, SRMP-4.4-04, SRMP-4.5-01
    return Part(fields, data[start:end], line_break), after + len(delimiter)


def boundary_of(number: int) -> str:
    """Return a boundary as Windows forms it; the number differs from message to message: SRMP-2.2.2-13."""
    return f"{BOUNDARY_PREFIX}{number}"


def multipart_type(boundary: str) -> str:
    """Return the Content-Type of a request with parts as Windows writes it: SRMP-2.1.1-09."""
    return f'{MULTIPART_TYPE}; boundary="{boundary}"; type={TEXT_XML}'


def envelope_part(envelope: bytes) -> Part:
    """Return the part of an envelope: SRMP-2.2.2-09."""
    length = Field(CONTENT_LENGTH, str(len(envelope)))
    return Part((_ENVELOPE_FIELD, length), envelope)


def payload_part(content: bytes, prefix: str, queue_manager: UUID) -> Part:
    """Return the part of a body or an extension, named after the sending queue manager: SRMP-2.2.2-10."""
    fields = (
        _PAYLOAD_FIELD,
        Field(CONTENT_LENGTH, str(len(content))),
        Field(CONTENT_ID, f"{prefix}{queue_manager}"),
    )
    return Part(fields, content)
