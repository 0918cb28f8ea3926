"""An HTTP message as a value: start line, header fields, chunks, entity. [MC-MQSRM] 2.1.1, RFC 9112.

Nothing is normalised: a message that was read and not changed is built back byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.srmp.fields import CRLF, Field, build_block

REQUEST_LINE: Final = "RequestLine"
STATUS_LINE: Final = "StatusLine"
HEADER_FIELDS: Final = "HeaderFields"
TRAILER_FIELDS: Final = "Chunking.TrailerFields"
HTTP_1_1: Final = "HTTP/1.1"
HOST: Final = "Host"
SOAP_ACTION: Final = ("SOAPAction", '"MSMQMessage"')  # SRMP-2.1.1-07
PROXY_ACCEPT: Final = ("Proxy-Accept", "NonInteractiveClient")  # SRMP-2.1.1-08

_REQUEST: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~\x80-\xff]+) (HTTP/1\.[01])")
_STATUS: Final = re.compile(r"(HTTP/1\.[01]) ([1-5][0-9]{2})(?: ([\t -~\x80-\xff]*))?")
# RFC 9112 7.1.1, without the blanks before the semicolon that it calls bad.
_CHUNK: Final = re.compile(r"([0-9A-Fa-f]{1,8})(?:;[\t -~\x80-\xff]*)?")


@dataclass(frozen=True, slots=True)
class RequestLine:
    """``POST /msmq/private$/simpleq HTTP/1.1``: SRMP-2.1.1-04."""

    method: str
    target: str
    version: str = HTTP_1_1

    def to_bytes(self) -> bytes:
        """Return the line with its CRLF. Raises InvalidValue for values that would not read back."""
        line = f"{self.method} {self.target} {self.version}"
        if not _REQUEST.fullmatch(line):
            raise InvalidValue(f"{line!r} is not a request line", path=REQUEST_LINE)
        return line.encode("latin-1") + CRLF


@dataclass(frozen=True, slots=True)
class StatusLine:
    """``HTTP/1.1 200 OK``: SRMP-2.1.1-12. `reason` is None where even its blank is missing."""

    status: int
    reason: str | None
    version: str = HTTP_1_1

    def to_bytes(self) -> bytes:
        """Return the line with its CRLF. Raises InvalidValue for values that would not read back."""
        line = f"{self.version} {self.status}" + ("" if self.reason is None else f" {self.reason}")
        if not _STATUS.fullmatch(line):
            raise InvalidValue(f"{line!r} is not a status line", path=STATUS_LINE)
        return line.encode("latin-1") + CRLF

    @property
    def without_entity(self) -> bool:
        """Whether no entity follows such a response, whatever its fields say: RFC 9112 6.3."""
        return self.status < 200 or self.status in (204, 304)


StartLine: TypeAlias = RequestLine | StatusLine


@dataclass(frozen=True, slots=True)
class Chunking:
    """The chunks of an entity.

    Attributes:
        lines: size and extensions of each chunk, that of the last one included.
        trailer_fields: the fields after the last chunk.
    """

    lines: tuple[str, ...]
    trailer_fields: tuple[Field, ...] = ()

    def to_bytes(self, entity: bytes) -> bytes:
        """Return an entity in chunks; in one if the sizes do not fit it. Raises InvalidValue."""
        sizes = [chunk_size(line) or 0 for line in self.lines]
        fits = sum(sizes) == len(entity) and all(sizes[:-1]) and sizes[-1:] == [0]
        valid = fits and chunk_size(self.lines[-1]) == 0
        lines = self.lines if valid else ((f"{len(entity):x}", "0") if entity else ("0",))
        parts, at = [], 0
        for line in lines[:-1]:
            end = at + int(line.partition(";")[0], 16)
            parts += [line.encode("latin-1"), CRLF, entity[at:end], CRLF]
            at = end
        parts += [lines[-1].encode("latin-1"), CRLF, build_block(self.trailer_fields, TRAILER_FIELDS)]
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """An HTTP request or response.

    Attributes:
        start: the first line.
        fields: the header fields in their order.
        entity: the bytes after them, without the chunked coding.
        chunking: their chunks, or None.
    """

    start: StartLine
    fields: tuple[Field, ...] = ()
    entity: bytes = b""
    chunking: Chunking | None = None

    def to_bytes(self) -> bytes:
        """Return the bytes of the message; the length fields are taken as they are. Raises InvalidValue."""
        head = self.start.to_bytes() + build_block(self.fields, HEADER_FIELDS)
        return head + (self.entity if self.chunking is None else self.chunking.to_bytes(self.entity))

    def field_offset(self, number: int) -> int:
        """Return where a header field starts in the message."""
        return len(self.start.to_bytes() + build_block(self.fields[:number], HEADER_FIELDS)) - len(CRLF)

    def offset_of(self, entity_offset: int) -> int:
        """Return where a byte of the entity stands in the message, whose chunks must fit it."""
        at = self.field_offset(len(self.fields)) + len(CRLF)
        if self.chunking is None:
            return at + entity_offset
        for line in self.chunking.lines:
            size = chunk_size(line) or 0
            at += len(line) + len(CRLF)
            if entity_offset < size or not size:
                return at + entity_offset
            at, entity_offset = at + size + len(CRLF), entity_offset - size
        return at


def parse_start_line(line: bytes) -> StartLine:
    """Return the first line of a message. Raises MalformedPacket."""
    text = line.decode("latin-1")
    if text.startswith("HTTP/"):  # SRMP-4.3-02
        status = _STATUS.fullmatch(text)
        if status is None:
            raise MalformedPacket("not an HTTP/1 status line", path=STATUS_LINE, offset=0)
        return StatusLine(int(status[2]), status[3], status[1])  # SRMP-4.3-02
    request = _REQUEST.fullmatch(text)
    if request is None:
        raise MalformedPacket("not an HTTP/1 request line", path=REQUEST_LINE, offset=0)
    return RequestLine(*request.groups())


def chunk_size(line: str) -> int | None:
    """Return the size that the first line of a chunk gives; None if it is none."""
    chunk = _CHUNK.fullmatch(line)
    return None if chunk is None else int(chunk[1], 16)
